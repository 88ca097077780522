"""The requests of an owner on operations: start, estimate, read, list, abort. `step` processes them."""

import logging
import zlib
from dataclasses import dataclass, replace

from scheduler.model import ids, operation
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.operation import Action, Filter, Operation, State
from scheduler.model.paging import read_position, written_position
from scheduler.model.work import WorkItem, WorkKind
from scheduler.operations.work import work_of
from scheduler.storage.ports import Operations, Ports

TRIES = 10  # the working invocation changes the record several times a second
ESTIMATE_MS = 10_000  # how long an estimate reads

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The number of matches at present. `complete` False: only the first part was read, since one request cannot read all."""

    action: Action
    filter: Filter
    matched: int
    complete: bool


def start(made: Operation, ports: Ports) -> Operation:
    """Start an operation and return it. Raises Invalid; Conflict if too many of its owner run; Unavailable."""
    made.filter.check()
    if not any(_placed(made, ports) for _ in range(TRIES)):
        raise Unavailable("too many operations start at the same moment; try again")
    if ports.work.send([WorkItem(WorkKind.OPERATION, made.owner, made.id)], delay_ms=operation.SETTLED_MS):
        log.warning(
            "the work queue refuses; the operation waits for the next minute", extra={"operation_id": made.id, "user_id": made.owner}
        )
    return made


def _placed(made: Operation, ports: Ports) -> bool:
    """Store the operation in a free place of its owner. False: another one took it just now. Raises Conflict if none is free.

    A place is free if no running operation has it. The places are read first: the operation that took one is stored together with it, so
    if it does not run after that, it has ended.
    """
    places = ports.operations.places(made.owner)
    running = check_room(made.owner, operations=ports.operations)
    free = [place for place in range(operation.MAX_RUNNING) if places.get(place) not in running]
    place = free[zlib.crc32(made.id.encode()) % len(free)]
    return ports.operations.add(made, place, places.get(place))


def check_room(owner: str, *, operations: Operations) -> list[str]:
    """Return the ids of the owner's running operations. Raises Conflict if no other one may start."""
    running = [each.id for each in _running(owner, operations)]
    if len(running) >= operation.MAX_RUNNING:
        raise Conflict(f"{operation.MAX_RUNNING} operations are already running: {', '.join(running)}: abort one, or wait")
    return running


def estimate(planned: Operation, ports: Ports) -> Estimate:
    """Count what the operation would change if it started now, and change nothing. Raises Invalid, Unavailable."""
    planned.filter.check()
    work, until = work_of(planned, ports), ports.clock.now() + ESTIMATE_MS
    matched, after, begun = 0, None, False
    while (after is not None or not begun) and ports.clock.now() < until:
        page, after = work.read(planned, after)
        begun = True
        matched += sum(1 for candidate in page if candidate.chosen is not None)
    if planned.limit is not None and matched >= planned.limit:
        return Estimate(planned.action, planned.filter, planned.limit, complete=True)
    return Estimate(planned.action, planned.filter, matched, complete=after is None)


def find(owner: str, id: str, *, operations: Operations) -> Operation:
    """Return the operation. Raises NotFound, also for a text that is no id."""
    found = operations.get(owner, id) if ids.is_job_id(id) else None
    if found is None:
        raise NotFound("there is no such operation")
    return found


def listing(owner: str, *, limit: int, cursor: str | None, operations: Operations) -> tuple[list[Operation], str | None]:
    """Return a page of the owner's operations and the cursor of the next one: the running ones, then the ended ones, newest first.

    Raises Invalid for a bad cursor.
    """
    position = read_position(cursor)
    running = _running(owner, operations) if position is None else []
    ended, following = operations.ended(owner, after=position, limit=limit)
    known = {each.id for each in ended}  # one that has ended between the two reads is in both
    running = [each for each in reversed(running) if each.id not in known]
    return running + ended, None if following is None else written_position(following)


def abort(owner: str, id: str, ports: Ports) -> Operation:
    """Abort the operation and return it; no further chunk of it begins. Idempotent.

    Raises NotFound; Conflict if it has ended; Unavailable.
    """
    for _ in range(TRIES):
        before = find(owner, id, operations=ports.operations)
        if before.state is State.DONE:
            raise Conflict("the operation has already ended")
        if before.state is State.ABORTED:
            return before
        after = replace(before, state=State.ABORTED, ended_at=ports.clock.now(), version=before.version + 1)
        if ports.operations.change(before, after):
            return after
    raise Unavailable("the operation keeps changing; try again")


def _running(owner: str, operations: Operations) -> list[Operation]:
    return [each for each in operations.running() if each.owner == owner]
