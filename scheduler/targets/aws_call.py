"""What the targets on AWS share: the call aside, so that a deadline or a stop need not wait for it, and where the ids go.

The ids stand at one place per kind of target: the field `punctual` of a JSON object, or `IDS` as attributes or headers.
"""

import json
import queue
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import arns
from scheduler.targets.base import Context, NotAllowed
from scheduler.targets.calls import Calls, Refused
from scheduler.targets.registry import check_reach

POLL = 0.2  # seconds until a set `stop` is noticed
FIELD = "punctual"
IDS = ("Idempotency-Key", "Punctual-Job-Id")  # as on `http`'s requests
CALL_BACK = ("Punctual-Callback-Url", "Punctual-Callback-Token")
STOPPED = "stopped before the answer came"

_PLACE = r"arn:aws[a-z-]*:{}:[a-z0-9-]+:\d{{12}}:{}"


def attempt(name: str, payload: Mapping[str, Any], context: Context, call: Callable[[Calls], Result]) -> Result:
    """Check once more what may be reached, then call aside: until it is done, the deadline has passed or `stop` is set.

    A call that is left alone ends by its own time-outs; what it did may have happened.
    """
    try:
        check_reach(name, payload, context.reach)
    except NotAllowed as error:
        return Result(failure=Failure(FailureKind.PERMANENT, f"{error.field or name} {error}"[:500]))
    answers: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
    threading.Thread(target=_aside, args=(call, context, answers), name=f"job-{name}", daemon=True).start()
    while left := context.left():
        try:
            answer = answers.get(timeout=min(POLL, left))
        except queue.Empty:
            continue
        if isinstance(answer, BaseException):
            raise answer
        return answer
    return Result(failure=Failure(FailureKind.TIMEOUT, STOPPED))


def _aside(call: Callable[[Calls], Result], context: Context, answers: "queue.SimpleQueue[Result | BaseException]") -> None:
    try:
        answers.put(call(context.calls()))
    except Refused as refused:
        answers.put(Result(failure=Failure(FailureKind.RETRYABLE if refused.retryable else FailureKind.PERMANENT, str(refused))))
    except BaseException as error:  # raised again by who waits: a bug is told of there
        answers.put(error)


def ids(context: Context) -> dict[str, str]:
    """As attributes of a message or headers of an e-mail."""
    ours = {IDS[0]: context.idempotency_key, context.id_name: context.job_id}
    return ours if context.callback is None else ours | dict(zip(CALL_BACK, (context.callback.url, context.callback.token), strict=True))


def with_ids(given: Mapping[str, Any], context: Context) -> str:
    """A JSON object as text, with the ids in its field `punctual`. The same for every attempt, but for where to report to."""
    ours: dict[str, Any] = {"job_id": context.job_id, "idempotency_key": context.idempotency_key}
    if context.callback is not None:
        ours["callback"] = {"url": context.callback.url, "token": context.callback.token}
    return json.dumps({**given, FIELD: ours}, ensure_ascii=False, separators=(",", ":"))


# Predicates of payloads; one that raises gives its own words to the caller.


def is_arn(service: str, resource: str, what: str) -> Callable[[str], bool]:
    """Whether a text is the ARN of such a resource, `resource` as regular expression."""
    form = re.compile(_PLACE.format(service, resource))

    def check(text: str) -> bool:
        if form.fullmatch(arns.queue(text)) is None:
            raise ValueError(f"must be {what}")
        return True

    return check


def is_open(given: Mapping[str, Any]) -> bool:
    """Whether the field that is ours is free."""
    if FIELD in given:
        raise ValueError(f"its field {FIELD} is set by the scheduler and cannot be given")
    return True


def is_attribute(name: str) -> bool:
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) or name.lower().startswith(("aws.", "amazon.")):
        raise ValueError("must be letters, digits, - and _, with single dots between them, and not begin with AWS. or Amazon.")
    if name.lower() in {each.lower() for each in (*IDS, *CALL_BACK)}:
        raise ValueError("is set by the scheduler and cannot be given")
    return True
