"""What a call of a port costs: the one table for the time of calls, their number and their read units.

`CALLS` has the items of a call to AWS, and the calls that run side by side; what does not fit goes in further rounds. A verb that is
not listed makes one call of one item.
"""

WHOLE_CORE_MB = 1_769  # Lambda memory with a whole core; less memory gets that share of it
NETWORK_MS = 5.0  # assumed for a call to DynamoDB, SQS or SNS within the region
READS = frozenset({"get_many", "glance"})
CALLS = {**dict.fromkeys(READS, (100, 1)), "put_many": (25, 16), "change": (25, 1), "claim": (25, 1), "withdraw": (25, 16)}
CALLS |= {"publish": (10, 16), "send": (10, 16), "extend": (10, 16)}
WRITES = frozenset(CALLS) - READS
ROUND_MS = {"publish": 15, "send": 15}
OTHER_ROUND_MS = 5
