"""Shapes of groups."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from lambdas.rest import resolution
from lambdas.rest.models import LINE, Delay, Request, ResultShape, WorkRequest
from lambdas.rest.resolution import Broken, Stage
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime
from scheduler.groups import counting
from scheduler.jobs import groups
from scheduler.jobs.groups import NewGroup
from scheduler.model.group import CallKind, Counts, End, Group
from scheduler.model.spec import JobSpec

MOST_JOBS = 1_000
MEMBER_STATUSES = Literal["succeeded", "failed", "killed", "cancelled", "skipped"]


class GroupRequest(Request):
    """A group of jobs, and the jobs that start when all of them have ended."""

    name: Annotated[str, Field(min_length=1, max_length=120), LINE] | None = None
    """A name for people. It need not be unique."""
    on_complete: WorkRequest | None = None
    """The job that starts when all jobs of the group have ended, in whatever way."""
    on_success: WorkRequest | None = None
    """The job that starts when all jobs of the group have succeeded, if need be after you have redriven the others."""
    on_failure: WorkRequest | None = None
    """The job that starts when all jobs of the group have ended, and at least one of them has not succeeded."""
    jobs: Annotated[list[Any], Field(max_length=MOST_JOBS)] = Field(default_factory=list)
    """The first jobs, each with the fields of POST /jobs except `key` and `group`. Either all of them are accepted, or none."""
    seal: bool | None = None
    """True: no other job joins. Default: true if the request has jobs, else false."""
    seal_within: Delay | None = None
    """The time within which you seal the group. A group that is not sealed by then is abandoned: its jobs run, but no call-back
    starts. 1 minute to 30 days. Default: 1 day."""

    def broken(self, stage: Stage) -> Iterator[Broken]:
        for kind in CallKind:
            call: WorkRequest | None = getattr(self, kind)
            if call is not None:
                yield from resolution.within(kind, call.broken(stage))
                if call.key is not None:
                    yield (kind, "key"), "must be absent: the call-back of a group has no key"
                if call.limit is not None:
                    yield (kind, "limit"), "must be absent: the call-back of a group waits for no limit"
                if call.notifications is not None:
                    yield (kind, "notifications"), "must be absent: the call-back of a group sends no notices of its own"
        if self.seal_within is not None and not groups.LEAST_MS <= self.seal_within <= groups.LONGEST_MS:
            yield ("seal_within",), "must be 1m to 30d"

    def new_group(self, owner: str) -> NewGroup:
        """The group to create."""
        calls: dict[CallKind, JobSpec] = {kind: call.spec for kind in CallKind if (call := getattr(self, kind)) is not None}
        seal = bool(self.jobs) if self.seal is None else self.seal
        within = groups.SEAL_WITHIN_MS if self.seal_within is None else self.seal_within
        return NewGroup(owner, self.name, calls, seal=seal, seal_within_ms=within)


class GroupCountsShape(Shape):
    """The number of its jobs by status. A job that you redrive counts by its former end until it ends again."""

    unfinished: int
    """The jobs that have not ended."""
    succeeded: int
    """The jobs that succeeded."""
    failed: int
    killed: int
    """The jobs that were killed."""
    cancelled: int
    skipped: int
    """The jobs that were skipped."""

    @classmethod
    def of(cls, group: Group, counts: Counts) -> Json:
        ended = {status.value: counts.get(end, 0) for end, status in counting.STATUSES.items()}
        return cls.from_record(None, unfinished=_jobs(group, counts) - sum(ended.values()), **ended)


class GroupCallShape(Shape):
    """A call-back of a group."""

    kind: CallKind
    """When it starts."""
    type: str
    """The task type of its job."""
    job_id: str | None
    """Its job. Null: it has not started."""


class JobGroupShape(Shape):
    """A group. Every field is always present. A field without a value is null."""

    id: str
    name: str | None
    state: Literal["open", "sealed", "ended", "abandoned"]
    """`open`: jobs may join. `sealed`: no job can join. `ended`: all its jobs have ended. `abandoned`: it was not sealed in time."""
    jobs: int
    """The number of its jobs."""
    counts: GroupCountsShape | None
    """Null in a list, for groups of more than 16 jobs."""
    callbacks: list[GroupCallShape]
    """Its call-backs. Empty in a list if they are long."""
    created_at: WrittenTime
    seal_by: WrittenTime
    """If it is not sealed by then, it is abandoned."""
    sealed_at: WrittenTime | None
    """When it was sealed."""
    cancelled_at: WrittenTime | None
    """When it was cancelled: its jobs that had not started were cancelled, too."""
    abandoned_at: WrittenTime | None
    """When it was abandoned."""
    ended_at: WrittenTime | None
    """When all its jobs had ended."""
    succeeded_at: WrittenTime | None
    """When all its jobs had succeeded. It is later than `ended_at` if some of them succeeded after a redrive."""

    @classmethod
    def of(cls, group: Group, counts: Counts | None) -> Json:
        started = {kind: counting.call_id(group, kind, at) for kind, at in counting.calls(group)}
        return cls.from_record(
            group,
            state=counting.state(group),
            jobs=_jobs(group, counts or {}),
            counts=None if counts is None else GroupCountsShape.of(group, counts),
            callbacks=[
                GroupCallShape.from_record(None, kind=kind, type=spec.type, job_id=started.get(kind)) for kind, spec in group.calls.items()
            ],
        )


class MadeGroupShape(Shape):
    """A new group, and what became of its jobs."""

    group: JobGroupShape
    results: list[ResultShape]
    """One result per job of the request, in order."""


class JobGroupsShape(ListShape):
    items: list[JobGroupShape]

    @classmethod
    def of(cls, found: Sequence[Group], cursor: str | None) -> Json:
        return cls.page([JobGroupShape.of(group, _known_counts(group)) for group in found], cursor)


def _known_counts(group: Group) -> Counts | None:
    """The counts, if the head of the group has them."""
    return counting.counts([group.leaf] if group.leaf is not None else []) if group.leaves <= 1 else None


def _jobs(group: Group, counts: Counts) -> int:
    return group.members - counts.get(End.VOID, 0)
