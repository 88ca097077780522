"""Paused lanes: their stored states, the dispatcher and the tick during a pause, and the work after the resume."""

from collections.abc import Sequence
from typing import Any

import pytest

from scheduler.admission.lane_state import LOOK_MS, TRUSTED_MS, LaneStateCache, pause, resume, states
from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Claim, Cursor, Job, Lane, LaneState, LaterCheck, Message, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.pipeline import leftover
from scheduler.pipeline.lag import Lag, lag
from scheduler.pipeline.tick import Tick, TickResult
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
        super().__init__(rules=Rules(shards=1), clock=FixedClock(at))
        self.ledger.advance(None, Cursor("2026-11-25T00:00", 1))
        self.published: list[tuple[str, int]] = []
        good = self.lanes
        self.lanes = Wrapped(good, publish=self._publish)
        self.pause(*lanes)

    def _publish(self, verb: Any, messages: Sequence[Message]) -> Any:
        self.published += [(message.key.id, self.clock.now()) for message in messages]
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

    def open(self, minute: str = MINUTE, *, handed_out_at: int | None = None) -> UnitKey:
        key = UnitKey(minute, 0)
        self.ledger.open_unit(Unit(key, 0, 0, handed_out_at=handed_out_at))
        self.jobs.put_canary(key, f"{minute}#00", NOW)
        return key

    def put(self, *jobs: Job) -> None:
        for job in jobs:
            assert self.jobs.put(job)

    def tick_at(self, now: int) -> TickResult:
        assert now >= self.clock.at
        self.clock.at = now
        return self.tick()

    def sent(self, lane: Lane = Lane.ONE_TIME) -> list[str]:
        """Return the ids of the messages in the lane in order of arrival; a second message of a job is listed, too."""
        return [queued.message.key.id for queued in self.lanes.queues[lane].values()]


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
        watch.look()
        clock.advance(100)
    assert reads == [NOW, NOW + LOOK_MS, NOW + 2 * LOOK_MS]


def test_a_read_reports_whether_the_paused_lanes_have_changed(clock: FixedClock) -> None:
    ports = Stage(clock=clock)
    watch = LaneStateCache(ports)
    seen = []
    for change in (None, pause, None, resume, None):
        if change:
            change([Lane.RETRY], None, ports)
        seen.append(watch.look())
        clock.advance(LOOK_MS)
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
    watch.look()
    clock.advance(LOOK_MS)
    ports.ledger = Wrapped(ports.ledger, watched=refuse)
    assert not watch.look()
    assert watch.paused == {Lane.RETRY} and (watch.read_at, watch.tried_at) == (NOW, NOW + LOOK_MS)


def test_old_states_do_not_satisfy_a_caller_that_needs_fresh_ones(clock: FixedClock) -> None:
    """A warm executor was idle while a lane was paused, and its first read of the states is refused."""
    ports = Stage(clock=clock)
    watch = LaneStateCache(ports)
    watch.look()
    pause([Lane.RETRY], None, ports)
    ports.ledger = Wrapped(ports.ledger, watched=times(2))
    clock.advance(TRUSTED_MS)
    assert not watch.is_paused(Lane.RETRY, trust_ms=TRUSTED_MS)
    clock.advance(LOOK_MS)
    with pytest.raises(Unavailable):
        watch.is_paused(Lane.RETRY, trust_ms=TRUSTED_MS)
    assert watch.is_paused(Lane.RETRY, trust_ms=TRUSTED_MS)


# dispatch


def test_no_job_of_a_paused_lane_is_published() -> None:
    stage = Paused(Lane.RETRY)
    still, goes = a_job(due_at=NOW + 10_000, lane=Lane.RETRY), a_job(due_at=NOW + 20_000)
    stage.put(still, goes)
    stage.open()
    result = stage.dispatch(UNIT)
    assert (result.published, result.held_back, result.handed_out) == (1, 1, True)
    assert [job for job, _ in stage.published] == [goes.id]
    assert END <= stage.clock.now() <= END + LOOK_MS
    assert stage.stored(still) == still


def test_jobs_due_after_a_resume_within_the_minute_are_on_time() -> None:
    stage = Paused(*Lane)
    jobs = [a_job(due_at=NOW + second * 1_000) for second in (5, 1, 3, 40)]
    stage.put(*jobs)
    stage.open()
    stage.at(NOW + 20_000, lambda: stage.resume(*Lane))
    assert stage.dispatch(UNIT).published == 4
    left = dict(stage.published)
    assert [job for job, _ in stage.published] == [jobs[1].id, jobs[2].id, jobs[0].id, jobs[3].id]
    assert all(NOW + 20_000 <= left[job.id] <= NOW + 20_000 + LOOK_MS for job in jobs[:3])
    assert left[jobs[3].id] == pytest.approx(NOW + 39_500, abs=50)


def test_a_pause_stops_jobs_that_leave_a_second_later() -> None:
    stage = Paused()
    jobs = [a_job(due_at=NOW + second * 1_000) for second in range(60)]
    stage.put(*jobs)
    stage.open()
    stage.at(NOW + 20_000, lambda: stage.pause(Lane.ONE_TIME))
    result = stage.dispatch(UNIT)
    assert all(at <= NOW + 20_000 + LOOK_MS for _, at in stage.published)
    assert 20 <= result.published <= 22 and result.published + result.held_back == 60


def test_a_short_pause_publishes_each_job_once_and_none_early() -> None:
    stage = Paused()
    jobs = [a_job(due_at=NOW + second * 1_000, lane=lane) for second in range(60) for lane in Lane]
    stage.put(*jobs)
    stage.open()
    for second in range(3, 50, 6):
        stage.at(NOW + second * 1_000 - 3_000, lambda: stage.pause(Lane.ONE_TIME, Lane.RETRY))
        stage.at(NOW + second * 1_000, lambda: stage.resume(*Lane))
    result = stage.dispatch(UNIT)
    assert (result.published, result.held_back, result.handed_out) == (180, 0, True)
    assert sorted(job for job, _ in stage.published) == sorted(job.id for job in jobs)
    due = {job.id: job.due_at for job in jobs}
    assert all(at >= due[job] - stage.rules.hold_ms for job, at in stage.published)


def test_a_resume_at_the_end_of_the_minute_is_seen() -> None:
    stage = Paused(*Lane)
    stage.put(a_job(due_at=NOW))
    stage.open()
    stage.at(END - 1, lambda: stage.resume(*Lane))
    assert stage.dispatch(UNIT).published == 1


def test_an_overdue_unit_of_a_paused_lane_is_done_at_once() -> None:
    stage = Paused(*Lane, at=NOW + 3_600_000)
    stage.put(a_job(due_at=NOW))
    stage.open()
    result = stage.dispatch(UNIT)
    assert (result.published, result.held_back, result.handed_out) == (0, 1, True)
    assert stage.clock.now() == NOW + 3_600_000


def test_a_dispatcher_that_holds_jobs_back_reports_its_progress() -> None:
    stage = Paused(Lane.RETRY)
    stage.put(a_job(due_at=NOW + 5_000, lane=Lane.RETRY), *[a_job(due_at=NOW + second * 1_000) for second in range(60)])
    stage.open()
    kept: list[Unit] = []
    stage.ledger = Wrapped(stage.ledger, change_unit=lambda verb, before, after: (kept.append(after), verb(before, after))[1])
    stage.dispatch(UNIT)
    assert len(kept) > 10 and max(unit.progress for unit in kept) <= NOW + 5_000


def test_a_dispatcher_with_nothing_to_publish_reads_no_states() -> None:
    stage = Paused()
    stage.put(a_job(due_at=NOW + 59_000))
    stage.open()
    reads: list[int] = []
    stage.ledger = Wrapped(stage.ledger, watched=lambda verb: (reads.append(stage.clock.now()), verb())[1])
    stage.dispatch(UNIT)
    assert len(reads) == 1


def test_a_dispatcher_without_states_publishes_on_time() -> None:
    for refused_from, published in ((0, 2), (1, 0)):
        stage = Paused(Lane.ONE_TIME)
        stage.put(a_job(due_at=NOW + 5_000), a_job(due_at=NOW + 20_000))
        stage.open()
        reads = [0]

        def watched(verb: Any, reads: list[int] = reads, refused_from: int = refused_from) -> Any:
            reads[0] += 1
            return refuse(verb) if reads[0] > refused_from else verb()

        stage.ledger = Wrapped(stage.ledger, watched=watched)
        assert stage.dispatch(UNIT).published == published


# tick


def held_up(*lanes: Lane, jobs: int = 3) -> tuple[Paused, list[Job]]:
    """A minute whose jobs were held back because all lanes (or these) are paused."""
    stage = Paused(*(lanes or Lane), at=NOW)
    made = [a_job(due_at=NOW + number) for number in range(jobs)]
    stage.put(*reversed(made))
    stage.open(handed_out_at=END)
    return stage, made


def test_jobs_of_a_paused_lane_keep_their_minute_open() -> None:
    stage, jobs = held_up()
    for minutes in range(1, 60):
        assert stage.tick_at(END + minutes * slots.MINUTE).closed == 0
    assert [stage.stored(job) for job in jobs] == jobs
    assert stage.sent() == []


def test_a_doubled_tick_leaves_jobs_of_a_paused_lane_alone() -> None:
    stage, jobs = held_up()
    stage.tick_at(RECHECK)
    stage.tick()
    assert [stage.stored(job) for job in jobs] == jobs


def test_only_the_paused_lane_waits() -> None:
    stage, jobs = held_up(Lane.RETRY)
    still = a_job(due_at=NOW, lane=Lane.RETRY)
    stage.put(still)
    assert stage.tick_at(RECHECK).closed == 0
    assert stage.sent() == [job.id for job in jobs] and stage.sent(Lane.RETRY) == []
    assert stage.stored(still) == still


def test_a_minute_of_a_paused_lane_is_not_read_in_every_pass() -> None:
    stage, _ = held_up()
    reads: list[int] = []
    stage.jobs = Wrapped(stage.jobs, due=lambda verb, *args, **more: (reads.append(stage.clock.now()), verb(*args, **more))[1])
    for minutes in range(60):
        stage.tick_at(RECHECK + minutes * slots.MINUTE)
    assert 2 * 4 <= len(reads) <= 2 * 5  # each pass reads before and after


def test_jobs_of_a_paused_lane_are_not_read_before_reconciling() -> None:
    stage, _ = held_up()
    stage.open(slots.minute_of(NOW + 10 * slots.MINUTE))  # the tick stays for it
    stage.jobs = Wrapped(stage.jobs, get_many=lambda verb, keys: pytest.fail("read the jobs") if keys else {})
    assert stage.tick_at(END + 1_000).closed == 0


def test_a_minute_with_a_running_job_does_not_become_idle() -> None:
    stage, _ = held_up()
    stage.put(a_job(due_at=NOW, timeout_ms=800_000, claim=Claim("m1", "n1", NOW, True)))
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED] * len(changes))
    assert stage.tick_at(RECHECK).resting == 0


def test_a_dead_executors_job_of_a_paused_lane_is_not_enqueued() -> None:
    stage, _ = held_up()
    died = a_job(due_at=NOW, timeout_ms=1_000, claim=Claim("m1", "n1", NOW, True))
    runs = a_job(due_at=NOW, timeout_ms=800_000, claim=Claim("m2", "n2", NOW, True))
    stage.put(died, runs)
    stage.tick_at(RECHECK)
    assert stage.stored(died).lane is Lane.RETRY and stage.stored(died).claim is None
    assert stage.stored(runs).claim == runs.claim and stage.stored(runs).slot != runs.slot
    assert stage.sent(Lane.RETRY) == []


def test_a_minute_closes_when_its_waiting_jobs_were_cancelled() -> None:
    stage, jobs = held_up(jobs=1)
    stage.tick_at(RECHECK)
    stage.jobs.withdraw([jobs[0].key])
    closed = [stage.tick_at(RECHECK + minutes * slots.MINUTE).closed for minutes in range(1, 20)]
    assert sum(closed) == 1


def test_a_tick_without_states_closes_and_moves_nothing() -> None:
    stage, jobs = held_up()
    stage.ledger = Wrapped(stage.ledger, watched=times(1))
    stage.tick_at(RECHECK)
    assert [stage.stored(job) for job in jobs] == jobs
    stage.resume(*Lane)
    stage.ledger = Wrapped(stage.ledger, watched=times(1))
    stage.open(slots.minute_of(NOW + 10 * slots.MINUTE))  # it has a reason to stay
    assert stage.tick().closed == 1


def test_a_later_check_moves_jobs_of_a_paused_lane() -> None:
    stage, jobs = held_up(jobs=1)
    unit = stage.ledger.unit(UNIT)
    assert stage.ledger.close_unit(unit, END, LaterCheck(unit, 0, END + leftover.LOOKS[0]))
    stage.tick_at(END + leftover.LOOKS[0])
    after = stage.stored(jobs[0])
    assert slots.is_safe(after.slot or "", END + leftover.LOOKS[0]) and stage.sent() == []


# the lag


def test_a_minute_of_a_paused_lane_is_reported_and_is_no_lag() -> None:
    stage, _ = held_up()
    assert stage.tick_at(RECHECK - 1).lag_ms == leftover.RECHECK_AFTER - 1  # no tick has checked it yet
    for minutes in range(60):
        result = stage.tick_at(RECHECK + minutes * slots.MINUTE)
        assert (result.lag_ms, result.resting, set(result.paused)) == (0, 1, set(Lane))
        assert lag(stage.ledger, stage.clock.now() + 45_000).ms == 0


def test_late_jobs_of_other_lanes_are_lag() -> None:
    stage, _ = held_up(Lane.ONE_TIME)
    stage.open(slots.minute_of(END))
    assert stage.tick_at(RECHECK).lag_ms > leftover.RECHECK_AFTER - slots.MINUTE


def test_a_missing_tick_is_lag_even_in_a_pause() -> None:
    stage, _ = held_up()
    stage.tick_at(RECHECK)
    assert lag(stage.ledger, RECHECK + 2 * leftover.REST_MS).ms > leftover.REST_MS


def test_after_the_resume_waiting_jobs_are_lag() -> None:
    stage, _ = held_up()
    stage.tick_at(RECHECK)
    stage.clock.advance(600_000)
    stage.resume(Lane.RETRY)
    assert lag(stage.ledger, stage.clock.now()) == Lag(MINUTE, 720_000, (Lane.ONE_TIME, Lane.RECURRING), 0)
    assert stage.tick().lag_ms == 720_000  # the unit is idle again only after the resume is older than any clock skew
    stage.clock.advance(slots.MINUTE)
    assert stage.tick().lag_ms == 0


# after the resume


@pytest.mark.parametrize("pause_ms", [1_000, 59_000, 121_000, 3_600_000, 86_400_000])
def test_after_the_resume_jobs_go_in_order_and_the_minute_closes(pause_ms: int) -> None:
    stage, jobs = held_up(jobs=25)
    for at in range(RECHECK, END + pause_ms, 10 * slots.MINUTE):
        stage.tick_at(at)
    stage.clock.at = END + pause_ms
    stage.resume(*Lane)
    result = stage.tick()
    assert stage.clock.now() < END + pause_ms + 1_000
    assert stage.sent() == [job.id for job in jobs]
    assert (result.rechecked, result.closed, result.lag_ms) == (25, 1, 0)


def test_a_doubled_tick_after_the_resume_enqueues_no_job_twice() -> None:
    stage, jobs = held_up()
    stage.tick_at(RECHECK)
    stage.resume(*Lane)
    stage.tick()
    stage.tick()
    assert stage.sent() == [job.id for job in jobs]


def test_many_minutes_are_worked_off_oldest_first_within_the_bound() -> None:
    stage = Paused(*Lane, at=NOW)
    stage.rules = Rules(shards=1, max_backlog=10)
    jobs = [a_job(due_at=NOW + number * 10_000) for number in range(60)]  # ten minutes of them
    stage.put(*reversed(jobs))
    for minute in sorted({slots.minute_of(job.due_at) for job in jobs}):
        stage.open(minute, handed_out_at=NOW + 11 * slots.MINUTE)
    stage.tick_at(NOW + 14 * slots.MINUTE)
    stage.resume(*Lane)
    sizes: list[int] = []
    stage.lanes = Wrapped(stage.lanes, backlog=lambda verb, lane: (sizes.append(len(stage.sent())), 0)[1])
    result = stage.tick()
    assert (result.rechecked, result.closed) == (60, 10)
    assert stage.sent() == [job.id for job in jobs]
    assert sizes == [0, 10, 20, 30, 40, 50]


def test_jobs_of_a_resumed_lane_that_is_behind_stay() -> None:
    stage, jobs = held_up()
    stage.tick_at(RECHECK)
    stage.resume(*Lane)
    busy = [True]
    stage.lanes = Wrapped(stage.lanes, backlog=lambda verb, lane: 1_001 if busy[0] else 0)
    stage.tick()
    assert [stage.stored(job) for job in jobs] == jobs
    busy[0] = False
    assert stage.tick().closed == 1 and stage.sent() == [job.id for job in jobs]


def test_a_resume_releases_only_the_jobs_of_its_lane() -> None:
    stage, jobs = held_up()
    still = a_job(due_at=NOW, lane=Lane.RETRY)
    stage.put(still)
    stage.tick_at(RECHECK)
    stage.resume(Lane.ONE_TIME)
    assert stage.tick().closed == 0
    assert stage.sent() == [job.id for job in jobs] and stage.stored(still) == still
    stage.clock.advance(600_000)
    stage.resume(Lane.RETRY)
    assert stage.tick().closed == 1
    assert stage.sent(Lane.RETRY) == [still.id]


def test_a_lane_paused_again_keeps_its_remaining_jobs() -> None:
    stage, jobs = held_up()
    stage.tick_at(RECHECK)
    stage.resume(*Lane)
    stage.pause(*Lane)
    stage.tick()
    assert [stage.stored(job) for job in jobs] == jobs


def test_a_minute_that_ended_after_the_resume_is_reconciled_later() -> None:
    """Its dispatcher has published everything: a second message would only make work."""
    stage, jobs = held_up()
    stage.clock.at = END - leftover.RESUME_SLACK - 1
    stage.resume(*Lane)
    stage.tick_at(RECHECK - 1)
    assert [stage.stored(job) for job in jobs] == jobs
    stage.tick_at(RECHECK)
    assert stage.sent() == [job.id for job in jobs]


def test_jobs_of_other_lanes_are_not_enqueued_by_the_resume() -> None:
    stage, jobs = held_up(Lane.RETRY)
    stage.clock.at = END + 1_000
    stage.resume(Lane.RETRY)
    stage.tick()
    assert stage.sent() == [] and [stage.stored(job) for job in jobs] == jobs


def test_each_job_is_published_once_from_pause_to_resume() -> None:
    """Ticks and dispatchers as they come, a pause of half an hour over jobs of an hour: before, during and after it."""
    stage = Paused()
    jobs = [a_job(due_at=NOW + minute * slots.MINUTE + 30_000) for minute in range(60)]
    stage.put(*jobs)
    for minute in range(60):
        stage.open(slots.minute_of(NOW + minute * slots.MINUTE))
    resumed_at = NOW + 40 * slots.MINUTE + 5_000
    for minute in range(60):
        stage.clock.at = NOW + minute * slots.MINUTE
        if minute == 10:
            stage.pause(*Lane)
        if minute == 40:
            stage.at(resumed_at, lambda: stage.resume(*Lane))
        stage.dispatch(UnitKey(slots.minute_of(stage.clock.at), 0))
        for job in [job for job in jobs if job.id in stage.sent()]:
            stage.jobs.withdraw([job.key])  # an executor has run it
        Tick(stage)._pass()  # not staying for the minutes ahead
    order = stage.sent()
    assert sorted(order) == sorted(job.id for job in jobs)
    late = [job.id for job in jobs[10:40]]
    assert [job for job in order if job in late] == late
