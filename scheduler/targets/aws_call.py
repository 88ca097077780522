"""Shared parts of the AWS targets: a call in a separate thread, which a deadline or a stop can abandon, and the ids that receivers get.

Depending on the type of the target, ids and context are in the field `punctual` of a JSON object, or they are attributes or headers.
"""

import base64
import json
import logging
import queue
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.model import callback_lease
from scheduler.model.job import Failure, FailureKind, Job, Result
from scheduler.targets import arns, awaited_ends
from scheduler.targets.base import Context, NotAllowed
from scheduler.targets.calls import Calls, Left, Refused, Request, Role
from scheduler.targets.registry import check_reach, load

POLL = 0.2  # a set `stop` is noticed within this many seconds
FIELD = "punctual"
IDS = ("Idempotency-Key", "Punctual-Job-Id")  # as on `http`'s requests
CONTEXT = "Punctual-Context"  # the attribute with the JSON of `FIELD`
CALL_BACK = ("Punctual-Callback-Url", "Punctual-Callback-Token")
MOST_ATTRIBUTES = 10  # that a message may have
log = logging.getLogger(__name__)
LARGE = 255_000  # bytes: a larger text is sent without the context, which might not fit beside it (AWS's lowest limit is 256 KB)


def attempt(name: str, payload: Mapping[str, Any], context: Context, call: Callable[[Calls], Result]) -> Result:
    """Check the reach of the stage again, then call in a separate thread; wait for its end, the deadline or `stop`.

    An abandoned call ends by its own time-outs; its effect may have happened.
    """
    try:
        check_reach(name, payload, context.reach)
        role = load(name).role_of(payload, context.reach)
    except NotAllowed as error:
        return Result(failure=Failure(FailureKind.PERMANENT, f"{error.field or name} {error}"[:500]))
    answer = _in_thread(name, context, role, call)
    return Result(failure=Failure(FailureKind.TIMEOUT, context.cut())) if answer is None else answer


def started(name: str, payload: Mapping[str, Any], context: Context, call: Callable[[Calls], Result]) -> Result:
    """Start work in AWS whose end is awaited, as `attempt` calls.

    If no answer came, the next attempt repeats the same request. That uses up no attempt: else the last one could leave work behind.
    """

    def refusable(calls: Calls) -> Result:
        try:
            return call(calls)
        except Refused as refused:
            return _unanswered(str(refused)) if refused.unclear else Result(failure=failure_of(refused))

    result = attempt(name, payload, context, refusable)
    timed_out = result.failure is not None and result.failure.kind is FailureKind.TIMEOUT
    return _unanswered("no answer came in time") if timed_out else result


def _unanswered(why: str) -> Result:
    return Result(failure=Failure(FailureKind.THROTTLED, f"{why}; the same request is repeated"[:500]), unclear=True)


def checked(job: Job, context: Context, now: int, call: Callable[[Calls], Result]) -> Result:
    """Check the work in AWS of a job, as `attempt` calls. While AWS refuses or does not answer, the work goes on: it is checked again.

    That ends an hour after the job's time-out: then the attempt has crashed.
    """
    awaited = job.awaited
    assert awaited is not None and awaited.id is not None
    try:
        role = context.reach.role_in(arns.account(awaited.id), "")
    except NotAllowed:  # its owner may no longer use the account: the executor's own role is refused there
        role = None
    refusals: list[str] = []

    def refusable(calls: Calls) -> Result:
        try:
            return call(calls)
        except Refused as refused:
            refusals.append(str(refused))
            return awaited_ends.goes_on(awaited)

    found = _in_thread(job.spec.type, context, role, refusable)
    if found is not None and not refusals:
        return found
    why = refusals[0] if refusals else "no answer came in time"
    if now < callback_lease.must_end_at(job) + awaited_ends.GIVE_UP_MS:
        log.warning("work in AWS could not be checked", extra=job.log_context() | {"work": awaited.id, "error": why})
        return awaited_ends.goes_on(awaited)
    return Result(failure=Failure(FailureKind.CRASHED, f"its work in AWS can no longer be checked: {why}"))


def _in_thread(name: str, context: Context, role: Role | None, call: Callable[[Calls], Result]) -> Result | None:
    """The answer of a call in a separate thread; None: there is none by the deadline, or before `stop` is set."""
    answers: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
    threading.Thread(target=_call_in_thread, args=(call, context, role, answers), name=f"job-{name}", daemon=True).start()
    while left := context.left():
        try:
            answer = answers.get(timeout=min(POLL, left))
        except queue.Empty:
            continue
        if isinstance(answer, BaseException):
            raise answer
        return answer
    return None


@dataclass(frozen=True, slots=True)
class _WithRole:
    """The port `Calls`, whose requests are all sent with a role."""

    calls: Calls
    role: Role

    def send(self, request: Request, *, left: Left) -> Mapping[str, Any]:
        return self.calls.send(replace(request, role=self.role), left=left)


def _call_in_thread(
    call: Callable[[Calls], Result], context: Context, role: Role | None, answers: "queue.SimpleQueue[Result | BaseException]"
) -> None:
    try:
        calls = context.calls()
        answers.put(call(calls if role is None else _WithRole(calls, role)))
    except Refused as refused:
        answers.put(Result(failure=failure_of(refused)))
    except BaseException as error:  # a bug: `attempt` raises it again in its own thread
        answers.put(error)


def ids(context: Context) -> dict[str, str]:
    """The ids as attributes of a message or headers of an e-mail."""
    ours = {IDS[0]: context.idempotency_key, context.id_name: context.job_id}
    return ours if context.callback is None else ours | dict(zip(CALL_BACK, (context.callback.url, context.callback.token), strict=True))


def with_ids(payload: Mapping[str, Any], context: Context, *, equal_attempts: bool = False) -> str:
    """A JSON object as text, with the ids and the context in its field `punctual`.

    `equal_attempts`: the text has no number of the attempt.
    """
    ours: dict[str, Any] = {"job_id": context.job_id, "idempotency_key": context.idempotency_key}
    if context.callback is not None:
        ours["callback"] = {"url": context.callback.url, "token": context.callback.token}
    facts = context.job.facts() | context.job.trace(is_steady=equal_attempts)
    if equal_attempts:
        facts.pop("attempt", None)
    text = _json({**payload, FIELD: ours | facts})
    return _json({**payload, FIELD: ours}) if _is_large(text) else text


def envelope(text: str, attributes: Mapping[str, str], group: str | None, context: Context, *, is_fifo: bool) -> dict[str, Any]:
    """The parameters of the message `text` that have the same names for queues and topics; the attributes include the ids.

    The context is one attribute, if there is room for one more; so are `traceparent` and `tracestate`, unless the payload has its own.
    """
    carried = {**attributes, **ids(context)}
    facts, trace = context.job.facts(), context.job.trace()
    if facts and len(carried) < MOST_ATTRIBUTES and not _is_large(text):
        carried.setdefault(CONTEXT, json.dumps({"job_id": context.job_id, "idempotency_key": context.idempotency_key} | facts | trace))
    if not trace.keys() & carried.keys() and not _is_large(text):
        carried |= dict([*trace.items()][: MOST_ATTRIBUTES - len(carried)])
    found: dict[str, Any] = {"MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in carried.items()}}
    if group is not None:
        found["MessageGroupId"] = group
    if is_fifo:
        found["MessageDeduplicationId"] = context.unique  # AWS drops a second message with the same id within five minutes
    return found


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _is_large(text: str) -> bool:
    return len(text) * 4 > LARGE and len(text.encode("utf-8", "surrogatepass")) > LARGE


@dataclass(frozen=True, slots=True)
class Invoked:
    """The answer of a function. `error`: the function failed, and the payload describes the error."""

    payload: str
    error: bool = False
    log: str | None = None  # the end of its log, as far as Lambda returns it


def invoke(calls: Calls, function: str, event: str, *, wait: bool, left: Left) -> Invoked:
    """Call a function with a JSON text. Without `wait` Lambda only queues the event, and the answer is empty. Raises Refused."""
    how = {"InvocationType": "RequestResponse", "LogType": "Tail"} if wait else {"InvocationType": "Event"}
    parameters = {"FunctionName": function, "Payload": event.encode(), **how}
    # No second try: if the first connection was cut, the function may be running.
    answer = calls.send(Request("lambda", "invoke", parameters, arns.region(function), waits=wait, again=False), left=left)
    log = base64.b64decode(answer.get("LogResult", "")).decode(errors="replace").rstrip()
    return Invoked(answer["Payload"].decode(errors="replace"), error="FunctionError" in answer, log=log or None)


def failure_of(refused: Refused) -> Failure:
    """The failure of an attempt whose call was refused."""
    if refused.throttled:
        return Failure(FailureKind.THROTTLED, str(refused))
    return Failure(FailureKind.RETRYABLE if refused.retryable else FailureKind.PERMANENT, str(refused))


# Predicates of payloads; the text of a raised error is the API's error message.


def is_open(payload: Mapping[str, Any]) -> bool:
    """Whether the scheduler's own field is free."""
    if FIELD in payload:
        raise ValueError(f"its field {FIELD} is set by the scheduler and cannot be given")
    return True


def is_attribute(name: str) -> bool:
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) or name.lower().startswith(("aws.", "amazon.")):
        raise ValueError("must be letters, digits, - and _, with single dots between them, and not begin with AWS. or Amazon.")
    if name.lower() in {each.lower() for each in (*IDS, CONTEXT, *CALL_BACK)}:
        raise ValueError("is set by the scheduler and cannot be given")
    return True
