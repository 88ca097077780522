"""A call of a URL by the function that does nothing else: its event, its answer, and how an executor waits for the answer.

The event contains only what the call needs: neither ARNs nor the job's owner. The executor may send it ahead of the instant
(`Context.not_before`); the function then waits for it.
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

AHEAD_MS = 40  # how long before its instant a call is sent to the function: the time until a warm function starts
BUSY = ("TooManyRequestsException", "429")  # all instances of the function are busy: the URL was not called
BUSY_S = 3.0  # how long an executor retries to get an instance, before the attempt ends as throttled
AGAIN_S = 0.05  # the pause between these retries
WAIT_MS = 1_000  # the wait of a throttled job before its next attempt


def ask(payload: Mapping[str, Any], secret: Mapping[str, str], context: Context) -> Result:
    """Let the function call the URL, and return its result. A stop abandons the call; the function ends it at the deadline."""
    return aws_call.attempt("http", payload, context, lambda calls: _asked(calls, asking(payload, secret, context), context))


def asking(payload: Mapping[str, Any], secret: Mapping[str, str], context: Context) -> str:
    """The event of the function, as JSON."""
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
    """Read the event in the function: the payload, the headers with secrets, and the context of the call."""
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
    """The function's answer. The body is base64, since JSON may need six bytes for one, and an answer has six megabytes at most."""
    failure, response = result.failure, result.response
    body = None if response is None else base64.b64encode(response["body"].encode("utf-8", "surrogatepass")).decode()
    return {
        "began_at": began_at,
        "failure": failure and [failure.kind.value, failure.message, failure.retry_after_ms],
        "response": None if response is None else {**response, "body": body},
        "log": result.log,
    }


def answered(answer: Mapping[str, Any]) -> Result:
    """Read the function's answer in the executor."""
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
        if invoked.error:  # it died or ran out of memory; its message could contain the secrets of the event
            return Result(failure=Failure(FailureKind.RETRYABLE, "the function that calls URLs ended before it had an answer"))
        return answered(json.loads(invoked.payload))


def _now() -> int:
    return time.time_ns() // 1_000_000
