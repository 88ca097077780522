"""A worker carries out the step that a message names: leases, hidden messages, doubled ones, deaths and failures."""

import itertools
import logging
from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission.lane_state import pause, resume
from scheduler.model import slots
from scheduler.model.errors import TooLarge, Unavailable
from scheduler.model.job import Cursor, JobKey, Lane, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.work import WorkDelivery, WorkItem, WorkKind
from scheduler.pipeline import leftover, worker
from scheduler.pipeline.tick import READY_MS
from scheduler.pipeline.unit_lease import LEASE_MS
from scheduler.pipeline.worker import AGAIN_MS, LONGEST_MS, VISIBLE_S, WorkResult
from scheduler.storage.ports import Change
from tests.conftest import NOW, FixedClock, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times

MINUTE = slots.minute_of(NOW)
UNIT = UnitKey(MINUTE, 0)
ITEM = WorkItem.of_unit(UNIT)
END = NOW + slots.MINUTE


def opened(*due: int, at: int = NOW - 60_000) -> Stage:
    """A stage with one open unit, whose message is in the queue."""
    stage = Stage(rules=Rules(shards=1))
    stage.clock.at = at
    for each in due:
        stage.jobs.put(a_job(due_at=each))
    stage.ledger.advance(None, Cursor("2026-11-21T00:00", 1))
    stage.ledger.open_unit(Unit(UNIT, 0, 0, opened_at=at, next_at=NOW - READY_MS))
    stage.jobs.put_canary(UNIT, f"{MINUTE}#00", NOW)
    stage.work.send([ITEM], delay_ms=NOW - READY_MS - at)
    return stage


def no_operation(*args: Any) -> int | None:
    raise AssertionError


def receive(stage: Stage) -> list[WorkDelivery]:
    return list(stage.work.receive(stage.clock.now()))


def do(stage: Stage, delivery: WorkDelivery) -> WorkResult:
    return worker.work(delivery, stage, operation=no_operation, group=no_operation, monitor=no_operation)


def test_one_message_drives_a_unit_from_opening_to_closing() -> None:
    stage = opened(NOW + 30_000)
    steps: list[int] = []
    stage.ledger = Wrapped(stage.ledger, unit=lambda verb, key: (steps.append(stage.clock.now()), verb(key))[1])
    (message,) = stage.work.queued
    for now in range(NOW - 20_000, END + 30_000, 1_000):
        stage.clock.at = max(now, stage.clock.at)
        stage.work_off()
        assert [*stage.work.queued] in ([message], [])
        for delivery in stage.receive():
            stage.jobs.withdraw([delivery.message.key])  # it has run
    assert stage.ledger.unit(UNIT) is None and not stage.work.queued
    assert len({*steps}) <= 8


def test_the_message_of_a_unit_is_hidden_until_its_next_step() -> None:
    stage = opened(NOW + 30_000)
    stage.clock.at = NOW - READY_MS
    (result,) = stage.work_off()
    unit = stage.ledger.unit(UNIT)
    (queued,) = stage.work.queued.values()
    assert result.next_at == unit.next_at > stage.clock.now()
    assert 0 <= unit.next_at - queued.visible_at < 1_000 and unit.message_id == queued.message_id


def test_a_second_message_is_deleted_and_the_driving_one_stays() -> None:
    stage = opened(NOW + 30_000)
    stage.clock.at = NOW - READY_MS
    stage.work_off()
    (driving,) = stage.work.queued
    stage.work.send([ITEM])
    stage.work_off()
    assert [*stage.work.queued] == [driving]
    (each,) = receive_hidden(stage, driving)
    early = do(stage, each)  # it is delivered again, though it was hidden
    assert early.next_at == stage.ledger.unit(UNIT).next_at


def receive_hidden(stage: Stage, message_id: str) -> list[WorkDelivery]:
    """Receive a message although it is hidden: SQS delivers at least once."""
    stage.work.queued[message_id].visible_at = stage.clock.now()
    return receive(stage)


def test_a_first_message_that_is_early_by_a_slow_clock_is_kept() -> None:
    stage = opened(NOW + 1_000)
    stage.clock.at = NOW - READY_MS
    (delivery,) = receive(stage)
    stage.clock.at -= 10_000  # the worker's clock
    result = do(stage, delivery)
    assert result.next_at == NOW - READY_MS and stage.ledger.unit(UNIT).lease_until == 0


def test_the_message_of_a_closed_unit_is_deleted() -> None:
    stage = Stage()
    stage.work.send([ITEM])
    assert stage.work_off() == [WorkResult()] and not stage.work.queued


def test_two_workers_with_two_messages_publish_each_job_once() -> None:
    stage = opened(NOW)
    stage.work.send([ITEM], delay_ms=NOW - READY_MS - stage.clock.now())
    stage.clock.at = NOW - 3_000
    first, second = receive(stage)
    results: list[WorkResult] = []
    good = stage.jobs

    def due(verb: Any, *args: Any, **more: Any) -> Any:
        stage.jobs = good
        results.append(do(stage, second))  # while the first one works
        return verb(*args, **more)

    stage.jobs = Wrapped(good, due=due)
    assert do(stage, first).published == 1
    assert results == [WorkResult()] and len(stage.receive()) == 1


class Died(BaseException):
    """The process of a worker ends."""


def test_a_worker_that_dies_is_followed_after_its_lease() -> None:
    stage = opened(NOW + 1_000)
    good = stage.jobs

    def die(verb: Any, *args: Any, **more: Any) -> Any:
        raise Died

    stage.jobs = Wrapped(good, due=die)
    died_at = stage.clock.at = NOW - READY_MS
    with pytest.raises(Died):
        stage.work_off()
    stage.jobs = good
    (queued,) = stage.work.queued.values()
    assert queued.visible_at == died_at + VISIBLE_S * 1_000 and VISIBLE_S * 1_000 > LEASE_MS
    stage.work_off(until=died_at + 17_000)
    assert LEASE_MS < stage.clock.now() - died_at <= 17_000 and len(stage.receive()) == 1


@pytest.mark.parametrize("error", [Unavailable, ValueError, KeyError, RecursionError])
def test_a_step_that_fails_in_any_way_is_tried_again(error: type[Exception], caplog: pytest.LogCaptureFixture) -> None:
    stage = opened(NOW + 1_000)

    def fails(verb: Any, *args: Any, **more: Any) -> Any:
        raise error

    stage.jobs = Wrapped(stage.jobs, due=times(1, fails))
    stage.clock.at = NOW - READY_MS
    (result,) = stage.work_off()
    assert result.failed and result.next_at == stage.clock.now() + AGAIN_MS
    (record,) = [record for record in caplog.records if record.message == "a step failed"]
    assert record.levelno == (logging.WARNING if error is Unavailable else logging.ERROR)
    stage.work_off(until=NOW + 2_000)
    ((message, at),) = [(each.message, each.message.sent_at) for each in stage.receive()]
    assert at <= message.due_at - stage.rules.lead_ms  # a failed first step makes no job late


def test_a_step_that_keeps_failing_is_tried_ever_more_rarely() -> None:
    stage = opened()
    stage.jobs = Wrapped(stage.jobs, due=lambda verb, *args, **more: 1 / 0)
    stage.clock.at = NOW
    pauses = []
    for count in (1, 2, 3, 50, 10_000):
        pauses.append((do(stage, WorkDelivery(ITEM, "w1", "w1/1", count)).next_at or 0) - stage.clock.now())
        stage.clock.advance(pauses[-1])
    assert pauses == [AGAIN_MS, 2 * AGAIN_MS, 4 * AGAIN_MS, LONGEST_MS, LONGEST_MS]


def test_a_step_of_one_unit_that_fails_harms_no_other() -> None:
    stage = opened(NOW)
    other = UnitKey(MINUTE, 1)
    stage.ledger.open_unit(Unit(other, 1, 1, next_at=NOW - READY_MS))
    stage.jobs.put(a_job(due_at=NOW, slot=f"{MINUTE}#01"))
    stage.jobs = Wrapped(stage.jobs, due=lambda verb, slot, **more: verb(slot, **more) if slot.endswith("01") else 1 / 0)
    stage.work.send([WorkItem.of_unit(other)])
    stage.clock.at = NOW - 2_000
    stage.work_off()
    assert len(stage.receive()) == 1


@pytest.mark.parametrize("error", [TooLarge, ValueError, KeyError])
def test_a_job_that_fails_each_call_stops_no_later_minute(error: type[Exception]) -> None:
    """One user's job that cannot be read or changed, for any error of the store, and thirty jobs of another user after it."""
    stage = Stage(rules=Rules(shards=1))
    stage.ledger.advance(None, Cursor(MINUTE, 1))
    bad = a_job(due_at=NOW, slot=f"{MINUTE}#00")
    dues = [NOW + number * slots.MINUTE + 30_000 for number in range(1, 31)]
    good = {(job := a_job(owner="ben", due_at=at, slot=f"{slots.minute_of(at)}#00")).key: job for at in dues}
    for job in (bad, *good.values()):
        stage.jobs.put(job)
    real, left_at = stage.jobs, dict[JobKey, int]()

    def fails(verb: Any, given: Any, *more: Any) -> Any:
        if any(bad.key == (each.before.key if isinstance(each, Change) else each) for each in given):
            raise error
        return verb(given, *more)

    def publish(verb: Any, messages: Any) -> Any:
        for message in messages:
            if message.key in good:
                left_at.setdefault(message.key, stage.clock.now())
                real.withdraw([message.key])  # it has run
        return []

    stage.jobs = Wrapped(real, **dict.fromkeys(("get_many", "outlines", "change"), fails))
    stage.lanes = Wrapped(stage.lanes, publish=publish)
    failed = 0
    for at in range(NOW - slots.MINUTE, dues[-1] + slots.MINUTE, slots.MINUTE):
        stage.clock.at = at
        failed += stage.tick().failed + sum(result.failed for result in stage.work_off(until=at + slots.MINUTE - 1))
    assert {key: at <= good[key].due_at for key, at in left_at.items()} == dict.fromkeys(good, True)
    assert failed > 5 and [unit.key for unit in stage.ledger.open_units() if unit.key.minute < slots.minute_of(dues[-1])] == [UNIT]


@pytest.mark.usefixtures("dense")
def test_a_worker_that_loses_its_unit_leaves_it_to_the_other() -> None:
    stage = opened(NOW + 1_000, NOW + 9_000)

    def publish(verb: Any, messages: Any) -> Any:
        unit = stage.ledger.unit(UNIT)
        if unit.epoch == 1:
            stage.ledger.change_unit(unit, replace(unit, epoch=2, message_id="other", lease_until=stage.clock.now() + LEASE_MS))
        return verb(messages)

    stage.lanes = Wrapped(stage.lanes, publish=publish)
    stage.clock.at = NOW - 2_000
    (result,) = stage.work_off()
    assert result.published == 1 and not result.failed
    unit = stage.ledger.unit(UNIT)
    assert (unit.epoch, unit.message_id) == (2, "other") and stage.clock.now() < (result.next_at or 0) <= unit.lease_until
    stage.clock.at = unit.lease_until - 2_000
    (queued,) = stage.work.queued
    (early,) = receive_hidden(stage, queued)
    assert do(stage, early) == WorkResult()  # and is deleted


def test_an_exception_while_the_lease_is_released_is_not_raised() -> None:
    stage = opened(NOW)
    stage.clock.at = NOW - READY_MS
    stage.jobs = Wrapped(stage.jobs, due=refuse)
    (delivery,) = receive(stage)
    reads = [0]

    def unit(verb: Any, key: UnitKey) -> Any:
        reads[0] += 1
        return verb(key) if reads[0] == 1 else refuse(verb)

    stage.ledger = Wrapped(stage.ledger, unit=unit)
    result = do(stage, delivery)
    assert result.failed and result.next_at == stage.clock.now() + AGAIN_MS


def test_a_resume_wakes_what_can_go_on_and_is_deleted() -> None:
    stage = opened(at=NOW - 60_000)
    stage.work.queued.clear()
    stage.work.send([WorkItem(WorkKind.RESUME)])
    stage.clock.at = END + 60_000
    stage.jobs.put(a_job(due_at=NOW))
    stage.work_off()
    assert len(stage.waiting(Lane.ONE_TIME)) == 1
    assert WorkKind.RESUME not in {item.kind for item in stage.asked}


def test_a_unit_whose_steps_fail_for_an_hour_keeps_one_message() -> None:
    stage = opened(NOW)
    away = stage.but(jobs=Wrapped(stage.jobs, due=refuse))
    end = NOW + 3_600_000
    stage.clock.at = NOW - READY_MS
    while stage.clock.at < end:
        minute_end = min(stage.clock.at + slots.MINUTE, end)
        away.work_off(until=minute_end)
        stage.clock.at = minute_end
        away.tick()
    assert len([item for item in stage.asked if item == ITEM]) == 1


def test_checks_that_fail_are_left_to_the_next_tick() -> None:
    stage = Stage()
    stage.ledger = Wrapped(stage.ledger, later_checks=refuse)
    stage.work.send([WorkItem(WorkKind.CHECKS)])
    assert [result.failed for result in stage.work_off()] == [True] and not stage.work.queued


def test_a_failed_step_undoes_no_write_whose_answer_was_lost() -> None:
    stage = opened()
    stage.clock.at = NOW

    def change(verb: Any, before: Unit, after: Unit) -> bool:
        held: bool = verb(before, after)
        if after.handed_out_at is not None and before.handed_out_at is None:
            raise Unavailable
        return held

    stage.ledger = Wrapped(stage.ledger, change_unit=change)
    (result,) = stage.work_off()
    unit = stage.ledger.unit(UNIT)
    assert result.failed and unit.handed_out_at is not None and unit.lease_until == 0


@pytest.mark.parametrize(
    ("ahead_ms", "wrong"),  # more than two ticks whose clocks are behind open nothing meanwhile
    [(-3_600_000, 2), *((ahead, wrong) for ahead in (61_000, 120_000, 290_000, 600_000, 3_600_000) for wrong in (1, 2, 10))],
)
def test_ticks_whose_clocks_are_wrong_delay_no_job(ahead_ms: int, wrong: int) -> None:
    stage = Stage(rules=Rules(shards=1))
    stage.ledger.advance(None, Cursor(MINUTE, 1))
    jobs, sent, real = dict[JobKey, int](), dict[JobKey, int](), stage.jobs

    def publish(verb: Any, messages: Any, *at: int) -> Any:
        for single in itertools.chain.from_iterable(message.singles() for message in messages):
            sent.setdefault(single.key, stage.clock.now())
            real.withdraw([single.key])  # it has run
        return []

    stage.lanes = Wrapped(stage.lanes, publish=publish, send=publish)
    for at in range(NOW, NOW + 25 * slots.MINUTE, 20_000):
        stage.clock.at = max(at, stage.clock.at)
        if at % slots.MINUTE == 0:
            is_wrong = 2 <= (at - NOW) // slots.MINUTE < 2 + wrong
            stage.but(clock=FixedClock(at + ahead_ms * is_wrong)).tick()
        if at < NOW + 15 * slots.MINUTE:
            made = [stage.submit(stage.clock.at + ahead) for ahead in (slots.HORIZON + 1_000, slots.HORIZON + 30_000)]
            jobs |= {job.key: job.due_at for job in made}
        stage.work_off(until=at + 19_999)
    assert sent.keys() == jobs.keys()
    assert max(sent[key] - due_at for key, due_at in jobs.items()) <= 0


def test_a_resumed_unit_that_a_wrong_tick_wakes_is_dispatched_at_once() -> None:
    stage = opened(NOW + 1_000)
    stage.work.queued.clear()  # a unit that rests needs no message
    unit = stage.ledger.unit(UNIT)
    rests = {"handed_out_at": END, "resting": END, "next_at": END + leftover.REST_MS, "message_id": "m1"}
    stage.ledger.change_unit(unit, replace(unit, **rests))
    stage.clock.at = END + slots.MINUTE
    pause(tuple(Lane), None, stage)
    stage.clock.advance(1_000)
    resume(tuple(Lane), None, stage)
    stage.work.queued.clear()  # the message of the resume is lost
    stage.but(clock=FixedClock(stage.clock.now() + 1_800_000)).tick()
    stage.work_off(until=stage.clock.now() + 2_000)
    assert len(stage.waiting(Lane.ONE_TIME)) == 1


def test_a_unit_without_message_is_sent_for_its_minute_at_any_next_step() -> None:
    stage = opened(NOW + 1_000)
    stage.work.queued.clear()
    unit = stage.ledger.unit(UNIT)
    stage.ledger.change_unit(unit, replace(unit, opened_at=NOW + 3_600_000, next_at=NOW + 3_600_000))
    stage.tick()
    assert [each.visible_at for each in stage.work.queued.values() if each.item == ITEM] == [NOW - READY_MS]
    stage.clock.advance(slots.MINUTE)
    stage.work.queued.clear()
    stage.tick()
    assert ITEM not in stage.asked, "its message is on its way"
