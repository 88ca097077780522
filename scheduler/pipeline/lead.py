"""The lead: how long before its instant dispatch publishes a job, so that the job waits in an executor by then. Pure arithmetic.

Jobs that are published earlier still travel together to an executor, which sends each on, delayed until its lead begins.
"""

from collections.abc import Sequence

MARGIN_MS = 500  # between the longest lead and the time an executor may wait with a job, for clocks that differ
LEAST_LEAD_MS = 150
WARM_MS = 250  # the lead of few delayed messages while no latency was measured: the executor that has sent them is warm
SENT_MS = 5  # by which a wait for an instant may end late: the delay that is left must not be rounded down to a second less


def lead(measured_ms: int | None, default_ms: int, hold_ms: int) -> int:
    """The lead of a lane (ms): 1.25 times its recent p99 from publish to claim, at most half of `hold_ms`.

    `hold_ms` is how long before its due time an executor may claim a job. The other half of it is for bursts (`leave_times`). Without
    this bound, a burst with too few executors would lengthen the lead, a longer lead would keep executors busy with waiting jobs,
    and the next burst would have even fewer executors.
    """
    needed = default_ms if measured_ms is None else measured_ms * 5 // 4
    return max(min(needed, hold_ms // 2), min(LEAST_LEAD_MS, hold_ms))


def longest(hold_ms: int) -> int:
    """The longest time (ms) before its instant at which any job is published."""
    return max(hold_ms - MARGIN_MS, hold_ms // 2)


def send_times(instants: Sequence[int], now: int) -> list[int]:
    """The instants (ms) at which to send delayed messages: now, or within the next second.

    `instants`: when an executor should receive each. SQS delays it by whole seconds, so an executor would hold it for the fraction of a
    second that is left. There is none if the message is sent a whole number of seconds ahead. The sender, an executor itself, waits for
    that as long as the others save more time than it loses.
    """
    waits = [(at - SENT_MS - now) % 1_000 if at > now + 1_000 else 0 for at in instants]
    saved, best, longest = 0, 0, 0
    for wait in sorted(waits):
        saved += wait  # the fraction for which its executor does not hold it
        if saved - wait > best:
            best, longest = saved - wait, wait
    return [now + wait if wait <= longest else now for wait in waits]


def leave_times(due: Sequence[int], leads: Sequence[int], *, rate: float, hold_ms: int) -> list[int]:
    """The instants (ms) at which to publish jobs, given their due times in ascending order and their leads.

    A job is published its lead before it is due. If many jobs are due close together, the earlier ones are published earlier still,
    so that at `rate` jobs per millisecond the last one is in time: leave[i] = min(due[i] - lead[i], leave[i + 1] - 1 / rate). No job is
    published more than `longest(hold_ms)` ahead, since an executor may not claim it sooner than `hold_ms` ahead.
    """
    leaves = [0] * len(due)
    step, most, following = 1 / rate, longest(hold_ms), float("inf")
    for position in range(len(due) - 1, -1, -1):
        at = due[position]
        following = max(min(at - leads[position], following - step), at - most)
        leaves[position] = int(following)
    return leaves
