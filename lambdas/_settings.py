"""The typed environment. `infra` renders it into each function's variables; `_runtime` parses it back."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from scheduler.model.declaration import TemplateEntry
from scheduler.model.job import Lane
from scheduler.model.lifecycle import Retention
from scheduler.model.rules import Rules
from scheduler.targets.base import Reach
from scheduler.targets.private_network import ENTRY

PREFIX = "PUNCTUAL_"
HOST = r"[A-Za-z0-9*_-]+(\.[A-Za-z0-9*_-]+)+"
DOMAIN = rf"\*|{HOST}"
ORIGIN_HEADER = "x-punctual-origin"  # CloudFront sends the origin secret in it
VIEWER_HEADER = "x-punctual-viewer"  # and in this one the address of the viewer

log = logging.getLogger(__name__)

Record = TypeVar("Record", Rules, Reach)


class SettingsError(Exception):
    """A variable is missing or of the wrong type; the message names it. Unknown fields are no error: they are logged and ignored."""


class Settings:
    """The settings of one function: the names of the resources it uses, the stage's rules, and the reach of jobs.

    A function has only the names of resources it has grants for. Reading any other name raises SettingsError.
    """

    stage: str
    jobs_table: str
    tasks_table: str
    ledger_table: str
    users_table: str
    audit_table: str
    audit_lock_bucket: str = ""  # the bucket that locks a copy of each audit entry; empty: there is none
    counters_table: str
    notices_table: str
    one_time_queue_url: str
    recurring_queue_url: str
    retry_queue_url: str
    work_queue_url: str
    notices_queue_url: str
    intake_queues: str = ""  # name=owner=url, separated by blanks: the intake queues, each with its owner or `principals`
    template_entries: str = ""  # name=owner, with =targets if it has this right, separated by blanks: the entries of the option `templates`
    api_function: str  # the ARN of the API's function, for `declare`
    topic_arn: str
    event_bus: str  # the ARN of the bus on which the ends of jobs are put
    traces_endpoint: str = ""  # where spans are sent: a URL, or `xray`; empty: they are sent nowhere
    traces_secret: str = ""  # the ARN or the name of the secret with further headers of these requests; empty: there are none
    outputs_bucket: str
    fetch_function: str = ""  # the ARN of the function that calls URLs; empty: the executor calls them itself
    fetch_private_function: str = ""  # the ARN of the one in the private network; empty: the stage has none
    user_pool: str
    user_pool_client_id: str
    user_pool_client_secret: str
    sso: str = ""  # single sign-on, as JSON (`accounts.sso.Sso`); empty: the stage has none
    aws_issuers: str = ""  # account=issuer of the tokens of its roles, separated by blanks; empty: no AWS role may sign in
    callback_secret: str = ""  # the ARN of the secret with the keys that sign call-back tokens
    secret_prefix: str = ""  # the prefix of the names of secrets that jobs may use; empty: jobs may use none
    archive_stream: str = ""  # the delivery stream for jobs that have left their table; empty: they are not archived
    archive_database: str = ""  # the Athena database of jobs that have left their table; empty: there is none
    one_time_mapping: str = ""  # the event source mapping that may keep pollers ready; empty: none
    recurring_mapping: str = ""
    lane: str  # the lane of an executor
    api_url: str = ""  # the API's URL for workers' reports; `{endpoint}` is replaced by the address of the local AWS
    console_address: str = ""  # the parameter with the console's URL; it is missing if the stage has no console
    origin_secret: str = ""  # the values that CloudFront may send as ORIGIN_HEADER, separated by blanks; empty: the stage has no console
    rules: Rules
    reach: Reach

    def __init__(self, *, rules: Rules | None = None, reach: Reach | None = None, **names: str) -> None:
        if unknown := names.keys() - NAMES:
            raise TypeError(f"there is no setting {', '.join(sorted(unknown))}")
        vars(self).update(names, rules=rules or Rules(), reach=reach or Reach())

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> str:
            raise SettingsError(f"{PREFIX}{name.upper()} is not set") if name in NAMES else AttributeError(name)

    @classmethod
    def parse(cls, environ: Mapping[str, str]) -> Self:
        """Read the variables that `render` wrote. Raises SettingsError naming the first bad variable."""
        names = {name: environ[PREFIX + name.upper()] for name in NAMES if PREFIX + name.upper() in environ}
        return cls(rules=_read(PREFIX + "RULES", environ, Rules()), reach=_read(PREFIX + "REACH", environ, Reach()), **names)

    def render(self) -> dict[str, str]:
        """Return the function's variables. Rules and reach contain only the fields that differ from their defaults."""
        names = {PREFIX + name.upper(): value for name, value in vars(self).items() if name in NAMES}
        return names | _written(PREFIX + "RULES", self.rules, Rules()) | _written(PREFIX + "REACH", self.reach, Reach())

    def get(self, name: str) -> str:
        """Return the value of an optional setting; empty if this function does not have it."""
        return str(vars(self).get(name, ""))

    @property
    def queues(self) -> dict[Lane, str]:
        """The URLs of the lanes' queues."""
        return {Lane.ONE_TIME: self.one_time_queue_url, Lane.RECURRING: self.recurring_queue_url, Lane.RETRY: self.retry_queue_url}

    @property
    def issuers(self) -> dict[str, str]:
        """The issuers of the tokens of AWS roles, by account."""
        return {account: issuer for account, _, issuer in (each.partition("=") for each in self.aws_issuers.split())}

    @property
    def intake(self) -> dict[str, tuple[str, str]]:
        """The owner and the URL of each intake queue, by its name."""
        parts = (each.split("=", 2) for each in self.get("intake_queues").split())
        return {name: (owner, url) for name, owner, url in parts}

    @property
    def templates(self) -> dict[str, TemplateEntry]:
        """The entries of the option `templates`, by name."""
        parts = (each.split("=") for each in self.template_entries.split())
        return {name: TemplateEntry(name, owner, "targets" in rights) for name, owner, *rights in parts}


NAMES = frozenset(Settings.__annotations__) - {"rules", "reach"}


def _written(name: str, record: Any, default: Any) -> dict[str, str]:
    """Return one variable with the fields that differ from their defaults; no variable if all are equal."""
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    differing = {field: _plain(value) for field, value in values.items() if value != getattr(default, field)}
    return {name: json.dumps(differing, separators=(",", ":"))} if differing else {}


def _plain(value: Any) -> Any:
    return {"days": value.days, "failure_days": value.failure_days} if isinstance(value, Retention) else value


def _read(name: str, environ: Mapping[str, str], default: Record) -> Record:
    text = environ.get(name, "{}")
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise SettingsError(f"{name} must be a JSON object, not {text!r}")
    kinds: dict[str, Any] = {item.name: item.type for item in fields(default)}
    if unknown := values.keys() - kinds.keys():  # of a later version: a function that stopped would stop the stage
        log.warning("%s has fields that this version does not know; ignored: %s", name, ", ".join(sorted(unknown)))
    return replace(default, **{field: _typed(name, field, kinds[field], value) for field, value in values.items() if field in kinds})


def _typed(name: str, field: str, kind: Any, value: Any) -> Any:
    """Return the value of one field. Raises SettingsError if it has another type."""
    if kind == Mapping[Lane, int]:
        return {Lane(lane): count for lane, count in _numbers(f"{name}: {field}", value, list(Lane)).items()}
    if kind is Retention:
        return Retention(**_numbers(f"{name}: {field}", value, ["days", "failure_days"]))
    if kind not in _WORDS:
        if not isinstance(value, list) or not all(isinstance(each, str) and re.fullmatch(_PARTS[field], each) for each in value):
            raise SettingsError(f"{name}: {field} must be a list of {field}, not {value!r}")
        return tuple(value)
    if type(value) is not kind:
        raise SettingsError(f"{name}: {field} must be {_WORDS[kind]}, not {value!r}")
    return value


def _numbers(name: str, value: Any, keys: Sequence[str]) -> dict[str, int]:
    if not isinstance(value, dict) or not value.keys() <= set(keys) or not all(type(each) is int for each in value.values()):
        raise SettingsError(f"{name} must be whole numbers by {' and '.join(keys)}, not {value!r}")
    return value


_WORDS = {int: "a whole number", float: "a number with a point", bool: "true or false", str: "a text"}
_ACTION = r"[a-z0-9-]+:[A-Za-z0-9]+( [A-Za-z0-9-]+)*"
_ROLE = r"arn:[a-z-]+:iam::[0-9]{12}:role/[^ ]+( [A-Za-z0-9-]+)*"
_PARTS = {  # the pattern of the elements of each list
    "arns": r"arn:.*",
    "hosts": HOST,
    "mail_domains": DOMAIN,
    "actions": _ACTION,
    "accounts": _ROLE,
    "network": ENTRY,
    "allow": ENTRY,
}
