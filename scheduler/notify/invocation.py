"""One invocation of notify. It ends with its last call of a receiver, and until then it receives further messages.

So a receiver that takes its time occupies a thread, and never one of the few invocations. Its length is bounded: calls of slow receivers
begin only at first, and the invocation ends in the first moment without a call.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from scheduler.model.notice import ReceivedNotice
from scheduler.notify.notify import BatchResult, Incoming, Post, notify
from scheduler.storage.ports import Clock, NoticeQueue, Ports

SLOW_CALLS_MS = 20_000  # calls of slow receivers begin before this; the others end about ten seconds later
RECEIVES_MS = 75_000  # no message is received after this, even if a new receiver hangs all the time
WAIT_S = 1


@dataclass(slots=True)
class InvocationResult:
    """The counts of all batches. `unfinished`: the messages of the event that are delivered again."""

    decided: int = 0
    sent: int = 0
    failed: int = 0
    undelivered: int = 0
    batches: int = 0
    unfinished: set[str] = field(default_factory=set)

    def add(self, batch: BatchResult) -> None:
        self.batches += 1
        self.decided += batch.decided
        self.sent += batch.sent
        self.failed += batch.failed
        self.undelivered += batch.undelivered


def process(event: Sequence[ReceivedNotice], queue: NoticeQueue, ports: Ports, *, post: Post, threads: Executor) -> InvocationResult:
    """Process the messages of the event, and further ones of the queue while receivers are called.

    The caller deletes the messages of the event, except the unfinished ones.
    """
    result, begun, batch = InvocationResult(), ports.clock.monotonic(), event
    of_event, receipts = {each.message_id for each in event}, dict[str, str]()
    while True:
        receipts |= {each.message_id: each.receipt for each in batch}
        post.calls.takes_slow = ports.clock.monotonic() - begun < SLOW_CALLS_MS
        done = notify([Incoming(each.message_id, each.message, each.sent_at) for each in batch], ports, post=post, threads=threads)
        result.add(done)
        ends: dict[str, int | None] = {each.message_id: done.again.get(each.message_id) for each in batch} | done.ended
        queue.put_back({receipts[name]: again for name, again in ends.items() if again is not None})
        queue.delete([receipts[name] for name, again in ends.items() if again is None and name not in of_event])
        result.unfinished -= ends.keys() & of_event
        result.unfinished |= {name for name in ends.keys() & of_event if ends[name] is not None}
        if post.calls.is_idle:
            return result
        batch = _further(queue, ports.clock, begun)
        of_event -= {each.message_id for each in batch}  # one that came again is deleted by its new receipt


def _further(queue: NoticeQueue, clock: Clock, begun: int) -> Sequence[ReceivedNotice]:
    if clock.monotonic() - begun < RECEIVES_MS:
        return queue.receive(WAIT_S)
    clock.sleep_until(clock.now() + WAIT_S * 1_000)
    return ()
