"""The usage of a limiter (a named target or a key), and its changes. `scheduler/admission/limits.py` has the rules."""

from dataclasses import dataclass

from scheduler.model.job import JobKey
from scheduler.model.limiter import KeyLimit

USUAL_MS = 200  # the assumed time for which a job uses its slot, before the first measurement


@dataclass(frozen=True, slots=True)
class Place:
    """A concurrency slot: the right of one attempt to run."""

    job: JobKey
    fence: int
    since: int
    until: int  # the end of its lease: after it the slot is free, even if its executor has ended


@dataclass(frozen=True, slots=True)
class TargetUsage:
    """The state of a target's limits. Its cursor, of the starts, is an instant in microseconds."""

    target: str
    start_us: int = 0  # the first instant after all assigned starts: `step_us` after the last one
    step_us: int = 0
    places: tuple[Place, ...] = ()
    took_ms: int = USUAL_MS  # the time for which recent jobs used their slots: a running median
    taken: int = 0  # the number of slots taken so far
    queued_until: int = 0  # until then a release step comes every second or two, since jobs wait in the target queue
    stored: bool = False  # False: the table has no record of the target yet
    limit: KeyLimit | None = None  # of a key; None: a named target has its limits itself, or the key has no limit yet
    expires: int = 0  # of a key: when the record is of no use any more (ms); 0: it stays


@dataclass(frozen=True, slots=True)
class Move:
    """An advance of the cursor of the starts, by `by_us` from `base_us`. `assigned` has the instant that each job got, in microseconds."""

    base_us: int
    by_us: int
    step_us: int  # between two starts
    behind: bool  # True: `base_us` was the cursor, and advances of others come before this one. False: the cursor must be before `base_us`
    latest_us: int | None = None  # others must not have advanced the cursor beyond this
    assigned: tuple[tuple[JobKey, int], ...] = ()
    back_from_us: int | None = None  # the cursor must be here, and goes back to `base_us`: the rate was raised

    def begins_at(self, end_us: int) -> int | None:
        """The instant (in microseconds) at which it begins if the cursor is now at `end_us`; None if it is no longer valid."""
        if self.back_from_us is not None:
            return self.base_us if end_us == self.back_from_us else None
        if not self.behind:
            return self.base_us if end_us < self.base_us else None
        return end_us if self.base_us <= end_us and (self.latest_us is None or end_us <= self.latest_us) else None


@dataclass(frozen=True, slots=True)
class UsageChange:
    """One atomic change of a target's usage. It is valid if the move is, if enough slots are free and if all `drops` still exist.

    Nor may a job that takes a slot have one beyond the dropped ones: that is the slot of a later attempt, which an executor that lost the
    job has not read.
    """

    target: str
    first: bool = False  # True: no record may be stored yet
    starts: Move | None = None
    takes: tuple[Place, ...] = ()  # slots to take
    drops: tuple[Place, ...] = ()  # slots to free
    most: int | None = None  # the number of slots of the target; None: no limit
    took_ms: int | None = None  # None: unchanged
    queued_until: int | None = None  # None: unchanged
    limit: tuple[KeyLimit | None, KeyLimit] | None = None  # the limit that the key must have (None: none), and its new one
    expires: int | None = None  # None: unchanged
    also: tuple["UsageChange", ...] = ()  # changes of further items: each is written by itself, once this one is

    @property
    def is_empty(self) -> bool:
        """Whether only further items change."""
        numbers = (self.took_ms, self.queued_until)
        return not (self.starts or self.takes or self.drops or self.limit or any(number is not None for number in numbers))

    @property
    def room(self) -> int | None:
        """The number of slots that may be in use before the change; None: any number."""
        return self.most + len(self.drops) - len(self.takes) if self.takes and self.most is not None else None
