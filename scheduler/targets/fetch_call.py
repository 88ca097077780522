"""A call by the function that does nothing else: what it is asked, what it answers, and how an executor waits for that.

Only what the call needs goes over: neither ARNs nor the job's owner. It may go ahead of its instant (`Context.not_before`); the function
holds it until then.
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
from scheduler.targets.calls import Calls, Refused

AHEAD_MS = 40  # how long before its instant a call is sent over: what a warm function takes to be reached
BUSY = ("TooManyRequestsException", "429")  # all its instances are at work: nothing was called
BUSY_S = 3.0  # how long to ask again for one, before the job waits instead
AGAIN_S = 0.05
WAIT_MS = 1_000  # ... so long


def ask(payload: Mapping[str, Any], secret: Mapping[str, str], context: Context) -> Result:
    """The call, by the function. At the deadline or a stop it is left alone; it ends by itself at the deadline."""
    return aws_call.attempt("http", payload, context, lambda calls: _asked(calls, asking(payload, secret, context), context))


def asking(payload: Mapping[str, Any], secret: Mapping[str, str], context: Context) -> str:
    """The event of the function."""
    address = context.callback
    return json.dumps(
        {
            "payload": payload,
            "secret": secret,
            "job_id": context.job_id,
            "attempt": context.attempt,
            "callback": None if address is None else [address.url, address.token, address.fence],
            "not_before": context.not_before,
            "until": _now() + round(context.left() * 1000),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def read(asked: Mapping[str, Any], reach: Reach, *, allow_private: bool) -> tuple[Mapping[str, Any], Mapping[str, str], Context]:
    """What the function was asked, in the function."""
    context = Context(
        job_id=asked["job_id"],
        attempt=asked["attempt"],
        deadline=time.monotonic() + (asked["until"] - _now()) / 1000,
        stop=threading.Event(),
        allow_private=allow_private,
        reach=reach,
        not_before=asked["not_before"],
        callback=None if asked["callback"] is None else CallBackAddress(*asked["callback"]),
    )
    return asked["payload"], asked["secret"], context


def answering(result: Result, began_at: int) -> dict[str, Any]:
    """The function's answer. Base64, as JSON may take six bytes for one, and an answer has six megabytes."""
    failure, response = result.failure, result.response
    body = None if response is None else base64.b64encode(response["body"].encode("utf-8", "surrogatepass")).decode()
    return {
        "began_at": began_at,
        "failure": failure and [failure.kind.value, failure.message, failure.retry_after_ms],
        "response": None if response is None else {**response, "body": body},
        "log": result.log,
    }


def answered(answer: Mapping[str, Any]) -> Result:
    """What the function answered."""
    failure, response = answer["failure"], answer["response"]
    body = "" if response is None else base64.b64decode(response["body"]).decode("utf-8", "surrogatepass")
    return Result(
        response=None if response is None else {**response, "body": body},
        failure=None if failure is None else Failure.read(*failure),
        log=answer["log"],
        began_at=answer["began_at"],
    )


def _asked(calls: Calls, event: str, context: Context) -> Result:
    give_up = time.monotonic() + BUSY_S
    while True:
        try:
            invoked = aws_call.invoke(calls, context.fetcher, event, wait=True, left=context.left)
        except Refused as refused:
            if refused.code not in BUSY:
                raise
            if time.monotonic() < give_up and context.left() > AGAIN_S and not context.stop.wait(AGAIN_S):
                continue
            return Result(failure=Failure(FailureKind.THROTTLED, "all functions that call URLs are at work", WAIT_MS))
        if invoked.error:  # it died or ran out of memory; what it says could hold what it was asked
            return Result(failure=Failure(FailureKind.RETRYABLE, "the function that calls URLs ended before it had an answer"))
        return answered(json.loads(invoked.payload))


def _now() -> int:
    return time.time_ns() // 1_000_000
