"""Accept jobs: store each one, and enqueue at once the jobs that are due before any minute that is safe to write into.

A job with an idempotency key is derived from its receipt: a repeated call derives the very same job, which is stored once. If a call
broke off after its receipt or before its jobs were enqueued, the next call completes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.admission.ordering_queue import join_queues
from scheduler.model import ids, slots
from scheduler.model.errors import Conflict, TooLarge, Unavailable
from scheduler.model.job import Job, JobKey, Receipt, changed, shard_key
from scheduler.model.notifications import Notifications
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Jobs, Ports, Receipts, Written


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as its owner requests it, already validated. `execute_at` None means now."""

    owner: str
    spec: JobSpec
    execute_at: int | None = None
    expires_at: int | None = None  # the job is not started at this instant (ms) or later
    notifications: Notifications | None = None  # None: nobody is notified of its end


class Submission(NamedTuple):
    """One job of a call: `random` fills its id, unless a receipt of its key is stored already."""

    request: NewJob
    random: int
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted job, first requested at the instant `at` (ms).

    `job` is the job as stored if this call stored it, else as it was when it was first requested.
    """

    job: Job
    at: int
    replayed: bool = False


Refusal = Conflict | TooLarge  # of one job, for a reason of its own


def submit(request: NewJob, ports: Ports, *, random: int, direct: DirectPath | None = None) -> Job:
    """Accept one job without a key, as `submit_all` does. Raises TooLarge; Unavailable if the table refuses: then nothing was accepted."""
    asked = [Submission(request, random)]
    (done,) = submit_all(asked, ports, direct=direct)
    if not isinstance(done, Accepted):
        raise done or Unavailable
    return done.job


def submit_all(asked: Sequence[Submission], ports: Ports, *, direct: DirectPath | None = None) -> list[Accepted | Refusal | None]:
    """Store jobs of one owner, each accepted or not on its own. The answers come in order; None where a table refused.

    For a job that needs too many bytes in the table the answer is a TooLarge, and nothing of it is stored.

    A job is accepted once it is stored, even if it then cannot be enqueued. `direct` decides which jobs may be enqueued at once (None:
    all). If an idempotency key was used before for the same request, the answer is the same as then, and the job is stored only if it
    is missing; for a different request the answer is a Conflict. Receipts are stored first: if a job is refused after that, a repeated
    call stores it. Raises Unavailable if a table refuses all jobs at once.
    """
    errors = [_too_large(each.request, ports.jobs) for each in asked]
    fitting = [each for each, error in zip(asked, errors, strict=True) if error is None]
    done = iter(_submit_all(fitting, ports, direct) if fitting else [])
    return [error or next(done) for error in errors]


def _too_large(request: NewJob, jobs: Jobs) -> TooLarge | None:
    try:
        jobs.check(request.spec, request.notifications)
    except TooLarge as error:
        return error
    return None


def _submit_all(asked: Sequence[Submission], ports: Ports, direct: DirectPath | None) -> list[Accepted | Conflict | None]:
    standing = _keep(asked, ports.receipts, ports.clock.now())
    now = ports.clock.now()
    answers = [_answer(each, standing, now, ports.rules) for each in asked]
    wanted = {answer.job.key: answer for answer in answers if isinstance(answer, Accepted)}
    found = ports.jobs.get_many(replays) if (replays := [key for key, answer in wanted.items() if answer.replayed]) else {}
    drafts = _shared([_placed(answer, now, ports.rules) for key, answer in wanted.items() if key not in found], now, direct)
    held = _put(drafts, now, ports) if drafts else []
    stored = [draft for draft, holds in zip(drafts, held, strict=True) if holds]
    waiting = [job for job in found.values() if _never_started(job)]  # the call that stored it may have died before it enqueued the job
    handed = enqueue_if_due_soon([*stored, *waiting], now, ports)
    _start_intake([*stored, *waiting], direct)
    new = {job.key: job for job in handed[: len(stored)]}
    return [_settled(answer, new) if isinstance(answer, Accepted) and answer.job.key not in found else answer for answer in answers]


def _put(drafts: Sequence[Job], now: int, ports: Ports) -> list[bool]:
    """Store jobs; return for each whether it is stored. A job that exists already was stored by an earlier, unanswered try.

    Raises Unavailable if all are refused at once.
    """
    may = join_queues(drafts, orders=ports.orders, now=now)
    put = iter(_insert([draft for draft, ready in zip(drafts, may, strict=True) if ready], ports.jobs) if any(may) else [])
    return [ready and next(put) is not Written.REFUSED for ready in may]


def _insert(drafts: Sequence[Job], jobs: Jobs) -> list[Written]:
    """Like `Jobs.put_many`, but a single job is stored by a plain put, which takes less time than a batch of one."""
    if len(drafts) != 1:
        return jobs.put_many(drafts)
    try:  # NO can only be an earlier, unanswered try of this very put: 75 random bits do not collide
        return [Written.of(jobs.put(drafts[0]))]
    except Unavailable:
        return [Written.REFUSED]


def _settled(answer: Accepted, new: Mapping[JobKey, Job]) -> Accepted | None:
    """Return the answer with the job as stored, or None if it is not stored."""
    job = new.get(answer.job.key)
    return None if job is None else Accepted(job, answer.at, answer.replayed)


def _shared(drafts: list[Job], now: int, direct: DirectPath | None) -> list[Job]:
    return drafts if direct is None else direct.place(drafts, now)


def _start_intake(stored: Sequence[Job], direct: DirectPath | None) -> None:
    taken = {job.slot for job in stored if job.slot is not None and slots.is_overflow(job.slot)}
    if direct is not None and taken:
        direct.start(taken)


def _keep(asked: Sequence[Submission], receipts: Receipts, now: int) -> dict[str, Receipt | None]:
    """Store the receipts; return the valid receipt of each key (None: refused). If a key comes twice, its first receipt is stored."""
    first: dict[str, Receipt] = {}
    for each in asked:
        if each.receipt is not None:
            first.setdefault(each.receipt.key, each.receipt)
    if not first:
        return {}
    try:
        return dict(zip(first, receipts.keep(list(first.values()), now), strict=True))
    except Unavailable:
        if all(each.receipt is not None for each in asked):
            raise
        return dict.fromkeys(first)  # jobs without a key need no receipt


def _answer(asked: Submission, standing: Mapping[str, Receipt | None], now: int, rules: Rules) -> Accepted | Conflict | None:
    """Return the answer to give once the job is stored; None if its receipt was refused."""
    receipt = asked.receipt
    if receipt is None:
        return Accepted(_draft(asked.request, now, rules, asked.random), now)
    stands = standing[receipt.key]
    if stands is None:
        return None
    if stands.fingerprint != receipt.fingerprint:
        return Conflict("this idempotency key was used for another request")
    return Accepted(_draft(asked.request, stands.at, rules, stands.random), stands.at, replayed=stands != receipt)


def _placed(answer: Accepted, now: int, rules: Rules) -> Job:
    """Return the job in a slot that is safe now, no matter when it was first requested."""
    job = answer.job
    return job if answer.at == now else changed(job, slot=slots.place(job.due_at, now, job.shard_key, rules.shards).slot)


def _never_started(job: Job) -> bool:
    return job.slot is not None and job.claim is None and not job.attempts


def _draft(request: NewJob, now: int, rules: Rules, random: int) -> Job:
    scheduled_at = now if request.execute_at is None else request.execute_at
    due_at = max(scheduled_at, now)
    job_id = ids.new(scheduled_at, random)
    return Job(
        owner=request.owner,
        id=job_id,
        spec=request.spec,
        scheduled_at=scheduled_at,
        due_at=due_at,
        created_at=now,
        slot=slots.place(due_at, now, shard_key(request.owner, job_id, request.spec.ordering), rules.shards).slot,
        notifications=request.notifications,
        start_by=request.expires_at,
    )
