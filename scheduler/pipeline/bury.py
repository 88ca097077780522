"""Settle the messages of a dead-letter queue: take their jobs back that run under them, and report the others.

A message gets there if executors ended early, or if a table refused for hours. Neither is a failure of its job.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.model import settlement
from scheduler.model.errors import Unavailable
from scheduler.model.job import Delivery, Job
from scheduler.model.lifecycle import is_open, waits
from scheduler.pipeline.delivery import LEASE_MS
from scheduler.pipeline.follow_up import send_on
from scheduler.storage.ports import Change, Jobs, Ports, Written

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Burial:
    """The counts of one batch from a dead-letter queue."""

    failed: int = 0  # jobs that have ended: they crashed too often, or their cancel was requested
    taken_back: int = 0  # jobs whose executor ended early: each is in the retry lane
    unchanged: int = 0  # jobs still scheduled, or unreadable: each is picked up from its slot
    dropped: int = 0  # messages that are duplicates, or whose jobs are finished
    returned: list[str] = field(default_factory=list)  # message ids to leave in the queue: the table refused, or their lease may last

    @property
    def buried(self) -> int:
        """The number of jobs whose message reached the dead-letter queue."""
        return self.failed + self.taken_back + self.unchanged


def bury(deliveries: Sequence[Delivery], ports: Ports) -> Burial:
    """Take a job back if it is running under this very message, and enqueue it; a scheduled job keeps its slot.

    A job that has crashed too often fails instead; jobs that waited for it are enqueued.
    """
    done, now, rules = Burial(), ports.clock.now(), ports.rules
    singles = [single for item in deliveries for single in item.singles()]
    stored = ports.jobs.get_many([item.message.key for item in singles])
    for item in singles:
        job = stored.get(item.message.key)
        if item.message.key in stored.unreadable:
            done.unchanged += 1
            continue
        if job is not None and _is_leased(job, item, now):
            done.returned.append(item.message_id)
            continue
        after = job and settlement.bury(job, item.message_id, item.message.fence, now, rules)
        if job is None or after is None:
            done.dropped += 1
            continue
        written = _change(job, after, ports.jobs)
        if written is Written.REFUSED:
            done.returned.append(item.message_id)
        elif written is Written.NO:
            done.dropped += 1
        else:
            log.error("buried", extra=after.log_context() | {"reason": after.reason, "open": is_open(after), "burials": after.buried})
            if job.claim is None:
                done.unchanged += 1
                continue
            done.taken_back += is_open(after)
            done.failed += not is_open(after)
            send_on(after, ports, now=ports.clock.now())
    done.returned = list(dict.fromkeys(done.returned))  # several jobs of one pack
    return done


def _is_leased(job: Job, item: Delivery, now: int) -> bool:
    """Return whether an executor claimed the job under this message recently, and may still have its lease."""
    claim = job.claim
    return claim is not None and claim.message_id == item.message_id and not waits(job) and now - claim.at < LEASE_MS


def _change(before: Job, after: Job, jobs: Jobs) -> Written:
    """Apply one change. A refusal concerns this message only: messages settled before it are not counted again."""
    try:
        (written,) = jobs.change([Change(before, after)])
    except Unavailable:
        return Written.REFUSED
    return written
