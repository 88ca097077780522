"""How many pollers a lane keeps ready: raised ahead of what is to come, lowered slowly. Pure.

A poller of a queue calls up to ten executors at once. Without any kept ready AWS begins with a few and adds 300 executors a minute,
which is too slow for what comes at the top of an hour.
"""

EXECUTORS_EACH = 10  # that a poller calls at once
LEAST, MOST = 2, 200  # that may be kept ready, by AWS


def pollers(current: int, required: int, most: int) -> int:
    """How many to keep ready, with `current` ready and so many executors required soon: up at once, down by a tenth a minute."""
    wanted = min(max(LEAST, -(-required // EXECUTORS_EACH)), most)
    return max(wanted, min(current - max(1, current // 10), most))
