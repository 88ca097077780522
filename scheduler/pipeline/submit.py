"""Accept jobs: a put each, and a direct hand-over of those that are due before any minute that is safe to write into.

A job that comes with an idempotency key is made of its receipt: whoever asks again makes the very same job, which is stored
once, and a try that broke off after its receipt or before its hand-over is made good by the next one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from scheduler.admission.ordering_queue import line_up
from scheduler.model import ids, slots
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, JobKey, Receipt, shard_key
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import on_their_way
from scheduler.storage.ports import Jobs, Ports, Receipts, Written


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as its owner asks for it, already validated. `execute_at` None means now."""

    owner: str
    spec: JobSpec
    execute_at: int | None = None
    expires_at: int | None = None  # it is not started at this instant or later


class Asked(NamedTuple):
    """One job of a call: `random` fills its id, unless a receipt of its key stands already."""

    request: NewJob
    random: int
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of it: the job as it was when it was first asked for, at the instant `at`; one that this call stored, as it is stored."""

    job: Job
    at: int
    replayed: bool = False


def submit(request: NewJob, ports: Ports, *, random: int, direct: DirectPath | None = None) -> Job:
    """`submit_all` of one job without a key. Raises Unavailable if the table refuses: then nothing was accepted."""
    asked = [Asked(request, random)]
    (done,) = submit_all(asked, ports, direct=direct)
    if not isinstance(done, Accepted):
        raise Unavailable
    return done.job


def submit_all(asked: Sequence[Asked], ports: Ports, *, direct: DirectPath | None = None) -> list[Accepted | Conflict | None]:
    """Store jobs of one owner, each accepted or not on its own: in order, None where a table refused.

    A job is accepted once its put holds, even if the hand-over then fails. `direct` says who may be handed over (None: everyone).
    One whose idempotency key was used before for the same request is answered as it was then, and stored only if it is not;
    Conflict stands where it was another request. Receipts are kept first: a job refused after that is made good by asking again.
    Raises Unavailable if a table refuses them all at once.
    """
    standing = _keep(asked, ports.receipts, ports.clock.now())
    now = ports.clock.now()
    answers = [_answer(each, standing, now, ports.rules) for each in asked]
    wanted = {answer.job.key: answer for answer in answers if isinstance(answer, Accepted)}
    found = ports.jobs.get_many(replays) if (replays := [key for key, answer in wanted.items() if answer.replayed]) else {}
    drafts = _shared([_placed(answer, now, ports.rules) for key, answer in wanted.items() if key not in found], now, direct)
    held = _put(drafts, now, ports) if drafts else []
    stored = [draft for draft, holds in zip(drafts, held, strict=True) if holds]
    waiting = [job for job in found.values() if _never_started(job)]  # the try that stored it may have died before its hand-over
    handed = on_their_way([*stored, *waiting], now, ports)
    _start_intake([*stored, *waiting], direct)
    new = {job.key: job for job in handed[: len(stored)]}
    return [_settled(answer, new) if isinstance(answer, Accepted) and answer.job.key not in found else answer for answer in answers]


def _put(drafts: Sequence[Job], now: int, ports: Ports) -> list[bool]:
    """Whether each is stored; one that is already, is by an earlier, unanswered try. Raises Unavailable if all are refused at once."""
    may = line_up(drafts, orders=ports.orders, now=now)
    put = iter(_insert([draft for draft, ready in zip(drafts, may, strict=True) if ready], ports.jobs) if any(may) else [])
    return [ready and next(put) is not Written.REFUSED for ready in may]


def _insert(drafts: Sequence[Job], jobs: Jobs) -> list[Written]:
    """As `Jobs.put_many`; one alone goes by itself, which takes less time than a batch of one."""
    if len(drafts) != 1:
        return jobs.put_many(drafts)
    try:  # NO can only be an earlier, unanswered try of this very put: 75 random bits do not collide
        return [Written.of(jobs.put(drafts[0]))]
    except Unavailable:
        return [Written.REFUSED]


def _settled(answer: Accepted, new: Mapping[JobKey, Job]) -> Accepted | None:
    """The answer with the job as it is stored; None if it is not."""
    job = new.get(answer.job.key)
    return None if job is None else Accepted(job, answer.at, answer.replayed)


def _shared(drafts: list[Job], now: int, direct: DirectPath | None) -> list[Job]:
    return drafts if direct is None else direct.place(drafts, now)


def _start_intake(stored: Sequence[Job], direct: DirectPath | None) -> None:
    if direct is not None and any(slots.is_intake(job.slot or "") for job in stored):
        direct.start()


def _keep(asked: Sequence[Asked], receipts: Receipts, now: int) -> dict[str, Receipt | None]:
    """The receipt that stands for each key; of a key that comes twice in this call, the first is the one to keep."""
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
        return dict.fromkeys(first)  # the others need no receipt


def _answer(asked: Asked, standing: Mapping[str, Receipt | None], now: int, rules: Rules) -> Accepted | Conflict | None:
    """What to answer if its put holds."""
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
    """The job in a slot that is safe now, whenever it was asked for."""
    job = answer.job
    return job if answer.at == now else replace(job, slot=slots.place(job.due_at, now, job.shard_key, rules.shards).slot)


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
        start_by=request.expires_at,
    )
