"""The basis of every target type: the context of an attempt, and the reach of a stage."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from scheduler.model.errors import NotFound
from scheduler.model.job import Awaited, Failure
from scheduler.targets import arns
from scheduler.targets.calls import Calls, Role
from scheduler.targets.job_context import JobContext

if TYPE_CHECKING:
    from scheduler.targets.http_answer import Answer


@dataclass(frozen=True, slots=True)
class Reach:
    """The AWS resources that jobs of a stage may use, none unless the deployment lists them; and the URLs that they may call."""

    arns: Sequence[str] = ()  # patterns, as in `scheduler/targets/arns.py`
    sender: str = ""  # the sender address of e-mails; empty: no e-mail can be sent
    mail_domains: Sequence[str] = ()  # of recipients, `*` for any text; empty: the domain of the sender
    plain_http: bool = False  # http:// as well as https://
    hosts: Sequence[str] = ()  # hosts that `http` jobs may call, `*` for any text; empty: any host
    actions: Sequence[str] = ()  # operations that `aws` jobs may call, as `s3:CopyObject`, each with the ids of its only owners, if any
    accounts: Sequence[str] = ()  # ARNs of roles in other accounts, each with the ids of its only owners, if any
    stage: str = ""  # part of the external ids for these roles
    owner: str = ""  # whose jobs they are; empty: the jobs of any owner
    network: Sequence[str] = ()  # hosts and ranges that private targets may list (`private_network`); empty: there are no private targets
    allow: Sequence[str] = ()  # the ones that the job's private target lists; empty: its target is public

    def of(self, owner: str) -> "Reach":
        """The reach of one owner's jobs: without the actions that are for other owners."""
        if not self.actions and not self.accounts:
            return self
        allowed = (each.partition(" ") for each in self.actions)
        actions = tuple(action for action, _, owners in allowed if not owners or owner in owners.split())
        return replace(self, actions=actions, owner=owner)

    def role_in(self, account: str, field: str) -> Role | None:
        """The role by which the jobs call an account: an entry that names their owner goes first. None: the account has no entry.

        Without an owner the role has no external id, so nobody can assume it. Raises NotAllowed if all entries are for other owners.
        """
        entries = [(role, owners.split()) for role, _, owners in (each.partition(" ") for each in self.accounts)]
        entries = [(role, owners) for role, owners in entries if arns.account(role) == account]
        usable = [role for role, owners in entries if self.owner in owners]
        usable += [role for role, owners in entries if not owners or not self.owner]
        if usable:
            return Role(usable[0], f"punctual/{self.stage}/{self.owner}" if self.owner else "")
        if entries:
            raise NotAllowed(field, f"is in the account {account}, which {ACCOUNTS} opens to other owners only")
        return None

    def within(self, allow: Sequence[str]) -> "Reach":
        """The reach of jobs of a private target with this list: only what it allows, instead of the public hosts."""
        return replace(self, hosts=(), allow=tuple(allow))


ACCOUNTS = "the option accounts"


class NotAllowed(ValueError):
    """A payload names a resource that jobs of this stage may not call. `field`: of the payload; empty: the type as such."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(rule)
        self.field = field


@dataclass(frozen=True, slots=True)
class CallBackAddress:
    """The address to which the worker of an attempt reports: /heartbeat, /complete and /fail below the URL, with the token."""

    url: str
    token: str
    fence: int


class Exchange(Protocol):
    """Answers a request of an `http` job. Raises `http_answer.Broken` if there is no answer."""

    def __call__(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> "Answer": ...


class NotBegun(Exception):
    """The attempt has not begun, and must not: its job was stopped before its instant, or the instant has passed too long ago."""


class Begin(Protocol):
    """Begins an attempt at its job's instant."""

    def __call__(self, first: Callable[[], None], *, is_quick: bool = False) -> None:
        """Wait for the instant, then call `first`. Raises NotBegun, and what `first` raises.

        `is_quick`: it takes less than a millisecond, so that a thread which calls many such functions may call it.
        """


def at_once(first: Callable[[], None], *, is_quick: bool = False) -> None:
    """Begin without a wait: work that has no instant."""
    first()


def no_calls() -> Calls:
    raise RuntimeError("nothing here calls AWS")


def no_clock() -> int:
    raise RuntimeError("nothing here needs the time")


def any_mail(recipients: int) -> bool:
    return True


def no_secrets(name: str) -> Sequence[str]:
    raise NotFound(f"there is no secret {name!r}")


@dataclass(frozen=True, slots=True)
class Context:
    """All data that a target receives about its attempt."""

    job: JobContext
    deadline: float  # by `time.monotonic()`
    stop: threading.Event  # set: a cancel was requested or the lease is lost; end soon, since only a success is still recorded
    allow_private: bool = False  # may call private and loopback addresses
    fetcher: str = ""  # the ARN of the function that calls URLs; empty: the executor calls them itself
    not_before: int = 0  # the job's instant (UTC ms), possibly in the future: an attempt must not begin earlier
    not_after: int | None = None  # UTC ms: a later call of a URL must not begin, since the job's clearance is too old by then
    begin: Begin = at_once  # for a type that `prepares`; any other one is run at the instant
    reach: Reach = field(default_factory=Reach)
    calls: Callable[[], Calls] = no_calls  # returns the client for AWS, made at the first use
    callback: CallBackAddress | None = None  # of a job that reports by call-back
    admits_mail: Callable[[int], bool] = any_mail  # counts recipients in the budget of the job's owner, and returns whether they fit
    secrets: Callable[[str], Sequence[str]] = no_secrets  # the values of a secret of the job's owner, by name, newest first
    timeout_seconds: float | None = None  # of the job, for texts: `deadline` also has the time until its instant
    owner: str = ""  # the id of the job's owner
    now: Callable[[], int] = no_clock  # UTC ms
    awaited: Awaited | None = None  # of a job whose work in AWS is awaited: what to start, or to check
    must_stop: Failure | None = None  # of a check: why that work must be stopped; None: it may go on
    exchange: Exchange | None = None  # answers requests instead of the network, where there is none: `punctual.testing`

    @property
    def job_id(self) -> str:
        return self.job.job_id

    @property
    def attempt(self) -> int:
        return self.job.attempt

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of one job."""
        return self.job_id

    @property
    def id_name(self) -> str:
        """The name of `job_id` for receivers: a notice is sent like a job, but is no job."""
        return "Punctual-Notice-Id" if self.job_id.startswith("notice_") else "Punctual-Job-Id"

    @property
    def unique(self) -> str:
        """The id by which receivers drop duplicates: one per job, or one per attempt if each attempt has its own worker (call-back)."""
        return self.job_id if self.callback is None else f"{self.job_id}-{self.callback.fence}"

    @property
    def time_out(self) -> str:
        """The job's time-out in words."""
        return "the job's time-out" if self.timeout_seconds is None else f"the job's time-out of {self.timeout_seconds:g} s"

    def cut(self) -> str:
        """The reason for which a call was given up that had neither answered nor failed."""
        return "stopped before the answer came" if self.stop.is_set() else f"no answer within {self.time_out}"

    def left(self) -> float:
        """Seconds until the attempt must end; 0 once a stop is requested."""
        return 0.0 if self.stop.is_set() else max(self.deadline - time.monotonic(), 0.0)
