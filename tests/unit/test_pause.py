"""Paused lanes: their stored states, the dispatcher and the tick during a pause, and the work after the resume."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission.lane_state import REFRESH_MS, TRUSTED_MS, LaneStateCache, pause, resume, states
from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Claim, Cursor, Job, Lane, LaneState, LaterCheck, Message, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.work import WorkItem
from scheduler.pipeline import leftover
from scheduler.pipeline.lag import Lag, lag
from scheduler.pipeline.tick import TickResult, wake_overdue
from scheduler.pipeline.unit_lease import UnitLease
from scheduler.storage.memory.stores import MemoryLedger
from scheduler.storage.ports import Written
from tests.conftest import NOW, FixedClock, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times

MINUTE = slots.minute_of(NOW)
UNIT = UnitKey(MINUTE, 0)
END = NOW + slots.MINUTE
RECHECK = END + leftover.RECHECK_AFTER


class Paused(Stage):
    """A stage with one shard, whose lanes can be paused; its ledger opens nothing by itself."""

    def __init__(self, *lanes: Lane, at: int = NOW - 30_000) -> None:
        super().__init__(rules=Rules(shards=1, windows=dict.fromkeys(Lane, 1_000)), clock=FixedClock(at))
        self.ledger.advance(None, Cursor("2026-11-25T00:00", 1))
        self.published: list[tuple[str, int]] = []
        good = self.lanes
        self.lanes = Wrapped(good, publish=self._publish)
        self.pause(*lanes)

    def _publish(self, verb: Any, messages: Sequence[Message]) -> Any:
        self.published += [(single.key.id, self.clock.now()) for message in messages for single in message.singles()]
        return verb(messages)

    def pause(self, *lanes: Lane) -> None:
        pause(lanes, None, self)

    def resume(self, *lanes: Lane) -> None:
        resume(lanes, None, self)

    def at(self, when: int, then: Any) -> None:
        """Call a function at an instant: during the sleep that reaches it."""
        plain = self.clock.sleep_until

        def sleep_until(until: int) -> None:
            if self.clock.at < when <= until:
                plain(when)
                then()
            plain(until)

        self.clock.sleep_until = sleep_until  # type: ignore[method-assign]
        self.stride = 500

    def drive(self, until: int = END + 1_000) -> None:
        """Send the unit's work, and carry out the steps that are due by then."""
        self.work.send([WorkItem.of_unit(UNIT)])
        self.work_off(until=until)

    def open(self, minute: str = MINUTE, *, handed_out_at: int | None = None, resting: int = 0) -> UnitKey:
        key = UnitKey(minute, 0)
        self.ledger.open_unit(Unit(key, 0, 0, handed_out_at=handed_out_at, next_at=handed_out_at or 0, resting=resting))
        self.jobs.put_canary(key, f"{minute}#00", NOW)
        return key

    def put(self, *jobs: Job) -> None:
        for job in jobs:
            assert self.jobs.put(job)

    def tick_at(self, now: int) -> TickResult:
        """Tick at this instant, and carry out the steps that are due before and after."""
        self.work_off(until=now)
        self.clock.at = max(now, self.clock.at)
        result = self.tick()
        self.work_off()
        return replace(result, lag_ms=lag(self.ledger, self.clock.at).ms, resting=lag(self.ledger, self.clock.at).resting)

    def is_open(self, minute: str = MINUTE) -> bool:
        return self.ledger.unit(UnitKey(minute, 0)) is not None

    def sent(self, lane: Lane = Lane.ONE_TIME) -> list[str]:
        """Return the ids of the messages in the lane in order of arrival; a second message of a job is listed, too."""
        return [single.key.id for queued in self.lanes.queues[lane].values() for single in queued.message.singles()]


# lane states


def test_a_lane_is_open_until_it_is_paused_and_again_after_its_resume(clock: FixedClock) -> None:
    ports = Stage(clock=clock)
    assert states(ports.ledger) == [LaneState(lane) for lane in Lane]
    paused = pause([Lane.RETRY], "the target is down", ports)
    assert paused == [LaneState(Lane.ONE_TIME), LaneState(Lane.RECURRING), LaneState(Lane.RETRY, NOW, None, "the target is down")]
    assert paused == states(ports.ledger)
    clock.advance(5_000)
    resumed = resume([Lane.RETRY], "it is up", ports)
    assert resumed[2] == LaneState(Lane.RETRY, resumed_at=NOW + 5_000, reason="it is up") and resumed == states(ports.ledger)


def test_a_second_pause_and_a_second_resume_change_no_times(clock: FixedClock) -> None:
    ports = Stage(clock=clock)
    once = pause(Lane, "why", ports)
    clock.advance(5_000)
    assert pause(Lane, None, ports) == once
    assert [state.paused_at for state in pause(Lane, "better why", ports)] == [NOW] * 3
    assert {state.reason for state in states(ports.ledger)} == {"better why"}
    resumed = resume(Lane, None, ports)
    clock.advance(5_000)
    assert resume(Lane, None, ports) == resumed


def test_a_lane_that_was_never_paused_is_not_resumed(clock: FixedClock) -> None:
    assert resume(Lane, None, Stage(clock=clock)) == [LaneState(lane) for lane in Lane]


# reading the states


def test_the_states_are_read_at_most_once_a_second(clock: FixedClock) -> None:
    reads: list[int] = []
    ports = Stage(clock=clock)
    ports.ledger = Wrapped(ports.ledger, watched=lambda verb: (reads.append(clock.now()), verb())[1])
    watch = LaneStateCache(ports)
    for _ in range(25):
        watch.refresh()
        clock.advance(100)
    assert reads == [NOW, NOW + REFRESH_MS, NOW + 2 * REFRESH_MS]


def test_a_read_reports_whether_the_paused_lanes_have_changed(clock: FixedClock) -> None:
    ports = Stage(clock=clock)
    watch = LaneStateCache(ports)
    seen = []
    for change in (None, pause, None, resume, None):
        if change:
            change([Lane.RETRY], None, ports)
        seen.append(watch.refresh())
        clock.advance(REFRESH_MS)
    assert seen == [False, True, False, True, False]


def test_states_never_read_are_read_again_at_once(clock: FixedClock) -> None:
    ports = Stage(clock=clock)
    pause([Lane.RETRY], None, ports)
    watch = LaneStateCache(ports.but(ledger=Wrapped(ports.ledger, watched=times(1))))
    with pytest.raises(Unavailable):
        watch.is_paused(Lane.RETRY)
    assert watch.is_paused(Lane.RETRY) and not watch.is_paused(Lane.ONE_TIME)


def test_while_the_ledger_refuses_the_last_known_states_apply(clock: FixedClock) -> None:
    ports = Stage(clock=clock)
    pause([Lane.RETRY], None, ports)
    watch = LaneStateCache(ports)
    watch.refresh()
    clock.advance(REFRESH_MS)
    ports.ledger = Wrapped(ports.ledger, watched=refuse)
    assert not watch.refresh()
    assert watch.paused == {Lane.RETRY} and (watch.read_at, watch.tried_at) == (NOW, NOW + REFRESH_MS)


def test_old_states_do_not_satisfy_a_caller_that_needs_fresh_ones(clock: FixedClock) -> None:
    """A warm executor was idle while a lane was paused, and its first read of the states is refused."""
    ports = Stage(clock=clock)
    watch = LaneStateCache(ports)
    watch.refresh()
    pause([Lane.RETRY], None, ports)
    ports.ledger = Wrapped(ports.ledger, watched=times(2))
    clock.advance(TRUSTED_MS)
    assert not watch.is_paused(Lane.RETRY, trust_ms=TRUSTED_MS)
    clock.advance(REFRESH_MS)
    with pytest.raises(Unavailable):
        watch.is_paused(Lane.RETRY, trust_ms=TRUSTED_MS)
    assert watch.is_paused(Lane.RETRY, trust_ms=TRUSTED_MS)


# dispatch


def test_no_job_of_a_paused_lane_is_published() -> None:
    stage = Paused(Lane.RETRY)
    still, goes = a_job(due_at=NOW + 10_000, lane=Lane.RETRY), a_job(due_at=NOW + 20_000)
    stage.put(still, goes)
    stage.open()
    result = stage.dispatch_all(UNIT)
    assert (result.left_paused, result.handed_out) == (1, True)
    assert {job for job, _ in stage.published} == {goes.id}
    assert END <= stage.clock.now() <= END + REFRESH_MS
    assert stage.stored(still) == still


@pytest.mark.usefixtures("dense")
def test_jobs_due_after_a_resume_within_the_minute_are_on_time() -> None:
    stage = Paused(*Lane)
    jobs = [a_job(due_at=NOW + second * 1_000) for second in (5, 1, 3, 40)]
    stage.put(*jobs)
    stage.open()
    stage.at(NOW + 20_000, lambda: stage.resume(*Lane))
    stage.drive()
    left = dict(stage.published)
    assert [job for job, _ in stage.published] == [jobs[1].id, jobs[2].id, jobs[0].id, jobs[3].id]
    assert all(NOW + 20_000 <= left[job.id] <= NOW + 20_000 + REFRESH_MS for job in jobs[:3])
    assert left[jobs[3].id] == pytest.approx(NOW + 40_000 - stage.rules.lead_ms, abs=50)


@pytest.mark.usefixtures("dense")
def test_a_pause_stops_jobs_that_leave_a_second_later() -> None:
    stage = Paused()
    jobs = [a_job(due_at=NOW + second * 1_000) for second in range(60)]
    stage.put(*jobs)
    stage.open()
    stage.at(NOW + 20_000, lambda: stage.pause(Lane.ONE_TIME))
    result = stage.dispatch_all(UNIT)
    assert all(at <= NOW + 20_000 + REFRESH_MS for _, at in stage.published)
    assert 20 <= result.published - stage.rules.lead_ms // 1_000 <= 22 and result.published + result.left_paused == 60


@pytest.mark.usefixtures("dense")
def test_a_short_pause_publishes_each_job_once_and_none_early() -> None:
    stage = Paused()
    jobs = [a_job(due_at=NOW + second * 1_000, lane=lane) for second in range(60) for lane in Lane]
    stage.put(*jobs)
    stage.open()
    for second in range(3, 50, 6):
        stage.at(NOW + second * 1_000 - 3_000, lambda: stage.pause(Lane.ONE_TIME, Lane.RETRY))
        stage.at(NOW + second * 1_000, lambda: stage.resume(*Lane))
    result = stage.dispatch_all(UNIT)
    assert (result.published, result.left_paused, result.handed_out) == (180, 0, True)
    assert sorted(job for job, _ in stage.published) == sorted(job.id for job in jobs)
    due = {job.id: job.due_at for job in jobs}
    assert all(at >= due[job] - stage.rules.hold_ms for job, at in stage.published)


def test_a_resume_at_the_end_of_the_minute_is_seen() -> None:
    stage = Paused(*Lane)
    stage.put(a_job(due_at=NOW))
    stage.open()
    stage.at(END - 1, lambda: stage.resume(*Lane))
    assert stage.dispatch_all(UNIT).published == 1


def test_an_overdue_unit_of_a_paused_lane_is_done_at_once() -> None:
    stage = Paused(*Lane, at=NOW + 3_600_000)
    stage.put(a_job(due_at=NOW))
    stage.open()
    result = stage.dispatch_all(UNIT)
    assert (result.published, result.left_paused, result.handed_out) == (0, 1, True)
    assert stage.clock.now() == NOW + 3_600_000


@pytest.mark.usefixtures("dense")
def test_a_dispatcher_that_holds_jobs_back_reports_its_progress() -> None:
    stage = Paused(Lane.RETRY)
    stage.put(a_job(due_at=NOW + 5_000, lane=Lane.RETRY), *[a_job(due_at=NOW + second * 1_000) for second in range(60)])
    stage.open()
    kept: list[Unit] = []
    stage.ledger = Wrapped(stage.ledger, change_unit=lambda verb, before, after: (kept.append(after), verb(before, after))[1])
    stage.dispatch_all(UNIT)
    assert len(kept) > 10 and max(unit.progress for unit in kept) <= NOW + 5_000


@pytest.mark.usefixtures("dense")
def test_a_dispatcher_with_nothing_to_publish_reads_no_states() -> None:
    stage = Paused()
    stage.put(a_job(due_at=NOW + 59_000))
    stage.open()
    reads: list[int] = []
    stage.ledger = Wrapped(stage.ledger, watched=lambda verb: (reads.append(stage.clock.now()), verb())[1])
    stage.dispatch_all(UNIT)
    assert len(reads) == 1


def test_a_dispatcher_without_states_publishes_on_time() -> None:
    for refused_from, published in ((0, 2), (1, 0)):
        stage = Paused(Lane.ONE_TIME)
        stage.put(a_job(due_at=NOW + 5_000), a_job(due_at=NOW + 8_000))
        stage.open()
        reads = [0]

        def watched(verb: Any, reads: list[int] = reads, refused_from: int = refused_from) -> Any:
            reads[0] += 1
            return refuse(verb) if reads[0] > refused_from else verb()

        stage.ledger = Wrapped(stage.ledger, watched=watched)
        stage.clock.at = NOW
        assert stage.dispatch(UNIT).published == published


# tick


def held_up(*lanes: Lane, jobs: int = 3, resting: int = END) -> tuple[Paused, list[Job]]:
    """A minute whose jobs were held back because all lanes (or these) are paused: its unit rests."""
    stage = Paused(*(lanes or Lane), at=NOW)
    made = [a_job(due_at=NOW + number) for number in range(jobs)]
    stage.put(*reversed(made))
    stage.open(handed_out_at=END, resting=resting)
    return stage, made


def test_jobs_of_a_paused_lane_keep_their_minute_open() -> None:
    stage, jobs = held_up()
    for minutes in range(1, 60):
        stage.tick_at(END + minutes * slots.MINUTE)
    assert stage.is_open()
    assert [stage.stored(job) for job in jobs] == jobs
    assert stage.sent() == []


def test_a_doubled_tick_leaves_jobs_of_a_paused_lane_alone() -> None:
    stage, jobs = held_up()
    stage.tick_at(RECHECK)
    stage.tick()
    assert [stage.stored(job) for job in jobs] == jobs


def test_only_the_paused_lane_waits() -> None:
    stage, jobs = held_up(Lane.RETRY, resting=0)
    still = a_job(due_at=NOW, lane=Lane.RETRY)
    stage.put(still)
    stage.tick_at(RECHECK)
    assert stage.is_open()
    assert stage.sent() == [job.id for job in jobs] and stage.sent(Lane.RETRY) == []
    assert stage.stored(still) == still


def test_a_minute_of_a_paused_lane_is_not_read_in_every_pass() -> None:
    stage, _ = held_up()
    reads: list[int] = []
    stage.jobs = Wrapped(stage.jobs, due=lambda verb, *args, **more: (reads.append(stage.clock.now()), verb(*args, **more))[1])
    for minutes in range(60):
        stage.tick_at(RECHECK + minutes * slots.MINUTE)
    assert len(reads) <= 2  # once when the minute is over, once when it is reconciled


def test_jobs_of_a_paused_lane_are_not_read_before_reconciling() -> None:
    stage, _ = held_up()
    stage.jobs = Wrapped(stage.jobs, get_many=lambda verb, keys: pytest.fail("read the jobs") if keys else {})
    stage.tick_at(END + 1_000)
    assert stage.is_open()


def test_a_minute_with_a_running_job_does_not_become_idle() -> None:
    stage, _ = held_up()
    stage.put(a_job(due_at=NOW, timeout_ms=800_000, claim=Claim("m1", "n1", NOW, True)))
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED] * len(changes))
    assert stage.tick_at(RECHECK).resting == 0


def test_a_dead_executors_job_is_enqueued_though_its_lane_is_paused() -> None:
    stage, _ = held_up()
    died = a_job(due_at=NOW, timeout_ms=1_000, claim=Claim("m1", "n1", NOW, True))
    runs = a_job(due_at=NOW, timeout_ms=800_000, claim=Claim("m2", "n2", NOW, True))
    stage.put(died, runs)
    stage.tick_at(RECHECK)
    assert stage.stored(died).lane is Lane.RETRY and stage.stored(died).claim is None
    assert stage.stored(runs).claim == runs.claim and stage.stored(runs).slot != runs.slot
    assert stage.sent(Lane.RETRY) == [died.id]  # an executor moves it to the waiting room


def test_a_minute_closes_when_its_waiting_jobs_were_cancelled() -> None:
    stage, jobs = held_up(jobs=1)
    stage.tick_at(RECHECK)
    stage.jobs.withdraw([jobs[0].key])
    stage.tick_at(RECHECK + leftover.REST_MS + slots.MINUTE)
    assert not stage.is_open()


def test_a_tick_without_states_closes_and_moves_nothing() -> None:
    stage, jobs = held_up()
    good = stage.ledger
    stage.ledger = Wrapped(good, watched=refuse)
    stage.clock.at = RECHECK
    with pytest.raises(Unavailable):
        stage.tick()  # it cannot read the lag
    stage.work_off()
    assert [stage.stored(job) for job in jobs] == jobs
    assert stage.is_open()


def test_a_later_check_moves_jobs_of_a_paused_lane() -> None:
    stage, jobs = held_up(jobs=1)
    unit = stage.ledger.unit(UNIT)
    assert stage.ledger.close_unit(unit, END, LaterCheck(unit, 0, END + leftover.CHECKS_MS[0]))
    stage.tick_at(END + leftover.CHECKS_MS[0])
    after = stage.stored(jobs[0])
    assert slots.is_safe(after.slot or "", END + leftover.CHECKS_MS[0]) and stage.sent() == []


# the lag


def test_a_minute_of_a_paused_lane_is_reported_and_is_no_lag() -> None:
    stage, _ = held_up()
    for minutes in range(60):
        result = stage.tick_at(RECHECK + minutes * slots.MINUTE)
        assert (result.lag_ms, result.resting, set(result.paused)) == (0, 1, set(Lane))
        assert lag(stage.ledger, stage.clock.now() + 45_000).ms == 0


def test_late_jobs_of_other_lanes_are_lag() -> None:
    stage, _ = held_up(Lane.ONE_TIME)
    stage.open(slots.minute_of(END))
    assert stage.tick_at(RECHECK).lag_ms >= leftover.RECHECK_AFTER - slots.MINUTE


def test_a_missing_tick_is_lag_even_in_a_pause() -> None:
    stage, _ = held_up()
    stage.tick_at(RECHECK)
    opened_to = slots.start_of(stage.ledger.cursor().minute)
    assert lag(stage.ledger, opened_to + 2 * leftover.REST_MS).ms > leftover.REST_MS


def test_after_the_resume_waiting_jobs_are_lag() -> None:
    stage, _ = held_up()
    stage.tick_at(RECHECK)
    stage.clock.advance(600_000)
    stage.resume(Lane.RETRY)
    assert wake_overdue(stage, stage.clock.now()) == 1
    assert lag(stage.ledger, stage.clock.now()) == Lag(MINUTE, 720_000, (Lane.ONE_TIME, Lane.RECURRING), 0)
    stage.work_off()
    assert lag(stage.ledger, stage.clock.now()).ms == 0  # its jobs wait for the other lanes


# after the resume


@pytest.mark.parametrize("handed_out_at", [None, NOW - 30_000])
def test_a_unit_that_was_leased_during_the_resume_is_due_at_once(handed_out_at: int | None) -> None:
    """The resume finds the lease, and leaves the unit out."""
    stage = Stage()
    since, key = NOW - 60_000, UnitKey(slots.minute_of(NOW - 120_000), 0)
    stage.ledger.open_unit(Unit(key, 0, 1, opened_at=NOW - 180_000, next_at=NOW))
    lease = UnitLease(stage.ledger.unit(key), stage)
    assert lease.change(lease_until=NOW + 15_000, resting=since, handed_out_at=handed_out_at)
    stage.ledger.set_lane_state(LaneState(Lane.RETRY, resumed_at=NOW - 10))
    assert wake_overdue(stage, NOW) == 0
    assert lease.rest(NOW + 60_000, since)
    unit = stage.ledger.unit(key)
    assert (unit.lease_until, unit.next_at, unit.resting, unit.handed_out_at) == (0, NOW, 0, None) and lease.unit == unit


def test_a_unit_rests_while_no_lane_is_resumed() -> None:
    stage = Stage()
    key = UnitKey(slots.minute_of(NOW), 0)
    stage.ledger.open_unit(Unit(key, 0, 1, opened_at=NOW, next_at=NOW))
    stage.ledger.set_lane_state(LaneState(Lane.RETRY, resumed_at=NOW - 60_000))
    lease = UnitLease(stage.ledger.unit(key), stage)
    for ledger in (stage.ledger, Wrapped(stage.ledger, watched=refuse)):
        lease.ports = stage.but(ledger=ledger)
        assert lease.rest(NOW + 60_000, NOW)
        assert (lease.unit.next_at, lease.unit.resting) == (NOW + 60_000, NOW)


def test_a_unit_of_two_paused_lanes_is_woken_once_by_the_resume_of_one() -> None:
    """Its dispatcher rests it again just after the resume: the clocks of the two may differ, so it is checked once more, not more often."""
    for resumed_before in (0, 1, leftover.SKEW_MS):
        stage, jobs = held_up()
        stage.put(a_job(due_at=NOW, lane=Lane.RETRY))
        stage.tick_at(RECHECK)
        stage.clock.advance(1_000)
        stage.resume(Lane.ONE_TIME)
        stage.clock.advance(resumed_before)
        for _ in range(5):
            stage.tick_at(stage.clock.at + 2_000)
        assert stage.sent()[:3] == [job.id for job in jobs] and len(stage.sent()) <= 2 * len(jobs)


@pytest.mark.parametrize("pause_ms", [1_000, 59_000, 121_000, 3_600_000, 86_400_000])
def test_after_the_resume_jobs_go_in_order_and_the_minute_closes(pause_ms: int) -> None:
    stage, jobs = held_up(jobs=25)
    for at in range(RECHECK, END + pause_ms, 10 * slots.MINUTE):
        stage.tick_at(at)
    stage.clock.at = END + pause_ms
    stage.resume(*Lane)
    stage.work_off()  # no tick: the resume itself sent the work
    assert stage.clock.now() < END + pause_ms + 1_000
    assert stage.sent() == [job.id for job in jobs]
    stage.jobs.withdraw([job.key for job in jobs])  # they have run
    stage.work_off(until=END + pause_ms + 10 * slots.MINUTE)
    assert not stage.is_open() and lag(stage.ledger, stage.clock.now()).ms == 0


def test_a_doubled_tick_after_the_resume_enqueues_no_job_twice() -> None:
    stage, jobs = held_up()
    stage.tick_at(RECHECK)
    stage.clock.advance(1_000)
    stage.resume(*Lane)
    stage.tick_at(stage.clock.at)
    stage.tick_at(stage.clock.at)
    assert stage.sent() == [job.id for job in jobs]


def test_many_minutes_are_worked_off_oldest_first_within_the_bound() -> None:
    stage = Paused(*Lane, at=NOW)
    stage.rules = Rules(shards=1, max_backlog=10)
    jobs = [a_job(due_at=NOW + number * 10_000) for number in range(60)]  # ten minutes of them
    stage.put(*reversed(jobs))
    for minute in sorted({slots.minute_of(job.due_at) for job in jobs}):
        stage.open(minute, handed_out_at=NOW + 11 * slots.MINUTE, resting=NOW + 11 * slots.MINUTE)
    stage.tick_at(NOW + 14 * slots.MINUTE)
    stage.clock.advance(1_000)
    at_work: list[int] = []

    def publish(verb: Any, messages: Sequence[Message]) -> Any:
        waits = [unit for unit in stage.ledger.open_units() if unit.handed_out_at is None and not unit.resting]
        at_work.append(len(waits))
        return verb(messages)

    stage.lanes = Wrapped(stage.lanes, publish=publish)
    stage.resume(*Lane)
    stage.work_off()
    assert stage.sent() == [job.id for job in jobs]
    assert max(at_work) == stage.rules.overdue_units and len(at_work) >= 10


def test_after_a_resume_a_lane_gets_at_most_its_capacity() -> None:
    stage, jobs = held_up(jobs=25)
    stage.rules = Rules(shards=1, windows={Lane.ONE_TIME: 10})
    stage.lanes = Wrapped(stage.lanes, backlog=lambda verb, lane: len(stage.sent()))
    stage.tick_at(RECHECK)
    stage.clock.advance(1_000)
    resumed_at, free_at = stage.clock.now(), stage.clock.now() + 20_000
    stage.at(free_at, lambda: (stage.lanes.queues[Lane.ONE_TIME].clear(), stage.jobs.withdraw([job.key for job in jobs[:10]])))
    stage.resume(*Lane)
    stage.work_off(until=resumed_at + 60_000)
    first = [job for job, at in stage.published if at < free_at]
    assert first == [job.id for job in jobs[:10]]
    assert [job for job, _ in stage.published][:20] == [job.id for job in jobs[:20]]


def test_a_resume_releases_only_the_jobs_of_its_lane() -> None:
    stage, jobs = held_up()
    still = a_job(due_at=NOW, lane=Lane.RETRY)
    stage.put(still)
    stage.tick_at(RECHECK)
    stage.clock.advance(1_000)
    stage.resume(Lane.ONE_TIME)
    stage.work_off()
    assert stage.is_open()
    assert stage.sent() == [job.id for job in jobs] and stage.stored(still) == still
    stage.jobs.withdraw([job.key for job in jobs])
    stage.clock.advance(600_000)
    stage.resume(Lane.RETRY)
    stage.work_off()
    assert stage.sent(Lane.RETRY) == [still.id]


def test_a_lane_paused_again_keeps_its_remaining_jobs() -> None:
    stage, jobs = held_up()
    stage.tick_at(RECHECK)
    stage.clock.advance(1_000)
    stage.resume(*Lane)
    stage.pause(*Lane)
    stage.tick()
    assert [stage.stored(job) for job in jobs] == jobs


def test_a_minute_that_ended_after_the_resume_is_reconciled_later() -> None:
    """Its dispatcher has published everything: a second message would only make work."""
    stage, jobs = held_up(resting=0)
    stage.clock.at = END - 1_001
    stage.resume(*Lane)
    stage.tick_at(RECHECK - 2_000)
    assert [stage.stored(job) for job in jobs] == jobs
    stage.tick_at(RECHECK)
    assert stage.sent() == [job.id for job in jobs]


def test_jobs_of_other_lanes_are_not_enqueued_by_the_resume() -> None:
    stage, jobs = held_up(Lane.RETRY, resting=0)
    stage.clock.at = END + 1_000
    stage.resume(Lane.RETRY)
    stage.work_off()
    assert stage.sent() == [] and [stage.stored(job) for job in jobs] == jobs


def test_each_job_is_published_once_from_pause_to_resume() -> None:
    """Ticks and dispatchers in time, with a pause of half an hour over jobs of an hour: before, during and after it."""
    stage = Paused(at=NOW - slots.MINUTE)
    stage.ledger = MemoryLedger()
    stage.ledger.advance(None, Cursor(MINUTE, 1))
    good, order = stage.lanes, list[str]()

    def publish(verb: Any, messages: Sequence[Message]) -> Any:
        order.extend(message.key.id for message in messages)
        stage.jobs.withdraw([message.key for message in messages])  # an executor has run it
        return []

    stage.lanes = Wrapped(good, publish=publish)
    jobs = [a_job(due_at=NOW + minute * slots.MINUTE + 30_000) for minute in range(60)]
    stage.put(*jobs)
    for minute in range(-1, 70):
        stage.clock.at = max(NOW + minute * slots.MINUTE, stage.clock.at)
        if minute == 10:
            stage.pause(*Lane)
        stage.tick()
        if minute == 40:
            stage.work_off(until=stage.clock.at + 5_000)
            stage.resume(*Lane)
        stage.work_off(until=NOW + (minute + 1) * slots.MINUTE)
    assert sorted(order) == sorted(job.id for job in jobs)
    late = [job.id for job in jobs[10:40]]
    assert [job for job in order if job in late] == late
    assert order.index(jobs[10].id) > order.index(jobs[9].id)
