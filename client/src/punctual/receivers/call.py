"""A call of a job, as its receiver sees it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from punctual.errors import InvalidArgument
from punctual.receivers.answers import Permanent
from punctual.worker import Worker

if TYPE_CHECKING:
    from typing_extensions import Self

log = logging.getLogger("punctual.receivers")


@dataclass(frozen=True)
class Call:
    """A call of a job, with a valid signature. A name of the context that the job does not have is None.

    `idempotency_key` is the same in every attempt: the job's id. `attempt` counts from 1. `sent_at` is the signed time. `headers` have
    names in lower case; `body` is the body as it arrived. `event` is the event of a Lambda function that a job of type `lambda` called.

    The signature covers the key, the time and the body. It does not cover the path, the query and the other headers.
    """

    idempotency_key: str
    attempt: int = 1
    scheduled_at: datetime | None = None
    nominal_at: datetime | None = None
    sent_at: datetime | None = None
    job_key: str | None = None
    group_id: str | None = None
    task_id: str | None = None
    task_name: str | None = None
    task_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    event: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return self.idempotency_key

    def json(self) -> Any:
        """Return the body, read as JSON. Raises Permanent if it is none."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Permanent(f"the body is no JSON: {error}", status=400) from error

    def worker(self, **options: Any) -> Worker:
        """Return the worker of a job with a call-back. Raises UnexpectedAnswer if it has none."""
        return Worker.from_headers(self.headers, **options) if self.event is None else Worker.from_event(self.event, **options)

    @classmethod
    def from_request(cls, headers: Mapping[str, str], body: bytes) -> Self:
        """Return the call of a request whose signature is valid."""
        found = {name.lower(): value for name, value in headers.items()}
        facts = {name: unquote(value) for name in _FACTS if (value := found.get(f"punctual-{name.replace('_', '-')}")) is not None}
        sent_at = datetime.fromtimestamp(int(found["webhook-timestamp"]), timezone.utc)
        return cls(found["webhook-id"], sent_at=sent_at, headers=found, body=body, **_typed(facts))

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """Return the call of a Lambda function by a job of type `lambda`. Its body is the event as JSON, without the field `punctual`.

        Raises InvalidArgument for another event.
        """
        ours = event.get("punctual") if isinstance(event, Mapping) else None
        key = ours.get("idempotency_key") if isinstance(ours, Mapping) else None
        if not (isinstance(ours, Mapping) and isinstance(key, str) and key):
            raise InvalidArgument("the event has no punctual.idempotency_key: a job of type lambda did not send it")
        facts = {name: ours[name] for name in _FACTS if ours.get(name) is not None}
        body = json.dumps({name: value for name, value in event.items() if name != "punctual"}, ensure_ascii=False).encode()
        return cls(key, body=body, event=event, **_typed(facts))


_FACTS = ("attempt", "scheduled_at", "nominal_at", "job_key", "group_id", "task_id", "task_name", "task_key")


def _typed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts with their types. One that is no number or instant is left out: the signature does not cover it."""
    read: dict[str, Callable[[str], Any]] = {"attempt": int, "scheduled_at": _instant, "nominal_at": _instant}
    found = {name: _read(name, value, read.get(name, str)) for name, value in facts.items()}
    return {name: value for name, value in found.items() if value is not None}


def _read(name: str, value: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(value)
    except (ValueError, OverflowError):
        log.warning("the %s of a call is not valid: %.100r", name, value)
        return None


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(str(text).replace("Z", "+00:00")).astimezone(timezone.utc)
