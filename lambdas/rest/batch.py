"""Many jobs in one request: each item is read on its own, and each gets its own result."""

import json
import secrets
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from lambdas.rest import envelope, idempotency, request_body
from lambdas.rest.models import BatchItem, BatchShape, ResultShape
from lambdas.rest.resolution import Stage
from lambdas.rest.shapes import Json
from scheduler.model import ids
from scheduler.model.errors import Conflict, Invalid, SchedulerError, TooLarge, Unavailable
from scheduler.pipeline.submit import Accepted, Asked
from scheduler.storage.ports import Receipts

SINGLE = "/api/v1/me/jobs"  # what is asked of an item is what is asked there: a key used here and there is one key

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def read(items: Sequence[Any], owner: str, now: int, key: str | None, receipts: Receipts, stage: Stage) -> list[Asked | Invalid]:
    """The job that each item asks for, or what is wrong with it. `key`: that of the whole call, which gives each item one of its own.

    The ids of those that are asked for the same instant sort in the order of the call, which is what an ordering key goes by.
    """
    randoms = sorted(secrets.randbits(ids.RANDOM_BITS) for _ in items)
    return [_read(item, index, owner, now, key, receipts, randoms[index], stage) for index, item in enumerate(items)]


def results(asked: Sequence[Asked | Invalid], submitted: Sequence[Accepted | Conflict | None]) -> Json:
    """The answer: a result per item in its order. `submitted` are those that were well asked, None where the table refused."""
    done = iter(submitted)
    ended = [each if isinstance(each, Invalid) else _ended(next(done), index) for index, each in enumerate(asked)]
    return BatchShape.of([ResultShape.of(index, each) for index, each in enumerate(ended)])


def _read(item: Any, index: int, owner: str, now: int, key: str | None, receipts: Receipts, random: int, stage: Stage) -> Asked | Invalid:
    path, size = _path(index), len(_json(item).encode())
    if size > request_body.LIMIT:
        rule = f"has {size:,} bytes; a job has at most {request_body.LIMIT:,} (256 KB)"
        return TooLarge(f"{path}: {rule}", details=[{"field": path, "rule": rule}])
    try:
        read = BatchItem.model_validate(item)
        read.resolve(stage)
        own = read.idempotency_key or (None if key is None else f"{key}#{index}")
        content = {name: value for name, value in item.items() if name != "idempotency_key"}
        receipt = None if own is None else idempotency.make(owner, own, now, "POST", SINGLE, content, random)
        request = idempotency.judged(lambda at: read.asked(owner, at, within=f"{path}."), receipt, now, receipts)
    except ValidationError as error:
        return envelope.item_violations(error.errors(include_url=False, include_input=False), path)
    except Invalid as error:
        return error
    return Asked(request, random, receipt)


def _ended(done: Accepted | Conflict | None, index: int) -> Accepted | SchedulerError:
    if isinstance(done, Accepted):
        return done
    if done is None:
        return Unavailable(details=[{"field": _path(index), "rule": "was not accepted; try it again"}])
    return Conflict(done.message, details=[{"field": f"{_path(index)}.idempotency_key", "rule": "was used for another request"}])


def _path(index: int) -> str:
    return f"jobs[{index}]"
