"""Operations: one action on many jobs or tasks of an owner, at a rate. Pure.

An operation is a record with its progress and a lease. The function that processes it writes it under the condition of its version.
The fence of each job and the generation of each task, not this record, prevent that a change is made twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from scheduler.model import ids
from scheduler.model.errors import Invalid
from scheduler.model.job import Lane

DEFAULT_RATE = 50
MAX_RATE = 1_000
MAX_RUNNING = 5  # operations of one owner at once
SETTLED_MS = 2_000  # after its start: by then, the indexes have all items that were written before
LEASE_MS = 30_000  # a chunk takes seconds at most; after this time another invocation continues the operation
RETENTION_S = 90 * 86_400  # how long the record is kept after its end


class Action(StrEnum):
    """The action that an operation carries out on each job or task."""

    REDRIVE = "redrive"  # a job that failed or was killed is scheduled again
    CANCEL_JOBS = "cancel_jobs"
    REPLAY_JOBS = "replay_jobs"  # a new job does the work of a job that has ended
    PAUSE_TASKS = "pause_tasks"
    RESUME_TASKS = "resume_tasks"
    DELETE_TASKS = "delete_tasks"
    APPLY_CALENDAR = "apply_calendar"  # a task gets the dates of a changed calendar
    APPLY_ALERTS = "apply_alerts"  # a task's future runs follow the changed default alerts of its owner


class State(StrEnum):
    """The state of an operation."""

    RUNNING = "running"
    DONE = "done"  # it has processed all matches, or has reached its limit
    ABORTED = "aborted"  # a user requested it


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of jobs or tasks; None or empty: any. `since` and `until` (ms) apply to the scheduled time, as in all lists of jobs.

    `tags`: all of them. `statuses`: one of them.
    """

    task: str | None = None
    type: str | None = None
    fingerprint: str | None = None  # of dead letters
    since: int | None = None
    until: int | None = None  # exclusive
    tags: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    lane: Lane | None = None
    name: str | None = None  # of tasks: a part of the name, ignoring case
    calendar: str | None = None  # of tasks: the name of a calendar that they use

    def check(self) -> None:
        """Raises Invalid for an empty time range."""
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise Invalid.field("to", "must be later than from")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation and its progress."""

    owner: str
    id: str
    started_at: int  # jobs and tasks that were created or changed later, or failed later, stay unchanged
    action: Action = Action.REDRIVE
    filter: Filter = field(default_factory=Filter)
    rate: int = DEFAULT_RATE  # jobs or tasks per second
    limit: int | None = None  # the most jobs or tasks to change; None: all
    reason: str | None = None  # of a pause
    payload: Mapping[str, Any] | None = None  # of replays; None: each has the payload of its original
    state: State = State.RUNNING
    ended_at: int | None = None
    done: int = 0
    skipped: int = 0  # matched when they were read, but no longer when their turn came
    failed: int = 0  # an unexpected error; the log has it
    conflicts: int = 0  # dead letters that were not redriven, since another open job had their key
    after: str | None = None  # the position of the last job or task read
    pending: tuple[str, ...] = ()  # ids of those that are being changed, or that the table refused to change; they come before any other
    announced_at: int = 0  # when they were stored here: part of what follows from an announced chunk alone
    tries: int = 0  # how often it has refused exactly these
    version: int = 1  # rises with every change; every change is conditional on it
    lease_until: int = 0  # until then a step works at it, unless it died
    due_at: int = 0  # when the next job or task is due by the rate
    next_at: int = 0  # when the next step begins
    message_id: str = ""  # of the message in the work queue that drives it

    @property
    def matched(self) -> int:
        """The number of matches so far."""
        return self.done + self.skipped + self.failed + self.conflicts

    @property
    def expires(self) -> int | None:
        """When the record expires (epoch seconds); None while the operation runs."""
        return None if self.ended_at is None else self.ended_at // 1000 + RETENTION_S

    def chunk(self, at_most: int) -> int:
        """The size of a chunk of at most this many."""
        return at_most if self.limit is None else max(0, min(at_most, self.limit - self.done))


class Candidate(NamedTuple):
    """A job or task that an operation has read. `chosen`: its key; None: it does not match."""

    position: str
    chosen: Any


class Counts(NamedTuple):
    """The result of one chunk. `refused`: the ids of those that the table refused to change; they are in no count yet."""

    done: int = 0
    skipped: int = 0
    failed: int = 0
    refused: tuple[str, ...] = ()
    conflicts: int = 0


def new(
    owner: str,
    now: int,
    random: int,
    action: Action,
    filter: Filter,
    *,
    rate: int = DEFAULT_RATE,
    limit: int | None = None,
    reason: str | None = None,
    payload: Mapping[str, Any] | None = None,
) -> Operation:
    """An operation that starts at `now`; `random` fills its id: see `ids.new`."""
    due_at = now + SETTLED_MS
    return Operation(owner, ids.new(now, random), now, action, filter, rate, limit, reason, payload, due_at=due_at, next_at=due_at)
