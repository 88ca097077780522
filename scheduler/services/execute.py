"""Run a batch of deliveries: lease, claim, hold each to its instant, start, settle, hand back.

The messages' visibility is the lease: set before the claim, renewed while work goes on, and when it cannot be renewed
nothing more is started. What is reported back stays in its queue; everything else is deleted with the batch.
"""

import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler import delivery as rule
from scheduler import settlement, slots
from scheduler.errors import Unavailable
from scheduler.lifecycle import Event, apply, is_open
from scheduler.model import Delivery, Job, JobKey, Lane
from scheduler.ports import Change, ClaimRequest, Clock, Finished, Jobs, Lanes, Ledger, Pool
from scheduler.rules import Rules
from scheduler.services.handover import hand_over
from scheduler.services.latency import LatencyMeter
from scheduler.services.lease import Lease

READ_AHEAD_MS = 120  # the last read of held jobs starts this long before their instant, and up to as much again ...
READ_SPREAD_MS = 280  # ... earlier: a hundred executors holding for one instant do not read at once
FRESH_CLAIM_MS = 250  # a job claimed this shortly before its instant is not read again
CROWD = 3  # so many held jobs started at once say that other executors start theirs at this instant too ...
LINGER_MS = (40, 200)  # ... and that settling had better wait: it would take the processor from those that still start
SETTLE_TRIES = 5
SETTLE_PAUSE_MS = 500

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Held:
    job: Job
    read_at: int | None  # when to look at it once more; None: no need
    waited: bool  # it came well before its instant


@dataclass(slots=True)
class Execution:
    """One batch at work. `run` is its only entry."""

    lane: Lane
    deliveries: Sequence[Delivery]
    request_id: str
    jobs: Jobs
    lanes: Lanes
    pool: Pool
    clock: Clock
    rules: Rules
    meter: LatencyMeter
    lease: Lease
    returned: set[str] = field(default_factory=set)  # message ids that stay in the queue
    _in_hand: dict[JobKey, Delivery] = field(default_factory=dict)
    _held: list[_Held] = field(default_factory=list)
    _running: int = 0
    _done: list[Finished] = field(default_factory=list)  # came back, not settled yet
    _settle_at: int = 0

    def run(self) -> list[str]:
        """Work until nothing is left in hand. Returns the ids of the messages to leave in the queue."""
        leased = self.lease.take([item.receipt for item in self.deliveries])
        self.returned |= {item.message_id for item in self.deliveries if item.receipt not in leased}
        self._claim([item for item in self.deliveries if item.receipt in leased])
        while self._held or self._running or self._done:
            if not self._beat():
                self._stop()
                break
            self._read_again()
            if self.lease.is_lost():
                continue  # reading took so long that nothing may start before a renewal holds
            self._start_due()
            self._take_results(self.pool.wait(self._wake()))
            self._settle()
        return sorted(self.returned)

    def _stop(self) -> None:
        """The lease is lost: others may have our jobs already. Start nothing, settle nothing, delete nothing."""
        log.warning("lease lost", extra={"jobs": len(self._in_hand)})
        self.pool.stop()
        self.returned |= {item.message_id for item in self._in_hand.values()}
        self._held.clear()

    def _beat(self) -> bool:
        """Renew the lease of what is in hand, when it is time. False once it is lost."""
        return self.lease.beat(item.receipt for item in self._in_hand.values())

    # claim

    def _claim(self, deliveries: Sequence[Delivery]) -> None:
        now, alone = self.clock.now(), len(self.deliveries) == 1
        requests = [
            ClaimRequest(
                item.message.key, item.message.fence, item.message_id, self._nonce(item), now, alone, due_by=now + self.rules.hold_ms
            )
            for item in deliveries
        ]
        try:
            answers = self.jobs.claim(requests)
        except Unavailable:
            answers = [None] * len(requests)
        now = self.clock.now()
        lost: list[Job] = []
        for item, answer in zip(deliveries, answers, strict=True):
            decision = rule.decide(item, answer, self._nonce(item), now, hold_ms=self.rules.hold_ms)
            if isinstance(decision, rule.Run):
                self._take(item, decision.job, now)
            elif isinstance(decision, rule.PutBack):
                self._put_back(item, decision.seconds)
            elif isinstance(decision, rule.TakeBack):
                self._in_hand[item.message.key] = item
                lost.append(decision.job)
        self._take_back(lost, now)

    def _nonce(self, item: Delivery) -> str:
        return f"{item.message_id}/{self.request_id}/{item.receive_count}"

    def _take(self, item: Delivery, job: Job, now: int) -> None:
        self._in_hand[job.key] = item
        if item.message.sent_at and not item.message.not_before and item.receive_count == 1:
            self.meter.add(now - item.message.sent_at)
        wait = job.due_at - now
        read_at = job.due_at - READ_AHEAD_MS - self._spread() if wait > FRESH_CLAIM_MS else None
        self._held.append(_Held(job, read_at if job.cancel_requested_at is None else now, waited=wait > FRESH_CLAIM_MS))

    def _spread(self) -> int:
        return zlib.crc32(self.request_id.encode()) % READ_SPREAD_MS

    def _put_back(self, item: Delivery, seconds: int) -> None:
        self.returned.add(item.message_id)
        try:
            self.lanes.extend(self.lane, [item.receipt], seconds)
        except Unavailable:
            log.info("not put back sooner; its lease will end", extra={"message_id": item.message_id})

    def _take_back(self, lost: Sequence[Job], now: int) -> None:
        for job in lost:
            log.warning("executor died", extra=job.log_context())
        changes = [Change(job, settlement.take_back(job, now, shards=self.rules.shards, retention=self.rules.retention)) for job in lost]
        self._write(changes)

    # hold and start

    def _read_again(self) -> None:
        """Look once more at held jobs just before their instant; drop those that are not ours to start any more."""
        now = self.clock.now()
        if not any(held.read_at is not None and held.read_at <= now for held in self._held):
            return
        near = [held for held in self._held if held.read_at is not None and held.read_at <= now + READ_SPREAD_MS]
        try:
            stored = self.jobs.get_many([held.job.key for held in near])
        except Unavailable:
            stored = {held.job.key: held.job for held in near}  # start them: a cancel not seen is a cancel too late
        for held in near:
            held.read_at = None
            if not self._still_ours(held.job, stored.get(held.job.key)):
                self._held.remove(held)
        self._cancel([job for held in near if (job := stored.get(held.job.key)) and job.cancel_requested_at and held in self._held])

    def _still_ours(self, ours: Job, stored: Job | None) -> bool:
        if stored is not None and is_open(stored) and stored.fence == ours.fence and stored.claim == ours.claim:
            return True
        self._in_hand.pop(ours.key, None)
        return False

    def _cancel(self, flagged: Sequence[Job]) -> None:
        keys = {job.key for job in flagged}
        self._held = [held for held in self._held if held.job.key not in keys]
        now = self.clock.now()
        self._write(
            [Change(job, apply(job, Event.CANCEL, now, reason="cancelled by request", retention=self.rules.retention)) for job in flagged]
        )

    def _start_due(self) -> None:
        now = self.clock.now()
        due = [held for held in self._held if held.job.due_at <= now]
        for held in due:
            self._held.remove(held)
            self._running += 1
            self.pool.start(held.job)
        if sum(1 for held in due if held.waited) >= CROWD:
            least, most = LINGER_MS
            self._settle_at = now + least + self._spread() * (most - least) // READ_SPREAD_MS

    def _wake(self) -> int:
        """When there is something to do next, unless work comes back before."""
        beat = self.clock.now() + self.lease.next_beat()
        moments = [held.job.due_at if held.read_at is None else min(held.read_at, held.job.due_at) for held in self._held]
        return min([beat, *moments, *([self._settle_at] if self._done else [])])

    # settle

    def _take_results(self, finished: Sequence[Finished]) -> None:
        self._running -= len(finished)
        self._done += finished

    def _settle(self) -> None:
        """Settle what came back, in one write, once its instant's crowd has started."""
        now = self.clock.now()
        if not self._done or now < self._settle_at:
            return
        done, self._done = self._done, []
        rules = self.rules
        self._write([Change(each.job, settlement.settle(each, now, shards=rules.shards, retention=rules.retention)) for each in done])

    def _write(self, changes: Sequence[Change]) -> None:
        """Apply changes under their fences, again while the table refuses; then hand over what goes to a lane at once."""
        pending = list(changes)
        for number in range(SETTLE_TRIES):
            if not pending:
                return
            if number:
                self.clock.sleep_until(self.clock.now() + SETTLE_PAUSE_MS * number)
            if not self._beat():
                break
            pending = self._try(pending)
        self.returned |= {self._in_hand[change.before.key].message_id for change in pending if change.before.key in self._in_hand}
        for change in pending:
            self._in_hand.pop(change.before.key, None)
            log.error("not settled: the table refuses; it will be taken back", extra=change.before.log_context())

    def _try(self, changes: Sequence[Change]) -> list[Change]:
        """One try; what was refused for now comes back."""
        try:
            held = self.jobs.change(changes)
        except Unavailable:
            return list(changes)
        applied = [change for change, ok in zip(changes, held, strict=True) if ok]
        for change, ok in zip(changes, held, strict=True):
            if ok is not None:
                self._in_hand.pop(change.before.key, None)
            if ok is False:
                log.warning("lost its fence before it settled", extra=change.before.log_context())
        self._hand_over([change.after for change in applied if is_open(change.after)])
        return [change for change, ok in zip(changes, held, strict=True) if ok is None]

    def _hand_over(self, again: Sequence[Job]) -> None:
        """Retries due before any safe minute go to their lane at once; the others wait in their slot."""
        now = self.clock.now()
        soon = [job for job in again if slots.place(job.due_at, now, job.id, self.rules.shards).direct]
        try:
            refused = hand_over(soon, lanes=self.lanes, now=now)
        except Unavailable:
            refused = len(soon)
        if refused:
            log.warning("hand-over refused; the slots are the net", extra={"jobs": refused})


def execute(
    lane: Lane,
    deliveries: Sequence[Delivery],
    *,
    jobs: Jobs,
    lanes: Lanes,
    ledger: Ledger,
    pool: Pool,
    clock: Clock,
    rules: Rules,
    meter: LatencyMeter,
    request_id: str,
) -> list[str]:
    """Run one batch. Returns the ids of the messages to leave in the queue; the others may be deleted."""
    lease = Lease(lane, lanes, clock)
    left = Execution(lane, deliveries, request_id, jobs, lanes, pool, clock, rules, meter, lease).run()
    meter.report(ledger, clock.now())
    return left
