"""The lanes, the queue of the engine's own work, and the pollers of the executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from scheduler.model.job import Lane, Message
from scheduler.model.work import WorkItem


class Lanes(Protocol):
    """The queues of the lanes, addressed directly or through the topic in front of them. A message may be delivered more than once."""

    def send(self, messages: Sequence[Message], now: int) -> list[Message]:
        """Send each message, alone or a pack, to the queue of its lane, delayed to its `not_before` (in whole seconds, at most 900).

        `sent_at` becomes `now` if it is not set. Return the refused messages: each may or may not have been sent.
        """

    def extend(self, lane: Lane, receipts: Sequence[str], seconds: int) -> set[str]:
        """Set the visibility of received messages to end in `seconds` from now. Return the receipts of those for which it was set.

        A refusal does not raise: its receipts are not returned.
        """

    def backlog(self, lane: Lane) -> int:
        """Return about how many messages wait in the lane, without those in flight or delayed."""

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        """Publish all messages to the topic, which routes each to the queue of its lane, on parallel connections.

        Return the refused messages: each may or may not have been published.
        """


class WorkQueue(Protocol):
    """The queue of the engine's own work. The visibility of a message is the lease of its step."""

    def send(self, items: Sequence[WorkItem], *, delay_ms: int = 0) -> list[WorkItem]:
        """Send a message for each item, delayed by `delay_ms` (rounded down to whole seconds, at most 900 s).

        Return the items of the refused messages: each may or may not have been sent.
        """

    def hide(self, receipt: str, seconds: int) -> bool:
        """Hide a received message until `seconds` from now, at most 42,000. False: refused, or the receipt is outdated."""


class Functions(Protocol):
    """The pollers that keep the executors' functions ready."""

    def pollers(self, lane: Lane) -> int:
        """Return the number of pollers that are kept ready for the lane; 0: AWS alone scales it. Raises Unavailable."""

    def keep_pollers(self, lane: Lane, count: int) -> None:
        """Keep `count` pollers of the lane ready from now on, or none. Raises Unavailable, also while an earlier change is in progress."""
