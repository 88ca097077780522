"""Store redrives: each job first joins its ordering queue, and a job with a key of its own takes the key again."""

from collections.abc import Sequence

from scheduler.admission.ordering_queue import join_queues, leave_queues
from scheduler.model.errors import Conflict
from scheduler.model.job import Job, JobKey, KeyEntry, OwnKey
from scheduler.model.lifecycle import is_open
from scheduler.storage.ports import Change, Found, KeyTaking, Ports, Written

TRIES = 10  # of a job with a key, while others take and free the key


def store_redrives(changes: Sequence[Change], ports: Ports, now: int) -> list[Written | Conflict]:
    """Store these redrives of different jobs, in order. A Conflict: the key of the job belongs to another job, which has not ended.

    NO: another request has redriven the job. REFUSED: a table refuses; the job may be redriven or not.
    """
    entered = join_queues([change.after for change in changes], orders=ports.orders, now=now)
    done: dict[JobKey, Written | Conflict] = {change.after.key: Written.REFUSED for change in changes}
    may = [change for change, ok in zip(changes, entered, strict=True) if ok]
    plain = [change for change in may if change.after.own_key is None]
    if plain:
        done |= {change.after.key: written for change, written in zip(plain, ports.jobs.change(plain), strict=True)}
    named = [change for change in may if change.after.own_key is not None]
    if named:
        done |= _take_keys(named, ports)
    return list(done.values())


def _take_keys(changes: Sequence[Change], ports: Ports) -> dict[JobKey, Written | Conflict]:
    """Store redrives of jobs with keys. Of the jobs of one key, the first one gets it."""
    done: dict[JobKey, Written | Conflict] = {}
    tried: dict[JobKey, KeyTaking] = {}
    for _ in range(TRIES):
        if not (left := [change for change in changes if change.after.key not in done]):
            break
        entries = ports.jobs.key_entries([_key(change.after) for change in left])
        found = ports.jobs.get_many([entry.job_key for entry in entries.values()]) if entries else Found[JobKey, Job]()
        takings: dict[OwnKey, KeyTaking] = {}
        for before, after, _guard in left:
            taking = KeyTaking(entries.get(_key(after)), after, before)
            if _is_taken(taking, found):
                done[after.key] = _taken(taking.before)
            elif taking == tried.get(after.key):
                done[after.key] = Written.NO  # the entry is as it was: so the job is not
            else:
                takings.setdefault(_key(after), taking)
        written = ports.jobs.take_keys(list(takings.values())) if takings else []
        tried |= {taking.job.key: taking for taking in takings.values()}
        done |= {taking.job.key: result for taking, result in zip(takings.values(), written, strict=True) if result is not Written.NO}
    leave_queues([change.after for change in changes if isinstance(done.get(change.after.key), Conflict)], orders=ports.orders)
    return {change.after.key: done.get(change.after.key, Written.REFUSED) for change in changes}


def _key(job: Job) -> OwnKey:
    assert job.own_key is not None
    return job.own_key


def _is_taken(taking: KeyTaking, found: Found[JobKey, Job]) -> bool:
    """Whether the key belongs to another job that has not ended, or that this version cannot read."""
    if taking.before is None or taking.before.job == taking.job.id:
        return False
    holder = found.get(taking.before.job_key)
    return taking.before.job_key in found.unreadable or (holder is not None and is_open(holder))


def _taken(entry: KeyEntry | None) -> Conflict:
    assert entry is not None
    rule = f"{entry.own.key!r} belongs to the job {entry.job}, which has not ended"
    return Conflict(f"key: {rule}", details=[{"field": "key", "rule": rule}])
