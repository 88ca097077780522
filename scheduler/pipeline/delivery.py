"""The decision about a delivered message after the claim of its job: pure.

A duplicate message never starts a job twice, and no message is deleted while it is the only one for its job.
"""

from dataclasses import dataclass

from scheduler.model import callback_lease, lifecycle, slots
from scheduler.model.job import Delivery, Job
from scheduler.model.rules import Rules
from scheduler.storage.ports import ClaimResult

BATCH = 10  # most messages of one batch of Lambda
LEASE_MS = 30_000  # the visibility time-out that an executor sets for its batch before it claims the jobs
RENEW_MS = 10_000  # how often an executor renews the visibility of its batch
RENEW_AGAIN_MS = 2_000  # ... and the pause before it tries again after a failed renewal
LOST_MS = 20_000  # an executor stops after this time without a renewal (by the clock that counts more)
SECOND_MS = 1_000  # a message that is less than this early is not hidden: SQS counts whole seconds
HIDE_S = 900  # an early message is hidden for at most this long
PUT_BACK_S = 5  # how long a message is deferred that can be neither run nor deleted
REFUSED_S = (5, 15, 30, 60, 120, 300, 1_800, 3_600)  # the same while a table refuses, by the number of receives: nine last two hours


@dataclass(frozen=True, slots=True)
class Run:
    """This executor has claimed the job: run it."""

    job: Job


@dataclass(frozen=True, slots=True)
class Drop:
    """The message is a duplicate, or its job no longer needs one: delete it."""


@dataclass(frozen=True, slots=True)
class PutBack:
    """The job is neither claimed by this executor nor finished: defer the message, which stays in its queue, for `seconds`.

    `claimed`: the job was recently claimed under this very message, so no other message may exist for it.
    """

    seconds: int
    claimed: bool = False


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The earlier executor of this message ended, or the worker that was to report by call-back: schedule the job again."""

    job: Job


@dataclass(frozen=True, slots=True)
class Check:
    """The end of the job's work in AWS is awaited: check whether that goes on, and stop it if its time is over."""

    job: Job


@dataclass(frozen=True, slots=True)
class Later:
    """The job waits for its call-back, and its lease was extended since this message was sent: check it again at `at` (ms)."""

    job: Job
    at: int


def hold_ms(delivery: Delivery, rules: Rules) -> int:
    """Return the time before a job's due time (ms) from which an executor may claim it."""
    return rules.crowd_hold_ms if delivery.jobs > 1 else rules.hold_ms


def early(delivery: Delivery, first_due: int, now: int, rules: Rules) -> PutBack | None:
    """Defer a message that is too early to claim any of its jobs, the first of which is due at `first_due`; None: claim them.

    It is delivered again at the time of its sender. Else a single job is delivered as if it had been enqueued then, a crowd as soon as an
    executor may wait with it. Jobs that travel together may wait for long, so they are also deferred if their sender set a time.
    """
    hold, not_before, many = hold_ms(delivery, rules), delivery.message.not_before, delivery.jobs > 1
    if first_due - hold <= now and not (many and not_before - now >= SECOND_MS):
        return None
    at = not_before or (first_due - hold if many else slots.not_before(first_due))
    return PutBack(max(1, min((at - now) // 1000, HIDE_S)))  # whole seconds, rounded down: early rather than late


def refused(delivery: Delivery) -> PutBack:
    """Defer a message whose jobs a table refuses to read: each time for longer, so that its receives last for a long outage."""
    return PutBack(REFUSED_S[max(0, min(delivery.receive_count, len(REFUSED_S)) - 1)])


Decision = Run | Drop | PutBack | TakeBack | Check | Later


def decide(delivery: Delivery, answer: ClaimResult | None, nonce: str, now: int, *, hold_ms: int) -> Decision:
    """Decide by `answer`, the result of the claim with `nonce`; None: the table refused.

    `hold_ms` is how long before its due time an executor may claim a job.
    """
    if answer is None:
        return refused(delivery)
    job = answer.job
    if answer.won and job is not None:
        return Run(job)
    if job is None or not lifecycle.is_open(job) or job.fence != delivery.message.fence:
        return Drop()
    if job.claim is None:
        early = job.due_at - hold_ms - now  # a deferred message counts as in flight, so it is deferred for a minute at most
        return PutBack(max(1, min(-(-early // 1000), 60))) if early > 0 else PutBack(1)
    if lifecycle.waits(job):
        return _rescue(job, now, hold_ms)
    if job.claim.nonce == nonce:
        return Run(job)  # this executor's own claim, whose answer was lost
    if job.claim.message_id != delivery.message_id:
        return Drop()  # another message started it, and is delivered again if its executor dies
    if now - job.claim.at < LEASE_MS:
        return PutBack(PUT_BACK_S, claimed=True)
    return TakeBack(job)


def _rescue(job: Job, now: int, hold_ms: int) -> Drop | PutBack | TakeBack | Check | Later:
    """Decide about any message of a job that waits for its call-back, or for the end of its work in AWS, by whether the lease has passed.

    There is one message per lease: the first of two copies moves the due time and sends the next message, so the second copy finds the
    job due later and is dropped.
    """
    ends_at, over_at = callback_lease.ends_at(job), callback_lease.over_at(job)
    if now >= over_at:
        return TakeBack(job) if job.awaited is None else Check(job)
    if ends_at - now <= hold_ms:
        return PutBack(max(1, -(-(over_at - now) // 1000)))
    return Drop() if job.due_at > now + hold_ms else Later(job, ends_at)
