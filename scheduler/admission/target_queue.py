"""Target queues: the jobs that wait for a limited target, by user. Release steps choose the ones that may start (`pipeline/release.py`).

A waiting job lies in a slot of its target and user, and nothing else records that it waits: a job that is cancelled, edited or ended has
left the queue. The users of a queue take turns by their weights: each job of a user gets a tag on a virtual clock, 1 / weight after that
of the user's job before it, but no earlier than the clock. The job with the lowest tag is next, and sets the clock to it.

The users of a queue are noted when they join. The index shows a job only after a while, so a user without jobs is dropped minutes later.
"""

import heapq
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from scheduler.admission import limits
from scheduler.model.errors import Unavailable
from scheduler.model.limiter import Limiter, is_key
from scheduler.model.target_queue import QUEUE_PARTS, QueueUser, Released
from scheduler.model.target_usage import Place, TargetUsage
from scheduler.model.work import WorkItem, WorkKind
from scheduler.sharing.fair_queue import DEFAULT_WEIGHT, LEAST_WEIGHT
from scheduler.storage.ports import Ports

LINGER_MS = 300_000  # a user without waiting jobs is dropped this long after the last one joined
STEP_MS, IDLE_MS = 1_000, 2_000  # between two release steps while jobs wait: the first while a start is due sooner
LONGEST_MS = 60_000  # ... and while none waits
AHEAD_MS = 1_500  # jobs are released for the ends of this time: the next step's jobs take a while to reach their executors
IN_TRANSIT_MS = 2_500  # a released job that has taken no slot after this time does not come any more
JOINED = "joined"  # the part of a request for a step of a key: jobs have joined its queue
MOST = 500  # jobs released at once

T = TypeVar("T")

log = logging.getLogger(__name__)


def fair_order(
    users: Mapping[str, QueueUser], clock: float, weights: Mapping[str, float], take: Callable[[str], T | None]
) -> Iterator[tuple[T, str, float, float]]:
    """Yield the jobs in the order of the users' turns, each with its user, its tag and the tag of the user's next job.

    `take` returns the next job of a user; None: no more wait.
    """
    heads = [(max(user.finish, clock), user.joined_at, owner) for owner, user in users.items()]
    heapq.heapify(heads)
    while heads:
        tag, joined_at, owner = heapq.heappop(heads)
        if (job := take(owner)) is not None:
            finish = tag + 1 / max(weights.get(owner, DEFAULT_WEIGHT), LEAST_WEIGHT)
            yield job, owner, tag, finish
            heapq.heappush(heads, (finish, joined_at, owner))


def starts_left(usage: TargetUsage, limit: Limiter, now: int) -> int:
    """The number of starts that the rate allows up to `NEAR_MS` ahead."""
    if limit.rate is None:
        return MOST
    ahead_ms = now + limits.NEAR_MS - limits.next_start(usage, limit, now)
    return 0 if ahead_ms < 0 else 1 + int(ahead_ms * limit.rate / 1_000)


def slots_left(items: Sequence[TargetUsage], limit: Limiter, lost: Collection[object], released: Sequence[Released], now: int) -> int:
    """The number of jobs to release for the concurrency slots: for free ones, and for slots that become free until the next step.

    Released jobs that have not taken their slots yet are on their way. The estimate of the ends grows with the slots taken lately.
    """
    if limit.concurrency is None:
        return MOST
    live = sum(1 for usage in items for place in usage.places if place.until > now and place not in lost)
    recent = [each for each in released if each.at > now - IN_TRANSIT_MS]
    taken = sum(usage.taken for usage in items) - recent[0].taken if recent else 0
    in_transit = max(sum(each.jobs for each in recent) - taken, 0)
    slot_time_ms = max(limits.slot_time_ms(items[1:] or items, now), 1)
    ends = limit.concurrency * AHEAD_MS // slot_time_ms
    lately = taken * AHEAD_MS // max(now - recent[0].at, 2 * STEP_MS) if recent else 0
    # Their executors look for free slots only now and then, and durations differ. A key with quick jobs begins with a few for each slot.
    is_quick = is_key(limit.name) and 2 * slot_time_ms < limits.QUICK_MS and (taken or not released)
    first = 2 * limit.concurrency if is_quick else 0
    ends = 0 if is_key(limit.name) and slot_time_ms >= limits.QUICK_MS else min(ends, lately + lately // 4 + first)  # ends request steps
    return max(limit.concurrency - live, 0) + ends - in_transit


def wants_ends(usage: TargetUsage, ended: Sequence[Place], now: int) -> bool:
    """Whether the end of the jobs with these slots requests a release step.

    Where jobs end quickly, the steps release jobs ahead of the ends. After a slot that was kept for long the next step may be far away.
    """
    is_slow = usage.took_ms >= limits.QUICK_MS or any(now - place.since >= limits.QUICK_MS for place in ended)
    return usage.queued_until > now and is_slow


def wake_idle(ports: Ports) -> None:
    """Request a release step of each queue in which no job may have waited: the lane of its jobs was paused. Others have a step soon.

    Raises Unavailable.
    """
    for part in (None, *range(QUEUE_PARTS)):
        queues = ports.targets.queues(part)
        wake_queues({queue.target for queue, users in queues if users and not any(user.waiting for user in users)}, ports)


def wake_queues(targets: Collection[str], ports: Ports, part: str = "", *, delay_ms: int = 0) -> None:
    """Request a release step of these targets now. Never raises: the next regular step comes within a minute.

    `part` JOINED: jobs have joined the queues, so a step that comes soon anyway is as good.
    """
    if not targets:
        return
    try:
        refused = len(ports.work.send([WorkItem(WorkKind.RELEASE, target, part) for target in sorted(targets)], delay_ms=delay_ms))
    except Unavailable:
        refused = len(targets)
    if refused:
        log.info("could not request release steps", extra={"targets": sorted(targets)})
