"""Many jobs in one request: each item is read on its own, and each gets its own result."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from lambdas import _body, _envelope
from lambdas._models import JobRequest
from scheduler import render
from scheduler.errors import Invalid, TooLarge, Unavailable
from scheduler.model import Job
from scheduler.services.submit import NewJob

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def read(items: Sequence[Any], owner: str, now: int) -> list[NewJob | Invalid]:
    """The job that each item asks for, or what is wrong with it."""
    return [_read(item, _path(index), owner, now) for index, item in enumerate(items)]


def results(asked: Sequence[NewJob | Invalid], submitted: Sequence[Job | None], now: int) -> dict[str, Any]:
    """The answer: a result per item in its order. `submitted` are those that were well asked, None where the table refused."""
    jobs = iter(submitted)
    listed = [
        {"index": index} | (_refused(each) if isinstance(each, Invalid) else _submitted(next(jobs), index, now))
        for index, each in enumerate(asked)
    ]
    accepted = sum("job" in result for result in listed)
    return {"accepted": accepted, "refused": len(listed) - accepted, "results": listed}


def _read(item: Any, path: str, owner: str, now: int) -> NewJob | Invalid:
    size = len(_json(item).encode())
    if size > _body.LIMIT:
        rule = f"has {size:,} bytes; a job has at most {_body.LIMIT:,} (256 KB)"
        return TooLarge(f"{path}: {rule}", details=[{"field": path, "rule": rule}])
    try:
        return JobRequest.model_validate(item).asked(owner, now, within=f"{path}.")
    except ValidationError as error:
        return _envelope.item_violations(error.errors(include_url=False, include_input=False), path)
    except Invalid as error:
        return error


def _submitted(job: Job | None, index: int, now: int) -> dict[str, Any]:
    if job is not None:
        return {"job": render.accepted(job, now)}
    return _refused(Unavailable(details=[{"field": _path(index), "rule": "was not accepted; try it again"}]))


def _refused(error: Invalid | Unavailable) -> dict[str, Any]:
    return {"error": _envelope.described(error)}


def _path(index: int) -> str:
    return f"jobs[{index}]"
