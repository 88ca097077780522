"""The simulated AWS: an index that lags, queues that lose and double messages, a Lambda that polls and dies."""

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from random import Random

from greenlet import getcurrent

from scheduler.model import slots
from scheduler.model.job import (
    Delivery,
    DueEntry,
    Failure,
    FailureKind,
    Finished,
    Job,
    JobKey,
    Lane,
    LaterCheck,
    Message,
    Result,
    TaskHead,
    Unit,
    UnitKey,
)
from scheduler.model.notifications import Notifications
from scheduler.model.spec import JobSpec
from scheduler.model.work import WorkDelivery, WorkItem
from scheduler.storage.memory.stores import MemoryJobs, MemoryLanes, MemoryLedger, MemoryWork, Queued, QueuedWork, glanced
from scheduler.storage.ports import Change, Found, Guard, Written
from tests.simulation.faults import Faults
from tests.simulation.hub import NEVER, Hub

SLACK_MS = 30_000  # a put may take twenty seconds
BATCH = {Lane.ONE_TIME: 10, Lane.RECURRING: 10, Lane.RETRY: 1}
STALE_MS = 1_000  # for this long after a write, an eventually consistent read may miss it
AT_ONCE = 40  # jobs that an executor can run in parallel


class SimClock:
    """The clock of an invocation: virtual time plus this machine's error. Monotonic time has no error, but may stand still in a freeze."""

    def __init__(self, hub: Hub, skew: int) -> None:
        self._hub, self._skew = hub, skew

    def now(self) -> int:
        return self._hub.time + self._skew

    def monotonic(self) -> int:
        return self._hub.time - getattr(getcurrent(), "stood_still_ms", 0)

    def sleep_until(self, at: int) -> None:
        self._hub.sleep_until(max(at - self._skew, self._hub.time))


class LaggingJobs(MemoryJobs):
    """The jobs table with an index that shows the changes of each slot in order, but later.

    `watch` receives every write, `refused` every job whose claim holder made a change that the table refused.
    """

    def __init__(self, hub: Hub, faults: Faults, watch: Callable[[Job | None, Job], None], refused: Callable[[Job], None]) -> None:
        super().__init__()
        self._hub, self._faults, self._watch, self._refused = hub, faults, watch, refused
        self._placed: dict[JobKey, int] = {}  # when each job entered its slot
        self._there: dict[str, set[JobKey]] = defaultdict(set)  # the jobs really in each slot, whether the index shows them or not
        self._canary_put: dict[UnitKey, int] = {}  # when each canary was put
        self._storm_lag = 0
        self._shown: dict[str, int] = {}  # by slot: when its last change becomes visible
        self._unseen: dict[str, deque[tuple[int, JobKey, DueEntry | None]]] = defaultdict(deque)  # by slot: when, job, new entry
        self._visible: dict[UnitKey, int] = {}
        self._storm_until = 0
        self._before: dict[JobKey, tuple[int, Job | None]] = {}  # each job before its last write, and the time of that
        self._stale = Random(0)

    def check(self, spec: JobSpec, notifications: Notifications | None = None) -> None:
        """Accept the job: no payload here is near the limit, and encoding it would take a hundredth of the time."""

    def glance(self, jobs: Sequence[Job]) -> Found[JobKey, Job]:
        """Return some of the jobs that were written within the last second as they were before."""
        found, now = super().glance(jobs), self._hub.time
        for job in jobs:
            key = job.key
            at, before = self._before.get(key, (0, None))
            if self._faults.on and now - at < STALE_MS and self._stale.random() < self._faults.rates.stale:
                self._faults.counts["stale read"] += 1
                found.pop(key, None)
                if before is not None:
                    found[key] = glanced(job, before)
        return found

    def _store(self, before: Job | None, after: Job) -> None:
        self._watch(before, after)
        if self._faults.rates.stale:
            self._before[after.key] = self._hub.time, before
        if before is None or before.slot != after.slot:
            key = after.key
            self._placed[key] = self._hub.time
            if before is not None and before.slot is not None:
                self._there[before.slot].discard(key)
            if after.slot is not None:
                self._there[after.slot].add(key)
        super()._store(before, after)

    def put_many(self, jobs: Sequence[Job]) -> list[Written]:
        return [self._put_or_refuse(job) for job in jobs]

    def _put_or_refuse(self, job: Job) -> Written:
        """Put a job, or seem to refuse it: in half of the refused cases the job is stored."""
        if self._faults.strike("put refused", self._faults.rates.refuse):
            if self._faults.random.random() < 0.5:
                self.put(job)
            return Written.REFUSED
        return Written.of(self.put(job))

    def _change(self, change: Change) -> bool:
        stored = self.rows.get(change.before.key)
        held = super()._change(change)
        if not held and stored and stored.claim and stored.fence == change.before.fence and stored.claim == change.before.claim:
            if change.after.claim is None and change.guard not in (
                Guard.LEASE,
                Guard.CANCEL,
            ):  # a change that takes back a lapsed job does not come from its holder, and a requeue gives way to a cancel
                self._refused(stored)
        return held

    def hidden(self, unit: Unit) -> list[JobKey]:
        """Return the open jobs that were in the canary's slot before the canary and that the index does not show yet."""
        slot, since = unit.slots[0], self._canary_put.get(unit.key, 0)
        self._look(slot)
        return [key for key in self._there[slot] if key not in self._index[slot].by_key and self._placed[key] < since and key in self.rows]

    def late_comers(self, unit: Unit) -> list[JobKey]:
        """Return the jobs that entered the slots of a unit so late that its dispatch may have begun."""
        late = slots.start_of(unit.key.minute) - slots.OPEN_AHEAD + SLACK_MS
        return [key for slot in unit.slots for key in self._there[slot] if self._placed[key] > late and key in self.rows]

    def put_canary(self, unit: UnitKey, slot: str, at: int) -> None:
        super().put_canary(unit, slot, at)
        self._canary_put.setdefault(unit, self._hub.time)
        self._visible[unit] = self._when(slot)

    def canary_visible(self, unit: UnitKey, slot: str) -> bool:
        return super().canary_visible(unit, slot) and self._visible[unit] <= self._hub.time

    def _reindex(self, before: Job | None, new: DueEntry | None) -> None:
        if before is not None and before.slot is not None:
            self._unseen[before.slot].append((self._when(before.slot), before.key, None))
        if new is not None:
            self._unseen[new.slot].append((self._when(new.slot), new.key, new))

    def _look(self, slot: str) -> None:
        """Let the index show all changes that are visible by now."""
        unseen, shown, now = self._unseen[slot], self._index[slot], self._hub.time
        while unseen and unseen[0][0] <= now:
            _, key, entry = unseen.popleft()
            if entry is None:
                shown.drop(key)
            else:
                shown.show(entry)

    def due(self, slot: str, *, since: int = 0, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        self._look(slot)
        return super().due(slot, since=since, after=after)

    def count(self, slots: Sequence[str], lane: Lane, *, since: int, until: int) -> int:
        for slot in slots:
            self._look(slot)
        return super().count(slots, lane, since=since, until=until)

    def sweep(self, *, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        for slot in [slot for slot, changes in self._unseen.items() if changes]:
            self._look(slot)
        return super().sweep(after=after)

    def _when(self, slot: str) -> int:
        faults, now = self._faults, self._hub.time
        usual = faults.rates.lag_ms if faults.on else 0
        lag = faults.between(0, self._storm_lag if now < self._storm_until else usual) if usual else 0
        self._shown[slot] = max(self._shown.get(slot, 0), now + lag)
        return self._shown[slot]

    def storm(self) -> None:
        """Let the index lag up to a minute, or up to seven minutes, for the next minute and a half."""
        self._storm_until = self._hub.time + 90_000
        self._storm_lag = self._faults.random.choice((60_000, 60_000, 60_000, 420_000))


class WatchedLedger(MemoryLedger):
    """A ledger that reports on its units: `fell` receives a unit whose progress went back, `closed` a closed unit."""

    def __init__(self, fell: Callable[[Unit], None], closed: Callable[[Unit], None]) -> None:
        super().__init__()
        self._fell, self._on_close = fell, closed

    def change_unit(self, before: Unit, after: Unit) -> bool:
        stored = self.unit(before.key)
        held = super().change_unit(before, after)
        if (
            held
            and stored
            and not stored.resting  # a resume lets a unit be dispatched once more
            and (after.epoch < stored.epoch or after.progress < stored.progress or (stored.handed_out_at and not after.handed_out_at))
        ):
            self._fell(after)
        return held

    def close_unit(self, unit: Unit, at: int, look: LaterCheck) -> bool:
        held = super().close_unit(unit, at, look)
        if held:
            self._on_close(unit)
        return held


class Lenience(Enum):
    """The answer of the queues to an old receipt handle. AWS documents that DeleteMessage succeeds with one."""

    NO = auto()  # they refuse it
    SAID = auto()  # they say that the visibility is changed, and do nothing
    DONE = auto()  # they change it


class SimLanes(MemoryLanes):
    """Queues and topic that lose, double, delay and reorder messages, and wake their poller when a message becomes visible."""

    lenience = Lenience.NO

    def __init__(
        self, hub: Hub, faults: Faults, wake: Callable[[Lane], None], sent: Callable[[str], None] = lambda message_id: None
    ) -> None:
        super().__init__()
        self._hub, self._faults, self._sent = hub, faults, sent
        self._wake = {lane: partial(wake, lane) for lane in Lane}
        self._alarms = dict.fromkeys(Lane, NEVER)  # when each poller is woken next
        self._set: dict[Lane, set[int]] = {lane: set() for lane in Lane}  # the times of all alarms, including outdated ones

    def now(self) -> int:
        return self._hub.time

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        refused = []
        for message in messages:
            if self._faults.strike("publish refused", self._faults.rates.refuse):
                refused.append(message)
            else:
                self._arrive(message, self._hub.time)
        return refused

    def send(self, messages: Sequence[Message], now: int) -> list[Message]:
        for message in messages:
            delay = max(message.not_before - now, 0) // 1000 * 1000
            self._arrive(message, self._hub.time + min(delay, 900_000))
        return []

    def add(self, message: Message, visible_at: int) -> None:
        super().add(message, visible_at)
        self._sent(next(reversed(self.queues[message.lane])))

    def receive(self, lane: Lane, limit: int, now: int) -> list[Delivery]:
        taken = super().receive(lane, limit, now)
        for delivery in taken:
            if self._faults.strike("redelivered", self._faults.rates.redeliver):
                queued = self.queues[lane][delivery.message_id]
                self._show(queued, now + self._faults.random.choice((100, 5_000, 31_000)))
        if self._ready[lane] and self._ready[lane][0][0] > now:  # otherwise the poller polls again by itself
            self._set_alarm(lane, self._ready[lane][0][0])
        return taken

    def _arrive(self, message: Message, at: int) -> None:
        faults = self._faults
        if faults.strike("lost", faults.rates.lose):
            return
        self.add(message, at + faults.between(5, 60))
        if faults.strike("doubled", faults.rates.double):
            self.add(message, faults.random.choice((self._hub.time + 10, at + 10, at + 4_000, at + 60_000, at + 400_000)))
            if faults.strike("dead", faults.rates.dead):
                self._bury(message, faults.random.choice((10, 1_000, 20_000)))

    def _bury(self, message: Message, after: int) -> None:
        """Put another copy into the dead-letter queue."""
        self.add(message, self._hub.time)
        message_id = next(reversed(self.queues[message.lane]))
        self.dead[message.lane][message_id] = self.queues[message.lane].pop(message_id)
        self._hub.at(self._hub.time + after, self._wake[message.lane])

    def _extend(self, lane: Lane, receipt: str, seconds: int) -> bool:
        if super()._extend(lane, receipt, seconds):
            return True
        if self.lenience is Lenience.NO:
            return False
        queued = self.queues[lane].get(receipt.partition("/")[0])
        if queued is not None and self.lenience is Lenience.DONE:
            self._show(queued, self.now() + seconds * 1000)
        return queued is not None

    def _show(self, queued: Queued, at: int) -> None:
        super()._show(queued, at)
        self._set_alarm(queued.message.lane, at)

    def _set_alarm(self, lane: Lane, at: int) -> None:
        """Wake the poller at `at`, unless an earlier alarm is set."""
        if at < self._alarms[lane]:
            self._alarms[lane] = at
            if at not in self._set[lane]:
                self._set[lane].add(at)
                self._hub.at(at, partial(self._ring, lane, at))

    def _ring(self, lane: Lane, at: int) -> None:
        """Wake the poller if a message is visible. Most messages are deleted, or their leases renewed, before they are visible again."""
        self._set[lane].remove(at)
        if self._alarms[lane] != at:
            return  # an earlier alarm replaced this one
        self._alarms[lane] = NEVER
        ready, queue = self._ready[lane], self.queues[lane]
        while ready and ((queued := queue.get(ready[0][1])) is None or queued.visible_at != ready[0][0]):
            heapq.heappop(ready)
        if ready and ready[0][0] > self._hub.time:
            self._set_alarm(lane, ready[0][0])
        elif ready:
            self._wake[lane]()


class SimWork(MemoryWork):
    """The work queue: it loses, doubles and delays messages, and starts a worker for each one that becomes visible."""

    def __init__(
        self, hub: Hub, faults: Faults, step: Callable[[WorkDelivery], None], sent: Callable[[str], None] = lambda message_id: None
    ) -> None:
        super().__init__(SimClock(hub, 0))
        self._hub, self._faults, self._step, self._sent = hub, faults, step, sent

    def add(self, item: WorkItem, visible_at: int) -> QueuedWork:
        faults = self._faults
        made = super().add(item, visible_at + faults.between(5, 60))
        self._sent(made.message_id)
        if faults.strike("work lost", faults.rates.lose):
            del self.queued[made.message_id]
            return made
        self._alarm(made)
        if faults.strike("work doubled", faults.rates.double):
            again = super().add(item, made.visible_at + faults.random.choice((10, 2_000, 60_000)))
            self._sent(again.message_id)
            self._alarm(again)
        return made

    def hide(self, receipt: str, seconds: int) -> bool:
        held = super().hide(receipt, seconds)
        if held:
            self._alarm(self.queued[receipt.partition("/")[0]])
        return held

    def _alarm(self, queued: QueuedWork) -> None:
        self._hub.at(queued.visible_at, partial(self._ring, queued.message_id, queued.visible_at))

    def _ring(self, message_id: str, at: int) -> None:
        queued = self.queued.get(message_id)
        if queued is None or queued.visible_at != at:
            return
        queued.receive_count += 1
        queued.receipt, queued.visible_at = f"{message_id}/{queued.receive_count}", self._hub.time + 600_000
        self._alarm(queued)
        delivery = WorkDelivery(queued.item, message_id, queued.receipt, queued.receive_count)
        self._hub.spawn(partial(self._step, delivery), self._hub.time + self._faults.between(1, 100))


class SimPool:
    """The pool of an executor: each job takes the time, and has the outcome, that its payload specifies. It begins at its instant, if its
    executor still lives then."""

    def __init__(
        self,
        hub: Hub,
        clock: SimClock,
        random: Random,
        started: Callable[[Job, int], None],
        *,
        at_once: int = AT_ONCE,
        overfull: Callable[[Job], None] = lambda job: None,
        stopped: Callable[[Job, int], None] = lambda job, ends: None,
    ) -> None:
        self._overfull, self._stopped = overfull, stopped
        self._hub, self._clock, self._random, self._started, self._at_once = hub, clock, random, started, at_once
        self._running: list[tuple[int, Job, int, Result]] = []  # end, job, start by the executor's clock, result

    def has_room(self, job: Job) -> bool:
        return len(self._running) < self._at_once

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        now = self._clock.now()
        if not self.has_room(job):
            self._overfull(job)
        took, wait = min(int(job.spec.payload["takes"]), job.spec.timeout_ms), self._ahead(job, now)
        self._running.append((self._hub.time + wait + took, job, now + wait, outcome(job, took)))
        if wait:
            self._hub.at(self._hub.time + wait, partial(self._begin, job))
        else:
            self._started(job, now)

    def _ahead(self, job: Job, now: int) -> int:
        """Milliseconds until the job's instant."""
        return max(job.due_at - now, 0)

    def _begin(self, job: Job) -> None:
        if any(each[1] is job for each in self._running):
            self._started(job, self._clock.now())

    def wait(self, until: int) -> list[Finished]:
        hub = self._hub
        wake = max(until - (self._clock.now() - hub.time), hub.time)
        if not self._running:
            hub.sleep_until(wake)
            return []
        ends = min([each[0] for each in self._running])
        hub.sleep_until(min(max(ends, hub.time), wake))
        now = hub.time
        if ends > now:
            return []
        done = [each for each in self._running if each[0] <= now]
        self._running = [each for each in self._running if each[0] > now]
        return [Finished(job, started, self._clock.now(), result) for _, job, started, result in done]

    def cancel(self, job: Job) -> None:
        """End the work within a second, as a cooperative target does."""
        ends, stopped = self._hub.time + self._random.randint(10, 1_000), Result(failure=Failure(FailureKind.TIMEOUT, "stopped"))
        self._running = [
            (ends, item, started, stopped) if item.key == job.key and end > ends else (end, item, started, result)
            for end, item, started, result in self._running
        ]
        self._stopped(job, ends)

    def kill(self, job: Job) -> None:
        self._running = [each for each in self._running if each[1].key != job.key]

    def stop(self) -> None:
        self._running.clear()


def outcome(job: Job, took: int) -> Result:
    """Return the result of the job's target: it fails as many times as its payload specifies."""
    if took >= job.spec.timeout_ms:
        return Result(failure=Failure(FailureKind.TIMEOUT, "its time-out passed"))
    if job.charged < int(job.spec.payload["fails"]):
        return Result(failure=Failure(FailureKind.RETRYABLE, "simulated"))
    return Result(output="done")
