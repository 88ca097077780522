"""Read what is wrong now. All reads are bounded, and of data that is stored anyway; nothing is written.

Of all users: the due part of the minutes that may have jobs, the overflow, the waiting rooms and the target queues, from the due index; the
ledger's units, backlogs, lane states and breakers; the counters of today, which name the owners whose dead letters and histories are worth
a read.

Of one user: the latest jobs by scheduled time, the waiting rooms while a lane is paused, the tasks; so no other user's backlog hides them.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from scheduler.admission import why_waits
from scheduler.insight.counting import DEAD_NAMES, EVERYBODY, day_of, stats_partition
from scheduler.insight.problems import (
    Disabled,
    Failures,
    LaneWait,
    Late,
    OwnerWait,
    PausedTask,
    Skips,
    Status,
    cancelling,
    problems,
)
from scheduler.model import fingerprint, lifecycle, slots
from scheduler.model.breaker import Breaker
from scheduler.model.job import CANARY_OWNER, DeadLetter, DueEntry, Job, JobKey, Lane, LaneState, TaskKey, Unit, new_job
from scheduler.model.job import Status as JobStatus
from scheduler.model.spec import JobSpec
from scheduler.pipeline.lag import known_lag
from scheduler.sharing.fair_queue import REST
from scheduler.sharing.window import PUBLISHED_MS
from scheduler.storage.ports import Ports, Watched
from scheduler.targets import called

LATE_MS = 1_000
HOUR, DAY = 3_600_000, 86_400_000
MOST_SLOTS = 320  # slots read at once: about ten minutes of 16 shards beside the overflow and the waiting rooms
FIRST = 20  # entries of each slot; those of slots with more are read again, `MORE` together
MORE = 1_000
CHECKED = 1_000  # entries of minutes whose jobs are read, since the index does not show whether a job runs
LISTED = 20  # rows of each list
CROWD = 10  # late jobs of one owner that are worth a word
OWNERS = 10  # whose dead letters and histories are read, those with the most of today first
LETTERS = 200  # of each owner
PLACES = 100  # jobs that are read for what they call, of up to 400 KB each, shared evenly by the errors
RECENT, OLDEST = 100, 25  # jobs of a history, and the oldest of them
RUNS = 10  # the last runs of a task
PARALLEL = 4


class Wait(NamedTuple):
    """A job that is due and waits. `slot`: None if it was read from its owner's history."""

    owner: str
    id: str
    lane: Lane
    due_at: int
    slot: str | None


class Backlogs(NamedTuple):
    """The jobs that wait in dispatchers for room in a lane, by owner and by lane."""

    owners: Counter[str]
    lanes: Counter[Lane]


NO_BACKLOG = Backlogs(Counter(), Counter())


class Waits(NamedTuple):
    """The jobs that are due and wait, as far as they were read. `cut`: there may be more. `full`: rooms of paused lanes that were cut."""

    jobs: Sequence[Wait]
    cut: bool = False
    full: Collection[Lane] = frozenset()


def of_all(names: Mapping[str, str], ports: Ports, stage: str = "") -> Status:
    """Read the problems of all users. `names`: of the users, by id; only theirs are the failures and the skipped runs.

    `stage`: its name in commands.
    """
    now = ports.clock.now()
    watched, behind, barred, backlog = ports.side_by_side(
        ports.ledger.watched, lambda: known_lag(ports.ledger, now), ports.users.barred, lambda: _backlog(ports, now)
    )
    paused = [lane for lane, state in watched.lanes.items() if state.paused_at is not None]
    waits = _waits(_places(ports, now, paused), ports, now)
    owners = _owners_of_today([*names], now, ports)
    failures = _failures([owner for owner, counts in owners if counts[0]][:OWNERS], now, ports)
    histories = [ports.jobs.history(owner, **_before(now)).jobs for owner, counts in owners if counts[1]][:OWNERS]
    counted = Counter(wait.owner for wait in waits.jobs)
    found = Status(
        at=now,
        everybody=True,
        stage=stage,
        lag=behind,
        names=names,
        failures=failures,
        skipping=_skipping(itertools.chain.from_iterable(histories), now, ports),
        breakers=_opened_last(watched),
        disabled=[Disabled(owner, count) for owner, count in counted.most_common() if owner in barred.disabled],
    )
    return _with_waits(found, waits, watched, barred.disabled, backlog)


def of_owner(owner: str, name: str, ports: Ports, *, is_own: bool = True) -> Status:
    """Read the problems that concern the jobs of one owner. `is_own`: the requests and commands that mend them need not name it."""
    now = ports.clock.now()
    watched, behind, page, tasks = ports.side_by_side(
        ports.ledger.watched,
        lambda: known_lag(ports.ledger, now),
        lambda: ports.jobs.history(owner, **_before(now)),
        lambda: ports.tasks.page(owner, after=None, limit=RECENT).tasks,
    )
    paused = [lane for lane, state in watched.lanes.items() if state.paused_at is not None]
    rooms = _waits(_rooms(ports.ledger.overflow_units(), paused, ports.rules.shards), ports, now) if paused else Waits(())
    waiting = {job.id: Wait(owner, job.id, job.lane, job.due_at, None) for job in page.jobs if why_waits.is_due(job, now)}
    waiting |= {wait.id: wait for wait in rooms.jobs if wait.owner == owner}
    # If none of the oldest jobs of the page waits, those before it hardly do, except in the rooms, which are read apart.
    cut = rooms.cut or (page.cursor is not None and any(why_waits.is_due(job, now) for job in page.jobs[-OLDEST:]))
    waits = Waits(list(waiting.values()), cut and bool(waiting), rooms.full if waiting else ())
    has_failed = any(counts[0] for _, counts in _owners_of_today([owner], now, ports))
    found = Status(
        at=now,
        everybody=False,
        lag=behind,
        names={owner: name},
        named=None if is_own else owner,
        failures=_failures([owner], now, ports) if has_failed else (),
        skipping=_skipping(page.jobs, now, ports),
        breakers=[breaker for breaker in _opened_last(watched) if breaker.circuit.owner in (None, owner)],
        paused_tasks=[
            PausedTask(task.id, task.name, owner, task.inactive_at, task.inactive_reason) for task in tasks if task.inactive_at is not None
        ],
    )
    return _with_waits(found, waits, watched, frozenset())


def _backlog(ports: Ports, now: int) -> Backlogs:
    """The jobs that wait in dispatchers, as these have just published it."""
    owners, lanes = Counter[str](), Counter[Lane]()
    for each in itertools.chain.from_iterable(ports.ledger.backlogs(lane, now - PUBLISHED_MS) for lane in Lane):
        owners.update({owner: demand.count for owner, demand in each.users.items() if owner != REST})
        lanes[each.lane] += sum(demand.count for demand in each.users.values())
    return Backlogs(owners, lanes)


def _with_waits(found: Status, waits: Waits, watched: Watched, disabled: Collection[str], backlog: Backlogs = NO_BACKLOG) -> Status:
    """The status with everything that follows from the waiting jobs, and with its problems.

    Of a flood, the oldest jobs in the slots may all be in executors: `backlog` has those that wait behind them.
    """
    states = [watched.lanes.get(lane, LaneState(lane)) for lane in Lane]
    paused = {state.lane for state in states if state.paused_at is not None}
    unexplained = [wait for wait in waits.jobs if wait.lane not in paused and wait.owner not in disabled and not _is_limited(wait)]
    counted = Counter(wait.owner for wait in waits.jobs) | backlog.owners  # the larger number of each owner
    by_lane = Counter(wait.lane for wait in waits.jobs) | backlog.lanes
    known = replace(
        found,
        late=_late(waits.jobs, waits.cut, found.at),
        unexplained=_late(unexplained, waits.cut, found.at),
        crowd=_crowd(unexplained),
        waiting=[OwnerWait(owner, count, cancelling(owner, found)) for owner, count in counted.most_common(LISTED)],
        lanes=[LaneWait(state, count := by_lane[state.lane], state.lane in waits.full or (waits.cut and count > 0)) for state in states],
    )
    return replace(known, problems=problems(known))


def _late(waits: Iterable[Wait], cut: bool, now: int) -> Late:
    delays = [delay for wait in waits if (delay := now - wait.due_at) > LATE_MS]
    return Late(len(delays), cut and bool(delays), max(delays, default=0))


def _crowd(waits: Sequence[Wait]) -> OwnerWait | None:
    """The owner of at least half of these jobs, unless there are only a few."""
    most = Counter(wait.owner for wait in waits).most_common(1)
    return OwnerWait(*most[0]) if most and most[0][1] >= max(CROWD, len(waits) / 2) else None


def _is_limited(wait: Wait) -> bool:
    """Whether the job waits for the limit of its target."""
    return wait.slot is not None and slots.is_queued(wait.slot)


def _opened_last(watched: Watched) -> list[Breaker]:
    return sorted(watched.breakers.values(), key=attrgetter("opened_at"), reverse=True)


# Jobs that are due and wait.


def _places(ports: Ports, now: int, paused: Collection[Lane]) -> list[str]:
    """The slots that may have due jobs which have not started: of the rooms, of minutes (the oldest first), and of target queues.

    A job that was due soon after it was accepted is in a minute ahead, up to the first safe one.
    """
    cursor, units, others, queues = ports.side_by_side(
        ports.ledger.cursor, ports.ledger.open_units, ports.ledger.overflow_units, ports.targets.queues
    )
    shards = ports.rules.shards if cursor is None else cursor.shards
    queued = [slots.queue(user.target, user.owner) for _, users in queues for user in users if user.waiting]
    minutes = {unit.key.minute for unit in units if unit.key.minute <= slots.minute_of(now)}
    ahead, last = slots.minute_of(now), slots.following(slots.first_safe_minute(now))
    while ahead <= last:
        minutes.add(ahead)
        ahead = slots.following(ahead)
    of_minutes = [f"{minute}#{shard:02d}" for minute in sorted(minutes) for shard in range(shards)]
    return list(dict.fromkeys([*_rooms(others, paused, shards), *_all_slots(others), *of_minutes, *itertools.chain.from_iterable(queued)]))


def _rooms(units: Iterable[Unit], lanes: Collection[Lane], shards: int) -> list[str]:
    """The slots of the waiting rooms of these lanes, also of rooms that have no unit yet: the first resume opens it."""
    known = _all_slots(unit for unit in units if slots.lane_of_room(unit.key.minute) in lanes)
    return list(dict.fromkeys([*known, *(f"{slots.room_of(lane)}#{shard:02d}" for lane in lanes for shard in range(shards))]))


def _all_slots(units: Iterable[Unit]) -> list[str]:
    return [slot for unit in units for slot in unit.slots]


def _waits(places: Sequence[str], ports: Ports, now: int) -> Waits:
    """The jobs in these slots that are due and have no claim."""
    entries, cut = _due(places[:MOST_SLOTS], ports, now)
    apart = [entry for entry in entries if _is_apart(entry.slot)]
    unsure = sorted((entry for entry in entries if not _is_apart(entry.slot)), key=attrgetter("due_at"))
    waits = [Wait(entry.key.owner, entry.key.id, entry.lane, entry.due_at, entry.slot) for entry in apart + _unclaimed(unsure, ports)]
    full = {Lane(lane) for slot in cut if (lane := slots.lane_of_room(slots.minute(slot))) in list(Lane)}
    is_cut = bool(cut) or len(places) > MOST_SLOTS or len(unsure) > CHECKED
    return Waits([wait for wait in waits if wait.owner != CANARY_OWNER], is_cut, full)


def _due(places: Sequence[str], ports: Ports, now: int) -> tuple[list[DueEntry], set[str]]:
    """The due entries of these slots, and the slots that have more of them."""
    found = dict(zip(places, ports.jobs.overdue(places, now, limit=FIRST), strict=True)) if places else {}
    more = [slot for slot, (_, cut) in found.items() if cut]
    if more and (limit := MORE // len(more)) > FIRST:
        found |= dict(zip(more, ports.jobs.overdue(more, now, limit=limit), strict=True))
    entries = [entry for listed, _ in found.values() for entry in listed]
    return entries, {slot for slot, (_, cut) in found.items() if cut}


def _is_apart(slot: str) -> bool:
    """Whether the jobs of this slot have no claim: those of waiting rooms and target queues."""
    return slots.is_queued(slot) or slot.startswith(slots.ROOM)


def _unclaimed(entries: Sequence[DueEntry], ports: Ports) -> list[DueEntry]:
    """Those of `CHECKED` entries whose jobs wait under the same fence: others run, or ended before the index showed it.

    Half of them are the oldest, which show how late jobs are; half are the latest, since in a flood all of the oldest may run.
    """
    checked = entries if len(entries) <= CHECKED else [*entries[: CHECKED // 2], *entries[-CHECKED // 2 :]]
    known = [_stub(entry) for entry in checked]
    stored = ports.jobs.glance(known) if known else {}
    return [entry for entry in entries if _is_waiting(stored.get(entry.key), entry)]


def _is_waiting(job: Job | None, entry: DueEntry) -> bool:
    return job is not None and lifecycle.is_open(job) and job.claim is None and job.fence == entry.fence


def _stub(entry: DueEntry) -> Job:
    """The job as far as the index shows it."""
    owner, id = entry.key
    return new_job(owner=owner, id=id, spec=_NO_SPEC, scheduled_at=0, due_at=entry.due_at, created_at=0, slot=entry.slot, fence=entry.fence)


_NO_SPEC = JobSpec("", {})


# Failures and skipped runs.


def _owners_of_today(owners: Sequence[str], now: int, ports: Ports) -> list[tuple[str, tuple[int, int]]]:
    """The owners with jobs that failed or were skipped today or in the last hour, each with both numbers, the most failures first."""
    if len(owners) > 1 and not any(_ended_badly(EVERYBODY, now, ports)):
        return []
    parts = [owners[number::PARALLEL] for number in range(min(PARALLEL, len(owners)))]

    def read(part: Sequence[str]) -> list[tuple[str, tuple[int, int]]]:
        return [(owner, counts) for owner in part if any(counts := _ended_badly(owner, now, ports))]

    found = ports.side_by_side(*[lambda part=part: read(part) for part in parts])
    return sorted(itertools.chain.from_iterable(found), key=lambda each: each[1], reverse=True)


def _ended_badly(owner: str, now: int, ports: Ports) -> tuple[int, int]:
    """The numbers of failed and of skipped jobs."""
    rows = ports.counters.read(stats_partition(owner), day_of(now - HOUR), f"{day_of(now)}~")
    failed = sum(row.amounts.get(name, 0) for row in rows for name in DEAD_NAMES)
    return failed, sum(row.amounts.get(JobStatus.SKIPPED, 0) for row in rows)


def _failures(owners: Iterable[str], now: int, ports: Ports) -> list[Failures]:
    """The dead letters of the last hour by owner, what they call, and error, the most first."""
    groups: dict[tuple[str, str | None], list[DeadLetter]] = defaultdict(list)
    for owner in owners:
        letters, _ = ports.jobs.letters(owner, since=now - DAY, until=None, after=None, limit=LETTERS, newest_first=True)
        for letter in letters:
            if letter.at >= now - HOUR:
                groups[owner, letter.fingerprint].append(letter)
    most = sorted(groups.values(), key=_most)[:LISTED]
    chosen = [sorted(letters, key=attrgetter("at"), reverse=True)[: PLACES // len(most)] for letters in most]
    jobs = ports.jobs.get_many([letter.key for letters in chosen for letter in letters]) if most else {}
    split = itertools.chain.from_iterable(_by_place(letters, jobs).items() for letters in most)
    return [_group(what, letters, jobs) for what, letters in sorted(split, key=lambda each: _most(each[1]))[:LISTED]]


def _most(letters: Sequence[DeadLetter]) -> tuple[int, int]:
    """Orders groups: the most letters first, then the latest one."""
    return -len(letters), -max(letter.at for letter in letters)


def _by_place(letters: Sequence[DeadLetter], jobs: Mapping[JobKey, Job]) -> dict[str, list[DeadLetter]]:
    """The letters of one error by what their jobs call. Jobs that were not read, or are gone, count for the most frequent place."""
    known = {letter.key: called.place(job.spec) for letter in letters if (job := jobs.get(letter.key)) is not None}
    usual = Counter(known.values()).most_common(1)
    found: dict[str, list[DeadLetter]] = defaultdict(list)
    for letter in letters:
        found[known.get(letter.key, usual[0][0] if usual else letter.type)].append(letter)
    return found


def _group(what: str, letters: Sequence[DeadLetter], jobs: Mapping[JobKey, Job]) -> Failures:
    """The error is that of the latest job, unless that one is gone or not dead any more."""
    latest, first_at = max(letters, key=attrgetter("at")), min(letter.at for letter in letters)
    job = jobs.get(latest.key)
    is_dead = job is not None and not lifecycle.is_open(job)
    error = fingerprint.error(job).message if job is not None and is_dead else ""
    return Failures(what, latest.key.owner, len(letters), first_at, latest.at, latest.fingerprint, error, latest.key.id, latest.task)


def _skipping(jobs: Iterable[Job], now: int, ports: Ports) -> list[Skips]:
    """The tasks of these jobs (of each owner the latest first) of whose last runs at least half were skipped, and more than one."""
    runs: dict[TaskKey, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.origin is not None and not lifecycle.is_open(job):
            runs[TaskKey(job.owner, job.origin.task)].append(job)
    found = []
    for task, ended in runs.items():
        last = ended[:RUNS]
        skipped = [job for job in last if lifecycle.state(job) is JobStatus.SKIPPED]
        if len(skipped) > 1 and 2 * len(skipped) >= len(last):
            found.append(Skips(task.id, "", task.owner, len(skipped), len(last), skipped[0].reason or ""))
    most = sorted(found, key=attrgetter("skipped"), reverse=True)[:LISTED]
    heads = ports.tasks.heads([TaskKey(each.owner, each.task) for each in most]) if most else {}
    return [replace(each, task_name=heads[key].name) for each in most if (key := TaskKey(each.owner, each.task)) in heads]


def _before(now: int) -> dict[str, Any]:
    """The part of a history up to now, the latest first."""
    return {"since": None, "until": now + 1, "after": None, "limit": RECENT, "newest_first": True}
