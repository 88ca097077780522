"""A release step: lets the jobs of a target queue start for which the limits of the target, or key, have room, in their users' turns.

One message of the work queue drives the steps of a target: every second or two while jobs wait, then more and more rarely, and the last
one when no user is left. An end, and a job that joins a queue without regular steps, request a further step at once.

There may be a hundred thousand keys with waiting jobs, so the steps of a key are fewer. While its jobs start, there is one a second. After
that they come at the next start that the rate allows or, where all slots are in use, after twice as long each time: the end of a job
requests a step. Each sends the message of the next one, since SQS hides 120,000 messages at most. It numbers the step that it is for.

A released job leaves the queue: it gets a safety slot of a minute and its start, and is enqueued. It starts without asking for its turn
again. If it does not come, only its start is lost.
"""

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.admission import limit_gate, limits, target_queue
from scheduler.admission.lane_state import paused_lanes
from scheduler.admission.limit_gate import known, limiters_of, runs
from scheduler.model import lifecycle, misfire, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Lane
from scheduler.model.limiter import KeyLimiter, Limiter, is_key
from scheduler.model.named_target import NamedTarget
from scheduler.model.target_queue import QUEUE_PARTS, QueueUser, Released, TargetQueue
from scheduler.model.target_usage import Place, TargetUsage, UsageChange
from scheduler.model.work import WorkDelivery, WorkItem, WorkKind
from scheduler.pipeline.enqueue import try_enqueue
from scheduler.storage.ports import Change, Ports, Written
from scheduler.targets.named_target import ITEMS, item_name

LEASE_MS = 15_000
WORK_MS = 8_000  # a step ends after this time
EARLY_MS = 1_500  # a step may begin this much before its time: clocks differ
AGAIN_MS = 1_000
UP_MS = 999
LOST_AT_ONCE = 1_000  # lost steps requested in a minute
SLOWEST_MS = 900_000  # the longest time between two steps of a key whose jobs wait, and the longest delay of SQS
PARTS_A_MINUTE = 4  # of the queues of keys in which lost steps are looked for
LOST_MS = 30_000  # a step that has not begun this long after its time is requested again: its message is lost
QUEUED_MS = 10_000  # executors see for this long that jobs wait; renewed when half of it has passed
CHECK_MS, CHECKED = 5_000, 50  # how often to check whether the jobs with concurrency slots still run, and how many at a time
FIRST, LIMIT = 10, 4_000  # entries of a user read at first, beyond the wanted ones, and at most

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
    """The waiting jobs of one user, as far as they were read."""

    jobs: list[Job] = field(default_factory=list)
    left: bool = False  # whether more may wait
    paused: bool = False  # whether some wait for the resume of their lane
    limit: int = 0
    seen: set[JobKey] = field(default_factory=set)


@dataclass(slots=True)
class Release:
    """One step of one queue, which is leased to the caller."""

    queue: TargetQueue
    ports: Ports
    users: dict[str, QueueUser] = field(default_factory=dict)
    released: int = 0
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _expired: list[Job] = field(default_factory=list)
    _paused: frozenset[Lane] = frozenset()
    _pause_ms: int = target_queue.STEP_MS
    _limit: Limiter | None = None
    _usage: TargetUsage | None = None  # after the last write of this step

    @property
    def is_key(self) -> bool:
        return is_key(self.queue.target)

    def run(self) -> int | None:
        """Release what may start, and return when the next step is due (ms); None: no user is left. Raises Unavailable."""
        until = self.ports.clock.now() + WORK_MS
        self._paused = frozenset(paused_lanes(self.ports.ledger.watched().lanes))
        while True:
            while self._release() and self.ports.clock.now() < until:
                pass
            now = self.ports.clock.now()
            if not self.users:
                self.ports.targets.drop_queue(self.queue)
                return None
            next_at = now + self._pause_ms
            left = replace(self.queue, lease_until=0, next_at=next_at)
            if not self.ports.targets.change_queue(self.queue, left) or now >= until or not self._has_ended(now):
                return next_at
            # A job ended during this step, so its request found the queue leased.
            self.queue = replace(left, epoch=left.epoch + 1, lease_until=now + LEASE_MS)
            if not self.ports.targets.change_queue(left, self.queue):
                return next_at

    def _has_ended(self, now: int) -> bool:
        """Whether a concurrency slot is free that was not when this step released jobs, while jobs wait."""
        limit = self._limit
        if limit is None or limit.concurrency is None or not any(user.waiting for user in self.users.values()):
            return False
        usages = self._usages(limit)
        if target_queue.starts_left(usages[0], limit, now) <= 0:
            return False
        return target_queue.slots_left(usages, limit, (), self.queue.released, now) > 0

    def _release(self) -> bool:
        """Release once. True: there is more to do at once."""
        targets, name = self.ports.targets, self.queue.target
        now = self.ports.clock.now()
        limit = self._limit = self._limiter(name)
        self.users = {user.owner: user for user in targets.queue(name)[1]}
        self._waiting.clear()
        self._expired.clear()
        usages = self._usages(limit)
        usage = self._usage = usages[0]
        count = target_queue.MOST if limit is None else self._count(limit, usages, now)
        chosen, clock, finishes = self._choose(count, now)
        if limit is None and not chosen and not self._expired:
            self._note(finishes, now)
            self._plan(limit, usage, now)
            return False
        alone, starts = chosen, dict[JobKey, int]()
        if limit is not None and chosen:
            alone, starts, moved = self._assign_together(limit, chosen, now)
            if starts or moved:
                usages = self._usages(limit)
                usage = self._usage = usages[0]
        assigned = self._assign(usage, limit, alone, now)
        if assigned is None and not starts:
            return True  # executors have assigned other starts in between
        self._put_back(alone if assigned is None else ())
        starts |= assigned or {}
        gone = [job for job in chosen if job.key in starts]
        self._send([(job, starts[job.key]) for job in gone] + [(job, now) for job in self._expired], now)
        self._note(finishes, now)
        self.queue = replace(self.queue, clock=clock, released=self._steps(len(gone), sum(each.taken for each in usages), now))
        self._plan(limit, usage, now)
        return bool(self._expired) or (limit is None and bool(gone))

    def _limiter(self, name: str) -> Limiter | None:
        """The target or key with its present limit; None: it has none, so all of its jobs may go."""
        if is_key(name):
            usage = self.ports.targets.usages([name]).get(name)
            return None if usage is None or usage.limit is None else KeyLimiter(name, usage.limit.limit)
        found = self.ports.targets.targets([name])
        if name in found.unreadable:
            raise Unavailable(f"target {name} cannot be read")
        target = found.get(name)
        return target if target is not None and target.enabled and target.is_limited else None

    def _steps(self, gone: int, taken: int, now: int) -> tuple[Released, ...]:
        """The releases of the last seconds. Of a key the last one stays, too: since then nothing has moved, if no slot was taken since."""
        before = self.queue.released
        steps = [each for each in before if each.at > now - target_queue.IN_TRANSIT_MS]
        if self.is_key and not gone and before and before[-1].taken == taken:
            return tuple(steps) or before[-1:]
        return (*steps, Released(now, gone, taken))

    def _usages(self, limit: Limiter | None) -> list[TargetUsage]:
        names = [item_name(self.queue.target, number) for number in range(ITEMS + 1 if limit is not None and limit.beside else 1)]
        found = self.ports.targets.usages(names)
        return [found.get(name, TargetUsage(name)) for name in names]

    def _count(self, limit: Limiter, usages: Sequence[TargetUsage], now: int) -> int:
        """The number of jobs that may be released now."""
        count = min(target_queue.starts_left(usages[0], limit, now), target_queue.MOST)
        if limit.concurrency is None or count <= 0:
            return count
        left = target_queue.slots_left(usages, limit, (), self.queue.released, now)
        if left <= 0 and now - self.queue.checked_at >= CHECK_MS:
            left = target_queue.slots_left(usages, limit, self._free_lost(usages, now), self.queue.released, now)
        return min(count, left)

    def _free_lost(self, usages: Sequence[TargetUsage], now: int) -> set[Place]:
        """Free the concurrency slots of attempts that no longer run, and return them: their executors ended, or could not free them."""
        self.queue = replace(self.queue, checked_at=now)
        places = [(usage, place) for usage in usages for place in usage.places]
        first = now // CHECK_MS * CHECKED % len(places) if len(places) > CHECKED else 0
        some = (places[first:] + places[:first])[:CHECKED]
        found = self.ports.jobs.outlines([place.job for _, place in some])
        lost = [
            (usage, place) for usage, place in some if place.job not in found.unreadable and not runs(found.get(place.job), place.fence)
        ]
        for item in {usage.target: usage for usage, _ in lost}.values():
            self.ports.targets.use([UsageChange(item.target, drops=tuple(place for usage, place in lost if usage is item))])
        return {place for _, place in lost}

    def _choose(self, count: int, now: int) -> tuple[list[Job], float, dict[str, float]]:
        """The next jobs, in turn, the clock after them, and the tags of their users' next jobs."""
        chosen, clock, finishes = list[Job](), self.queue.clock, dict[str, float]()
        if count <= 0:
            self._check_index(now)
            return chosen, clock, finishes
        weights = self.ports.users.weights(sorted(self.users))
        for job, owner, tag, finish in target_queue.fair_order(self.users, clock, weights, lambda owner: self._take(owner, count, now)):
            chosen.append(job)
            clock, finishes[owner] = tag, finish
            if len(chosen) == count:
                break
        return chosen, clock, finishes

    def _check_index(self, now: int) -> None:
        """Read the first jobs of a key without room: some may have expired, and an earlier step may have seen none, as the index lags."""
        for user in self.users.values() if self.is_key else ():
            if not user.waiting or self._idle_ms(now) >= target_queue.LONGEST_MS:
                self._read(user.owner, self._waiting.setdefault(user.owner, _Waiting(limit=FIRST)), now)

    def _take(self, owner: str, count: int, now: int) -> Job | None:
        """The next waiting job of a user; None: none waits."""
        waiting = self._waiting.get(owner)
        if waiting is None:
            recent = sum(each.jobs for each in self.queue.released)  # the index may still show these
            waiting = self._waiting[owner] = _Waiting(left=True, limit=min(count + recent + FIRST, LIMIT))
        while not waiting.jobs and waiting.left:
            self._read(owner, waiting, now)
        return waiting.jobs.pop(0) if waiting.jobs else None

    def _read(self, owner: str, waiting: _Waiting, now: int) -> None:
        """Read the beginning of a user's queue. Expired jobs are released too: their executors skip them."""
        entries = self.ports.jobs.waiting(slots.queue(self.queue.target, owner), limit=waiting.limit)
        new = [each for each in entries if each.key not in waiting.seen and each.lane not in self._paused]
        waiting.paused |= any(each.lane in self._paused for each in entries)
        waiting.seen |= {each.key for each in new}
        found = self.ports.jobs.outlines([each.key for each in new]) if new else {}
        there = [job for each in new if (job := found.get(each.key)) is not None and job.slot == each.slot and job.claim is None]
        for job in there:
            (self._expired if self._is_expired(job, now) else waiting.jobs).append(job)
        waiting.left = len(entries) >= waiting.limit and waiting.limit < LIMIT
        waiting.limit = min(waiting.limit * 4, LIMIT)

    @staticmethod
    def _is_expired(job: Job, now: int) -> bool:
        return misfire.too_late(job, now) is not None

    def _assign_together(self, limit: Limiter, chosen: Sequence[Job], now: int) -> tuple[list[Job], dict[JobKey, int], bool]:
        """Assign starts to those of the jobs that have several limiters. A job for which another one has no room moves to its queue.

        Returns the jobs with this limiter alone, the starts of the others, and whether a job was moved.
        """
        targets = self._targets(limit, chosen)
        alone, starts, moved = list[Job](), dict[JobKey, int](), False
        for job in chosen:
            limiters = limiters_of(job, targets.get(job.spec.target or ""))
            if len(limiters) < 2 or limit.name not in {each.name for each in limiters}:
                alone.append(job)
                continue
            found = self.ports.targets.usages([each.name for each in limiters])
            usages = [found.get(each.name, TargetUsage(each.name)) for each in limiters]
            # Of this limiter there is room: its slots were counted, with the ends to come.
            parts = [limits.Part(known(each, usage), usage) for each, usage in zip(limiters, usages, strict=True)]
            full = [part for part in parts if part.limiter.name != limit.name and limits.is_full(part, now)]
            answer = limits.Waits(full[0], limits.Full()) if full else limits.reserve_together(parts, job.key, now)
            if isinstance(answer, limits.Waits):
                if answer.part.limiter.name != limit.name:
                    self._move(job, answer.part, now)
                    moved = True
                else:
                    self._put_back([job])
                continue
            if answer.uses and (done := self.ports.targets.use_together(answer.uses)) is not Written.YES:
                if done is Written.REFUSED:
                    raise Unavailable
                self._put_back([job])  # an executor has assigned another start in between: a later step releases it
                continue
            starts[job.key] = answer.at or now
        return alone, starts, moved

    def _targets(self, limit: Limiter, chosen: Sequence[Job]) -> Mapping[str, NamedTarget]:
        """The named targets of these jobs."""
        if isinstance(limit, NamedTarget):
            return {limit.name: limit}
        names = sorted({job.spec.target for job in chosen if job.spec.target is not None})
        return self.ports.targets.targets(names) if names else {}

    def _put_back(self, jobs: Sequence[Job]) -> None:
        """Note that these chosen jobs wait on."""
        for job in reversed(jobs):
            self._waiting[job.owner].jobs.insert(0, job)

    def _move(self, job: Job, part: limits.Part, now: int) -> None:
        """Move the job to the queue of another of its limiters."""
        name = part.limiter.name
        self.ports.targets.join_queue(name, job.owner, now)
        slot, reason = slots.queued(name, job.owner, job.id), limit_gate.reason_of(part.limiter, part.usage, now)
        after = lifecycle.wait_elsewhere(job, slot=slot, reason=reason)
        self.ports.jobs.change([Change.of_slot(job, after)])
        if part.usage.queued_until <= now:
            target_queue.wake_queues({name}, self.ports)

    def _assign(self, usage: TargetUsage, limit: Limiter | None, chosen: Sequence[Job], now: int) -> dict[JobKey, int] | None:
        """Assign the starts of these jobs and let executors see that others wait. None: others assigned starts in between."""
        keys = [job.key for job in chosen]
        move = limits.reserve(usage, limit, keys, now) if limit is not None and limit.rate is not None and keys else None
        queued_until = self._queued_until(usage, limit, now)
        starts = dict.fromkeys(keys, now)
        if move is not None or queued_until is not None:
            use = UsageChange(usage.target, first=not usage.stored, starts=move, queued_until=queued_until)
            use = replace(use, expires=limits.expiry(usage, use, now))
            ((done, after),) = self.ports.targets.use([use])
            if done is Written.REFUSED or after is None:
                raise Unavailable
            if done is Written.NO:
                return None
            self._usage = after
            if move is not None:
                starts = limits.assigned(use, after)
        return starts if limit is None or limit.rate is None or move is not None else {}

    def _queued_until(self, usage: TargetUsage, limit: Limiter | None, now: int) -> int | None:
        waits = limit is not None and any(self._still_waits(user) for user in self.users.values())
        if waits and self.is_key:
            longest = now + SLOWEST_MS + LOST_MS
            return longest + SLOWEST_MS if usage.queued_until < longest else None
        if waits:
            return now + QUEUED_MS if usage.queued_until < now + QUEUED_MS // 2 else None
        return 0 if usage.queued_until > now else None

    def _still_waits(self, user: QueueUser) -> bool:
        waiting = self._waiting.get(user.owner)
        return user.waiting if waiting is None else bool(waiting.jobs) or waiting.left

    def _send(self, starts: Sequence[tuple[Job, int]], now: int) -> None:
        """Move these jobs to slots of a minute, with their starts, and enqueue them."""
        if not starts:
            return
        shards = self.ports.rules.shards
        after = [lifecycle.release(job, at, slot=slots.place(now, now, job.id, shards).slot) for job, at in starts]
        results = self.ports.jobs.change([Change.of_slot(job, moved) for (job, _), moved in zip(starts, after, strict=True)])
        sent = [moved for moved, written in zip(after, results, strict=True) if written is Written.YES]
        try_enqueue(sent, lanes=self.ports.lanes, now=self.ports.clock.now())
        self.released += len(sent)

    def _note(self, finishes: dict[str, float], now: int) -> None:
        """Store the turns of the users, and whether they still wait; drop the ones that have not joined for long."""
        for owner, user in list(self.users.items()):
            after = replace(user, finish=finishes.get(owner, user.finish), waiting=self._still_waits(user))
            read = self._waiting.get(owner)
            if not after.waiting and read is not None and not read.paused and now - user.joined_at >= target_queue.LINGER_MS:
                if self.ports.targets.drop_queue_user(user):
                    del self.users[owner]
                continue
            if after != user:
                self.ports.targets.note_queue_user(after)
            self.users[owner] = after

    def _plan(self, limit: Limiter | None, usage: TargetUsage, now: int) -> None:
        """Determine the pause before the next step."""
        if not any(user.waiting for user in self.users.values()):
            newest = max((user.joined_at for user in self.users.values()), default=now)
            idle_ms = min(now - newest, self._idle_ms(now)) if self.is_key else (now - newest) // 8
            self._pause_ms = max(target_queue.STEP_MS, min(idle_ms, target_queue.LONGEST_MS))
        elif limit is None:
            self._pause_ms = target_queue.STEP_MS
        elif self.is_key:
            self._pause_ms = self._pause_of_key(limit, self._usage or usage, now)
        else:
            soon = limit.rate is not None and limit.rate >= 1
            quick = limit.concurrency is not None and (limit.beside > 0 or usage.took_ms < limits.QUICK_MS)
            self._pause_ms = target_queue.STEP_MS if soon or quick else target_queue.IDLE_MS

    def _idle_ms(self, now: int) -> int:
        """The time since jobs of the key last started."""
        return now - self.queue.released[-1].at if self.queue.released else 0

    def _pause_of_key(self, limit: Limiter, usage: TargetUsage, now: int) -> int:
        """The pause while jobs of a key wait: until its next start, or growing while nothing moves; an end requests a step before."""
        idle_ms = self._idle_ms(now)
        next_ms = limits.next_start(usage, limit, now) - now - limits.NEAR_MS if limit.rate is not None else 0
        is_full = limit.concurrency is not None and limits.live(usage, now) >= limit.concurrency
        pause = next_ms if next_ms > 0 and not is_full else max(next_ms, idle_ms)
        return max(target_queue.STEP_MS, min(pause, SLOWEST_MS))


def release(delivery: WorkDelivery, ports: Ports) -> int | None:
    """Carry out the step that the message requests, if no other worker does; return when the next one is due (ms), None: there is none.

    The step of a key sends the message of the next one itself, unless SQS refuses it.
    """
    name, now = delivery.item.of, ports.clock.now()
    stored, users = ports.targets.queue(name)
    if not users:
        if stored is not None:
            ports.targets.drop_queue(stored)
        return None
    queue, requested = stored or TargetQueue(name), delivery.receive_count == 1
    planned_for = delivery.item.part.removeprefix(target_queue.JOINED)
    if planned_for and planned_for != str(queue.epoch) and queue.message_id != delivery.message_id:
        return None  # another step has begun since this one was planned
    if delivery.item.part == target_queue.JOINED and now < queue.next_at < now + target_queue.IDLE_MS:
        return None  # many executors requested a step for the jobs of one crowd
    busy_until = max(queue.lease_until, 0 if requested else queue.next_at - EARLY_MS)
    if busy_until > now:
        mine = queue.message_id in ("", delivery.message_id)
        return max(queue.lease_until + AGAIN_MS, queue.next_at) if mine else None
    leased = replace(queue, epoch=queue.epoch + 1, lease_until=now + LEASE_MS, message_id=delivery.message_id)
    if not ports.targets.change_queue(stored, leased):
        return now + AGAIN_MS
    step = Release(leased, ports)
    try:
        next_at = step.run()
    except Exception:
        _leave(step, now)
        raise
    log.info("release", extra={"target": name, "released": step.released, "users": len(step.users), "next_at": next_at})
    if next_at is not None and is_key(name):
        after = WorkItem(WorkKind.RELEASE, name, str(step.queue.epoch))
        delay_ms = max(next_at - ports.clock.now(), 0) + UP_MS  # SQS counts in seconds
        return next_at if ports.work.send([after], delay_ms=delay_ms) else None
    return next_at


def _leave(step: Release, now: int) -> None:
    """Release the lease of a failed step, so that the next one need not wait for its end."""
    try:
        step.ports.targets.change_queue(step.queue, replace(step.queue, lease_until=0, next_at=now))
    except Exception as error:
        log.warning("could not release the lease of a target queue", extra={"target": step.queue.target, "error": repr(error)})


def lost(ports: Ports, now: int) -> list[WorkItem]:
    """The release steps that are overdue: their messages are lost. Reads the queues of targets, and a quarter of those of keys a minute."""
    first = now // slots.MINUTE * PARTS_A_MINUTE % QUEUE_PARTS
    queues = itertools.chain.from_iterable(ports.targets.queues(part) for part in (None, *range(first, first + PARTS_A_MINUTE)))
    late = (queue.target for queue, users in queues if users and queue.next_at + LOST_MS < now and queue.lease_until < now)
    return [WorkItem(WorkKind.RELEASE, target) for target in itertools.islice(late, LOST_AT_ONCE)]
