"""Claim the jobs of a batch: lease the messages, claim the jobs, and defer the messages of those that have to wait."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.admission.gate import Requeue
from scheduler.admission.lane_state import TRUSTED_MS
from scheduler.admission.owner_gate import STALE_MS
from scheduler.model import lifecycle, settlement, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Delivery, Job, JobKey, RequeueCause
from scheduler.model.lifecycle import waits
from scheduler.pipeline import bundles, delivery, waiting_room
from scheduler.pipeline.batch import Batch, parts
from scheduler.pipeline.batch_writes import BatchWrites, Write
from scheduler.pipeline.verdicts import Verdicts
from scheduler.pipeline.waiting_jobs import FRESH_CLAIM_MS, WaitingJobs
from scheduler.storage.ports import Change, ClaimRequest, ClaimResult, Guard

FEW_DUE = 3  # as many due jobs are claimed beside their lease; for more, another thread takes more processor time than it saves
UNLEASED_MS = 5_000  # a job is started this much later whose message the queue refused to lease

log = logging.getLogger(__name__)


class _Claimed(NamedTuple):
    """The delivery of a job with the answer to its claim; None: the table refused."""

    item: Delivery
    request: ClaimRequest
    answer: ClaimResult | None

    def decision(self, now: int) -> delivery.Decision:
        hold_ms = self.request.due_by - self.request.at
        return delivery.decide(self.item, self.answer, self.request.nonce, now, hold_ms=hold_ms)


@dataclass(slots=True)
class Claims:
    """The deliveries of one batch, until their jobs are claimed. `returned`: the ids of the messages that stay in the queue."""

    batch: Batch
    writes: BatchWrites
    verdicts: Verdicts
    jobs: WaitingJobs
    deliveries: Sequence[Delivery]  # one for each job
    returned: set[str] = field(default_factory=set)

    def are_due(self) -> bool:
        """Return whether the jobs are few, all due, and none is known to be kept from its start: then each call delays them."""
        now, known = self.batch.ports.clock.now(), self.batch.process.pauses
        if not 0 < len(self.deliveries) <= FEW_DUE or known.known is None or self.batch.lane in known.paused:
            return False
        return all(item.message.due_at <= now and item.message.fence == 1 for item in self.deliveries)

    def claim_at_once(self) -> None:
        """Claim jobs that are due, while their messages are leased and the executor reads who must not start any: none of these calls waits
        for another one. A job whose message was not leased is requeued by a write; what the reads forbid is checked before each start."""
        pauses, owners = self.batch.process.pauses, self.batch.process.owners
        receipts, requests = sorted({item.receipt for item in self.deliveries}), self._requests(self.deliveries)
        reads: list[Callable[[], object]] = [pauses.refresh] if pauses.is_due() else []
        reads += [owners.refresh] if owners.is_due(STALE_MS) else []
        leased, answers, *_ = self.batch.ports.side_by_side(
            lambda: self.batch.lease.take(receipts), lambda: self._answers(requests), *reads
        )
        claims = list(map(_Claimed, self.deliveries, requests, answers))
        unleased = [each for each in claims if each.item.receipt not in leased]
        self.returned |= {each.item.message_id for each in unleased}
        if waiting := self._take_claims([each for each in claims if each.item.receipt in leased]):
            self._wait(waiting)
        now = self.batch.ports.clock.now()
        later = Requeue(RequeueCause.REFUSED, "the queue refused the lease of its message", at=now + UNLEASED_MS)
        decisions = [each.decision(now) for each in unleased]
        self.writes.apply([self.verdicts.write_of(each.job, later) for each in decisions if isinstance(each, delivery.Run)])

    def claim_ahead(self) -> bool:
        """Claim the jobs that need not wait. False if nothing is known about the lane, and all messages are deferred."""
        try:
            if self.batch.process.pauses.is_paused(self.batch.lane, trust_ms=TRUSTED_MS):
                self._make_wait()
        except Unavailable:  # raised only in a process that is new or was idle: any other one uses the state that it read last
            for item in _messages(self.deliveries):
                self._put_back(item, delivery.refused(item).seconds)
            return False
        self._send_on()
        if ready := self._hide_early():
            leased = self.batch.lease.take(sorted({item.receipt for item in ready}))
            self.returned |= {item.message_id for item in ready if item.receipt not in leased}
            self._claim_all([item for item in ready if item.receipt in leased])
        return True

    def _make_wait(self) -> None:
        """Move the jobs of a paused lane into its waiting room, and forget their messages.

        Deliveries of other jobs stay: of claimed ones, whose executor or worker may be gone, and those that the table refused to move. All
        stay if the lane was resumed in between.
        """
        moved: set[JobKey] = set()
        for part in parts(self.deliveries):
            moved |= waiting_room.enter({item.message.key: item.message.fence for item in part}, self.batch.ports)
        if self.batch.process.pauses.is_paused(self.batch.lane):
            log.info("the lane is paused: jobs moved to its waiting room", extra={"jobs": len(moved), "of": len(self.deliveries)})
            self.deliveries = [item for item in self.deliveries if item.message.key not in moved]

    def _send_on(self) -> None:
        """Send on the jobs of bundles that are due later; the others stay here."""
        far = bundles.far_jobs(self.deliveries, self.batch.ports.clock.now(), self.batch.ports.rules.hold_ms)
        if not far:
            return
        gone = {(item.message_id, item.message.key) for item in far}  # another message may name the job as it was edited since
        self.deliveries = [item for item in self.deliveries if (item.message_id, item.message.key) not in gone]
        leased = self.batch.lease.take(sorted({item.receipt for item in far}))  # a bundle whose executor ends now is delivered again soon
        self.returned |= {item.message_id for item in far if item.receipt not in leased}
        onward = [item for item in far if item.receipt in leased]
        refused = bundles.send_on(onward, self.batch.ports, may_wait=not self.deliveries)
        busy = {item.message_id for item in self.deliveries}
        self.returned |= refused & busy  # it is delivered again after the batch
        for item in _messages(onward):
            if item.message_id in refused - busy:
                self._put_back(item, delivery.PUT_BACK_S)

    def _hide_early(self) -> list[Delivery]:
        """Hide the messages that are too early to claim their jobs; return the deliveries of the others, by due time."""
        now, firsts = self.batch.ports.clock.now(), dict[str, int]()
        for item in self.deliveries:
            firsts[item.message_id] = min(firsts.get(item.message_id, item.message.due_at), item.message.due_at)
        for item in _messages(self.deliveries):
            if wait := delivery.early(item, firsts[item.message_id], now, self.batch.ports.rules):
                self._put_back(item, wait.seconds)
        return sorted((item for item in self.deliveries if item.message_id not in self.returned), key=lambda item: item.message.due_at)

    def _claim_all(self, deliveries: Sequence[Delivery]) -> None:
        waiting: list[tuple[Delivery, delivery.PutBack]] = []
        for part in parts(deliveries):
            if not self.batch.lease.renew_if_due():
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
        now, alone, rules = self.batch.ports.clock.now(), len(self.deliveries) == 1, self.batch.ports.rules
        return [
            ClaimRequest(
                *(item.message.key, item.message.fence, item.message_id, self._nonce(item), now, alone),
                now + delivery.hold_ms(item, rules),
                revocable=item.message.due_at - now > FRESH_CLAIM_MS,
            )
            for item in deliveries
        ]

    def _answers(self, requests: Sequence[ClaimRequest]) -> Sequence[ClaimResult | None]:
        try:
            return self.batch.ports.jobs.claim(requests)
        except Unavailable:
            return [None] * len(requests)

    def _take_claims(self, claims: Sequence[_Claimed]) -> list[tuple[Delivery, delivery.PutBack]]:
        """Take the jobs that were claimed under a lease; return those that have to wait."""
        now, rules = self.batch.ports.clock.now(), self.batch.ports.rules
        lost: list[Job] = []
        later: list[Write] = []
        waiting: list[tuple[Delivery, delivery.PutBack]] = []
        for claimed in claims:
            item, decision = claimed.item, claimed.decision(now)
            if isinstance(decision, delivery.Run):
                self.batch.lease.in_hand[decision.job.key] = item
                self._measure(item, now)
                self.jobs.take(decision.job, now, len(self.deliveries))
            elif isinstance(decision, delivery.PutBack):
                waiting.append((item, decision))
            elif isinstance(decision, delivery.Check):
                if self.batch.work.has_room(decision.job):
                    self.batch.lease.in_hand[item.message.key] = item
                    self.batch.work.start(decision.job, None, None)
                else:
                    waiting.append((item, delivery.PutBack(1, claimed=True)))
            elif isinstance(decision, delivery.TakeBack):
                self.batch.lease.in_hand[item.message.key] = item
                lost.append(decision.job)
            elif isinstance(decision, delivery.Later):
                self.batch.lease.in_hand[item.message.key] = item
                slot = slots.place(decision.at, now, decision.job.id, rules.shards).slot
                later.append(Write(Change.of_slot(decision.job, lifecycle.move(decision.job, slot=slot, due_at=decision.at))))
        self.writes.apply(later)
        if lost:
            self._take_back(lost, now)
        return waiting

    def _wait(self, waiting: Sequence[tuple[Delivery, delivery.PutBack]]) -> None:
        """Defer the messages of jobs that have to wait.

        If other jobs of a pack run here, the message stays with them. Each waiting job is then requeued in a message of its own, and also
        if other jobs of the pack need no message any more: they would be claimed for nothing each time.
        """
        busy = {item.message_id for item in self.batch.lease.in_hand.values()}
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
        now = self.batch.ports.clock.now()
        again = {item.message._replace(sent_at=now, not_before=now + seconds * 1000): item for item, seconds in waiting}
        try:
            refused = self.batch.ports.lanes.send(list(again), now)
        except Unavailable:
            refused = list(again)
        self.returned |= {again[message].message_id for message in refused}  # the pack is delivered again after the batch

    def _nonce(self, item: Delivery) -> str:
        return f"{item.message_id}/{self.batch.request_id}/{item.receive_count}"

    def _measure(self, item: Delivery, now: int) -> None:
        """Measure the latency of this job's message, unless it waited for another reason."""
        sent_at, delay = item.message.sent_at, max(item.message.not_before - item.message.sent_at, 0) // 1_000 * 1_000
        if sent_at and item.receive_count == 1 and item.jobs == 1 and bool(delay) == bool(item.message.not_before):
            at_once, delayed = self.batch.process.meters
            (delayed if delay else at_once).add(now - sent_at - delay)

    def _put_back(self, item: Delivery, seconds: int) -> None:
        self.returned.add(item.message_id)
        try:
            self.batch.ports.lanes.extend(self.batch.lane, [item.receipt], seconds)
        except Unavailable:
            log.info("could not defer a message; it is delivered again when its lease ends", extra={"message_id": item.message_id})

    def _take_back(self, lost: Sequence[Job], now: int) -> None:
        for job in lost:
            log.warning("the worker did not report within its lease" if waits(job) else "the executor died", extra=job.log_context())
        rules = self.batch.ports.rules
        after = self.writes.place_retries([settlement.take_back(job, now, rules) for job in lost], now)
        self.writes.apply([Write(Change(job, back, Guard.LEASE)) for job, back in zip(lost, after, strict=True)])


def _messages(deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Return one delivery of each message."""
    return list({item.message_id: item for item in deliveries}.values())
