"""Redrives: an operation that schedules failed and killed jobs again. `scheduler.operations` carries it out."""

from dataclasses import dataclass

from scheduler.admission.ordering_queue import join_queues
from scheduler.admission.run_gate import task_of, unwanted
from scheduler.dead_letters import model
from scheduler.model.job import DeadLetter, Job, JobKey
from scheduler.model.operation import Candidate, Counts, Operation
from scheduler.pipeline.change_many import change_many, takes_changes
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Change, Ports

READ = 1_000  # letters read at once


@dataclass(frozen=True, slots=True)
class Redrives:
    """The work of a redrive."""

    ports: Ports
    at_most: int = 100
    moves: bool = False  # a dead letter keeps its position

    def read(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        """A page of letters, newest first; those chosen match and failed before the start."""
        times = operation.filter
        letters, cursor = self.ports.jobs.letters(operation.owner, since=times.since, until=times.until, after=after, limit=READ)
        return [Candidate(each.position, each.key if _is_wanted(each, operation) else None) for each in letters], cursor

    def reread(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        return [], None

    def key(self, owner: str, id: str) -> JobKey:
        return JobKey(owner, id)

    def takes_changes(self, key: JobKey) -> bool:
        job = self.ports.jobs.get(key)
        return job is None or takes_changes(job, self.ports)

    def apply(self, operation: Operation, chosen: list[Candidate]) -> Counts:
        """Redrive these jobs. Jobs that an earlier try has redriven are counted as well."""
        stored = self.ports.jobs.get_many([each.chosen for each in chosen])
        done = sum(1 for job in stored.values() if job.redriven_by == operation.id)  # by a step that then died
        dead = [job for job in stored.values() if model.is_dead(job) and _ended_at(job) <= operation.started_at]
        runs = [job for job in dead if job.origin is not None]
        heads = self.ports.tasks.heads(sorted({task_of(run) for run in runs})) if runs else {}
        now = self.ports.clock.now()
        wanted = [job for job in dead if job.origin is None or unwanted(job, heads.get(task_of(job))) is None]
        direct = DirectPath(self.ports)
        afters = direct.divert([model.again(job, now, self.ports.rules.shards, operation.id) for job in wanted], now)
        changes = [Change(job, after) for job, after in zip(wanted, afters, strict=True)]
        entered = join_queues([change.after for change in changes], orders=self.ports.orders, now=now)
        again, refused = change_many([change for change, ok in zip(changes, entered, strict=True) if ok], self.ports)
        refused += [change.before for change, ok in zip(changes, entered, strict=True) if not ok]
        enqueue_if_due_soon(again, now, self.ports)
        direct.start_for(again)
        done, failed = done + len(again), len(stored.unreadable)
        return Counts(done, len(chosen) - done - failed - len(refused), failed, tuple(job.id for job in refused))


def _is_wanted(letter: DeadLetter, operation: Operation) -> bool:
    return letter.at <= operation.started_at and model.matches(letter, operation.filter)


def _ended_at(job: Job) -> int:
    return job.failed_at or job.killed_at or 0
