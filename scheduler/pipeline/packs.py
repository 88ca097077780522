"""Packs: the number of jobs of a crowd that travel in one message, and how long ahead. Pure.

A crowd is the set of jobs that fall due in one lane within `SPAN_MS`. Lambda takes ten messages per batch, and five batches at once from a
quiet queue (`Rules.ready_executors`). So a thousand messages for one instant would need a hundred executors, and most of them would be too
late. In packs, the executors that can exist at that moment have the whole crowd before its instant.
"""

from collections.abc import Callable, Iterable

from scheduler.model.job import Lane, Message, Packed

LEAST = 25  # jobs of one message of a crowd, ahead of its instant: an executor that gets ten of them can start all at once (256)
MOST = 200  # jobs of one message: at most 20 KB, so ten of them fit into one call to SNS or SQS (256 KB)
SPAN_MS = 1_000  # jobs due within this time may travel together
DIRECT = 2  # messages of the jobs that their writer enqueues for one instant, if they are no crowd
BATCH = 10  # messages of a full batch; jobs that are due already come in as many, since executors soon take the next batch
COLD_MS = 2_500  # the lead of a crowd: time for a cold executor to start and to claim ...
JOB_MS = 1.0  # ... and for each job: Lambda adds five executors a second (300 a minute), each of which takes some 200 jobs
MARGIN_MS = 500  # between the lead and the time an executor may hold a crowd, for clocks that differ


def size(crowd: float, usual: float, *, ready: float = 0, late: bool = False) -> int:
    """The number of jobs of one message, for a crowd of `crowd` jobs. `usual`: executors of a quiet lane, `ready`: those kept ready now.

    Ahead of its instant, a crowd has one message for each executor: pollers take what has arrived, which is seldom a full batch. But a
    message has at least LEAST jobs: an executor is paid while it waits for their instant.
    """
    if late:
        return 1 if crowd <= DIRECT else max(BATCH, min(MOST, round(crowd / max(usual * BATCH, 1))))
    if not is_crowd(crowd, usual):
        return 1
    return max(LEAST, min(MOST, round(crowd / max(usual, ready, 1))))


def direct(jobs: int, usual: float) -> int:
    """The number of jobs of one message, of `jobs` that their writer enqueues for one instant: two messages, and ten jobs at least in each.

    Each message may keep an executor busy. `usual`: as for `size`, whose rule applies to a crowd.
    """
    if is_crowd(jobs, usual):
        return size(jobs, usual, late=True)
    return 1 if jobs <= DIRECT else min(max(-(-jobs // DIRECT), BATCH), LEAST)


def messages(jobs: int, usual: float) -> int:
    """The number of messages of `jobs` that their writer enqueues for one instant."""
    return -(-jobs // direct(jobs, usual))


def most_in(few: int, usual: float) -> int:
    """The number of jobs that their writer enqueues in `few` messages for one instant. More than that number may be a crowd."""
    return min(BATCH * few if few < DIRECT else LEAST * few, int(BATCH * usual))


def is_crowd(jobs: float, executors: float) -> bool:
    """Whether `jobs` of one span are more than `executors` take in single messages."""
    return jobs > executors * BATCH


def lead(crowd: int, hold_ms: int) -> int:
    """Return the time (ms) before its instant at which a crowd is published; executors may hold it for `hold_ms`."""
    return max(min(COLD_MS + round(crowd * JOB_MS), hold_ms - MARGIN_MS), 0)


def second(due_at: int) -> int:
    """The number of the span in which a job is due: jobs of one lane and span are a crowd."""
    return due_at // SPAN_MS


def pack(messages: Iterable[Message], most: Callable[[Message], int], now: int = 0) -> list[Message]:
    """Join messages of one lane that are due close together, or before `now`, in their order, at most `most` of the first of them.

    Retries always travel alone: a job that kills its executor then affects no other.
    """
    packs: list[Message] = []
    filling: dict[Lane, tuple[Message, list[Packed], int]] = {}

    def close(lane: Lane) -> None:
        first, more, _ = filling.pop(lane)
        packs.append(first._replace(more=tuple(more)) if more else first)

    for message in messages:
        found = filling.get(message.lane)
        together = found is not None and (
            0 <= message.due_at - found[0].due_at < SPAN_MS or (message.due_at <= now and found[0].due_at <= now)
        )
        if found is not None and together and len(found[1]) + 1 < found[2]:
            found[1].append(Packed(message.key, message.fence, message.due_at))
            continue
        if found is not None:
            close(message.lane)
        limit = 1 if message.lane is Lane.RETRY else most(message)
        if limit == 1:
            packs.append(message)
        else:
            filling[message.lane] = (message, [], limit)
    for lane in list(filling):
        close(lane)
    return packs
