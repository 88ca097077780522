"""The lease of a batch: the visibility of its messages, set before the claim and renewed while work goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.model.job import Delivery, JobKey, Lane
from scheduler.pipeline import delivery
from scheduler.storage.ports import Ports


@dataclass(slots=True)
class Lease:
    """The lease, counted by the monotonic clock from just before the call that set it: it never outlasts the queue's own count.

    `stop_at`: the end of the invocation's time, by the monotonic clock (ms). `in_hand`: the jobs whose messages are leased; the executor
    adds and removes them.
    """

    lane: Lane
    ports: Ports
    stop_at: int
    in_hand: dict[JobKey, Delivery] = field(default_factory=dict)
    was_refused: bool = False  # the last renewal failed: if the lease gets lost, neither the executor nor its jobs are the cause
    _held_at: int = 0
    _beat_at: int = 0

    def take(self, receipts: Sequence[str]) -> set[str]:
        """Set the lease of each message; return the receipts for which this worked. The jobs of the others must not be claimed."""
        self._held_at = self.ports.clock.monotonic()
        self._beat_at = self._held_at + delivery.BEAT_MS
        return self._extend(receipts)

    def beat(self) -> bool:
        """Renew the lease of the messages in hand, when it is time. False once it is lost, or the time of the invocation is over.

        Called before each call to a table, which takes as long as the client tries it.
        """
        now = self.ports.clock.monotonic()
        if now >= self.stop_at:
            return False
        return self.renew() if now >= self._beat_at else now - self._held_at < delivery.LOST_MS

    def renew(self) -> bool:
        """Renew the lease of the messages in hand now. False once it is lost: it could not be renewed for `LOST_MS`.

        A lost lease is never renewed, since other executors may have the messages by then. A queue may accept a renewal by an old
        receipt, so an answer after the loss is ignored too.
        """
        if self.is_lost():
            return False
        now, wanted = self.ports.clock.monotonic(), sorted({item.receipt for item in self.in_hand.values()})
        self._beat_at = now + delivery.BEAT_AGAIN_MS
        self.was_refused = not self._extend(wanted) >= set(wanted)
        if not self.was_refused and not self.is_lost():
            self._held_at, self._beat_at = now, now + delivery.BEAT_MS
        return not self.is_lost()

    def is_lost(self) -> bool:
        return self.ports.clock.monotonic() - self._held_at >= delivery.LOST_MS

    def next_beat(self) -> int:
        """Milliseconds until the next renewal is due."""
        return max(0, self._beat_at - self.ports.clock.monotonic())

    def _extend(self, receipts: Sequence[str]) -> set[str]:
        try:
            return self.ports.lanes.extend(self.lane, receipts, delivery.LEASE_MS // 1000)
        except Unavailable:
            return set()
