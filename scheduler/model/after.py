"""Predecessors: the jobs whose ends a job waits for. Pure.

The end of each predecessor is stored with the waiting job as soon as it is known, and does not change after that. So neither the deletion
nor a redrive of a predecessor matters later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

MOST = 50  # predecessors of a job
PREFIX = "after: "  # begins each reason of this rule


class When(StrEnum):
    """The end of a predecessor that lets the job start."""

    SUCCEEDED = "succeeded"  # success; after any other end the job is skipped
    ENDED = "ended"  # any end


class Kind(StrEnum):
    """The kind of a predecessor: the namespace of its id."""

    JOB = "job"
    GROUP = "group"  # a sealed one: its members are known, and none of them can wait for a job that waits for it


class Ending(StrEnum):
    """The end of a predecessor."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    DELETED = "deleted"  # it is no longer stored, and its end was not noted


@dataclass(frozen=True, slots=True)
class End:
    """The end of a predecessor. `cause`: the reason of one that was skipped by this rule, which names the first job of the chain."""

    ending: Ending
    cause: str | None = None


class PredecessorKey(NamedTuple):
    """The key of a predecessor."""

    owner: str
    kind: Kind
    id: str


class Follower(NamedTuple):
    """The record that a job waits for a predecessor. It is kept until the instant `until` (ms)."""

    predecessor: PredecessorKey
    job: str
    until: int


@dataclass(frozen=True, slots=True)
class Predecessor:
    """One of the jobs or groups that a job waits for. `end` None: it has not ended, as far as is known."""

    id: str
    when: When = When.SUCCEEDED
    kind: Kind = Kind.JOB
    end: End | None = None

    @property
    def is_broken(self) -> bool:
        """Whether it ended in a way that forbids the start of the job."""
        return self.end is not None and self.when is When.SUCCEEDED and self.end.ending is not Ending.SUCCEEDED

    @property
    def why_broken(self) -> str:
        """The reason of a job that is skipped because of it."""
        assert self.end is not None
        verb = "" if self.end.ending is Ending.FAILED else "was "
        return self.end.cause or f"{PREFIX}{self.kind} {self.id} {verb}{self.end.ending}"


def open_of(after: Sequence[Predecessor]) -> list[Predecessor]:
    """The predecessors that have not ended, as far as is known."""
    return [each for each in after if each.end is None]


def why_broken(after: Sequence[Predecessor]) -> str | None:
    """The reason for which the job must not start; None: no end that is known forbids it."""
    return next((each.why_broken for each in after if each.is_broken), None)


def waits(after: Sequence[Predecessor]) -> bool:
    """Whether the job waits: a predecessor has not ended, as far as is known, and none forbids the start."""
    return bool(after) and any(each.end is None for each in after) and why_broken(after) is None  # most jobs have none


def are_met(after: Sequence[Predecessor]) -> bool:
    """Whether the job waits for no predecessor, and none forbids the start."""
    return not after or all(each.end is not None and not each.is_broken for each in after)


def why_waits(after: Sequence[Predecessor], most: int = 3) -> str:
    """The reason of a job that waits: how many of its predecessors have not ended, and the first of them."""
    left = open_of(after)
    more = f" and {len(left) - most} more" if len(left) > most else ""
    return f"{PREFIX}it waits for {len(left)} of {len(after)} jobs: {', '.join(each.id for each in left[:most])}{more}"
