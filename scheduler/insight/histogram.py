"""A histogram of durations with exponential buckets: many writers can add to it, and percentiles can be read from it.

A bucket is 19 % wider than the one before it, so the error of a percentile is at most a tenth.
"""

import math
from collections.abc import Mapping

STEPS = 4  # buckets per doubling of the duration


def bucket(ms: int) -> int:
    """The bucket of a duration; durations below a millisecond are in the first.

    >>> bucket(1), bucket(2), bucket(1_000)
    (0, 4, 39)
    """
    return int(STEPS * math.log2(max(ms, 1)))


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """The percentile at `share` (0 to 1), as the middle of its bucket; None if nothing is counted."""
    total = sum(counts.values())
    rank, seen = share * total, 0
    for number, count in sorted(counts.items()):
        seen += count
        if count > 0 and seen >= rank:
            return round(2 ** ((number + 0.5) / STEPS))
    return None
