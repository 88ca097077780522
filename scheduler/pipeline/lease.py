"""The lease of a batch: the visibility of its messages, set before the claim and renewed while work goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.model.errors import Unavailable
from scheduler.model.job import Delivery, JobKey, Lane
from scheduler.pipeline import delivery
from scheduler.storage.ports import Clock, Ports


class Moment(NamedTuple):
    """An instant by both clocks of a machine."""

    monotonic: int
    wall: int

    @classmethod
    def now(cls, clock: Clock) -> "Moment":
        return cls(clock.monotonic(), clock.now())

    def since(self, before: "Moment") -> int:
        """The milliseconds from an earlier moment to this one, by the clock that has counted more.

        While a machine is frozen, its monotonic clock may stand still; the other clock may be set back at any time.
        """
        monotonic, wall = self.monotonic - before.monotonic, self.wall - before.wall
        return monotonic if monotonic > wall else wall


NEVER = Moment(0, 0)  # a lease of that time is lost


@dataclass(slots=True)
class Lease:
    """The lease, counted from just before the call that set it: it never outlasts the queue's own count.

    A clock that jumps ahead ends it early.

    `left_ms`: the time after which the executor stops all work, as the invocation ends. `in_hand`: the jobs whose messages are leased; the
    executor adds and removes them.
    """

    lane: Lane
    ports: Ports
    left_ms: int
    in_hand: dict[JobKey, Delivery] = field(default_factory=dict)
    was_refused: bool = False  # the last renewal failed: if the lease gets lost, neither the executor nor its jobs are the cause
    _begun: Moment = field(init=False)
    _renewed: Moment = NEVER
    _renew_ms: int = 0  # the age at which the lease is to be renewed

    def __post_init__(self) -> None:
        self._begun = Moment.now(self.ports.clock)

    def take(self, receipts: Sequence[str]) -> set[str]:
        """Set the lease of each message; return the receipts for which this worked. The jobs of the others must not be claimed."""
        self._renewed, self._renew_ms = Moment.now(self.ports.clock), delivery.RENEW_MS
        return self._extend(receipts)

    def renew_if_due(self) -> bool:
        """Renew the lease of the messages in hand, when it is time. False once it is lost, or the time of the invocation is over.

        Called before each call to a table, which takes as long as the client tries it.
        """
        now = Moment.now(self.ports.clock)
        if now.since(self._begun) >= self.left_ms:
            return False
        age = now.since(self._renewed)
        return self.renew() if age >= self._renew_ms else age < delivery.LOST_MS

    def renew(self) -> bool:
        """Renew the lease of the messages in hand now. False once it is lost: it could not be renewed for `LOST_MS`.

        A lost lease is never renewed, since other executors may have the messages by then. A queue may accept a renewal by an old
        receipt, so an answer after the loss is ignored too.
        """
        if self.is_lost():
            return False
        now, receipts = Moment.now(self.ports.clock), sorted({item.receipt for item in self.in_hand.values()})
        self._renew_ms = now.since(self._renewed) + delivery.RENEW_AGAIN_MS
        self.was_refused = not self._extend(receipts) >= set(receipts)
        if not self.was_refused and not self.is_lost():
            self._renewed, self._renew_ms = now, delivery.RENEW_MS
        return not self.is_lost()

    def is_lost(self) -> bool:
        return self._age() >= delivery.LOST_MS

    def has_jumped(self) -> bool:
        """Whether the wall clock alone says that the lease is lost: the machine was frozen, or its clock was set. No job causes that."""
        return self.is_lost() and self.ports.clock.monotonic() - self._renewed.monotonic < delivery.LOST_MS

    def next_renewal(self) -> int:
        """Milliseconds until the next renewal is due."""
        return max(0, self._renew_ms - self._age())

    def _age(self) -> int:
        return Moment.now(self.ports.clock).since(self._renewed)

    def _extend(self, receipts: Sequence[str]) -> set[str]:
        try:
            return self.ports.lanes.extend(self.lane, receipts, delivery.LEASE_MS // 1000)
        except Unavailable:
            return set()
