"""Carries out operations, each at its rate, step by step.

A step leases its operation and processes it in small chunks: it reads and changes the matches, and stores its progress. The
operation's message in the work queue triggers the next step, also after a worker has ended early. The lease only avoids double work:
each change is conditional on the job or task that was read, for any number of workers.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from scheduler.model import operation
from scheduler.model.operation import Candidate, Counts, Operation, State
from scheduler.model.work import WorkItem
from scheduler.operations.work import Work, work_of
from scheduler.pipeline.worker import SECOND_MS
from scheduler.storage.ports import Ports

WORK_MS = 45_000  # a step ends after this time, and the next one goes on
SETTLED_MS = 2_000  # after its start: by then, the indexes have all items that were written before
LATE_MS = 1_000  # an operation makes up for at most this much of a delay
HIDE_MS = 5_000  # how often a step renews the visibility of its message
CHOOSE_MS = 1_000  # how long a chunk searches for candidates before it stores its position

log = logging.getLogger(__name__)


@dataclass(slots=True)
class StepResult:
    """The counts of one step. `next_at`: when the next step is due (ms); None: the operation has ended."""

    done: int = 0
    skipped: int = 0
    failed: int = 0
    next_at: int | None = None


@dataclass(slots=True)
class _Held:
    """An operation under our lease. `ahead`: read ahead. `cursor`: where reading continues; once it has `begun`, None means the end."""

    record: Operation
    work: Work
    next_at: int  # when its next chunk is due
    ahead: list[Candidate] = field(default_factory=list)
    cursor: str | None = None
    begun: bool = False
    ended: bool = False  # it has ended, another worker has it, or it was aborted


@dataclass(slots=True)
class OperationStep:
    """One step of one operation. `run` is the only entry point."""

    ports: Ports
    hide: Callable[[], None]
    result: StepResult = field(default_factory=StepResult)

    def run(self, owner: str, id: str) -> StepResult:
        now, record = self.ports.clock.now(), self.ports.operations.get(owner, id)
        if record is None or record.state is not State.RUNNING:
            return self.result
        self.result.next_at = record.lease_until + SECOND_MS
        if record.lease_until > now:
            return self.result  # another worker has it
        mine = replace(record, lease_until=now + operation.LEASE_MS, version=record.version + 1)
        if not self.ports.operations.change(record, mine):
            self.result.next_at = now + operation.LEASE_MS
            return self.result
        held = _Held(mine, work_of(mine, self.ports), max(now, mine.started_at + SETTLED_MS), cursor=mine.after)
        self._process(held, until=now + WORK_MS)
        if held.ended:
            self.result.next_at = None
        else:
            self.ports.operations.change(held.record, replace(held.record, lease_until=0, version=held.record.version + 1))
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
        counts = held.work.apply(record, chosen) if chosen else Counts()
        self.result.done += counts.done
        self.result.skipped += counts.skipped
        self.result.failed += counts.failed
        counted = _counted(record, counts)
        done = through or (record.limit is not None and counted.done >= record.limit)
        changed = replace(counted, after=after, lease_until=self.ports.clock.now() + operation.LEASE_MS)
        if done:
            changed = replace(changed, state=State.DONE, ended_at=self.ports.clock.now())
        if not self.ports.operations.change(record, changed):
            held.ended = True
            self._add(record, counts)
            return
        held.record, held.ended = changed, done
        held.next_at = max(held.next_at, now - LATE_MS) + len(chosen) * 1000 // record.rate

    def _choose(self, held: _Held) -> tuple[list[Any], str | None, bool]:
        """Return the choices of the next chunk, the position of the last candidate checked, and whether it is the last of all."""
        chosen, after, until = list[Any](), held.record.after, self.ports.clock.now() + CHOOSE_MS
        size = held.record.chunk(held.work.at_most)
        while len(chosen) < size:
            if not held.ahead:
                if (held.begun and held.cursor is None) or self.ports.clock.now() >= until:
                    break
                held.ahead, held.cursor = held.work.read(held.record, held.cursor)
                held.begun, after = True, after if held.ahead else held.cursor or after
                continue
            looked = 0
            for candidate in held.ahead:
                if len(chosen) == size:
                    break
                looked, after = looked + 1, candidate.position
                if candidate.chosen is not None:
                    chosen.append(candidate.chosen)
            held.ahead = held.ahead[looked:]
        return chosen, after, held.begun and not held.ahead and held.cursor is None

    def _add(self, record: Operation, counts: Counts) -> None:
        """Add the counts of a chunk that was in progress when the operation was aborted. An invocation with a newer lease adds its own."""
        stored = self.ports.operations.get(record.owner, record.id)
        if stored is not None and stored.state is State.ABORTED:
            self.ports.operations.change(stored, _counted(stored, counts))


def _counted(record: Operation, counts: Counts) -> Operation:
    return replace(
        record,
        done=record.done + counts.done,
        skipped=record.skipped + counts.skipped,
        failed=record.failed + counts.failed,
        version=record.version + 1,
    )


def step(item: WorkItem, ports: Ports, hide: Callable[[], None]) -> int | None:
    """Carry out one step of the operation that the item names; return when the next one is due (ms), None: it has ended.

    Raises Unavailable if a table refuses: the operation continues once the lease of this step has run out.
    """
    result = OperationStep(ports, hide).run(item.of, item.part)
    log.info("operation", extra={"operation_id": item.part, "user_id": item.of} | asdict(result))
    return result.next_at
