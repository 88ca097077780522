"""The gate of a job of a named target: applies the target's rate and concurrency limit across all executors.

Jobs without a named target do not concern it. Jobs of a target without limits cost one read of the target per second and process.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.admission import limits
from scheduler.admission.gate import UNDECIDED, AskAgain, Clear, Requeue, Verdict
from scheduler.admission.limits import Answer, Ask, At, Place, Start, TargetUsage, Ticket, UsageChange
from scheduler.admission.target_cache import TargetCache
from scheduler.model.errors import Unavailable
from scheduler.model.job import Finished, Job, JobKey, RequeueCause
from scheduler.model.lifecycle import is_open
from scheduler.storage.ports import Ports, Written
from scheduler.targets.named_target import NamedTarget

ROUNDS = 5  # tries at a usage that other executors change at the same time
WAIT_MS = 2_000  # how long a due job waits for a concurrency slot before it is requeued with another instant ...
ASK_MS, SELDOM_MS = 50, 200  # ... and how often it checks, at first and later; checks only read until a slot is free
AWAY_MS = 1_000  # a requeued job is not delivered again sooner than this
LOOK_MS = 1_000  # how often to check that the holders of concurrency slots are still running

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LimitGate:
    """See `admission.Gate`. Belongs to one batch: it remembers the starts, reservations and slots of its jobs."""

    known: TargetCache
    ports: Ports
    _starts: dict[JobKey, int] = field(default_factory=dict)
    _tickets: dict[JobKey, int] = field(default_factory=dict)
    _waiting: dict[JobKey, int] = field(default_factory=dict)  # since when each job waits for a concurrency slot
    _placed: dict[JobKey, tuple[str, Place]] = field(default_factory=dict)  # by target
    _looked_at: dict[str, int] = field(default_factory=dict)
    _lost: dict[str, set[Place]] = field(default_factory=dict)  # slots whose jobs no longer run, as of the last check
    _took: dict[str, int] = field(default_factory=dict)  # how long jobs of a target keep their slots, as last read

    def concerns(self, job: Job) -> bool:
        return job.spec.target is not None

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Reserve the starts of a rate ahead: a job starts on the millisecond, and a job that must wait is requeued before its instant.

        A concurrency slot is taken at the instant only.
        """
        return self._judged(jobs, ahead=True)

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        return dict.fromkeys((job.key for job in jobs), UNDECIDED) | self._judged(jobs, ahead=False)

    def left(self, jobs: Sequence[Job]) -> None:
        """Free the concurrency slots of these jobs.

        Never raises: a slot that could not be freed is discovered when another job needs it.
        """
        if not self._placed:
            return
        left: dict[str, list[Place]] = {}
        for job in jobs:
            name, place = self._placed.pop(job.key, (None, None))
            if name is not None and place is not None:
                left.setdefault(name, []).append(place)
        try:
            for _ in range(ROUNDS):
                if not left:
                    return
                left = self._release(left)
        except Unavailable:
            pass
        log.info("could not free concurrency slots; the next job that needs one frees them", extra={"targets": sorted(left)})

    def ended(self, done: Sequence[Finished]) -> None:
        """Do nothing: their concurrency slots are free already."""

    def _release(self, ended: Mapping[str, list[Place]]) -> dict[str, list[Place]]:
        """Try once to free these slots and return the remaining ones.

        A slot missing from the table is free: another executor considered it lost, or its lease has run out.
        """
        now = self.ports.clock.now()
        uses = [limits.freed(name, places, self._took.get(name, limits.USUAL_MS), now) for name, places in ended.items()]
        left: dict[str, list[Place]] = {}
        for use, (done, usage) in zip(uses, self.ports.targets.use(uses), strict=True):
            stands = use.drops if usage is None else usage.places
            if done is not Written.YES and (there := [place for place in use.drops if place in stands]):
                left[use.target] = there
        return left

    def _judged(self, jobs: Sequence[Job], *, ahead: bool) -> dict[JobKey, Verdict]:
        verdicts: dict[JobKey, Verdict] = {}
        try:
            asked_at = self.ports.clock.now()
            found = self.known.look(job.spec.target for job in jobs if job.spec.target is not None)
            limited: dict[str, list[Job]] = {}
            for job in jobs:
                target = found[job.spec.target or ""]
                if target is None or not target.is_limited or not target.enabled:
                    verdicts[job.key] = Clear(asked_at)  # a job whose target does not exist fails when it starts
                elif not (ahead and target.rate is None):
                    limited.setdefault(target.name, []).append(job)
            targets = {name: target for name, target in found.items() if target is not None}
            usages: dict[str, TargetUsage] = {}
            for _ in range(ROUNDS):
                if limited:
                    limited = self._round(limited, targets, usages, verdicts, asked_at)
        except Unavailable:
            log.info("could not read limits; the jobs are checked again", extra={"jobs": len(jobs)})
        return verdicts

    def _round(
        self,
        asked: Mapping[str, list[Job]],
        targets: Mapping[str, NamedTarget],
        usages: dict[str, TargetUsage],
        verdicts: dict[JobKey, Verdict],
        asked_at: int,
    ) -> dict[str, list[Job]]:
        """Decide by the usages, after reading the unknown ones, and write them. Returns the jobs of targets whose write was refused."""
        if unknown := sorted(asked.keys() - usages.keys()):
            usages |= {name: TargetUsage(name) for name in unknown} | self.ports.targets.usages(unknown)
        now = self.ports.clock.now()
        uses: list[tuple[UsageChange, dict[JobKey, Answer]]] = []
        left: dict[str, list[Job]] = {}
        for name, jobs in asked.items():
            gone = self._gone(usages[name], targets[name], now)
            use, answers = limits.admit(usages[name], targets[name], self._asks(jobs, now), now, gone)
            if use is None:
                self._note(jobs, targets[name], answers, verdicts, asked_at, now)
            else:
                uses.append((use, answers))
        for (use, answers), (done, usage) in zip(uses, self.ports.targets.use([use for use, _ in uses]) if uses else [], strict=True):
            name = use.target
            if usage is not None:
                usages[name], self._took[name] = usage, usage.took_ms
            if done is Written.YES and usage is not None:
                self._note(asked[name], targets[name], limits.confirmed(answers, use, usage), verdicts, asked_at, now)
            else:
                left[name] = asked[name]
        return left

    def _asks(self, jobs: Sequence[Job], now: int) -> list[Ask]:
        return [self._ask(job, now) for job in sorted(jobs, key=lambda job: (job.due_at, job.id))]

    def _ask(self, job: Job, now: int) -> Ask:
        """The request of a job. The job keeps its start for WAIT_MS while it waits for a slot; then it asks for a reservation instead."""
        waits, since = job.key in self._waiting, self._waiting.get(job.key, now)
        ticket = self._tickets.get(job.key, job.due_at if job.reserved_at == job.due_at else None)
        if now - since >= WAIT_MS:
            return Ask(job.key, job.fence, job.spec.timeout_ms, now + AWAY_MS, again=True)
        start = now if waits else self._starts.get(job.key)
        return Ask(job.key, job.fence, job.spec.timeout_ms, max(job.due_at, now), ticket, start)

    def _gone(self, usage: TargetUsage, target: NamedTarget, now: int) -> Collection[Place]:
        """Concurrency slots whose executor has died or could not free them; checked only when no slot is free."""
        full = target.concurrency is not None and len(usage.places) >= target.concurrency
        if full and now - self._looked_at.get(target.name, -LOOK_MS) >= LOOK_MS:
            self._looked_at[target.name] = now
            found = self.ports.jobs.get_many([place.job for place in usage.places])
            self._lost[target.name] = {place for place in usage.places if not _runs(found.get(place.job), place.fence)}
        return self._lost.get(target.name, ())

    def _note(
        self,
        jobs: Sequence[Job],
        target: NamedTarget,
        answers: Mapping[JobKey, Answer],
        verdicts: dict[JobKey, Verdict],
        asked_at: int,
        now: int,
    ) -> None:
        for job in jobs:
            if job.key in answers:
                verdicts[job.key] = self._verdict(job, target, answers[job.key], asked_at, now)

    def _verdict(self, job: Job, target: NamedTarget, answer: Answer, asked_at: int, now: int) -> Verdict:
        if isinstance(answer, Start):
            self._waiting.pop(job.key, None)
            if answer.place is not None:
                self._placed[job.key] = (target.name, answer.place)
            return Clear(asked_at)
        if isinstance(answer, Ticket):
            gave_up = self._waiting.pop(job.key, None) is not None
            self._starts.pop(job.key, None)
            if answer.at - now > limits.NEAR_MS or gave_up or job.key in self._tickets:
                return Requeue(RequeueCause.LIMIT, f"target {target.name} is at its limit", at=answer.at, reserved=True)
            self._tickets[job.key] = answer.at
            return AskAgain(answer.at)
        if isinstance(answer, At):
            self._starts[job.key] = answer.at
            return Clear(asked_at, answer.at) if target.concurrency is None else AskAgain(answer.at)  # for its concurrency slot
        waited = now - self._waiting.setdefault(job.key, now)
        return AskAgain(now + min(max(ASK_MS, waited // 4), SELDOM_MS))


def _runs(job: Job | None, fence: int) -> bool:
    """Whether the attempt still runs: the job is claimed by the executor that took the slot."""
    return job is not None and is_open(job) and job.claim is not None and job.fence == fence
