"""One dispatcher of one unit: it reads the slots, publishes in time, keeps its lease, and marks the unit done.

All units here count as dense; `test_sparse.py` has those with a few jobs.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import DueEntry, Job, Lane, Message, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.work import WorkItem
from scheduler.pipeline import packs
from scheduler.pipeline.dispatch import PARK_MS, WAKE_MS, dispatch, parts_of
from scheduler.pipeline.publisher import GATHER_MS, REFUSED_MS, Publisher
from scheduler.pipeline.tick import READY_MS
from scheduler.pipeline.unit_lease import LEASE_MS, UnitLease
from tests.conftest import NOW, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times

MINUTE = slots.minute_of(NOW)
UNIT = UnitKey(MINUTE, 0)

pytestmark = pytest.mark.usefixtures("dense")


class Sent:
    """A topic that only records the messages, and when they were published."""

    def __init__(self, stage: Stage, took: int = 1) -> None:
        self.stage, self.took = stage, took
        self.messages: list[tuple[Message, int]] = []

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        self.messages += [(single, self.stage.clock.now()) for message in messages for single in message.singles()]
        self.stage.clock.advance(self.took)
        return []

    def of(self, job: Job) -> list[int]:
        """Return when the messages of a job were published."""
        return [at for message, at in self.messages if message.key == job.key]


def paged(size: int) -> Callable[..., Any]:
    """For `Wrapped`: the entries of a slot in pages of this size."""

    def due(verb: Any, slot: str, *, since: int = 0, after: str | None = None) -> Any:
        entries, _ = verb(slot, since=since)
        ordered = [entry for entry in entries if after is None or f"{entry.due_at:020d}/{entry.key.id}" > after]
        page = ordered[:size]
        last = f"{page[-1].due_at:020d}/{page[-1].key.id}" if len(ordered) > size else None
        return page, last

    return due


def unit_of(*jobs: Job, now: int = NOW - 30_000, **fields: Any) -> tuple[Stage, Sent]:
    stage = Stage(rules=Rules(shards=1))
    stage.clock.at = now
    for job in jobs:
        stage.jobs.put(job)
    stage.ledger.open_unit(Unit(UNIT, 0, 0, **fields))
    sent = Sent(stage)
    stage.lanes = Wrapped(stage.lanes, publish=lambda verb, messages: sent.publish(messages))
    return stage, sent


def test_each_job_is_published_once_its_lead_ahead_of_its_instant() -> None:
    jobs = [a_job(due_at=NOW + offset) for offset in (0, 100, 30_000, 59_999)]
    stage, sent = unit_of(*jobs)
    assert stage.dispatch_all(UNIT).handed_out
    for job in jobs:
        (left,) = sent.of(job)
        assert 0 <= job.due_at - stage.rules.lead_ms - left <= GATHER_MS + 10


def test_the_lead_follows_the_measured_latency() -> None:
    slow = a_job(due_at=NOW + 30_000, lane=Lane.RETRY)
    stage, sent = unit_of(slow)
    stage.ledger.report_latency(Lane.RETRY, "me", 2_000, NOW - 35_000)
    stage.ledger.report_latency(Lane.ONE_TIME, "me", 4_000, NOW - 35_000)
    stage.dispatch_all(UNIT)
    assert 2_500 <= slow.due_at - sent.of(slow)[0] <= 2_530


def test_an_old_latency_is_ignored() -> None:
    job = a_job(due_at=NOW + 30_000)
    stage, sent = unit_of(job)
    stage.ledger.report_latency(Lane.ONE_TIME, "me", 4_000, NOW - 30_000 - 120_001)
    stage.dispatch_all(UNIT)
    assert 0 <= job.due_at - sent.of(job)[0] - stage.rules.lead_ms <= 30


def test_messages_have_the_fence_the_lane_and_the_time_of_sending() -> None:
    job = a_job(due_at=NOW + 1_000, fence=4, lane=Lane.RETRY)
    stage, sent = unit_of(job)
    stage.dispatch_all(UNIT)
    ((message, at),) = sent.messages
    assert message == Message(job.key, 4, Lane.RETRY, job.due_at, sent_at=at)


def test_a_dispatcher_writes_no_job() -> None:
    stage, _ = unit_of(a_job(due_at=NOW + 1_000))
    stage.jobs = Wrapped(stage.jobs, change=refuse, claim=refuse, put=refuse)
    assert stage.dispatch_all(UNIT).handed_out


def test_a_unit_without_entries_is_handed_out_at_the_start_of_its_minute() -> None:
    stage, _ = unit_of()
    assert stage.dispatch_all(UNIT).handed_out and stage.clock.now() == NOW
    assert stage.clock.slept == [NOW]  # between two dispatchers, neither of which waits


def test_a_second_read_at_the_start_of_the_minute_finds_hidden_jobs() -> None:
    seen, hidden = a_job(due_at=NOW + 5_000), a_job(due_at=NOW + 10_000)
    stage, sent = unit_of(seen, hidden)
    reads: list[int] = []

    def due(verb: Any, *args: Any, **more: Any) -> Any:
        reads.append(stage.clock.now())
        entries, cursor = verb(*args, **more)
        return ([entry for entry in entries if entry.key != hidden.key or len(reads) > 1], cursor)

    stage.jobs = Wrapped(stage.jobs, due=due)
    stage.dispatch_all(UNIT)
    assert NOW in reads and max(reads) == NOW and len(sent.of(seen)) == 1
    assert 0 <= hidden.due_at - sent.of(hidden)[0] - stage.rules.lead_ms <= 30


def test_a_unit_of_safety_slots_only_is_parked_until_its_minute() -> None:
    net = a_job(due_at=NOW - 200_000, slot=f"{MINUTE}#00")
    stage, sent = unit_of(net, now=NOW - 100_000)
    result = stage.dispatch(UNIT)
    assert not result.handed_out and not sent.messages and stage.clock.now() == NOW - 100_000
    unit = stage.ledger.unit(UNIT)
    assert (unit.lease_until, unit.next_at) == (0, NOW)
    stage.clock.at = NOW
    assert stage.dispatch_all(UNIT).handed_out
    assert sent.of(net) == [NOW]


def test_a_lane_that_is_behind_gets_messages_of_new_jobs_only_b6() -> None:
    net, new = a_job(due_at=NOW - 200_000, slot=f"{MINUTE}#00"), a_job(due_at=NOW + 1_000)
    stage, sent = unit_of(net, new)
    stage.lanes = Wrapped(stage.lanes, backlog=lambda verb, lane: 1_001)
    stage.dispatch_all(UNIT)
    assert not sent.of(net) and sent.of(new)


def test_an_overdue_unit_is_handed_out_at_once() -> None:
    jobs = [a_job(due_at=NOW + offset) for offset in range(0, 60_000, 1_000)]
    stage, sent = unit_of(*jobs, now=NOW + 3_600_000)
    assert stage.dispatch_all(UNIT).published == 60
    assert stage.clock.now() < NOW + 3_601_000
    assert [message.key for message, _ in sent.messages] == [job.key for job in jobs]


def test_jobs_due_at_one_instant_leave_early_enough_for_the_last_one() -> None:
    jobs = [a_job(due_at=NOW + 30_000) for _ in range(1_500)]
    stage, sent = unit_of(*jobs)
    stage.rules = replace(stage.rules, windows={Lane.ONE_TIME: 1_500})
    stage.dispatch_all(UNIT)
    left = [at for _, at in sent.messages]
    assert len(left) == 1_500 and max(left) <= NOW + 30_000 - packs.lead(1_500, stage.rules.crowd_hold_ms) + GATHER_MS
    assert min(left) > NOW + 30_000 - stage.rules.crowd_hold_ms


def test_no_job_is_published_before_an_executor_may_claim_it() -> None:
    jobs = [a_job(due_at=NOW + 30_000, lane=Lane.RETRY) for _ in range(3_000)]  # jobs of this lane travel alone
    stage, sent = unit_of(*jobs)
    stage.rules = replace(stage.rules, windows={Lane.RETRY: 3_000})
    stage.dispatch_all(UNIT)
    ahead = [NOW + 30_000 - at for _, at in sent.messages]
    assert len(ahead) == 3_000 and stage.rules.lead_ms < max(ahead) <= stage.rules.hold_ms


# many jobs


def test_a_unit_with_many_jobs_is_split_and_all_parts_publish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.pipeline.dispatch.SPLIT", 10)
    stage, sent = unit_of()
    stage.rules = Rules(shards=8)
    unit = stage.ledger.unit(UNIT)
    stage.ledger.change_unit(unit, replace(unit, last_shard=7, next_at=NOW - READY_MS))
    jobs = [a_job(due_at=NOW + number * 100, slot=f"{MINUTE}#{number % 8:02d}") for number in range(40)]
    for job in jobs:
        stage.jobs.put(job)
    stage.work.send([WorkItem.of_unit(UNIT)])
    stage.work_off(until=NOW + 5_000)
    units = stage.ledger.open_units()
    assert [slot for unit in units for slot in unit.slots] == [f"{MINUTE}#{shard:02d}" for shard in range(8)] and len(units) == 4
    assert [len(sent.of(job)) for job in jobs] == [1] * 40
    assert all(stage.jobs.canary_visible(unit.key, unit.slots[0]) for unit in units[1:])
    assert all(unit.handed_out_at is not None for unit in units)


@pytest.mark.parametrize("step", [0, 1, 40])
def test_a_unit_with_more_jobs_than_fit_is_read_in_parts(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`step`: ms from one job to the next; 0: all are due at one instant."""
    monkeypatch.setattr("scheduler.pipeline.slot_pages.MOST", 100)
    whole, held = Publisher.plan, list[int]()

    def plan(publisher: Publisher, entries: Sequence[DueEntry]) -> None:
        whole(publisher, entries)
        held.append(len(publisher.waiting()))

    monkeypatch.setattr(Publisher, "plan", plan)
    jobs = [a_job(due_at=NOW + 1_000 + number * step) for number in range(350)]
    stage, sent = unit_of(*jobs, now=NOW - WAKE_MS)
    stage.jobs = Wrapped(stage.jobs, due=paged(50))
    reads = stage.jobs

    def publish(verb: Any, messages: Sequence[Message]) -> Any:
        answer = sent.publish(messages)
        reads._port.withdraw([single.key for message in messages for single in message.singles()])  # they have run
        return answer

    stage.lanes = Wrapped(stage.lanes._port, publish=publish)
    stage.dispatch_all(UNIT)
    assert {message.key for message, _ in sent.messages} == {job.key for job in jobs}
    assert stage.ledger.unit(UNIT).handed_out_at is not None and 50 <= max(held) <= 100


def test_jobs_beyond_what_fits_leave_on_time_while_the_first_ones_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.pipeline.slot_pages.MOST", 20)
    jobs = [a_job(due_at=NOW + number * 500) for number in range(100)]  # none of them ends: all stay in their slot
    stage, sent = unit_of(*jobs, now=NOW - WAKE_MS)
    stage.jobs = Wrapped(stage.jobs, due=paged(10))
    stage.dispatch_all(UNIT)
    assert [len(sent.of(job)) for job in jobs] == [1] * 100
    assert max(sent.of(job)[0] - job.due_at for job in jobs) <= 0


def test_no_job_is_skipped_if_a_dispatcher_ends_before_it_has_read_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.pipeline.slot_pages.MOST", 40)
    many = [a_job(due_at=NOW + 1_000 + number * 200, slot=f"{MINUTE}#00") for number in range(60)]
    few = [a_job(due_at=NOW + number * 5_000, slot=f"{MINUTE}#01") for number in range(12)]  # read whole, up to the end of the minute
    stage, sent = unit_of(*many, *few, now=NOW - WAKE_MS)
    unit = stage.ledger.unit(UNIT)
    stage.ledger.change_unit(unit, replace(unit, last_shard=1))
    stage.jobs = Wrapped(stage.jobs, due=paged(10))

    def publish(verb: Any, messages: Sequence[Message]) -> Any:
        answer = sent.publish(messages)
        if stage.clock.now() >= NOW + 22_000 and not died:
            died.append(1)
            raise Unavailable  # the dispatcher ends here ...
        return answer

    died: list[int] = []
    stage.lanes = Wrapped(stage.lanes._port, publish=publish)
    with pytest.raises(Unavailable):
        stage.dispatch_all(UNIT)
    stage.clock.advance(LEASE_MS)
    stage.dispatch_all(UNIT)  # ... and another one follows
    assert all(sent.of(job) for job in (*many, *few))
    assert max(sent.of(job)[0] - job.due_at for job in many) <= 0, "the jobs of one slot wait for none of another one"


def test_the_lease_is_renewed_between_the_pages_of_a_slow_read() -> None:
    stage, _ = unit_of(*[a_job(due_at=NOW + 30_000) for _ in range(40)])
    leases: list[int] = []
    pages = paged(5)

    def due(verb: Any, *args: Any, **more: Any) -> Any:
        leases.append(stage.ledger.unit(UNIT).lease_until - stage.clock.now())
        stage.clock.advance(3_000)
        return pages(verb, *args, **more)

    stage.jobs = Wrapped(stage.jobs, due=due)
    hidden: list[int] = []
    unit = stage.ledger.unit(UNIT)
    leased = replace(unit, epoch=1, lease_until=stage.clock.now() + LEASE_MS)
    stage.ledger.change_unit(unit, leased)
    dispatch(UnitLease(leased, stage, lambda: hidden.append(stage.clock.now())))
    assert len(leases) >= 8 and min(leases) > LEASE_MS / 2
    assert len(hidden) >= 3


@pytest.mark.parametrize(
    ("loads", "most", "bounds"),
    [
        ([10] * 8, 8, [0, 2, 4, 6, 8]),
        ([10] * 8, 3, [0, 3, 5, 8]),  # parts wait for no step
        ([10] * 8, 1, [0, 8]),
        ([1] * 8, 8, [0, 8]),
        ([0, 0, 0], 3, [0, 3]),
        ([1, 1, 80, 1, 1], 5, [0, 2, 3, 5]),  # a full slot gets a dispatcher of its own
        ([80], 1, [0, 1]),
    ],
)
def test_a_unit_is_split_by_the_load_of_its_slots(loads: list[int], most: int, bounds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.pipeline.dispatch.SPLIT", 20)
    assert parts_of(loads, most=most) == bounds


@pytest.mark.parametrize("step", [0, 1])
def test_a_job_behind_the_crowd_of_another_user_leaves_on_time(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.pipeline.slot_pages.MOST", 60)
    crowd = [a_job(due_at=NOW + 1_000 + number * step) for number in range(300)]
    other = a_job(owner="zoe", due_at=NOW + 1_500)
    stage, sent = unit_of(*crowd, other, now=NOW - WAKE_MS)
    stage.rules = replace(stage.rules, windows={Lane.ONE_TIME: 10})
    stage.jobs = Wrapped(stage.jobs, due=paged(20))
    reads = stage.jobs

    def publish(verb: Any, messages: Sequence[Message]) -> Any:
        answer = sent.publish(messages)
        reads._port.withdraw([single.key for message in messages for single in message.singles()])  # they have run
        return answer

    stage.lanes = Wrapped(stage.lanes._port, publish=publish)
    stage.dispatch_all(UNIT)
    assert len(sent.messages) == 301 and len(sent.of(other)) == 1 and sent.of(other)[0] - other.due_at <= 1_000


def test_jobs_that_were_not_read_yet_do_not_count_as_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slots are read for 15 s. A job that is due after all others leaves early, since each user gets a share of the lane."""
    monkeypatch.setattr("scheduler.pipeline.slot_pages.PIECES", 10_000)  # a page at a time
    crowd = [a_job(due_at=NOW + number, slot=f"{MINUTE}#00") for number in range(600)]
    other = a_job(owner="zoe", due_at=NOW + 1_000, slot=f"{MINUTE}#01")
    stage, sent = unit_of(*crowd, other, now=NOW + 2_000)
    stage.ledger.change_unit(unit := stage.ledger.unit(UNIT), replace(unit, last_shard=1))
    stage.rules = replace(stage.rules, windows={Lane.ONE_TIME: 10})
    pages, real, ends = paged(20), stage.jobs, list[int]()

    def due(verb: Any, *args: Any, **more: Any) -> Any:
        stage.clock.advance(500)
        return pages(verb, *args, **more)

    def publish(verb: Any, messages: Sequence[Message]) -> Any:
        answer = sent.publish(messages)
        real.withdraw([single.key for message in messages for single in message.singles()])  # they have run
        ends.append(stage.clock.now())
        return answer

    stage.jobs, stage.lanes = Wrapped(real, due=due), Wrapped(stage.lanes._port, publish=publish)
    stage.dispatch_all(UNIT)
    assert len(sent.messages) == 601 and sent.of(other)[0] - NOW < 5_000
    assert max(later - end for end, later in itertools.pairwise(ends)) <= 2_500


# the lease


@pytest.mark.parametrize("fields", [{"handed_out_at": NOW}, {"lease_until": NOW + 99_000}])
def test_a_second_invocation_for_a_unit_does_nothing(fields: dict[str, int]) -> None:
    stage, sent = unit_of(a_job(due_at=NOW + 1_000), **fields)
    assert stage.dispatch_all(UNIT).published == 0 and not sent.messages


def test_an_unknown_unit_cannot_be_leased() -> None:
    stage, _ = unit_of()
    assert not stage.dispatch(UnitKey(MINUTE, 7)).handed_out


def test_the_lease_is_renewed_with_the_progress() -> None:
    jobs = [a_job(due_at=NOW + offset) for offset in range(0, 52_000, 4_000)]
    stage, _ = unit_of(*jobs, now=NOW - WAKE_MS)
    kept: list[Unit] = []

    def change(verb: Any, before: Unit, after: Unit) -> Any:
        kept.append(after)
        return verb(before, after)

    stage.ledger = Wrapped(stage.ledger, change_unit=change)
    stage.dispatch_all(UNIT)
    leases = [unit.lease_until for unit in kept[:-1]]
    assert all(later - earlier <= LEASE_MS for earlier, later in itertools.pairwise(leases))
    assert [unit.progress for unit in kept] == sorted(unit.progress for unit in kept) and kept[-2].progress > NOW
    assert len({unit.epoch for unit in kept}) == 1


def test_a_dispatcher_that_lost_its_unit_stops() -> None:
    jobs = [a_job(due_at=NOW + 20_000), a_job(due_at=NOW + 50_000)]
    stage, sent = unit_of(*jobs)

    def publish(verb: Any, messages: Sequence[Message]) -> Any:
        unit = stage.ledger.unit(UNIT)
        stage.ledger.change_unit(unit, replace(unit, epoch=unit.epoch + 1))  # another dispatcher took over
        return sent.publish(messages)

    stage.lanes = Wrapped(stage.lanes, publish=publish)
    assert not stage.dispatch_all(UNIT).handed_out
    assert sent.of(jobs[0]) and not sent.of(jobs[1])
    assert stage.ledger.unit(UNIT).handed_out_at is None


def test_a_successor_dispatcher_does_not_publish_published_jobs_again() -> None:
    done, left = a_job(due_at=NOW + 10_000), a_job(due_at=NOW + 40_000)
    stage, sent = unit_of(done, left, now=NOW + 12_000, progress=NOW + 40_000)
    stage.dispatch_all(UNIT)
    assert len(sent.of(left)) == 1 and sent.of(done) == []


def test_a_dispatcher_without_work_parks_and_the_next_one_is_in_time() -> None:
    jobs = [a_job(due_at=NOW + offset) for offset in (1_000, 5_000, 40_000)]
    stage, sent = unit_of(*jobs)
    assert not stage.dispatch(UNIT).handed_out and stage.clock.now() == NOW - 30_000
    stage.clock.at = stage.ledger.unit(UNIT).next_at
    first = stage.dispatch(UNIT)
    unit = stage.ledger.unit(UNIT)
    assert (first.published, first.handed_out, stage.clock.now() - NOW < 5_000) == (2, False, True)
    assert (unit.lease_until, unit.progress, unit.resting) == (0, NOW + 40_000, 0)
    leaves = NOW + 40_000 - stage.rules.lead_ms
    assert unit.next_at == pytest.approx(leaves - WAKE_MS, abs=50)
    assert unit.next_at - stage.clock.now() >= PARK_MS - WAKE_MS
    stage.clock.at = unit.next_at
    assert stage.dispatch(UNIT).handed_out
    assert [len(sent.of(job)) for job in jobs] == [1, 1, 1] and sent.of(jobs[2])[0] <= leaves


def test_a_hidden_job_is_found_though_the_first_dispatcher_parked() -> None:
    """The first read shows a late job only, so its dispatcher parks; the second one must look for earlier jobs as well."""
    hidden, seen = a_job(due_at=NOW + 10_000), a_job(due_at=NOW + 40_000)
    stage, sent = unit_of(seen)
    stage.dispatch(UNIT)
    stage.jobs.put(hidden)
    stage.clock.at = stage.ledger.unit(UNIT).next_at
    stage.dispatch_all(UNIT)
    assert sent.of(hidden) == [pytest.approx(NOW + 10_000 - stage.rules.lead_ms, abs=120)] and len(sent.of(seen)) == 1


# refusals


def refusing(stage: Stage, sent: Sent, until: int) -> None:
    """Refuse every message until this instant."""
    stage.lanes = Wrapped(stage.lanes, publish=lambda _, messages: [*messages] if stage.clock.now() < until else sent.publish(messages))


@pytest.mark.parametrize("away_ms", [900, 20_000, 50_000])
def test_refused_messages_are_sent_as_soon_as_the_topic_takes_them(away_ms: int) -> None:
    due = (1_000, 1_000, 30_000)
    jobs = [a_job(due_at=NOW + at) for at in due]
    stage, sent = unit_of(*jobs)
    refusing(stage, sent, NOW + away_ms)
    assert stage.dispatch_all(UNIT).handed_out
    late = [sent.of(job)[0] - max(NOW + at, NOW + away_ms) for job, at in zip(jobs, due, strict=True)]
    assert len(sent.messages) == 3 and max(late) <= REFUSED_MS[-1]


def test_jobs_refused_beyond_their_minute_leave_by_a_later_dispatcher() -> None:
    job = a_job(due_at=NOW + 1_000)
    stage, sent = unit_of(job, now=NOW - 3_000)
    refusing(stage, sent, NOW + 600_000)
    result = stage.dispatch(UNIT)
    assert (result.published, result.handed_out) == (0, False) and result.refused > 10
    unit = stage.ledger.unit(UNIT)
    assert unit is not None and unit.next_at - stage.clock.now() == REFUSED_MS[-1] and unit.progress <= job.due_at
    assert slots.MINUTE <= stage.clock.now() - NOW < slots.MINUTE + 5_000
    assert stage.dispatch_all(UNIT).handed_out and sent.of(job)[0] - (NOW + 600_000) <= 2 * REFUSED_MS[-1]


def test_refused_messages_are_among_the_progress_until_they_are_sent() -> None:
    jobs = [a_job(due_at=NOW + at) for at in (1_000, 40_000)]
    stage, sent = unit_of(*jobs)
    refusing(stage, sent, NOW + 30_000)
    seen: list[int] = []
    stage.ledger = Wrapped(stage.ledger, change_unit=lambda verb, old, new: (seen.append(new.progress), verb(old, new))[1])
    stage.dispatch_all(UNIT)
    assert len(sent.messages) == 2 and seen and max(each for each in seen if each < NOW + 40_000) <= NOW + 1_000


def test_a_partial_refusal_is_repeated_at_once() -> None:
    job = a_job(due_at=NOW + 1_000)
    stage, sent = unit_of(job)
    stage.lanes = Wrapped(stage.lanes, publish=times(1, lambda verb, messages: list(messages)))
    assert stage.dispatch_all(UNIT).refused == 0
    assert len(sent.of(job)) == 1


def test_a_service_that_refuses_leaves_the_unit_to_the_next_dispatcher() -> None:
    stage, sent = unit_of(a_job(due_at=NOW + 1_000))
    good = stage.jobs
    stage.jobs = Wrapped(good, due=refuse)
    with pytest.raises(Unavailable):
        stage.dispatch_all(UNIT)
    stage.jobs = good
    stage.clock.advance(LEASE_MS)
    assert stage.dispatch_all(UNIT).handed_out and len(sent.messages) == 1
