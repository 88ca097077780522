"""The timer of a watched run: a run whose task has alerts with deadlines has one, at its next deadline."""

from dataclasses import dataclass, replace

from scheduler.model.job import JobKey


@dataclass(frozen=True, slots=True)
class RunTimer:
    """The timer of a run. `at` and the run identify it; `next_at` is when it is due.

    A timer is written again when the run has a further deadline: it keeps its place, so that a move is one write, unless that is far away.
    """

    at: int  # the first deadline
    run: JobKey
    armed_at: int  # when its run was planned: planning it again replaces the timer, and a worker drops none that it has not read
    next_at: int
    judged_until: int = 0  # deadlines until then are judged

    @property
    def at_its_deadline(self) -> "RunTimer":
        """The same timer in the place of its next deadline."""
        return replace(self, at=self.next_at)

    @property
    def position(self) -> tuple[int, str]:
        """Its place among the timers of its partition."""
        return self.at, f"{self.run.owner}#{self.run.id}"
