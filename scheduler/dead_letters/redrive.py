"""Redrives: an operation that schedules failed and killed jobs again. `scheduler.operations` carries it out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.admission.run_gate import task_of, unwanted
from scheduler.dead_letters import model
from scheduler.dead_letters.store import store_redrives
from scheduler.model import slots
from scheduler.model.errors import Conflict
from scheduler.model.job import DeadLetter, Job, JobKey
from scheduler.model.operation import Candidate, Counts, Operation
from scheduler.pipeline.change_many import takes_changes
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Change, Ports, Written

READ = 1_000  # letters read at once
AHEAD_MS = slots.MINUTE  # clocks may differ: a job that ended before the redrive began was due before this time after it

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Redrives:
    """The work of a redrive."""

    ports: Ports
    at_most: int = 100

    def read(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        """A page of letters; those chosen match and failed before the start.

        They are in the order of ordering queues. So a job runs again before the later jobs of its ordering key, whatever the rate.
        """
        since, until, end = operation.filter.since, operation.filter.until, operation.started_at + AHEAD_MS
        until = end if until is None else min(until, end)
        letters, cursor = self.ports.jobs.letters(operation.owner, since=since, until=until, after=after, limit=READ, newest_first=False)
        return [Candidate(each.position, each.key if _matches(each, operation) else None) for each in letters], cursor

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
        allowed = [job for job in dead if job.origin is None or unwanted(job, heads.get(task_of(job))) is None]
        direct = DirectPath(self.ports)
        afters = direct.divert([model.again(job, now, self.ports.rules.shards, operation.id) for job in allowed], now)
        changes = [Change(job, after) for job, after in zip(allowed, afters, strict=True)]
        results = store_redrives(changes, self.ports, now)
        again = [change.after for change, written in zip(changes, results, strict=True) if written is Written.YES]
        refused = tuple(change.before.id for change, written in zip(changes, results, strict=True) if written is Written.REFUSED)
        enqueue_if_due_soon(again, now, self.ports)
        direct.start_for(again)
        done, failed, conflicts = done + len(again), len(stored.unreadable), _conflicts(changes, results, operation)
        return Counts(done, len(chosen) - done - failed - conflicts - len(refused), failed, refused, conflicts)


def _conflicts(changes: Sequence[Change], results: Sequence[Written | Conflict], operation: Operation) -> int:
    """The number of jobs that stay dead, since another job has their key."""
    found = [(change.before, why) for change, why in zip(changes, results, strict=True) if isinstance(why, Conflict)]
    for job, why in found:
        log.info("a job is not redriven", extra=job.log_context() | {"operation_id": operation.id, "reason": why.message})
    return len(found)


def _matches(letter: DeadLetter, operation: Operation) -> bool:
    return letter.at <= operation.started_at and model.matches(letter, operation.filter)


def _ended_at(job: Job) -> int:
    return job.failed_at or job.killed_at or 0
