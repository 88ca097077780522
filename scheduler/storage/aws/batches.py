"""Messages in batches of ten, on parallel connections."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, TypeVar

from scheduler.model.job import Message

TEN = 10  # entries of one batch of SQS or SNS
T = TypeVar("T")


def chunks(values: Sequence[T], size: int) -> list[list[T]]:
    return [list(values[start : start + size]) for start in range(0, len(values), size)]


def refused(messages: Sequence[T], answer: Any) -> list[T]:
    """The messages that a batch's answer lists as failed. The id of an entry is its position in the batch."""
    return [messages[int(entry["Id"])] for entry in answer.get("Failed", ())]


def at_once(pool: ThreadPoolExecutor, send: Callable[[Any], list[Message]], batches: Sequence[Any]) -> list[Message]:
    """Send all batches, in parallel if there are several. Returns the refused messages, in order."""
    if len(batches) == 1:
        return send(batches[0])
    return list(chain.from_iterable(pool.map(send, batches)))
