"""The attributes of a `JobSpec`, the same in a job's item and in a task's: see `items`."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from scheduler.model.spec import DEFAULT_RETRIES, REQUESTED_RETRIES, CallBack, Jitter, JobSpec, OnFailure, Ordering, RetryPolicy

_NUMBERS = {"max_attempts": 3, "timeout_ms": 300_000}  # with the default that is not stored
ON_TIMEOUT = "ot"  # it stands for REQUESTED_RETRIES. Most items have it, so its name is short
SMALL = (*(field.name for field in fields(JobSpec) if field.name != "payload"), ON_TIMEOUT)  # all attributes but the large one
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode(spec: JobSpec) -> dict[str, Any]:
    item: dict[str, Any] = {"type": {"S": spec.type}, "payload": {"S": _json(spec.payload)}}
    for name, default in _NUMBERS.items():
        number = getattr(spec, name)
        if number != default:
            item[name] = {"N": str(number)}
    if spec.target is not None:
        item["target"] = {"S": spec.target}
    if spec.tags:
        item["tags"] = {"S": _json(spec.tags)}
    if spec.retry == REQUESTED_RETRIES:
        item[ON_TIMEOUT] = {"BOOL": True}
    elif spec.retry != DEFAULT_RETRIES:
        item["retry"] = {"S": _json(_retry(spec.retry))}
    if spec.callback is not None:
        item["callback"] = {"S": _json([spec.callback.lease_ms, spec.callback.max_ms])}
    if spec.ordering is not None:
        item["ordering"] = {"S": _json(_ordering(spec.ordering))}
    if spec.events:
        item["events"] = {"N": "1"}  # a filter of the stream reads it
    if spec.placeholders:
        item["placeholders"] = {"BOOL": True}
    if spec.key is not None:
        item["key"] = {"S": spec.key}
    return item


def decode(item: Mapping[str, Any]) -> JobSpec:
    found: dict[str, Any] = {name: int(item[name]["N"]) for name in _NUMBERS if name in item}
    if "target" in item:
        found["target"] = item["target"]["S"]
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
    if "events" in item:
        found["events"] = True
    if "placeholders" in item:
        found["placeholders"] = True
    if "key" in item:
        found["key"] = item["key"]["S"]
    return JobSpec(item["type"]["S"], json.loads(item["payload"]["S"]), **found)


def _retry(policy: RetryPolicy) -> list[Any]:
    return [policy.base_ms, policy.cap_ms, policy.jitter.value, policy.max_elapsed_ms, policy.on_timeout]


def _read_retry(base_ms: int, cap_ms: int, jitter: str, max_elapsed_ms: int | None, on_timeout: bool) -> RetryPolicy:
    return RetryPolicy(base_ms, cap_ms, Jitter(jitter), max_elapsed_ms, on_timeout)


def _ordering(rule: Ordering) -> list[str]:
    return [rule.key] if rule.on_failure is OnFailure.CONTINUE else [rule.key, rule.on_failure.value]


def _read_ordering(key: str, *on_failure: str) -> Ordering:
    return Ordering(key, *map(OnFailure, on_failure))
