"""Replay many jobs: an operation that reads an owner's jobs by scheduled time, the earliest first, and replays those that match.

The id of each replay follows from the operation, its original and the instant at which its chunk was announced. So a chunk that is
carried out again stores nothing twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduler.jobs.replay import replay
from scheduler.model import ids, lifecycle, slots
from scheduler.model.job import Job, JobKey, Status
from scheduler.model.operation import Candidate, Counts, Operation
from scheduler.operations.cancel_jobs import is_filtered, page_of, position
from scheduler.pipeline.change_many import takes_changes
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import Accepted, Submission, submit_all
from scheduler.storage.ports import Ports

RAN = (Status.SUCCEEDED, Status.FAILED, Status.KILLED)  # without a filter of statuses: nobody decided against these jobs
START_MS = 1_000  # a replay starts this long after its chunk was announced: it is stored by then, so it is not late
AHEAD_MS = slots.MINUTE  # clocks may differ: a job that ran before the start of the operation was due before this time after it


@dataclass(frozen=True, slots=True)
class ReplayJobs:
    """The work of an operation that replays jobs."""

    ports: Ports
    at_most: int = 100

    def read(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        """A page of jobs; those chosen match and had ended before the start."""
        until, end = operation.filter.until, operation.started_at + AHEAD_MS
        if set(_statuses(operation)) <= set(RAN):
            until = end if until is None else min(until, end)
        page = page_of(operation, operation.filter.since, until, after, self.ports.jobs, newest_first=False)
        return [Candidate(position(job), job.key if self._matches(job, operation) else None) for job in page.jobs], page.cursor

    def key(self, owner: str, id: str) -> JobKey:
        return JobKey(owner, id)

    def takes_changes(self, key: JobKey) -> bool:
        job = self.ports.jobs.get(key)
        return job is None or takes_changes(job, self.ports)

    def apply(self, operation: Operation, chosen: list[Candidate]) -> Counts:
        """Replay these jobs if they still match. Replays that an earlier try has stored are counted as well."""
        stored = self.ports.jobs.get_many([each.chosen for each in chosen])
        matching = [job for job in stored.values() if self._matches(job, operation)]
        changed = {each.chosen for each in chosen} - {job.key for job in matching} - stored.unreadable.keys()
        done, failed = self._stored_before(operation, changed), len(stored.unreadable)
        ratio = self.ports.rules.traced
        submissions = [_submission(job, operation, ratio) for job in matching]
        results = submit_all(submissions, self.ports, direct=_Diverted(self.ports)) if submissions else []
        refused = tuple(job.id for job, result in zip(matching, results, strict=True) if result is None)
        accepted = sum(isinstance(result, Accepted) for result in results)
        done, failed = done + accepted, failed + len(results) - accepted - len(refused)
        return Counts(done, len(chosen) - done - failed - len(refused), failed, refused)

    def _stored_before(self, operation: Operation, originals: set[JobKey]) -> int:
        """The number of these jobs that an earlier try has replayed, before they changed."""
        return len(self.ports.jobs.get_many([JobKey(key.owner, replay_id(operation, key.id)) for key in originals])) if originals else 0

    def _matches(self, job: Job, operation: Operation) -> bool:
        """Whether the job is to be replayed. A payload for all is valid for jobs of its type without a named target only."""
        if lifecycle.is_open(job) or lifecycle.state(job) not in _statuses(operation) or _ended_at(job) > operation.started_at:
            return False
        if job.spec.target is None and job.spec.type == "http" and not self.ports.rules.raw_http:
            return False  # the stage creates no such jobs any more
        return is_filtered(job, operation) and (operation.payload is None or job.spec.target is None)


class _Diverted(DirectPath):
    """The way of jobs that all go to the overflow, whose dispatcher publishes them in fair order."""

    def reads(self, owner: str, jobs: int, now: int) -> list[Callable[[], object]]:
        return []

    def place(self, drafts: Sequence[Job], now: int) -> list[Job]:
        return self.divert(drafts, now)


def replay_id(operation: Operation, original: str) -> str:
    """The id of the replay of this job in the chunk that the operation has announced."""
    return ids.new(operation.announced_at + START_MS, _random(operation, original))


def _submission(job: Job, operation: Operation, trace_ratio: float | None) -> Submission:
    made = replay(job, payload=operation.payload, execute_at=operation.announced_at + START_MS, trace_ratio=trace_ratio)
    return Submission(made, _random(operation, job.id))


def _random(operation: Operation, original: str) -> int:
    return ids.random_of(f"{operation.id}#{original}")


def _ended_at(job: Job) -> int:
    return int(getattr(job, lifecycle.FINAL_TIMES[lifecycle.state(job)]))


def _statuses(operation: Operation) -> tuple[str, ...]:
    """The states to replay: as in lists, failed jobs include killed ones."""
    chosen = operation.filter.statuses or RAN
    return (*chosen, Status.KILLED) if Status.FAILED in chosen else chosen
