"""When each job must leave dispatch to be waiting in an executor at its instant: pure arithmetic."""

from collections.abc import Sequence

MARGIN_MS = 500  # kept free between lead and hold, for clocks that differ
LEAST_LEAD_MS = 150


def lead(measured_ms: int | None, default_ms: int, hold_ms: int) -> int:
    """How far ahead of its instant a job leaves: the lane's recent p99 from publish to claim and a quarter of it, within half the hold.

    The other half is for crowds (`leave_times`). Without the cap a burst that finds too few executors would lengthen the
    lead, a longer lead keep executors busy holding, and the next burst find fewer still.
    """
    wanted = default_ms if measured_ms is None else measured_ms * 5 // 4
    return max(min(wanted, hold_ms // 2), min(LEAST_LEAD_MS, hold_ms))


def longest(hold_ms: int) -> int:
    return max(hold_ms - MARGIN_MS, hold_ms // 2)


def leave_times(due: Sequence[int], leads: Sequence[int], *, rate: float, hold_ms: int) -> list[int]:
    """For jobs sorted by due time, the instant at which each leaves (ms).

    A job leaves its lead ahead; where many are due close together the earlier ones leave earlier still, so that at
    `rate` jobs a millisecond the last one leaves in time: leave[i] = min(due[i] - lead[i], leave[i + 1] - 1 / rate),
    but never more than the hold ahead, since an executor may not claim a job sooner.
    """
    leaves = [0] * len(due)
    step, most, following = 1 / rate, longest(hold_ms), float("inf")
    for position in range(len(due) - 1, -1, -1):
        following = min(due[position] - leads[position], following - step)
        following = max(following, due[position] - most)
        leaves[position] = int(following)
    return leaves
