"""The lead: how long before its instant dispatch publishes a job, so that the job waits in an executor by then. Pure arithmetic.

A message that is published earlier still comes to an executor, which hides it until shortly before the lead of its job.
"""

from collections.abc import Sequence

MARGIN_MS = 500  # between the longest lead and the time an executor may wait with a job, for clocks that differ
LEAST_LEAD_MS = 150
WARM_MS = 250  # the lead of an early message while no latency was measured: the executor that has hidden it is warm
PASSED_ON_MS = 150  # from the publishing of an early message until an executor hides it
DISPATCHER = 2.0  # the price of a dispatcher's second in seconds of an executor: it has 1.7 times the memory


def lead(measured_ms: int | None, default_ms: int, hold_ms: int) -> int:
    """The lead of a lane (ms): 1.25 times its recent p99 from publish to claim, at most half of `hold_ms`.

    `hold_ms` is how long before its due time an executor may claim a job. The other half of it is for bursts (`leave_times`). Without
    this bound, a burst that meets too few executors would lengthen the lead, a longer lead would keep executors busy with waiting
    jobs, and the next burst would meet fewer executors still.
    """
    wanted = default_ms if measured_ms is None else measured_ms * 5 // 4
    return max(min(wanted, hold_ms // 2), min(LEAST_LEAD_MS, hold_ms))


def longest(hold_ms: int) -> int:
    """The longest time (ms) before its instant at which any job is published."""
    return max(hold_ms - MARGIN_MS, hold_ms // 2)


def early_leave_times(hidden_until: Sequence[int], now: int) -> list[int]:
    """The instants (ms) at which to publish jobs long ahead: now, or within the next second.

    `hidden_until`: when an executor should see each message again. SQS hides it for whole seconds, so an executor holds the job for the
    fraction of a second that is left. There is none if the job leaves a whole number of seconds ahead. The dispatcher waits for that
    as long as executors save more than it costs.
    """
    waits = [(at - PASSED_ON_MS - now) % 1_000 if at > now + 1_000 else 0 for at in hidden_until]
    saved, best, longest = 0, 0.0, 0
    for wait in sorted(waits):
        saved += wait  # the fraction for which its executor does not hold it
        if saved - wait * DISPATCHER > best:
            best, longest = saved - wait * DISPATCHER, wait
    return [now + wait if wait <= longest else now for wait in waits]


def leave_times(due: Sequence[int], leads: Sequence[int], *, rate: float, hold_ms: int) -> list[int]:
    """The instants (ms) at which to publish jobs, given their due times in ascending order and their leads.

    A job is published its lead before it is due. Where many jobs are due close together, the earlier ones are published earlier still,
    so that at `rate` jobs per millisecond the last one is in time: leave[i] = min(due[i] - lead[i], leave[i + 1] - 1 / rate). No job is
    published more than `longest(hold_ms)` ahead, since an executor may not claim it sooner than `hold_ms` ahead.
    """
    leaves = [0] * len(due)
    step, most, following = 1 / rate, longest(hold_ms), float("inf")
    for position in range(len(due) - 1, -1, -1):
        following = min(due[position] - leads[position], following - step)
        following = max(following, due[position] - most)
        leaves[position] = int(following)
    return leaves
