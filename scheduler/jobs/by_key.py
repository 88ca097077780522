"""Jobs by the keys that their owners chose: put, find, cancel.

A put applies `PutRules`. A debounce, a throttle and a singleton are combinations of them.

The entry of a key names one job. It changes only in one transaction with the insertion of the next job, on the condition that it still
names the job that was read. A job that has not started is changed in place under its fence and keeps its id. So each of
many writers of one key builds on the result of another. The end of a job writes nothing: readers treat the key of an ended job as free.

A job carries the idempotency key of the request that made it what it is. So a repeat of that request finds its own work done, even if
the job has started or ended meanwhile.
"""

import itertools
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from scheduler.jobs.cancel import cancel
from scheduler.jobs.change import try_change, why_fixed
from scheduler.model import lifecycle
from scheduler.model.errors import Conflict, NotFound
from scheduler.model.job import Job, KeyEntry, OwnKey
from scheduler.model.spec import JobSpec
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import NewJob, complete, take_over
from scheduler.storage.ports import Ports

PATIENCE_MS = 10_000  # how long a put is repeated while it loses races
PAUSE_MS = 5  # the longest pause before the second try; it doubles before each further one, up to `LONGEST_PAUSE_MS`
LONGEST_PAUSE_MS = 160


class OnConflict(StrEnum):
    """The effect of a put if the job of its key has not ended."""

    REPLACE = "replace"  # the job gets the time and the content of the request
    KEEP = "keep"  # the job stays as it is
    EXTEND = "extend"  # the job gets the time of the request and keeps its content


class OnStarted(StrEnum):
    """The effect of a put if the job of its key can no longer be changed."""

    REFUSE = "refuse"
    FOLLOW = "follow"  # a new job takes the key; the other job continues


class PutOutcome(StrEnum):
    """The actual effect of a put."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "kept"
    EXTENDED = "extended"
    THROTTLED = "throttled"


@dataclass(frozen=True, slots=True)
class PutRules:
    """The rules of a put for the job that its key names."""

    on_conflict: OnConflict = OnConflict.REPLACE
    on_started: OnStarted = OnStarted.REFUSE
    max_wait_ms: int | None = None  # no put moves the start further than this behind the creation of the job; a later put follows
    period_ms: int | None = None  # the job wins for this time from its creation, whatever becomes of it, unless it is cancelled


REPLACE = PutRules()
SINGLETON = PutRules(OnConflict.KEEP)


def debounce(max_wait_ms: int | None) -> PutRules:
    """The last put of a burst decides the time and the content of the job. A burst ends when its job starts, or with `max_wait_ms`."""
    return PutRules(OnConflict.REPLACE, OnStarted.FOLLOW, max_wait_ms=max_wait_ms)


def throttle(period_ms: int) -> PutRules:
    """The first put creates a job. Each further one returns that job until it has started and the period is over."""
    return PutRules(OnConflict.KEEP, OnStarted.FOLLOW, period_ms=period_ms)


@dataclass(frozen=True, slots=True)
class Put:
    """The result of a put.

    `follows`: the id of the job that had the key and continues beside the new one. `repeated`: an earlier try of the request did it.
    """

    job: Job
    outcome: PutOutcome
    follows: str | None = None
    repeated: bool = False


class Step(StrEnum):
    """The step that a put takes."""

    CREATE = "create"
    KEEP = "keep"
    CHANGE = "change"


def put(
    new: NewJob,
    ports: Ports,
    *,
    random: int,
    rules: PutRules = REPLACE,
    direct: DirectPath | None = None,
) -> Put:
    """Create the job, or apply the rules to the job that its key names. `random` fills the id of a new job.

    If the job of the key is the work of the same request (`new.put_by`), it stays as it is.

    Raises Conflict if the job of the key can no longer be changed; Invalid if it would end before it starts; TooLarge; Unavailable.
    """
    assert new.spec.key is not None
    own = OwnKey(new.owner, new.spec.key)
    give_up = ports.clock.now() + PATIENCE_MS
    for attempt in itertools.count():
        if attempt:
            ports.clock.sleep_until(ports.clock.now() + _pause(attempt, random))
        if attempt and ports.clock.now() >= give_up:
            break
        entry, stored = _read(own, ports)
        if (done := _repeated(stored, new.put_by, rules.on_conflict)) is not None:
            return replace(done, job=complete(done.job, ports, direct))
        now = ports.clock.now()
        step = decide(stored, rules, now)
        if stored is not None and step is Step.KEEP:
            return Put(stored, PutOutcome.UNCHANGED if rules.period_ms is None else PutOutcome.THROTTLED)
        if stored is not None and step is Step.CHANGE:
            changed = try_change(stored, _requested_fields(new, stored, rules, now), ports, now)
            if changed is not None:
                return Put(changed, PutOutcome.EXTENDED if rules.on_conflict is OnConflict.EXTEND else PutOutcome.REPLACED)
        else:
            made = take_over(new, entry, ports, random=random, direct=direct)
            if made is not None:
                return Put(made, PutOutcome.CREATED, stored.id if stored is not None and lifecycle.is_open(stored) else None)
    raise Conflict("other requests keep changing the job of this key; try again")


def decide(stored: Job | None, rules: PutRules, now: int) -> Step:
    """The step of a put, by the job that its key names (None: there is none). Raises Conflict if the rules allow no step."""
    if stored is not None and rules.period_ms is not None:
        return Step.KEEP if _wins(stored, rules.period_ms, now) else Step.CREATE
    if stored is None or not lifecycle.is_open(stored) or _is_burst_over(stored, rules, now):
        return Step.CREATE
    why = why_fixed(stored, now)
    if why is None:
        return Step.KEEP if rules.on_conflict is OnConflict.KEEP else Step.CHANGE
    if rules.on_started is OnStarted.FOLLOW:
        return Step.CREATE
    if rules.on_conflict is OnConflict.KEEP and stored.cancel_requested_at is None:
        return Step.KEEP
    raise Conflict(f"the key belongs to the job {stored.id}, which cannot be changed: {why}")


def find_repeated(own: OwnKey, put_by: str | None, on_conflict: OnConflict, ports: Ports) -> Put | None:
    """Return the result of an earlier try of the same put, if the job of the key is still its work."""
    return None if put_by is None else _repeated(_read(own, ports)[1], put_by, on_conflict)


def find_by_key(own: OwnKey, ports: Ports) -> Job:
    """Return the job that has the key or, after its end, the last job that had it. Raises NotFound."""
    _, job = _read(own, ports)
    if job is None:
        raise NotFound("no job has this key")
    return job


def cancel_by_key(own: OwnKey, ports: Ports) -> Job:
    """Cancel the job of the key as `cancel` does. Raises NotFound, Unavailable, and Conflict if it has finished otherwise."""
    return cancel(find_by_key(own, ports).key, ports)


def _wins(stored: Job, period_ms: int, now: int) -> bool:
    """Whether the job throttles a put: it has not started yet, or its period is not over. A cancelled job throttles none."""
    if lifecycle.is_open(stored) and stored.delay_ms is None and not lifecycle.has_started(stored, now):
        return True
    return stored.cancelled_at is None and now < stored.created_at + period_ms


def _is_burst_over(stored: Job, rules: PutRules, now: int) -> bool:
    """Whether the longest wait of the job is over. If puts still changed it, they could keep an executor from it for good."""
    return rules.max_wait_ms is not None and now >= stored.created_at + rules.max_wait_ms


def _read(own: OwnKey, ports: Ports) -> tuple[KeyEntry | None, Job | None]:
    entry = ports.jobs.key_entries([own]).get(own)
    return entry, None if entry is None else ports.jobs.get(entry.job_key)


def _repeated(stored: Job | None, put_by: str | None, on_conflict: OnConflict) -> Put | None:
    if stored is None or put_by is None or stored.put_by != put_by:
        return None
    changed = PutOutcome.EXTENDED if on_conflict is OnConflict.EXTEND else PutOutcome.REPLACED
    return Put(stored, PutOutcome.CREATED if stored.changed_at is None else changed, repeated=True)


def _requested_fields(new: NewJob, stored: Job, rules: PutRules, now: int) -> dict[str, Any]:
    """The fields that the job of the key gets, as `change.reschedule` takes them."""
    start = new.start(now)
    if rules.max_wait_ms is not None:
        start = min(start, stored.created_at + rules.max_wait_ms)
    time: dict[str, Any] = {"scheduled_at": start, "put_by": new.put_by, "puts": stored.puts + 1}
    if rules.on_conflict is OnConflict.EXTEND:
        return time | ({} if new.expires_at is None else {"start_by": new.expires_at})
    spec = {each.name: getattr(new.spec, each.name) for each in fields(JobSpec)}
    return time | {"start_by": new.expires_at, "spec": spec, "notifications": new.notifications}


def _pause(attempt: int, random: int) -> int:
    """The wait before a try (ms): a random part of a growing bound, so that writers do not collide again."""
    bound = min(PAUSE_MS << (attempt - 1), LONGEST_PAUSE_MS)
    return 1 + (random >> attempt) % bound
