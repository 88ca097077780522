"""The costs of using a port: the one table for the number of calls, their time and their read units.

`CALLS` has the items of a call to AWS, and the calls that run side by side, as the simulation takes them; what does not fit goes in
further rounds. `ONE_WAIT` has the items for which the bench counts one wait: the adapters make `CONNECTIONS` calls side by side. For
`put_many`, `change`, `claim`, `withdraw` and `extend` the two differ.
"""

import math

from scheduler.storage.aws.table import CONNECTIONS

WHOLE_CORE_MB = 1_769  # Lambda memory with a whole core; less memory gets that share of it
NETWORK_MS = 5.0  # assumed for a call to DynamoDB, SQS or SNS within the region
READS = frozenset({"get_many", "glance"})
CALLS = {**dict.fromkeys(READS, (100, 1)), "put_many": (25, 16), "change": (25, 1), "claim": (25, 1), "withdraw": (25, 16)}
CALLS |= {"publish": (10, 16), "send": (10, 16), "extend": (10, 16)}
WRITES = frozenset(CALLS) - READS
ROUND_MS = {"publish": 15, "send": 15}
OTHER_ROUND_MS = 5
STATEMENTS = 25 * CONNECTIONS
ONE_WAIT = {"get_many": 100, "glance": 100, "due_in": CONNECTIONS, "add": CONNECTIONS}
PARALLEL = ("due_in", "add", "put_many")  # verbs whose calls run side by side, `CONNECTIONS` at once
SMALL_READS = ("watched", "latency", "barred", "cursor", "unit", "open_units", "mark", "get")  # a read unit each
EACH = {"get_many": 1, "outlines": 1, "glance": 0.5}  # read units of each key


def rounds(verb: str, items: int) -> int:
    """Return the rounds of calls that the simulation waits for."""
    size, side_by_side = CALLS[verb]
    return -(-items // (size * side_by_side))


def waits(verb: str, items: int) -> int:
    """Return the waits that the bench counts."""
    return max(math.ceil(items / ONE_WAIT.get(verb, STATEMENTS)), 1)


def read_units(verb: str, items: int) -> float:
    """Return the read units of a verb."""
    return items * EACH[verb] if verb in EACH else float(verb in SMALL_READS)


def on_core(cpu_ms: float, memory_mb: int) -> float:
    """Return how long this much work of a whole core takes in a function of this memory (ms)."""
    return cpu_ms / min(memory_mb / WHOLE_CORE_MB, 1)
