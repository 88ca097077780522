"""Decides whether a due job may start: a sequence of gates, each of which applies one rule to some of the jobs.

Most jobs concern no gate, and no gate checks them. A gate checks a job twice. `ahead` runs at the last read and may already
return final verdicts, so that the job starts on the millisecond. `decide` runs at the instant and must answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.admission.overlap import Skip
from scheduler.model.job import Finished, Job, JobKey, RequeueCause, TaskHead

READ_AHEAD_MS = 120  # the last read of waiting jobs starts this long before their instant, and up to as much again ...
READ_SPREAD_MS = 280  # ... earlier: a hundred executors waiting for one instant do not all read at once
READ_WINDOW_MS = READ_AHEAD_MS + READ_SPREAD_MS  # no job starts by an older read, so that a writer needs to wait no longer than this


@dataclass(frozen=True, slots=True)
class Clear:
    """The job may start at `not_before` or later, by a state read just after `checked_at`. `task`: of a run, as read then."""

    checked_at: int
    not_before: int = 0
    task: TaskHead | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """The task of the run no longer includes it: the executor cancels the run."""

    reason: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """The executor requeues the job.

    `blocker`: the job that must end first; its executor enqueues this one then. `at`: the new instant of the job.
    `check_at`: when the job must be checked again if no executor enqueues it before; None: soon. `target`: the limited target in whose
    queue it waits. `room`: the waiting room of its owner; None: that of its lane, if the cause is PAUSED and no `at` is given. `wake`: what
    it waits for may wait itself, and has to be woken: the queue, or the blocker.
    """

    cause: RequeueCause
    reason: str  # as shown to its owner
    blocker: JobKey | None = None
    at: int | None = None
    check_at: int | None = None
    target: str | None = None
    room: str | None = None
    wake: bool = False


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The gates must check the job again at `at`; it does not start before."""

    at: int


@dataclass(frozen=True, slots=True)
class Undecided:
    """The deciding state could not be read, or changes at this moment: check again soon. The executor stops checking after a while."""


Verdict = Clear | Cancel | Skip | Requeue | AskAgain | Undecided
UNDECIDED = Undecided()
PAUSED = Requeue(RequeueCause.PAUSED, "its lane is paused")
REFUSED = Requeue(RequeueCause.REFUSED, "the rules for its start could not be read")
CROWDED = "its executor was full: another one takes it"


class Gate(Protocol):
    """One rule. No call raises Unavailable."""

    def concerns(self, job: Job) -> bool:
        """Whether the rule applies to this job; the answer never changes while the job stays claimed."""

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Return verdicts shortly before the instant of the jobs, but only those that cannot change until then."""

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Return a verdict on each of these due jobs."""


class Follower(Protocol):
    """The part of a gate that follows jobs after their start. No call raises Unavailable."""

    def left(self, jobs: Sequence[Job]) -> None:
        """Note that these jobs no longer occupy their targets: their work has ended or does not begin here. A job may be passed twice.

        If work has ended, `ended` has reported it before.
        """

    def ended(self, done: Sequence[Finished]) -> None:
        """Note the results of these jobs, before the executor settles them."""


Ask = Callable[[Gate, Sequence[Job]], Mapping[JobKey, Verdict]]


@dataclass(slots=True)
class Admission:
    """All gates in order: each gate checks only the jobs that the gate before it lets through.

    `followers`: the gates that must know when jobs end or leave. `renew_if_due` is called before each gate: a gate may take seconds, and
    the executor must keep its lease.
    """

    gates: Sequence[Gate]
    followers: Sequence[Follower] = ()
    renew_if_due: Callable[[], object] = bool

    def concerns(self, job: Job) -> bool:
        for gate in self.gates:  # without `any`: every claimed job comes here, and a generator takes as long as a gate
            if gate.concerns(job):
                return True
        return False

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """See `Gate`."""
        return self._ask(jobs, lambda gate, concerned: gate.ahead(concerned))

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """See `Gate`."""
        return self._ask(jobs, lambda gate, concerned: gate.decide(concerned))

    def left(self, jobs: Sequence[Job]) -> None:
        """See `Follower`."""
        for follower in self.followers:
            self.renew_if_due()
            follower.left(jobs)

    def ended(self, done: Sequence[Finished]) -> None:
        """See `Follower`."""
        for follower in self.followers:
            self.renew_if_due()
            follower.ended(done)

    def _ask(self, jobs: Sequence[Job], ask: Ask) -> dict[JobKey, Verdict]:
        verdicts: dict[JobKey, Verdict] = {}
        left = {job.key: job for job in jobs}
        for gate in self.gates:
            concerned = [job for job in left.values() if gate.concerns(job)]
            if not concerned:
                continue
            self.renew_if_due()
            answers = ask(gate, concerned)
            for job in concerned:
                answer = _both(verdicts.pop(job.key, None), answers.get(job.key))
                if answer is not None:
                    verdicts[job.key] = answer
                if not isinstance(answer, Clear):
                    del left[job.key]
        return verdicts


def _both(before: Verdict | None, answer: Verdict | None) -> Verdict | None:
    """Combine the verdicts of two gates on a job that the first gate lets through."""
    if isinstance(before, Clear) and isinstance(answer, Clear):
        return Clear(min(before.checked_at, answer.checked_at), max(before.not_before, answer.not_before), answer.task or before.task)
    return answer
