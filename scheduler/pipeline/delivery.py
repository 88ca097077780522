"""What to do with a delivery whose claim was answered: pure decisions. They keep a duplicate from starting a job twice
and a message from vanishing while its job has no other net."""

from dataclasses import dataclass

from scheduler.model import callback_lease, lifecycle
from scheduler.model.job import Delivery, Job
from scheduler.storage.ports import ClaimResult

LEASE_MS = 30_000  # visibility given to a batch before its claim
BEAT_MS = 10_000  # a batch in work renews its visibility this often
BEAT_AGAIN_MS = 2_000  # ... and after a renewal that failed it tries again so soon, not in a loop without a pause
LOST_MS = 20_000  # without a renewal for so long (monotonic clock), an executor stops
PUT_BACK_S = 5  # when to look at a message again that can be neither run nor deleted


@dataclass(frozen=True, slots=True)
class Run:
    """The claim is ours: run it."""

    job: Job


@dataclass(frozen=True, slots=True)
class Drop:
    """A duplicate, or a job that needs nothing any more: delete the message."""


@dataclass(frozen=True, slots=True)
class PutBack:
    """Neither ours nor done: leave the message in its queue for `seconds`."""

    seconds: int


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The executor that had this very message died, or the worker that was to report by call-back: hand the job back."""

    job: Job


@dataclass(frozen=True, slots=True)
class Later:
    """It waits for its call-back, and its lease was extended since this message was sent: look again at `at`."""

    job: Job
    at: int


Decision = Run | Drop | PutBack | TakeBack | Later


def decide(delivery: Delivery, answer: ClaimResult | None, nonce: str, now: int, *, hold_ms: int) -> Decision:
    """What follows from `answer`, the result of the claim with `nonce` (None: the table refused)."""
    if answer is None:
        return PutBack(PUT_BACK_S)
    job = answer.job
    if answer.won and job is not None:
        return Run(job)
    if job is None or not lifecycle.is_open(job) or job.fence != delivery.message.fence:
        return Drop()
    if job.claim is None:
        early = job.due_at - hold_ms - now  # a put-back counts as in flight, so only for a little
        return PutBack(max(1, min(-(-early // 1000), 60))) if early > 0 else PutBack(1)
    if lifecycle.waits(job):
        return _rescue(job, now, hold_ms)
    if job.claim.nonce == nonce:
        return Run(job)  # our own claim, whose answer was lost
    if job.claim.message_id != delivery.message_id:
        return Drop()  # another message started it, and that message is its net
    if now - job.claim.at < LEASE_MS:
        return PutBack(PUT_BACK_S)
    return TakeBack(job)


def _rescue(job: Job, now: int, hold_ms: int) -> Drop | PutBack | TakeBack | Later:
    """Any message of a job that waits for its call-back asks whether its lease has passed.

    One message a lease: a copy finds the job due later, by the message that the first one sent, and is dropped.
    """
    ends_at = callback_lease.ends_at(job)
    if now >= ends_at:
        return TakeBack(job)
    if ends_at - now <= hold_ms:
        return PutBack(max(1, -(-(ends_at - now) // 1000)))
    return Drop() if job.due_at > now + hold_ms else Later(job, ends_at)
