"""A unit with a few jobs: published at once, long ahead, without a waiting dispatcher; each is still sent once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission.lane_state import REFRESH_MS, pause, resume
from scheduler.jobs import group_steps
from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor, Job, Lane, Message, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.work import WorkItem
from scheduler.monitors import steps as monitors
from scheduler.operations.step import step
from scheduler.pipeline import bundles, lead
from scheduler.pipeline.dispatch import SPARSE
from scheduler.pipeline.tick import READY_MS
from scheduler.pipeline.unit_lease import LEASE_MS
from scheduler.pipeline.worker import hidden_s, work
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, times

MINUTE = slots.minute_of(NOW)
UNIT = UnitKey(MINUTE, 0)
END = NOW + slots.MINUTE
FIRST = NOW - READY_MS
SECOND_MS = 1_000


class Sparse(Stage):
    """A stage with one open unit of one slot, at its first step. `published`: the message of each job, and when it left."""

    def __init__(self, *jobs: Job, **rules: Any) -> None:
        super().__init__(rules=Rules(shards=1, **rules))
        self.clock.at = FIRST
        self.ledger.advance(None, Cursor("2026-11-25T00:00", 1))
        self.ledger.open_unit(Unit(UNIT, 0, 0, next_at=FIRST))
        self.jobs.put_canary(UNIT, f"{MINUTE}#00", NOW)
        self.published: list[tuple[Message, int]] = []
        self.lanes = Wrapped(self.lanes, publish=self._publish)
        self.put(*jobs)

    def _publish(self, verb: Any, messages: Sequence[Message]) -> Any:
        self.published += [(single, self.clock.now()) for message in messages for single in message.singles()]
        return verb(messages)

    def put(self, *jobs: Job) -> None:
        for job in jobs:
            self.jobs.put(job)

    def left(self, job: Job) -> list[int]:
        """Return when the messages of a job were published."""
        return [at for message, at in self.published if message.key == job.key]

    def step(self, at: int) -> Unit:
        """Carry out the unit's step at this instant, and return the unit; None if it is closed."""
        self.clock.at = max(self.clock.at, at)
        self.dispatch(UNIT)
        unit: Unit = self.ledger.unit(UNIT)
        return unit

    def live(self, until: int) -> None:
        """Deliver the unit's message and the executors' messages, second by second."""
        while self.clock.at < until:
            self.work_off()
            for lane in Lane:
                if batch := self.receive(lane):
                    self.execute(batch, lane=lane)
            self.clock.advance(SECOND_MS)


def test_a_few_jobs_leave_at_once_and_the_dispatcher_with_them() -> None:
    jobs = [a_job(due_at=NOW + at) for at in (0, 20_000, 59_999)]
    stage = Sparse(*jobs)
    unit = stage.step(FIRST)
    assert [stage.left(job) for job in jobs] == [[FIRST]] * 3
    assert stage.clock.slept == [] and (unit.next_at, unit.handed_out_at, unit.lease_until) == (NOW, None, 0)


def test_few_jobs_of_a_lane_leave_in_one_message_that_names_their_lead() -> None:
    jobs = [a_job(due_at=NOW + at, lane=lane) for at in (0, 20_000) for lane in (Lane.ONE_TIME, Lane.RECURRING)]
    stage = Sparse(*jobs)
    stage.step(FIRST)
    for lane in (Lane.ONE_TIME, Lane.RECURRING):
        (item,) = stage.receive(lane)
        assert [each.due_at for each in item.message.singles()] == [NOW, NOW + 20_000]
        assert item.message.not_before == NOW - lead.WARM_MS


def test_retries_leave_alone() -> None:
    stage = Sparse(*[a_job(due_at=NOW + at, lane=Lane.RETRY) for at in (0, 20_000)])
    stage.step(FIRST)
    assert [len(item.message.singles()) for item in stage.receive(Lane.RETRY)] == [1, 1]


def test_the_lead_of_a_bundle_follows_the_latency_of_delayed_messages() -> None:
    stage = Sparse(*[a_job(due_at=NOW + 20_000, lane=lane) for lane in (Lane.ONE_TIME, Lane.RETRY)])
    stage.ledger.report_latency(Lane.RETRY, "me", 800, FIRST - 5_000, delayed=True)
    stage.ledger.report_latency(Lane.ONE_TIME, "me", 800, FIRST - 5_000)
    stage.step(FIRST)
    leads = {message.lane: message.due_at - message.not_before for message, _ in stage.published}
    assert leads == {Lane.ONE_TIME: lead.WARM_MS, Lane.RETRY: 1_000}


def test_a_job_that_an_executor_may_hold_already_is_not_hidden() -> None:
    stage = Sparse(a_job(due_at=NOW + 4_000))
    stage.step(NOW)
    ((message, _),) = stage.published
    assert message.not_before == 0


def test_the_second_step_publishes_what_is_new_and_hands_out() -> None:
    seen, new, lost = a_job(due_at=NOW + 30_000), a_job(due_at=NOW + 40_000), a_job(due_at=NOW - 200_000, slot=f"{MINUTE}#00")
    stage = Sparse(seen, lost)
    stage.step(FIRST)
    stage.put(new)  # the index hid it
    unit = stage.step(NOW)
    assert (stage.left(seen), stage.left(new), stage.left(lost)) == ([FIRST], [NOW], [NOW])
    assert unit.handed_out_at == NOW and stage.clock.slept == []


@pytest.mark.parametrize("first", [FIRST, NOW - 2_000])
def test_a_dispatcher_of_an_empty_unit_waits_for_nothing(first: int) -> None:
    stage = Sparse()
    assert stage.step(first).next_at == NOW
    assert stage.step(NOW).handed_out_at == NOW and stage.clock.slept == []


def test_a_job_rescheduled_within_its_minute_leaves_again() -> None:
    job = a_job(due_at=NOW + 30_000)
    stage = Sparse(job)
    stage.step(FIRST)
    stage.jobs.withdraw([job.key])
    stage.put(replace(job, fence=job.fence + 1))
    stage.step(NOW)
    assert [message.fence for message, _ in stage.published] == [job.fence, job.fence + 1]


@pytest.mark.parametrize(("jobs", "early"), [(SPARSE, True), (SPARSE + 1, False)])
def test_more_jobs_than_a_few_leave_just_before_they_are_due(jobs: int, early: bool) -> None:
    stage = Sparse(*[a_job(due_at=NOW + 30_000 + 100 * number) for number in range(jobs)])
    stage.step(FIRST)
    assert bool(stage.published) is early
    stage.dispatch_all(UNIT)
    assert len(stage.published) == jobs
    if not early:
        assert min(at for _, at in stage.published) >= NOW + 25_000


def test_a_crowd_leaves_in_packs_however_few_jobs_a_minute_has() -> None:
    stage = Sparse(*[a_job(due_at=NOW + 30_000) for _ in range(100)])
    stage.step(FIRST)
    assert not stage.published
    stage.dispatch_all(UNIT)
    assert len(stage.published) == 100 and len(stage.lanes.queues[Lane.ONE_TIME]) == 4


def test_the_message_of_one_job_is_hidden_until_its_sender_wanted_it() -> None:
    job = a_job(due_at=NOW + 30_000)
    stage = Sparse(job)
    stage.step(FIRST)
    (early,) = stage.receive()
    stage.execute([early])
    (hidden,) = stage.lanes.queues[Lane.ONE_TIME].values()
    assert stage.stored(job).claim is None and early.message.not_before - 1_000 < hidden.visible_at <= early.message.not_before


def test_more_jobs_than_a_lane_can_take_leave_in_fair_shares() -> None:
    jobs = [a_job(owner=owner, due_at=NOW + 30_000) for owner in ("flood",) * 18 + ("ann",) * 2]
    stage = Sparse(*jobs, windows={Lane.ONE_TIME: 10})
    stage.step(FIRST)
    assert not stage.published
    stage.clock.at = NOW + 25_000
    stage.dispatch(UNIT)
    first = [message.key.owner for message, at in stage.published if at < NOW + 30_000]
    assert len(first) == 10 and first.count("ann") == 2


def test_a_part_of_a_unit_takes_its_share_of_the_lane_only() -> None:
    stage = Sparse(*[a_job(due_at=NOW + 30_000) for _ in range(8)], windows={Lane.ONE_TIME: 10})
    stage.rules = replace(stage.rules, shards=2)  # another unit has the other slot
    stage.step(FIRST)
    assert not stage.published


def test_jobs_that_the_topic_refused_leave_again() -> None:
    job = a_job(due_at=NOW + 30_000)
    stage = Sparse(job)
    good = stage.lanes
    stage.lanes = Wrapped(good, publish=lambda verb, messages: list(messages) if stage.clock.at < FIRST + 8_000 else verb(messages))
    stage.dispatch_all(UNIT)
    assert len(stage.left(job)) == 1 and stage.left(job)[0] <= FIRST + 12_000


def test_a_dispatcher_that_dies_after_publishing_is_followed() -> None:
    jobs = [a_job(due_at=NOW + at) for at in (1_000, 30_000)]
    stage = Sparse(*jobs)
    good = stage.ledger
    stage.ledger = Wrapped(good, change_unit=lambda verb, before, after: refuse_to_leave(verb, before, after))
    with pytest.raises(Unavailable):
        stage.step(FIRST)
    stage.ledger = good
    stage.clock.advance(LEASE_MS)
    stage.dispatch_all(UNIT)
    assert [len(stage.left(job)) for job in jobs] == [2, 2], "no record shows the sent jobs; executors drop the second message by its fence"


def refuse_to_leave(verb: Any, before: Unit, after: Unit) -> Any:
    if after.lease_until == 0:
        raise Unavailable
    return verb(before, after)


def test_steps_of_a_few_jobs_never_wait() -> None:
    jobs = [a_job(due_at=NOW + at) for at in (0, 777, 30_000)]
    stage = Sparse(*jobs)
    stage.work.send([WorkItem.of_unit(UNIT)])
    steps = 0
    while stage.ledger.unit(UNIT) is not None:
        for delivery in stage.work.receive(stage.clock.at):
            began = stage.clock.at
            next_at = work(delivery, stage, operation=step, group=group_steps.step, monitor=monitors.step).next_at
            assert stage.clock.at == began
            steps += 1
            if next_at is None:
                stage.work.delete(delivery.receipt)
            else:
                stage.work.hide(delivery.receipt, hidden_s(next_at, began))
        if stage.clock.at == NOW + 31_000:
            stage.jobs.withdraw([job.key for job in jobs])
        stage.clock.advance(250)
    assert steps == 3 and stage.clock.slept == []


# pauses


def test_jobs_of_a_paused_lane_leave_when_it_is_resumed() -> None:
    held, goes = a_job(due_at=NOW + 10_000, lane=Lane.RETRY), a_job(due_at=NOW + 20_000)
    stage = Sparse(held, goes)
    pause([Lane.RETRY], None, stage)
    unit = stage.step(FIRST)
    assert stage.left(goes) == [FIRST] and unit.resting == FIRST
    assert stage.step(NOW).handed_out_at is None
    stage.work.send([WorkItem.of_unit(UNIT)])
    stage.clock.at = NOW + 15_000
    resume([Lane.RETRY], None, stage)
    stage.work_off()
    assert (len(stage.left(held)), len(stage.left(goes))) == (1, 1)
    assert stage.left(held)[0] <= NOW + 15_000 + REFRESH_MS and stage.ledger.unit(UNIT).handed_out_at is not None


@pytest.mark.parametrize(("paused", "resumed"), [(-14, -12), (-14, -2), (-10, 20), (-10, 70), (5, 12), (5, 75)])
def test_jobs_whose_early_messages_came_in_a_pause_leave_after_the_resume(paused: int, resumed: int) -> None:
    """Seconds from the start of the minute: the lane is paused after the first step, or after the hand-out."""
    jobs = [a_job(due_at=NOW + at, created_at=NOW - 900_000) for at in (10_000, 30_000)]
    stage = Sparse(*jobs)
    good = stage.lanes
    stage.lanes = Wrapped(good, receive=lambda verb, *args: [] if stage.clock.at < NOW - 13_000 else verb(*args))  # a cold executor
    stage.work.send([WorkItem.of_unit(UNIT)])
    stage.live(NOW + paused * SECOND_MS)
    pause(tuple(Lane), None, stage)
    stage.live(NOW + resumed * SECOND_MS)
    resume(tuple(Lane), None, stage)
    stage.live(NOW + 100_000)
    late = [stage.left(job)[-1] - max(job.due_at, NOW + resumed * SECOND_MS) for job in jobs]
    assert max(late) <= 2 * SECOND_MS, "from the waiting room, not by reconciling after two minutes"


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_unit_that_is_handed_out_is_not_woken_by_a_resume(jobs: int) -> None:
    stage = Sparse(*[a_job(due_at=NOW + 40_000) for _ in range(jobs)])
    stage.step(FIRST)
    stage.step(NOW)
    pause(tuple(Lane), None, stage)
    stage.clock.at = NOW + 20_000
    resume(tuple(Lane), None, stage)
    stage.work_off()
    assert stage.ledger.unit(UNIT).handed_out_at == NOW


def test_a_ledger_that_refuses_the_states_does_not_double_early_messages() -> None:
    job = a_job(due_at=NOW + 30_000)
    stage = Sparse(job)
    stage.step(FIRST)
    stage.ledger = Wrapped(stage.ledger, watched=times(1))
    stage.step(NOW)
    assert len(stage.left(job)) == 1


# bundles


def bundled(*ahead: int, **fields: Any) -> tuple[Sparse, list[Job]]:
    """Return a stage whose unit has jobs due these numbers of ms after `NOW`, in a bundle that was sent, and the jobs."""
    jobs = [a_job(due_at=NOW + at, **fields) for at in ahead]
    stage = Sparse(*jobs)
    stage.step(FIRST)
    return stage, jobs


def waiting(stage: Stage) -> dict[tuple[int, ...], int]:
    """Return when each message of the one-time lane is delivered, by the due times of its jobs; both in ms after `NOW`."""
    queued = stage.lanes.queues[Lane.ONE_TIME].values()
    found = {tuple(single.due_at - NOW for single in each.message.singles()): each.visible_at - NOW for each in queued}
    return dict(sorted(found.items()))


def test_an_executor_sends_the_jobs_of_a_bundle_on_each_delayed() -> None:
    stage, jobs = bundled(10_000, 20_000, 30_500)
    stage.execute(stage.receive())
    found = waiting(stage)
    assert list(found) == [(10_000,), (20_000,), (30_500,)]
    for (due,), visible in found.items():
        assert 0 <= due - lead.WARM_MS - visible < SECOND_MS
    assert all(stage.stored(job).claim is None for job in jobs)


@pytest.mark.parametrize(("jobs", "ahead"), [(10, lead.WARM_MS), (11, Rules().lead_ms)])
def test_in_a_quiet_lane_only_few_jobs_rely_on_the_one_warm_executor(jobs: int, ahead: int) -> None:
    stage, _ = bundled(*range(10_000, 10_000 + 4_000 * jobs, 4_000))
    (item,) = stage.receive()
    assert item.message.due_at - item.message.not_before == ahead


def test_a_bundle_arrives_whole_seconds_before_its_jobs_are_wanted() -> None:
    stage, _ = bundled(*range(10_000, 30_000, 2_300))
    stage.execute(stage.receive())
    assert len(stage.clock.slept) > 1 and stage.clock.now() - FIRST < SECOND_MS
    for (due,), visible in waiting(stage).items():
        assert 0 <= due - lead.WARM_MS - visible <= bundles.GATHER_MS + lead.SENT_MS


def test_no_dispatcher_waits_whole_seconds_beside_a_due_job() -> None:
    stage, _ = bundled(*range(10_000, 30_000, 1_300))
    (bundle,) = stage.receive()
    (due,) = stage.hand(a_job(due_at=FIRST))
    stage.execute([bundle, due])
    assert stage.stored(due.message.key).started_at == FIRST


def test_jobs_that_follow_each_other_within_their_lead_stay_together() -> None:
    stage, jobs = bundled(10_000, 10_200, 10_450, 10_800, 30_000)
    stage.execute(stage.receive())
    assert list(waiting(stage)) == [(10_000, 10_200, 10_450), (10_800,), (30_000,)]
    stage.live(NOW + 40_000)
    assert [stage.stored(job).started_at - job.due_at for job in jobs[:3]] == [0] * 3


def test_jobs_stay_together_only_for_a_while() -> None:
    stage, _ = bundled(*range(10_000, 20_000, 200))
    stage.execute(stage.receive())
    assert max(dues[-1] - dues[0] for dues in waiting(stage)) <= bundles.LONGEST_MS


def test_jobs_due_close_together_are_no_bundle_and_are_hidden() -> None:
    stage, _ = bundled(10_000, 10_900)
    (item,) = stage.receive()
    assert stage.execute([item]) == [item.message_id]
    assert 0 <= 10_000 - lead.WARM_MS - waiting(stage)[10_000, 10_900] < SECOND_MS


def test_a_late_bundle_runs_its_due_jobs_and_sends_the_others_on() -> None:
    stage, (past, due, far) = bundled(1_000, 8_000, 30_000)
    stage.clock.at = NOW + 5_000
    assert stage.execute(stage.receive()) == []
    assert [stage.stored(job).started_at for job in (past, due, far)] == [NOW + 5_000, due.due_at, None]
    assert list(waiting(stage)) == [(30_000,)]


@pytest.mark.parametrize("how", ["refuses", "is away"])
def test_a_bundle_stays_until_all_its_jobs_were_sent_on(how: str) -> None:
    stage, jobs = bundled(10_000, 20_000, 30_000)
    (item,) = stage.receive()

    def send(verb: Any, messages: Sequence[Message], now: int) -> Any:
        if how == "is away":
            raise Unavailable
        return [*messages[:1], *verb(messages[1:], now)]

    assert stage.execute([item], lanes=Wrapped(stage.lanes, send=send)) == [item.message_id]
    stage.live(NOW + 60_000)
    assert max(stage.stored(job).started_at - job.due_at for job in jobs) < SECOND_MS, "the stage polls once a second"
    assert [len(stage.stored(job).attempts) for job in jobs] == [1] * 3


def test_two_copies_of_a_bundle_in_one_batch_start_no_job_twice() -> None:
    stage, jobs = bundled(10_000, 20_000)
    (bundle,) = stage.receive()
    stage.lanes.publish([bundle.message])
    pool = ScriptedPool(stage.clock)
    assert stage.execute([bundle, *stage.receive()]) == []
    assert list(waiting(stage)) == [(10_000,), (20_000,)]
    stage.clock.at = NOW + 20_000
    stage.execute(stage.receive(), pool=pool)
    assert sorted(job.id for job, _ in pool.starts) == sorted(job.id for job in jobs)


def test_an_edited_job_that_is_due_stays_beside_its_former_bundle() -> None:
    stage, (job, _) = bundled(20_000, 30_000)
    stage.jobs.withdraw([job.key])
    sooner = replace(job, fence=job.fence + 1, due_at=FIRST, slot=f"{MINUTE}#00")
    (bundle,), (due,) = stage.receive(), stage.hand(sooner)
    assert stage.execute([bundle, due]) == []
    assert stage.stored(job).started_at == FIRST


def test_an_unreachable_queue_is_called_once_for_a_bundle() -> None:
    stage, _ = bundled(*range(10_000, 40_000, 1_300))
    asked: list[int] = []
    away = Wrapped(stage.lanes, send=lambda verb, messages, now: (asked.append(len(messages)), list(messages))[1])
    (item,) = stage.receive()
    assert stage.execute([item], lanes=away) == [item.message_id]
    assert len(asked) == 1, "each further call would take as long as the client waits, and the lease ends"


def test_a_bundle_without_a_lease_is_not_sent_on() -> None:
    stage, _ = bundled(10_000, 20_000)
    (item,) = stage.receive()
    assert stage.execute([item], lanes=Wrapped(stage.lanes, extend=lambda verb, *_: set())) == [item.message_id]
    assert list(waiting(stage)) == [(10_000, 20_000)]


def test_bundles_of_a_paused_lane_are_dropped() -> None:
    stage, _ = bundled(10_000, 20_000)
    pause(tuple(Lane), None, stage)
    assert stage.execute(stage.receive()) == [] and waiting(stage) == {}


@pytest.mark.parametrize(
    ("waits", "sent"),
    [
        ([300], [0]),  # waiting costs as much as it saves
        ([500, 500], [500, 500]),
        ([300, 300, 300, 900], [300, 300, 300, 900]),
        ([20, 990, 990], [20, 990, 990]),
    ],
)
def test_a_sender_waits_for_whole_seconds_while_others_save_more(waits: list[int], sent: list[int]) -> None:
    wanted = [NOW + 20_000 + lead.SENT_MS + wait for wait in waits]
    assert [at - NOW for at in lead.send_times(wanted, NOW)] == sent


def test_messages_wanted_at_once_do_not_wait_for_whole_seconds() -> None:
    wanted = [NOW - 5_000, NOW + 900, *[NOW + 20_000] * 9]
    first, second, third, *_ = lead.send_times(wanted, NOW)
    assert first == second == NOW < third
