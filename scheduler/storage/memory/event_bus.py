"""The event bus in memory."""

from collections.abc import Collection, Sequence

from scheduler.model.event import Event


class MemoryEvents:
    """The port `EventBus`. An event whose id is in `refuses` is refused."""

    def __init__(self) -> None:
        self.sent: list[Event] = []
        self.refuses: Collection[str] = ()

    def put(self, events: Sequence[Event]) -> list[bool]:
        accepted = [event.detail["id"] not in self.refuses for event in events]
        self.sent += [event for event, ok in zip(events, accepted, strict=True) if ok]
        return accepted
