"""An owner creates, seals, cancels, reads and lists groups and their members."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.groups import check, counting, ends
from scheduler.model import ids
from scheduler.model.errors import Conflict, NotFound, SchedulerError, Unavailable
from scheduler.model.group import SPAN, CallKind, Counts, End, Group, Leaf, LeafKey
from scheduler.model.job import GroupKey, Job, JobKey, Receipt
from scheduler.model.paging import read_position, written_position
from scheduler.model.spec import JobSpec
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import try_enqueue
from scheduler.pipeline.submit import Accepted, Refusal, Submission, submit_all
from scheduler.storage.ports import Ports

DAY_MS = 86_400_000
SEAL_WITHIN_MS = DAY_MS  # without a wish of its owner
LEAST_MS, LONGEST_MS = 60_000, 30 * DAY_MS  # the bounds of such a wish
READ, SEARCHED = 25, 4_000  # leaves read at once, and members that one request reads at most

Results = list[Accepted | Refusal | None]


@dataclass(frozen=True, slots=True)
class NewGroup:
    """A group as its owner requests it, already validated. `seal`: no jobs join later than those of the request."""

    owner: str
    name: str | None = None
    calls: Mapping[CallKind, JobSpec] = field(default_factory=dict)
    seal: bool = False
    seal_within_ms: int = SEAL_WITHIN_MS


@dataclass(frozen=True, slots=True)
class Made:
    """A group that was created, with the results of its jobs, in order. `replayed`: by an earlier request with the same idempotency key."""

    group: Group
    results: Results
    replayed: bool = False


def create(
    new: NewGroup,
    jobs: Sequence[Submission],
    ports: Ports,
    *,
    random: int,
    receipt: Receipt | None = None,
    direct: DirectPath | None = None,
) -> Made:
    """Create a group with its first jobs. A repeated request with the same receipt completes it, and returns it as it is by then.

    Raises Conflict if the receipt's key was used for another request; TooLarge if a job or call-back is; Unavailable: then some of the
    jobs may be stored, and run.
    """
    at, replayed = ports.clock.now(), False
    if receipt is not None:
        at, random, replayed = _first(receipt, ports)
    for spec in new.calls.values():
        ports.jobs.check(spec)
    for each in jobs:
        ports.jobs.check(each.request.spec, each.request.notifications)
    made = Group(new.owner, ids.new(at, random), at, at + new.seal_within_ms, new.name, new.calls)
    if new.seal:
        return _create_sealed(made, jobs, ports, direct, replayed=replayed)
    ports.groups.plan(None, check.first(made))
    ports.groups.add(made)
    joining = [each._replace(request=replace(each.request, group=made.id)) for each in jobs]
    results = _stored_together(joining, ports, direct)
    return Made(find(made.key, ports), results, replayed)


def _first(receipt: Receipt, ports: Ports) -> tuple[int, int, bool]:
    """The instant and the random part of the first request with this receipt, and whether that was another one."""
    (stored,) = ports.receipts.keep([receipt], ports.clock.now())
    if stored is None:
        raise Unavailable
    if stored.fingerprint != receipt.fingerprint:
        raise Conflict("this idempotency key was used for another request")
    return stored.at, stored.random, stored != receipt


def _create_sealed(made: Group, jobs: Sequence[Submission], ports: Ports, direct: DirectPath | None, *, replayed: bool) -> Made:
    """Store the jobs of a group, and then the group: a group exists only with all its jobs. A repeat derives the very same jobs."""
    members = [_member(made, number, each) for number, each in enumerate(jobs)]
    starts = [each.request.start(made.created_at) for each in members]
    named = {number: ids.new(start, each.random) for number, (start, each) in enumerate(zip(starts, members, strict=True))}
    if ports.groups.get(made.key) is not None:
        return Made(find(made.key, ports), _as_stored(made, named, ports), replayed)
    sealed = replace(made, members=len(jobs), sealed_at=made.created_at)
    if further := {number: job for number, job in named.items() if number >= SPAN}:
        ports.groups.enrol(made.key, further, max(made.created_at, *starts))
        ends.note_sealed(sealed, ports, now=made.created_at)
    results = _stored_together(members, ports, direct)
    if None in results:
        raise Unavailable
    first = Leaf(LeafKey(made.key, 0), members={number: job for number, job in named.items() if number < SPAN})
    ports.groups.add(replace(sealed, leaf=first))
    group, now = find(made.key, ports), ports.clock.now()
    try_enqueue(ends.note_sealed(group, ports, now=now), lanes=ports.lanes, now=now)
    return Made(find(made.key, ports) if counting.is_complete(group) else group, results, replayed)


def _stored_together(jobs: Sequence[Submission], ports: Ports, direct: DirectPath | None) -> list[Accepted | Refusal | None]:
    """Store the first jobs of a group. Raises the refusal of one, which names it by its place in the request; then none is stored."""
    results = submit_all(jobs, ports, direct=direct, together=True) if jobs else []
    for number, result in enumerate(results):
        if isinstance(result, SchedulerError):
            details = [each | {"field": f"jobs[{number}].{each['field']}"} for each in result.details]
            raise type(result)(f"jobs[{number}].{result.message}", details=details)
    return results


def _member(group: Group, number: int, requested: Submission) -> Submission:
    """The request of a member: everything that a repeat might change is fixed by the group's creation."""
    at = requested.request.start(group.created_at)
    request = replace(requested.request, group=group.id, member=number, execute_at=at, delay_ms=None)
    return Submission(request, ids.random_of(f"{group.id}#{number}"))


def _as_stored(group: Group, named: Mapping[int, str], ports: Ports) -> Results:
    keys = [JobKey(group.owner, job) for job in named.values()]
    found = ports.jobs.get_many(keys) if keys else {}
    return [Accepted(found[key], group.created_at, replayed=True) if key in found else None for key in keys]


def seal(key: GroupKey, ports: Ports) -> Group:
    """Let no further job join. If all members have ended, the call-backs start. Idempotent.

    Raises NotFound; Conflict if the group was abandoned; Unavailable.
    """
    return _sealed(key, ports, cancelled=False)


def cancel(key: GroupKey, ports: Ports) -> Group:
    """Seal the group, and cancel the members that have not started, within moments. Idempotent. Raises as `seal` does, and Conflict if all
    members have ended."""
    group = find(key, ports)
    if group.ended_at is not None and group.cancelled_at is None:
        raise Conflict("all jobs of the group have ended")
    group = _sealed(key, ports, cancelled=True)
    if group.ended_at is None:
        ports.work.send([check.item_of(check.after_seal(group))])
    return group


def _sealed(key: GroupKey, ports: Ports, *, cancelled: bool) -> Group:
    now = ports.clock.now()
    group = ports.groups.seal(key, now, cancelled=cancelled)
    if group is None:
        find(key, ports)
        raise Conflict("the group was not sealed in time, and was abandoned")
    ports.groups.plan(check.first(group), check.after_seal(group))
    try_enqueue(ends.note_sealed(group, ports, now=now), lanes=ports.lanes, now=now)
    return find(key, ports)


def find(key: GroupKey, ports: Ports) -> Group:
    """Return the group with its call-backs. Raises NotFound, also for a text that is no id; Unavailable."""
    group = ports.groups.get(key) if ids.is_job_id(key.id) else None
    if group is None:
        raise NotFound("there is no such group")
    return ports.groups.calls_of(group)


def listing(owner: str, ports: Ports, *, limit: int, cursor: str | None) -> tuple[list[Group], str | None]:
    """Return a page of an owner's groups, newest first, and the cursor of the next one. Raises Invalid for a bad cursor."""
    found, after = ports.groups.listing(owner, after=read_position(cursor), limit=limit)
    return found, None if after is None else written_position(after)


def counts(group: Group, ports: Ports) -> Counts:
    """The number of members that have ended in each way."""
    return ends.counts_of(group, ports)


def members(group: Group, ports: Ports, *, limit: int, cursor: str | None, ended: Sequence[End] = ()) -> tuple[list[Job], str | None]:
    """Return a page of the members, by number, and the number at which the next page begins; with `ended`, those that ended like this.

    A page may be short although others follow: one request reads `SEARCHED` members at most. `cursor`: such a number.
    """
    first, found, following = int(cursor or 0), dict[int, JobKey](), None
    for number, leaf in _numbered(group, first, ports):
        if len(found) == limit or number >= first + SEARCHED:
            following = str(number)
            break
        index = number % SPAN
        if index in leaf.members and (not ended or counting.ends(leaf).get(index) in ended):
            found[number] = JobKey(group.owner, leaf.members[index])
    jobs = ports.jobs.get_many(list(found.values())) if found else {}
    return [job for number, key in found.items() if (job := jobs.get(key)) is not None and job.member == number], following


def _numbered(group: Group, first: int, ports: Ports) -> Iterator[tuple[int, Leaf]]:
    """Yield each number from `first` on, with its leaf. Leaves are read when they are reached."""
    for start in range(first // SPAN, group.leaves, READ):
        keys = [LeafKey(group.key, number) for number in range(start, min(start + READ, group.leaves))]
        leaves = ports.groups.leaves(keys)
        for key in keys:
            leaf = leaves.get(key, Leaf(key))
            numbers = range(max(first, key.number * SPAN), min((key.number + 1) * SPAN, group.members))
            yield from ((number, leaf) for number in numbers)
