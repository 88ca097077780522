"""Who is notified of the runs of a task, and of what."""

from dataclasses import dataclass
from enum import StrEnum


class Occasion(StrEnum):
    """What receivers may be told of."""

    FAILURE = "failure"  # a run failed, or was killed where that is no occasion of its own
    RECOVERY = "recovery"  # the first success after failures that were to be told
    SUCCESS = "success"  # a run succeeded
    LATE = "late"  # a run started `lifecycle.LATE_MS` after its time or later
    KILLED = "killed"  # a run's time-out passed and it was stopped


USUAL = (Occasion.FAILURE, Occasion.RECOVERY)


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that is called with every notice, signed with a secret of the task's owner."""

    url: str
    signing_secret: str


@dataclass(frozen=True, slots=True)
class Notifications:
    """Who is told of a task's runs, and of what."""

    emails: tuple[str, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    on: tuple[Occasion, ...] = USUAL
    after_failures: int = 1  # so many runs in a row have to fail before that is told
    digest_ms: int = 900_000  # the window: at most one notice of an occasion within it

    @property
    def receivers(self) -> tuple["str | Webhook", ...]:
        return (*self.emails, *self.webhooks)
