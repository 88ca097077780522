"""Whether a job whose instant comes may start: a row of gates, each of which knows one rule and concerns only some jobs.

Usual jobs concern no gate and are never asked about. A gate is asked twice: `ahead`, at the last read, where it may settle
what is settled already, so that the start is on the millisecond; and `decide`, at the instant, where it has to answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.admission.overlap import Skip
from scheduler.model.job import Finished, Job, JobKey, RequeueCause

READ_AHEAD_MS = 120  # the last read of held jobs starts this long before their instant, and up to as much again ...
READ_SPREAD_MS = 280  # ... earlier: a hundred executors holding for one instant do not read at once
READ_WINDOW_MS = READ_AHEAD_MS + READ_SPREAD_MS  # nothing starts by what was read longer ago: who changed it waits no longer


@dataclass(frozen=True, slots=True)
class Clear:
    """It may start, at `not_before` or later, by what was true just after `asked_at`."""

    asked_at: int
    not_before: int = 0


@dataclass(frozen=True, slots=True)
class Cancel:
    """Its task wants it no more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """It has to go back to its queue.

    `blocker`: the job that must end first, and whose executor hands this one over. `at`: its new instant; `reserved`: that is its ticket
    in the line of a limited target. `look_at`: when the scheduler need look at it again, if it is not handed over before; None: soon.
    """

    cause: RequeueCause
    reason: str  # as its owner reads it
    blocker: JobKey | None = None
    at: int | None = None
    look_at: int | None = None
    reserved: bool = False


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Its gates are to be asked again at `at`; it does not start before."""

    at: int


@dataclass(frozen=True, slots=True)
class Undecided:
    """What decides could not be read, or changes at this moment: ask again soon. Whoever asks gives up after a while."""


Verdict = Clear | Cancel | Skip | Requeue | AskAgain | Undecided
UNDECIDED = Undecided()
PAUSED = Requeue(RequeueCause.PAUSED, "its lane is paused")
REFUSED = Requeue(RequeueCause.REFUSED, "what lets it start could not be read")


class Gate(Protocol):
    """One rule. No call raises Unavailable."""

    def concerns(self, job: Job) -> bool:
        """Whether the rule has a say in this job; for ever the same for the job as claimed."""

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Verdicts on jobs shortly before their instant: those that cannot change until then."""

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """A verdict on each of the jobs, whose instant has come."""

    def left(self, jobs: Sequence[Job]) -> None:
        """These jobs occupy their targets no more: their work has come back, or does not begin here. A job may be named twice."""

    def ended(self, done: Sequence[Finished]) -> None:
        """The work of these jobs ended so, and they are about to be settled."""


Ask = Callable[[Gate, Sequence[Job]], Mapping[JobKey, Verdict]]


@dataclass(slots=True)
class Admission:
    """All gates, in the order in which they are asked: the next one only about jobs that the one before lets through."""

    gates: Sequence[Gate]

    def concerns(self, job: Job) -> bool:
        return any(gate.concerns(job) for gate in self.gates)

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """See `Gate`."""
        return self._ask(jobs, lambda gate, asked: gate.ahead(asked))

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """See `Gate`."""
        return self._ask(jobs, lambda gate, asked: gate.decide(asked))

    def left(self, jobs: Sequence[Job]) -> None:
        """See `Gate`."""
        for gate in self.gates:
            gate.left(jobs)

    def ended(self, done: Sequence[Finished]) -> None:
        """See `Gate`."""
        for gate in self.gates:
            gate.ended(done)

    def _ask(self, jobs: Sequence[Job], ask: Ask) -> dict[JobKey, Verdict]:
        verdicts: dict[JobKey, Verdict] = {}
        left = {job.key: job for job in jobs}
        for gate in self.gates:
            asked = [job for job in left.values() if gate.concerns(job)]
            answers = ask(gate, asked) if asked else {}
            for job in asked:
                answer = _both(verdicts.pop(job.key, None), answers.get(job.key))
                if answer is not None:
                    verdicts[job.key] = answer
                if not isinstance(answer, Clear):
                    del left[job.key]
        return verdicts


def _both(before: Verdict | None, answer: Verdict | None) -> Verdict | None:
    """What two gates say together, of which the first one let the job through."""
    if isinstance(before, Clear) and isinstance(answer, Clear):
        return Clear(min(before.asked_at, answer.asked_at), max(before.not_before, answer.not_before))
    return answer
