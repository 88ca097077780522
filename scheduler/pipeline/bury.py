"""Settle the messages of a dead-letter queue, so that their jobs fail like any other job."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.model import settlement
from scheduler.model.errors import Unavailable
from scheduler.model.job import Delivery, Job
from scheduler.model.lifecycle import is_open
from scheduler.pipeline.follow_up import wake
from scheduler.storage.ports import Change, Jobs, Ports, Written

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Burial:
    """The counts of one batch from a dead-letter queue."""

    failed: int = 0
    kept: int = 0  # jobs still scheduled: each is picked up from its slot
    dropped: int = 0  # messages that are duplicates, or whose jobs are finished
    returned: list[str] = field(default_factory=list)  # message ids to leave in the queue: the table refused


def bury(deliveries: Sequence[Delivery], ports: Ports) -> Burial:
    """Fail a job only if it is running under this very message; a scheduled job keeps its slot, up to three burials.

    Jobs that waited for a failed one are enqueued.
    """
    done, now, failed = Burial(), ports.clock.now(), list[Job]()
    stored = ports.jobs.get_many([item.message.key for item in deliveries])
    for item in deliveries:
        job = stored.get(item.message.key)
        after = job and settlement.bury(job, item.message_id, item.message.fence, now, retention=ports.rules.retention)
        if job is None or after is None:
            done.dropped += 1
            continue
        held = _change(job, after, ports.jobs)
        if held is Written.REFUSED:
            done.returned.append(item.message_id)
        elif held is Written.NO:
            done.dropped += 1
        elif is_open(after):
            done.kept += 1
        else:
            done.failed += 1
            failed.append(after)
            log.error("buried", extra=after.log_context() | {"reason": after.reason})
    wake(failed, ports, now=ports.clock.now())
    return done


def _change(before: Job, after: Job, jobs: Jobs) -> Written:
    """Apply one change. A refusal concerns this message only: messages settled before it are not counted again."""
    try:
        (held,) = jobs.change([Change(before, after)])
    except Unavailable:
        return Written.REFUSED
    return held
