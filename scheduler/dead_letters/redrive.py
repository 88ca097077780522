"""Carries out redrives, each at its rate, step by step.

A step leases its redrive and processes the letters in small chunks: it reads the jobs, changes them under their fences, enqueues them
and stores its progress. The redrive's message in the work queue brings the next step, also after the death of a worker. The fence
ensures that no job is redriven twice, however many workers work; the lease only saves work.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from scheduler.admission.ordering_queue import join_queues
from scheduler.admission.run_gate import task_of, unwanted
from scheduler.dead_letters import model
from scheduler.dead_letters.model import Redrive, State
from scheduler.model.errors import Unavailable
from scheduler.model.job import DeadLetter, Job
from scheduler.model.work import WorkItem
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.pipeline.worker import SECOND_MS
from scheduler.storage.ports import Change, Ports, Written

WORK_MS = 45_000  # a step ends after this time, and the next one goes on
SETTLED_MS = 2_000  # after its start: a job that failed just before is in the index by then
LATE_MS = 1_000  # a redrive makes up for at most this much of a delay
HIDE_MS = 5_000  # how often a step renews the visibility of its message
READ = 1_000  # letters read ahead
TRIES = 4  # of a change that the table refuses

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RedriveResult:
    """The counts of one step. `next_at`: when the next step is due (ms); None: the redrive has ended."""

    redriven: int = 0
    skipped: int = 0
    next_at: int | None = None


@dataclass(slots=True)
class _Held:
    """A redrive under our lease. `letters`: read ahead. `cursor`: where reading continues; once it has `begun`, None means the end."""

    record: Redrive
    next_at: int  # when its next chunk is due
    letters: list[DeadLetter] = field(default_factory=list)
    cursor: str | None = None
    begun: bool = False
    ended: bool = False  # it is done, or another worker has it, or it was aborted


@dataclass(slots=True)
class RedriveStep:
    """One step of one redrive. `run` is the only entry point."""

    ports: Ports
    hide: Callable[[], None]
    result: RedriveResult = field(default_factory=RedriveResult)

    def run(self, owner: str, id: str) -> RedriveResult:
        now, record = self.ports.clock.now(), self.ports.redrives.get(owner, id)
        if record is None or record.state is not State.RUNNING:
            return self.result
        self.result.next_at = record.lease_until + SECOND_MS
        if record.lease_until > now:
            return self.result  # another worker has it
        mine = replace(record, lease_until=now + model.LEASE_MS, version=record.version + 1)
        if not self.ports.redrives.change(record, mine):
            self.result.next_at = now + model.LEASE_MS
            return self.result
        held = _Held(mine, max(now, mine.started_at + SETTLED_MS), cursor=mine.after)
        self._process(held, until=now + WORK_MS)
        if held.ended:
            self.result.next_at = None
        else:
            self.ports.redrives.change(held.record, replace(held.record, lease_until=0, version=held.record.version + 1))
            self.result.next_at = self.ports.clock.now()
        return self.result

    def _process(self, held: _Held, until: int) -> None:
        hide_at = self.ports.clock.now() + HIDE_MS
        while not held.ended and (now := self.ports.clock.now()) < until:
            if now >= hide_at:
                hide_at = now + HIDE_MS
                self.hide()
            if held.next_at > now:
                self.ports.clock.sleep_until(min(held.next_at, hide_at))
            else:
                self._chunk(held)

    def _chunk(self, held: _Held) -> None:
        now, record = self.ports.clock.now(), held.record
        chosen, after, through = self._choose(held)
        redriven = self._redrive(record, chosen)
        skipped = len(chosen) - redriven
        self.result.redriven += redriven
        self.result.skipped += skipped
        counted = _counted(record, redriven, skipped)
        done = through or (record.limit is not None and counted.redriven >= record.limit)
        changed = replace(counted, after=after, lease_until=self.ports.clock.now() + model.LEASE_MS)
        if done:
            changed = replace(changed, state=State.DONE, ended_at=self.ports.clock.now())
        if not self.ports.redrives.change(record, changed):
            held.ended = True
            self._add(record, redriven, skipped)
            return
        held.record, held.ended = changed, done
        held.next_at = max(held.next_at, now - LATE_MS) + len(chosen) * 1000 // record.rate

    def _choose(self, held: _Held) -> tuple[list[DeadLetter], str | None, bool]:
        """The letters of the next chunk, the position of the last letter checked, and whether it is the last of all."""
        record, chosen = held.record, list[DeadLetter]()
        if not held.letters and (held.cursor is not None or not held.begun):
            times = record.filter
            held.letters, held.cursor = self.ports.jobs.letters(
                record.owner, since=times.since, until=times.until, after=held.cursor, limit=READ
            )
            held.begun = True
        looked, after = 0, record.after
        for letter in held.letters:
            if len(chosen) == record.chunk:
                break
            looked, after = looked + 1, letter.position
            if letter.at <= record.started_at and record.filter.matches(letter):
                chosen.append(letter)
        held.letters = held.letters[looked:]
        return chosen, after, not held.letters and held.cursor is None

    def _redrive(self, record: Redrive, letters: list[DeadLetter]) -> int:
        """Redrive the jobs of these letters. Returns how many have been redriven, also by an earlier try."""
        stored = self.ports.jobs.get_many([letter.key for letter in letters]) if letters else {}
        done = sum(1 for job in stored.values() if _was_redriven(job, record))  # by an invocation that then died, or by hand
        dead = [job for job in stored.values() if model.is_dead(job) and _ended_at(job) <= record.started_at]
        runs = [job for job in dead if job.origin is not None]
        heads = self.ports.tasks.heads(sorted({task_of(run) for run in runs})) if runs else {}
        now = self.ports.clock.now()
        wanted = [job for job in dead if job.origin is None or unwanted(job, heads.get(task_of(job))) is None]
        changes = [Change(job, model.again(job, now, self.ports.rules.shards, record.id)) for job in wanted]
        if not all(join_queues([change.after for change in changes], orders=self.ports.orders, now=now)):
            raise Unavailable("the table refused their ordering entries")
        again = self._change(changes)
        enqueue_if_due_soon(again, now, self.ports)
        return done + len(again)

    def _change(self, changes: list[Change]) -> list[Job]:
        """Write the changes and return the changed jobs. Raises Unavailable if the table keeps refusing one."""
        done: list[Job] = []
        for attempt in range(TRIES):
            held = self.ports.jobs.change(changes) if changes else []
            done += [change.after for change, ok in zip(changes, held, strict=True) if ok is Written.YES]
            changes = [change for change, ok in zip(changes, held, strict=True) if ok is Written.REFUSED]
            if not changes:
                break
            self.ports.clock.sleep_until(self.ports.clock.now() + (200 << attempt))
        if changes:
            log.warning("could not redrive jobs: the table refuses", extra={"refused": len(changes)})
            enqueue_if_due_soon(done, self.ports.clock.now(), self.ports)
            raise Unavailable
        return done

    def _add(self, record: Redrive, redriven: int, skipped: int) -> None:
        """Add the counts of a chunk that was in work when the redrive was aborted. An invocation with a newer lease counts for itself."""
        stored = self.ports.redrives.get(record.owner, record.id)
        if stored is not None and stored.state is State.ABORTED:
            self.ports.redrives.change(stored, _counted(stored, redriven, skipped))


def _counted(record: Redrive, redriven: int, skipped: int) -> Redrive:
    return replace(
        record,
        found=record.found + redriven + skipped,
        redriven=record.redriven + redriven,
        skipped=record.skipped + skipped,
        version=record.version + 1,
    )


def _was_redriven(job: Job, record: Redrive) -> bool:
    return job.redriven_at is not None and job.redriven_at >= record.started_at


def _ended_at(job: Job) -> int:
    return job.failed_at or job.killed_at or 0


def redrive(item: WorkItem, ports: Ports, hide: Callable[[], None]) -> int | None:
    """Carry out one step of the redrive that the item names; return when the next one is due (ms), None: it has ended.

    Raises Unavailable if a table refuses: the redrive continues once the lease of this step has run out.
    """
    result = RedriveStep(ports, hide).run(item.of, item.part)
    log.info("redrive", extra={"redrive_id": item.part, "user_id": item.of} | asdict(result))
    return result.next_at
