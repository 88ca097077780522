"""Accept jobs: store each one, and enqueue at once the jobs that are due before any minute that is safe to write into.

A job with an idempotency key is derived from its receipt: a repeated call derives the very same job, which is stored once. If a call
broke off after its receipt or before its jobs were enqueued, the next call completes it.
"""

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from scheduler.admission import after, key_limits
from scheduler.admission.ordering_queue import join_queues, leave_queues
from scheduler.groups import membership
from scheduler.model import ids, lifecycle, slots
from scheduler.model.after import are_met, waits
from scheduler.model.errors import Conflict, Invalid, SchedulerError, TooLarge, Unavailable
from scheduler.model.job import Job, JobKey, KeyEntry, OwnKey, Receipt, changed, new_job
from scheduler.model.notifications import Notifications
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline import followers, predecessors
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.pipeline.predecessors import Draft, Named, Resolved
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
    group: str | None = None  # the id of the group that the job joins
    member: int | None = None  # its number in that group, if it is stored together with the group
    replay_of: str | None = None  # of a replay: the id of the original
    nominal_at: int | None = None  # of a replay: the time for which the work of the original was
    after: tuple[Named, ...] = ()  # the jobs that it waits for; not of a put by key
    trace: str | None = None  # the trace context of the request: `model.trace`
    links_to: str | None = None  # of a replay: the traceparent of the original's last span

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


Refusal = Conflict | Invalid  # of one job, for a reason of its own

log = logging.getLogger(__name__)


def submit(request: NewJob, ports: Ports, *, random: int, direct: DirectPath | None = None) -> Job:
    """Accept one job without a key, as `submit_all` does. Raises TooLarge; Unavailable if the table refuses: then nothing was accepted."""
    submissions = [Submission(request, random)]
    (done,) = submit_all(submissions, ports, direct=direct)
    if not isinstance(done, Accepted):
        raise done or Unavailable
    return done.job


def submit_all(
    submissions: Sequence[Submission], ports: Ports, *, direct: DirectPath | None = None, together: bool = False
) -> list[Accepted | Refusal | None]:
    """Store jobs of one owner, each accepted or not on its own. The answers are in order; None where a table refused.

    For a job that needs too many bytes in the table the answer is a TooLarge, and nothing of it is stored.

    A job is accepted once it is stored, even if it then cannot be enqueued. `direct` decides which jobs may be enqueued at once (None:
    all). If an idempotency key was used before for the same request, the answer is the same as then, and the job is stored only if it
    is missing; for a different request the answer is a Conflict, as it is for a job whose key belongs to an open job. Receipts are stored
    first: if a job is refused after that, a repeated call stores it. `together`: if the request of one job is refused, none is stored, and
    the answers of the others are None. Raises Unavailable if a table refuses all jobs at once.
    """
    errors: list[Refusal | None] = [_too_large(each.request, ports.jobs) for each in submissions]
    errors = _with_limits(submissions, errors, ports)
    fitting = [each for each, error in zip(submissions, errors, strict=True) if error is None]
    large = {each.request.spec.key for each, error in zip(submissions, errors, strict=True) if error is not None}
    if together and len(fitting) < len(submissions):
        return [*errors]
    done = iter(_submit_all(fitting, ports, direct, large, together) if fitting else [])
    return [error or next(done) for error in errors]


def _too_large(request: NewJob, jobs: Jobs) -> TooLarge | None:
    try:
        jobs.check(request.spec, request.notifications)
    except TooLarge as error:
        return error
    return None


def _with_limits(submissions: Sequence[Submission], errors: Sequence[Refusal | None], ports: Ports) -> list[Refusal | None]:
    """The errors, and those of jobs that name another limit for a key than it has; the limits of the others are stored."""
    limited = [index for index, each in enumerate(submissions) if errors[index] is None and each.request.spec.limit is not None]
    if not limited:
        return list(errors)
    now = ports.clock.now()
    conflicts = key_limits.agree([claim for index in limited for claim in _claims(submissions[index].request, now)], ports, now)
    found = dict(zip(limited, conflicts, strict=True))
    return [error or found.get(index) for index, error in enumerate(errors)]


def _claims(request: NewJob, now: int) -> list[key_limits.Claim]:
    limit = request.spec.limit
    return [] if limit is None else [key_limits.Claim(request.owner, limit, due_at=request.start(now))]


def _submit_all(
    submissions: Sequence[Submission], ports: Ports, direct: DirectPath | None, refused_keys: Set[str | None], together: bool
) -> list[Accepted | Refusal | None]:
    began = ports.clock.now()
    reads = (
        []
        if direct is None
        else direct.reads(submissions[0].request.owner, sum(_is_soon(each.request, began) for each in submissions), began)
    )
    standing, *_ = ports.side_by_side(lambda: _keep(submissions, ports.receipts, began), *reads)
    now = ports.clock.now()
    answers: list[Accepted | Refusal | None] = [_answer(each, standing, now, ports.rules) for each in submissions]
    accepted = {answer.job.key: answer for answer in answers if isinstance(answer, Accepted)}
    found = ports.jobs.get_many(replays) if (replays := [key for key, answer in accepted.items() if answer.replayed]) else {}
    resolved = _resolved(submissions, answers, found, refused_keys, ports)
    answers = [_with_after(answer, resolved) for answer in answers] if resolved else answers
    if together and any(isinstance(answer, SchedulerError) for answer in answers):
        return [answer if isinstance(answer, SchedulerError) else None for answer in answers]
    accepted = {answer.job.key: answer for answer in answers if isinstance(answer, Accepted)}
    placed = [_placed(answer, now, ports.rules) for key, answer in accepted.items() if key not in found]
    drafts = [*_shared([job for job in placed if not waits(job.after)], now, direct), *(job for job in placed if waits(job.after))]
    drafts, closed = membership.join(drafts, ports, now=now)
    results = _put_in_order(drafts, resolved, closed, now, ports)
    stored = [draft for draft in drafts if results[draft.key] is Written.YES]
    unstarted = [job for job in found.values() if _never_started(job)]  # the call that stored it may have ended before it enqueued the job
    new = {job.key: job for job in _attach([job for job in (*stored, *unstarted) if job.after], ports)}  # before predecessors can start
    due = [job for job in (*stored, *unstarted) if are_met(job.after)]
    new |= {job.key: job for job in enqueue_if_due_soon(due, now, ports)}
    _start_overflow(due, direct)
    if lost := [draft for draft in drafts if draft.group is not None and _is_not_stored(results[draft.key])]:
        enqueue_if_due_soon(membership.leave(lost, ports, now=now), now, ports)
    return [
        (_repeated(answer, found[answer.job.key]) if answer.job.key in found else _settled(answer, new, results))
        if isinstance(answer, Accepted)
        else answer
        for answer in answers
    ]


def _resolved(
    submissions: Sequence[Submission],
    answers: Sequence[Accepted | Refusal | None],
    found: Mapping[JobKey, Job],
    refused_keys: Set[str | None],
    ports: Ports,
) -> dict[JobKey, Resolved | Refusal]:
    """Return the predecessors of each job that names any and is not stored yet, or why it may not have them."""
    if not any(each.request.after for each in submissions):
        return {}
    pairs = list(zip(submissions, answers, strict=True))
    drafts = [
        Draft(answer.job, () if answer.job.key in found else each.request.after) for each, answer in pairs if isinstance(answer, Accepted)
    ]
    refused = {each.request.spec.key for each, answer in pairs if not isinstance(answer, Accepted)}
    return predecessors.resolve(drafts, ports.jobs, ports.groups, refused_keys | refused)


def _with_after(answer: Accepted | Refusal | None, resolved: Mapping[JobKey, Resolved | Refusal]) -> Accepted | Refusal | None:
    """Return the answer with the predecessors of its job, or the refusal if it may not have them."""
    found = resolved.get(answer.job.key) if isinstance(answer, Accepted) else None
    if isinstance(answer, Accepted) and isinstance(found, Resolved):
        return replace(answer, job=changed(answer.job, after=found.after))
    return answer if found is None or isinstance(found, Resolved) else found


def _attach(jobs: Sequence[Job], ports: Ports) -> list[Job]:
    """Let the predecessors of stored jobs know of them, and skip the jobs that must not start. Returns all of these jobs.

    Never raises: the gate of a waiting job does the same later.
    """
    if not jobs:
        return []
    known = {job.key: job for job in jobs}
    try:
        known |= after.learn(jobs, ports, new=True)
        decided = [job.key for job in jobs if not waits(known[job.key].after)]
        stored = ports.jobs.get_many(decided) if decided else {}  # they may be marked as predecessors of each other by now
        skipped = followers.free(stored.values(), ports, noted=[job.key for job in jobs if waits(job.after)])
        followers.care_for(skipped, ports)
    except Unavailable:
        log.warning("could not let predecessors know that jobs wait for them; their gates do", extra={"jobs": len(jobs)})
        return list(known.values())
    return list((known | {job.key: job for job in skipped}).values())


def take_over(request: NewJob, before: KeyEntry | None, ports: Ports, *, random: int, direct: DirectPath | None = None) -> Job | None:
    """Accept a job that takes its key from the job of the entry `before` (None: the key has no entry), and enqueue it if it is due soon.

    None: the entry is no longer `before`, and nothing is stored. Raises TooLarge; Unavailable if a table refuses.
    """
    ports.jobs.check(request.spec, request.notifications)
    now = ports.clock.now()
    for claim in _claims(request, now):
        key_limits.check(claim, ports, now)
    (draft,) = _shared([changed(_draft(request, now, ports.rules, random), puts=1)], now, direct)
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


def _put_in_order(
    drafts: Sequence[Job],
    resolved: Mapping[JobKey, Resolved | Refusal],
    closed: Mapping[JobKey, Written | Conflict],
    now: int,
    ports: Ports,
) -> dict[JobKey, Written | Conflict]:
    """Store jobs as `_put` does, each after the jobs of the same call that it waits for. It is refused if one of them is.

    `closed`: the results of jobs that cannot join their groups. Returns the results of all. Raises Unavailable if a table refuses all
    jobs at once.
    """
    left, results = {draft.key: draft for draft in drafts}, dict(closed)
    within = {key: each.within for key, each in resolved.items() if isinstance(each, Resolved)}
    while left:
        ready = [draft for key, draft in left.items() if key not in within or not any(other in left for other in within[key])]
        named = [(draft.key, within[draft.key]) for draft in ready if draft.key in within]
        bad = {key: why for key, fields in named if (why := _why_alone(fields, results, resolved)) is not None}
        good = [draft for draft in ready if draft.key not in bad]
        try:
            written = _put(good, now, ports) if good else []
        except Unavailable:
            if not results:
                raise
            written = [Written.REFUSED] * len(good)
        results |= bad | dict(zip((draft.key for draft in good), written, strict=True))
        left = {key: draft for key, draft in left.items() if key not in results}
    return results


def _why_alone(
    within: Mapping[JobKey, str], results: Mapping[JobKey, Written | Conflict], resolved: Mapping[JobKey, Resolved | Refusal]
) -> Written | Conflict | None:
    """Return why a job is not stored, whose predecessors of the same call are these; None: all of them are stored."""
    for key, field in within.items():
        if isinstance(results.get(key), Conflict) or isinstance(resolved.get(key), SchedulerError):
            return predecessors.unstored(field)
        if results.get(key) is Written.REFUSED:
            return Written.REFUSED
    return None


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


def _is_not_stored(result: Written | Conflict) -> bool:
    """Whether a job is certainly not stored. A refused one may be."""
    return isinstance(result, Conflict)


def _settled(answer: Accepted, new: Mapping[JobKey, Job], results: Mapping[JobKey, Written | Conflict]) -> Accepted | Conflict | None:
    """Return the answer with the job as stored; if it is not stored, the Conflict of its key, or None."""
    job, written = new.get(answer.job.key), results[answer.job.key]
    if isinstance(written, Conflict):
        return written
    return None if job is None else Accepted(job, answer.at, answer.replayed)


def _repeated(answer: Accepted, stored: Job) -> Accepted:
    """Return the answer of the first request: only the stored job has the number in its group, and the trace of that request."""
    return Accepted(changed(answer.job, member=stored.member, trace=stored.trace), answer.at, answer.replayed)


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
    if waits(job.after):
        at = after.check_at(job, now)
        return changed(job, slot=slots.place(at, now, job.id, rules.shards).slot)
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
        group=request.group,
        member=request.member,
        replay_of=request.replay_of,
        nominal_at=request.nominal_at,
        trace=request.trace,
        links_to=request.links_to,
    )
