"""After: whether a job that waits for other jobs may start. Each end is noted with the waiting job; the first one that is noted counts."""

import zlib
from collections.abc import Iterable, Mapping, Sequence

from scheduler.admission.overlap import Skip
from scheduler.model import ids, lifecycle
from scheduler.model.after import PREFIX, End, Ending, Follower, Kind, Predecessor, PredecessorKey, open_of, why_broken
from scheduler.model.errors import Unavailable
from scheduler.model.group import Group
from scheduler.model.job import GroupKey, Job, JobKey, Status, changed
from scheduler.storage.ports import EndNote, Found, Ports, Written

FIRST_MS, LATEST_MS = 600_000, 86_400_000  # a waiting job is checked after twice its wait, within these bounds
SPREAD_MS = 60_000  # the checks of jobs that were created together are spread over this time
RETENTION_MS = 30 * 86_400_000  # after the time of the waiting job, at least: its predecessors' records are kept this long
RECORD_MS = 400 * 86_400_000  # after the time of a predecessor: longer than any job runs and is retried


def end_of(predecessor: Job | None) -> End | None:
    """The end of a predecessor as it is stored (None: it is not stored any more); None: it has not ended."""
    if predecessor is None:
        return End(Ending.DELETED)
    if lifecycle.is_open(predecessor):
        return None
    state, reason = lifecycle.state(predecessor), predecessor.reason or ""
    return End(Ending(state.value), reason if state is Status.SKIPPED and reason.startswith(PREFIX) else None)


def end_of_group(group: Group | None) -> End | None:
    """The end of a group as it is stored (None: it is not stored any more); None: it has not ended.

    A group that has ended stays ended, as a job does: members that are redriven later change nothing.
    """
    if group is None:
        return End(Ending.DELETED)
    if group.ended_at is None:
        return None
    return End(Ending.SUCCEEDED if group.succeeded_at is not None else Ending.FAILED)


def key_of(job: Job, predecessor: Predecessor) -> JobKey:
    """The key of the job's predecessor, which belongs to the same owner."""
    return JobKey(job.owner, predecessor.id)


def check_at(job: Job, now: int) -> int:
    """When to check a waiting job that no end brings to its time before: its time, or later and later; at its expiry at the latest."""
    waited = now - max(job.scheduled_at, job.created_at, job.redriven_at or 0)
    pause = min(max(2 * waited, FIRST_MS), LATEST_MS) + zlib.crc32(job.id.encode()) % SPREAD_MS
    at = max(job.due_at, now + pause)
    return at if job.start_by is None else max(min(at, job.start_by), job.due_at)


def skip_of(job: Job) -> Skip | None:
    """The verdict on a job with a predecessor whose end forbids the start; None: there is none."""
    why = why_broken(job.after)
    return None if why is None else Skip(why)


def notes_of(job: Job, id: str, end: End) -> list[EndNote]:
    """The notes of this end of the predecessor `id` that the job needs."""
    if not lifecycle.is_open(job):
        return []
    return [EndNote(job.key, place, end) for place, each in enumerate(job.after) if each.id == id and each.end is None]


def write_notes(jobs: Iterable[Job], notes: Sequence[EndNote], ports: Ports) -> tuple[dict[JobKey, Job], set[JobKey]]:
    """Note these ends. Returns the jobs as they are stored after that, and the keys of those that have got a note now.

    Raises Unavailable if a note was refused.
    """
    known, written = {job.key: job for job in jobs}, set[JobKey]()
    results = ports.jobs.note_ends(notes) if notes else []
    for note, (done, stored) in zip(notes, results, strict=True):
        if done is Written.YES:
            written.add(note.key)
        if stored is not None:  # several notes of a job are written at once: each answer has its own end, and perhaps not the others
            known[note.key] = _merged(stored, known[note.key])
    if any(done is Written.REFUSED for done, _ in results):
        raise Unavailable
    return known, written


def learn(jobs: Sequence[Job], ports: Ports, *, new: bool = False) -> dict[JobKey, Job]:
    """Read the predecessors that have not ended as far as these jobs know, and note the ends. Returns the jobs with the ends.

    A predecessor that has not ended knows from then on that jobs wait for its end: first the records of its followers are stored, then it
    is marked, on the condition that it is open. So its end either sees the mark, or is seen here. `new`: the jobs were just created.

    Raises Unavailable.
    """
    of_groups = _notes_of_groups(jobs, ports, new=new)
    waiting = [(job, each, key_of(job, each)) for job in jobs for each in open_of(job.after) if each.kind is Kind.JOB]
    if not waiting:
        return write_notes(jobs, of_groups, ports)[0]
    _record([(job, each) for job, each, _ in waiting if new or job.fence == 1], ports)
    keys = sorted({key for _, _, key in waiting})
    found = ports.jobs.get_many(keys)
    unmarked = [(job, each, key) for job, each, key in waiting if _is_unmarked(found.get(key), until(job) if new else 0)]
    if unmarked:
        _record([(job, each) for job, each, _ in unmarked if not new and job.fence > 1], ports)
        marks = dict[JobKey, int]()
        for job, _, key in unmarked:
            marks[key] = max(until(job), marks.get(key, 0))
        found = _marked(marks, found, ports)
    notes = [
        note
        for job, each, key in waiting
        if key not in found.unreadable and (end := end_of(found.get(key))) is not None
        for note in notes_of(job, each.id, end)
    ]
    return write_notes(jobs, [*of_groups, *notes], ports)[0]


def _notes_of_groups(jobs: Sequence[Job], ports: Ports, *, new: bool) -> list[EndNote]:
    """Read the groups that have not ended as far as these jobs know, in the same way, and return the notes of those that have."""
    waiting = [(job, each) for job in jobs for each in open_of(job.after) if each.kind is Kind.GROUP]
    if not waiting:
        return []
    _record([(job, each) for job, each in waiting if new or job.fence == 1], ports)
    found = {key: ports.groups.follow(key) for key in sorted({GroupKey(job.owner, each.id) for job, each in waiting})}
    ends = {key: end_of_group(group) for key, group in found.items()}
    return [
        note for job, each in waiting if (end := ends[GroupKey(job.owner, each.id)]) is not None for note in notes_of(job, each.id, end)
    ]


def until(job: Job) -> int:
    """Until when (ms) the end of a predecessor may matter to the job, if every other way to learn of it fails.

    It is rounded up, so that few jobs change the mark that an earlier one has made.
    """
    return (max(job.due_at, job.created_at) // RETENTION_MS + 2) * RETENTION_MS


def _record(followers: Sequence[tuple[Job, Predecessor]], ports: Ports) -> None:
    records = [Follower(PredecessorKey(job.owner, each.kind, each.id), job.id, _expiry(job, each)) for job, each in followers]
    if records and Written.REFUSED in ports.followers.add(list(dict.fromkeys(records))):
        raise Unavailable


def _expiry(job: Job, predecessor: Predecessor) -> int:
    """The record is needed until the predecessor ends: its id has its time."""
    return max(until(job), ids.time(predecessor.id) + RECORD_MS)


def _is_unmarked(predecessor: Job | None, until: int) -> bool:
    if predecessor is None or not lifecycle.is_open(predecessor):
        return False
    return predecessor.followed is None or predecessor.followed < until


def _marked(marks: Mapping[JobKey, int], found: Found[JobKey, Job], ports: Ports) -> Found[JobKey, Job]:
    """Mark predecessors. Returns them as they are then: some may have ended since they were read."""
    results = ports.jobs.follow(list(marks.items()))
    if Written.REFUSED in results:
        raise Unavailable
    ended = {key for key, done in zip(marks, results, strict=True) if done is Written.NO}
    if not ended:
        return found
    again = ports.jobs.get_many(sorted(ended))
    rest = {key: job for key, job in found.items() if key not in ended}
    return Found({**rest, **again}, {**found.unreadable, **again.unreadable})


def _merged(stored: Job, known: Job) -> Job:
    """The stored job with the ends that are known of either."""
    if not stored.after:
        return stored
    pairs = zip(stored.after, known.after, strict=True)
    return changed(stored, after=tuple(one if one.end is not None else other for one, other in pairs))
