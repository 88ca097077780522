"""The table of ends: each exit of a job, and what it does to everything that waits for an end.

A state without an exit leaves something waiting for good. So each cell is written here, `tests/unit/test_ends.py` checks it at the code
that decides, and `docs/internals/lifecycle.md` shows the table.
"""

from collections.abc import Mapping
from enum import StrEnum


class Exit(StrEnum):
    """An exit of a job: how it stops being open."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # by a rule: overlap, misfire, a predecessor
    EXPIRED = "expired"  # its expiry passed before it started: it is skipped
    OWNER_DELETED = "owner deleted"  # its executor cancels it
    DELETED = "deleted"  # its record is gone, although it had not ended: a run of a task that was changed
    PRUNED = "pruned"  # its record is gone, some time after its end: by then the waiters know the end


class Waiter(StrEnum):
    """Something that waits for the end of a job."""

    GROUP = "its group"
    SUCCESSOR = "a job after it"
    LIMIT = "its place in a limit"
    RUN_LOCK = "the run lock of its task"
    ORDERING = "the jobs behind it in its ordering queue"
    NOTICE = "a notice of its end"


class Effect(StrEnum):
    """An end does this to a waiter."""

    COUNTS = "counted as that end"
    VOID = "its number becomes void, at a check"
    KNOWN = "known before"
    MAY_START = "may start"
    SKIPS = "skipped, unless any end is enough"
    FREE = "free"
    CONTINUE = "continue"
    PAUSE = "continue, or wait if its rule is pause"
    SENT = "sent, if wanted"
    NONE = "none"


_EACH: Mapping[Waiter, Effect] = {  # of most exits
    Waiter.GROUP: Effect.COUNTS,
    Waiter.SUCCESSOR: Effect.SKIPS,
    Waiter.LIMIT: Effect.FREE,
    Waiter.RUN_LOCK: Effect.FREE,
    Waiter.ORDERING: Effect.CONTINUE,
    Waiter.NOTICE: Effect.NONE,
}
_DEAD: Mapping[Waiter, Effect] = {**_EACH, Waiter.ORDERING: Effect.PAUSE, Waiter.NOTICE: Effect.SENT}
TABLE: Mapping[Exit, Mapping[Waiter, Effect]] = {
    Exit.SUCCEEDED: {**_EACH, Waiter.SUCCESSOR: Effect.MAY_START, Waiter.NOTICE: Effect.SENT},
    Exit.FAILED: _DEAD,
    Exit.KILLED: _DEAD,
    Exit.CANCELLED: _EACH,
    Exit.SKIPPED: _EACH,
    Exit.EXPIRED: _EACH,
    Exit.OWNER_DELETED: _EACH,
    Exit.DELETED: {**_EACH, Waiter.GROUP: Effect.VOID},
    Exit.PRUNED: {**_EACH, Waiter.GROUP: Effect.KNOWN, Waiter.SUCCESSOR: Effect.KNOWN},
}


def as_table() -> str:
    """The table in Markdown."""
    head = f"| exit | {' | '.join(Waiter)} |\n|---{'|---' * len(Waiter)}|\n"
    return head + "".join(f"| {out} | {' | '.join(TABLE[out][waiter] for waiter in Waiter)} |\n" for out in Exit)
