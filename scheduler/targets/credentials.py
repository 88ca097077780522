"""The secrets of an `http` job: its payload names them, the executor reads them when it runs and removes them from all results.

A name refers to a secret of the job's owner; a job cannot name another user's secret. `name#field` refers to a field of a secret that is a
JSON object.
"""

import base64
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from annotated_types import MaxLen, Predicate

from scheduler.model.errors import SchedulerError, Unavailable
from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import redaction, webhooks
from scheduler.targets.base import Context, NotAllowed

FIELDS = ("bearer_secret", "basic_user", "basic_secret", "header_secrets", "signing_secret")  # of the payload


def is_name(text: str) -> bool:
    if not re.fullmatch(r"[A-Za-z0-9_+=.@-]+(#[A-Za-z0-9_.-]+)?", text):
        raise ValueError("must be the name of a secret, with #field if it is a JSON object: letters, digits and _+=.@-")
    return True


def is_user(text: str) -> bool:
    if not re.fullmatch(r"[\x20-\x39\x3b-\x7e]*", text):
        raise ValueError("must be printable ASCII without colons")
    return True


SecretName = Annotated[str, MaxLen(200), Predicate(is_name)]


class Unusable(Exception):
    """A secret that cannot be read or sent; the failure names it, and never contains its value."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def check(payload: Mapping[str, Any]) -> None:
    """Raises NotAllowed if credentials are named incompletely or twice."""
    bearer, user, password = (payload.get(name) for name in ("bearer_secret", "basic_user", "basic_secret"))
    if (user is None) != (password is None):
        raise NotAllowed("basic_user" if user is None else "basic_secret", "basic_user and basic_secret must be given together")
    names = {name.lower() for name in payload.get("header_secrets") or {}}
    if (bearer is not None) + (user is not None) + ("authorization" in names) > 1:
        raise NotAllowed(
            "bearer_secret" if bearer is not None else "basic_secret", "only one of them can be the Authorization of a request"
        )
    if twice := names & {name.lower() for name in payload.get("headers") or {}}:
        raise NotAllowed("header_secrets", f"{min(twice)} is among the headers too")


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets that were read for one attempt."""

    added: Mapping[str, str] = field(default_factory=dict)  # headers of the request
    signing: Sequence[str] = ()
    id: str = ""
    at: int = 0  # the timestamp of the signature, in ms
    forms: redaction.Forms | None = None  # in which a secret may come back; None: there is no secret

    def bare(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The payload without the names of secrets: the caller of the URL needs headers, not names."""
        return {name: value for name, value in payload.items() if name not in FIELDS}

    def headers(self, body: bytes | None) -> dict[str, str]:
        """The headers that are added to the request. Raises nothing: `read` has checked the signing keys."""
        signed = webhooks.headers(self.id, self.at, body or b"", self.signing) if self.signing else {}
        return {**self.added, **signed}

    def redacted(self, result: Result) -> Result:
        """The result without secrets, as it may be stored and shown."""
        if self.forms is None:
            return result
        failure, response = result.failure, result.response
        return replace(
            result,
            output=None if result.output is None else self._hide(result.output),
            log=None if result.log is None else self._hide(result.log),
            failure=failure and replace(failure, message=self._hide(failure.message)),
            response=None if response is None else self._hidden(response),
        )

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Remove secrets from the text of an exception raised within: it would be logged."""
        try:
            yield
        except Exception as error:
            if self.forms is None:
                raise
            raise RuntimeError(f"{type(error).__name__}: {self._hide(str(error))}") from None

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._hide(value)
        if isinstance(value, Mapping):
            return {self._hide(name): self._hidden(each) for name, each in value.items()}
        return value

    def _hide(self, text: str) -> str:
        return text if self.forms is None else redaction.hidden(text, self.forms)


def read(payload: Mapping[str, Any], context: Context) -> Secrets:
    """Read the secrets that a payload names. Raises Unusable."""
    if not any(payload.get(name) for name in FIELDS):
        return Secrets()
    added: dict[str, str] = {}
    hidden: list[str] = []

    def values(name: str) -> Sequence[str]:
        found = _values(name, context)
        hidden.extend(found)
        return found

    def header(name: str) -> str:
        value = values(name)[0]
        if not re.fullmatch(r"[\t\x20-\x7e]*", value):
            raise _unusable(f"the secret {name!r} cannot be sent as a header: it is not printable ASCII on one line")
        return value

    if (name := payload.get("bearer_secret")) is not None:
        added["Authorization"] = f"Bearer {header(name)}"
    if (name := payload.get("basic_secret")) is not None:
        pair = base64.b64encode(f"{payload['basic_user']}:{values(name)[0]}".encode()).decode()
        hidden.append(pair)
        added["Authorization"] = f"Basic {pair}"
    for each, name in (payload.get("header_secrets") or {}).items():
        added[each] = header(name)
    signing: Sequence[str] = ()
    if (name := payload.get("signing_secret")) is not None:
        signing = values(name)
        try:
            for each in signing:
                webhooks.key(each)
        except ValueError as error:
            raise _unusable(f"the secret {name!r} cannot sign: {error}") from None
        hidden.extend(each.removeprefix(webhooks.PREFIX) for each in signing)
    at = max(context.not_before, time.time_ns() // 1_000_000)
    return Secrets(added, signing, context.idempotency_key, at, redaction.forms(hidden))


def _values(name: str, context: Context) -> Sequence[str]:
    secret, _, part = name.partition("#")
    try:
        found = context.secrets(secret)
    except Unavailable:
        raise Unusable(Failure(FailureKind.RETRYABLE, f"the secret {secret!r} cannot be read for now")) from None
    except SchedulerError as error:
        raise _unusable(f"the secret {secret!r} cannot be read: {error}") from None
    values = [value for text in found if (value := _part(text, part)) is not None]
    if not values:
        raise _unusable(f"the secret {secret!r} has no field {part!r}")
    if any(len(value) < redaction.SHORTEST for value in values):
        raise _unusable(f"the secret {name!r} is shorter than {redaction.SHORTEST} characters: it could not be hidden reliably")
    return values


def _part(text: str, part: str) -> str | None:
    """The text itself, or a field of it as a JSON object; None if it has no such field."""
    if not part:
        return text.strip()
    try:
        found = json.loads(text)[part]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _unusable(message: str) -> Unusable:
    return Unusable(Failure(FailureKind.PERMANENT, message))
