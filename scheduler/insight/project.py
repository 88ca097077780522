"""Add changes of jobs and tasks to the counters, send news to notify, archive expired jobs, and report figures for the metrics.

The ends of members of groups are counted again: so none is lost whose writer ended before it counted it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from scheduler.groups.ends import count_again, note_sealed
from scheduler.insight.archive import Details, record
from scheduler.insight.counting import DEAD_NAMES, ended_at, of_job, of_task, run_ms
from scheduler.model import lifecycle
from scheduler.model.counters import CounterEntry
from scheduler.model.errors import Unavailable
from scheduler.model.group import Group
from scheduler.model.job import CANARY_OWNER, Job
from scheduler.model.notice import News
from scheduler.model.task import Task
from scheduler.model.work import WorkItem
from scheduler.notify.policy import of_change
from scheduler.pipeline.enqueue import try_enqueue
from scheduler.pipeline.followers import of_ended
from scheduler.storage.ports import Ports


class Change(Protocol):
    """One write of a job or a task; `sequence` is its position in its stream shard."""

    @property
    def sequence(self) -> str: ...
    @property
    def before(self) -> Job | Task | None: ...
    @property
    def after(self) -> Job | Task | None: ...


@dataclass(slots=True)
class ProjectResult:
    """The result of one batch. Durations are of ended jobs that waited only for their scheduled time.

    `start_delays_ms` also has the delays so far of jobs whose executors died again before the start.
    """

    changes: int = 0
    created: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    start_delays_ms: list[int] = field(default_factory=list)
    latencies_ms: list[int] = field(default_factory=list)  # finish minus scheduled
    overheads_ms: list[int] = field(default_factory=list)  # the latencies without the run times
    canary_delays_ms: list[int] = field(default_factory=list)
    news: int = 0  # sent to notify
    archived: int = 0

    @property
    def processed(self) -> int:
        return sum(self.ended.values())

    @property
    def dead(self) -> int:
        return sum(self.ended.get(name, 0) for name in DEAD_NAMES)


def project(
    shard: str, changes: Sequence[Change], ports: Ports, *, groups: Sequence[Group] = (), details: Details | None = None
) -> ProjectResult:
    """Add the changes of one batch of one shard. Raises Unavailable: then the batch is delivered again, and nothing is counted twice.

    Steps of the work queue care for the jobs that waited for the jobs that have ended; a repeated step changes nothing.
    News go to the queue with every delivery of the batch; notify recognizes repeated news by their ids.
    Jobs that DynamoDB has deleted go to the archive, where a job of a repeated batch is stored twice. `groups`: the groups that were
    sealed, or whose members had all ended.
    """
    ports.counters.add(shard, [entry for change in changes for entry in _entries(change)])
    _count_members(changes, groups, ports)
    news = [each for change in changes for each in _news(change)]
    if news:
        ports.notices.send(news, news[-1].at)
    steps = [step for change in changes if (step := _step(change)) is not None]
    if steps and ports.work.send(list(dict.fromkeys(steps))):
        raise Unavailable
    archived = [record(job, details) for change in changes if (job := _expired(change)) is not None]
    if archived:
        ports.outputs.archive(archived)
    result = ProjectResult(changes=len(changes), news=len(news), archived=len(archived))
    for change in changes:
        if not isinstance(change.before, Task) and not isinstance(change.after, Task):
            _note(change.before, change.after, result)
    return result


def _count_members(changes: Sequence[Change], groups: Sequence[Group], ports: Ports) -> None:
    """Count the ends of members of groups that their writers have not counted, and start call-backs that they have not started.

    Raises Unavailable.
    """
    ended = [after for change in changes if isinstance(after := change.after, Job) and after.member is not None and _has_ended(change)]
    if not ended and not groups:
        return
    now = ports.clock.now()
    go = count_again(ended, ports, now=now)
    for group in groups:
        go += note_sealed(group, ports, now=now)
    try_enqueue(go, lanes=ports.lanes, now=now)


def _has_ended(change: Change) -> bool:
    """Whether the change ended a job."""
    before, after = change.before, change.after
    return isinstance(after, Job) and not lifecycle.is_open(after) and (not isinstance(before, Job) or lifecycle.is_open(before))


def _entries(change: Change) -> Iterable[CounterEntry]:
    """One entry for each row: all amounts that a change adds to a row are added in one write."""
    before, after = change.before, change.after
    if isinstance(before, Task) or isinstance(after, Task):
        amounts_by_row = of_task(*(each if isinstance(each, Task) else None for each in (before, after)))
    else:
        amounts_by_row = of_job(before, after)
    entries = dict[tuple[str, str], CounterEntry]()
    for row, amounts in amounts_by_row:
        earlier = entries.get(row[:2])
        entries[row[:2]] = CounterEntry(row, change.sequence, amounts if earlier is None else {**earlier.amounts, **amounts})
    return entries.values()


def _news(change: Change) -> Iterable[News]:
    if isinstance(change.before, Task) or isinstance(change.after, Task):
        return ()
    return of_change(change.before, change.after)


def _step(change: Change) -> WorkItem | None:
    """The step for the jobs that waited for the end of a job."""
    if isinstance(change.before, Task) or isinstance(change.after, Task):
        return None
    return of_ended(change.before, change.after)


def _expired(change: Change) -> Job | None:
    before = change.before
    gone = getattr(change, "expired", False) and change.after is None
    return before if gone and isinstance(before, Job) and not lifecycle.is_open(before) else None


def _note(before: Job | None, after: Job | None, result: ProjectResult) -> None:
    if after is None:
        return
    canary = after.owner == CANARY_OWNER
    if before is None and not canary:
        result.created += 1
    if not canary and before is not None and _died_again(before, after):
        result.start_delays_ms.append(after.attempts[-1].ended_at - after.scheduled_at)
    if lifecycle.is_open(after) or (before is not None and not lifecycle.is_open(before)):
        return
    if canary:
        if after.delay_ms is not None:
            result.canary_delays_ms.append(after.delay_ms)
        return
    status = str(lifecycle.state(after))
    result.ended[status] = result.ended.get(status, 0) + 1
    ran = run_ms(after)
    if after.delay_ms is None or ran is None or not _waited_for_its_time_alone(after):
        return
    latency = ended_at(after) - after.scheduled_at
    result.start_delays_ms.append(after.delay_ms)
    result.latencies_ms.append(latency)
    result.overheads_ms.append(max(0, latency - ran))


def _waited_for_its_time_alone(job: Job) -> bool:
    """Whether the job was not retried, not delayed by an ordering rule of its owner, and not created for a time in the past."""
    return job.fence == 1 and _waits_for_its_time(job)


def _waits_for_its_time(job: Job) -> bool:
    return job.spec.ordering is None and not job.after and job.created_at <= job.scheduled_at


def _died_again(before: Job, after: Job) -> bool:
    """Whether an executor died before it started the job: if that lasts, no start shows the delay."""
    died = lifecycle.next_attempt(after) > lifecycle.next_attempt(before) and lifecycle.has_only_died(after)
    return died and lifecycle.is_open(after) and _waits_for_its_time(after)
