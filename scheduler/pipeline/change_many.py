"""Write many changes of jobs, and repeat those that the table refuses."""

import logging
from collections.abc import Sequence

from scheduler.model.job import Job
from scheduler.storage.ports import Change, Ports, Written

TRIES = 4

log = logging.getLogger(__name__)


def change_many(changes: Sequence[Change], ports: Ports) -> tuple[list[Job], list[Job]]:
    """Write the changes. Returns the changed jobs, and those that the table keeps refusing.

    A job that was changed in between is in neither.
    """
    done, left = list[Job](), list(changes)
    for attempt in range(TRIES):
        held = ports.jobs.change(left) if left else []
        done += [change.after for change, ok in zip(left, held, strict=True) if ok is Written.YES]
        left = [change for change, ok in zip(left, held, strict=True) if ok is Written.REFUSED]
        if not left:
            break
        ports.clock.sleep_until(ports.clock.now() + (200 << attempt))
    if left:
        log.warning("could not change jobs: the table refuses", extra={"refused": len(left)})
    return done, [change.before for change in left]
