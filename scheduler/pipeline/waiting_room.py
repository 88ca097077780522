"""The waiting rooms: slots that are always open, a set for each lane, and one for each disabled user.

A job that is due while its lane is paused, or its owner disabled, waits there.

A service that would start or publish such a job moves it there and forgets it: an executor that has its message, a dispatcher of the
overflow that has its entry. Nothing polls the room until the lane is resumed; then `tick.wake_rooms` sends the work of its units, and a
dispatcher of the overflow's kind publishes the jobs in fair order. A mover reads the lane's state just before it moves jobs, and again
afterwards: if the lane was resumed in between, the dispatcher may have gone, and the mover starts or publishes the jobs itself.

The same applies to the room of a user, which the enable or the deletion wakes. An executor moves the jobs there when the gate of owners
tells it to. It marks the unit of the slot as wanted before, so a room without jobs has no units, and one that may have jobs is known.
"""

from collections.abc import Mapping

from scheduler.model import lifecycle, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import JobKey
from scheduler.storage.ports import Change, Ports, Written


def enter(fences: Mapping[JobKey, int], ports: Ports) -> set[JobKey]:
    """Move jobs, each named with its fence, into the waiting rooms of their lanes.

    Returns the keys of the jobs that wait there now, or need no message under this fence any more. The others are claimed or unreadable,
    have just changed, or the table refused the write. Never raises.
    """
    try:
        found = ports.jobs.outlines(list(fences))
        here = {key: job for key, job in found.items() if lifecycle.is_open(job) and job.fence == fences[key]}
        waiting = [job for job in here.values() if job.claim is None]
        places = {job.key: slots.waiting(job.lane, job.id, ports.rules.shards) for job in waiting}
        moves = [Change.of_slot(job, lifecycle.move(job, slot=places[job.key])) for job in waiting if job.slot != places[job.key]]
        written = ports.jobs.change(moves) if moves else []
    except Unavailable:
        return set()
    stay = {move.before.key for move, ok in zip(moves, written, strict=True) if ok is not Written.YES}
    stay |= {key for key, job in here.items() if job.claim is not None} | found.unreadable.keys()
    return set(fences) - stay
