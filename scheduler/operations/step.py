"""Carries out operations, each at its rate, step by step. No step waits: it works for at most `STEP_MS`, and its message brings the next.

A step leases its operation and processes it in chunks: it reads matches and stores their ids, then changes them and stores their counts.
If it dies in between, the next step changes and counts just these. The lease only avoids double work: each change is conditional on the
job or task that was read, for any number of workers.

Steps of operations share their function with the minutes. So at most `Rules.operating` work at once, whatever their number, and the more
operations run, the longer the pause between two steps of one and the more it then has to do.
"""

import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from scheduler.model import operation
from scheduler.model.operation import Candidate, Counts, Operation, State
from scheduler.model.work import WorkDelivery
from scheduler.operations.work import Work, work_of
from scheduler.pipeline.worker import SECOND_MS, pause
from scheduler.storage.ports import Ports

STEP_MS = 2_000  # a step works for at most this time and one chunk
PERIOD_MS = 1_000  # a step does the work of this time, if its rate is ...
LEAST = 5  # ... at least as many jobs; else the work of a longer time
EACH_MS = 100  # the pause of each running operation before its next step: together they begin ten steps a second
LATE_MS = 2_000  # an operation makes up for at most this much of a delay: the queue counts in seconds
HIDE_MS = 5_000  # how often a step renews the visibility of its message
CHOOSE_MS = 1_000  # how long a chunk searches for candidates before it stores its position
TRIES = 6  # how often the table may refuse to change jobs or tasks, while it takes other changes, until they count as failed
AGAIN_MS = 1_000  # the pause before they are tried again; it doubles with each try
LONGEST_MS = 16_000

log = logging.getLogger(__name__)


@dataclass(slots=True)
class StepResult:
    """The counts of one step. `next_at`: when the next step is due (ms); None: the message is no longer needed."""

    done: int = 0
    skipped: int = 0
    failed: int = 0
    conflicts: int = 0
    next_at: int | None = None


@dataclass(slots=True)
class _Current:
    """An operation under our lease. `ahead`: read ahead. `cursor`: where reading continues; once it has `begun`, None means the end."""

    record: Operation
    work: Work
    due_at: int  # when the next job or task is due by the rate
    quota: int  # how many the step may change
    until: int  # when the step ends
    pause_ms: int  # at least, before the next step
    ahead: list[Candidate] = field(default_factory=list)
    cursor: str | None = None
    begun: bool = False
    ended: bool = False  # the step has; so has the operation, if it has no `next_at`


@dataclass(slots=True)
class OperationStep:
    """One step of one operation: `run`, then `give_up` if it raised an error. `message_id`: of the message that brought it."""

    ports: Ports
    hide: Callable[[], None]
    message_id: str = ""
    result: StepResult = field(default_factory=StepResult)

    def run(self, owner: str, id: str) -> StepResult:
        now, running = self.ports.clock.now(), self.ports.operations.running()
        record = next((each for each in running if (each.owner, each.id) == (owner, id)), None)
        if record is None:
            return self.result  # it has ended
        busy_until = record.lease_until + SECOND_MS if record.lease_until > now else record.next_at
        if busy_until > now:  # a message that does not drive it is a copy, which would come again and again
            self.result.next_at = busy_until if record.message_id in ("", self.message_id) else None
            return self.result
        pause_ms = EACH_MS * len(running) if len(running) > 1 else 0
        wait_until = now + max(zlib.crc32(f"{id}#{record.version}".encode()) % (2 * pause_ms + 1), SECOND_MS)  # not all at once
        if self._others(running, record, now) >= self.ports.rules.operating:
            self.result.next_at = self._leave(record, wait_until, record.lease_until)
            return self.result
        mine = _leased(record, self.message_id, now)
        self.result.next_at = wait_until
        if not self.ports.operations.change(record, mine):
            return self.result
        if len(running) > 1 and self._others(self.ports.operations.running(), mine, now) >= self.ports.rules.operating:
            self._leave(mine, wait_until, record.lease_until)  # another one began at the same moment
            return self.result
        self._process(_current(mine, self.ports, now, pause_ms))
        return self.result

    @staticmethod
    def _others(running: list[Operation], record: Operation, now: int) -> int:
        """The number of other operations at work."""
        return sum(1 for each in running if each.lease_until > now and (each.owner, each.id) != (record.owner, record.id))

    def _leave(self, record: Operation, next_at: int, lease_until: int) -> int:
        """Let the operation wait until `next_at`, and return that. The tick must not think that its message is lost."""
        after = replace(record, next_at=next_at, lease_until=lease_until, message_id=self.message_id, version=record.version + 1)
        self.ports.operations.change(record, after)
        return next_at

    def give_up(self, owner: str, id: str, next_at: int) -> None:
        """End the lease of this step, which failed, so that it stops no other operation."""
        try:
            stored, now = self.ports.operations.get(owner, id), self.ports.clock.now()
            if stored is not None and stored.state is State.RUNNING and stored.lease_until > now and stored.message_id == self.message_id:
                self.ports.operations.change(stored, replace(stored, lease_until=now, next_at=next_at, version=stored.version + 1))
        except Exception as error:
            log.warning("could not end the lease of an operation", extra={"operation_id": id, "error": repr(error)})

    def _process(self, current: _Current) -> None:
        hide_at = self.ports.clock.now() + HIDE_MS
        while not current.ended:
            if (now := self.ports.clock.now()) >= hide_at:
                hide_at = now + HIDE_MS
                self.hide()
            self._chunk(current)

    def _chunk(self, current: _Current) -> None:
        """Carry out one chunk, and store the progress: with the last one of the step also when the next step begins."""
        record = current.record
        if record.pending:
            chosen, after, through = [Candidate("", current.work.key(record.owner, id)) for id in record.pending], record.after, False
        else:
            chosen, after, through = self._choose(current)
            current.due_at += len(chosen) * 1000 // record.rate
            if chosen and not self._announce(current, chosen, after):
                return
            record = replace(record, announced_at=current.record.announced_at)  # without `pending`: no earlier try has begun with them
        counts = current.work.apply(record, chosen) if chosen else Counts()
        again_ms, changed = self._try_again(current, counts)
        current.quota -= len(chosen)
        now = self.ports.clock.now()
        changed = replace(changed, after=after, lease_until=now + operation.LEASE_MS)
        over = through and not changed.pending
        if over or (record.limit is not None and changed.done >= record.limit):
            changed = replace(changed, state=State.DONE, ended_at=now, pending=(), lease_until=0)
            next_at, current.ended = None, True
        elif current.ended or changed.pending or current.quota <= 0 or now >= current.until:
            next_at, current.ended = max(current.due_at, now + max(again_ms, current.pause_ms)), True
            changed = replace(changed, lease_until=0, due_at=current.due_at, next_at=next_at)
        else:
            next_at = None
        self._store(current, changed, next_at)

    def _announce(self, current: _Current, chosen: Sequence[Candidate], after: str | None) -> bool:
        """Store what is about to be changed. False: the operation was aborted, or another worker has it."""
        record = current.record
        pending, now = tuple(each.chosen.id for each in chosen), self.ports.clock.now()
        announced = replace(record, pending=pending, announced_at=now, tries=0, after=after, version=record.version + 1)
        self._store(current, announced, None)
        return current.record is announced

    def _try_again(self, current: _Current, counts: Counts) -> tuple[int, Operation]:
        """Count the chunk. Returns the pause before the refused jobs or tasks are tried again, and the record."""
        record, refused, failed = current.record, counts.refused, 0
        tries = (record.tries + 1 if set(refused) == set(record.pending) else 1) if refused else 0
        if tries >= TRIES and current.work.takes_changes(current.work.key(record.owner, refused[0])):
            of = {"operation_id": record.id, "user_id": record.owner, "refused": refused}
            log.error("the table keeps refusing to change jobs or tasks of an operation; they count as failed", extra=of)
            refused, tries, failed = (), 0, len(refused)
        self._count(counts, failed)
        counted = _counted(record, counts, failed)
        pause_ms = min(AGAIN_MS << min(tries - 1, 10), LONGEST_MS) if refused else 0
        return pause_ms, replace(counted, pending=refused, tries=tries)

    def _count(self, counts: Counts, failed: int) -> None:
        self.result.done += counts.done
        self.result.skipped += counts.skipped
        self.result.failed += counts.failed + failed
        self.result.conflicts += counts.conflicts

    def _store(self, current: _Current, changed: Operation, next_at: int | None) -> None:
        if self.ports.operations.change(current.record, changed):
            current.record, self.result.next_at = changed, next_at
            return
        # It was aborted, or another worker has it, which counts itself; or an earlier try of this write was applied.
        current.ended = True
        stored = self.ports.operations.get(changed.owner, changed.id)
        if stored is not None and stored.state is State.ABORTED:
            self.ports.operations.change(stored, _counted(stored, _between(current.record, changed)))
        running = stored is not None and stored.state is State.RUNNING
        self.result.next_at = self.ports.clock.now() + SECOND_MS if running else None

    def _choose(self, current: _Current) -> tuple[list[Candidate], str | None, bool]:
        """Return the choices of the next chunk, the position of the last candidate checked, and whether it is the last of all."""
        chosen, after, until = list[Candidate](), current.record.after, self.ports.clock.now() + CHOOSE_MS
        size = min(current.record.chunk(current.work.at_most), max(current.quota, 1))
        while len(chosen) < size:
            if not current.ahead:
                if (current.begun and current.cursor is None) or self.ports.clock.now() >= until:
                    break
                current.ahead, current.cursor = current.work.read(current.record, current.cursor)
                current.begun, after = True, after if current.ahead else current.cursor or after
                continue
            checked = 0
            for candidate in current.ahead:
                if len(chosen) == size:
                    break
                checked, after = checked + 1, candidate.position
                if candidate.chosen is not None:
                    chosen.append(candidate)
            current.ahead = current.ahead[checked:]
        return chosen, after, current.begun and not current.ahead and current.cursor is None


def _leased(record: Operation, message_id: str, now: int) -> Operation:
    return replace(record, lease_until=now + operation.LEASE_MS, message_id=message_id, version=record.version + 1)


def _current(mine: Operation, ports: Ports, now: int, pause_ms: int) -> _Current:
    """The operation, leased, at the beginning of a step."""
    period_ms = max(PERIOD_MS, LEAST * 1000 // mine.rate, pause_ms)
    due_at = max(mine.due_at, now - LATE_MS - period_ms)
    quota = max(mine.rate * period_ms // 1000, 1)
    return _Current(mine, work_of(mine, ports), due_at, quota, now + STEP_MS, pause_ms, cursor=mine.after)


def _between(before: Operation, after: Operation) -> Counts:
    """The counts of `after` that `before` has not."""
    failed, conflicts = after.failed - before.failed, after.conflicts - before.conflicts
    return Counts(after.done - before.done, after.skipped - before.skipped, failed, conflicts=conflicts)


def _counted(record: Operation, counts: Counts, failed: int = 0) -> Operation:
    return replace(
        record,
        done=record.done + counts.done,
        skipped=record.skipped + counts.skipped,
        failed=record.failed + counts.failed + failed,
        conflicts=record.conflicts + counts.conflicts,
        version=record.version + 1,
    )


def step(delivery: WorkDelivery, ports: Ports, hide: Callable[[], None]) -> int | None:
    """Carry out one step of the operation that the message names; return when the next one is due (ms), None: there is none.

    Raises Unavailable if a table refuses everything: the operation then waits.
    """
    item = delivery.item
    made = OperationStep(ports, hide, delivery.message_id)
    try:
        result = made.run(item.of, item.part)
    except Exception as error:
        made.give_up(item.of, item.part, ports.clock.now() + pause(error, delivery))
        raise
    log.info("operation", extra={"operation_id": item.part, "user_id": item.of} | asdict(result))
    return result.next_at
