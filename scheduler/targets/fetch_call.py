"""A call of a URL by the function `fetch`: the format of its event and its answer, and how an executor waits for the answer.

The event contains only what the call needs: neither ARNs nor the job's owner. An executor may send it ahead of the job's instant
(`Context.not_before`); the function waits until then.
"""

import base64
import json
import threading
import time
from collections.abc import Mapping
from typing import Any

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import aws_call
from scheduler.targets.base import CallBackAddress, Context, Reach
from scheduler.targets.call_limit import ALL_BUSY
from scheduler.targets.calls import Calls, Refused
from scheduler.targets.job_context import JobContext

AHEAD_MS = 40  # how long before its instant a call is sent: the time to reach a warm function
BUSY = ("TooManyRequestsException", "429")  # all instances of the function are busy: nothing was called
# Lambda disconnects a function in a VPC that was idle for weeks. The first call connects it again, which takes minutes, and none runs until
# then: https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
INACTIVE = "ResourceNotReadyException"
WAIT_MS = 1_000  # how long a notice is deferred; `settlement` defers a job
LATE_MS = 100  # a call may begin this long after its `not_after`, for two clocks and the network: as writers wait (`withdraw.STARTED_MS`)


def call(payload: Mapping[str, Any], secret: Mapping[str, str], context: Context) -> Result:
    """Call a URL through the function. At the deadline or a stop the call is abandoned; the function ends by itself at the deadline.

    `ALL_BUSY` is the reason of a result whose call Lambda refused: nothing was called.
    """
    return aws_call.attempt("http", payload, context, lambda calls: _invoke(calls, encode_event(payload, secret, context), context))


def encode_event(payload: Mapping[str, Any], secret: Mapping[str, str], context: Context) -> str:
    """Encode the event of the function."""
    address = context.callback
    return json.dumps(
        {
            "payload": payload,
            "secret": secret,
            **context.job.encoded(),
            "callback": None if address is None else [address.url, address.token, address.fence],
            "not_before": context.not_before,
            "not_after": context.not_after,
            "timeout_seconds": context.timeout_seconds,
            "until": _now() + round(context.left() * 1000),
            **({"allow": list(context.reach.allow)} if context.reach.allow else {}),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def decode_event(event: Mapping[str, Any], reach: Reach, *, allow_private: bool) -> tuple[Mapping[str, Any], Mapping[str, str], Context]:
    """Decode the event, in the function: payload, secret headers, context."""
    context = Context(
        JobContext.read(event),
        deadline=time.monotonic() + (event["until"] - _now()) / 1000,
        stop=threading.Event(),
        allow_private=allow_private,
        reach=reach.within(allow) if (allow := event.get("allow")) else reach,
        not_before=event["not_before"],
        not_after=event["not_after"],
        timeout_seconds=event.get("timeout_seconds"),  # the version before sends none
        callback=None if event["callback"] is None else CallBackAddress(*event["callback"]),
    )
    return event["payload"], event["secret"], context


def encode_answer(result: Result, began_at: int) -> dict[str, Any]:
    """Encode the function's answer. The body is Base64: JSON may need six bytes for one, and Lambda limits an answer to six megabytes."""
    failure, response = result.failure, result.response
    body = None if response is None else base64.b64encode(response["body"].encode("utf-8", "surrogatepass")).decode()
    return {
        "began_at": began_at,
        "failure": failure and [failure.kind.value, failure.message, failure.retry_after_ms],
        "response": None if response is None else {**response, "body": body},
        "log": result.log,
        "unstarted": result.unstarted,
    }


def decode_answer(answer: Any) -> Result:
    """Decode the function's answer. Raises ValueError if it is none: also a success without a whole 2xx response."""
    try:
        failure, response = answer["failure"], answer["response"]
        result = Result(
            response=None if response is None else _decode_response(response),
            failure=None if failure is None else Failure.read(*failure),
            log=answer["log"],
            began_at=int(answer["began_at"]),
            unstarted=answer.get("unstarted", False),
        )
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"no answer of a call: {type(error).__name__}") from None
    if result.failure is None and not (result.response and 200 <= result.response["status"] < 300):
        raise ValueError("a success without a response")
    return result


def _decode_response(response: Mapping[str, Any]) -> dict[str, Any]:
    body = base64.b64decode(response["body"], validate=True).decode("utf-8", "surrogatepass")
    return {"status": int(response["status"]), "headers": dict(response["headers"]), "body": body}


def unstarted(reason: str) -> Result:
    """The result of a call that was not made and will not be: its job is deferred, and nothing is charged."""
    return Result(failure=Failure(FailureKind.THROTTLED, reason, WAIT_MS), unstarted=True)


def _invoke(calls: Calls, event: str, context: Context) -> Result:
    try:
        invoked = aws_call.invoke(calls, context.fetcher, event, wait=True, left=context.left)
    except Refused as refused:
        if refused.code in BUSY:
            return unstarted(ALL_BUSY)
        if refused.code == INACTIVE:
            return unstarted("Lambda is connecting the function that calls private targets to its network again")
        raise
    if invoked.error:  # it died or ran out of memory; its message could contain parts of the event
        return Result(failure=Failure(FailureKind.RETRYABLE, "the function that calls URLs ended before it had an answer"))
    try:
        return decode_answer(json.loads(invoked.payload))
    except ValueError:  # it was cut; as above, its text is not shown
        return Result(failure=Failure(FailureKind.RETRYABLE, "the answer of the function that calls URLs is not whole"))


def _now() -> int:
    return time.time_ns() // 1_000_000
