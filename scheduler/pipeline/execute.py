"""Run a batch of deliveries: lease the messages, claim the jobs, wait for each job's instant, start it, settle it.

The visibility of the messages is the lease: the executor sets it before the claim and renews it while work goes on. When it cannot be
renewed, the executor starts nothing more. Messages whose ids are returned stay in their queue; the caller deletes all others.
`admission` decides whether a job may start that depends on other jobs, limits or breakers; `follow_up` enqueues the jobs that waited
for a job that has ended.
"""

import logging
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.admission import gate
from scheduler.admission.breaker_gate import BreakerGate, BreakerRegistry
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
from scheduler.admission.lane_state import SEEN_MS, TRUSTED_MS, LaneStateCache
from scheduler.admission.limit_gate import LimitGate
from scheduler.admission.ordering_gate import OrderingGate
from scheduler.admission.overlap import Skip
from scheduler.admission.run_gate import RunGate
from scheduler.admission.target_cache import TargetCache
from scheduler.model import lifecycle, misfire, settlement, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Delivery, Finished, Job, JobKey, Lane
from scheduler.model.lifecycle import is_open, waits
from scheduler.pipeline import delivery
from scheduler.pipeline.follow_up import FollowUps
from scheduler.pipeline.latency import LatencyMeter
from scheduler.pipeline.lease import Lease
from scheduler.pipeline.running_jobs import RunningJobs
from scheduler.storage.ports import Change, ClaimRequest, Guard, Pool, Ports, Written

FRESH_CLAIM_MS = 250  # a job claimed this shortly before its instant is not read again
CROWD = 3  # if this many waiting jobs start at once, other executors probably start theirs at this instant, too ...
LINGER_MS = (40, 200)  # ... and settling waits for this time: it would take the processor from jobs that still start
SETTLE_TRIES = 5
SETTLE_PAUSE_MS = 500
ASK_PAUSE_MS = 200  # the pause before a gate is tried again whose table refuses ...
ASK_LIMIT_MS = 2_000  # ... and how long it is tried before the job is requeued
NO_REQUEUES: Mapping[JobKey, Requeue] = {}

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Held:
    job: Job
    read_at: int | None  # when to read the job once more; None: no need
    waited: bool  # the job came well before its instant
    start_at: int  # the job's instant, or a later one set by a gate
    gated: bool  # a gate has to allow the start
    ask_at: int = 0  # when its gates, or its lane, are to be checked again
    cleared_at: int | None = None  # when the gates last allowed the start
    give_up_at: int | None = None  # the gates could not decide; when to requeue the job

    @property
    def next_at(self) -> int:
        """When the job may start, or its gates have to be checked (ms)."""
        return max(self.start_at, self.ask_at)

    def is_ready(self, now: int) -> bool:
        """Return whether no gate has to be checked. A clearance expires: the executor may have been frozen, or a read took long."""
        return not self.gated or (self.cleared_at is not None and now - self.cleared_at <= READ_WINDOW_MS)


@dataclass(slots=True)
class Process:
    """The state that an executor's process keeps from one batch to the next."""

    meter: LatencyMeter
    pauses: LaneStateCache
    named: TargetCache
    circuits: BreakerRegistry
    ahead: Callable[[Job], int] = lambda job: 0  # how long before its instant (ms) a job goes to the pool, which keeps to the instant

    @classmethod
    def of(cls, lane: Lane, reporter: str, ports: Ports, ahead: Callable[[Job], int] = lambda job: 0) -> "Process":
        """Return the state of a new process of the lane, which reports its latencies as `reporter`."""
        pauses = LaneStateCache(ports)
        return cls(LatencyMeter(lane, reporter), pauses, TargetCache(ports), BreakerRegistry(ports, pauses), ahead)


@dataclass(slots=True)
class Execution:
    """One batch of an executor. `run` is its only entry point."""

    lane: Lane
    deliveries: Sequence[Delivery]
    request_id: str
    ports: Ports
    process: Process
    lease: Lease
    admission: Admission
    work: RunningJobs
    onward: FollowUps
    returned: set[str] = field(default_factory=set)  # message ids that stay in the queue
    _in_hand: dict[JobKey, Delivery] = field(default_factory=dict)
    _held: list[_Held] = field(default_factory=list)
    _done: list[Finished] = field(default_factory=list)  # finished, not settled yet
    _settle_at: int = 0

    def run(self) -> list[str]:
        """RunningJobs until every job of the batch is done. Returns the ids of the messages to leave in the queue."""
        try:
            if self.process.pauses.is_paused(self.lane, trust_ms=TRUSTED_MS):
                log.info("the lane is paused: messages dropped, their jobs stay in their slots", extra={"messages": len(self.deliveries)})
                return []
        except Unavailable:  # raised only in a process that is new or was idle: any other one uses the state that it read last
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
                    continue  # the read outlasted the lease: nothing may start before the lease is renewed
                self._start_due()
                if self._admit() and not self.lease.is_lost():
                    self._start_due()
                if not self._is_busy():
                    break  # all jobs were dropped: there is nothing to wait for
            if back := [*self.work.wait(self._wake()), *self.work.look()]:
                self._came_back(back)
            self._settle()
        return sorted(self.returned)

    def _stop(self) -> None:
        """Stop after a lost lease: other executors may have these jobs already. Start nothing, settle nothing, delete nothing."""
        log.warning("the executor lost the lease of its batch", extra={"jobs": len(self._in_hand)})
        self.work.stop()
        self.returned |= {item.message_id for item in self._in_hand.values()}
        self._held.clear()

    def _is_busy(self) -> bool:
        return bool(self._held or self.work or self._done)

    def _beat(self) -> bool:
        """Renew the lease of the messages in hand, when it is time. False once it is lost."""
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
        is_asked = gated and wait > 0  # even if little time is left: a check at the instant would make the job late
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
            log.info("could not defer a message; it is delivered again when its lease ends", extra={"message_id": item.message_id})

    def _take_back(self, lost: Sequence[Job], now: int) -> None:
        for job in lost:
            log.warning("the worker did not report within its lease" if waits(job) else "the executor died", extra=job.log_context())
        rules = self.ports.rules
        after = [settlement.take_back(job, now, shards=rules.shards, retention=rules.retention) for job in lost]
        self._write([Change(job, back, Guard.LEASE) for job, back in zip(lost, after, strict=True)])

    # wait and start

    def _read_again(self) -> None:
        """Read waiting jobs once more just before their instant; drop the jobs that this executor must not start any more."""
        now = self.ports.clock.now()
        if not [held for held in self._held if held.read_at is not None and held.read_at <= now]:
            return
        near = [held for held in self._held if held.read_at is not None and (held.read_at <= now or held.next_at <= now + READ_WINDOW_MS)]
        try:
            stored = self.ports.jobs.get_many([held.job.key for held in near])
        except Unavailable:
            stored = {held.job.key: held.job for held in near}  # start them: a cancel that was not read counts as too late
        ours = [held for held in near if self._still_ours(held.job, stored.get(held.job.key))]
        for held in near:
            held.read_at = None
        flagged = [job for held in ours if (job := stored[held.job.key]).cancel_requested_at is not None]
        self._drop([held.job.key for held in near if held not in ours] + [job.key for job in flagged])
        self._write([Change(job, settlement.cancel(job, self.ports.clock.now(), retention=self.ports.rules.retention)) for job in flagged])
        self._look_ahead([held for held in ours if held in self._held], now)

    def _look_ahead(self, near: Sequence[_Held], now: int) -> None:
        """Decide what is decided before the instant: requeue the jobs of a paused lane to their slots, else check the gates."""
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
        """Remove these jobs from the waiting ones and return them."""
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
        try:  # an executor that was frozen since the last read may have missed a pause
            paused = self.process.pauses.is_paused(self.lane, SEEN_MS, trust_ms=TRUSTED_MS)
        except Unavailable:
            self._act(dict.fromkeys((held.job.key for held in due), UNDECIDED), now)
            return
        if paused:
            self._give_back(due, now)
            return
        if self.lease.is_lost():
            return  # the check outlasted the lease
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
        """Return when the job goes to the pool (ms): at its instant, or ahead of it if nothing is left to read or to check."""
        settled = held.read_at is None and held.next_at == held.job.due_at and held.is_ready(self.ports.clock.now())
        return held.next_at - (self.process.ahead(held.job) if settled else 0)

    def _admit(self) -> bool:
        """Check the gates of jobs that are due and not cleared yet. False if there are none, or the lane is paused."""
        now = self.ports.clock.now()
        asking = [held for held in self._held if held.next_at <= now and not held.is_ready(now)]
        if not asking:
            return False
        if self.process.pauses.is_paused(self.lane):  # for a job that is cleared this late, the lane was checked a while ago
            self._give_back(asking, now)
            return False
        self._act(self.admission.decide([held.job for held in asking]), now)
        return True

    def _act(self, verdicts: Mapping[JobKey, Verdict], asked_at: int) -> None:
        """Carry out the gates' verdicts on waiting jobs; the gates were checked at `asked_at`."""
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
                    # Requeue it by a write: if the executor let the lease end, that would look like a crash and use up an attempt.
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
        """Return when there is something to do next (ms), unless a job finishes before."""
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
        """Settle the finished jobs in one write, once the other jobs of their instant have started."""
        if not self._done or (now := self.ports.clock.now()) < self._settle_at:
            return
        done, self._done = self._done, []
        self.admission.ended(done)
        rules = self.ports.rules
        after = [settlement.returned(each, now, shards=rules.shards, retention=rules.retention) for each in done]
        # The write that accepts a job may be repeated after a lost answer; it must not undo a lease that a heartbeat got meanwhile.
        guards = [Guard.LEASE if waits(job) else Guard.FENCE for job in after]
        self._write([Change(each.job, job, guard) for each, job, guard in zip(done, after, guards, strict=True)])

    def _write(self, changes: Sequence[Change], requeues: Mapping[JobKey, Requeue] = NO_REQUEUES) -> None:
        """Apply changes under their fences, repeatedly while the table refuses; then enqueue the jobs that go to a lane at once."""
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
            log.error("could not settle a job: the table refuses; it is taken back later", extra=change.before.log_context())

    def _try(self, changes: Sequence[Change], requeues: Mapping[JobKey, Requeue]) -> list[Change]:
        """Apply the changes once; return the refused ones."""
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
                log.info("the worker reported before its job was accepted, or the job has changed since", extra=change.before.log_context())
            else:
                log.warning("could not settle a job: its fence has changed", extra=change.before.log_context())
        self.admission.left([change.before for change in applied])
        self.onward.send([change.after for change in applied], requeues)
        return refused


def execute(lane: Lane, deliveries: Sequence[Delivery], ports: Ports, process: Process, *, pool: Pool, request_id: str) -> list[str]:
    """Run one batch. Returns the ids of the messages to leave in the queue; the others may be deleted."""
    breakers, limits = BreakerGate(process.circuits, ports.clock), LimitGate(process.named, ports)
    gates: list[Gate] = [OrderingGate(ports), RunGate(ports), breakers, limits]  # limits last: a start uses up what they give
    batch = Execution(
        lane,
        deliveries,
        request_id,
        ports,
        process,
        lease=Lease(lane, ports),
        admission=Admission(gates),
        work=RunningJobs(pool, ports),
        onward=FollowUps(ports, process.pauses.is_paused),
    )
    left = batch.run()
    process.meter.report(ports.ledger, ports.clock.now())
    return left
