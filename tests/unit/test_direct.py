"""The direct path, its limits, and the overflow with its dispatcher for a flood of immediate jobs."""

from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import pytest

from scheduler.model import slots
from scheduler.model.backlog import Backlog, Demand
from scheduler.model.errors import Unavailable
from scheduler.model.job import Claim, Job, JobKey, Lane, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec, Ordering
from scheduler.model.work import WorkItem
from scheduler.pipeline import direct_path as service
from scheduler.pipeline import leftover
from scheduler.pipeline.lag import lag
from scheduler.pipeline.overflow import EMPTY_MS, IDLE_MS, READ_AGAIN_MS
from scheduler.pipeline.overflow_units import WIDTH, unit_of, want
from scheduler.pipeline.submit import NewJob, submit
from scheduler.pipeline.tick import LOST_MS
from tests.conftest import NOW, a_job
from tests.unit.stage import Stage, Wrapped, refuse

BURST = 5
OVERFLOW = UnitKey(slots.OVERFLOW, 0)


def a_stage(**rules: Any) -> Stage:
    return Stage(rules=Rules(**{"shards": 2, "direct_burst": BURST, "direct_rate": 2, **rules}))


def post(stage: Stage, direct: service.DirectPath, count: int, execute_at: int | None = None, owner: str = "ann") -> list[Job]:
    requests = [NewJob(owner, JobSpec("log", {"message": "hello"}), execute_at)] * count
    made = stage.post(*requests, direct=direct)
    return [job for job in made if job is not None]


def in_intake(jobs: list[Job]) -> list[Job]:
    return [job for job in jobs if slots.is_overflow(job.slot or "")]


def sent(stage: Stage) -> int:
    """The number of jobs in the messages of the lane."""
    return sum(len(queued.message.singles()) for queued in stage.lanes.queues[Lane.ONE_TIME].values())


# the direct path


def test_a_few_jobs_take_the_direct_path_and_read_nothing() -> None:
    stage = a_stage()
    stage.ledger = Wrapped(stage.ledger, open_unit=refuse, backlogs=refuse)
    assert not in_intake(post(stage, stage.direct(), BURST)) and not stage.asked
    assert sent(stage) == BURST


def end(stage: Stage, *jobs: Job) -> None:
    for job in jobs:
        stage.jobs._store(job, replace(job, slot=None, completed_at=stage.clock.now()))


def test_jobs_beyond_a_few_messages_go_to_the_overflow() -> None:
    stage = a_stage(direct_burst=1_000)
    direct = stage.direct()
    jobs = post(stage, direct, 200)
    assert len(in_intake(jobs)) == 150 and sent(stage) == 50 and len(stage.lanes.queues[Lane.ONE_TIME]) == 2
    assert [len(in_intake(post(stage, direct, 1))) for _ in range(3)] == [0, 0, 1], "two messages more"
    assert stage.asked == [WorkItem.of_unit(OVERFLOW)]


def test_a_message_goes_directly_once_an_earlier_one_has_ended() -> None:
    stage = a_stage(direct_burst=1_000)
    direct = stage.direct()
    jobs = [job for _ in range(5) for job in post(stage, direct, 1)]
    assert in_intake(jobs) == jobs[-1:]
    stage.clock.advance(60_000)
    assert in_intake(post(stage, direct, 1)), "no job has ended"
    end(stage, jobs[0])
    stage.clock.advance(service.SELDOM_MS)
    assert len(in_intake(post(stage, direct, 12))) == 2, "one message more, of ten jobs"


def test_the_jobs_under_way_are_read_seldom_while_none_ends() -> None:
    stage = a_stage(direct_burst=1_000)
    direct, reads = stage.direct(), list[int]()
    for _ in range(service.FEW):
        post(stage, direct, 1)
    stage.jobs = Wrapped(stage.jobs, get_many=lambda verb, keys: (reads.append(len(keys)), verb(keys))[1])
    direct.ports = stage
    for _ in range(1_000):
        post(stage, direct, 1)
        stage.clock.advance(10)
    assert len(reads) < 20 and set(reads) == {service.FEW}


@pytest.mark.parametrize("broken", [False, True])
def test_a_job_that_cannot_be_read_is_under_way(broken: bool) -> None:
    stage = a_stage(direct_burst=1_000)
    direct = stage.direct()
    for _ in range(service.FEW):
        end(stage, *post(stage, direct, 1))
    stage.clock.advance(service.ASK_MS)
    direct.ports = stage.but(jobs=Wrapped(stage.jobs, get_many=refuse)) if broken else stage
    assert len(in_intake(post(stage, direct, 1))) == broken


def test_quick_jobs_posted_one_by_one_go_on_directly() -> None:
    stage = a_stage(direct_burst=1_000)
    direct = stage.direct()
    for _ in range(100):
        (job,) = post(stage, direct, 1)
        assert not in_intake([job])
        stage.clock.advance(20)
        end(stage, job)


def test_a_larger_lane_takes_more_messages_directly() -> None:
    stage = a_stage(direct_burst=1_000, windows={Lane.ONE_TIME: 7_000})
    direct = stage.direct()
    assert len(in_intake([job for _ in range(20) for job in post(stage, direct, 1)])) == 10


@pytest.mark.parametrize(("apart_ms", "direct"), [(1_000, service.FEW), (2_000, 5)])
def test_jobs_due_later_go_directly_if_few_are_due_in_a_span(apart_ms: int, direct: int) -> None:
    """Whether they are long is known only when they run."""
    stage = a_stage(direct_burst=1_000)
    path = stage.direct()
    jobs = [job for number in range(5) for job in post(stage, path, 1, NOW + 30_000 + number * apart_ms)]
    assert len(jobs) - len(in_intake(jobs)) == direct


def test_the_soonest_jobs_of_a_call_keep_the_direct_path() -> None:
    stage = a_stage()
    direct = stage.direct()
    made = stage.post(*[NewJob("ann", JobSpec("log", {}), NOW + number * 10_000) for number in range(10, 0, -1)], direct=direct)
    assert [slots.is_overflow(job.slot or "") for job in made if job is not None] == [True] * 5 + [False] * 5
    assert not in_intake(post(stage, direct, 50, NOW + 3_600_000))


@pytest.mark.parametrize("ahead", [10_000, 100_000])
def test_a_crowd_goes_to_the_overflow_as_a_whole(ahead: int) -> None:
    stage = a_stage()
    direct = stage.direct()
    crowd = post(stage, direct, BURST + 1, NOW + ahead)
    assert in_intake(crowd) == crowd
    assert not in_intake(post(stage, direct, BURST, NOW + 1_000)), "it takes no tokens"


def test_each_user_has_a_bucket_that_fills_up_again() -> None:
    stage = a_stage()
    direct = stage.direct()
    post(stage, direct, 20)
    assert not in_intake(post(stage, direct, BURST, owner="ben"))
    stage.clock.advance(1_000)
    assert len(in_intake(post(stage, direct, 10))) == 8


def test_a_user_with_a_backlog_has_no_direct_path() -> None:
    stage = Stage()
    waits = {"ann": Demand(1.0, 50)}
    stage.ledger.report_backlog(Backlog(UnitKey("2026-11-20T10:01", 0), Lane.ONE_TIME, NOW, 0, 0.0, waits))
    direct = stage.direct()
    assert not in_intake(post(stage, direct, 1)), "a sporadic job reads no backlogs"
    assert len(in_intake(post(stage, direct, 1))) == 1
    assert not in_intake(post(stage, direct, 1, owner="ben") + post(stage, direct, 1, owner="ben"))
    stage.clock.advance(service.SEEN_MS)
    stage.ledger.report_backlog(Backlog(UnitKey("2026-11-20T10:01", 0), Lane.ONE_TIME, stage.clock.now(), 0, 0.0, waits))
    assert not in_intake(post(stage, direct, 1)), "a first job after some quiet time is sporadic again"


def test_without_the_ledger_all_jobs_take_the_direct_path() -> None:
    stage = a_stage()
    stage.ledger = Wrapped(stage.ledger, open_unit=refuse, backlogs=refuse)
    jobs = post(stage, stage.direct(), 30)
    assert not in_intake(jobs) and sent(stage) == 30


def test_one_retry_of_a_user_is_sent_directly_in_ten_seconds() -> None:
    stage = a_stage()
    direct = stage.direct()

    def retry(*ids: str, owner: str = "ann") -> bool:
        soon = [a_job(id=id, owner=owner, lane=Lane.RETRY, slot="2026-11-20T10:09#00") for id in ids]
        return not in_intake(direct.place(soon, stage.clock.now()))

    assert retry("1") and not retry("2") and retry("3", owner="ben")
    stage.clock.advance(service.RETRY_MS - 1)
    assert not retry("4")
    stage.clock.advance(1)
    assert not retry("5", "6"), "two retries together pass through the fair queue"
    assert retry("7")


def test_the_tick_starts_an_overflow_that_could_not_be_started() -> None:
    stage = a_stage()
    direct = service.DirectPath(stage.but(work=Wrapped(stage.work, send=refuse)))
    assert len(in_intake(post(stage, direct, 20))) == 15 and not stage.asked
    stage.clock.advance(IDLE_MS + LOST_MS + 1)
    stage.tick()
    assert WorkItem.of_unit(OVERFLOW) in stage.asked


def test_the_overflow_is_not_started_while_a_dispatcher_is_at_work() -> None:
    stage = a_stage()
    post(stage, stage.direct(), 20)
    unit = stage.ledger.unit(OVERFLOW)
    stage.ledger.change_unit(unit, replace(unit, lease_until=NOW + IDLE_MS * 2))
    stage.work.queued.clear()
    post(stage, stage.direct(), 20)  # another process
    stage.clock.advance(IDLE_MS + LOST_MS + 1)
    stage.tick()
    assert WorkItem.of_unit(OVERFLOW) not in stage.asked


def test_a_flood_is_divided_among_several_units() -> None:
    stage = Stage(rules=Rules(shards=2 * WIDTH + 1, direct_burst=0, direct_rate=0))
    post(stage, stage.direct(), 300)
    units = stage.ledger.overflow_units()
    assert [slot for unit in units for slot in unit.slots] == [f"{slots.OVERFLOW}#{shard:02d}" for shard in range(2 * WIDTH + 1)]
    assert sorted(stage.asked) == [WorkItem.of_unit(unit.key) for unit in units] and len(units) == 3
    assert unit_of(f"{slots.OVERFLOW}#{WIDTH:02d}", 2 * WIDTH + 1).key == units[1].key


def test_jobs_of_one_ordering_key_are_spread_over_the_overflow() -> None:
    stage = Stage(rules=Rules(shards=16, direct_burst=0, direct_rate=0))
    made = stage.post(*[NewJob("ann", JobSpec("log", {}, ordering=Ordering("a")))] * 50, direct=stage.direct())
    assert len({job.slot for job in made if job is not None}) > 8


def test_a_single_job_counts_for_the_bucket() -> None:
    stage = a_stage()
    direct = stage.direct()
    made = [submit(NewJob("ann", JobSpec("log", {})), stage, random=n, direct=direct) for n in range(service.FEW + 1)]
    assert [slots.is_overflow(job.slot or "") for job in made] == [False] * service.FEW + [True]


# the dispatcher of the overflow


class Working(Stage):
    """A stage whose lanes settle every job as soon as it is published, unless it is one of `stuck`."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(rules=Rules(shards=2, direct_burst=0, direct_rate=0, **rules))
        self.stuck: set[str] = set()
        self.sent: list[tuple[str, int]] = []
        self.lanes = Wrapped(self.lanes, publish=self.publish, backlog=lambda verb, lane: len(self.stuck))

    def publish(self, verb: Any, messages: Any) -> Any:
        for message in (single for pack in messages for single in pack.singles()):
            self.sent.append((message.key.id, self.clock.at))
            job = self.stored(message.key)
            if job.id not in self.stuck:
                self.jobs._store(job, replace(job, slot=None, completed_at=self.clock.at))
        return []


@pytest.fixture
def stage() -> Working:
    return Working()


def test_the_overflow_publishes_in_time_and_ends_when_empty(stage: Working) -> None:
    now = [job.id for job in post(stage, stage.direct(), 3)]
    (soon,) = post(stage, stage.direct(), 1, NOW + 20_000)
    done = stage.dispatch(OVERFLOW)
    assert done.published == 4
    assert {id for id, at in stage.sent if at <= NOW + 100} == set(now)
    (left,) = [at for id, at in stage.sent if id == soon.id]
    assert 0 <= NOW + 20_000 - stage.rules.lead_ms - left <= 150
    assert stage.clock.at <= NOW + 20_000 + EMPTY_MS + 2_000
    assert stage.ledger.unit(OVERFLOW).lease_until == 0


def test_a_second_dispatcher_of_the_overflow_does_nothing(stage: Working) -> None:
    post(stage, stage.direct(), 3)
    unit = stage.ledger.unit(OVERFLOW)
    stage.ledger.change_unit(unit, replace(unit, lease_until=NOW + 1))
    assert stage.dispatch(OVERFLOW).published == 0


def test_the_next_look_finds_a_job_stored_while_the_lease_is_released(stage: Working) -> None:
    direct, late = stage.direct(), list[Job]()
    post(stage, direct, 1)

    def change(verb: Any, before: Any, after: Any) -> Any:
        if after.lease_until == 0 and not late:
            late.extend(post(stage, direct, 1))  # it finds the lease taken, and sends no work
        return verb(before, after)

    stage.ledger = Wrapped(stage.ledger, change_unit=change)
    assert stage.dispatch(OVERFLOW).published == 1 and len(late) == 1
    unit = stage.ledger.unit(OVERFLOW)
    assert unit.next_at - stage.clock.now() == READ_AGAIN_MS
    stage.clock.at = unit.next_at
    assert stage.dispatch(OVERFLOW).published == 1
    assert late[0].id in [id for id, _ in stage.sent]


def test_a_dispatcher_that_only_looks_keeps_no_job_waiting(stage: Working) -> None:
    """The job is stored after the look has read the slots, and before it leaves."""
    post(stage, stage.direct(), 1)
    stage.dispatch(OVERFLOW)
    stage.clock.at = stage.ledger.unit(OVERFLOW).next_at + IDLE_MS // 2  # the distance to the next look is half an hour by now
    late = list[Any]()

    def change(verb: Any, before: Any, after: Any) -> Any:
        if after.lease_until == 0 and not late:
            late.append(None)
            late[:] = post(stage, stage.direct(), 1, stage.clock.now() + 10_000)
        return verb(before, after)

    ledger = stage.ledger
    stage.ledger = Wrapped(ledger, change_unit=change)
    stage.work.queued.clear()
    assert stage.dispatch(OVERFLOW).published == 0 and late
    stage.ledger = ledger
    unit = stage.ledger.unit(OVERFLOW)
    assert unit.next_at <= stage.clock.now() and unit.handed_out_at is None and WorkItem.of_unit(OVERFLOW) in stage.asked
    assert stage.dispatch(OVERFLOW).published == 1 and late[0].id in [id for id, _ in stage.sent]


def test_a_unit_wanted_while_a_worker_leases_it_is_not_only_looked_at(stage: Working) -> None:
    """The worker has read the unit before a process marks it, and leases it afterwards."""
    post(stage, stage.direct(), 1)
    stage.dispatch(OVERFLOW)
    stage.clock.at = stage.ledger.unit(OVERFLOW).next_at + IDLE_MS // 2
    marked = list[bool]()

    def change(verb: Any, before: Any, after: Any) -> Any:
        if after.lease_until > stage.clock.now() and not marked:
            marked.append(True)
            stage.ledger = ledger
            marked.append(want(unit_of(f"{slots.OVERFLOW}#00", 2), stage, stage.clock.now()))
        return verb(before, after)

    ledger = stage.ledger
    stage.ledger = Wrapped(ledger, change_unit=change)
    stage.dispatch(OVERFLOW)
    unit = stage.ledger.unit(OVERFLOW)
    assert marked == [True, False] and unit.handed_out_at is None and unit.next_at <= stage.clock.now()


def test_an_empty_unit_is_looked_at_with_growing_distance(stage: Working) -> None:
    """Each look is one read. A job that the index shows late therefore starts at most twice as late, and a few seconds."""
    post(stage, stage.direct(), 1)
    stage.dispatch(OVERFLOW)
    began, looks = stage.clock.now() - EMPTY_MS, list[int]()
    for _ in range(14):
        unit = stage.ledger.unit(OVERFLOW)
        looks.append(unit.next_at - began)
        stage.clock.at = unit.next_at
        assert stage.dispatch(OVERFLOW).published == 0 and stage.clock.now() == unit.next_at
    assert looks[:4] == [5_000, 9_000, 17_000, 33_000] and looks[-1] - looks[-2] == IDLE_MS
    assert all(later <= 2 * earlier for earlier, later in pairwise(looks))


def test_a_process_marks_the_unit_before_it_stores_the_jobs(stage: Working) -> None:
    post(stage, stage.direct(), 1)
    stage.dispatch(OVERFLOW)
    stage.clock.advance(IDLE_MS // 2)
    now, seen = stage.clock.now(), list[Any]()
    stage.jobs = Wrapped(stage.jobs, put_many=lambda verb, jobs: (seen.append(stage.ledger.unit(OVERFLOW)), verb(jobs))[1])
    post(stage, stage.direct(), 2)
    assert [(unit.next_at, unit.handed_out_at) for unit in seen] == [(now, None)]


def test_jobs_beside_a_flood_are_published_in_fair_order() -> None:
    stage = Working(windows={Lane.ONE_TIME: 10})
    direct = stage.direct()
    flood = post(stage, direct, 200)
    others = post(stage, direct, 5, owner="ben")
    stage.dispatch(OVERFLOW)
    places = [id for id, _ in stage.sent]
    assert max(places.index(job.id) for job in others) < 25 and len(places) == len(flood) + 5


@pytest.mark.parametrize("query_ms", [10, 17, 66, 200, 1_000])
def test_slow_reads_of_the_overflow_keep_no_job_from_leaving(query_ms: int) -> None:
    """64 shards; to read the slots of a unit takes longer than the time between two reads, from 125 ms a query on."""
    stage = Stage(rules=Rules(shards=64, direct_burst=0, direct_rate=0))
    jobs, sent = {job.key for job in post(stage, stage.direct(), 200)}, set[JobKey]()
    real = stage.jobs

    def publish(verb: Any, messages: Any) -> Any:
        keys = [single.key for message in messages for single in message.singles()]
        sent.update(keys)
        real.withdraw(keys)  # they have run
        return []

    def due(verb: Any, *args: Any, **more: Any) -> Any:
        stage.clock.advance(query_ms)
        return verb(*args, **more)

    stage.jobs, stage.lanes = Wrapped(real, due=due), Wrapped(stage.lanes, publish=publish)
    for item in stage.asked:
        stage.dispatch(UnitKey(item.of, int(item.part)))
    assert sent == jobs and stage.clock.now() - NOW <= 64 * 4 * query_ms + 60_000


class Died(BaseException):
    """The process of a worker ends."""


def test_jobs_of_a_dead_dispatcher_of_the_overflow_leave_17_s_later() -> None:
    """No tick is needed. 300 jobs of one user for one instant, at which their dispatcher is killed."""
    stage = Stage(rules=Rules(shards=2, direct_burst=50, direct_rate=25, windows={Lane.ONE_TIME: 20_000}))  # all of them fit
    due_at = NOW + 10_000
    jobs = {job.id for job in in_intake(post(stage, stage.direct(), 300, due_at))}
    sent: dict[str, int] = {}

    def publish(verb: Any, messages: Any) -> Any:
        if not sent and stage.clock.now() < due_at + 10_000:
            raise Died
        sent.update({single.key.id: stage.clock.now() for message in messages for single in message.singles()})
        return []

    stage.lanes = Wrapped(stage.lanes, publish=publish)
    with pytest.raises(Died):
        stage.work_off(until=due_at)
    died_at = stage.clock.now()
    stage.work_off(until=died_at + 18_000)
    assert sent.keys() == jobs and len(jobs) == 300
    assert died_at < due_at and max(sent.values()) - died_at <= 17_000


def test_lanes_polled_together_share_one_read() -> None:
    stage = Working(windows={Lane.ONE_TIME: 10, Lane.RECURRING: 10})
    jobs, reads = post(stage, stage.direct(), 200), list[int]()
    for job in jobs[::2]:
        stage.jobs._store(job, replace(stage.stored(job), lane=Lane.RECURRING))
    slot = jobs[0].slot

    def due(verb: Any, of: str, **after: Any) -> Any:
        if of == slot:
            reads.append(stage.clock.at)
        return verb(of, **after)

    stage.jobs = Wrapped(stage.jobs, due=due)
    assert stage.dispatch(OVERFLOW).published == 200
    assert 3 <= len(reads) <= 8 and min(later - read for read, later in pairwise(reads)) >= 1_000


def test_jobs_read_while_planning_was_refused_are_planned_later() -> None:
    stage, came, refused = Working(windows={Lane.ONE_TIME: 10}), list[Job](), list[int]()
    stage.stuck = {job.id for job in post(stage, stage.direct(), 30)}

    def backlog(verb: Any, lane: Lane) -> int:
        if not came:
            came.extend(post(stage, stage.direct(), 1, NOW + 5_000))
            stage.jobs._store(came[0], replace(stage.stored(came[0]), lane=Lane.RECURRING))
        return 0

    def latency(verb: Any, lane: Lane, since: int, **how: Any) -> Any:
        if lane is Lane.RECURRING and not refused:
            refused.append(stage.clock.at)
            raise Unavailable
        return verb(lane, since, **how)

    stage.lanes, stage.ledger = Wrapped(stage.lanes, backlog=backlog), Wrapped(stage.ledger, latency=latency)
    stage.dispatch(OVERFLOW)
    (sent_at,) = [at for id, at in stage.sent if id == came[0].id]
    assert refused and sent_at <= NOW + 5_000


def test_a_job_sent_long_ago_is_reconciled_and_moves_to_a_minute(stage: Working) -> None:
    lost, _ = post(stage, stage.direct(), 2)
    stage.stuck.add(lost.id)
    done = stage.dispatch(OVERFLOW)
    assert done.published == 2
    moved = stage.stored(lost)
    assert not slots.is_overflow(moved.slot or "") and moved.looks == 1
    assert leftover.RECHECK_AFTER <= stage.clock.at - NOW <= leftover.RECHECK_AFTER + 10_000
    assert stage.waiting(Lane.ONE_TIME) == [lost.id]


def test_a_lost_job_is_reconciled_in_time_under_a_flood() -> None:
    stage = Working(windows={Lane.ONE_TIME: 10})
    flood, moved_at = {job.id: job for job in post(stage, stage.direct(), 800)}, list[int]()
    stage.stuck = set(flood)
    at_work = (flood[id] for number, (id, _) in enumerate(stage.sent) if number)  # the first one is lost

    def backlog(verb: Any, lane: Lane) -> int:
        """Two jobs finish between two polls: all of them take longer than the time until the lost job is reconciled."""
        for job in islice(at_work, 2):
            stage.jobs._store(stage.stored(job), replace(stage.stored(job), slot=None, completed_at=stage.clock.at))
        if not slots.is_overflow(stage.stored(flood[stage.sent[0][0]]).slot or ""):
            moved_at.append(stage.clock.at)
        return 0

    stage.lanes = Wrapped(stage.lanes, backlog=backlog)
    stage.dispatch(OVERFLOW)
    assert stage.clock.at - NOW > leftover.RECHECK_AFTER + 60_000
    assert leftover.RECHECK_AFTER <= moved_at[0] - NOW <= leftover.RECHECK_AFTER + 2_000


def test_a_job_that_waited_for_a_dead_one_in_the_overflow_goes_on(stage: Working) -> None:
    requests = [NewJob("ann", JobSpec("log", {}, timeout_ms=1_000, ordering=Ordering("line")))] * 2
    first, second = stage.post(*requests, direct=stage.direct())
    assert first is not None and second is not None
    stage.stuck.add(first.id)
    claim = Claim("m", "nonce", NOW, alone=True)
    stage.jobs._store(first, replace(stage.stored(first), claim=claim, cancel_requested_at=NOW))
    stage.jobs._store(second, replace(stage.stored(second), fence=2, slot=slots.place(NOW, NOW, second.id, 2).slot))  # it waits
    stage.dispatch(OVERFLOW)
    assert stage.stored(first).cancelled_at is not None
    assert stage.waiting(Lane.ONE_TIME) == [second.id]


def test_the_oldest_job_in_the_overflow_counts_as_lag() -> None:
    stage = Working(windows={Lane.ONE_TIME: 1})
    stage.stuck = {job.id for job in post(stage, stage.direct(), 5)}
    ledger, seen = stage.ledger, list[int]()

    def change(verb: Any, before: Any, after: Any) -> Any:
        seen.append(lag(ledger, stage.clock.at).ms)
        return verb(before, after)

    stage.ledger = Wrapped(ledger, change_unit=change)
    stage.dispatch(OVERFLOW)
    assert max(seen) > 30_000


def test_a_finished_overflow_has_no_lag(stage: Working) -> None:
    post(stage, stage.direct(), 5)
    stage.dispatch(OVERFLOW)
    stage.clock.advance(600_000)
    assert lag(stage.ledger, stage.clock.at).ms == 0
