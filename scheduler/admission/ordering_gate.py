"""The gate of a job with an ordering key: whether its turn has come.

It is asked at the instant alone, for a job with an earlier place may come until then. Whoever it lets through has written that the turn
is his under a condition, so two executors never let two of a key through.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.admission import ordering
from scheduler.admission.gate import UNDECIDED, Clear, Requeue, Verdict
from scheduler.admission.ordering import Decision, LookAgain, LookLater, Start, Wait
from scheduler.admission.ordering_queue import HEAD, named
from scheduler.model.errors import Unavailable
from scheduler.model.job import Finished, Job, JobKey, Line, Marker, OrderKey, RequeueCause, Turn
from scheduler.storage.ports import Ports, Written

ROUNDS = 5  # looks at lines that others change at the same time, or that have to be tidied first

log = logging.getLogger(__name__)


@dataclass(slots=True)
class OrderGate:
    """See `admission.Gate`. Of several jobs of one line in one call the first is decided; the others are behind it."""

    ports: Ports

    def concerns(self, job: Job) -> bool:
        return job.spec.ordering is not None

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        return {}

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """The verdicts on jobs whose instant has come."""
        left, verdicts = _by_line(jobs), dict[JobKey, Verdict]()
        try:
            for _ in range(ROUNDS):
                if left:
                    verdicts |= self._round(left)
        except Unavailable:
            log.info("lines not read: the table refuses for now", extra={"keys": len(left)})
        return dict.fromkeys((job.key for job in jobs), UNDECIDED) | verdicts

    def left(self, jobs: Sequence[Job]) -> None:
        """Nothing: the turn goes with its job."""

    def ended(self, done: Sequence[Finished]) -> None:
        """Nothing."""

    def _round(self, left: dict[OrderKey, list[Job]]) -> dict[JobKey, Verdict]:
        """One read of everything, one write of each kind. Takes those lines out of `left` that need no other look now."""
        asked_at = self.ports.clock.now()
        lines = self.ports.orders.lines(sorted(left), limit=HEAD)
        known = self._known(lines, left)
        decisions = {order: _decide(jobs, lines[order], known, asked_at) for order, jobs in left.items()}
        self._tidy([decision for _, decision in decisions.values()])
        written = self._take_turns({order: decision for order, (_, decision) in decisions.items()}, lines)
        verdicts: dict[JobKey, Verdict] = {}
        for order, (first, decision) in decisions.items():
            if isinstance(decision, LookLater) or (isinstance(decision, Start) and written.get(order) is Written.REFUSED):
                del left[order]  # undecided: it is asked again, but not at once
            elif isinstance(decision, Wait) or (isinstance(decision, Start) and written.get(order, Written.YES) is Written.YES):
                verdicts |= _verdicts(first, left.pop(order), decision, asked_at)
        return verdicts

    def _known(self, lines: Mapping[OrderKey, Line], asking: Mapping[OrderKey, Sequence[Job]]) -> dict[JobKey, Job]:
        """The jobs that the lines name and those that ask, as they are known to whoever asks, or else read now.

        One that asks and had the last turn is read as well. An executor that stood still may have lost it: then it runs elsewhere, by
        that turn. (If another one of them does, it took the turn after the lines were read, and a turn is only taken from its version.)
        """
        ours = {job.key: job for jobs in asking.values() for job in jobs}
        turns = {line.turn.key for line in lines.values() if line.turn is not None}
        read = sorted({key for line in lines.values() for key in named(line)} - (ours.keys() - turns))
        return ours | (self.ports.jobs.get_many(read) if read else {})

    def _tidy(self, decisions: Sequence[Decision]) -> None:
        missing = [decision.missing for decision in decisions if isinstance(decision, LookAgain) and decision.missing is not None]
        stale: list[Marker] = [marker for decision in decisions if isinstance(decision, Start | LookAgain) for marker in decision.stale]
        if missing:
            log.info("markers were missing", extra={"jobs": [marker.job for marker in missing]})
            self.ports.orders.enqueue(missing)
        if stale:
            self.ports.orders.leave(stale)

    def _take_turns(self, decisions: Mapping[OrderKey, Decision], lines: Mapping[OrderKey, Line]) -> dict[OrderKey, Written]:
        """Whether each turn that had to be written is."""
        changes: list[tuple[Turn | None, Turn]] = [
            (lines[order].turn, decision.turn)
            for order, decision in decisions.items()
            if isinstance(decision, Start) and decision.turn is not None
        ]
        held = self.ports.orders.take_turns(changes) if changes else []
        return {after.order: done for (_, after), done in zip(changes, held, strict=True)}


def _by_line(jobs: Sequence[Job]) -> dict[OrderKey, list[Job]]:
    lines: dict[OrderKey, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: ordering.marker(job).position):
        lines.setdefault(ordering.order_of(job), []).append(job)
    return lines


def _decide(jobs: Sequence[Job], line: Line, known: Mapping[JobKey, Job], now: int) -> tuple[Job, Decision]:
    """The job of these that decides for all: one that goes on with the turn it has, else the first of them."""
    asking = {job.key for job in jobs if known[job.key].claim == job.claim}
    decisions = [(job, ordering.decide(job, line, known, now, asking=asking)) for job in jobs]
    return next((each for each in decisions if isinstance(each[1], Start) and each[1].turn is None), decisions[0])


def _verdicts(first: Job, jobs: Sequence[Job], decision: Start | Wait, asked_at: int) -> dict[JobKey, Verdict]:
    if isinstance(decision, Wait) and decision.parked:
        look_at = asked_at + ordering.KEPT_PARKED_MS
        return {job.key: Requeue(RequeueCause.ORDERING, decision.reason, decision.blocker, look_at=look_at) for job in jobs}
    verdict = Clear(asked_at) if isinstance(decision, Start) else Requeue(RequeueCause.ORDERING, decision.reason, decision.blocker)
    behind: dict[JobKey, Verdict] = {job.key: Requeue(RequeueCause.ORDERING, ordering.after(first.id), first.key) for job in jobs}
    return behind | {first.key: verdict}
