"""Many jobs in one request: each item is validated on its own and gets its own result."""

import json
import secrets
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from lambdas._logger import logger
from lambdas.rest import envelope, idempotency, request_body
from lambdas.rest.models import BatchItem, BatchShape, ResultShape
from lambdas.rest.resolution import Stage
from lambdas.rest.shapes import Json
from scheduler.model import ids
from scheduler.model.errors import Invalid, SchedulerError, TooLarge, Unavailable
from scheduler.pipeline import predecessors
from scheduler.pipeline.submit import Accepted, Refusal, Submission
from scheduler.storage.ports import Receipts

BESIDE = ("idempotency_key", "traceparent", "tracestate")  # fields of an item that are no part of the job
SINGLE = "/api/v1/jobs"  # an item is the same request as one to this path: a key used for both is one key
ERRORS_BYTES = 500_000  # of all errors in an answer; the others have no details
UNLISTED = "The answer has no room for the details of this error: send this item again with fewer others."

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def read(
    items: Sequence[Any], owner: str, now: int, key: str | None, receipts: Receipts, stage: Stage, trace: str | None = None
) -> list[Submission | SchedulerError]:
    """The job that each item requests, or its error. `key` is that of the whole call; each item without a key gets one derived from it.

    `trace`: the trace context of the call, for items without one.

    Ids of jobs for the same instant sort in the order of the call: the order in which an ordering key runs them.
    """
    randoms = sorted(secrets.randbits(ids.RANDOM_BITS) for _ in items)
    made = [
        read_item(item, path_of(index), owner, now, None if key is None else f"{key}#{index}", receipts, randoms[index], stage, trace)
        for index, item in enumerate(items)
    ]
    return without_orphans(items, made)


def without_orphans(items: Sequence[Any], read: Sequence[Submission | SchedulerError]) -> list[Submission | SchedulerError]:
    """The jobs or errors of a call, after the refusal of those jobs that wait for a refused job of the call, which they name by its key."""
    left = list(read)
    while refused := _keys_of_refused(items, left):
        orphans = {place: f"{path_of(place)}.{field}" for place, each in enumerate(left) if (field := _naming(each, refused)) is not None}
        if not orphans:
            break
        left = [predecessors.unstored(orphans[place]) if place in orphans else each for place, each in enumerate(left)]
    return left


def _keys_of_refused(items: Sequence[Any], read: Sequence[Submission | SchedulerError]) -> set[str]:
    if all(isinstance(each, Submission) for each in read):
        return set()
    pairs = [(item.get("key"), isinstance(each, Submission)) for item, each in zip(items, read, strict=True) if isinstance(item, Mapping)]
    return {key for key, is_good in pairs if not is_good and isinstance(key, str)} - {key for key, is_good in pairs if is_good}


def _naming(each: Submission | SchedulerError, refused: Set[str]) -> str | None:
    """The field of a job that names one of these keys; None: none does."""
    named = each.request.after if isinstance(each, Submission) else ()
    return next((f"after.{place}.key" for place, one in enumerate(named) if one.key in refused), None)


def results(submissions: Sequence[Submission | SchedulerError], submitted: Sequence[Accepted | Refusal | None]) -> Json:
    """The answer: one result per item, in order. `submitted`: the results of the valid items, None where the table refused."""
    done = iter(submitted)
    ended = [item if isinstance(item, SchedulerError) else _ended(next(done), index) for index, item in enumerate(submissions)]
    shown, room = [], ERRORS_BYTES
    for index, result in enumerate(ended):
        made = ResultShape.of(index, result)
        if "error" in made and (room := room - len(_json(made).encode())) < 0:
            made["error"] |= {"message": UNLISTED, "details": []}
        shown.append(made)
    return BatchShape.of(shown)


def read_item(
    item: Any,
    path: str,
    owner: str,
    now: int,
    key: str | None,
    receipts: Receipts,
    random: int,
    stage: Stage,
    trace: str | None = None,
    *,
    delivery: int = 0,
) -> Submission | SchedulerError:
    """The job that an item requests, or its error, which names the item by its path (empty: it is the whole body).

    `key`, `trace`: of an item without its own. `delivery`: see `Submission`; `now` is then the instant at which the message was sent.
    """
    size = len(_json(item).encode())
    if size > request_body.LIMIT:
        return _too_large(path, f"has {size:,} bytes; a job has at most {request_body.LIMIT:,} (256 KB)")
    try:
        read = BatchItem.model_validate(item)
        read.resolve(stage)
        own = read.idempotency_key or key
        content = {name: value for name, value in item.items() if name not in BESIDE}
        receipt = None if own is None else idempotency.make(owner, own, now, "POST", SINGLE, content, random)
        within = f"{path}." if path else ""
        request = idempotency.judged(lambda at: read.new_job(owner, at, within), receipt, now, receipts)
        if (context := read.trace or trace) is not None:
            request = replace(request, trace=context)
    except Unavailable:
        raise
    except ValidationError as error:
        return envelope.item_violations(error.errors(include_url=False, include_input=False), path, BatchItem)
    except Invalid as error:
        return error
    except Exception:  # an error of ours with one item must not refuse the others
        logger.exception("unexpected error in an item of a batch")
        return SchedulerError(envelope.FAILED)
    return Submission(request, random, receipt, delivery)


def _ended(done: Accepted | Refusal | None, index: int) -> Accepted | SchedulerError:
    if isinstance(done, Accepted):
        return done
    if done is None:
        return Unavailable(details=[{"field": path_of(index), "rule": "was not accepted; try it again"}])
    if isinstance(done, TooLarge):
        return _too_large(path_of(index), done.message)
    broken = done.details or [{"field": "idempotency_key", "rule": "was used for another request"}]
    return type(done)(done.message, details=[each | {"field": f"{path_of(index)}.{each['field']}"} for each in broken])


def _too_large(path: str, rule: str) -> TooLarge:
    field = path or "body"
    return TooLarge(f"{field}: {rule}", details=[{"field": field, "rule": rule}])


def path_of(index: int) -> str:
    return f"jobs[{index}]"
