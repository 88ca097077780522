"""Waiting rooms: which jobs of a paused lane go there, that nothing polls them, and how they leave after the resume."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.admission.lane_state import REFRESH_MS, LaneStateCache, pause, resume
from scheduler.jobs.cancel import cancel
from scheduler.jobs.change import reschedule
from scheduler.model import lifecycle, slots
from scheduler.model.job import Claim, Cursor, Job, Lane, Message, Packed, Result, Status, Unit, UnitKey, changed
from scheduler.model.rules import Rules
from scheduler.model.work import WorkItem
from scheduler.pipeline import leftover, waiting_room
from scheduler.pipeline.delivery import LEASE_MS
from scheduler.pipeline.overflow import EMPTY_MS, READ_MS
from scheduler.pipeline.overflow_units import open_unit, unit_of, units_of
from scheduler.pipeline.tick import wake_rooms
from scheduler.storage.ports import Written
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times

ROOM = UnitKey(slots.room_of(Lane.ONE_TIME), 0)
SECOND_MS = 1_000


class Room(Stage):
    """A stage with one shard and paused lanes (default: all), and the times at which jobs were published."""

    def __init__(self, *lanes: Lane, **rules: Any) -> None:
        super().__init__(rules=Rules(shards=1, **rules))
        self.ledger.advance(None, Cursor("2026-11-20T10:00", 1))
        self.published: list[tuple[str, int]] = []
        self.lanes = Wrapped(self.lanes, publish=self._publish)
        pause(lanes or tuple(Lane), None, self)

    def _publish(self, verb: Callable[..., Any], messages: Any) -> Any:
        self.published += [(single.key.id, self.clock.now()) for each in messages for single in each.singles()]
        self.jobs.withdraw([single.key for each in messages for single in each.singles()])  # an executor has run it
        return []

    def resume(self, *lanes: Lane) -> None:
        resume(lanes or tuple(Lane), None, self)

    def room(self, job: Job) -> str:
        return slots.waiting(job.lane, job.id, self.rules.shards)

    def come(self, *jobs: Job, process: LaneStateCache | None = None, **ports: Any) -> list[str]:
        """Deliver the messages of these jobs to an executor. Returns the ids of the messages that stay in the lane."""
        return self.execute(self.hand(*jobs), lane=jobs[0].lane, **ports)

    def stored_in(self, job: Job) -> str | None:
        return self.stored(job).slot


# who goes there


def test_a_job_whose_message_comes_in_a_pause_moves_to_the_room() -> None:
    stage, job = Room(), a_job()
    assert stage.come(job) == []
    assert stage.stored(job) == changed(job, slot=stage.room(job))


def test_jobs_of_a_pack_and_jobs_that_are_due_later_go_there_too() -> None:
    stage, jobs = Room(), [a_job(due_at=NOW + second * SECOND_MS) for second in (0, 5, 50)]
    for job in jobs:
        stage.jobs.put(job)
    more = tuple(Packed(job.key, job.fence, job.due_at) for job in jobs[1:])
    stage.lanes.add(Message.of(jobs[0], NOW)._replace(more=more), NOW)
    assert stage.execute(stage.receive()) == []
    assert [stage.stored_in(job) for job in jobs] == [stage.room(job) for job in jobs]


@pytest.mark.parametrize("kind", ["ended", "other fence", "deleted", "there already"])
def test_a_message_that_moves_no_job_is_forgotten(kind: str) -> None:
    stage, job = Room(), a_job()
    (item,) = stage.hand(job)
    after = {
        "ended": lambda: stage.jobs.withdraw([job.key]),
        "deleted": lambda: stage.jobs.rows.pop(job.key),
        "other fence": lambda: stage.jobs.rows.update({job.key: changed(job, fence=2)}),
        "there already": lambda: stage.jobs.rows.update({job.key: changed(job, slot=stage.room(job))}),
    }[kind]
    after()
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: pytest.fail("wrote") if changes else [])
    assert stage.execute([item]) == []


def test_a_job_that_the_table_refuses_to_move_is_tried_again() -> None:
    stage, job = Room(), a_job()
    (item,) = stage.hand(job)
    refused = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED] * len(changes), claim=refuse)
    assert stage.execute([item], jobs=refused) == [item.message_id]
    assert stage.stored(job) == job


def test_no_message_is_forgotten_while_the_table_cannot_be_read() -> None:
    stage, job = Room(), a_job()
    (item,) = stage.hand(job)
    assert stage.execute([item], jobs=Wrapped(stage.jobs, outlines=refuse, claim=refuse)) == [item.message_id]


def test_a_job_whose_executor_died_is_taken_back_in_a_pause() -> None:
    stage, job = Room(), a_job()
    (item,) = stage.hand(job)
    stage.claim(item)
    stage.clock.advance(LEASE_MS)
    assert stage.execute([item]) == []
    assert (stage.stored(job).lane, stage.stored(job).claim) == (Lane.RETRY, None)
    assert stage.waiting(Lane.RETRY) == [job.id]


def test_a_job_runs_if_its_lane_is_resumed_while_it_is_moved() -> None:
    """The dispatcher of the room may have left by then."""
    stage, job = Room(), a_job()

    def change(verb: Any, changes: Any) -> Any:
        stage.resume()
        return verb(changes)

    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(job), jobs=Wrapped(stage.jobs, change=times(1, change)), pool=pool)
    assert [started.id for started, _ in pool.starts] == [job.id] and stage.stored(job).completed_at is not None


def test_a_claimed_job_is_sent_again_if_its_lane_is_resumed_in_between() -> None:
    stage, job = Room(Lane.RETRY), a_job(due_at=NOW + 3_000)

    def claim(verb: Any, requests: Any) -> Any:
        pause([Lane.ONE_TIME], None, stage)
        return verb(requests)

    def change(verb: Any, changes: Any) -> Any:
        stage.resume()
        return verb(changes)

    stage.execute(stage.hand(job), jobs=Wrapped(stage.jobs, claim=claim, change=times(1, change)))
    assert (stage.stored_in(job), stage.waiting(Lane.ONE_TIME)) == (stage.room(job), [job.id])


def test_an_old_read_of_a_pause_sends_no_job_away() -> None:
    stage, job = Room(), a_job()
    states = LaneStateCache(stage)
    assert states.is_paused(Lane.ONE_TIME)
    stage.clock.advance(REFRESH_MS // 2)
    stage.resume()
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(job), pauses=states, pool=pool)
    assert len(pool.starts) == 1


def test_jobs_in_the_overflow_go_to_the_room_and_its_dispatcher_ends() -> None:
    stage, job, other = Room(Lane.ONE_TIME), a_job(), a_job(lane=Lane.RECURRING)
    unit = unit_of(slots.overflow("x", 1), 1)
    open_unit(unit, stage, NOW)
    for each in (job, other):
        stage.jobs.put(changed(each, slot=f"{slots.OVERFLOW}#00"))
    stage.work.send([WorkItem.of_unit(unit.key)])
    stage.work_off()
    assert stage.stored_in(job) == stage.room(job) and [key for key, _ in stage.published] == [other.id]
    assert stage.clock.now() <= NOW + EMPTY_MS + 3 * READ_MS
    left = stage.ledger.unit(unit.key)
    assert left is not None and left.lease_until <= stage.clock.now(), "the dispatcher has left"


def test_jobs_in_the_flow_of_the_overflow_leave_it_in_a_pause() -> None:
    stage = Room(Lane.RETRY, windows={Lane.ONE_TIME: 2})
    jobs = [a_job() for _ in range(9)]
    unit = unit_of(slots.overflow("x", 1), 1)
    open_unit(unit, stage, NOW)
    for job in jobs:
        stage.jobs.put(changed(job, slot=f"{slots.OVERFLOW}#00"))
    stage.lanes = Wrapped(stage.lanes, publish=lambda verb, messages: (pause([Lane.ONE_TIME], None, stage), [])[1])
    stage.work.send([WorkItem.of_unit(unit.key)])
    stage.work_off(until=NOW + 10 * SECOND_MS)
    moved = [job for job in jobs if stage.stored_in(job) == stage.room(job)]
    assert len(moved) >= len(jobs) - 3


def test_a_job_of_the_overflow_stays_there_if_the_table_refuses_to_move_it() -> None:
    stage, job = Room(Lane.ONE_TIME), a_job()
    unit = unit_of(slots.overflow("x", 1), 1)
    open_unit(unit, stage, NOW)
    stage.jobs.put(changed(job, slot=f"{slots.OVERFLOW}#00"))
    tries: list[int] = []

    def change(verb: Any, changes: Any) -> Any:
        tries.append(stage.clock.now())
        return [Written.REFUSED] * len(changes) if len(tries) < 4 else verb(changes)

    stage.jobs = Wrapped(stage.jobs, change=change)
    stage.work.send([WorkItem.of_unit(unit.key)])
    stage.work_off()
    assert stage.stored_in(job) == stage.room(job)
    assert all(later - earlier >= READ_MS for earlier, later in itertools.pairwise(tries))


# the pause


def test_nothing_polls_a_room_during_a_pause() -> None:
    stage = Room()
    stage.come(*[a_job() for _ in range(5)])
    reads: list[int] = []
    stage.jobs = Wrapped(stage.jobs, due=lambda verb, slot, **more: (reads.append(stage.clock.now()), verb(slot, **more))[1])
    for minute in range(120):
        stage.clock.at = NOW + minute * slots.MINUTE
        stage.tick()
        stage.work.queued = {each: item for each, item in stage.work.queued.items() if item.item.of == ROOM.minute}
        stage.work_off()
    assert reads == [] and stage.published == []


def test_a_tick_creates_the_units_of_the_rooms_of_paused_lanes() -> None:
    stage = Room(Lane.RETRY)
    stage.tick()
    assert [unit.key for unit in stage.ledger.overflow_units()] == [UnitKey(slots.room_of(Lane.RETRY), 0)]
    assert stage.ledger.open_units()[0].key.minute != slots.room_of(Lane.RETRY)


def test_the_rooms_of_a_stage_without_pauses_have_no_units() -> None:
    stage = Stage()
    stage.tick()
    assert stage.ledger.overflow_units() == []


def test_a_dispatcher_of_a_paused_room_ends_at_once_and_reads_no_slot() -> None:
    stage, job = Room(), a_job()
    stage.come(job)
    wake_rooms(stage, NOW)
    stage.jobs = Wrapped(stage.jobs, due=lambda verb, *_, **__: pytest.fail("read a slot"))
    stage.work.send([WorkItem.of_unit(ROOM)])
    stage.work_off()
    assert stage.clock.now() == NOW and stage.asked == []
    assert stage.ledger.unit(ROOM).next_at >= NOW + leftover.REST_MS


# the resume


@pytest.mark.parametrize("paused_ms", [1_000, 10_000, 60_000, 240_000, 1_800_000, 36_000_000])
def test_jobs_leave_the_room_oldest_first_when_their_lane_is_resumed(paused_ms: int) -> None:
    stage, jobs = Room(), [a_job(due_at=NOW + number) for number in range(5)]
    stage.come(*reversed(jobs))
    stage.clock.advance(paused_ms)
    stage.resume()
    stage.work_off()
    assert [key for key, _ in stage.published] == [job.id for job in jobs]
    assert {at for _, at in stage.published} == {NOW + paused_ms}


def test_the_next_tick_wakes_the_room_if_the_message_of_the_resume_is_lost() -> None:
    stage, job = Room(), a_job()
    stage.come(job)
    stage.clock.advance(600_000)
    stage.work, work = Wrapped(stage.work, send=lambda verb, items, **_: items), stage.work
    stage.resume()
    stage.work = work
    stage.clock.advance(40_000)
    stage.tick()
    stage.work_off()
    assert [key for key, _ in stage.published] == [job.id]


def test_only_the_resumed_lane_leaves_its_room() -> None:
    stage, job, still = Room(), a_job(), a_job(lane=Lane.RETRY)
    stage.come(job)
    stage.come(still)
    stage.resume(Lane.ONE_TIME)
    stage.work_off()
    assert [key for key, _ in stage.published] == [job.id] and stage.stored_in(still) == stage.room(still)


def test_a_job_that_arrives_just_after_the_resume_is_found() -> None:
    """Its mover read the state before the resume, or the index shows it late."""
    stage, job = Room(), a_job()
    stage.clock.advance(60_000)
    stage.resume()
    stage.work_off()
    stage.jobs.put(changed(job, slot=stage.room(job)))
    stage.work_off(until=stage.clock.now() + leftover.SKEW_MS + 2 * SECOND_MS)
    ((found, at),) = stage.published
    assert found == job.id and at <= NOW + 60_000 + 2 * SECOND_MS


def test_an_empty_room_is_read_for_seconds_after_a_resume_and_then_seldom() -> None:
    stage = Room()
    stage_jobs = stage.jobs
    stage.tick()
    stage.resume()
    reads: list[int] = []
    rooms = Wrapped(stage.jobs, due=lambda verb, slot, **more: (reads.append(stage.clock.now()), verb(slot, **more))[1])
    stage.jobs = Wrapped(rooms, due=lambda verb, slot, **more: verb(slot, **more) if ROOM.minute in slot else stage_jobs.due(slot, **more))
    stage.work_off(until=NOW + 10 * SECOND_MS)
    for minute in range(1, 10):
        stage.clock.at = max(stage.clock.at, NOW + minute * slots.MINUTE)
        stage.tick()
        stage.work_off(until=NOW + minute * slots.MINUTE + 10 * SECOND_MS)
    soon = [at for at in reads if at <= NOW + leftover.SKEW_MS + 2 * SECOND_MS]
    assert 3 <= len(soon) <= 7 and len(reads) == len(soon) + 1, "once more after five minutes"


def test_a_room_whose_lane_is_paused_again_rests_and_loses_nothing() -> None:
    stage = Room(windows={Lane.ONE_TIME: 2})
    jobs = [a_job(due_at=NOW + number) for number in range(6)]
    stage.come(*jobs)
    stage.lanes = Wrapped(stage.lanes, publish=lambda verb, messages: (pause(tuple(Lane), None, stage), [])[1])
    stage.resume()
    stage.work_off(until=NOW + 30 * SECOND_MS)
    assert stage.asked == [] and {stage.stored_in(job) for job in jobs} == {stage.room(jobs[0])}
    stage.lanes = Wrapped(stage.lanes, publish=stage._publish)
    stage.resume()
    stage.work_off(until=stage.clock.now() + 60 * SECOND_MS)
    assert sorted(key for key, _ in stage.published) == sorted(job.id for job in jobs)


def test_a_pause_that_the_dispatcher_missed_publishes_all_jobs_again() -> None:
    """Executors may have dropped what it had published."""
    stage, jobs = Room(), [a_job(due_at=NOW + number) for number in range(3)]
    stage.come(*jobs)
    stage.clock.advance(60_000)
    sent: list[tuple[str, int]] = []

    def publish(verb: Any, messages: Any) -> Any:
        sent.extend((single.key.id, stage.clock.now()) for each in messages for single in each.singles())
        if len(sent) == len(jobs):
            pause(tuple(Lane), None, stage)
            stage.clock.advance(100)
            stage.resume()
        else:
            stage.jobs.withdraw([job.key for job in jobs])
        return []

    stage.lanes = Wrapped(stage.lanes, publish=publish)
    stage.resume()
    stage.work_off(until=stage.clock.now() + 20 * SECOND_MS)
    assert sorted(key for key, _ in sent) == sorted([job.id for job in jobs] * 2)
    assert max(at for _, at in sent) <= NOW + 60_000 + 5 * SECOND_MS


def test_a_resume_between_the_read_of_the_state_and_the_rest_is_seen() -> None:
    stage, job = Room(), a_job()
    stage.come(job)
    wake_rooms(stage, NOW)
    good = stage.ledger

    def change_unit(verb: Any, before: Unit, after: Unit) -> bool:
        if after.next_at >= NOW + leftover.REST_MS:  # it is about to rest
            resume(tuple(Lane), None, stage.but(ledger=good, work=Wrapped(stage.work, send=lambda verb, items, **_: items)))
        return bool(verb(before, after))

    stage.ledger = Wrapped(good, change_unit=times(2, change_unit))
    stage.work.send([WorkItem.of_unit(ROOM)])
    stage.work_off(until=NOW + 5 * SECOND_MS)
    assert [key for key, _ in stage.published] == [job.id]


# what else can happen to a job there


def test_a_job_in_the_room_can_be_cancelled_and_changed() -> None:
    stage, jobs = Room(), [a_job(), a_job()]
    stage.come(*jobs)
    assert lifecycle.state(cancel(jobs[0].key, stage)) is Status.CANCELLED
    later = reschedule(jobs[1].key, {"scheduled_at": NOW + 7 * slots.MINUTE}, stage)
    assert slots.minute(later.slot or "") == slots.minute_of(NOW + 7 * slots.MINUTE)


def test_a_job_whose_expiry_passed_in_the_pause_is_skipped_after_it() -> None:
    stage, job = Room(), a_job(start_by=NOW + 30_000)
    stage.come(job)
    stage.clock.advance(60_000)
    stage.resume()
    stage.lanes = Wrapped(stage.lanes._port)
    stage.lanes.add(Message.of(stage.stored(job), stage.clock.now()), stage.clock.now())
    stage.execute(stage.receive(), pool=ScriptedPool(stage.clock, result=Result("done")))
    assert lifecycle.state(stage.stored(job)) is Status.SKIPPED


def test_a_job_in_a_room_without_units_is_swept() -> None:
    """The ledger was emptied."""
    stage, job = Stage(rules=Rules(shards=1)), a_job(due_at=NOW - 3_600_000)
    stage.jobs.put(changed(job, slot=slots.waiting(job.lane, job.id, 1)))
    stage.tick()
    stage.work_off()
    assert slots.is_safe(stage.stored(job).slot or "", NOW) and not slots.is_always_open(stage.stored(job).slot or "")


def test_entering_keeps_claimed_jobs_out() -> None:
    stage, free, busy = Room(), a_job(), a_job(claim=Claim("m1", "n1", NOW, False))
    for job in (free, busy):
        stage.jobs.put(job)
    assert waiting_room.enter({free.key: 1, busy.key: 1}, stage) == {free.key}
    assert stage.stored(busy) == busy


def test_the_units_of_a_room_cover_all_its_slots() -> None:
    for shards in (1, 8, 16, 20, 64):
        covered = [slot for unit in units_of(slots.room_of(Lane.RETRY), shards) for slot in unit.slots]
        assert covered == [f"paused-retry#{shard:02d}" for shard in range(shards)]
