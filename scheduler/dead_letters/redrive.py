"""redrive: processes the running redrives, each at its rate.

An invocation leases the redrives that no other invocation has leased, and processes their letters in small chunks: it reads the
jobs, changes them under their fences, enqueues them and stores its progress. The next invocation waits beside it and takes over
when it stops or has died. The fence ensures that no job is redriven twice, however many invocations work; the lease only saves work.
"""

import logging
from dataclasses import dataclass, field, replace

from scheduler.admission.ordering_queue import join_queues
from scheduler.admission.run_gate import task_of, unwanted
from scheduler.dead_letters import model
from scheduler.dead_letters.model import Redrive, State
from scheduler.model.errors import Unavailable
from scheduler.model.job import DeadLetter, Job
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Change, Ports, Written

WORK_MS = 75_000  # longer than the minute after which the next invocation starts and waits
LOOK_MS = 1_000  # how often it checks for redrives without a lease
READ = 1_000  # letters read ahead
TRIES = 4  # of a change that the table refuses

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RedriveResult:
    """The counts of one invocation."""

    redrives: int = 0
    redriven: int = 0
    skipped: int = 0
    refused: int = 0


@dataclass(slots=True)
class _Held:
    """A redrive under our lease. `letters`: read ahead. `cursor`: where reading continues; once it has `begun`, None means the end."""

    record: Redrive
    next_at: int  # when its next chunk is due
    letters: list[DeadLetter] = field(default_factory=list)
    cursor: str | None = None
    begun: bool = False


@dataclass(slots=True)
class RedriveWorker:
    """One invocation. `run` is the only entry point."""

    ports: Ports
    result: RedriveResult = field(default_factory=RedriveResult)
    _held: dict[tuple[str, str], _Held] = field(default_factory=dict)

    def run(self) -> RedriveResult:
        until, look_at = self.ports.clock.now() + WORK_MS, self.ports.clock.now()
        while (now := self.ports.clock.now()) < until:
            if now >= look_at:
                look_at = now + LOOK_MS
                if not self._look(now):
                    return self.result
            held = min(self._held.values(), key=lambda redrive: redrive.next_at, default=None)
            if held is None or held.next_at > now:
                self.ports.clock.sleep_until(look_at if held is None else min(held.next_at, look_at))
            else:
                self._step(held)
        for held in self._held.values():
            self.ports.redrives.change(held.record, replace(held.record, lease_until=0, version=held.record.version + 1))
        return self.result

    def _look(self, now: int) -> bool:
        """Lease redrives without a lease. Returns whether any redrive runs: if its invocation dies, this one takes over."""
        running = self.ports.redrives.running()
        for record in running:
            key = (record.owner, record.id)
            if key not in self._held and record.lease_until <= now:
                mine = replace(record, lease_until=now + model.LEASE_MS, version=record.version + 1)
                if self.ports.redrives.change(record, mine):
                    self._held[key] = _Held(mine, now, cursor=mine.after)
                    self.result.redrives += 1
        return bool(running)

    def _step(self, held: _Held) -> None:
        try:
            self._chunk(held)
        except Unavailable as error:
            self.result.refused += 1
            log.warning("a redrive is interrupted until its lease is over", extra=_context(held.record) | {"error": str(error)})
            # The record may be stored as before or as after the change. A next change could fail on it, so give up: the lease runs out.
            del self._held[(held.record.owner, held.record.id)]

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
            del self._held[(record.owner, record.id)]
            self._add(record, redriven, skipped)
        elif done:
            del self._held[(record.owner, record.id)]
        else:
            held.record = changed
            held.next_at = max(held.next_at, now - LOOK_MS) + len(chosen) * 1000 // record.rate

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
        changes = [Change(job, model.again(job, now, self.ports.rules.shards)) for job in wanted]
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


def _context(record: Redrive) -> dict[str, object]:
    return {"redrive_id": record.id, "user_id": record.owner, "redriven": record.redriven}


def redrive(ports: Ports) -> RedriveResult:
    """Work for WORK_MS or until no redrive runs. Raises Unavailable if the table refuses: other invocations continue after the leases."""
    return RedriveWorker(ports).run()
