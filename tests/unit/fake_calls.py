"""The port `Calls` as a fake: it records the requests, and a test sets the answers."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from scheduler.targets.base import Context, Reach
from scheduler.targets.calls import Calls, Left, Request
from scheduler.targets.job_context import JobContext

REGION = "eu-west-1:123456789012"
FUNCTION = f"arn:aws:lambda:{REGION}:function:orders"
QUEUE = f"arn:aws:sqs:{REGION}:orders"
TOPIC = f"arn:aws:sns:{REGION}:orders"
BUS = f"arn:aws:events:{REGION}:event-bus/orders"
MACHINE = f"arn:aws:states:{REGION}:stateMachine:orders"
EXECUTION = f"arn:aws:states:{REGION}:execution:orders:01JOB"
REACH = Reach((FUNCTION, f"{FUNCTION}:*", f"{QUEUE}*", f"{TOPIC}*", BUS, MACHINE), "punctual@example.com")


ANSWERS: dict[str, Any] = {
    "invoke": {"Payload": b'{"done": 1}'},
    "send_message": {"MessageId": "m1"},
    "publish": {"MessageId": "m2"},
    "put_events": {"Entries": [{"EventId": "e1"}]},
    "start_execution": {"executionArn": EXECUTION},
    "describe_execution": {"status": "SUCCEEDED", "input": "{}", "output": '{"paid": true}'},
    "send_email": {"MessageId": "s1"},
}


class FakeCalls:
    """Answers each request with what `answers` holds under its operation, a function of no arguments; else as AWS would."""

    def __init__(self, **answers: Callable[[], Any]) -> None:
        self.answers = answers
        self.asked: list[Request] = []
        self.left: list[float] = []

    def send(self, request: Request, *, left: Left) -> Mapping[str, Any]:
        self.asked.append(request)
        self.left.append(left())
        answer: Mapping[str, Any] = self.answers.get(request.operation, lambda: ANSWERS[request.operation])()
        return answer


def context(
    calls: Calls | None = None, *, seconds: float = 60.0, stop: threading.Event | None = None, attempt: int = 1, reach: Reach = REACH
) -> Context:
    chosen = calls or FakeCalls()
    return Context(JobContext("01JOB", attempt), time.monotonic() + seconds, stop or threading.Event(), reach=reach, calls=lambda: chosen)


def attributes(**given: str) -> dict[str, Any]:
    """Message attributes as queues and topics take them."""
    return {name: {"DataType": "String", "StringValue": value} for name, value in given.items()}


def raising(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer
