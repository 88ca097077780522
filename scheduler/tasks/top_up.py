"""Stores the next runs of tasks: for plan every minute, and for a request that changes a task at once.

A top-up stores the runs first, under ids derived from the task, and then notes on the task that they are stored. A process may end
in between without harm: the next top-up stores the same runs again, which changes nothing.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import TypeVar

from scheduler.admission.ordering_queue import join_queues, leave_queues
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, TaskKey
from scheduler.model.lifecycle import is_open
from scheduler.model.rules import Rules
from scheduler.model.task import Task
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Ports, Written
from scheduler.tasks import planning, run_timers, watch
from scheduler.tasks.planning import MOST, Planned, earlier_keys, further
from scheduler.tasks.withdraw import withdraw

T = TypeVar("T")
Step = Callable[[Task, int, Rules], Planned]

STEP = 5_000  # runs of all tasks in one step
PUT = 400  # runs stored in one call: their items are in memory together

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TopUp:
    """One top-up of some tasks. `runs` counts the stored runs; `failed` lists the tasks that need another top-up.

    `missed` counts the runs of gaps whose start deadline has passed: one stored entry represents many of them.
    """

    ports: Ports
    runs: int = 0
    missed: int = 0
    failed: list[TaskKey] = field(default_factory=list)

    def top_up(self, tasks: Sequence[Task], until: int | None = None) -> list[Task]:
        """Store all runs that the tasks need now, or as many as fit before `until`. Returns the updated tasks without the failed ones.

        A task that cannot be planned does not block the others.
        """
        done, left = list[Task](), list(tasks)
        while left:
            stepped = self._step(left, partial(further, most=min(MOST, max(1, STEP // len(left)))))
            done += [plan.task for plan in stepped if plan.complete]
            left = [plan.task for plan in stepped if not plan.complete]
            if until is not None and self.ports.clock.now() >= until:
                return done + left
        return done

    def catch_up(self, tasks: Sequence[Task]) -> list[Task]:
        """Take one step through the gaps of these tasks. Returns the updated tasks without the failed ones."""
        return [plan.task for plan in self._step(tasks, planning.catch_up)]

    def _step(self, tasks: Sequence[Task], step: Step) -> list[Planned]:
        """Plan one step of each task and store it. Returns the plans of the tasks whose step was stored."""
        now = self.ports.clock.now()
        planned = [(task, plan) for task in tasks if (plan := self._tolerate(task, partial(step, task, now, self.ports.rules)))]
        try:
            return self._store(planned, now)
        except Unavailable as error:
            log.warning("new runs were refused; the next top-up stores them", extra={"tasks": len(planned), "error": str(error)})
            self.failed += [task.key for task, _ in planned]
        except Exception:  # a run that cannot be stored must not stop those of all other tasks
            if len(planned) > 1:
                return [done for task, _ in planned for done in self._step([task], step)]
            log.exception("the runs of a task cannot be stored", extra=_context(planned[0][0]) if planned else {})
            self.failed += [task.key for task, _ in planned]
        return []

    def _store(self, planned: Sequence[tuple[Task, Planned]], now: int) -> list[Planned]:
        """Store the runs of these plans, and note it on their tasks. Returns the plans for which both succeeded. Raises Unavailable."""
        planned = self._unless_stored_before(planned)
        alerts = watch.rules([task for task, _ in planned], self.ports)
        planned = [(task, plan._replace(runs=watch.marked(plan.runs)) if task.key in alerts else plan) for task, plan in planned]
        runs = [run for _, plan in planned for run in plan.runs]
        if not all(join_queues([run for run in runs if is_open(run)], orders=self.ports.orders, now=now)):
            raise Unavailable("the table refused the ordering entries of the jobs")
        run_timers.arm(watch.timers_of_all(((task, plan.runs) for task, plan in planned), alerts, now), self.ports)
        stored = [written for first in range(0, len(runs), PUT) for written in self.ports.jobs.put_many(runs[first : first + PUT])]
        there = [run for run, holds in zip(runs, stored, strict=True) if holds is not Written.REFUSED and is_open(run)]
        enqueue_if_due_soon(there, now, self.ports)
        ends = list(accumulate(len(plan.runs) for _, plan in planned))
        moved, moves = list[Planned](), list[tuple[Task, Planned]]()
        for (task, plan), end in zip(planned, ends, strict=True):
            holds = stored[end - len(plan.runs) : end]
            self.runs += sum(1 for written in holds if written is Written.YES)
            if Written.REFUSED in holds:
                self.failed.append(task.key)
            elif plan.missed > 1 and holds[0] is Written.NO and self._is_run(plan.runs[0]):
                moved += self._step([task], partial(planning.catch_up, each=True))
            else:
                moves.append((task, plan))
        return moved + self._move_on(moves, now)

    def _unless_stored_before(self, planned: Sequence[tuple[Task, Planned]]) -> Sequence[tuple[Task, Planned]]:
        """Leave out the missed runs that an earlier generation stored: it may have started them, and an executor cancels the others."""
        names = {run.key: keys for task, plan in planned for run in plan.runs if is_open(run) and (keys := earlier_keys(task, run))}
        if not names:
            return planned
        there = self.ports.jobs.get_many([key for keys in names.values() for key in keys])
        before = {run for run, keys in names.items() if not all(map(there.is_absent, keys))}
        return [(task, plan._replace(runs=[run for run in plan.runs if run.key not in before])) for task, plan in planned]

    def _is_run(self, entry: Job) -> bool:
        """Whether the run that should represent missed ones was stored as a run before, by a top-up that was stored only in part."""
        stored = self.ports.jobs.get_many([entry.key]).get(entry.key)
        return stored is not None and stored.reason != entry.reason

    def _move_on(self, moves: Sequence[tuple[Task, Planned]], now: int) -> list[Planned]:
        """Note that the runs are stored. Returns the plans for which the note was written."""
        moved, late = list[Planned](), list[tuple[Task, Planned]]()
        results = self.ports.tasks.move_on([(task, plan.task) for task, plan in moves]) if moves else []
        for (task, plan), done in zip(moves, results, strict=True):
            if done is Written.YES:
                moved.append(plan)
                self.missed += plan.missed
                if plan.missed:
                    log.info("runs were missed while nothing was planned", extra=_context(task) | {"missed": plan.missed})
            elif done is Written.NO:
                late.append((task, plan))
            else:
                self.failed.append(task.key)
        if late:
            self._withdraw(late, now)
        return moved

    def _withdraw(self, late: Sequence[tuple[Task, Planned]], now: int) -> None:
        """Withdraw the future runs of tasks that have a new generation by now. A due run stays: its executor cancels it."""
        try:
            current = self.ports.tasks.get_many([task.key for task, _ in late])
        except Unavailable:
            log.info("could not read whether tasks were edited; executors cancel the runs of edited ones", extra={"tasks": len(late)})
            return
        for task, plan in late:
            if current.is_absent(task.key) or (task.key in current and current[task.key].generation != task.generation):
                runs = [run for run in plan.runs if run.scheduled_at > now]
                stay = set(withdraw([run.key for run in runs], self.ports.jobs))
                leave_queues([run for run in runs if run.key not in stay], orders=self.ports.orders)

    def _tolerate(self, task: Task, step: Callable[[], T]) -> T | None:
        """Return the step's result, or None if it fails for any reason: one broken task must not stop the planning of all others."""
        try:
            return step()
        except Unavailable as error:
            log.warning("could not plan a task; the next plan tries again", extra=_context(task) | {"error": str(error)})
        except Exception:
            log.exception("a task cannot be planned", extra=_context(task))
        self.failed.append(task.key)
        return None


def _context(task: Task) -> dict[str, str]:
    return {"task_id": task.id, "user_id": task.owner}
