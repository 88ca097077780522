"""The typed environment. `infra` renders these very records into each function's environment; `_runtime` parses them back."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Self

PREFIX = "PUNCTUAL_"
Arns = tuple[str, ...]
Hosts = Annotated[tuple[str, ...], "patterns of host names"]
HOST = r"[A-Za-z0-9*_-]+(\.[A-Za-z0-9*_-]+)+"


class SettingsError(Exception):
    """An environment variable is missing or of the wrong type; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every function knows. A subclass holds what one verb needs besides."""

    stage: str

    @classmethod
    def parse(cls, environ: Mapping[str, str]) -> Self:
        """The record from the environment. Raises SettingsError naming the first bad variable."""
        values: dict[str, Any] = {}
        for item in fields(cls):
            name = PREFIX + item.name.upper()
            if name in environ:
                values[item.name] = _read(name, environ[name], item.type)
            elif item.default is MISSING:
                raise SettingsError(f"{name} is not set")
        return cls(**values)

    def render(self) -> dict[str, str]:
        """The environment that `parse` reads back."""
        return {PREFIX + item.name.upper(): _write(getattr(self, item.name)) for item in fields(self)}


def _read(name: str, text: str, kind: Any) -> str | int | bool | tuple[str, ...]:
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise SettingsError(f"{name} must be a whole number, not {text!r}") from None
    if kind is bool:
        if text not in ("true", "false"):
            raise SettingsError(f"{name} must be true or false, not {text!r}")
        return text == "true"
    if kind is Hosts:
        if not all(re.fullmatch(HOST, each) for each in text.split()):
            raise SettingsError(f"{name} must be host names with blanks between them, not {text!r}")
        return tuple(text.split())
    if kind is Arns:
        if not all(each.startswith("arn:") for each in text.split()):
            raise SettingsError(f"{name} must be ARNs with blanks between them, not {text!r}")
        return tuple(text.split())
    return text


def _write(value: str | int | bool | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class HandOver(Settings):
    """What it takes to place a job in a slot and hand it to its lane at once."""

    jobs_table: str
    ledger_table: str
    one_time_queue_url: str
    recurring_queue_url: str
    retry_queue_url: str
    shards: int = 16  # slots per minute; may grow, never shrink (the ledger keeps the largest)
    hold_ms: int = 5_000  # how long before its instant an executor may claim a job and wait with it
    retention_days: int = 30  # of jobs that ended well
    failure_retention_days: int = 90  # of failed and killed ones


@dataclass(frozen=True, kw_only=True)
class KnowsTasks(HandOver):
    """The tasks table, where the lines of ordering keys are as well: who ends a job sees who goes on."""

    tasks_table: str


@dataclass(frozen=True, kw_only=True)
class Reaching(KnowsTasks):
    """What of AWS jobs may use: checked when they are created, and once more when they run."""

    allowed_targets: Arns = ()  # patterns, as in `scheduler/targets/arns.py`
    email_sender: str = ""  # empty: none can be sent
    plain_http: bool = False  # `http` jobs may call http:// URLs
    http_hosts: Hosts = ()  # that they may call; empty: any


@dataclass(frozen=True, kw_only=True)
class CallBacks(Reaching):
    """What it takes to sign and to check the tokens of call-backs."""

    callback_secret: str = ""  # its ARN


ADMINISTRATORS = "administrators"  # the user group that the api lets do what nobody else may
OPERATORS = "operators"  # the one that it lets see what is everybody's
RESOURCE_SERVER = "punctual"  # what the scopes of machine clients begin with


@dataclass(frozen=True, kw_only=True)
class ApiSettings(CallBacks):
    outputs_bucket: str
    user_pool_client_id: str
    redrive_function: str
    dispatch_function: str  # for the intake
    direct_burst: int = 200  # jobs of a user that one process hands over directly at once ...
    direct_rate: int = 100  # ... and a second after that
    raw_http: bool = True  # `http` jobs without a named target
    users_table: str
    audit_table: str
    counters_table: str
    executors: int = 100  # that there may be at once for first attempts, shown beside what is required
    user_pool: str
    machine_clients: str = ""  # name=id, with blanks between them
    max_jobs: int = 1_000_000  # of each user, that wait for their time, unless administrators say otherwise; 0: any number
    creates_per_second: int = 1_000  # of each user; 0: any number
    archive_database: str = ""  # where jobs are asked for that have left their table; empty: nowhere

    @property
    def clients(self) -> dict[str, str]:
        """The names of the machine clients by their ids."""
        return {id: name for name, _, id in (each.partition("=") for each in self.machine_clients.split())}


@dataclass(frozen=True, kw_only=True)
class TickSettings(KnowsTasks):
    dispatch_function: str
    units: int = 1  # dispatchers per minute
    max_backlog: int = 1_000  # a lane with more waiting messages is behind: rechecks do not add to it


@dataclass(frozen=True, kw_only=True)
class PlanSettings(KnowsTasks):
    """Nothing besides."""


@dataclass(frozen=True, kw_only=True)
class RedriveSettings(KnowsTasks):
    """Nothing besides."""


@dataclass(frozen=True, kw_only=True)
class DispatchSettings(KnowsTasks):
    topic_arn: str
    users_table: str
    lead_ms: int = 500  # how far ahead of its instant a job leaves while nothing was measured yet
    one_time_window: int = 500  # how many jobs the lane holds when all its executors are busy: concurrency x batch
    recurring_window: int = 500


@dataclass(frozen=True, kw_only=True)
class ExecuteSettings(CallBacks):
    outputs_bucket: str
    lane: str
    api_url: str = ""  # of the API, as those reach it who report; `{endpoint}` stands for the address of the local AWS
    allow_private_http: bool = False  # `http` jobs may call private and loopback addresses (the local stage only)
    fetch_function: str = ""  # the ARN of what calls URLs; empty: the executor itself
    secret_prefix: str = ""  # of the names of the secrets that jobs may use; empty: none


@dataclass(frozen=True, kw_only=True)
class FetchSettings(Settings):
    allow_private_http: bool = False
    plain_http: bool = False
    http_hosts: Hosts = ()


@dataclass(frozen=True, kw_only=True)
class ProjectSettings(Settings):
    counters_table: str
    notices_queue_url: str
    archive_stream: str = ""  # the delivery stream for jobs that have left their table; empty: they are gone
    one_shard: bool = False  # events name no shard, and streams have one (the local AWS)


@dataclass(frozen=True, kw_only=True)
class ScaleSettings(KnowsTasks):
    counters_table: str
    executors: int = 100  # that there may be at once for first attempts
    canary: bool = True  # send a job through the scheduler every minute, to see how late it starts
    most_pollers: int = 0  # of a lane, kept ready ahead of what is to come; 0: AWS scales by itself
    one_time_mapping: str = ""  # the event source mappings whose pollers are kept ready
    recurring_mapping: str = ""


@dataclass(frozen=True, kw_only=True)
class BurySettings(KnowsTasks):
    """Nothing besides."""


@dataclass(frozen=True, kw_only=True)
class NotifySettings(Settings):
    """What it takes to decide of news, and to reach receivers by the rules for jobs of types `email` and `http`."""

    tasks_table: str
    notices_table: str
    notices_queue_url: str
    api_url: str  # where receivers can look; `{endpoint}` as for executors
    console_url: str
    email_sender: str = ""
    plain_http: bool = False
    http_hosts: Hosts = ()
    allow_private_http: bool = False
    fetch_function: str = ""
    secret_prefix: str = ""
