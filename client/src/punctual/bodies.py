"""The bodies and queries of requests, from the arguments of the methods. Pure; the API checks the rules."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from punctual import instants
from punctual.errors import InvalidArgument
from punctual.fields import Delay, HttpRequest, OnConflict, OneTimeOptions
from punctual.texts import HALF, KEY_SECRET

if TYPE_CHECKING:
    from typing_extensions import Unpack

Json = dict[str, Any]
DATES = ("exclude", "only")
OF_SCHEDULE = ("jitter_seconds", "start", "end", "max_runs", "dst_gap", "dst_overlap", *DATES, "on_excluded", "working_days")
SCHEDULE = ("cron", "every", "times", "weekdays", "rate", "at", "time_zone", *OF_SCHEDULE)


class JobRequest:
    """A job to create; `client.jobs.create_many` takes a list of them. The arguments are those of `client.jobs.create`."""

    def __init__(
        self,
        type: str | None = None,
        payload: Mapping[str, Any] | None = None,
        *,
        http: str | HttpRequest | None = None,
        message: str | None = None,
        target: str | None = None,
        key: str | None = None,
        on_conflict: OnConflict | None = None,
        delay: Delay | None = None,
        execute_at: datetime | str | None = None,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        **options: Unpack[OneTimeOptions],
    ) -> None:
        self.key = key
        self.idempotency_key = idempotency_key
        self.traceparent = traceparent
        self.body: Json = {
            **content(type, payload, http, message, target),
            **when(delay, execute_at),
            **present(on_conflict=on_conflict),
            **options,
            **{name: _duration(options[name]) for name in ("debounce", "max_wait", "throttle") if options.get(name) is not None},
        }

    def item(self) -> Json:
        """Return the job as an item of a batch. Without an idempotency key of its own it gets a new one."""
        return {**self.member(), "idempotency_key": self.idempotency_key or new_key()}

    def member(self) -> Json:
        """Return the job as part of a new group: the request has one idempotency key for all its jobs."""
        return {**self.body, **present(key=self.key, idempotency_key=self.idempotency_key, traceparent=self.traceparent)}


def member(job: JobRequest | Mapping[str, Any]) -> Json:
    """Return a job, or a call-back, as part of a new group. A mapping has the arguments of `JobRequest`."""
    return (job if isinstance(job, JobRequest) else JobRequest(**job)).member()


def _duration(value: Delay) -> str:
    return value if isinstance(value, str) else instants.duration(value)


def content(
    type: str | None,
    payload: Mapping[str, Any] | None,
    http: str | HttpRequest | None,
    message: str | None,
    target: str | None,
) -> Json:
    """Return the fields that say what to run. `http` is a URL, which is called with POST, or the payload of an `http` job."""
    if http is None:
        return present(type=type, payload=payload, message=message, target=target)
    if payload is not None or message is not None or type not in (None, "http"):
        raise InvalidArgument('http stands alone, without type, payload and message. With a body: http={"url": "https://…", "body": {…}}')
    called = {"method": "POST", "url": http} if isinstance(http, str) else dict(http)
    return {**({"type": "http"} if target is None else {"target": target}), "payload": called}


def when(delay: Delay | None, execute_at: datetime | str | None) -> Json:
    """Return the fields that say when a job is due."""
    if isinstance(delay, str):
        return {"delay": delay, **present(execute_at=execute_at)}
    return present(delay_seconds=None if delay is None else instants.seconds(delay), execute_at=execute_at)


def job_change(delay: Delay | None, http: str | HttpRequest | None, changes: Mapping[str, Any]) -> Json:
    """Return the body of a change of a job. The API takes a `delay` as a text here."""
    body = {**changes, **({} if http is None else {"payload": content(None, None, http, None, None)["payload"]})}
    return {**body, **present(delay=duration(delay))}


def duration(length: Delay | None) -> str | None:
    """Return a duration as the text that the API takes."""
    return length if length is None or isinstance(length, str) else instants.duration(length)


def task(fields: Mapping[str, Any]) -> Json:
    """Return the body of a task. The parts of its schedule may be in `schedule` or beside it, and `http` stands for type and payload."""
    body = {name: value for name, value in fields.items() if name not in SCHEDULE and name != "http"}
    if fields.get("http") is not None:
        body |= content(fields.get("type"), fields.get("payload"), fields["http"], fields.get("message"), fields.get("target"))
    parts = schedule(fields)
    return body | ({"schedule": {**(body.get("schedule") or {}), **parts}} if parts else {})


def schedule(fields: Mapping[str, Any]) -> Json:
    """Return the parts of a schedule among the fields. A rate may be a timedelta."""
    parts = {name: fields[name] for name in SCHEDULE if name in fields}
    if isinstance(parts.get("rate"), timedelta):
        parts["rate"] = f"{instants.seconds(parts['rate'])} seconds"
    for name in DATES:
        if parts.get(name) is not None:
            parts[name] = [str(each) for each in parts[name]]  # a date is its ISO text
    return parts


def present(**fields: Any) -> Json:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def filters(fields: Mapping[str, Any]) -> Json:
    """Return a filter of a body: without None, `from_` as `from`, a single tag or status as a list."""
    found = {name.rstrip("_"): value for name, value in fields.items() if value is not None}
    return {name: [value] if name in ("tag", "status") and isinstance(value, str) else value for name, value in found.items()}


def query(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a query: without None, lists with commas, instants as RFC 3339, `from_` as `from`.

    Raises InvalidArgument for an API key.
    """
    return {name.rstrip("_"): _public(_word(value)) for name, value in fields.items() if value is not None}


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return instants.text(value)
    return ",".join(map(str, value)) if isinstance(value, list | tuple | set | frozenset) else str(value)


def segment(name: str) -> str:
    """Return an id, a key or a name as one segment of a path. Raises InvalidArgument."""
    if name in ("", ".", "..") or HALF.search(name):
        raise InvalidArgument(f"{ascii(name) if HALF.search(name) else repr(name)} is no id, key or name")
    return quote(_public(name), safe="")


def _public(text: str) -> str:
    """Return a part of an address. Raises InvalidArgument if it has an API key, since addresses are logged."""
    if KEY_SECRET.search(text):
        raise InvalidArgument("an API key is no id, key or name, and no address may contain one")
    return text


def new_key() -> str:
    """Return a new idempotency key."""
    return str(uuid.uuid4())
