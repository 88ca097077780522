"""The attributes of a `JobSpec`, the same in a job's item and in a task's: see `items`.

A number, a flag and a text are stored under the name of their field. The other fields are written by hand, which takes less time.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from scheduler.model.spec import DEFAULT_RETRIES, REQUESTED_RETRIES, CallBack, Jitter, JobSpec, Limit, OnFailure, Ordering, RetryPolicy

ON_TIMEOUT = "ot"  # it stands for REQUESTED_RETRIES. Most items have it, so its name is short
SMALL = (*(field.name for field in fields(JobSpec) if field.name != "payload"), ON_TIMEOUT)  # all attributes but the large one
_BY_HAND = ("type", "payload", "tags", "retry", "callback", "ordering", "limit", "events")
_FORMS: Mapping[Any, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {  # the kind of the attribute, its content, and back
    int: ("N", str, int),
    bool: ("BOOL", bool, bool),
    str | None: ("S", str, str),
}
_PLAIN = [(field.name, field.default, *_FORMS[field.type]) for field in fields(JobSpec) if field.name not in _BY_HAND]
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode(spec: JobSpec) -> dict[str, Any]:
    item: dict[str, Any] = {"type": {"S": spec.type}, "payload": {"S": _json(spec.payload)}}
    for name, default, kind, write, _ in _PLAIN:
        value = getattr(spec, name)
        if value != default:
            item[name] = {kind: write(value)}
    if spec.tags:
        item["tags"] = {"S": _json(spec.tags)}
    if spec.retry is REQUESTED_RETRIES or spec.retry == REQUESTED_RETRIES:  # nearly all are this very record
        item[ON_TIMEOUT] = {"BOOL": True}
    elif spec.retry != DEFAULT_RETRIES:
        item["retry"] = {"S": _json(_retry(spec.retry))}
    if spec.callback is not None:
        item["callback"] = {"S": _json([spec.callback.lease_ms, spec.callback.max_ms])}
    if spec.ordering is not None:
        item["ordering"] = {"S": _json(_ordering(spec.ordering))}
    if spec.limit is not None:
        item["limit"] = {"S": _json(limit(spec.limit))}
    if spec.events:
        item["events"] = {"N": "1"}  # a filter of the stream reads it
    return item


def decode(item: Mapping[str, Any]) -> JobSpec:
    found: dict[str, Any] = {name: read(item[name][kind]) for name, _, kind, _, read in _PLAIN if name in item}
    if "tags" in item:
        found["tags"] = tuple(json.loads(item["tags"]["S"]))
    if ON_TIMEOUT in item:
        found["retry"] = REQUESTED_RETRIES
    if "retry" in item:
        found["retry"] = _read_retry(*json.loads(item["retry"]["S"]))
    if "callback" in item:
        found["callback"] = CallBack(*json.loads(item["callback"]["S"]))
    if "ordering" in item:
        found["ordering"] = _read_ordering(*json.loads(item["ordering"]["S"]))
    if "limit" in item:
        found["limit"] = Limit(*json.loads(item["limit"]["S"]))
    if "events" in item:
        found["events"] = True
    return JobSpec(item["type"]["S"], json.loads(item["payload"]["S"]), **found)


def _retry(policy: RetryPolicy) -> list[Any]:
    return [policy.base_ms, policy.cap_ms, policy.jitter.value, policy.max_elapsed_ms, policy.on_timeout]


def _read_retry(base_ms: int, cap_ms: int, jitter: str, max_elapsed_ms: int | None, on_timeout: bool) -> RetryPolicy:
    return RetryPolicy(base_ms, cap_ms, Jitter(jitter), max_elapsed_ms, on_timeout)


def limit(limit: Limit) -> list[Any]:
    return [limit.key, limit.concurrency, limit.rate, limit.period_ms]


def _ordering(rule: Ordering) -> list[str]:
    return [rule.key] if rule.on_failure is OnFailure.CONTINUE else [rule.key, rule.on_failure.value]


def _read_ordering(key: str, *on_failure: str) -> Ordering:
    return Ordering(key, *map(OnFailure, on_failure))
