"""Notifications of runs, events for other systems, and spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from scheduler.model.job import TaskKey

if TYPE_CHECKING:  # hot functions do not load these records
    from scheduler.model.event import Event
    from scheduler.model.notice import DeliveryRecord, NoticeMessage, NotificationState, Outbox, ReceivedNotice


class Notices(Protocol):
    """Notifications: the notification state of each task, the decision for each news, the progress of each sending, and the queue.

    All expire.
    """

    def read(self, task: TaskKey, id: str) -> tuple[NotificationState | None, Outbox | None]:
        """Return the notification state of a task, and the decision for the news (or the end of a window) of that id (strongly consistent).

        None in place of each that is not stored.
        """

    def decide(self, before: NotificationState | None, after: NotificationState, id: str, outbox: Outbox | None, now: int) -> bool:
        """Replace the state and insert the outbox of `id`, both or neither; without an outbox replace the state only.

        False if the stored state has another version than `before` (None: no state is stored), or if an outbox of `id` exists. The version
        stored is one more than that of `before`; that of `after` is ignored.
        """

    def delivery(self, task: TaskKey, id: str) -> DeliveryRecord | None:
        """Return the progress of a sending, None if nothing is stored (strongly consistent)."""

    def set_delivery(self, before: DeliveryRecord | None, after: DeliveryRecord, now: int) -> bool:
        """Replace the record if the stored one has the version of `before` (None: no record is stored); the version stored is one more.

        False if it has another version.
        """

    def send(self, messages: Sequence[NoticeMessage], now: int) -> None:
        """Enqueue all messages; the end of a window is delayed to its instant (at most 900 s).

        Raises Unavailable if any was refused: the caller repeats all of them.
        """


class NoticeQueue(Protocol):
    """The queue of notices as notify uses it while it waits for receivers. A temporary refusal raises nothing."""

    def receive(self, wait_s: int) -> list[ReceivedNotice]:
        """Return up to ten messages; wait for one for at most `wait_s` seconds. Unreadable messages are left to the dead-letter queue."""

    def put_back(self, delays: Mapping[str, int]) -> None:
        """Make received messages visible again, each receipt after its delay (s); after a refusal, when their visibility time-out ends."""

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete received messages. One that could not be deleted is delivered again."""


class EventBus(Protocol):
    """The event bus of the stage, which other systems read."""

    def put(self, events: Sequence[Event]) -> list[bool]:
        """Put each event on the bus. Return for each whether it is there; a refused event may be there nevertheless."""


class Traces(Protocol):
    """The collector of spans."""

    def export(self, spans: Sequence[Mapping[str, Any]], now: int) -> int:
        """Send spans (`scheduler.notify.spans`), within three seconds. Return how many the collector took. Never raises.

        After a failure it sends nothing for half a minute: a collector that is away delays no caller again and again.
        """
