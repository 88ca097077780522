"""Run a batch of deliveries: lease, claim, hold each to its instant, start, settle, hand back.

The messages' visibility is the lease: set before the claim, renewed while work goes on, and when it cannot be renewed
nothing more is started. What is reported back stays in its queue; everything else is deleted with the batch.
Whether a job that is more than its own may start is `admission`'s business, who goes on when a run has ended is `wake`'s.
"""

import logging
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.admission import gate
from scheduler.admission.breaker_gate import BreakerGate, Circuits
from scheduler.admission.gate import (
    READ_AHEAD_MS,
    READ_SPREAD_MS,
    READ_WINDOW_MS,
    UNDECIDED,
    Admission,
    AskAgain,
    Cancel,
    Clear,
    Gate,
    Requeue,
    Undecided,
    Verdict,
)
from scheduler.admission.lane_state import SEEN_MS, TRUSTED_MS, Watch
from scheduler.admission.limit_gate import LimitGate
from scheduler.admission.ordering_gate import OrderGate
from scheduler.admission.overlap import Skip
from scheduler.admission.run_gate import RunGate
from scheduler.admission.target_cache import Known
from scheduler.model import lifecycle, misfire, settlement, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Delivery, Finished, Job, JobKey, Lane
from scheduler.model.lifecycle import is_open, waits
from scheduler.pipeline import delivery
from scheduler.pipeline.follow_up import Onward
from scheduler.pipeline.latency import LatencyMeter
from scheduler.pipeline.lease import Lease
from scheduler.pipeline.running_jobs import Work
from scheduler.storage.ports import Change, ClaimRequest, Guard, Pool, Ports, Written

FRESH_CLAIM_MS = 250  # a job claimed this shortly before its instant is not read again
CROWD = 3  # so many held jobs started at once say that other executors start theirs at this instant too ...
LINGER_MS = (40, 200)  # ... and that settling had better wait: it would take the processor from those that still start
SETTLE_TRIES = 5
SETTLE_PAUSE_MS = 500
ASK_PAUSE_MS = 200  # when to ask again for what lets a job start while its table refuses ...
ASK_LIMIT_MS = 2_000  # ... and for how long, before the job is given back
NO_REQUEUES: Mapping[JobKey, Requeue] = {}

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Held:
    job: Job
    read_at: int | None  # when to look at it once more; None: no need
    waited: bool  # it came well before its instant
    start_at: int  # its instant, or a later one that a gate gave it
    gated: bool  # somebody has to be asked before it starts
    ask_at: int = 0  # when its gates, or its lane, are to be asked again
    cleared_at: int | None = None  # as of when it may start
    give_up_at: int | None = None  # they could not be asked; until when that is tried

    @property
    def next_at(self) -> int:
        """When it may start, or has to be asked about."""
        return max(self.start_at, self.ask_at)

    def is_ready(self, now: int) -> bool:
        """Whether nothing is left to ask. A clearance grows old: its executor was frozen, or a read took long."""
        return not self.gated or (self.cleared_at is not None and now - self.cleared_at <= READ_WINDOW_MS)


@dataclass(slots=True)
class Process:
    """What an executor's process keeps from one batch to the next."""

    meter: LatencyMeter
    pauses: Watch
    named: Known
    circuits: Circuits
    ahead: Callable[[Job], int] = lambda job: 0  # how long before its instant a job's work is sent on its way, which then keeps to it

    @classmethod
    def of(cls, lane: Lane, reporter: str, ports: Ports, ahead: Callable[[Job], int] = lambda job: 0) -> "Process":
        """A new one of the lane, which reports its latencies as `reporter`."""
        pauses = Watch(ports)
        return cls(LatencyMeter(lane, reporter), pauses, Known(ports), Circuits(ports, pauses), ahead)


@dataclass(slots=True)
class Execution:
    """One batch at work. `run` is its only entry."""

    lane: Lane
    deliveries: Sequence[Delivery]
    request_id: str
    ports: Ports
    process: Process
    lease: Lease
    admission: Admission
    work: Work
    onward: Onward
    returned: set[str] = field(default_factory=set)  # message ids that stay in the queue
    _in_hand: dict[JobKey, Delivery] = field(default_factory=dict)
    _held: list[_Held] = field(default_factory=list)
    _done: list[Finished] = field(default_factory=list)  # came back, not settled yet
    _settle_at: int = 0

    def run(self) -> list[str]:
        """Work until nothing is left in hand. Returns the ids of the messages to leave in the queue."""
        try:
            if self.process.pauses.is_paused(self.lane, trust_ms=TRUSTED_MS):
                log.info("lane is paused: messages dropped, the slots are the net", extra={"messages": len(self.deliveries)})
                return []
        except Unavailable:  # of one that is new or was idle: later, what was known last counts
            for item in self.deliveries:
                self._put_back(item, delivery.PUT_BACK_S)
            return sorted(self.returned)
        leased = self.lease.take([item.receipt for item in self.deliveries])
        self.returned |= {item.message_id for item in self.deliveries if item.receipt not in leased}
        self._claim([item for item in self.deliveries if item.receipt in leased])
        while self._is_busy():
            if not self._beat():
                self._stop()
                break
            if self._held:
                self._read_again()
                if self.lease.is_lost():
                    continue  # reading took so long that nothing may start before a renewal holds
                self._start_due()
                if self._admit() and not self.lease.is_lost():
                    self._start_due()
                if not self._is_busy():
                    break  # all were dropped: there is nothing to wait for
            if back := [*self.work.wait(self._wake()), *self.work.look()]:
                self._came_back(back)
            self._settle()
        return sorted(self.returned)

    def _stop(self) -> None:
        """The lease is lost: others may have our jobs already. Start nothing, settle nothing, delete nothing."""
        log.warning("lease lost", extra={"jobs": len(self._in_hand)})
        self.work.stop()
        self.returned |= {item.message_id for item in self._in_hand.values()}
        self._held.clear()

    def _is_busy(self) -> bool:
        return bool(self._held or self.work or self._done)

    def _beat(self) -> bool:
        """Renew the lease of what is in hand, when it is time. False once it is lost."""
        return self.lease.beat(self._receipts)

    def _receipts(self) -> Iterator[str]:
        return (item.receipt for item in self._in_hand.values())

    # claim

    def _claim(self, deliveries: Sequence[Delivery]) -> None:
        now, alone = self.ports.clock.now(), len(self.deliveries) == 1
        due_by = now + self.ports.rules.hold_ms
        requests = [
            ClaimRequest(item.message.key, item.message.fence, item.message_id, self._nonce(item), now, alone, due_by)
            for item in deliveries
        ]
        try:
            answers = self.ports.jobs.claim(requests)
        except Unavailable:
            answers = [None] * len(requests)
        now = self.ports.clock.now()
        lost: list[Job] = []
        later: list[Change] = []
        for item, request, answer in zip(deliveries, requests, answers, strict=True):
            decision = delivery.decide(item, answer, request.nonce, now, hold_ms=self.ports.rules.hold_ms)
            if isinstance(decision, delivery.Run):
                self._take(item, decision.job, now)
            elif isinstance(decision, delivery.PutBack):
                self._put_back(item, decision.seconds)
            elif isinstance(decision, delivery.TakeBack):
                self._in_hand[item.message.key] = item
                lost.append(decision.job)
            elif isinstance(decision, delivery.Later):
                self._in_hand[item.message.key] = item
                slot = slots.place(decision.at, now, decision.job.shard_key, self.ports.rules.shards).slot
                later.append(Change.of_slot(decision.job, lifecycle.move(decision.job, slot=slot, due_at=decision.at)))
        self._write(later)
        self._take_back(lost, now)

    def _nonce(self, item: Delivery) -> str:
        return f"{item.message_id}/{self.request_id}/{item.receive_count}"

    def _take(self, item: Delivery, job: Job, now: int) -> None:
        self._in_hand[job.key] = item
        if item.message.sent_at and not item.message.not_before and item.receive_count == 1:
            self.process.meter.add(now - item.message.sent_at)
        wait = job.due_at - now
        gated = self.admission.concerns(job)
        is_asked = gated and wait > 0  # however short the time: at the instant it would be late
        read_at = job.due_at - READ_AHEAD_MS - self._spread() if wait > FRESH_CLAIM_MS or is_asked else None
        read_at = read_at if job.cancel_requested_at is None else now
        self._held.append(_Held(job, read_at, waited=wait > FRESH_CLAIM_MS, start_at=job.due_at, gated=gated))

    def _spread(self) -> int:
        return zlib.crc32(self.request_id.encode()) % READ_SPREAD_MS

    def _put_back(self, item: Delivery, seconds: int) -> None:
        self.returned.add(item.message_id)
        try:
            self.ports.lanes.extend(self.lane, [item.receipt], seconds)
        except Unavailable:
            log.info("not put back sooner; its lease will end", extra={"message_id": item.message_id})

    def _take_back(self, lost: Sequence[Job], now: int) -> None:
        for job in lost:
            log.warning("silent for its lease" if waits(job) else "executor died", extra=job.log_context())
        rules = self.ports.rules
        after = [settlement.take_back(job, now, shards=rules.shards, retention=rules.retention) for job in lost]
        self._write([Change(job, back, Guard.LEASE) for job, back in zip(lost, after, strict=True)])

    # hold and start

    def _read_again(self) -> None:
        """Look once more at held jobs just before their instant; drop those that are not ours to start any more."""
        now = self.ports.clock.now()
        if not [held for held in self._held if held.read_at is not None and held.read_at <= now]:
            return
        near = [held for held in self._held if held.read_at is not None and (held.read_at <= now or held.next_at <= now + READ_WINDOW_MS)]
        try:
            stored = self.ports.jobs.get_many([held.job.key for held in near])
        except Unavailable:
            stored = {held.job.key: held.job for held in near}  # start them: a cancel not seen is a cancel too late
        ours = [held for held in near if self._still_ours(held.job, stored.get(held.job.key))]
        for held in near:
            held.read_at = None
        flagged = [job for held in ours if (job := stored[held.job.key]).cancel_requested_at is not None]
        self._drop([held.job.key for held in near if held not in ours] + [job.key for job in flagged])
        self._write([Change(job, settlement.cancel(job, self.ports.clock.now(), retention=self.ports.rules.retention)) for job in flagged])
        self._look_ahead([held for held in ours if held in self._held], now)

    def _look_ahead(self, near: Sequence[_Held], now: int) -> None:
        """What is decided before the instant: a paused lane's jobs go back to their slots, and gates are asked."""
        if near and self.process.pauses.is_paused(self.lane, SEEN_MS):
            self._give_back(near, now)
        elif gated := [held.job for held in near if held.gated]:
            self._act(self.admission.ahead(gated), now)

    def _give_back(self, paused: Sequence[_Held], now: int) -> None:
        self._act(dict.fromkeys((held.job.key for held in paused), gate.PAUSED), now)

    def _still_ours(self, ours: Job, stored: Job | None) -> bool:
        if stored is not None and is_open(stored) and stored.fence == ours.fence and stored.claim == ours.claim:
            return True
        self._in_hand.pop(ours.key, None)
        return False

    def _drop(self, keys: Collection[JobKey]) -> list[Job]:
        """Hold them no longer; the jobs."""
        if not keys:
            return []
        dropped = [held.job for held in self._held if held.job.key in keys]
        self._held = [held for held in self._held if held.job.key not in keys]
        return dropped

    def _start_due(self) -> None:
        now = self.ports.clock.now()
        due = [held for held in self._held if self._leaves_at(held) <= now]
        if not due:
            return
        try:  # whoever stood still since the last read may have missed a pause
            paused = self.process.pauses.is_paused(self.lane, SEEN_MS, trust_ms=TRUSTED_MS)
        except Unavailable:
            self._act(dict.fromkeys((held.job.key for held in due), UNDECIDED), now)
            return
        if paused:
            self._give_back(due, now)
            return
        if self.lease.is_lost():
            return  # the look took that long
        now = self.ports.clock.now()
        late = {held.job.key: Skip(why) for held in due if (why := misfire.too_late(held.job, max(now, held.next_at)))}
        ready = [held for held in due if held.is_ready(now) and held.job.key not in late]
        for held in ready:
            self._held.remove(held)
            self.work.start(held.job)
        if late:
            self._act(late, now)
        if len(ready) >= CROWD and sum(held.waited for held in ready) >= CROWD:
            least, most = LINGER_MS
            self._settle_at = now + least + self._spread() * (most - least) // READ_SPREAD_MS

    def _leaves_at(self, held: _Held) -> int:
        """When its work leaves us: at its instant, or ahead of that, if nothing is left to look at or to ask."""
        settled = held.read_at is None and held.next_at == held.job.due_at and held.is_ready(self.ports.clock.now())
        return held.next_at - (self.process.ahead(held.job) if settled else 0)

    def _admit(self) -> bool:
        """Ask about the jobs that are due and not cleared yet. False if there are none."""
        now = self.ports.clock.now()
        asking = [held for held in self._held if held.next_at <= now and not held.is_ready(now)]
        if not asking:
            return False
        if self.process.pauses.is_paused(self.lane):  # whoever has to ask this late has looked at its lane a while ago
            self._give_back(asking, now)
            return False
        self._act(self.admission.decide([held.job for held in asking]), now)
        return True

    def _act(self, verdicts: Mapping[JobKey, Verdict], asked_at: int) -> None:
        """Carry out what was decided on held jobs, which were asked about at `asked_at`."""
        if not verdicts:
            return
        dropped: dict[JobKey, Cancel | Skip | Requeue] = {}
        for held in self._held:
            verdict = verdicts.get(held.job.key)
            if isinstance(verdict, Clear):
                held.cleared_at, held.start_at = verdict.asked_at, max(held.start_at, verdict.not_before)
            elif isinstance(verdict, AskAgain):
                held.cleared_at, held.ask_at = None, verdict.at
            elif isinstance(verdict, Undecided):
                held.ask_at = asked_at + ASK_PAUSE_MS
                held.give_up_at = held.give_up_at or asked_at + ASK_LIMIT_MS
                if asked_at >= held.give_up_at:
                    # By a write of ours, not by letting the lease end: that would look like a crash, and be charged as one.
                    dropped[held.job.key] = gate.REFUSED
            elif verdict is not None:
                dropped[held.job.key] = verdict
        if dropped:
            requeues = {key: verdict for key, verdict in dropped.items() if isinstance(verdict, Requeue)}
            self._write([Change(job, self._dropped(job, dropped[job.key])) for job in self._drop(dropped)], requeues)

    def _dropped(self, job: Job, verdict: Cancel | Skip | Requeue) -> Job:
        now = self.ports.clock.now()
        if isinstance(verdict, Requeue):
            at, reserved = verdict.at, verdict.reserved
            return settlement.requeue(
                job, verdict.cause, verdict.reason, now, shards=self.ports.rules.shards, at=at, reserved=reserved, look_at=verdict.look_at
            )
        end = lifecycle.cancel if isinstance(verdict, Cancel) else lifecycle.skip
        return end(job, now, reason=verdict.reason, retention=self.ports.rules.retention)

    def _wake(self) -> int:
        """When there is something to do next, unless work comes back before."""
        wake, look = self.ports.clock.now() + self.lease.next_beat(), self.work.next_look()
        if look is not None and look < wake:
            wake = look
        for held in self._held:
            wake = min(wake, self._leaves_at(held) if held.read_at is None else min(held.read_at, held.next_at))
        return min(wake, self._settle_at) if self._done else wake

    # settle

    def _came_back(self, done: Sequence[Finished]) -> None:
        self._done += done
        self.admission.left([each.job for each in done])

    def _settle(self) -> None:
        """Settle what came back, in one write, once its instant's crowd has started."""
        if not self._done or (now := self.ports.clock.now()) < self._settle_at:
            return
        done, self._done = self._done, []
        self.admission.ended(done)
        rules = self.ports.rules
        after = [settlement.returned(each, now, shards=rules.shards, retention=rules.retention) for each in done]
        # What accepts a job, written again after a lost answer, must not take back the lease that a heartbeat has got meanwhile.
        guards = [Guard.LEASE if waits(job) else Guard.FENCE for job in after]
        self._write([Change(each.job, job, guard) for each, job, guard in zip(done, after, guards, strict=True)])

    def _write(self, changes: Sequence[Change], requeues: Mapping[JobKey, Requeue] = NO_REQUEUES) -> None:
        """Apply changes under their fences, again while the table refuses; then hand over what goes to a lane at once."""
        pending = changes
        for number in range(SETTLE_TRIES):
            if not pending:
                return
            if number:
                self.ports.clock.sleep_until(self.ports.clock.now() + SETTLE_PAUSE_MS * number)
            if not self._beat():
                break
            pending = self._try(pending, requeues)
        self.returned |= {self._in_hand[change.before.key].message_id for change in pending if change.before.key in self._in_hand}
        for change in pending:
            self._in_hand.pop(change.before.key, None)
            log.error("not settled: the table refuses; it will be taken back", extra=change.before.log_context())

    def _try(self, changes: Sequence[Change], requeues: Mapping[JobKey, Requeue]) -> list[Change]:
        """One try; what was refused for now comes back."""
        try:
            held = self.ports.jobs.change(changes)
        except Unavailable:
            return list(changes)
        applied, refused = list[Change](), list[Change]()
        for change, ok in zip(changes, held, strict=True):
            if ok is Written.REFUSED:
                refused.append(change)
                continue
            self._in_hand.pop(change.before.key, None)
            if ok is Written.YES:
                applied.append(change)
            elif waits(change.after):
                log.info("its worker was faster than this answer, or the job has moved on", extra=change.before.log_context())
            else:
                log.warning("lost its fence before it settled", extra=change.before.log_context())
        self.admission.left([change.before for change in applied])
        self.onward.send([change.after for change in applied], requeues)
        return refused


def execute(lane: Lane, deliveries: Sequence[Delivery], ports: Ports, process: Process, *, pool: Pool, request_id: str) -> list[str]:
    """Run one batch. Returns the ids of the messages to leave in the queue; the others may be deleted."""
    limits = LimitGate(process.named, ports)
    gates: list[Gate] = [OrderGate(ports), RunGate(ports), BreakerGate(process.circuits, ports.clock), limits]
    batch = Execution(
        lane,
        deliveries,
        request_id,
        ports,
        process,
        lease=Lease(lane, ports),
        admission=Admission(gates),
        work=Work(pool, ports),
        onward=Onward(ports, process.pauses.is_paused),
    )
    left = batch.run()
    process.meter.report(ports.ledger, ports.clock.now())
    return left
