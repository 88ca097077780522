"""The basis of every target type: the context of an attempt, and what the jobs of a stage may reach."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scheduler.model.errors import NotFound
from scheduler.targets.calls import Calls


@dataclass(frozen=True, slots=True)
class Reach:
    """The ARNs and URLs that the jobs of a stage may use: by default no ARN, and https:// URLs of any host."""

    arns: Sequence[str] = ()  # patterns, as in `scheduler/targets/arns.py`
    sender: str = ""  # the sender of e-mails; empty: no e-mails are sent
    plain_http: bool = False  # whether http:// URLs are allowed, besides https://
    hosts: Sequence[str] = ()  # patterns of the hosts that `http` jobs may call, `*` for any text; empty: any host


class NotAllowed(ValueError):
    """A payload names something that jobs of this stage may not use. `field`: of the payload; empty: the type itself is not allowed."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(rule)
        self.field = field


@dataclass(frozen=True, slots=True)
class CallBackAddress:
    """The address that a worker reports to: /heartbeat, /complete and /fail below the URL, with the token."""

    url: str
    token: str
    fence: int


def no_calls() -> Calls:
    """The `calls` of a context that cannot call AWS."""
    raise RuntimeError("nothing here calls AWS")


def no_secrets(name: str) -> Sequence[str]:
    """The `secrets` of a context without secrets."""
    raise NotFound(f"there is no secret {name!r}")


@dataclass(frozen=True, slots=True)
class Context:
    """The part of an attempt that its target may know."""

    job_id: str
    attempt: int
    deadline: float  # by `time.monotonic()`
    stop: threading.Event  # set when a cancel was requested or the lease is lost: end soon; only a success is still used then
    allow_private: bool = False  # whether it may call private and loopback addresses
    fetcher: str = ""  # the ARN of the function that calls URLs; empty: the executor calls them itself
    not_before: int = 0  # UTC ms, perhaps in the future: a call that is sent ahead begins at this instant
    reach: Reach = field(default_factory=Reach)
    calls: Callable[[], Calls] = no_calls  # returns the port for calls of AWS, which is created on first use
    callback: CallBackAddress | None = None  # of a job that reports by call-back
    secrets: Callable[[str], Sequence[str]] = no_secrets  # the values of a secret of the job's owner, by name, newest first

    @property
    def idempotency_key(self) -> str:
        """A key that is equal for all attempts of one job."""
        return self.job_id

    @property
    def id_name(self) -> str:
        """The header or attribute name of `job_id` for receivers. A notice is sent as a job is, but its id is not that of a job."""
        return "Punctual-Notice-Id" if self.job_id.startswith("notice_") else "Punctual-Job-Id"

    @property
    def unique(self) -> str:
        """The key by which receivers drop copies: the job's, or the attempt's if each attempt has a worker that reports by call-back."""
        return self.job_id if self.callback is None else f"{self.job_id}-{self.callback.fence}"

    def left(self) -> float:
        """Seconds until the attempt must end; 0 after a stop was requested."""
        return 0.0 if self.stop.is_set() else max(self.deadline - time.monotonic(), 0.0)
