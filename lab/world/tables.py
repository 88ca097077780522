"""The jobs table with an index that lags, and a ledger that reports on its units."""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from random import Random

from lab.world.faults import Faults
from lab.world.hub import Hub
from scheduler.model import slots
from scheduler.model.job import DueEntry, Job, JobKey, Lane, LaterCheck, Unit, UnitKey
from scheduler.model.notifications import Notifications
from scheduler.model.spec import JobSpec
from scheduler.storage.memory.stores import MemoryJobs, MemoryLedger, glanced
from scheduler.storage.ports import Change, Found, Guard, Written

SLACK_MS = 30_000  # a put may take twenty seconds
STALE_MS = 1_000  # for this long after a write, an eventually consistent read may miss it


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
        is_written = super()._change(change)
        if is_written or stored is None or (change.ends and stored.followed is not None and change.before.followed is None):
            return is_written  # the holder is to read the followers of its job first
        if stored.claim and stored.fence == change.before.fence and stored.claim == change.before.claim:
            if change.after.claim is None and change.guard not in (
                Guard.LEASE,
                Guard.CANCEL,
                Guard.REVOKE,
            ):  # a change that takes back a lapsed job does not come from its holder, and a requeue or a put gives way to a cancel
                self._refused(stored)
        return is_written

    def hidden(self, unit: Unit) -> list[JobKey]:
        """Return the open jobs that were in the canary's slot before the canary and that the index does not show yet."""
        slot, since = unit.slots[0], self._canary_put.get(unit.key, 0)
        self._show(slot)
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

    def _show(self, slot: str) -> None:
        """Let the index show all changes that are visible by now."""
        unseen, shown, now = self._unseen[slot], self._index[slot], self._hub.time
        while unseen and unseen[0][0] <= now:
            _, key, entry = unseen.popleft()
            if entry is None:
                shown.drop(key)
            else:
                shown.show(entry)

    def due(self, slot: str, *, since: int = 0, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        self._show(slot)
        return super().due(slot, since=since, after=after)

    def count(self, slots: Sequence[str], lane: Lane, *, since: int, until: int) -> int:
        for slot in slots:
            self._show(slot)
        return super().count(slots, lane, since=since, until=until)

    def sweep(self, *, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        for slot in [slot for slot, changes in self._unseen.items() if changes]:
            self._show(slot)
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
        is_written = super().change_unit(before, after)
        if (
            is_written
            and stored
            and not stored.resting  # a resume lets a unit be dispatched once more
            and (after.epoch < stored.epoch or after.progress < stored.progress or (stored.handed_out_at and not after.handed_out_at))
        ):
            self._fell(after)
        return is_written

    def close_unit(self, unit: Unit, at: int, check: LaterCheck) -> bool:
        is_written = super().close_unit(unit, at, check)
        if is_written:
            self._on_close(unit)
        return is_written
