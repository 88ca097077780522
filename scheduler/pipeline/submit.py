"""Accept jobs: store each one, and enqueue at once the jobs that are due before any minute that is safe to write into.

A job with an idempotency key is derived from its receipt: a repeated call derives the very same job, which is stored once. If a call
broke off after its receipt or before its jobs were enqueued, the next call completes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.admission.ordering_queue import join_queues, leave_queues
from scheduler.model import ids, lifecycle, slots
from scheduler.model.errors import Conflict, TooLarge, Unavailable
from scheduler.model.job import Job, JobKey, KeyEntry, OwnKey, Receipt, changed, new_job
from scheduler.model.notifications import Notifications
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Found, Jobs, KeyTaking, Ports, Receipts, Written

TRIES = 10  # of a job with a key, while others take and free the key


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as its owner requests it, already validated. Without `execute_at` and `delay_ms` it is due now."""

    owner: str
    spec: JobSpec
    execute_at: int | None = None
    expires_at: int | None = None  # the job is not started at this instant (ms) or later
    notifications: Notifications | None = None  # None: no notices of its end are sent
    delay_ms: int | None = None  # instead of `execute_at`: counted from the instant at which the job was first requested
    put_by: str | None = None  # of a put by key: its idempotency key and content, as a hash

    def start(self, now: int) -> int:
        """The start that the owner requests by a call at `now`."""
        return now + (self.delay_ms or 0) if self.execute_at is None else self.execute_at


class Submission(NamedTuple):
    """One job of a call: `random` fills its id, unless a receipt of its key is stored already.

    `delivery`: of a message, which requested the job at the instant of the receipt: how often it was delivered. 0: the call is no message.
    """

    request: NewJob
    random: int
    receipt: Receipt | None = None
    delivery: int = 0


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
    submissions = [Submission(request, random)]
    (done,) = submit_all(submissions, ports, direct=direct)
    if not isinstance(done, Accepted):
        raise done or Unavailable
    return done.job


def submit_all(submissions: Sequence[Submission], ports: Ports, *, direct: DirectPath | None = None) -> list[Accepted | Refusal | None]:
    """Store jobs of one owner, each accepted or not on its own. The answers are in order; None where a table refused.

    For a job that needs too many bytes in the table the answer is a TooLarge, and nothing of it is stored.

    A job is accepted once it is stored, even if it then cannot be enqueued. `direct` decides which jobs may be enqueued at once (None:
    all). If an idempotency key was used before for the same request, the answer is the same as then, and the job is stored only if it
    is missing; for a different request the answer is a Conflict, as it is for a job whose key belongs to an open job. Receipts are stored
    first: if a job is refused after that, a repeated call stores it. Raises Unavailable if a table refuses all jobs at once.
    """
    errors = [_too_large(each.request, ports.jobs) for each in submissions]
    fitting = [each for each, error in zip(submissions, errors, strict=True) if error is None]
    done = iter(_submit_all(fitting, ports, direct) if fitting else [])
    return [error or next(done) for error in errors]


def _too_large(request: NewJob, jobs: Jobs) -> TooLarge | None:
    try:
        jobs.check(request.spec, request.notifications)
    except TooLarge as error:
        return error
    return None


def _submit_all(submissions: Sequence[Submission], ports: Ports, direct: DirectPath | None) -> list[Accepted | Conflict | None]:
    began = ports.clock.now()
    reads = (
        []
        if direct is None
        else direct.reads(submissions[0].request.owner, sum(_is_soon(each.request, began) for each in submissions), began)
    )
    standing, *_ = ports.side_by_side(lambda: _keep(submissions, ports.receipts, began), *reads)
    now = ports.clock.now()
    answers = [_answer(each, standing, now, ports.rules) for each in submissions]
    accepted = {answer.job.key: answer for answer in answers if isinstance(answer, Accepted)}
    found = ports.jobs.get_many(replays) if (replays := [key for key, answer in accepted.items() if answer.replayed]) else {}
    drafts = _shared([_placed(answer, now, ports.rules) for key, answer in accepted.items() if key not in found], now, direct)
    results = dict(zip((draft.key for draft in drafts), _put(drafts, now, ports) if drafts else [], strict=True))
    stored = [draft for draft in drafts if results[draft.key] is Written.YES]
    waiting = [job for job in found.values() if _never_started(job)]  # the call that stored it may have ended before it enqueued the job
    handed = enqueue_if_due_soon([*stored, *waiting], now, ports)
    _start_overflow([*stored, *waiting], direct)
    new = {job.key: job for job in handed[: len(stored)]}
    return [
        _settled(answer, new, results) if isinstance(answer, Accepted) and answer.job.key not in found else answer for answer in answers
    ]


def take_over(request: NewJob, before: KeyEntry | None, ports: Ports, *, random: int, direct: DirectPath | None = None) -> Job | None:
    """Accept a job that takes its key from the job of the entry `before` (None: the key has no entry), and enqueue it if it is due soon.

    None: the entry is no longer `before`, and nothing is stored. Raises TooLarge; Unavailable if a table refuses.
    """
    ports.jobs.check(request.spec, request.notifications)
    now = ports.clock.now()
    (draft,) = _shared([_draft(request, now, ports.rules, random)], now, direct)
    if not all(join_queues([draft], orders=ports.orders, now=now)):
        raise Unavailable
    (written,) = ports.jobs.take_keys([KeyTaking(before, draft)])
    if written is Written.REFUSED:
        raise Unavailable
    if written is Written.NO:
        leave_queues([draft], orders=ports.orders)
        return None
    (job,) = enqueue_if_due_soon([draft], now, ports)
    _start_overflow([draft], direct)
    return job


def complete(job: Job, ports: Ports, direct: DirectPath | None) -> Job:
    """Enqueue the job if it is due soon and no executor had it yet: the call that stored it may have ended before it did."""
    if not _never_started(job):
        return job
    (handed,) = enqueue_if_due_soon([job], ports.clock.now(), ports)
    _start_overflow([job], direct)
    return handed


def _put(drafts: Sequence[Job], now: int, ports: Ports) -> list[Written | Conflict]:
    """Store jobs; return YES for each that is stored. An existing job was stored by an earlier, unanswered try.

    REFUSED: a table refused it. A Conflict: its key belongs to an open job. Raises Unavailable if all are refused at once.
    """
    may = dict(zip((draft.key for draft in drafts), join_queues(drafts, orders=ports.orders, now=now), strict=True))
    plain = [draft for draft in drafts if may[draft.key] and draft.own_key is None]
    named = [draft for draft in drafts if may[draft.key] and draft.own_key is not None]
    done: dict[JobKey, Written | Conflict] = dict.fromkeys(may, Written.REFUSED)
    for draft, written in zip(plain, _insert(plain, ports.jobs) if plain else [], strict=True):
        done[draft.key] = Written.YES if written is Written.NO else written
    if named:
        done |= _take_free_keys(named, ports)
    return list(done.values())


def _take_free_keys(drafts: Sequence[Job], ports: Ports) -> dict[JobKey, Written | Conflict]:
    """Store jobs with keys, of each key one at most; the results by job, as `_put` returns them. Raises Unavailable."""
    done: dict[JobKey, Written | Conflict] = {}
    for _ in range(TRIES):
        if not (left := [draft for draft in drafts if draft.key not in done]):
            break
        takings: dict[OwnKey, KeyTaking] = {}
        entries = ports.jobs.key_entries([draft.own_key for draft in left if draft.own_key is not None])
        found = ports.jobs.get_many([entry.job_key for entry in entries.values()]) if entries else Found[JobKey, Job]()
        for draft in left:
            assert draft.own_key is not None
            entry = entries.get(draft.own_key)
            if entry is not None and entry.job == draft.id:
                done[draft.key] = Written.YES
            elif entry is not None and (entry.job_key in found.unreadable or _is_open(found.get(entry.job_key))):
                done[draft.key] = _taken(entry)
            else:
                takings.setdefault(draft.own_key, KeyTaking(entry, draft))
        written = ports.jobs.take_keys(list(takings.values())) if takings else []
        done |= {taking.job.key: result for taking, result in zip(takings.values(), written, strict=True) if result is not Written.NO}
    lost = [draft for draft in drafts if isinstance(done.get(draft.key), Conflict)]
    leave_queues(lost, orders=ports.orders)
    return {draft.key: done.get(draft.key, Written.REFUSED) for draft in drafts}


def _taken(entry: KeyEntry) -> Conflict:
    rule = f"belongs to the job {entry.job}, which has not ended; PUT by its key replaces it"
    return Conflict(f"key: {rule}", details=[{"field": "key", "rule": rule}])


def _is_open(job: Job | None) -> bool:
    return job is not None and lifecycle.is_open(job)


def _insert(drafts: Sequence[Job], jobs: Jobs) -> list[Written]:
    """Like `Jobs.put_many`, but a single job is stored by a plain put, which takes less time than a batch of one."""
    if len(drafts) != 1:
        return jobs.put_many(drafts)
    try:  # NO can only be an earlier, unanswered try of this very put: 75 random bits do not collide
        return [Written.of(jobs.put(drafts[0]))]
    except Unavailable:
        return [Written.REFUSED]


def _settled(answer: Accepted, new: Mapping[JobKey, Job], results: Mapping[JobKey, Written | Conflict]) -> Accepted | Conflict | None:
    """Return the answer with the job as stored; if it is not stored, the Conflict of its key, or None."""
    job, written = new.get(answer.job.key), results[answer.job.key]
    if isinstance(written, Conflict):
        return written
    return None if job is None else Accepted(job, answer.at, answer.replayed)


def _shared(drafts: list[Job], now: int, direct: DirectPath | None) -> list[Job]:
    return drafts if direct is None else direct.place(drafts, now)


def _start_overflow(stored: Sequence[Job], direct: DirectPath | None) -> None:
    if direct is not None:
        direct.start_for(stored)


def _keep(submissions: Sequence[Submission], receipts: Receipts, now: int) -> dict[str, Receipt | None]:
    """Store the receipts; return the valid receipt of each key (None: refused). If a key occurs twice, its first receipt is stored."""
    first: dict[str, Receipt] = {}
    for each in submissions:
        if each.receipt is not None:
            first.setdefault(each.receipt.key, each.receipt)
    if not first:
        return {}
    try:
        return dict(zip(first, receipts.keep(list(first.values()), now), strict=True))
    except Unavailable:
        if all(each.receipt is not None for each in submissions):
            raise
        return dict.fromkeys(first)  # jobs without a key need no receipt


def _answer(submission: Submission, standing: Mapping[str, Receipt | None], now: int, rules: Rules) -> Accepted | Conflict | None:
    """Return the answer to give once the job is stored; None if its receipt was refused."""
    receipt = submission.receipt
    if receipt is None:
        return Accepted(_draft(submission.request, now, rules, submission.random), now)
    stands = standing[receipt.key]
    if stands is None:
        return None
    if stands.fingerprint != receipt.fingerprint:
        return Conflict("this idempotency key was used for another request")
    stored_at = _stored_at(submission, stands.at, now)
    job = _draft(submission.request, stored_at, rules, stands.random, requested_at=stands.at)
    return Accepted(job, stored_at, replayed=stands != receipt or submission.delivery > 1)


def _stored_at(submission: Submission, requested_at: int, now: int) -> int:
    """Return the time of creation of a job that was requested earlier.

    A message may have waited until its job is late. Such a job is created now, for a past time: the engine did not delay it. One with an
    ordering key has its place in the queue by the time of creation, which must be the same for each delivery.
    """
    request = submission.request
    is_late = submission.delivery > 0 and now - request.start(requested_at) >= lifecycle.LATE_MS
    return now if is_late and request.spec.ordering is None else requested_at


def _placed(answer: Accepted, now: int, rules: Rules) -> Job:
    """Return the job in a slot that is safe now, no matter when it was first requested."""
    job = answer.job
    return job if answer.at == now else changed(job, slot=slots.place(job.due_at, now, job.id, rules.shards).slot)


def _is_soon(request: NewJob, now: int) -> bool:
    return request.start(now) - now < slots.HORIZON


def _never_started(job: Job) -> bool:
    """Whether no executor had the job yet. One that was requeued waits where nobody would miss its claim, such as in a target queue."""
    return job.slot is not None and job.claim is None and not job.attempts and job.fence == 1


def _draft(request: NewJob, now: int, rules: Rules, random: int, *, requested_at: int | None = None) -> Job:
    scheduled_at = request.start(now if requested_at is None else requested_at)
    due_at = max(scheduled_at, now)
    job_id = ids.new(scheduled_at, random)
    return new_job(
        owner=request.owner,
        id=job_id,
        spec=request.spec,
        scheduled_at=scheduled_at,
        due_at=due_at,
        created_at=now,
        slot=slots.place(due_at, now, job_id, rules.shards).slot,
        notifications=request.notifications,
        start_by=request.expires_at,
        put_by=request.put_by,
    )
