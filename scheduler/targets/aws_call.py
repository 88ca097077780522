"""The common parts of the targets on AWS: the call in a thread, so that a deadline or a stop need not wait for it, and the job's ids.

A target carries the ids in one place: in the field `punctual` of a JSON object, or as attributes or headers named `IDS`.
"""

import base64
import json
import queue
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import arns
from scheduler.targets.base import Context, NotAllowed
from scheduler.targets.calls import Calls, Left, Refused, Request
from scheduler.targets.registry import check_reach

POLL = 0.2  # seconds until a set `stop` is noticed
FIELD = "punctual"
IDS = ("Idempotency-Key", "Punctual-Job-Id")  # as on `http`'s requests
CALL_BACK = ("Punctual-Callback-Url", "Punctual-Callback-Token")
STOPPED = "stopped before the answer came"


def attempt(name: str, payload: Mapping[str, Any], context: Context, call: Callable[[Calls], Result]) -> Result:
    """Check again that the payload is allowed, then call in a thread, until it ends, the deadline has passed or `stop` is set.

    An abandoned call ends by its own time-outs; it may still have an effect. A bug in the call is raised here.
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
    except BaseException as error:  # `attempt` raises it again, so that the executor reports the bug
        answers.put(error)


def ids(context: Context) -> dict[str, str]:
    """The job's ids, and the call-back address if it has one, as attributes of a message or headers of an e-mail."""
    ours = {IDS[0]: context.idempotency_key, context.id_name: context.job_id}
    return ours if context.callback is None else ours | dict(zip(CALL_BACK, (context.callback.url, context.callback.token), strict=True))


def with_ids(given: Mapping[str, Any], context: Context) -> str:
    """A JSON object as text, with the ids in its field `punctual`. It is equal for all attempts, except for the call-back address."""
    ours: dict[str, Any] = {"job_id": context.job_id, "idempotency_key": context.idempotency_key}
    if context.callback is not None:
        ours["callback"] = {"url": context.callback.url, "token": context.callback.token}
    return json.dumps({**given, FIELD: ours}, ensure_ascii=False, separators=(",", ":"))


def envelope(attributes: Mapping[str, str], group: str | None, context: Context, *, is_fifo: bool) -> dict[str, Any]:
    """The parameters of a message that SQS and SNS have in common, with the ids among its attributes."""
    carried = {**attributes, **ids(context)}
    found: dict[str, Any] = {"MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in carried.items()}}
    if group is not None:
        found["MessageGroupId"] = group
    if is_fifo:
        found["MessageDeduplicationId"] = context.unique  # AWS drops another message with the same value within five minutes
    return found


@dataclass(frozen=True, slots=True)
class Invoked:
    """The answer of a Lambda function. `error`: the function failed, and the payload describes the error."""

    payload: str
    error: bool = False
    log: str | None = None  # the end of its log that Lambda returns


def invoke(calls: Calls, function: str, event: str, *, wait: bool, left: Left) -> Invoked:
    """Call a function with a JSON text. Without `wait`, Lambda only queues the event, and the answer is empty. Raises Refused."""
    how = {"InvocationType": "RequestResponse", "LogType": "Tail"} if wait else {"InvocationType": "Event"}
    asked = {"FunctionName": function, "Payload": event.encode(), **how}
    # Not sent a second time: if the first call was interrupted, the function may still be running.
    answer = calls.send(Request("lambda", "invoke", asked, arns.region(function), waits=wait, again=False), left=left)
    log = base64.b64decode(answer.get("LogResult", "")).decode(errors="replace").rstrip()
    return Invoked(answer["Payload"].decode(errors="replace"), error="FunctionError" in answer, log=log or None)


# Predicates of payloads. If one raises ValueError, the caller gets its message.


def is_open(given: Mapping[str, Any]) -> bool:
    """Whether the object leaves the scheduler's own field free. Raises ValueError if not."""
    if FIELD in given:
        raise ValueError(f"its field {FIELD} is set by the scheduler and cannot be given")
    return True


def is_attribute(name: str) -> bool:
    """Whether a message attribute may have this name. Raises ValueError if not."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) or name.lower().startswith(("aws.", "amazon.")):
        raise ValueError("must be letters, digits, - and _, with single dots between them, and not begin with AWS. or Amazon.")
    if name.lower() in {each.lower() for each in (*IDS, *CALL_BACK)}:
        raise ValueError("is set by the scheduler and cannot be given")
    return True
