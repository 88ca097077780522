"""The port `Calls` as a fake: what was asked is kept, and a test says what is answered."""

import threading
import time
from collections.abc import Callable
from typing import Any

from scheduler.targets.base import Context, Reach
from scheduler.targets.calls import Calls, Execution, Invoked, Left, Mail, Message

REGION = "eu-west-1:123456789012"
FUNCTION = f"arn:aws:lambda:{REGION}:function:orders"
QUEUE = f"arn:aws:sqs:{REGION}:orders"
TOPIC = f"arn:aws:sns:{REGION}:orders"
BUS = f"arn:aws:events:{REGION}:event-bus/orders"
MACHINE = f"arn:aws:states:{REGION}:stateMachine:orders"
EXECUTION = f"arn:aws:states:{REGION}:execution:orders:01JOB"
REACH = Reach((FUNCTION, f"{FUNCTION}:*", f"{QUEUE}*", f"{TOPIC}*", BUS, MACHINE), "punctual@example.com")


class FakeCalls:
    """Answers each call with what `answers` holds under its name, a function of no arguments; else with its name."""

    def __init__(self, **answers: Callable[[], Any]) -> None:
        self.answers = answers
        self.asked: list[tuple[Any, ...]] = []
        self.left: list[float] = []

    def invoke(self, function_arn: str, event: str, *, wait: bool, left: Left) -> Invoked:
        return self._answer(left, Invoked('{"done": 1}'), "invoke", function_arn, event, wait)

    def send(self, queue_arn: str, message: Message, *, left: Left) -> str:
        return self._answer(left, "m1", "send", queue_arn, message)

    def publish(self, topic_arn: str, message: Message, *, left: Left) -> str:
        return self._answer(left, "m2", "publish", topic_arn, message)

    def put_event(self, bus_arn: str, source: str, detail_type: str, detail: str, *, left: Left) -> str:
        return self._answer(left, "e1", "put_event", bus_arn, source, detail_type, detail)

    def start(self, machine_arn: str, name: str, input: str, *, left: Left) -> str:
        return self._answer(left, EXECUTION, "start", machine_arn, name, input)

    def look(self, execution_arn: str, *, left: Left) -> Execution:
        return self._answer(left, Execution("SUCCEEDED", "{}", '{"paid": true}'), "look", execution_arn)

    def mail(self, mail: Mail, *, left: Left) -> str:
        return self._answer(left, "s1", "mail", mail)

    def _answer(self, left: Left, usual: Any, name: str, *asked: Any) -> Any:
        self.asked.append((name, *asked))
        self.left.append(left())
        return self.answers[name]() if name in self.answers else usual


def context(
    calls: Calls | None = None, *, seconds: float = 10.0, stop: threading.Event | None = None, attempt: int = 1, reach: Reach = REACH
) -> Context:
    chosen = calls or FakeCalls()
    return Context("01JOB", attempt, time.monotonic() + seconds, stop or threading.Event(), reach=reach, calls=lambda: chosen)


def raising(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer
