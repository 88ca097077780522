"""What every target type builds on: the context of an attempt, and what a stage may reach."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scheduler.model.errors import NotFound
from scheduler.targets.calls import Calls


@dataclass(frozen=True, slots=True)
class Reach:
    """What of AWS the jobs of a stage may use: nothing, unless its deployment says so; and which URLs they may call."""

    arns: Sequence[str] = ()  # patterns, as in `scheduler/targets/arns.py`
    sender: str = ""  # whom e-mails come from; empty: none are sent
    plain_http: bool = False  # http:// as well as https://
    hosts: Sequence[str] = ()  # that `http` jobs may call, `*` for any text; empty: any


class NotAllowed(ValueError):
    """A payload asks for what this stage may not reach. `field` of the payload; empty: the type as such."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(rule)
        self.field = field


@dataclass(frozen=True, slots=True)
class CallBackAddress:
    """Where the worker of an attempt reports to: /heartbeat, /complete and /fail below the URL, with the token."""

    url: str
    token: str
    fence: int


def no_calls() -> Calls:
    raise RuntimeError("nothing here calls AWS")


def no_secrets(name: str) -> Sequence[str]:
    raise NotFound(f"there is no secret {name!r}")


@dataclass(frozen=True, slots=True)
class Context:
    """What a target may know of the attempt it runs."""

    job_id: str
    attempt: int
    deadline: float  # by `time.monotonic()`
    stop: threading.Event  # set: a cancel was asked or the lease is lost; end soon, no result but success counts any more
    allow_private: bool = False  # may call private and loopback addresses
    fetcher: str = ""  # the ARN of the function that calls URLs; empty: they are called right here
    not_before: int = 0  # an instant (UTC ms) that may still be to come: what is sent ahead is to begin then
    reach: Reach = field(default_factory=Reach)
    calls: Callable[[], Calls] = no_calls  # what it takes to call AWS, made when it is first asked for
    callback: CallBackAddress | None = None  # of a job that reports by call-back
    secrets: Callable[[str], Sequence[str]] = no_secrets  # of the job's owner, by name: the newest value first

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at one job."""
        return self.job_id

    @property
    def id_name(self) -> str:
        """By which name receivers are told `job_id`: a notice is sent the way a job is, and is none."""
        return "Punctual-Notice-Id" if self.job_id.startswith("notice_") else "Punctual-Job-Id"

    @property
    def unique(self) -> str:
        """What receivers drop copies by: that of the job, or, where each attempt has a worker of its own, of the attempt."""
        return self.job_id if self.callback is None else f"{self.job_id}-{self.callback.fence}"

    def left(self) -> float:
        """Seconds until it must end; none once it is asked to stop."""
        return 0.0 if self.stop.is_set() else max(self.deadline - time.monotonic(), 0.0)
