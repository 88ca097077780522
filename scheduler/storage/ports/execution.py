"""Time and parallel work in an executor."""

from __future__ import annotations

from typing import Protocol

from scheduler.model.job import Awaited, Finished, Job, TaskHead


class Clock(Protocol):
    """The only source of time for a service, and the only means to wait. In the simulation it is virtual."""

    def now(self) -> int:
        """Return UTC milliseconds by this machine's clock."""

    def monotonic(self) -> int:
        """Return milliseconds of a clock that is never set. It may stand still while the machine is frozen."""

    def sleep_until(self, at: int) -> None:
        """Return when `now()` is `at` or slightly later, never earlier."""


class Pool(Protocol):
    """Runs the jobs of an executor in parallel."""

    def has_room(self, job: Job) -> bool:
        """Return whether the job would begin at once if it were started now, beside the running jobs."""

    def intent(self, job: Job, task: TaskHead | None) -> Awaited | None:
        """Return what `start` will start in AWS whose end is awaited, to be stored before; None: nothing, or the job has it already."""

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        """Start the job's target at the job's instant, or now if that has passed, limited by its time-out. Return at once; `wait` returns
        its result. For a job whose work in AWS is awaited already, check that instead: it goes on, or has ended.

        `task`: the task of a run, for its receiver.

        A target that could not begin by `not_after` (ms) does not begin: its result is then `unstarted`.
        """

    def wait(self, until: int) -> list[Finished]:
        """Wait for the first finished job, at most until the instant `until`. Return all that have finished; empty if none has."""

    def cancel(self, job: Job) -> None:
        """Request one job's work to stop. `wait` still returns its result, unless its target ignores the request."""

    def kill(self, job: Job) -> None:
        """End the work of one job that did not stop, where the pool can. The caller ignores its result."""

    def stop(self) -> None:
        """End all running work, or request it to stop where the pool cannot end it. `wait` returns none of its results."""
