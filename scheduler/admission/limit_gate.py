"""The gate of a job of a named target: applies the target's rate and concurrency limit across all executors.

Jobs without a named target do not concern it. Jobs of a target without limits cost one read of the target per second and process.
The jobs of a batch that wait for a concurrency slot check together, 20 times a second at first and 5 times later. A check reads one item,
or four of a target with further items. Once a second it reads `LOOK_AT` jobs at most. That is 70 items a second while it waits, at most
130 in its first second.
"""

import logging
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.admission import limits
from scheduler.admission.gate import UNDECIDED, AskAgain, Clear, Requeue, Verdict
from scheduler.admission.limits import Answer, Ask, At, Full, Place, Start, TargetUsage, Ticket, UsageChange
from scheduler.admission.target_cache import TargetCache
from scheduler.model.errors import Unavailable
from scheduler.model.job import Finished, Job, JobKey, RequeueCause
from scheduler.model.lifecycle import is_open
from scheduler.storage.ports import Ports, Written
from scheduler.targets.named_target import ITEMS, NamedTarget, item_name, share_of

ROUNDS = 5  # tries at a usage that other executors change at the same time
WAIT_MS = 2_000  # how long a due job waits for a concurrency slot before it is requeued with another instant ...
ASK_MS, SELDOM_MS = 50, 200  # ... and how often it checks, at first and later; checks only read until a slot is free
AWAY_MS = 1_000  # a requeued job is not delivered again sooner than this
LOOK_MS = 1_000  # how often to check that the jobs with concurrency slots still run ...
LOOK_AT = 50  # ... and the number of them at a time
TRIED = 3  # further items of a target in which a job looks for a free slot, at a time

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LimitGate:
    """See `admission.Gate`. Belongs to one batch: it remembers the starts, reservations and slots of its jobs."""

    known: TargetCache
    ports: Ports
    _starts: dict[JobKey, int] = field(default_factory=dict)
    _tickets: dict[JobKey, int] = field(default_factory=dict)
    _waiting: dict[JobKey, int] = field(default_factory=dict)  # when each job began to wait for a concurrency slot
    _placed: dict[JobKey, tuple[str, Place]] = field(default_factory=dict)  # with the item that has it
    _looked_at: dict[str, int] = field(default_factory=dict)
    _lost: dict[str, set[Place]] = field(default_factory=dict)  # slots whose jobs no longer run, as of the last check
    _took: dict[str, int] = field(default_factory=dict)  # the time for which jobs of a target keep their slots, as last read
    _tried: dict[str, int] = field(default_factory=dict)  # by target with further items: the next item to read

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
        """Do nothing: their concurrency slots are already free."""

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
        beside = {name: self._beside(asked[name][0], targets[name]) for name in asked}
        names = {*asked, *(item_name(name, number) for name, numbers in beside.items() for number in numbers)}
        if unknown := sorted(names - usages.keys()):
            usages |= {name: TargetUsage(name) for name in unknown} | self.ports.targets.usages(unknown)
        now = self.ports.clock.now()
        uses: list[tuple[UsageChange, dict[JobKey, Answer]]] = []
        left: dict[str, list[Job]] = {}
        for name, jobs in asked.items():
            items = {number: usages[item_name(name, number)] for number in beside[name]}
            gone = self._gone({0: usages[name]} | items, targets[name], now)
            use, answers = limits.admit(usages[name], targets[name], self._asks(jobs, now), now, gone, items)
            if use is None:
                verdicts |= self._noted(jobs, targets[name], answers, usages, asked_at, now)
            else:
                uses.append((use, answers))
            if any(isinstance(answer, Full) for answer in answers.values()):
                self._look_elsewhere(name)
        written = self._written([use for use, _ in uses if not use.is_empty], usages)
        valid = [(use, answers) for use, answers in uses if use.is_empty or written[use.target]]
        also = self._written([each for use, _ in valid for each in use.also], usages)
        for use, answers in uses:
            name = use.target
            failed = {place.job for each in use.also if not also.get(each.target) for place in each.takes}
            if not use.is_empty and not written[name]:
                left[name] = asked[name]
                continue
            if not use.is_empty:
                answers = limits.confirmed(answers, use, usages[name])
                assigned = limits.assigned(use, usages[name])
                self._starts |= {job: at for job, at in assigned.items() if job in failed}
            stored = [job for job in asked[name] if job.key not in failed]
            verdicts |= self._noted(stored, targets[name], answers, usages, asked_at, now)
            if failed:
                left[name] = [job for job in asked[name] if job.key in failed]
        return left

    def _written(self, uses: Sequence[UsageChange], usages: dict[str, TargetUsage]) -> dict[str, bool]:
        """Write changes of different items, and note the usages after them. Returns for each item whether its change was valid."""
        done = dict[str, bool]()
        for use, (written, usage) in zip(uses, self.ports.targets.use(uses) if uses else [], strict=True):
            done[use.target] = written is Written.YES and usage is not None
            if usage is not None:
                usages[use.target], self._took[use.target] = usage, usage.took_ms
        return done

    def _beside(self, job: Job, target: NamedTarget) -> list[int]:
        """The numbers of the further items to read now; executors begin at different ones."""
        if not target.beside:
            return []
        first = self._tried.setdefault(target.name, zlib.crc32(job.id.encode()) % ITEMS)
        return [(first + number) % ITEMS + 1 for number in range(TRIED)]

    def _look_elsewhere(self, name: str) -> None:
        if name in self._tried:
            self._tried[name] += TRIED

    def _asks(self, jobs: Sequence[Job], now: int) -> list[Ask]:
        return [self._ask(job, now) for job in sorted(jobs, key=lambda job: (job.due_at, job.id))]

    def _ask(self, job: Job, now: int) -> Ask:
        """The request of a job. The job keeps its start for WAIT_MS while it waits for a slot; then it requests a reservation instead."""
        waits, since = job.key in self._waiting, self._waiting.get(job.key, now)
        ticket = self._tickets.get(job.key, job.due_at if job.reserved_at == job.due_at else None)
        if now - since >= WAIT_MS:
            return Ask(job.key, job.fence, job.spec.timeout_ms, now + AWAY_MS, again=True)
        start = now if waits else self._starts.get(job.key)
        return Ask(job.key, job.fence, job.spec.timeout_ms, max(job.due_at, now), ticket, start)

    def _gone(self, items: Mapping[int, TargetUsage], target: NamedTarget, now: int) -> Collection[Place]:
        """Concurrency slots that an executor did not free, as it ended or could not; checked only when no slot is free.

        `items`: the items read, by number. A check reads the slots of one full item, `LOOK_AT` at most, and the next check other ones.
        """
        over = target.beside and len(items[0].places) > (share_of(target, 0) or 0)  # then further items have no free slots
        looked_into = {0: items[0]} if over else items
        full = [usage.places for number, usage in looked_into.items() if _is_full(usage, share_of(target, number))]
        if len(full) == len(looked_into) and now - self._looked_at.get(target.name, -LOOK_MS) >= LOOK_MS:
            self._looked_at[target.name] = now
            places = max(full, key=len)
            first = now // LOOK_MS * LOOK_AT % len(places) if len(places) > LOOK_AT else 0
            places = (places[first:] + places[:first])[:LOOK_AT]
            found = self.ports.jobs.get_many([place.job for place in places])
            known = [place for place in places if place.job not in found.unreadable]
            self._lost.setdefault(target.name, set()).update(place for place in known if not _runs(found.get(place.job), place.fence))
        return self._lost.get(target.name, ())

    def _noted(
        self,
        jobs: Sequence[Job],
        target: NamedTarget,
        answers: Mapping[JobKey, Answer],
        usages: Mapping[str, TargetUsage],
        asked_at: int,
        now: int,
    ) -> dict[JobKey, Verdict]:
        """Note the places of these jobs, and return the verdicts that follow from the answers."""
        verdicts: dict[JobKey, Verdict] = {}
        for job in jobs:
            answer = answers.get(job.key)
            if isinstance(answer, Start) and answer.place is not None:
                items = [item_name(target.name, number) for number in range(ITEMS + 1 if target.beside else 1)]
                there = (name for name in items if name in usages and answer.place in usages[name].places)
                self._placed[job.key] = (next(there, target.name), answer.place)
            if answer is not None:
                verdicts[job.key] = self._verdict(job, target, answer, asked_at, now)
        return verdicts

    def _verdict(self, job: Job, target: NamedTarget, answer: Answer, asked_at: int, now: int) -> Verdict:
        if isinstance(answer, Start):
            self._waiting.pop(job.key, None)
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


def _is_full(usage: TargetUsage, share: int | None) -> bool:
    return share is not None and len(usage.places) >= share


def _runs(job: Job | None, fence: int) -> bool:
    """Whether the attempt still runs: the job is claimed by the executor that took the slot."""
    return job is not None and is_open(job) and job.claim is not None and job.fence == fence
