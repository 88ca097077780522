"""Shapes of the status."""

from collections.abc import Mapping
from typing import Any, Literal

from lambdas.rest.shapes import Json, Shape, WrittenTime, optional
from lambdas.rest.system_models import BreakerShape
from scheduler.insight.problems import MOST, Failures, LaneWait, Late, OwnerWait, Problem, Remedy, Skips, Status
from scheduler.model import instants
from scheduler.model.job import Lane


class RemedyShape(Shape):
    """The request and the command that mend a problem."""

    label: str
    """The text of a button."""
    method: str
    """The method of the request."""
    path: str
    """With the query, if it is about another user."""
    body: dict[str, Any] | None
    """The body of the request. Null: it has none."""
    command: str
    """The command of the CLI."""

    @classmethod
    def of(cls, remedy: Remedy) -> Json:
        return cls.from_record(remedy)


class ProblemShape(Shape):
    """One thing that is wrong. Fields that do not concern its kind are null."""

    kind: Literal["scheduler_behind", "lane_paused", "breaker_open", "late_jobs", "failures", "task_skips", "task_paused", "user_disabled"]
    """The kind of the problem."""
    severity: Literal["critical", "warning", "info"]
    """critical: jobs that are due do not start. warning: jobs fail, wait or are skipped. info: a user decided it."""
    title: str
    """One sentence."""
    inspect: str
    """The command that shows more of it."""
    since: WrittenTime | None
    """Since when. Of failures: when the first of these jobs ended. Null: unknown."""
    last_at: WrittenTime | None
    """Of failures: when the latest of these jobs ended."""
    by: str | None
    """The id of the user who decided it."""
    by_name: str | None
    """The name of that user."""
    reason: str | None
    """The reason that the user gave, or the error."""
    count: int | None
    """The number of jobs."""
    lane: str | None
    """The paused lane."""
    circuit: str | None
    """The circuit of the breaker."""
    what: str | None
    """Of failures: what these jobs call, as `what` of `failures`."""
    owner: str | None
    """The id of the user whose jobs it concerns. Null: the jobs of all users."""
    owner_name: str | None
    """The name of that user. Null: unknown."""
    task: str | None
    """The id of the task."""
    task_name: str | None
    """The name of the task."""
    fingerprint: str | None
    """The fingerprint of the error."""
    remedy: RemedyShape | None
    """Null: no single request mends it."""

    @classmethod
    def of(cls, problem: Problem) -> Json:
        return cls.from_record(problem, remedy=optional(RemedyShape.of, problem.remedy))


class SchedulerShape(Shape):
    """The progress of the scheduler."""

    lag_seconds: float
    """The time since the end of the oldest minute that is not done."""
    oldest_open_minute: WrittenTime | None
    """The beginning of that minute."""


class LateShape(Shape):
    """The open jobs whose time has passed by over a second and that have not started, for whatever reason."""

    count: int
    """The number of these jobs."""
    at_least: bool
    """True: the read was cut, there may be more."""
    longest_seconds: float
    """The longest delay of one of them until now."""

    @classmethod
    def of(cls, late: Late) -> Json:
        return cls.from_record(late, longest_seconds=late.longest_ms / 1000)


class LaneStatusShape(Shape):
    lane: Lane
    """The lane."""
    paused_at: WrittenTime | None
    """Null: it is not paused."""
    paused_by: str | None
    """The id of the user who paused it. Null: the scheduler itself."""
    paused_by_name: str | None
    """The name of that user at the time of the pause."""
    reason: str | None
    """The reason of the pause."""
    waiting: int
    """Its jobs that are due and wait, whether it is paused or not."""
    at_least: bool
    """True: the read was cut, there may be more."""

    @classmethod
    def of(cls, lane: LaneWait) -> Json:
        reason = lane.state.reason if lane.state.paused_at is not None else None
        return cls.from_record(lane.state, reason=reason, waiting=lane.waiting, at_least=lane.at_least)


class OwnerWaitShape(Shape):
    """The jobs of one user that are due and wait."""

    owner: str
    """The id of the user."""
    owner_name: str | None
    """The name of the user. Null: unknown."""
    count: int
    """The number of these jobs."""
    command: str
    """The command that counts these jobs. Without its last word, `--dry-run`, it cancels them."""

    @classmethod
    def of(cls, each: OwnerWait, names: Mapping[str, str]) -> Json:
        return cls.from_record(each, owner_name=names.get(each.owner))


class FailuresShape(Shape):
    """The dead letters of one user in the last hour that called the same and failed with the same error."""

    what: str
    """The named target, host, function, state machine, queue, topic, bus, recipient or type."""
    owner: str
    """The id of the user."""
    owner_name: str | None
    """The name of the user. Null: unknown."""
    count: int
    """Of the user's latest 200 dead letters. The places of 500 dead letters are read; others count for the most frequent place."""
    first_at: WrittenTime
    """When the first one ended."""
    last_at: WrittenTime
    """When the latest one ended."""
    fingerprint: str | None
    """Null for jobs that an early version stored without one."""
    error: str
    """The error of the latest one. Empty if that one has just been redriven."""
    job: str
    """The id of the latest job."""
    task: str | None
    """The task of the latest one, if it is a run."""

    @classmethod
    def of(cls, group: Failures, names: Mapping[str, str]) -> Json:
        return cls.from_record(group, owner_name=names.get(group.owner))


class SkipsShape(Shape):
    """A task of whose last runs at least half were skipped."""

    task: str
    """The id of the task."""
    task_name: str
    """The name of the task."""
    owner: str
    """The id of its owner."""
    owner_name: str | None
    """The name of its owner. Null: unknown."""
    skipped: int
    """The number of skipped runs among the last ones."""
    of: int
    """The number of its last runs that were read, at most 10."""
    reason: str
    """The reason of the latest one."""

    @classmethod
    def of_task(cls, skips: Skips, names: Mapping[str, str]) -> Json:
        return cls.from_record(skips, owner_name=names.get(skips.owner))


class CurrentStatusShape(Shape):
    """The problems of this instant, and the figures behind them."""

    at: WrittenTime
    """The instant of the reads."""
    scope: Literal["own", "all"]
    """`own`: the jobs of the caller. `all`: those of all users."""
    well: bool
    """True: there is no problem."""
    problems: list[ProblemShape]
    """At most 50, the most severe first."""
    more_problems: bool
    """True: there are further ones."""
    scheduler: SchedulerShape | None
    """The progress of the scheduler."""
    late: LateShape
    """The late jobs."""
    lanes: list[LaneStatusShape]
    """All three."""
    breakers: list[BreakerShape]
    """As `GET /system/breakers` lists them. `own`: those of named targets and of your own jobs."""
    waiting: list[OwnerWaitShape]
    """At most 20 users, the most jobs first."""
    failures: list[FailuresShape]
    """At most 20, the most jobs first."""
    skipping: list[SkipsShape]
    """At most 20, the most skipped runs first."""

    @classmethod
    def of(cls, found: Status) -> Json:
        minute = found.lag.minute
        return cls.from_record(
            found,
            scope="all" if found.everybody else "own",
            well=not found.problems,
            problems=[ProblemShape.of(each) for each in found.problems[:MOST]],
            more_problems=len(found.problems) > MOST,
            scheduler={
                "lag_seconds": found.lag.ms / 1000,
                "oldest_open_minute": None if minute is None else instants.render(instants.parse(f"{minute}:00Z")),
            },
            late=LateShape.of(found.late),
            lanes=[LaneStatusShape.of(lane) for lane in found.lanes],
            breakers=[BreakerShape.of(breaker, found.at, found.names) for breaker in found.breakers],
            waiting=[OwnerWaitShape.of(each, found.names) for each in found.waiting],
            failures=[FailuresShape.of(group, found.names) for group in found.failures],
            skipping=[SkipsShape.of_task(skips, found.names) for skips in found.skipping],
        )
