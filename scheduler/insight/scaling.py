"""The number of pollers that a lane keeps ready: raised ahead of the forecast load, lowered slowly. Pure.

A poller of a queue calls up to ten executors at once. Without pollers kept ready, AWS starts with a few and adds 300 executors a minute,
which is too slow for the jobs at the top of an hour.
"""

EXECUTORS_EACH = 10  # called at once by one poller
LEAST, MOST = 2, 200  # the limits of AWS for provisioned pollers


def pollers(current: int, required: int, most: int) -> int:
    """How many pollers to keep ready for `required` executors, with `current` ready now: up at once, down by a tenth a minute."""
    wanted = min(max(LEAST, -(-required // EXECUTORS_EACH)), most)
    return max(wanted, min(current - max(1, current // 10), most))
