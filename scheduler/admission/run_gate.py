"""The gate of a run of a task: whether its task still includes it, whether it must wait for the run before it, and overlap.

Most runs pass the gate at the last read, so that they start on the millisecond.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.admission import overlap
from scheduler.admission.gate import READ_WINDOW_MS, UNDECIDED, Cancel, Clear, Requeue, Undecided, Verdict
from scheduler.admission.overlap import Skip
from scheduler.model import ids, lifecycle, settlement
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Message, Overlap, RequeueCause, RunInfo, RunLock, TaskHead, TaskKey
from scheduler.model.lifecycle import is_open
from scheduler.storage.ports import Change, Found, Ports, Written

ROUNDS = 5  # tries at run locks that other executors change at the same time; each try decides at least one run of the task

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    """The items read for one round."""

    checked_at: int
    holders: Mapping[TaskKey, RunLock]
    jobs: Mapping[JobKey, Job]
    unreadable: Collection[JobKey]  # jobs that another version stored: each may be running
    tasks: Mapping[TaskKey, TaskHead]

    def clear(self, run: Job) -> Clear:
        return Clear(self.checked_at, task=self.tasks.get(task_of(run)))


@dataclass(frozen=True, slots=True)
class _PassOn:
    """The run has the run lock of its task, but is late by now: the lock passes to the run before it (`hold`)."""

    hold: RunLock
    back: Requeue


_Write = overlap.Start | overlap.Wait | _PassOn


@dataclass(slots=True)
class RunGate:
    """See `admission.Gate`. Of several runs of one task in one call, one read decides one run; the others need another read."""

    ports: Ports

    def concerns(self, job: Job) -> bool:
        return job.origin is not None

    def ahead(self, runs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Decide the runs that may start at their instant and the runs that their task no longer includes; no skip and no wait yet."""
        try:
            return self._round(runs, ahead=True)
        except Unavailable:
            return {}

    def decide(self, runs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Return the verdicts on due runs."""
        left, verdicts = list(runs), dict[JobKey, Verdict]()
        try:
            for _ in range(ROUNDS):
                if left:
                    verdicts |= self._round(left, ahead=False)
                    left = [run for run in left if run.key not in verdicts]
        except Unavailable:
            log.info("could not read tasks; their runs are checked again", extra={"runs": len(left)})
        return dict.fromkeys((run.key for run in runs), UNDECIDED) | verdicts

    def _round(self, runs: Sequence[Job], *, ahead: bool) -> dict[JobKey, Verdict]:
        """Decide with one read and one write of run locks, the earlier run of a task first. Omits runs that need another read."""
        checked_at = self.ports.clock.now()
        # Read run locks before tasks: a delete removes the task first, so a lock that is missing with its task must not be taken for free.
        exclusive = sorted({task_of(run) for run in runs if _origin(run).overlap is not Overlap.ALLOW})
        holders = self.ports.tasks.holders(exclusive) if exclusive else Found[TaskKey, RunLock]()
        heads = self.ports.tasks.heads(sorted({task_of(run) for run in runs}))
        unread = heads.unreadable.keys() | holders.unreadable.keys()
        verdicts: dict[JobKey, Verdict] = {run.key: UNDECIDED for run in runs if not ahead and task_of(run) in unread}
        runs = [run for run in runs if task_of(run) not in unread]
        verdicts |= {run.key: Cancel(why) for run in runs if (why := unwanted(run, heads.get(task_of(run))))}
        first = _one_of_each([run for run in runs if run.key not in verdicts])
        known = self._known(checked_at, first, holders, heads)
        writes: list[tuple[Job, _Write]] = []
        for run in first:
            decision = self._decide(run, known)
            if isinstance(decision, _Write):
                if not ahead or isinstance(decision, overlap.Start):
                    writes.append((run, decision))
            elif not (ahead and isinstance(decision, Skip | Requeue | Undecided)):
                verdicts[run.key] = decision
        return verdicts | self._carry_out(writes, known)

    def _known(self, checked_at: int, runs: Sequence[Job], holders: Mapping[TaskKey, RunLock], tasks: Mapping[TaskKey, TaskHead]) -> _Known:
        names = {JobKey(key.owner, name) for key, holder in holders.items() for name in (holder.job, holder.waiting) if name}
        names |= {before for run in runs if (before := self._before(run)) is not None}
        keys = sorted(names - {run.key for run in runs})
        read = self.ports.jobs.get_many(keys) if keys else Found[JobKey, Job]()
        return _Known(checked_at, holders, {run.key: run for run in runs} | read, read.unreadable, tasks)

    def _before(self, run: Job) -> JobKey | None:
        """The run before this one in a sequence whose runs may have to start in order; None if they need not, or if this one has started.

        A run in time may start beside an earlier one, unless the earlier one would make it skip.
        """
        origin = _origin(run)
        if origin.late_from is None or origin.previous_at is None or run.delay_ms is not None:
            return None
        if origin.overlap in (Overlap.ALLOW, Overlap.CANCEL_RUNNING) and not self._is_behind(run):
            return None
        return JobKey(run.owner, ids.run(origin.previous_at, origin.task, origin.generation))

    def _is_behind(self, run: Job) -> bool:
        """Whether the run starts late. A run cleared now may start up to READ_WINDOW_MS later, and must still be in time then."""
        late_from = _origin(run).late_from
        return late_from is not None and max(self.ports.clock.now() + READ_WINDOW_MS, run.due_at) >= late_from

    def _decide(self, run: Job, known: _Known) -> Clear | Skip | Requeue | Undecided | _Write:
        origin, holder = _origin(run), known.holders.get(task_of(run))
        before = self._before(run)
        named = {before, *(JobKey(run.owner, name) for name in _names(holder) if name)}
        if not named.isdisjoint(known.unreadable):
            return UNDECIDED
        if before is not None and self._must_wait(run, known.jobs.get(before)):
            back = Requeue(RequeueCause.MISFIRE, f"misfire: it runs after run {before.id}", before)
            if holder is not None and holder.job == run.id:  # its executor was frozen since; the run before may wait for the lock
                return _PassOn(overlap.passed_on(holder, before.id), replace(back, wake=True))
            return back
        if origin.overlap is Overlap.ALLOW:
            return known.clear(run)
        holding, waiting = (known.jobs.get(JobKey(run.owner, name)) if name else None for name in _names(holder))
        return overlap.decide(run, origin, holder, holding, waiting)

    def _must_wait(self, run: Job, before: Job | None) -> bool:
        """Whether the run starts after the one before it: one of them is late, and that one has not ended."""
        return before is not None and is_open(before) and (self._is_behind(run) or _is_late(before, self.ports.clock.now()))

    def _carry_out(self, decisions: Sequence[tuple[Job, _Write]], known: _Known) -> dict[JobKey, Verdict]:
        """Carry out the decisions that still hold. Replaced runs end first: until then the run lock names them, so they are found."""
        decisions = [(run, decision) for run, decision in decisions if isinstance(decision, _PassOn) or self._end(decision)]
        writes = [(known.holders.get(task_of(run)), decision.hold) for run, decision in decisions if decision.hold is not None]
        written = iter(self.ports.tasks.hold([(before, after) for before, after in writes if after is not None]) if writes else [])
        verdicts: dict[JobKey, Verdict] = {}
        for run, decision in decisions:
            if decision.hold is not None and next(written) is not Written.YES:
                continue
            if isinstance(decision, _PassOn):
                verdicts[run.key] = decision.back
            elif isinstance(decision, overlap.Start):
                verdicts[run.key] = known.clear(run)
            else:
                blocker = JobKey(run.owner, (decision.hold or known.holders[task_of(run)]).job)
                verdicts[run.key] = Requeue(RequeueCause.OVERLAP, f"overlap: it runs after run {blocker.id}", blocker)
        return verdicts

    def _end(self, decision: overlap.Start | overlap.Wait) -> bool:
        """Cancel the replaced jobs, or request it of running ones. False: one of them has changed, or has ended, so decide again."""
        now, changes = self.ports.clock.now(), []
        for job in decision.cancel:
            if job.claim is None:
                changes.append(Change(job, lifecycle.cancel(job, now, reason=overlap.REPLACED, retention=self.ports.rules.retention)))
            elif job.cancel_requested_at is None:
                changes.append(Change.of_slot(job, settlement.flag(job, overlap.REPLACED, now, self.ports.rules)))
        written = self.ports.jobs.change(changes) if changes else []
        self._check_soon([change.after for change, ok in zip(changes, written, strict=True) if ok is Written.YES])
        waits = isinstance(decision, overlap.Wait)  # perhaps for one that has ended now
        return all(ok is Written.YES and not (waits and not is_open(change.after)) for change, ok in zip(changes, written, strict=True))

    def _check_soon(self, flagged: Sequence[Job]) -> None:
        """Enqueue the jobs that run without an executor: only a check ends them. A lost message delays that until their slots."""
        now = self.ports.clock.now()
        messages = [Message.of(job, now) for job in flagged if is_open(job) and lifecycle.waits(job)]
        try:
            refused = self.ports.lanes.send(messages, now) if messages else ()
        except Unavailable:
            refused = messages
        if refused:
            log.info("could not enqueue replaced runs; they are checked from their slots", extra={"jobs": len(refused)})


def task_of(run: Job) -> TaskKey:
    return TaskKey(run.owner, _origin(run).task)


def unwanted(run: Job, head: TaskHead | None) -> str | None:
    """The reason why the run must not start by the current state of its task; None if it may start.

    An edit replaces the scheduled runs that have not started yet. A pause also ends retries and manual runs.
    """
    origin = _origin(run)
    if head is None:
        return "its task was deleted"
    if head.inactive_at is not None:
        return "its task was made inactive" + (f": {head.inactive_reason}" if head.inactive_reason else "")
    if origin.nominal_at is not None and run.delay_ms is None and origin.generation < head.generation:
        return "its task was edited"
    return None


def _origin(run: Job) -> RunInfo:
    if run.origin is None:
        raise ValueError(f"job {run.id} is no run of a task")
    return run.origin


def _is_late(run: Job, now: int) -> bool:
    """Whether an open run of a sequence has not started yet, has started late, or has waited for late ones."""
    delay, late_from = lifecycle.delay(run, now), _origin(run).late_from
    waited = run.requeue_cause is RequeueCause.MISFIRE
    return delay is None or waited or (late_from is not None and run.scheduled_at + delay >= late_from)


def _names(holder: RunLock | None) -> tuple[str | None, str | None]:
    return (holder.job, holder.waiting) if holder is not None else (None, None)


def _one_of_each(runs: Sequence[Job]) -> list[Job]:
    """The first run of each task, and every run that may overlap: one read must not decide two runs of a task."""
    seen: set[TaskKey] = set()
    chosen = []
    for run in sorted(runs, key=lambda run: (run.due_at, run.id)):
        if _origin(run).overlap is Overlap.ALLOW:
            chosen.append(run)
        elif task_of(run) not in seen:
            seen.add(task_of(run))
            chosen.append(run)
    return chosen
