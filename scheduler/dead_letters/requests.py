"""The operations of an owner on redrives: start, read, abort. `redrive` processes them."""

import logging
from dataclasses import replace

from scheduler.dead_letters import model
from scheduler.dead_letters.groups import check
from scheduler.dead_letters.model import Filter, Redrive, State
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.ports import Ports, Redrives

TRIES = 10  # the working invocation changes the record several times a second

log = logging.getLogger(__name__)


def start(owner: str, filter: Filter, ports: Ports, *, rate: int, limit: int | None, random: int) -> Redrive:
    """Start a redrive of the dead letters up to now and return it. Raises Invalid; Conflict if too many run; Unavailable."""
    check(filter)
    running = [record for record in ports.redrives.running() if record.owner == owner]
    if len(running) >= model.MAX_RUNNING:
        raise Conflict(f"{model.MAX_RUNNING} redrives are running already: abort one, or wait")
    made = model.new(owner, ports.clock.now(), random, filter, rate=rate, limit=limit)
    ports.redrives.add(made)
    if ports.work.send([WorkItem(WorkKind.REDRIVE, owner, made.id)]):
        log.warning("the work queue refuses; the redrive waits for the next minute", extra={"redrive_id": made.id, "user_id": owner})
    return made


def find(owner: str, id: str, *, redrives: Redrives) -> Redrive:
    """Return the redrive. Raises NotFound."""
    found = redrives.get(owner, id)
    if found is None:
        raise NotFound("there is no such redrive")
    return found


def abort(owner: str, id: str, ports: Ports) -> Redrive:
    """Abort the redrive and return it; no further chunk of it begins. Idempotent. Raises NotFound; Conflict if it is done; Unavailable."""
    for _ in range(TRIES):
        before = find(owner, id, redrives=ports.redrives)
        if before.state is State.DONE:
            raise Conflict("it is done")
        if before.state is State.ABORTED:
            return before
        after = replace(before, state=State.ABORTED, ended_at=ports.clock.now(), version=before.version + 1)
        if ports.redrives.change(before, after):
            return after
    raise Unavailable("the redrive keeps changing; try again")
