"""Bundles: the few jobs of a quiet minute travel in one message for each lane, long ahead.

The executor that receives a bundle sends the jobs on, each delayed by SQS until shortly before its instant. A job then costs one receive,
and no dispatcher waits for it. A job that is sent on twice starts once, by its fence.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

from scheduler.model.errors import Unavailable
from scheduler.model.job import Delivery, JobKey, Lane, Message, Packed
from scheduler.pipeline import lead, packs
from scheduler.storage.ports import Ports

LONGEST_MS = 4_000  # between the first and the last job in one onward message; its executor waits for that time
GATHER_MS = 50  # messages to be sent within this time are sent together: ten cost as much as one


def bundle(messages: Sequence[Message]) -> list[Message]:
    """Join messages, in order of their due times: one for each lane, or more beyond `packs.MOST` jobs. Retries always travel alone.

    Jobs that are all due close together go to as many executors as they would in single messages.
    """
    bundles = [each for each in messages if each.lane is Lane.RETRY]
    for lane in (Lane.ONE_TIME, Lane.RECURRING):
        of_lane = [each for each in messages if each.lane is lane]
        most = packs.MOST if of_lane and not _is_close(of_lane) else packs.BATCH
        bundles += [_joined(of_lane[first : first + most]) for first in range(0, len(of_lane), most)]
    return bundles


def far_jobs(deliveries: Sequence[Delivery], now: int, hold_ms: int) -> list[Delivery]:
    """Return the jobs of bundles that are due later than `hold_ms` from now, each with the instant from which it is wanted (`not_before`).

    A message whose jobs are due close together is no bundle: one executor waits for all of them.
    """
    by_message: dict[str, list[Delivery]] = defaultdict(list)
    for item in deliveries:
        if item.jobs > 1:
            by_message[item.message_id].append(item)
    found: list[Delivery] = []
    for jobs in by_message.values():
        if not _is_close([item.message for item in jobs]):
            first = jobs[0].message
            ahead = first.due_at - first.not_before
            far = [item for item in jobs if item.message.due_at - hold_ms > now]
            found += [item._replace(message=item.message._replace(not_before=item.message.due_at - ahead)) for item in far]
    return found


def send_on(jobs: Sequence[Delivery], ports: Ports, *, may_wait: bool) -> set[str]:
    """Send jobs of bundles on, delayed. Returns the ids of the bundles with a job that the queue refused, or that was not sent since then.

    `may_wait`: wait for the instants, all within a second, that are whole seconds ahead; SQS delays by whole seconds only.
    """
    now, unsent, away = ports.clock.now(), set[JobKey](), False
    once = {(item.message.key, item.message.fence): item.message for item in jobs}  # a bundle may have been delivered twice
    messages = _grouped(list(once.values()))
    times = lead.send_times([each.not_before for each in messages], now) if may_wait else [now] * len(messages)
    timed = sorted(zip(times, messages, strict=True))
    for _, together in groupby(timed, key=lambda each: (each[0] - now) // GATHER_MS):
        part = list(together)
        left = [message for _, message in part]
        if not away:  # each call to a queue that does not answer takes long
            ports.clock.sleep_until(part[0][0])
            left = _send(left, ports)
            away = len(left) == len(part)
        unsent |= {single.key for message in left for single in message.singles()}
    return {item.message_id for item in jobs if item.message.key in unsent}


def _send(messages: Sequence[Message], ports: Ports) -> list[Message]:
    """Send messages; return the refused ones."""
    now = ports.clock.now()
    try:
        return ports.lanes.send([message._replace(sent_at=now) for message in messages], now)
    except Unavailable:
        return list(messages)


def _grouped(messages: Sequence[Message]) -> list[Message]:
    """Join the messages of jobs that follow each other within their lead.

    One executor waits for all of them, which costs less than two, and the second one might be cold. As in a batch of single messages, there
    are ten at most.
    """
    groups: list[list[Message]] = []
    for each in sorted(messages, key=lambda message: message.due_at):
        group = groups[-1] if groups else []
        fits = 0 < len(group) < packs.BATCH and each.due_at - group[0].due_at <= LONGEST_MS
        if fits and each.not_before <= group[-1].due_at:
            group.append(each)
        else:
            groups.append([each])
    return [_joined(group) for group in groups]


def _is_close(messages: Sequence[Message]) -> bool:
    """Whether these jobs, in order of their due times, may all wait for their instants in one executor."""
    return messages[-1].due_at - messages[0].due_at < packs.SPAN_MS


def _joined(messages: Sequence[Message]) -> Message:
    return messages[0]._replace(more=tuple(Packed(each.key, each.fence, each.due_at) for each in messages[1:]))
