"""Run a batch of deliveries: lease the messages, claim the jobs, wait for each job's instant, start it, settle it.

A few jobs that are due are claimed beside the lease: they start only once both have answered.

A message names one job or several. All jobs of a message have its lease, but are handled separately: a job that has to wait is requeued
in a message of its own. A bundle names the few jobs of a whole minute: the executor sends them on, each delayed until shortly before its
instant.

The visibility of the messages is the lease: the executor sets it before the claim and renews it while work goes on. When it cannot be
renewed, the executor starts no further job. Messages whose ids are returned stay in their queue; the caller deletes all others.
`admission` decides whether a job may start that depends on other jobs, limits or breakers; `follow_up` enqueues the jobs that waited
for a job that has ended.
"""

import logging
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

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
    Follower,
    Gate,
    Requeue,
    Undecided,
    Verdict,
)
from scheduler.admission.lane_state import SEEN_MS, TRUSTED_MS, LaneStateCache
from scheduler.admission.limit_gate import LimitGate, free_waiting
from scheduler.admission.ordering_gate import OrderingGate
from scheduler.admission.overlap import Skip
from scheduler.admission.owner_gate import STALE_MS, BarredOwners, OwnerGate
from scheduler.admission.run_gate import RunGate
from scheduler.admission.share_gate import ShareGate
from scheduler.admission.target_cache import TargetCache
from scheduler.model import callback_lease, lifecycle, misfire, settlement, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Delivery, Failure, FailureKind, Finished, Job, JobKey, Lane, RequeueCause, Result, TaskHead
from scheduler.model.lifecycle import is_open, waits
from scheduler.model.rules import Rules
from scheduler.pipeline import bundles, delivery, waiting_room
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.follow_up import FollowUps
from scheduler.pipeline.latency import LatencyMeter
from scheduler.pipeline.lease import Lease
from scheduler.pipeline.running_jobs import RunningJobs
from scheduler.sharing.pins import LONG_MS
from scheduler.storage.ports import Change, ClaimRequest, ClaimResult, Guard, Pool, Ports, Written

FRESH_CLAIM_MS = 250  # a job claimed this shortly before its instant is not read again
CROWD = 3  # if this many waiting jobs start at once, other executors probably start theirs at this instant, too ...
LINGER_MS = (40, 200)  # ... and settling waits for this time: it would take the processor from jobs that still start ...
LINGER_EACH_MS = 0.5  # ... and longer by this time for each of its jobs: the crowds of the other executors may be as large
CLEAR_MS = 50  # settling also waits for a job that leaves within this time: it would be late, as the executor waits for the write ...
BEGUN_MS = 5  # ... and until its thread has surely begun ...
DEFER_MS = 500  # ... but a finished job is settled this long after its end at the latest
WRITE_PAUSES_MS = (500, 1_000, 2_000, 4_000, 5_000)  # between two tries of a change that the table refuses
LONGEST_MS = 900_000  # an invocation ends after this time: Lambda's most ...
STOP_MS = 10_000  # ... and an executor stops all work this long before
AT_ONCE = 200  # jobs claimed or settled between two renewals of the lease: 25 a call, on eight connections
READ_EACH_MS = 1  # a crowd is read earlier, by this time for each job of the batch
FULL_AGAIN_MS = 20  # the pause before a job is started again that found its executor full ...
FULL_MS = 2_000  # ... and how long it is tried before another executor gets the job, ...
BESIDE_MS = 500  # ... or if its owner has no job that runs here, and it comes from no full executor
ASK_PAUSE_MS = 200  # the pause before a gate is tried again whose table refuses ...
ASK_LIMIT_MS = 2_000  # ... and how long it is tried before the job is requeued
ROOM_AGAIN_MS = 60_000  # a job that the ledger keeps out of its waiting room, or of the overflow, is checked again after this time
FEW_DUE = 3  # as many due jobs are claimed beside their lease; for more, another thread takes more processor time than it saves
UNLEASED_MS = 5_000  # a job is started this much later whose message the queue refused to lease
LEASE_REFUSED = Failure(FailureKind.REFUSED, "the queue refused to renew the lease of its executor")
CLOCK_JUMPED = Failure(FailureKind.REFUSED, "its executor was frozen, or the clock of its executor was set")

Ahead = Callable[[Job, int], int]  # how long before its instant (ms) the pool gets a job; the number: the jobs of its batch

log = logging.getLogger(__name__)


def at_the_instant(job: Job, jobs: int) -> int:
    return 0


@dataclass(slots=True, eq=False)
class _Held:
    job: Job
    read_at: int | None  # when to read the job again; None: no need
    waited: bool  # the job arrived well before its instant
    start_at: int  # the job's instant, or a later one set by a gate
    gated: bool  # a gate has to allow the start
    ahead: int = 0  # how long before its instant (ms) it goes to the pool
    ask_at: int = 0  # when its gates, or its lane, are to be checked again
    cleared_at: int | None = None  # when the gates last allowed the start
    task: TaskHead | None = None  # of a run, as its gate read it then
    give_up_at: int | None = None  # the gates could not decide; when to requeue the job
    full_at: int | None = None  # when the executor was first found full

    @property
    def next_at(self) -> int:
        """When the job may start, or its gates have to be checked (ms)."""
        return self.start_at if self.start_at > self.ask_at else self.ask_at  # read often, and `max` takes twice as long

    def is_ready(self, now: int) -> bool:
        """Return whether no gate has to be checked. A clearance expires: the executor may have been frozen, or a read took long."""
        return not self.gated or (self.cleared_at is not None and now - self.cleared_at <= READ_WINDOW_MS)

    def leaves_at(self, now: int) -> int:
        """When the job goes to the pool (ms): at its instant, or ahead of it if nothing is left to read or to check."""
        at, ask_at = self.start_at, self.ask_at  # runs for each waiting job at each wake: a call would take longer than the rest
        if ask_at > at:
            return ask_at
        if not self.ahead or self.read_at is not None or at != self.job.due_at or (self.gated and not self.is_ready(now)):
            return at
        ahead_at = at - self.ahead
        return ahead_at if ahead_at > ask_at else ask_at

    def not_after(self) -> int | None:
        """The latest start (ms) by the last clearance; None if no gate has to allow the start."""
        return self.cleared_at + READ_WINDOW_MS if self.gated and self.cleared_at is not None else None


@dataclass(slots=True)
class _Write:
    """A change of a claimed job. `requeue`: the verdict that caused it, `done`: the finished work that it settles."""

    change: Change
    requeue: Requeue | None = None
    done: Finished | None = None

    def again(self, now: int, rules: Rules) -> "_Write":
        """The same change after the table refused it for a while: it must write no slot that is not safe, and no lease that has passed.

        Otherwise it stays as it is, so that the table recognizes a change that it applied without an answer.
        """
        before, after, guard = self.change
        if self.done is not None and callback_lease.is_half_over(after, now):
            after = settlement.returned(self.done, now, rules)
        return _Write(Change(before, settlement.still_safe(before, after, now, rules), guard), self.requeue, self.done)


class _Claimed(NamedTuple):
    """The delivery of a job with the answer to its claim; None: the table refused."""

    item: Delivery
    request: ClaimRequest
    answer: ClaimResult | None

    def decision(self, now: int) -> delivery.Decision:
        hold_ms = self.request.due_by - self.request.at
        return delivery.decide(self.item, self.answer, self.request.nonce, now, hold_ms=hold_ms)


@dataclass(slots=True)
class Process:
    """The state that an executor's process keeps from one batch to the next."""

    meters: tuple[LatencyMeter, LatencyMeter]  # of messages that were delivered at once, and of delayed ones
    pauses: LaneStateCache
    named: TargetCache
    circuits: BreakerRegistry
    owners: BarredOwners
    direct: DirectPath  # of retries
    ahead: Ahead = at_the_instant

    @classmethod
    def of(cls, lane: Lane, reporter: str, ports: Ports, ahead: Ahead = at_the_instant) -> "Process":
        """Return the state of a new process of the lane, which reports its latencies as `reporter`."""
        pauses = LaneStateCache(ports)
        meters = LatencyMeter(lane, reporter), LatencyMeter(lane, reporter, delayed=True)
        return cls(meters, pauses, TargetCache(ports), BreakerRegistry(ports, pauses), BarredOwners(ports), DirectPath(ports), ahead)


@dataclass(slots=True)
class Execution:
    """One batch of an executor. `run` is its only entry point."""

    lane: Lane
    deliveries: Sequence[Delivery]  # one for each job
    request_id: str
    ports: Ports
    process: Process
    lease: Lease
    gates: Sequence[Gate]
    followers: Sequence[Follower]
    work: RunningJobs
    share: ShareGate
    returned: set[str] = field(default_factory=set)  # message ids that stay in the queue
    _held: list[_Held] = field(default_factory=list)
    _done: list[Finished] = field(default_factory=list)  # finished, not settled yet
    _settle_at: int = 0
    _unwritten: list[_Write] = field(default_factory=list)  # changes that the table refused; tried again while the lease lasts
    _write_at: int = 0
    _refusals: int = 0  # in a row
    admission: Admission = field(init=False)
    onward: FollowUps = field(init=False)

    def __post_init__(self) -> None:
        self.admission = Admission(self.gates, self.followers, self.lease.beat)
        self.onward = FollowUps(self.ports, self.process.pauses.is_paused, self.process.owners, self.lease.beat, self.process.direct)

    def run(self) -> list[str]:
        """Run until every job of the batch is done. Returns the ids of the messages to leave in the queue."""
        if self._are_due():
            self._claim_at_once()
        elif not self._claim_ahead():
            return sorted(self.returned)
        while self._is_busy():
            if not self.lease.beat():
                self._stop()
                break
            if self._held:
                self._read_again()
                if self.lease.is_lost():
                    continue  # the read outlasted the lease: the executor stops
                self._start_due()
                if self._admit() and not self.lease.is_lost():
                    self._start_due()
                if not self._is_busy():
                    break  # all jobs were dropped: there is nothing to wait for
            if back := self.work.wait(self._wake()):
                self._came_back(back)
            if self.lease.beat() and (killed := self.work.look()):
                self._came_back(killed)
            self._look_for_long_jobs()
            self._settle()
            self._write_again()
        return sorted(self.returned)

    def _are_due(self) -> bool:
        """Return whether the jobs are few, all due, and none is known to be kept from its start: then each call delays them."""
        now, known = self.ports.clock.now(), self.process.pauses
        if not 0 < len(self.deliveries) <= FEW_DUE or known.known is None or self.lane in known.paused:
            return False
        return all(item.message.due_at <= now and item.message.fence == 1 for item in self.deliveries)

    def _claim_at_once(self) -> None:
        """Claim jobs that are due, while their messages are leased and the executor reads who must not start any: none of these calls waits
        for another one. A job whose message was not leased is requeued by a write; what the reads forbid is checked before each start."""
        pauses, owners = self.process.pauses, self.process.owners
        receipts, requests = sorted({item.receipt for item in self.deliveries}), self._requests(self.deliveries)
        reads: list[Callable[[], object]] = [pauses.look] if pauses.is_due() else []
        reads += [owners.look] if owners.is_due(STALE_MS) else []
        leased, answers, *_ = self.ports.side_by_side(lambda: self.lease.take(receipts), lambda: self._answers(requests), *reads)
        claims = list(map(_Claimed, self.deliveries, requests, answers))
        unleased = [each for each in claims if each.item.receipt not in leased]
        self.returned |= {each.item.message_id for each in unleased}
        if waiting := self._take_claims([each for each in claims if each.item.receipt in leased]):
            self._wait(waiting)
        now = self.ports.clock.now()
        later = Requeue(RequeueCause.REFUSED, "the queue refused the lease of its message", at=now + UNLEASED_MS)
        decisions = [each.decision(now) for each in unleased]
        self._write([self._dropped(each.job, later) for each in decisions if isinstance(each, delivery.Run)])

    def _claim_ahead(self) -> bool:
        """Claim the jobs that need not wait. False if nothing is known about the lane, and all messages are deferred."""
        try:
            if self.process.pauses.is_paused(self.lane, trust_ms=TRUSTED_MS):
                self._make_wait()
        except Unavailable:  # raised only in a process that is new or was idle: any other one uses the state that it read last
            for item in _messages(self.deliveries):
                self._put_back(item, delivery.refused(item).seconds)
            return False
        self._send_on()
        if ready := self._hide_early():
            leased = self.lease.take(sorted({item.receipt for item in ready}))
            self.returned |= {item.message_id for item in ready if item.receipt not in leased}
            self._claim_all([item for item in ready if item.receipt in leased])
        return True

    def _look_for_long_jobs(self) -> None:
        """Count the owners whose jobs keep this executor busy for long."""
        now = self.ports.clock.now()
        if self.share.is_due(now) and self.lease.beat():
            here = self.work.owners()
            self.share.look(self.work.owners(now - LONG_MS), here.union(held.job.owner for held in self._held))

    def _stop(self) -> None:
        """Start no further job: other executors may already have these jobs, or the invocation ends."""
        lost = self.lease.is_lost()
        log.warning(
            "the executor lost the lease of its batch" if lost else "the time of the invocation is over",
            extra={"jobs": len(self.lease.in_hand), "unwritten": len(self._unwritten), "refused": self.lease.was_refused},
        )
        running, held = self.work.stop(), self._drop([held.job.key for held in self._held])
        if lost and self.lease.was_refused:
            self._let_go(running, held, LEASE_REFUSED)
        elif lost and self.lease.has_jumped():
            self._let_go(running, held, CLOCK_JUMPED)
        self.returned |= {item.message_id for item in self.lease.in_hand.values()}

    def _let_go(self, running: Sequence[Job], held: Sequence[Job], failure: Failure) -> None:
        """Write the ends of the jobs although the lease is lost: settle the finished ones and requeue the others, charging nothing.

        Only if the jobs did not cause the loss: after any other one the executor writes nothing, and its jobs have crashed. The fence
        protects a job that another executor has by now.
        """
        now = self.ports.clock.now()
        began = [(job, lifecycle.started_at(job)) for job in running]
        cut = [Finished(job, start, now, Result(failure=failure, unstarted=start > now)) for job, start in began]
        cut += [Finished(job, now, now, Result(failure=failure, unstarted=True)) for job in held]
        again = [each.again(now, self.ports.rules) for each in self._unwritten]
        self._try([*again, *self._settlements([*self._done, *cut], now)])
        self.admission.left(running)

    def _is_busy(self) -> bool:
        return bool(self._held or self.work or self._done or self._unwritten)

    def _make_wait(self) -> None:
        """Move the jobs of a paused lane into its waiting room, and forget their messages.

        Deliveries of other jobs stay: of claimed ones, whose executor or worker may be gone, and those that the table refused to move. All
        stay if the lane was resumed in between.
        """
        moved: set[JobKey] = set()
        for part in _parts(self.deliveries):
            moved |= waiting_room.enter({item.message.key: item.message.fence for item in part}, self.ports)
        if self.process.pauses.is_paused(self.lane):
            log.info("the lane is paused: jobs moved to its waiting room", extra={"jobs": len(moved), "of": len(self.deliveries)})
            self.deliveries = [item for item in self.deliveries if item.message.key not in moved]

    # claim

    def _send_on(self) -> None:
        """Send on the jobs of bundles that are due later; the others stay here."""
        far = bundles.far_jobs(self.deliveries, self.ports.clock.now(), self.ports.rules.hold_ms)
        if not far:
            return
        gone = {(item.message_id, item.message.key) for item in far}  # another message may name the job as it was edited since
        self.deliveries = [item for item in self.deliveries if (item.message_id, item.message.key) not in gone]
        leased = self.lease.take(sorted({item.receipt for item in far}))  # a bundle whose executor ends now is delivered again soon
        self.returned |= {item.message_id for item in far if item.receipt not in leased}
        onward = [item for item in far if item.receipt in leased]
        refused = bundles.send_on(onward, self.ports, may_wait=not self.deliveries)
        busy = {item.message_id for item in self.deliveries}
        self.returned |= refused & busy  # it is delivered again after the batch
        for item in _messages(onward):
            if item.message_id in refused - busy:
                self._put_back(item, delivery.PUT_BACK_S)

    def _hide_early(self) -> list[Delivery]:
        """Hide the messages that are too early to claim their jobs; return the deliveries of the others, by due time."""
        now, firsts = self.ports.clock.now(), dict[str, int]()
        for item in self.deliveries:
            firsts[item.message_id] = min(firsts.get(item.message_id, item.message.due_at), item.message.due_at)
        for item in _messages(self.deliveries):
            if wait := delivery.early(item, firsts[item.message_id], now, self.ports.rules):
                self._put_back(item, wait.seconds)
        return sorted((item for item in self.deliveries if item.message_id not in self.returned), key=lambda item: item.message.due_at)

    def _claim_all(self, deliveries: Sequence[Delivery]) -> None:
        waiting: list[tuple[Delivery, delivery.PutBack]] = []
        for part in _parts(deliveries):
            if not self.lease.beat():
                self.returned |= {item.message_id for item in part}
                continue
            waiting += self._claim(part)
        if waiting:
            self._wait(waiting)

    def _claim(self, deliveries: Sequence[Delivery]) -> list[tuple[Delivery, delivery.PutBack]]:
        """Claim jobs; return those that have to wait."""
        requests = self._requests(deliveries)
        return self._take_claims(list(map(_Claimed, deliveries, requests, self._answers(requests))))

    def _requests(self, deliveries: Sequence[Delivery]) -> list[ClaimRequest]:
        now, alone, rules = self.ports.clock.now(), len(self.deliveries) == 1, self.ports.rules
        return [
            ClaimRequest(
                item.message.key, item.message.fence, item.message_id, self._nonce(item), now, alone, now + delivery.hold_ms(item, rules)
            )
            for item in deliveries
        ]

    def _answers(self, requests: Sequence[ClaimRequest]) -> Sequence[ClaimResult | None]:
        try:
            return self.ports.jobs.claim(requests)
        except Unavailable:
            return [None] * len(requests)

    def _take_claims(self, claims: Sequence[_Claimed]) -> list[tuple[Delivery, delivery.PutBack]]:
        """Take the jobs that were claimed under a lease; return those that have to wait."""
        now, rules = self.ports.clock.now(), self.ports.rules
        lost: list[Job] = []
        later: list[_Write] = []
        waiting: list[tuple[Delivery, delivery.PutBack]] = []
        for claimed in claims:
            item, decision = claimed.item, claimed.decision(now)
            if isinstance(decision, delivery.Run):
                self._take(item, decision.job, now)
            elif isinstance(decision, delivery.PutBack):
                waiting.append((item, decision))
            elif isinstance(decision, delivery.TakeBack):
                self.lease.in_hand[item.message.key] = item
                lost.append(decision.job)
            elif isinstance(decision, delivery.Later):
                self.lease.in_hand[item.message.key] = item
                slot = slots.place(decision.at, now, decision.job.id, rules.shards).slot
                later.append(_Write(Change.of_slot(decision.job, lifecycle.move(decision.job, slot=slot, due_at=decision.at))))
        self._write(later)
        if lost:
            self._take_back(lost, now)
        return waiting

    def _wait(self, waiting: Sequence[tuple[Delivery, delivery.PutBack]]) -> None:
        """Defer the messages of jobs that have to wait.

        If other jobs of a pack run here, the message stays with them. Each waiting job is then requeued in a message of its own, and also
        if other jobs of the pack need no message any more: they would be claimed for nothing each time.
        """
        busy = {item.message_id for item in self.lease.in_hand.values()}
        needed = {item.message_id for item, decision in waiting if decision.claimed}  # no other message may name these jobs
        jobs = Counter(item.message_id for item, _ in waiting)
        whole: dict[str, tuple[Delivery, int]] = {}
        alone: list[tuple[Delivery, int]] = []
        for item, decision in waiting:
            if item.message_id not in busy and (item.message_id in needed or jobs[item.message_id] == item.jobs):
                seconds = min(decision.seconds, whole.get(item.message_id, (item, decision.seconds))[1])
                whole[item.message_id] = item, seconds
            elif decision.claimed:  # its message is delivered again after the batch
                self.returned.add(item.message_id)
            else:
                alone.append((item, decision.seconds))
        for item, seconds in whole.values():
            self._put_back(item, seconds)
        if alone:
            self._send_alone(alone)

    def _send_alone(self, waiting: Sequence[tuple[Delivery, int]]) -> None:
        now = self.ports.clock.now()
        again = {item.message._replace(sent_at=now, not_before=now + seconds * 1000): item for item, seconds in waiting}
        try:
            refused = self.ports.lanes.send(list(again), now)
        except Unavailable:
            refused = list(again)
        self.returned |= {again[message].message_id for message in refused}  # the pack is delivered again after the batch

    def _nonce(self, item: Delivery) -> str:
        return f"{item.message_id}/{self.request_id}/{item.receive_count}"

    def _take(self, item: Delivery, job: Job, now: int) -> None:
        self.lease.in_hand[job.key] = item
        self._measure(item, now)
        wait = job.due_at - now
        gated = self.admission.concerns(job)
        is_asked = gated and wait > 0  # even if little time is left: a check at the instant would make the job late
        more = 0 if gated else round(len(self.deliveries) * READ_EACH_MS) if len(self.deliveries) > delivery.BATCH else 0
        read_at = job.due_at - READ_AHEAD_MS - self._spread() - more if wait > FRESH_CLAIM_MS or is_asked else None
        read_at = read_at if job.cancel_requested_at is None else now
        ahead = self.process.ahead(job, len(self.deliveries))
        self._held.append(_Held(job, read_at, waited=wait > FRESH_CLAIM_MS, start_at=job.due_at, gated=gated, ahead=ahead))

    def _measure(self, item: Delivery, now: int) -> None:
        """Measure the latency of this job's message, unless it waited for another reason."""
        sent_at, delay = item.message.sent_at, max(item.message.not_before - item.message.sent_at, 0) // 1_000 * 1_000
        if sent_at and item.receive_count == 1 and item.jobs == 1 and bool(delay) == bool(item.message.not_before):
            at_once, delayed = self.process.meters
            (delayed if delay else at_once).add(now - sent_at - delay)

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
        after = self._shared([settlement.take_back(job, now, rules) for job in lost], now)
        self._write([_Write(Change(job, back, Guard.LEASE)) for job, back in zip(lost, after, strict=True)])

    # wait and start

    def _read_again(self) -> None:
        """Read waiting jobs again just before their instant; drop the jobs that this executor must no longer start."""
        now = self.ports.clock.now()
        if not [held for held in self._held if held.read_at is not None and held.read_at <= now]:
            return
        near = [held for held in self._held if held.read_at is not None and (held.read_at <= now or held.next_at <= now + READ_WINDOW_MS)]
        try:
            stored: Mapping[JobKey, Job] = self._stored([held.job for held in near])
        except Unavailable:
            stored = {held.job.key: held.job for held in near}  # start them: a cancel that was not read is too late
        ours = {held.job.key: held for held in near if self._still_ours(held.job, stored.get(held.job.key))}
        for held in near:
            held.read_at = None
        flagged = [job for key in ours if (job := stored[key]).cancel_requested_at is not None]
        self._drop({held.job.key for held in near} - ours.keys() | {job.key for job in flagged})
        self._write([self._cancelled(job, self.ports.clock.now()) for job in flagged])
        self._look_ahead([held for key, held in ours.items() if stored[key].cancel_requested_at is None], now)

    def _look_ahead(self, near: Sequence[_Held], now: int) -> None:
        """Decide what is decided before the instant: requeue the jobs of a paused lane to its waiting room, else check the gates."""
        self.lease.beat()
        if near and self.process.pauses.is_paused(self.lane, SEEN_MS - READ_WINDOW_MS):  # no read is needed when one of them starts
            self._give_back(near, now)
        elif gated := [held.job for held in near if held.gated]:
            for held in near:  # the others go to the pool at once: the gates may take until the instant
                if held.ahead and not held.gated and held.next_at <= now + READ_WINDOW_MS:
                    held.ahead = READ_WINDOW_MS
            self._start_due()
            if not self.lease.is_lost():
                self._act(self.admission.ahead(gated), now)

    def _give_back(self, paused: Sequence[_Held], now: int) -> None:
        self._act(dict.fromkeys((held.job.key for held in paused), gate.PAUSED), now)

    def _stored(self, jobs: Sequence[Job]) -> Mapping[JobKey, Job]:
        """Read claimed jobs at half the price. A cancel of the last moments may be missed, and is then too late.

        A read may also miss the claim itself: a job that no longer seems to be this executor's is read again. If that read is
        refused, it is this executor's. Raises Unavailable if the first read is refused.
        """
        seen = self.ports.jobs.glance(jobs)
        lost = {job.key: job for job in jobs if not _is_same(job, seen.get(job.key))}
        if not lost:
            return seen
        self.lease.beat()
        try:
            return {**seen, **self.ports.jobs.get_many(list(lost))}
        except Unavailable:
            return {**seen, **lost}

    def _still_ours(self, ours: Job, stored: Job | None) -> bool:
        if _is_same(ours, stored):
            return True
        self.lease.in_hand.pop(ours.key, None)
        return False

    def _drop(self, keys: Collection[JobKey]) -> list[Job]:
        """Remove these jobs from the waiting ones and return them; they do not start here."""
        if not keys:
            return []
        keys = set(keys)
        dropped = [held.job for held in self._held if held.job.key in keys]
        self._held = [held for held in self._held if held.job.key not in keys]
        self.admission.left(dropped)
        return dropped

    def _start_due(self) -> None:
        now = self.ports.clock.now()
        due = [held for held in self._held if held.leaves_at(now) <= now]
        if not due:
            return
        self.lease.beat()
        if not self._is_open(due, now):
            return
        self.lease.beat()
        gone = self._note_starts([held for held in due if held.is_ready(now)])
        due = [held for held in due if held.job.key not in gone]
        if not self._is_open(due, self.ports.clock.now()) or self.lease.is_lost():
            return  # storing the starts, or the checks, took long
        now = self.ports.clock.now()
        late = {held.job.key: Skip(why) for held in due if (why := misfire.too_late(held.job, max(now, held.next_at)))}
        ready = self._start([held for held in due if held.is_ready(now) and held.job.key not in late], now)
        if late:
            self._act(late, now)
        if len(ready) >= CROWD and sum(held.waited for held in ready) >= CROWD:
            least, most = LINGER_MS
            linger = least + self._spread() * (most - least) // READ_SPREAD_MS + round(LINGER_EACH_MS * len(ready))
            self._settle_at = max(now, ready[-1].start_at) + linger

    def _is_open(self, due: Sequence[_Held], now: int) -> bool:
        """Return whether the lane is not paused; else give back these jobs, or check again soon if that is not known.

        An executor that was frozen since the last read may have missed a pause.
        """
        try:
            paused = self.process.pauses.is_paused(self.lane, SEEN_MS, trust_ms=TRUSTED_MS)
        except Unavailable:
            self._act(dict.fromkeys((held.job.key for held in due), UNDECIDED), now)
            return False
        if paused:
            self._give_back(due, now)
        return not paused

    def _start(self, ready: Sequence[_Held], now: int) -> list[_Held]:
        """Start jobs, as many as the executor has room for; return them. The others try again soon, then another executor gets them."""
        started: list[_Held] = []
        full: list[tuple[_Held, int]] = []  # with the time since the executor was found full
        for held in ready:
            if self.work.has_room(held.job):
                self.work.start(held.job, held.not_after(), held.task)
                started.append(held)
                continue
            held.full_at = since = held.full_at or now
            held.ask_at = now + FULL_AGAIN_MS
            full.append((held, now - since))
        here = self.work.owners() if full else ()
        crowded: dict[JobKey, Verdict] = {
            held.job.key: Requeue(RequeueCause.CROWDED, gate.CROWDED, at=now)
            for held, ms in full
            if ms >= (FULL_MS if held.job.owner in here or held.job.requeue_cause is RequeueCause.CROWDED else BESIDE_MS)
        }
        keys = {held.job.key for held in started}
        self._held = [held for held in self._held if held.job.key not in keys]
        self._act(crowded, now)
        return started

    def _note_starts(self, ready: Sequence[_Held]) -> set[JobKey]:
        """Store the starts of jobs that have crashed before, so that another crash is charged; drop the jobs that were taken back.

        If the table refuses, the job starts nevertheless: a crash is then not charged. Returns the dropped jobs.
        """
        gone: set[JobKey] = set()
        for held in [held for held in ready if held.job.started_at is None and lifecycle.notes_start(held.job)]:
            before = held.job
            held.job = lifecycle.start(before, max(self.ports.clock.now(), before.due_at))
            try:
                (written,) = self.ports.jobs.change([Change(before, held.job)])
            except Unavailable:
                written = Written.REFUSED
            if written is Written.NO:
                self.lease.in_hand.pop(before.key, None)
                self._held.remove(held)
                gone.add(before.key)
        return gone

    def _admit(self) -> bool:
        """Check the gates of jobs that are due and not cleared yet. False if there are none, or the lane is paused."""
        now = self.ports.clock.now()
        asking = [held for held in self._held if held.gated and held.next_at <= now and not held.is_ready(now)]
        if not asking:
            return False
        self.lease.beat()
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
                held.task = verdict.task
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
            self._write([self._dropped(job, dropped[job.key]) for job in self._drop(dropped)])

    def _dropped(self, job: Job, verdict: Cancel | Skip | Requeue) -> _Write:
        now = self.ports.clock.now()
        if isinstance(verdict, Requeue) and job.cancel_requested_at is not None:
            return self._cancelled(job, now)
        if isinstance(verdict, Requeue):
            after = self._requeued(job, verdict, now)
            if verdict.room is not None and not self.process.direct.want({after.slot or ""}, now):
                verdict = replace(verdict, at=now + ROOM_AGAIN_MS)  # the end of its wait would not be noticed there
                after = self._requeued(job, verdict, now)
            if verdict.cause is RequeueCause.CROWDED:
                direct, again = self.process.direct, job.requeue_cause is RequeueCause.CROWDED
                # Messages of their own would fill the executors: of the jobs that fill this one, and of one that meets such jobs each time.
                (after,) = (direct.divert if again or job.owner in self.work.owners() else direct.place)([after], now)
            elif verdict.cause is RequeueCause.SHARE:
                (after,) = self.process.direct.divert([after], now)
                if not slots.is_overflow(after.slot or ""):  # the ledger refused; sent directly, the job would come back at once
                    verdict = replace(verdict, at=now + ROOM_AGAIN_MS)
                    after = self._requeued(job, verdict, now)
            return _Write(Change(job, after, Guard.CANCEL), verdict)
        end = lifecycle.cancel if isinstance(verdict, Cancel) else lifecycle.skip
        return _Write(Change(job, end(job, now, reason=verdict.reason, retention=self.ports.rules.retention)))

    def _requeued(self, job: Job, verdict: Requeue, now: int) -> Job:
        return settlement.requeue(
            job,
            verdict.cause,
            verdict.reason,
            now,
            self.ports.rules,
            at=verdict.at,
            look_at=verdict.look_at,
            target=verdict.target,
            room=verdict.room,
        )

    def _cancelled(self, job: Job, now: int) -> _Write:
        """Return the end of a job that does not start, for which a cancel was requested."""
        return _Write(Change(job, settlement.cancel(job, now, self.ports.rules)))

    def _wake(self) -> int:
        """Return when there is something to do next (ms), unless a job finishes before."""
        now, look = self.ports.clock.now(), self.work.next_look()
        wake = now + self.lease.next_beat()
        if look is not None and look < wake:
            wake = look
        for held in self._held:
            at = held.leaves_at(now) if held.read_at is None else min(held.read_at, held.next_at)
            if at < wake:
                wake = at
        if self._unwritten:
            wake = min(wake, self._write_at)
        return min(wake, self._settle_at) if self._done else wake

    # settle

    def _came_back(self, done: Sequence[Finished]) -> None:
        self._done += done
        self.admission.ended([each for each in done if not each.result.unstarted])
        self.admission.left([each.job for each in done])

    def _settle(self) -> None:
        """Settle the finished jobs in one write, once the other jobs of their instant have started and none leaves soon."""
        if not self._done or (now := self.ports.clock.now()) < self._settle_at:
            return
        if (at := self._clear_at(now)) > now:
            self._settle_at = at
            return
        done, self._done = self._done, []
        self._write(self._settlements(done, now))

    def _clear_at(self, now: int) -> int:
        """When to look again whether the finished jobs can be settled (ms); `now`: at once, also if other jobs wait for their ends."""
        leaving = [at for held in self._held if abs((at := held.leaves_at(now)) - now) <= CLEAR_MS]  # some may be due, but not started yet
        if not leaving or any(self.admission.concerns(each.job) for each in self._done):
            return now
        return min(max(now, *leaving) + BEGUN_MS, self._done[0].ended_at + DEFER_MS)

    def _settlements(self, done: Sequence[Finished], now: int) -> list[_Write]:
        rules = self.ports.rules
        after = self._shared([settlement.returned(each, now, rules) for each in done], now)
        # The write that accepts a job may be repeated after a lost answer; it must not undo a lease that a heartbeat got in between.
        guards = [Guard.LEASE if waits(job) else Guard.FENCE for job in after]
        changes = [Change(each.job, job, guard) for each, job, guard in zip(done, after, guards, strict=True)]
        return [_Write(change, done=each) for change, each in zip(changes, done, strict=True)]

    def _shared(self, after: Sequence[Job], now: int) -> Sequence[Job]:
        """Return the jobs; the retries among them that are beyond the direct path are moved to the overflow slots."""
        retries = [job for job in after if job.lane is Lane.RETRY and job.claim is None and is_open(job)]
        if not retries:
            return after
        moved = {job.key: job for job in self.process.direct.place(retries, now)}
        return [moved.get(job.key, job) for job in after]

    def _write(self, writes: Sequence[_Write]) -> None:
        """Apply changes under their fences; then enqueue the jobs that go to a lane at once. Refused changes are tried again later."""
        if not writes:
            return
        refused: list[_Write] = []
        for part in _parts(writes):
            if not self.lease.beat():
                self._unwritten += part  # without its lease the executor writes nothing
                continue
            refused += self._try(part)
        self._refusals = self._refusals + 1 if refused else 0
        if refused:
            self._unwritten += refused
            pause = WRITE_PAUSES_MS[min(self._refusals, len(WRITE_PAUSES_MS)) - 1]
            self._write_at = self.ports.clock.now() + pause
            if self._refusals == 1:
                log.warning("the table refuses to settle jobs; they are tried again", extra={"jobs": len(self._unwritten)})

    def _write_again(self) -> None:
        """Try the refused changes again. The lease is renewed just before: a call to a table that does not answer takes long."""
        if not self._unwritten or (now := self.ports.clock.now()) < self._write_at or not self.lease.renew():
            return
        again, self._unwritten = [each.again(now, self.ports.rules) for each in self._unwritten], []
        self._write(again)

    def _try(self, writes: Sequence[_Write]) -> list[_Write]:
        """Apply the changes once; return the refused ones."""
        try:
            held = self.ports.jobs.change([each.change for each in writes])
        except Unavailable:
            return list(writes)
        applied, refused, changed = list[_Write](), list[_Write](), list[_Write]()
        for each, ok in zip(writes, held, strict=True):
            change = each.change
            if ok is Written.REFUSED:
                refused.append(each)
                continue
            if ok is Written.NO and change.guard is Guard.CANCEL:
                changed.append(each)
                continue
            self.lease.in_hand.pop(change.before.key, None)
            if ok is Written.YES:
                applied.append(each)
            elif waits(change.after):
                log.info("the worker reported before its job was accepted, or the job has changed since", extra=change.before.log_context())
            else:
                log.warning("could not settle a job: its fence has changed", extra=change.before.log_context())
        free_waiting([each.change for each in applied], self.ports)
        requeues = {each.change.before.key: each.requeue for each in applied if each.requeue is not None}
        self.onward.send([each.change.after for each in applied], requeues)
        return refused + self._cancel_instead(changed)

    def _cancel_instead(self, requeues: Sequence[_Write]) -> list[_Write]:
        """End jobs for which a cancel was requested while they were being requeued; return the writes that the table refused.

        A cancel that a job took along into its slot would be noticed only when the job is claimed again.
        """
        if not requeues:
            return []
        try:
            stored = self.ports.jobs.get_many([each.change.before.key for each in requeues])
        except Unavailable:
            return list(requeues)
        ours = [each for each in requeues if self._still_ours(job := each.change.before, stored.get(job.key))]
        if len(ours) < len(requeues):
            log.warning("could not requeue jobs: their fences have changed", extra={"jobs": len(requeues) - len(ours)})
        flagged = {key: job for key, job in stored.items() if job.cancel_requested_at is not None}
        cancels = [self._cancelled(flagged[key], self.ports.clock.now()) for each in ours if (key := each.change.before.key) in flagged]
        return [each for each in ours if each.change.before.key not in flagged] + (self._try(cancels) if cancels else [])


T = TypeVar("T")


def _is_same(ours: Job, stored: Job | None) -> bool:
    """Whether the stored job is open, under the claim of this executor."""
    return stored is not None and is_open(stored) and stored.fence == ours.fence and stored.claim == ours.claim


def _parts(values: Sequence[T]) -> list[Sequence[T]]:
    return [values[first : first + AT_ONCE] for first in range(0, len(values), AT_ONCE)]


def _messages(deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Return one delivery of each message."""
    return list({item.message_id: item for item in deliveries}.values())


def execute(
    lane: Lane,
    deliveries: Sequence[Delivery],
    ports: Ports,
    process: Process,
    *,
    pool: Pool,
    request_id: str,
    left_ms: int = LONGEST_MS,
) -> list[str]:
    """Run one batch. Returns the ids of the messages to leave in the queue; the others may be deleted.

    `left_ms`: the time until the invocation is ended. Work that has not been settled shortly before that is left to another executor.
    """
    breakers, limits = BreakerGate(process.circuits, ports.clock), LimitGate(process.named, ports)
    owners, share = OwnerGate(process.owners, ports), ShareGate(lane, process.pauses, ports)
    # Limits last: a start uses up a slot. The share of executors just before: it takes a place.
    gates: tuple[Gate, ...] = (owners, OrderingGate(ports), RunGate(ports), breakers, share, limits)
    batch = Execution(
        lane,
        [single for item in deliveries for single in item.singles()],
        request_id,
        ports,
        process,
        lease=Lease(lane, ports, left_ms - STOP_MS),
        gates=gates,
        followers=(breakers, limits),
        work=RunningJobs(pool, ports),
        share=share,
    )
    left = batch.run()
    share.close()
    process.owners.look()
    for meter in process.meters:
        meter.report(ports.ledger, ports.clock.now(), ports.rules.deployment)
    return left
