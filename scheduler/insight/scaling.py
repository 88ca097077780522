"""The number of pollers that each lane keeps ready: raised at once, lowered slowly. Pure.

A poller of a queue calls up to ten executors at one time. Without pollers kept ready, AWS starts with five executors and adds 300 a
minute, which is too slow for the jobs at the top of an hour. Ready pollers cost money even without work, so there are none until the
requirement exceeds the executors that AWS adds in a minute.
"""

from collections.abc import Mapping

from scheduler.model.job import Lane

EXECUTORS_EACH = 10  # called at once by one poller
MESSAGES_EACH = 10  # received by one executor at once
LEAST, MOST = 2, 200  # the limits of AWS for pollers that are kept ready
FOLLOWED = 300  # executors that AWS adds in a minute: while no more are required, no poller is kept ready


def pollers(current: Mapping[Lane, int], required: Mapping[Lane, int], most: Mapping[Lane, int]) -> dict[Lane, int]:
    """Return the number of pollers that each lane of `most` keeps ready; 0: AWS alone scales the lane.

    `current`: pollers ready now. `required`: executors. Pollers are raised to the required executors at once, up to `most`. They are
    lowered by a tenth per call, and the last ones are removed once all lanes together require no more than FOLLOWED.
    """
    acts = sum(required[lane] for lane in most) > FOLLOWED
    return {lane: _of_lane(current[lane], required[lane] if acts else 0, limit) for lane, limit in most.items()}


def _of_lane(current: int, required: int, most: int) -> int:
    needed = min(-(-required // EXECUTORS_EACH), most) if required > LEAST * EXECUTORS_EACH else 0
    lowered = min(current - max(1, current // 10), most)
    return max(needed, lowered if lowered >= LEAST else 0)
