"""The notifications of a task or of a one-time job: their receivers, and the occasions that cause one."""

from dataclasses import dataclass
from enum import StrEnum


class Occasion(StrEnum):
    """A kind of event that receivers may be notified of."""

    FAILURE = "failure"  # a run failed; or it was killed, if the task does not list `killed` itself
    RECOVERY = "recovery"  # the first success after failures that caused a notification
    SUCCESS = "success"  # a run succeeded
    LATE = "late"  # a run started `lifecycle.LATE_MS` after its time or later
    KILLED = "killed"  # a run's time-out passed and it was stopped


USUAL = (Occasion.FAILURE, Occasion.RECOVERY)


class WebhookFormat(StrEnum):
    """The form of the body that a webhook receives."""

    STANDARD = "standard"  # all fields of the notice, signed by Standard Webhooks
    SLACK = "slack"  # one text, for the incoming webhooks of Slack, Mattermost and others
    TEAMS = "teams"  # an Adaptive Card, for the webhooks of Workflows in Microsoft Teams


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that receives every notice, signed with a secret of its owner if one is named."""

    url: str
    signing_secret: str | None  # None: only with a format whose receivers check no signature
    format: WebhookFormat = WebhookFormat.STANDARD


@dataclass(frozen=True, slots=True)
class Named:
    """A receiver of the owner, by its name: `scheduler.model.receiver` has the record. It is read when a notice is sent."""

    name: str


@dataclass(frozen=True, slots=True)
class Notifications:
    """The receivers of the notices of a task or of a one-time job, and the occasions they are for.

    Without any receiver, the notices are for the default receivers of the owner.
    """

    emails: tuple[str, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    on: tuple[Occasion, ...] = USUAL
    after_failures: int = 1  # the number of failed runs in a row that causes a notice of failure
    digest_ms: int = 900_000  # receivers get at most one notice of an occasion within this time
    named: tuple[str, ...] = ()  # the names of receivers of the owner

    @property
    def receivers(self) -> tuple["str | Webhook | Named", ...]:
        return (*self.emails, *self.webhooks, *map(Named, self.named))
