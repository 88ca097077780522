"""Redrives: an operation that schedules failed and killed jobs again. `scheduler.operations` carries it out."""

from dataclasses import dataclass

from scheduler.admission.ordering_queue import join_queues
from scheduler.admission.run_gate import task_of, unwanted
from scheduler.dead_letters import model
from scheduler.model.errors import Unavailable
from scheduler.model.job import DeadLetter, Job
from scheduler.model.operation import Candidate, Counts, Operation
from scheduler.pipeline.change_many import change_many
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Change, Ports

READ = 1_000  # letters read at once


@dataclass(frozen=True, slots=True)
class Redrives:
    """The work of a redrive."""

    ports: Ports
    at_most: int = 100

    def read(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        """A page of letters, newest first; those chosen match and failed before the start."""
        times = operation.filter
        letters, cursor = self.ports.jobs.letters(operation.owner, since=times.since, until=times.until, after=after, limit=READ)
        return [Candidate(each.position, each if _is_wanted(each, operation) else None) for each in letters], cursor

    def apply(self, operation: Operation, chosen: list[DeadLetter]) -> Counts:
        """Redrive the jobs of these letters. Jobs that an earlier try has redriven are counted as well."""
        stored = self.ports.jobs.get_many([letter.key for letter in chosen])
        done = sum(1 for job in stored.values() if _was_redriven(job, operation))  # by an invocation that then ended, or by a user
        dead = [job for job in stored.values() if model.is_dead(job) and _ended_at(job) <= operation.started_at]
        runs = [job for job in dead if job.origin is not None]
        heads = self.ports.tasks.heads(sorted({task_of(run) for run in runs})) if runs else {}
        now = self.ports.clock.now()
        wanted = [job for job in dead if job.origin is None or unwanted(job, heads.get(task_of(job))) is None]
        changes = [Change(job, model.again(job, now, self.ports.rules.shards, operation.id)) for job in wanted]
        if not all(join_queues([change.after for change in changes], orders=self.ports.orders, now=now)):
            raise Unavailable("the table refused the ordering entries of the jobs")
        again, refused = change_many(changes, self.ports)
        enqueue_if_due_soon(again, now, self.ports)
        if refused:
            raise Unavailable
        return Counts(done=done + len(again), skipped=len(chosen) - done - len(again))


def _is_wanted(letter: DeadLetter, operation: Operation) -> bool:
    return letter.at <= operation.started_at and model.matches(letter, operation.filter)


def _was_redriven(job: Job, operation: Operation) -> bool:
    return job.redriven_at is not None and job.redriven_at >= operation.started_at


def _ended_at(job: Job) -> int:
    return job.failed_at or job.killed_at or 0
