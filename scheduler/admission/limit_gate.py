"""The gate of a job of a named target or with a limit: applies the rates and concurrency limits across all executors.

Other jobs do not concern it. Jobs of a target without limits cost one read of the target per second and process.
The jobs of a batch that wait for a concurrency slot check together, 20 times a second at first and 5 times later. A check reads one item,
or four of a target with further items. Once a second it reads `CHECKED` jobs at most. That is 70 items a second while it waits, at most
130 in its first second.

A job with several limiters (its target, the key of the target, its own key) takes the starts and slots of all of them in one write, or
none. A job that only waits has neither: it goes into the queue of the first one that has no room.
"""

import logging
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.admission import limits, target_queue
from scheduler.admission.gate import UNDECIDED, AskAgain, Clear, Requeue, Verdict
from scheduler.admission.limits import Answer, Ask, At, Full, Queue, Start
from scheduler.admission.target_cache import TargetCache
from scheduler.model.errors import Unavailable
from scheduler.model.instants import render
from scheduler.model.job import Finished, Job, JobKey, RequeueCause
from scheduler.model.lifecycle import is_open, waits
from scheduler.model.limiter import NOBODY, KeyLimit, KeyLimiter, Limiter, is_key, name_of
from scheduler.model.named_target import NamedTarget
from scheduler.model.spec import Limit
from scheduler.model.target_usage import USUAL_MS, Place, TargetUsage, UsageChange
from scheduler.storage.ports import Change, Ports, Written
from scheduler.targets.named_target import ITEMS, item_name, share_of, target_of

ROUNDS = 5  # tries at a usage that other executors change at the same time
LEAST_WAIT_MS, WAIT_MS = 500, 2_000  # a due job waits for a slot this long at least, and at most; then it goes into the target queue ...
ASK_MS, SELDOM_MS = 50, 200  # ... and how often it checks, at first and later; checks only read until a slot is free
RELEASED_MS = 60_000  # a job that a release step chose is new to its target after this time: its message was late or lost
JOINED_MS = 20_000  # a process notes this often that jobs of an owner wait: release steps look for them for much longer
WOKEN_MS = 1_000  # a process requests a release step of a target at most this often
CHECK_MS = 1_000  # how often to check that the jobs with concurrency slots still run ...
CHECKED = 50  # ... and the number of them at a time
TRIED = 3  # further items of a target in which a job looks for a free slot, at a time

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LimitGate:
    """See `admission.Gate`. Belongs to one batch: it remembers the starts and slots of its jobs."""

    known: TargetCache
    ports: Ports
    _starts: dict[JobKey, int] = field(default_factory=dict)
    _waiting: dict[JobKey, int] = field(default_factory=dict)  # when each job began to wait for a concurrency slot
    _placed: dict[JobKey, list[tuple[str, Place]]] = field(default_factory=dict)  # each with the item that has it
    _checked_at: dict[str, int] = field(default_factory=dict)
    _lost: dict[str, set[Place]] = field(default_factory=dict)  # slots whose jobs no longer run, as of the last check
    _took: dict[str, int] = field(default_factory=dict)  # the time for which jobs of a target keep their slots, as last read
    _new_queues: set[str] = field(default_factory=set)  # of keys, of which a step is to be requested
    _tried: dict[str, int] = field(default_factory=dict)  # by target with further items: the next item to read

    def concerns(self, job: Job) -> bool:
        return job.spec.target is not None or job.spec.limit is not None

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Assign the starts of a rate ahead: a job starts on the millisecond, and a job that must wait is requeued before its instant.

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
            for name, place in self._placed.pop(job.key, ()):
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
        """Forget the slots of jobs that run on without an executor: each keeps its slot until it has ended."""
        for each in done:
            accepted = each.result.awaited is not None or each.job.spec.callback is not None
            if accepted and each.result.failure is None:
                self._placed.pop(each.job.key, None)

    def _release(self, ended: Mapping[str, list[Place]]) -> dict[str, list[Place]]:
        """Try once to free these slots and return the remaining ones.

        A slot missing from the table is free: another executor considered it lost, or its lease has run out.
        """
        now = self.ports.clock.now()
        wake = set[str]()
        uses = [limits.freed(name, places, self._took.get(name, USUAL_MS), now) for name, places in ended.items()]
        left: dict[str, list[Place]] = {}
        for use, (done, usage) in zip(uses, self.ports.targets.use(uses), strict=True):
            if usage is not None and target_queue.wants_ends(usage, use.drops, now):
                wake.add(target_of(use.target))
            stands = use.drops if usage is None else usage.places
            if done is not Written.YES and (there := [place for place in use.drops if place in stands]):
                left[use.target] = there
        target_queue.wake_queues(wake, self.ports)
        return left

    def _judged(self, jobs: Sequence[Job], *, ahead: bool) -> dict[JobKey, Verdict]:
        verdicts: dict[JobKey, Verdict] = {}
        try:
            checked_at = self.ports.clock.now()
            found = self.known.find_all(job.spec.target for job in jobs if job.spec.target is not None)
            limited: dict[str, list[Job]] = {}
            limiters: dict[str, Limiter] = {}
            several: list[tuple[Job, list[Limiter]]] = []
            for job in jobs:
                those = limiters_of(job, found.get(job.spec.target or ""))
                if not those:
                    verdicts[job.key] = Clear(checked_at)  # a job whose target does not exist fails when it starts
                elif ahead and all(each.rate is None for each in those):
                    continue
                elif len(those) > 1:
                    several.append((job, those))
                else:
                    limiters[those[0].name] = those[0]
                    limited.setdefault(those[0].name, []).append(job)
            usages: dict[str, TargetUsage] = {}
            for _ in range(ROUNDS):
                if limited:
                    limited = self._round(limited, limiters, usages, verdicts, checked_at)
            for job, those in several:
                if (verdict := self._together(job, those, checked_at)) is not None:
                    verdicts[job.key] = verdict
        except Unavailable:
            log.info("could not read limits; the jobs are checked again", extra={"jobs": len(jobs)})
        target_queue.wake_queues(self._new_queues, self.ports, target_queue.JOINED, delay_ms=target_queue.STEP_MS)
        self._new_queues.clear()
        return verdicts

    def _round(
        self,
        limited: Mapping[str, list[Job]],
        targets: Mapping[str, Limiter],
        usages: dict[str, TargetUsage],
        verdicts: dict[JobKey, Verdict],
        checked_at: int,
    ) -> dict[str, list[Job]]:
        """Decide by the usages, after reading the unknown ones, and write them. Returns the jobs of targets whose write was refused."""
        beside = {name: self._beside(limited[name][0], targets[name]) for name in limited}
        names = {*limited, *(item_name(name, number) for name, numbers in beside.items() for number in numbers)}
        if unknown := sorted(names - usages.keys()):
            usages |= {name: TargetUsage(name) for name in unknown} | self.ports.targets.usages(unknown)
        now = self.ports.clock.now()
        targets = {name: known(target, usages[name]) for name, target in targets.items() if name in limited}
        behind = self._behind(limited, usages, now)
        uses: list[tuple[UsageChange, dict[JobKey, Answer]]] = []
        left: dict[str, list[Job]] = {}
        for name, jobs in limited.items():
            items = {number: usages[item_name(name, number)] for number in beside[name]}
            gone = self._gone({0: usages[name]} | items, targets[name], now)
            use, answers = limits.admit(usages[name], targets[name], self._asks(jobs, targets[name], behind, now), now, gone, items)
            use = _with_limit(use, targets[name], usages[name], jobs[0])
            if use is None:
                verdicts |= self._noted(jobs, targets[name], answers, usages, checked_at, now)
            else:
                uses.append((use, answers))
            if any(isinstance(answer, Full) for answer in answers.values()):
                self._check_elsewhere(name)
        written = self._written([use for use, _ in uses if not use.is_empty], usages)
        valid = [(use, answers) for use, answers in uses if use.is_empty or written[use.target]]
        also = self._written([each for use, _ in valid for each in use.also], usages)
        for use, answers in uses:
            name = use.target
            failed = {place.job for each in use.also if not also.get(each.target) for place in each.takes}
            if not use.is_empty and not written[name]:
                left[name] = limited[name]
                continue
            if not use.is_empty:
                answers = limits.confirmed(answers, use, usages[name])
                assigned = limits.assigned(use, usages[name])
                self._starts |= {job: at for job, at in assigned.items() if job in failed}
            stored = [job for job in limited[name] if job.key not in failed]
            verdicts |= self._noted(stored, targets[name], answers, usages, checked_at, now)
            if failed:
                left[name] = [job for job in limited[name] if job.key in failed]
        return left

    def _written(self, uses: Sequence[UsageChange], usages: dict[str, TargetUsage]) -> dict[str, bool]:
        """Write changes of different items, and note the usages after them. Returns for each item whether its change was valid."""
        done = dict[str, bool]()
        for use, (written, usage) in zip(uses, self.ports.targets.use(uses) if uses else [], strict=True):
            done[use.target] = written is Written.YES and usage is not None
            if usage is not None:
                usages[use.target], self._took[use.target] = usage, usage.took_ms
        return done

    def _beside(self, job: Job, target: Limiter) -> list[int]:
        """The numbers of the further items to read now; executors begin at different ones."""
        if not target.beside:
            return []
        first = self._tried.setdefault(target.name, zlib.crc32(job.id.encode()) % ITEMS)
        return [(first + number) % ITEMS + 1 for number in range(TRIED)]

    def _check_elsewhere(self, name: str) -> None:
        if name in self._tried:
            self._tried[name] += TRIED

    def _behind(self, limited: Mapping[str, Sequence[Job]], usages: Mapping[str, TargetUsage], now: int) -> Collection[tuple[str, str]]:
        """The targets and owners of which jobs are in the queue: their other jobs go there too. Read only where jobs wait."""
        pairs = {(name, job.owner) for name, jobs in limited.items() if usages[name].queued_until > now for job in jobs}
        return {pair for pair, user in self.ports.targets.queue_users(sorted(pairs)).items() if user.waiting} if pairs else ()

    def _asks(self, jobs: Sequence[Job], target: Limiter, behind: Collection[tuple[str, str]], now: int) -> list[Ask]:
        return [self._ask(job, target, behind, now) for job in sorted(jobs, key=lambda job: (job.due_at, job.id))]

    def _ask(self, job: Job, target: Limiter, behind: Collection[tuple[str, str]], now: int) -> Ask:
        """The request of a job. It keeps its start while it waits for a slot; then it goes into the queue.

        For a target with further items, thousands may wait together. They leave one by one, so that the index shows the first ones before
        the last ones stop waiting.
        """
        waits, since = job.key in self._waiting, self._waiting.get(job.key, now)
        released, lasts_ms = self._is_released(job, now), _lasts_ms(job)
        earliest = max(job.due_at, now)
        spread_ms = 0 if released or not target.beside else zlib.crc32(job.id.encode()) % (WAIT_MS - LEAST_WAIT_MS)
        if now - since >= WAIT_MS - spread_ms:
            return Ask(job.key, job.fence, lasts_ms, earliest, behind=True)
        start = now if waits else self._starts.get(job.key, job.released_at if released else None)
        is_behind = not released and not waits and (target.name, job.owner) in behind
        return Ask(job.key, job.fence, lasts_ms, earliest, start, released, waits, is_behind)

    def _gone(self, items: Mapping[int, TargetUsage], target: Limiter, now: int) -> Collection[Place]:
        """Concurrency slots that an executor did not free, as it ended or could not; checked only when no slot is free.

        `items`: the items read, by number. A check reads the slots of one full item, `CHECKED` at most, and the next check other ones.
        Of a key, its release steps check them: a batch may have the jobs of two hundred full keys.
        """
        if is_key(target.name):
            return ()
        over = target.beside and len(items[0].places) > (share_of(target, 0) or 0)  # then further items have no free slots
        checked = {0: items[0]} if over else items
        full = [usage.places for number, usage in checked.items() if _is_full(usage, share_of(target, number))]
        if len(full) == len(checked) and now - self._checked_at.get(target.name, -CHECK_MS) >= CHECK_MS:
            self._checked_at[target.name] = now
            places = max(full, key=len)
            first = now // CHECK_MS * CHECKED % len(places) if len(places) > CHECKED else 0
            places = (places[first:] + places[:first])[:CHECKED]
            found = self.ports.jobs.get_many([place.job for place in places])
            known = [place for place in places if place.job not in found.unreadable]
            self._lost.setdefault(target.name, set()).update(place for place in known if not runs(found.get(place.job), place.fence))
        return self._lost.get(target.name, ())

    def _noted(
        self,
        jobs: Sequence[Job],
        target: Limiter,
        answers: Mapping[JobKey, Answer],
        usages: Mapping[str, TargetUsage],
        checked_at: int,
        now: int,
    ) -> dict[JobKey, Verdict]:
        """Note the slots of these jobs, and return the verdicts that follow from the answers. Raises Unavailable."""
        verdicts: dict[JobKey, Verdict] = {}
        for job in jobs:
            answer = answers.get(job.key)
            if isinstance(answer, Start) and answer.place is not None:
                there = (name for name in items_of(target) if name in usages and answer.place in usages[name].places)
                self._placed[job.key] = [(next(there, target.name), answer.place)]
            if answer is not None:
                verdicts[job.key] = self._verdict(job, target, answer, usages[target.name], checked_at, now)
        return verdicts

    def _queue(self, job: Job, target: Limiter, usage: TargetUsage, now: int) -> Requeue:
        """Requeue the job into the target queue, of which a release step is requested if none comes soon. Raises Unavailable."""
        joined, woken, name = self.known.joined, self.known.woken, target.name
        is_idle = is_key(name) and usage.queued_until <= now and now - woken.get(name, -WOKEN_MS) >= WOKEN_MS
        if is_idle or now - joined.get((name, job.owner), -JOINED_MS) >= JOINED_MS:
            before = self.ports.targets.join_queue(name, job.owner, now)
            joined[name, job.owner] = now
            if is_key(name):
                woken[name] = now
                self._new_queues |= {name} if now - before >= JOINED_MS else set()
        if is_key(name):  # of a crowd of a key, only the first one requests a step; the checks of queues find a lost request
            return Requeue(RequeueCause.LIMIT, reason_of(target, usage, now), target=name)
        wake = usage.queued_until <= now and now - woken.get(name, -WOKEN_MS) >= WOKEN_MS
        if wake:
            woken[name] = now
        return Requeue(RequeueCause.LIMIT, reason_of(target, usage, now), target=name, wake=wake)

    def _verdict(self, job: Job, target: Limiter, answer: Answer, usage: TargetUsage, checked_at: int, now: int) -> Verdict:
        if isinstance(answer, Start):
            self._waiting.pop(job.key, None)
            return Clear(checked_at)
        if isinstance(answer, Queue):
            self._waiting.pop(job.key, None)
            self._starts.pop(job.key, None)
            return self._queue(job, target, usage, now)
        if isinstance(answer, At):
            self._starts[job.key] = answer.at
            return Clear(checked_at, answer.at) if target.concurrency is None else AskAgain(answer.at)  # for its concurrency slot
        return self._ask_again(job, now)

    def _ask_again(self, job: Job, now: int) -> AskAgain:
        waited = now - self._waiting.setdefault(job.key, now)
        return AskAgain(now + min(max(ASK_MS, waited // 4), SELDOM_MS))

    def _together(self, job: Job, limiters: Sequence[Limiter], checked_at: int) -> Verdict | None:
        """The verdict on a job with several limiters: it takes the starts and slots of all of them, or none. None: ask again soon."""
        for _ in range(ROUNDS):
            parts = self._parts(job, limiters)
            now = self.ports.clock.now()
            decision = limits.admit_to_all(parts, self._shared_ask(job, now), now)
            if isinstance(decision, limits.Waits):
                part = decision.part
                timed_out = isinstance(decision.answer, Full) and now - self._waiting.get(job.key, now) >= WAIT_MS
                answer = Queue() if timed_out else decision.answer
                return self._verdict(job, part.limiter, answer, part.usage, checked_at, now)
            if decision is None:
                return None
            by_name = {part.limiter.name: part for part in parts}
            uses = [_with_limit(use, by_name[use.target].limiter, by_name[use.target].usage, job) if use.target in by_name else use
                    for use in decision.uses]  # fmt: skip
            done = self.ports.targets.use_together([use for use in uses if use is not None]) if uses else Written.YES
            if done is Written.REFUSED:
                raise Unavailable
            if done is Written.NO:
                continue
            if decision.at is not None:
                self._starts[job.key] = decision.at
                has_slots = any(part.limiter.concurrency is not None for part in parts)
                return AskAgain(decision.at) if has_slots else Clear(checked_at, decision.at)
            self._waiting.pop(job.key, None)
            self._placed[job.key] = decision.places
            return Clear(checked_at)
        return None

    def _parts(self, job: Job, limiters: Sequence[Limiter]) -> list[limits.Part]:
        """The limiters of a job with their usages, as read now."""
        numbers = {limiter.name: self._beside(job, limiter) for limiter in limiters}
        names = [item_name(name, number) for name, some in numbers.items() for number in (0, *some)]
        usages = {name: TargetUsage(name) for name in names} | self.ports.targets.usages(names)
        now = self.ports.clock.now()
        behind = self._behind({limiter.name: [job] for limiter in limiters}, usages, now)
        parts = list[limits.Part]()
        for each in limiters:
            limiter, usage = known(each, usages[each.name]), usages[each.name]
            items = {number: usages[item_name(each.name, number)] for number in numbers[each.name]}
            gone = self._gone({0: usage} | items, limiter, now)
            self._check_elsewhere(each.name)
            is_behind = (each.name, job.owner) in behind and not self._is_released(job, now) and job.key not in self._waiting
            parts.append(limits.Part(limiter, usage, gone, items, is_behind))
        return parts

    def _shared_ask(self, job: Job, now: int) -> Ask:
        """The request of a job to all of its limiters."""
        released, waits = self._is_released(job, now), job.key in self._waiting
        start = now if waits else self._starts.get(job.key, job.released_at if released else None)
        return Ask(job.key, job.fence, _lasts_ms(job), max(job.due_at, now), start, released, waits)

    @staticmethod
    def _is_released(job: Job, now: int) -> bool:
        return job.released_at is not None and now - job.released_at < RELEASED_MS


def limiters_of(job: Job, target: NamedTarget | None) -> list[Limiter]:
    """The limiters of a job with this named target: the target, the key of the target, and its own key."""
    found = list[Limiter]()
    if target is not None and target.enabled:
        if target.is_limited:
            found.append(target)
        if target.limit is not None:
            found.append(_of_key(NOBODY, target.limit))
    if job.spec.limit is not None:
        found.append(_of_key(job.owner, job.spec.limit))
    return found


def known(limiter: Limiter, usage: TargetUsage) -> Limiter:
    """The limiter with the limit that its key has by now; the job was created when the key may have had another one."""
    return limiter if usage.limit is None else KeyLimiter(limiter.name, usage.limit.limit)


def items_of(limiter: Limiter) -> list[str]:
    """The names of the items of usage of a limiter."""
    return [item_name(limiter.name, number) for number in range(ITEMS + 1 if limiter.beside else 1)]


def _of_key(owner: str, limit: Limit) -> KeyLimiter:
    return KeyLimiter(name_of(owner, limit.key), limit)


def _with_limit(use: UsageChange | None, limiter: Limiter, usage: TargetUsage, job: Job) -> UsageChange | None:
    """The change, which also gives a key its limit if it has none: its record has expired, or it is a task's first run."""
    if use is None or usage.limit is not None or not isinstance(limiter, KeyLimiter):
        return use
    return replace(use, limit=(None, KeyLimit(limiter.limit, setter_of(job, limiter))))


def setter_of(job: Job, limiter: KeyLimiter) -> str:
    """The task or target whose definition has the limit; none: it is the job's own."""
    if limiter.name != name_of(job.owner, limiter.limit.key):
        return f"target {job.spec.target}"
    return "" if job.origin is None else f"task {job.origin.task}"


def reason_of(limiter: Limiter, usage: TargetUsage, now: int) -> str:
    """The reason of a job that waits in the queue of the limiter."""
    if not isinstance(limiter, KeyLimiter):
        return f"target {limiter.name} is at its limit"
    at_once = limiter.concurrency
    live = limits.live(usage, now)
    why = f"{live} of {at_once} running" if at_once is not None and live >= at_once else str(limiter.limit)
    return f"limit: waits for key {limiter.limit.key} ({why}) since {render(now)}"


def _lasts_ms(job: Job) -> int:
    return job.spec.timeout_ms + (0 if job.spec.callback is None else job.spec.callback.max_ms)


def _is_full(usage: TargetUsage, share: int | None) -> bool:
    return share is not None and len(usage.places) >= share


def runs(job: Job | None, fence: int) -> bool:
    """Whether the attempt still runs: the job is claimed by the executor that took the slot, or waits for its call-back."""
    return job is not None and is_open(job) and job.claim is not None and job.fence == fence


def free_waiting(changes: Iterable[Change], ports: Ports) -> None:
    """Free the slots of jobs that waited for their call-back before these changes, and no longer do."""
    for change in changes:
        if waits(change.before) and not waits(change.after):
            free(change.before, change.before.fence, ports)


def free(ended: Job, fence: int, ports: Ports) -> None:
    """Free the concurrency slot of an attempt that reports by call-back. Never raises: a release step finds a slot that stays taken."""
    name = ended.spec.target
    if name is None and ended.spec.limit is None:
        return
    try:
        target = None if name is None else ports.targets.targets([name]).get(name)
        limiters = limiters_of(ended, target)
        items = [item for limiter in limiters if limiter.concurrency is not None or is_key(limiter.name) for item in items_of(limiter)]
        usages, now, wake = ports.targets.usages(items) if items else {}, ports.clock.now(), set[str]()
        for item, usage in usages.items():
            if places := [place for place in usage.places if place.job == ended.key and place.fence <= fence]:
                ports.targets.use([limits.freed(item, places, usage.took_ms, now)])
                first = usages.get(target_of(item), usage)
                wake |= {target_of(item)} if target_queue.wants_ends(first, places, now) else set()
        target_queue.wake_queues(wake, ports)
    except Unavailable:
        log.info("could not free a concurrency slot; a release step frees it", extra={"target": name})
