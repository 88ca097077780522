"""The claimed jobs of a batch that wait in their executor: they are read again, pass the gates, and start, each at its instant."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.admission import gate
from scheduler.admission.gate import READ_AHEAD_MS, READ_SPREAD_MS, READ_WINDOW_MS, UNDECIDED, AskAgain, Clear, Requeue, Undecided, Verdict
from scheduler.admission.lane_state import SEEN_MS, TRUSTED_MS
from scheduler.admission.overlap import Skip
from scheduler.model import lifecycle, misfire
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, RequeueCause, TaskHead
from scheduler.pipeline import delivery
from scheduler.pipeline.batch import Batch, parts
from scheduler.pipeline.batch_writes import BatchWrites, cancelled, is_same
from scheduler.pipeline.settling import Settling
from scheduler.pipeline.verdicts import Dropping, Verdicts
from scheduler.storage.ports import Change, Written

FRESH_CLAIM_MS = 250  # a job claimed this shortly before its instant is not read again
CROWD = 3  # if this many waiting jobs start at once, other executors probably start theirs at this instant, too ...
LINGER_MS = (40, 200)  # ... and settling waits for this time: it would take the processor from jobs that still start ...
LINGER_EACH_MS = 0.5  # ... and longer by this time for each of its jobs: the crowds of the other executors may be as large
READ_EACH_MS = 1  # a crowd is read earlier, by this time for each job of the batch
FULL_AGAIN_MS = 20  # the pause before a job is started again that found its executor full ...
FULL_MS = 2_000  # ... and how long it is tried before another executor gets the job, ...
BESIDE_MS = 500  # ... or if its owner has no job that runs here, and it comes from no full executor
ASK_PAUSE_MS = 200  # the pause before a gate is tried again whose table refuses ...
ASK_LIMIT_MS = 2_000  # ... and how long it is tried before the job is requeued


@dataclass(slots=True, eq=False)
class WaitingJob:
    """A claimed job that waits in its executor."""

    job: Job
    read_at: int | None  # when to read the job again; None: no need
    waited: bool  # the job arrived well before its instant
    start_at: int  # the job's instant, or a later one set by a gate
    gated: bool  # a gate has to allow the start
    ahead: int = 0  # how long before its instant (ms) it goes to the pool
    ask_at: int = 0  # when its gates, or its lane, are to be checked again
    cleared_at: int | None = None  # when the gates last allowed the start
    task: TaskHead | None = None  # of a run, as its gate read it then
    give_up_at: int | None = None  # the gates could not decide; when to requeue the job
    full_at: int | None = None  # when the executor was first found full

    @property
    def next_at(self) -> int:
        """When the job may start, or its gates have to be checked (ms)."""
        return self.start_at if self.start_at > self.ask_at else self.ask_at  # read often, and `max` takes twice as long

    def is_ready(self, now: int) -> bool:
        """Return whether no gate has to be checked. A clearance expires: the executor may have been frozen, or a read took long."""
        return not self.gated or (self.cleared_at is not None and now - self.cleared_at <= READ_WINDOW_MS)

    def leaves_at(self, now: int) -> int:
        """When the job goes to the pool (ms): at its instant, or ahead of it if nothing is left to read or to check."""
        at, ask_at = self.start_at, self.ask_at  # runs for each waiting job at each wake: a call would take longer than the rest
        if ask_at > at:
            return ask_at
        if not self.ahead or self.read_at is not None or at != self.job.due_at or (self.gated and not self.is_ready(now)):
            return at
        ahead_at = at - self.ahead
        return ahead_at if ahead_at > ask_at else ask_at

    def not_after(self) -> int | None:
        """The latest start (ms) by the last clearance; None if no gate has to allow the start."""
        return self.cleared_at + READ_WINDOW_MS if self.gated and self.cleared_at is not None else None


@dataclass(slots=True)
class WaitingJobs:
    """The waiting jobs of one batch."""

    batch: Batch
    writes: BatchWrites
    verdicts: Verdicts
    settling: Settling
    jobs: list[WaitingJob] = field(default_factory=list)

    def owners(self) -> set[str]:
        """Return the owners of the jobs."""
        return {waiting.job.owner for waiting in self.jobs}

    def leaves(self, now: int) -> list[int]:
        """Return when the jobs go to the pool (ms); some may be due, but not started yet."""
        return [waiting.leaves_at(now) for waiting in self.jobs]

    def wake(self, now: int, wake: int) -> int:
        """Return when there is something to do next (ms), `wake` at the latest."""
        for waiting in self.jobs:
            at = waiting.leaves_at(now) if waiting.read_at is None else min(waiting.read_at, waiting.next_at)
            if at < wake:
                wake = at
        return wake

    def take(self, job: Job, now: int, jobs: int) -> None:
        """Let a job that was just claimed wait for its instant; `jobs`: the number of those in its batch."""
        wait = job.due_at - now
        gated = self.batch.admission.concerns(job)
        is_checked = gated and wait > 0  # even if little time is left: a check at the instant would make the job late
        more = 0 if gated else round(jobs * READ_EACH_MS) if jobs > delivery.BATCH else 0
        is_read = wait > FRESH_CLAIM_MS or is_checked or lifecycle.is_revocable(job)
        read_at = job.due_at - READ_AHEAD_MS - self.batch.spread - more if is_read else None
        read_at = read_at if job.cancel_requested_at is None else now
        ahead = self.batch.process.ahead(job, jobs)
        self.jobs.append(WaitingJob(job, read_at, waited=wait > FRESH_CLAIM_MS, start_at=job.due_at, gated=gated, ahead=ahead))

    def read_again(self) -> None:
        """Read waiting jobs again just before their instant; drop the jobs that this executor must no longer start.

        From here on the owner of a job cannot change it. So a job with a key is fixed by a write, and does not start without it.
        """
        now = self.batch.ports.clock.now()
        if not [waiting for waiting in self.jobs if waiting.read_at is not None and waiting.read_at <= now]:
            return
        near = [
            waiting
            for waiting in self.jobs
            if waiting.read_at is not None and (waiting.read_at <= now or waiting.next_at <= now + READ_WINDOW_MS)
        ]
        try:
            stored: Mapping[JobKey, Job] = self._stored([waiting.job for waiting in near])
        except Unavailable:
            stored = {waiting.job.key: waiting.job for waiting in near}  # start them: a cancel that was not read is too late
        ours = {waiting.job.key: waiting for waiting in near if self.writes.still_ours(waiting.job, stored.get(waiting.job.key))}
        for waiting in near:
            waiting.read_at = None
        flagged = [job for key in ours if (job := stored[key]).cancel_requested_at is not None]
        self.drop({waiting.job.key for waiting in near} - ours.keys() | {job.key for job in flagged})
        self.writes.apply([cancelled(job, self.batch.ports.clock.now(), self.batch.ports.rules) for job in flagged])
        self._check_ahead(self._fix([waiting for key, waiting in ours.items() if stored[key].cancel_requested_at is None]), now)

    def _fix(self, near: Sequence[WaitingJob]) -> list[WaitingJob]:
        """Fix the revocable ones of these jobs; return all that may start. A job that its owner changed in between is dropped.

        While the table refuses, a job is read and fixed again later, and requeued in the end: its owner may have changed it.
        """
        done = dict[JobKey, Written]()
        for part in parts([waiting for waiting in near if lifecycle.is_revocable(waiting.job)]):
            self.batch.lease.renew_if_due()
            fixed = [Change(waiting.job, lifecycle.fix(waiting.job)) for waiting in part]
            for waiting, change, written in zip(part, fixed, self._changed(fixed), strict=True):
                done[waiting.job.key] = written
                waiting.job = change.after if written is Written.YES else waiting.job
        for key in (gone := [key for key, written in done.items() if written is Written.NO]):
            self.batch.lease.in_hand.pop(key, None)
        self.drop(gone)
        if refused := [waiting for waiting in near if done.get(waiting.job.key) is Written.REFUSED]:
            self._carry_out(dict.fromkeys((waiting.job.key for waiting in refused), UNDECIDED), self.batch.ports.clock.now())
            for waiting in refused:
                waiting.read_at = waiting.ask_at
        return [waiting for waiting in near if done.get(waiting.job.key, Written.YES) is Written.YES]

    def _changed(self, changes: Sequence[Change]) -> Sequence[Written]:
        try:
            return self.batch.ports.jobs.change(changes)
        except Unavailable:
            return [Written.REFUSED] * len(changes)

    def _check_ahead(self, near: Sequence[WaitingJob], now: int) -> None:
        """Decide what is decided before the instant: requeue the jobs of a paused lane to its waiting room, else check the gates."""
        self.batch.lease.renew_if_due()
        fresh_ms = SEEN_MS - READ_WINDOW_MS  # so no read is needed when one of them starts
        if near and self.batch.process.pauses.is_paused(self.batch.lane, fresh_ms):
            self._give_back(near, now)
        elif gated := [waiting.job for waiting in near if waiting.gated]:
            for waiting in near:  # the others go to the pool at once: the gates may take until the instant
                if waiting.ahead and not waiting.gated and waiting.next_at <= now + READ_WINDOW_MS:
                    waiting.ahead = READ_WINDOW_MS
            self.start_due()
            if not self.batch.lease.is_lost():
                self._carry_out(self.batch.admission.ahead(gated), now)

    def _give_back(self, paused: Sequence[WaitingJob], now: int) -> None:
        self._carry_out(dict.fromkeys((waiting.job.key for waiting in paused), gate.PAUSED), now)

    def _stored(self, jobs: Sequence[Job]) -> Mapping[JobKey, Job]:
        """Read claimed jobs at half the price. A cancel of the last moments may be missed, and is then too late.

        A read may also miss the claim itself: a job that no longer seems to be this executor's is read again. If that read is
        refused, it is this executor's. Raises Unavailable if the first read is refused.
        """
        seen = self.batch.ports.jobs.glance(jobs)
        lost = {job.key: job for job in jobs if not is_same(job, seen.get(job.key))}
        if not lost:
            return seen
        self.batch.lease.renew_if_due()
        try:
            return {**seen, **self.batch.ports.jobs.get_many(list(lost))}
        except Unavailable:
            return {**seen, **lost}

    def drop(self, keys: Collection[JobKey]) -> list[Job]:
        """Remove these jobs from the waiting ones and return them; they do not start here."""
        if not keys:
            return []
        keys = set(keys)
        dropped = [waiting.job for waiting in self.jobs if waiting.job.key in keys]
        self.jobs = [waiting for waiting in self.jobs if waiting.job.key not in keys]
        self.batch.admission.left(dropped)
        return dropped

    def start_due(self) -> None:
        """Start the jobs that leave now, if no pause, gate or misfire rule keeps them from it."""
        now = self.batch.ports.clock.now()
        due = [waiting for waiting in self.jobs if waiting.leaves_at(now) <= now and not lifecycle.is_revocable(waiting.job)]
        if not due:
            return
        self.batch.lease.renew_if_due()
        if not self._is_open(due, now):
            return
        self.batch.lease.renew_if_due()
        gone = self._note_starts([waiting for waiting in due if waiting.is_ready(now)])
        due = [waiting for waiting in due if waiting.job.key not in gone]
        if not self._is_open(due, self.batch.ports.clock.now()) or self.batch.lease.is_lost():
            return  # storing the starts, or the checks, took long
        now = self.batch.ports.clock.now()
        late = {waiting.job.key: Skip(why) for waiting in due if (why := misfire.too_late(waiting.job, max(now, waiting.next_at)))}
        ready = self._start([waiting for waiting in due if waiting.is_ready(now) and waiting.job.key not in late], now)
        if late:
            self._carry_out(late, now)
        if len(ready) >= CROWD and sum(waiting.waited for waiting in ready) >= CROWD:
            least, most = LINGER_MS
            linger = least + self.batch.spread * (most - least) // READ_SPREAD_MS + round(LINGER_EACH_MS * len(ready))
            self.settling.settle_at = max(now, ready[-1].start_at) + linger

    def _is_open(self, due: Sequence[WaitingJob], now: int) -> bool:
        """Return whether the lane is not paused; else give back these jobs, or check again soon if that is not known.

        An executor that was frozen since the last read may have missed a pause.
        """
        try:
            paused = self.batch.process.pauses.is_paused(self.batch.lane, SEEN_MS, trust_ms=TRUSTED_MS)
        except Unavailable:
            self._carry_out(dict.fromkeys((waiting.job.key for waiting in due), UNDECIDED), now)
            return False
        if paused:
            self._give_back(due, now)
        return not paused

    def _start(self, ready: Sequence[WaitingJob], now: int) -> list[WaitingJob]:
        """Start jobs, as many as the executor has room for; return them. The others try again soon, then another executor gets them."""
        started: list[WaitingJob] = []
        full: list[tuple[WaitingJob, int]] = []  # with the time since the executor was found full
        for waiting in ready:
            if self.batch.work.has_room(waiting.job):
                self.batch.work.start(waiting.job, waiting.not_after(), waiting.task)
                started.append(waiting)
                continue
            waiting.full_at = since = waiting.full_at or now
            waiting.ask_at = now + FULL_AGAIN_MS
            full.append((waiting, now - since))
        here = self.batch.work.owners() if full else ()
        crowded: dict[JobKey, Verdict] = {
            waiting.job.key: Requeue(RequeueCause.CROWDED, gate.CROWDED, at=now)
            for waiting, ms in full
            if ms >= (FULL_MS if waiting.job.owner in here or waiting.job.requeue_cause is RequeueCause.CROWDED else BESIDE_MS)
        }
        keys = {waiting.job.key for waiting in started}
        self.jobs = [waiting for waiting in self.jobs if waiting.job.key not in keys]
        self._carry_out(crowded, now)
        return started

    def _note_starts(self, ready: Sequence[WaitingJob]) -> set[JobKey]:
        """Store the starts of jobs that have crashed before, so that another crash is charged, and what jobs are to start in AWS, so that
        it is never started twice; drop the jobs that were taken back.

        If the table refuses, the job starts nevertheless: a crash is then not charged. But a job with work in AWS does not start yet.
        Returns the jobs that do not start.
        """
        gone: set[JobKey] = set()
        for waiting, noted in [(waiting, self._noted(waiting)) for waiting in ready]:
            before = waiting.job
            if noted is before:
                continue
            (written,) = self._changed([Change(before, noted)])
            if written is Written.NO:
                self.batch.lease.in_hand.pop(before.key, None)
                self.jobs.remove(waiting)
                gone.add(before.key)
            elif written is Written.REFUSED and noted.awaited is not before.awaited:
                self._carry_out({before.key: UNDECIDED}, self.batch.ports.clock.now())
                gone.add(before.key)
            else:
                waiting.job = noted
        return gone

    def _noted(self, waiting: WaitingJob) -> Job:
        """The job as it is stored just before its start: the same if there is nothing to store."""
        job = waiting.job
        if job.started_at is None and lifecycle.notes_start(job):
            job = lifecycle.start(job, max(self.batch.ports.clock.now(), job.due_at))
        intent = self.batch.work.pool.intent(job, waiting.task) if job.awaited is None else None
        return job if intent is None else lifecycle.intend(job, intent)

    def admit(self) -> bool:
        """Check the gates of jobs that are due and not cleared yet. False if there are none, or the lane is paused."""
        now = self.batch.ports.clock.now()
        asking = [waiting for waiting in self.jobs if waiting.gated and waiting.next_at <= now and not waiting.is_ready(now)]
        asking = [waiting for waiting in asking if not lifecycle.is_revocable(waiting.job)]
        if not asking:
            return False
        self.batch.lease.renew_if_due()
        if self.batch.process.pauses.is_paused(self.batch.lane):  # for a job that is cleared this late, the lane was checked a while ago
            self._give_back(asking, now)
            return False
        self._carry_out(self.batch.admission.decide([waiting.job for waiting in asking]), now)
        return True

    def _carry_out(self, verdicts: Mapping[JobKey, Verdict], checked_at: int) -> None:
        """Carry out the gates' verdicts on waiting jobs; the gates were checked at `checked_at`."""
        if not verdicts:
            return
        dropped: dict[JobKey, Dropping] = {}
        for waiting in self.jobs:
            verdict = verdicts.get(waiting.job.key)
            if isinstance(verdict, Clear):
                waiting.cleared_at, waiting.start_at = verdict.checked_at, max(waiting.start_at, verdict.not_before)
                waiting.task = verdict.task
            elif isinstance(verdict, AskAgain):
                waiting.cleared_at, waiting.ask_at = None, verdict.at
            elif isinstance(verdict, Undecided):
                waiting.ask_at = checked_at + ASK_PAUSE_MS
                waiting.give_up_at = waiting.give_up_at or checked_at + ASK_LIMIT_MS
                if checked_at >= waiting.give_up_at:
                    # Requeue it by a write: if the executor let the lease end, that would look like a crash and use up an attempt.
                    dropped[waiting.job.key] = gate.REFUSED
            elif verdict is not None:
                dropped[waiting.job.key] = verdict
        if dropped:
            self.writes.apply([self.verdicts.write_of(job, dropped[job.key]) for job in self.drop(dropped)])
