"""The chains of invocations that start each other, as Lambda counts them.

Lambda stops a function that was invoked about sixteen times in one chain, unless its `RecursiveLoop` is `Allow`. The chain is passed on
with each message to a queue or topic: https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html

A call of the API begins a chain, and so does a schedule. AWS does not document how a batch of several messages counts: here it continues
the longest chain of each function.
"""

from collections.abc import Callable, Iterable

from lab.world.hub import Chain, Hub
from scheduler.model.job import Lane

MOST = 16
EXECUTORS = {Lane.ONE_TIME: "ExecuteOneTime", Lane.RECURRING: "ExecuteRecurring", Lane.RETRY: "ExecuteRetry"}
DISPATCH, BURY = "Dispatch", "Bury"
ALLOWED = frozenset({*EXECUTORS.values(), DISPATCH, BURY})  # a test of the template compares it with the functions that may loop


class Lineage:
    """The chain of each message and of each running invocation."""

    def __init__(self, hub: Hub, violation: Callable[[str, str], None], allowed: frozenset[str] = ALLOWED) -> None:
        self._hub, self._violation, self.allowed = hub, violation, allowed
        self._chains: dict[str, Chain] = {}  # by message id
        self.longest: Chain = {}

    def sent(self, message_id: str) -> None:
        """Note a message that the current invocation sends."""
        if chain := self._hub.chain:
            self._chains[message_id] = chain

    def invoked(self, function: str, message_ids: Iterable[str]) -> None:
        """Note that these messages invoke the function, in the current invocation."""
        chain: Chain = {}
        for message_id in message_ids:
            for name, times in self._chains.get(message_id, chain).items():
                chain[name] = max(times, chain.get(name, 0))
        times = chain[function] = chain.get(function, 0) + 1
        self._hub.chain = chain
        self.longest[function] = max(self.longest.get(function, 0), times)
        if times >= MOST and function not in self.allowed:
            self._violation("recursive_loop", f"{function} was invoked {times} times in one chain,")
