"""The usage of a named target's limits, and its changes. `scheduler/admission/limits.py` has the rules."""

from dataclasses import dataclass

from scheduler.model.job import JobKey

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
    also: tuple["UsageChange", ...] = ()  # changes of further items: each is written by itself, once this one is

    @property
    def is_empty(self) -> bool:
        """Whether only further items change."""
        return not (self.starts or self.takes or self.drops or self.took_ms is not None or self.queued_until is not None)

    @property
    def room(self) -> int | None:
        """The number of slots that may be in use before the change; None: any number."""
        return self.most + len(self.drops) - len(self.takes) if self.takes and self.most is not None else None
