"""Removes each guard of the code in turn, and checks that the simulation notices.

`python -m tests.simulation.sabotage` prints which oracle noticed, and at which seed.
"""

import argparse
import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from lab.world.faults import CALM, ROUGH, Rates
from lab.world.pools import SimPool
from lab.world.queues import Lenience
from lab.world.tables import LaggingJobs, WatchedLedger
from scheduler.accounts import quota
from scheduler.admission import after, limit_gate, limits, ordering, overlap, owner_gate, run_gate, target_queue
from scheduler.admission.after_gate import AfterGate
from scheduler.admission.gate import Requeue
from scheduler.admission.lane_state import REFRESH_MS, LaneStateCache
from scheduler.admission.limit_gate import LimitGate, limiters_of
from scheduler.admission.run_gate import RunGate
from scheduler.dead_letters import store as redrives
from scheduler.jobs import by_key, replay
from scheduler.model import callback_lease, ids, lifecycle, misfire, retry, settlement, slots, trace
from scheduler.model.account import Ceiling, Tally
from scheduler.model.after import End, Ending
from scheduler.model.job import (
    Delivery,
    DueEntry,
    Failure,
    Job,
    JobKey,
    Lane,
    Message,
    OrderingQueue,
    OrderKey,
    Receipt,
    RequeueCause,
    Unit,
    UnitKey,
)
from scheduler.model.limiter import Limiter, is_key
from scheduler.model.named_target import NamedTarget
from scheduler.model.operation import Operation
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.model.task import Task
from scheduler.model.work import WorkDelivery, WorkItem
from scheduler.notify import invocation, notify
from scheduler.notify.calls import Calls
from scheduler.operations import cancel_jobs, replay_jobs
from scheduler.operations.cancel_jobs import CancelJobs
from scheduler.operations.step import OperationStep, StepResult
from scheduler.pipeline import (
    bundles,
    delivery,
    direct_path,
    followers,
    latency,
    leftover,
    overflow,
    overflow_units,
    packs,
    release,
    slot_pages,
    step_sharing,
    submit,
    tick,
    waiting_room,
    worker,
)
from scheduler.pipeline.batch_writes import BatchWrites
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.dispatch import Dispatch
from scheduler.pipeline.lease import Lease, Moment
from scheduler.pipeline.overflow import Overflow
from scheduler.pipeline.release import Release
from scheduler.pipeline.running_jobs import RunningJobs
from scheduler.pipeline.slot_pages import SlotReader
from scheduler.pipeline.submit import NewJob, Submission
from scheduler.pipeline.unit_lease import UnitLease
from scheduler.pipeline.waiting_jobs import WaitingJob, WaitingJobs
from scheduler.sharing import pins
from scheduler.storage.memory import stores
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.storage.memory.ordering_queues import MemoryOrderingQueues
from scheduler.storage.memory.stores import MemoryJobs, MemoryLedger, MemoryOperations, QueuedWork
from scheduler.storage.memory.targets import MemoryTargets
from scheduler.storage.memory.tasks import MemoryReceipts, MemoryTasks
from scheduler.storage.ports import Barred, Change, ClaimResult, Guard, KeyTaking, Ports
from scheduler.tasks import plan, planning, top_up
from tests.simulation import deployments, queues, upgrades
from tests.simulation import key_limits as keys
from tests.simulation.behind import changed_behind
from tests.simulation.bulk import bulk, dying_bulk, moving_bulk
from tests.simulation.catching_up import catching_up
from tests.simulation.dying import dying
from tests.simulation.enables import disabled_often
from tests.simulation.following import following, following_calmly
from tests.simulation.hostile import few_steps, filling, pinning
from tests.simulation.keyed import crowded_keys
from tests.simulation.lenient import LENIENT, LenientWorld
from tests.simulation.many_tasks import many_tasks
from tests.simulation.notices import NoticeWorld, beside_a_hanging_receiver, beside_several, with_a_receiver_that_throttles, with_recoveries
from tests.simulation.oracles import WatchedWorld
from tests.simulation.overlaps import at_once
from tests.simulation.quotas import QuotaWorld, at_the_quota
from tests.simulation.reading import crowded_instant, late_index
from tests.simulation.redrives import redriven, redriven_by_dying_steps
from tests.simulation.replays import replayed_by_dying_steps
from tests.simulation.resumes import met, resumed_often
from tests.simulation.traced import traced, traced_in_trouble
from tests.simulation.workers import POLICIES
from tests.simulation.world import START, USUAL, World
from tests.simulation.wrong_clocks import wrong_ticks

SEEDS = 40  # of the default run of `make simulate`
REFUSED_MS = 60_000  # a job of a bundle that the queue refused in part starts this much after its time, at the latest


class Found(BaseException):
    """An oracle has found a violation. Not an Exception, so that no service can catch it."""


class Tripwire(World):
    """A run that ends at the first violation."""

    def _violation(self, kind: str, job_id: str) -> None:
        raise Found(kind, self.hub.time - START)


class Sabotage(NamedTuple):
    """A removed guard. `seed` is known to find it: the tests try it first. `scene`: a run of a world that needs the guard most.

    `oracle`: the one that must notice; empty: any.
    """

    name: str
    broken: Callable[[], AbstractContextManager[Any]]
    seed: int = 1
    scene: Callable[[int], World | NoticeWorld | QuotaWorld] | None = None
    oracle: str = ""


class Finding(NamedTuple):
    """The oracle that found a removed guard, the seed, and the virtual seconds since the start of its run."""

    oracle: str
    seed: int
    after_s: int


def find(sabotage: Sabotage, seeds: Sequence[int], **scenario: int) -> Finding | None:
    """Return the finding of the first of these runs that has one; None if no oracle notices, or not the one that must."""
    for seed in seeds:
        with sabotage.broken():
            if sabotage.scene is not None:
                world = sabotage.scene(seed)
                if noticed := [each for each in sorted(world.report.violations) if sabotage.oracle in ("", each)]:
                    return Finding(noticed[0], seed, (world.hub.time - START) // 1000)
                continue
            try:
                Tripwire(seed, ROUGH).run(**(USUAL | scenario))
            except Found as found:
                oracle, at = found.args
                return Finding(oracle, seed, at // 1000)
    return None


# the broken versions


def _patched(target: Any, name: str, broken: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(target, name, broken)


@contextmanager
def _both(one: Callable[[], AbstractContextManager[Any]], other: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    with one(), other():
        yield


def _change_without_fence(self: LaggingJobs, change: Change) -> bool:
    stored = self.rows.get(change.before.key)
    if stored is None or not lifecycle.is_open(stored):
        return False
    self._store(stored, replace(stored, **stores.differences(change.before, change.after)))
    return True


def _plain_change(self: LaggingJobs, change: Change) -> bool:
    self._store(self.rows[change.before.key], change.after)
    return True


def _plain_put(self: LaggingJobs, job: Job) -> bool:
    self.rows.pop(job.key, None)
    return _put(self, job)


def _entry_unless_claimed(job: Job) -> DueEntry | None:
    return _entry(job) if job.claim is None else None


def _release_once(item: WorkDelivery, ports: Ports) -> int | None:
    _release(item, ports)
    return None


def _in_order_of_joining(users: Mapping[str, Any], clock: float, weights: Mapping[str, float], take: Callable[[str], Any]) -> Iterator[Any]:
    for owner in sorted(users, key=lambda owner: users[owner].joined_at):
        while (job := take(owner)) is not None:
            yield job, owner, clock, clock


def _decide_without_nonce(item: Any, answer: ClaimResult | None, nonce: str, now: int, *, hold_ms: int) -> delivery.Decision:
    job = answer.job if answer is not None else None
    if job is not None and job.claim is not None and job.claim.message_id == item.message_id and job.fence == item.message.fence:
        return delivery.Run(job)
    return _decide(item, answer, nonce, now, hold_ms=hold_ms)


def _place_without_horizon(due_at: int, now: int, job_id: str, shards: int) -> slots.Placement:
    safe = _place(due_at, now, job_id, shards)
    return safe._replace(slot=slots.slot(slots.minute_of(max(due_at, now)), job_id, shards))


def _change_unit_without_epoch(self: MemoryLedger, before: Unit, after: Unit) -> bool:
    if before.key not in self._open:
        return False
    self._open[before.key] = after
    return True


def _overlap_without_take_over(job: Job, origin: Any, holder: Any, holding: Job | None, waiting: Job | None) -> Any:
    if holder is not None and holder.job != job.id and (holding is None or not lifecycle.is_open(holding)):
        return overlap.Skip(f"overlap: run {holder.job} has not ended")
    return _overlap(job, origin, holder, holding, waiting)


def _hold_without_version(self: MemoryTasks, before: Any, after: Any) -> bool:
    self._holders[after.task] = after
    return True


def _bury_without_message(job: Job, message_id: str, fence: int, now: int, rules: Rules) -> Job | None:
    return _bury(job, job.claim.message_id if job.claim is not None else message_id, fence, now, rules)


def _line_without_entries(self: MemoryOrderingQueues, order: OrderKey, limit: int) -> OrderingQueue:
    line = _line(self, order, limit)
    return replace(line, entries=line.entries[-1:])


def _head_without_version(self: MemoryOrderingQueues, before: Any, after: Any) -> bool:
    self.heads[after.order] = after
    return True


def _retry_without_fence(job: Job, at: int, **data: Any) -> Job:
    return replace(_retry(job, at, **data), fence=job.fence)


def _recheck_without_take_back(job: Job | None, slot: str, now: int, rules: Rules, **rest: Any) -> Any:
    decision = _recheck(job, slot, now, rules, **rest)
    return leftover.Leave() if isinstance(decision, leftover.TakeBack) else decision


def _change_without_lease(self: LaggingJobs, change: Change) -> bool:
    return _lagging_change(self, change._replace(guard=Guard.FENCE) if change.guard is Guard.LEASE else change)


def _requeue_over_a_cancel(self: LaggingJobs, change: Change) -> bool:
    return _lagging_change(self, change._replace(guard=Guard.FENCE) if change.guard is Guard.CANCEL else change)


def _end_and_hope(self: RunGate, decision: Any) -> bool:
    _end_replaced(self, decision)
    return True


def _decide_to_poll(job: Job, barred: Barred, now: int) -> Any:
    verdict = _decide_owner(job, barred, now)
    return replace(verdict, room=None, at=now + 60_000) if isinstance(verdict, Requeue) else verdict


def _put_refused_unseen(self: LaggingJobs, job: Job) -> bool:
    return True if self._faults.strike("put refused", self._faults.rates.refuse) else self.put(job)


def _answer_by_own_random(asked: submit.Submission, standing: Mapping[str, Receipt | None], now: int, rules: Rules) -> Any:
    if asked.receipt is not None and (stands := standing[asked.receipt.key]) is not None:
        standing = {stands.key: replace(stands, random=asked.random)}
    return _answer(asked, standing, now, rules)


def _keep_over_standing(self: MemoryReceipts, receipt: Receipt, now: int) -> Receipt:
    self.rows[(receipt.owner, receipt.key)] = receipt
    return receipt


def _letters_newest_first(self: MemoryJobs, owner: str, **rest: Any) -> Any:
    return _letters(self, owner, **rest | {"newest_first": True})


def _place_by_id(job: Job) -> str:
    return ids.position(job.id, job.scheduled_at)


def _take_from_anyone(self: MemoryJobs, taking: KeyTaking) -> bool:
    assert taking.job.own_key is not None
    return _take_key(self, taking._replace(before=self.entries.get(taking.job.own_key)))


def _decide_to_create(stored: Job | None, *rules: Any) -> by_key.Step:
    step = _decide_put(stored, *rules)
    return by_key.Step.CREATE if step is by_key.Step.CHANGE else step


def _fix_in_memory(self: WaitingJobs, near: Sequence[WaitingJob]) -> list[WaitingJob]:
    for waiting in near:
        waiting.job = lifecycle.fix(waiting.job) if lifecycle.is_revocable(waiting.job) else waiting.job
    return list(near)


def _change_or_not(before: Job, *rest: Any) -> Job:
    return _try_change(before, *rest) or before


def _enter_without_move(fences: Mapping[JobKey, int], ports: Ports) -> set[JobKey]:
    return set(fences)


def _is_paused_by_an_old_read(self: LaneStateCache, lane: Lane, age_ms: int = REFRESH_MS, *, trust_ms: int | None = None) -> bool:
    self.refresh(at_once=self.known is None)
    return lane in self.paused


def _send_on_unseen(jobs: Sequence[Delivery], ports: Ports, **how: Any) -> set[str]:
    _send_on(jobs, ports, **how)
    return set()


def _add_anywhere(self: MemoryOperations, operation: Operation, place: int, former: str | None) -> bool:
    return _add_operation(self, operation, place, self.places(operation.owner).get(place))


def _run_and_wait(self: OperationStep, owner: str, id: str) -> StepResult:
    result, until = _run_step(self, owner, id), self.ports.clock.now() + 45_000
    while result.next_at is not None and result.next_at < until:
        self.ports.clock.sleep_until(result.next_at)
        result = _run_step(self, owner, id)
    return result


def _must_wait_if_late(self: RunGate, run: Job, before: Job | None) -> bool:
    return before is not None and lifecycle.is_open(before) and self._is_behind(run)


def _settle_without_cause(job: Job, cause: RequeueCause, *rest: Any, **more: Any) -> Job:
    back = _requeue(job, cause, *rest, **more)
    return replace(back, requeue_cause=None) if cause is RequeueCause.MISFIRE else back


def _hand_on_nothing(old: Task, new: Task, now: int, rules: Rules) -> tuple[Task, list[Job]]:
    return new, []


def _hand_on_without_entry(old: Task, new: Task, now: int, rules: Rules) -> tuple[Task, list[Job]]:
    return _hand_on(old, new, now, rules)[0], []


@contextmanager
def _lease_of_units_ignored() -> Iterator[None]:
    """Let a worker take a unit whose lease has not run out: it looks at the lease, and the ledger compares it."""

    def unit(self: MemoryLedger, key: UnitKey) -> Unit | None:
        stored = _unit(self, key)
        return stored and replace(stored, lease_until=0)

    def change_unit(self: WatchedLedger, before: Unit, after: Unit) -> bool:
        stored = self._open.get(before.key)
        return _change_unit(self, replace(before, lease_until=stored.lease_until) if stored else before, after)

    with patch.object(MemoryLedger, "unit", unit), patch.object(WatchedLedger, "change_unit", change_unit):
        yield


def _take_anyway(self: Lease, receipts: Sequence[str]) -> set[str]:
    _take_lease(self, receipts)
    return set(receipts)


def _renew_although_lost(self: Lease) -> bool:
    now, wanted = Moment.now(self.ports.clock), sorted(item.receipt for item in self.in_hand.values())
    self._renew_ms = now.since(self._renewed) + delivery.RENEW_AGAIN_MS
    self.was_refused = not self._extend(wanted) >= set(wanted)
    if not self.was_refused:
        self._renewed, self._renew_ms = now, delivery.RENEW_MS
    return not self.is_lost()


def _crashed_six_times(job: Job, failure: Failure) -> str | None:
    ended = job.claim is not None and job.claim.alone and lifecycle.next_attempt(job) >= 6
    return "its executor died 6 times in a row" if ended else _crashed_too_often(job, failure)


def _since_by_the_monotonic_clock(self: Moment, before: Moment) -> int:
    return self.monotonic - before.monotonic


class Published(World):
    """A world whose dispatchers may publish no message twice."""

    def __init__(self, seed: int, rates: Rates) -> None:
        super().__init__(seed, rates)
        publish, seen = self.lanes.publish, set[tuple[Any, int]]()

        def once(messages: Sequence[Message]) -> list[Message]:
            for message in (single for pack in messages for single in pack.singles()):
                if (message.key, message.fence) in seen:
                    self._violation("published_twice", message.key.id)
                seen.add((message.key, message.fence))
            return publish(messages)

        self.lanes.publish = once  # type: ignore[method-assign]


def doubled_work(seed: int) -> World:
    """Every second item of work comes twice, at once or later; nothing else is amiss."""
    world = Published(seed, Rates(double=0.5))
    world.run(100, 4, tasks=0, ordered=0, wind_down=10)
    return world


def lost_work(seed: int) -> World:
    """The work queue loses every message as long as jobs are posted. Many of these go to the overflow, whose work nobody sends later."""
    world = World(seed, CALM, rules=Rules(shards=2, direct_burst=1, direct_rate=1))
    add = world.work.add

    def lose(item: WorkItem, visible_at: int) -> QueuedWork:
        made = add(item, visible_at)
        if world.hub.time < START + 8 * slots.MINUTE:
            del world.work.queued[made.message_id]
        return made

    world.work.add = lose  # type: ignore[method-assign]
    world.run(100, 6, tasks=0, ordered=0, wind_down=60)
    return world


def early_crowd(seed: int) -> World:
    """A pack comes a minute before its jobs are due, from a dispatcher whose clock is ahead."""
    world = World(seed, CALM, rules=Rules(shards=2))
    at = START + 4 * slots.MINUTE
    spec = JobSpec("log", {"takes": 1, "fails": 0})
    jobs = [Job("user", ids.new(at, number), spec, at, at, START, f"{slots.minute_of(at)}#00") for number in range(5)]
    for job in jobs:
        world.jobs.put(job)
    (pack,) = packs.pack([Message(job.key, 1, job.lane, at) for job in jobs], lambda first: packs.MOST)
    world.hub.at(at - slots.MINUTE, lambda: world.lanes.add(pack, at - slots.MINUTE))
    world.run(20, 3, wind_down=40)
    return world


def few_jobs(seed: int) -> World:
    """A few jobs a minute, with nothing amiss: dispatchers publish them at once, long ahead."""
    world = Published(seed, CALM)
    world.run(100, 12, tasks=0, ordered=0, wind_down=40)
    return world


def refused_bundles(seed: int) -> World:
    """The lanes refuse every third message that is sent delayed. No job may wait until it is reconciled."""
    world = World(seed, CALM)
    send = world.lanes.send

    def some(messages: Sequence[Message], now: int) -> list[Message]:
        refused = [message for message in messages if message.not_before - now >= 1_000 and world.random.random() < 1 / 3]
        return refused + send([message for message in messages if message not in refused], now)

    world.lanes.send = some  # type: ignore[method-assign]
    world.run(200, 12, tasks=0, ordered=0, wind_down=40)
    for job in world.jobs.rows.values():
        in_its_minute = job.fence == 1 and job.scheduled_at - job.created_at > slots.HORIZON + slots.MINUTE
        if in_its_minute and job.started_at is not None and job.started_at - job.scheduled_at > REFUSED_MS:
            world._violation("late_after_refusal", job.id)
    return world


def orphaned(seed: int) -> World:
    """Jobs wait in slots of a time before the ledger began."""
    world = deployments.DeployedWorld(seed)
    for number in range(5):
        at = START - (number + 1) * 3_600_000
        spec = JobSpec("log", {"takes": 1, "fails": 0})
        world.jobs.put(Job("user", ids.new(at, number), spec, at, at, at, f"{slots.minute_of(at)}#00"))
    world.run(20, 3, wind_down=40)
    return world


def frozen(seed: int) -> World:
    """Executors freeze often, and the queues say yes to old receipts."""
    world = LenientWorld(seed, lenience=Lenience.SAID)
    world.run(**LENIENT)
    return world


def skewed(seed: int) -> World:
    """The clocks of invocations differ by almost five seconds, and many workers report by call-back."""
    world = World(seed, Rates(lag_ms=300, skew_ms=2_450), rules=Rules(shards=2))
    world.workers.policy = lambda: world.random.choice(POLICIES)  # type: ignore[method-assign]
    world.run(400, 10, wind_down=40)
    return world


def _leave_to_rest(self: UnitLease, next_at: int, resting: int, **fields: Any) -> bool:
    return self.leave(next_at, resting=resting, **fields)


def _want_beside_a_look(unit: Unit, ports: Ports, now: int) -> bool:
    """Leave the unit to a dispatcher that only looks, which may have read the slots already."""
    found = ports.ledger.unit(unit.key)
    if found is None:
        overflow_units.open_unit(unit, ports, now)
    elif found.lease_until <= now:
        ports.ledger.change_unit(found, replace(found, next_at=now, handed_out_at=None))
    return found is not None and found.lease_until > now


class LookedWorld(WatchedWorld):
    """A world in which jobs are posted while a dispatcher only looks at an empty unit of the overflow."""

    late_ms = 4_000  # a start of the overflow, and its first look

    def _step(self, delivery: WorkDelivery) -> None:
        if delivery.item.of == slots.OVERFLOW:
            unit = self.plain.ledger.unit(UnitKey(delivery.item.of, int(delivery.item.part)))
            if unit is not None and unit.handed_out_at is not None:
                together = [NewJob("user", JobSpec("log", {"takes": 1, "fails": 0}))] * 5
                self.hub.spawn(lambda: self._post(together), self.hub.time + self.random.randint(1, 20))
        super()._step(delivery)


def looked(seed: int) -> World:
    """Run a world of this kind, without faults: no job is late without a reason."""
    world = LookedWorld(seed, rules=Rules(shards=2, direct_burst=1, direct_rate=1))
    world.run(100, 10, tasks=0, ordered=0, wind_down=30)
    return world


@contextmanager
def _claimed_out_of_slot() -> Iterator[None]:
    """Let a claim remove the job from its slot. Normally a claim changes nothing that the index shows, and the table skips the index."""
    with patch.object(stores, "_entry", _entry_unless_claimed), patch.object(stores, "_indexed", lambda job: object()):
        yield


@contextmanager
def _everywhere(owner: Any, name: str, broken: Any) -> Iterator[None]:
    """Replace a function in its module and wherever it was imported by name."""
    whole = getattr(owner, name)
    with contextlib.ExitStack() as stack:
        for module in [module for key, module in sys.modules.items() if key.startswith("scheduler")]:
            if getattr(module, name, None) is whole:
                stack.enter_context(patch.object(module, name, broken))
        yield


_put, _entry, _decide, _place = MemoryJobs.put, stores._entry, delivery.decide, slots.place
_overlap, _bury, _line, _retry = overlap.decide, settlement.bury, MemoryOrderingQueues._line, lifecycle.retry
_letters, _is_filtered = MemoryJobs.letters, cancel_jobs.is_filtered
_add_operation, _run_step = MemoryOperations.add, OperationStep.run
_release, _end_replaced = release.release, RunGate._end
_hand_on, _requeue = planning.hand_on, settlement.requeue
_unit, _change_unit = MemoryLedger.unit, WatchedLedger.change_unit
_send_on, _decide_owner = bundles.send_on, owner_gate._decide
_recheck, _lagging_change = leftover.decide, LaggingJobs._change


def _add_before_the_decision(self: MemoryUsers, name: str, number: int, now: int, ceiling: Ceiling, *, restart: bool) -> tuple[bool, Tally]:
    added, tally = _add_within(self, name, number, now, ceiling, restart=restart)
    if not added and tally.since == ceiling.since:
        tally = self.add_to_tally(name, number, now)
    return added, tally


def _add_above_the_ceiling(self: MemoryUsers, name: str, number: int, now: int, ceiling: Ceiling, *, restart: bool) -> tuple[bool, Tally]:
    since = self.tallies.get(name, Tally()).since
    return _add_within(self, name, number, now, Ceiling(since), restart=restart)


_add_within = MemoryUsers.add_within
_answer, _crashed_too_often = submit._answer, retry._crashed_too_often
_take_key, _decide_put, _try_change = MemoryJobs._take, by_key.decide, by_key.try_change
_take_lease = Lease.take


def _latency_of_any(self: MemoryLedger, lane: Lane, since: int, *, deployment: str = "", delayed: bool = False) -> int | None:
    reports = [report for (*which, _), report in self._latency.items() if tuple(which) == (lane, delayed)]
    return max((p99 for p99, at, _ in reports if at >= since), default=None)


_any_number, _replay_submission = Random(1), replay_jobs._submission


def _any_random(*_: object) -> int:
    return _any_number.getrandbits(ids.RANDOM_BITS)


def _submission_of_now(job: Job, operation: Operation, trace_ratio: float | None) -> Submission:
    made = _replay_submission(job, operation, trace_ratio)
    return made._replace(request=replace(made.request, execute_at=None))


def _deleted_if_open(predecessor: Job | None) -> End | None:
    return _end_of(predecessor) or End(Ending.DELETED)


def _succeeded_anyhow(predecessor: Job | None) -> End | None:
    return End(Ending.SUCCEEDED) if _end_of(predecessor) is not None else None


_end_of = after.end_of


def _no_keys(job: Job, target: NamedTarget | None) -> list[Limiter]:
    return [limiter for limiter in limiters_of(job, target) if not is_key(limiter.name)]


def _none_together(self: Release, limit: Limiter, chosen: list[Job], now: int) -> tuple[list[Job], dict[JobKey, int], bool]:
    return chosen, {}, False


def _no_keys(job: Job, target: NamedTarget | None) -> list[Limiter]:
    return [limiter for limiter in limiters_of(job, target) if not is_key(limiter.name)]


def _none_together(self: Release, limit: Limiter, chosen: list[Job], now: int) -> tuple[list[Job], dict[JobKey, int], bool]:
    return chosen, {}, False


_attempted = trace.attempted


def _attempted_once(job: Job, fence: int, claimed_at: int, ratio: float) -> trace.SpanContext:
    return _attempted(job, 1, job.scheduled_at, ratio)


def _waited_on(job: Job, ratio: float) -> trace.Passed:
    wait = trace.waited(job, ratio)
    return trace.Passed(wait.parent, wait.parent, wait.state)


SABOTAGES = [
    Sabotage("settle without the fence", _patched(LaggingJobs, "_change", _change_without_fence), seed=3),
    Sabotage("a claimed job leaves its slot", _claimed_out_of_slot),
    Sabotage("leases identified by the message, without the nonce", _patched(delivery, "decide", _decide_without_nonce)),
    Sabotage("slots nearer than the horizon", _patched(slots, "place", _place_without_horizon), seed=5),
    Sabotage("minutes closed without the canary", _patched(LaggingJobs, "canary_visible", lambda *_: True), seed=3),
    Sabotage("changes written without conditions", _patched(LaggingJobs, "_change", _plain_change)),
    Sabotage("new jobs written without conditions", _patched(LaggingJobs, "put", _plain_put), seed=2),
    Sabotage("a run lock that no later run takes over", _patched(overlap, "decide", _overlap_without_take_over)),
    Sabotage(
        "a requeue written over a cancel",
        _patched(LaggingJobs, "_change", _requeue_over_a_cancel),
        scene=at_once,
        oracle="waits_for_nobody",
    ),
    Sabotage(
        "replaced runs that have changed are forgotten",
        _patched(RunGate, "_end", _end_and_hope),
        seed=13,
        scene=at_once,
        oracle="waits_for_nobody",
    ),
    Sabotage("bury without a check of the message", _patched(settlement, "bury", _bury_without_message)),
    Sabotage("units changed without the epoch", _patched(MemoryLedger, "change_unit", _change_unit_without_epoch)),
    Sabotage("other entries of the ordering queue ignored", _patched(MemoryOrderingQueues, "_line", _line_without_entries)),
    # one for each other oracle
    Sabotage("jobs begin when the pool gets them", _patched(SimPool, "_ahead", lambda *_: 0)),
    Sabotage("retries under the old fence", _patched(lifecycle, "retry", _retry_without_fence)),
    Sabotage("executors continue without their lease", _patched(delivery, "LOST_MS", 10**9)),
    Sabotage("refused puts treated as stored", _patched(LaggingJobs, "_put_or_refuse", _put_refused_unseen), seed=2),
    Sabotage("runs start without a check of their task", _patched(run_gate, "unwanted", lambda *_: None)),
    Sabotage("run locks written without their version", _patched(MemoryTasks, "_hold", _hold_without_version), seed=2),
    Sabotage("misfire and expiry ignored", _patched(misfire, "too_late", lambda *_: None)),
    Sabotage("the random of the standing receipt not used", _patched(submit, "_answer", _answer_by_own_random)),
    Sabotage("receipts written over standing ones", _patched(MemoryReceipts, "_keep", _keep_over_standing)),
    # packs
    Sabotage("executors start more jobs than they have room for", _patched(RunningJobs, "has_room", lambda *_: True)),
    Sabotage("a crowd held for as long as its message says", _patched(delivery, "hold_ms", lambda *_: 10**9), scene=early_crowd),
    # the work queue
    Sabotage("workers ignore the lease of a unit", _lease_of_units_ignored, seed=2, scene=doubled_work),
    Sabotage("ticks that never send lost work again", _patched(tick, "_is_lost", lambda *_: False), scene=lost_work),
    Sabotage("dispatchers forget what they published early", _patched(Dispatch, "_not_early", lambda _, entries: entries), scene=few_jobs),
    # paused lanes
    Sabotage("messages of a paused lane dropped without a move", _patched(waiting_room, "enter", _enter_without_move), scene=resumed_often),
    Sabotage("a resume that wakes no waiting room", _patched(worker, "wake_rooms", lambda *_: 0), scene=resumed_often),
    Sabotage("a tick that wakes no room after a lost resume", _patched(tick, "wake_rooms", lambda *_: 0), scene=resumed_often),
    Sabotage("a dispatcher that misses a second pause", _patched(Overflow, "_was_paused", lambda _: False), scene=resumed_often),
    Sabotage(
        "jobs sent away by an old read of a pause", _patched(LaneStateCache, "is_paused", _is_paused_by_an_old_read), 2, resumed_often
    ),
    Sabotage(
        "a resume during a step of a resting unit", _patched(UnitLease, "rest", _leave_to_rest), scene=met, oracle="late_after_resume"
    ),
    Sabotage(
        "a look goes on while its unit is wanted",
        _patched(direct_path, "want", _want_beside_a_look),
        scene=looked,
        oracle="late_though_free",
    ),
    # executors that die
    Sabotage(
        "six crashes in a row end a job", _patched(retry, "_crashed_too_often", _crashed_six_times), scene=dying, oracle="failed_unstarted"
    ),
    Sabotage(
        "no start of a job that has crashed is stored",
        _patched(WaitingJobs, "_note_starts", lambda *_: set()),
        scene=dying,
        oracle="poison_open",
    ),
    # wrong clocks
    Sabotage("a lease of a worker ends by one clock", _patched(callback_lease, "SKEW_MS", 0), scene=skewed, oracle="rescued_early"),
    Sabotage(
        "a first step at whatever time",
        _patched(worker, "first_step_at", lambda *_: None),
        seed=3,
        scene=wrong_ticks,
        oracle="late_though_free",
    ),
    Sabotage(
        "a first step planned too late stays",
        _patched(tick.Tick, "_correct", lambda *_: None),
        scene=wrong_ticks,
        oracle="late_though_free",
    ),
    # disabled users
    Sabotage("jobs of disabled users polled", _patched(owner_gate, "_decide", _decide_to_poll), scene=disabled_often, oracle="polled"),
    Sabotage(
        "an enable that wakes no room", _patched(worker, "wake_rooms", lambda *_: 0), scene=disabled_often, oracle="late_after_enable"
    ),
    Sabotage(
        "a lost enable that no tick replaces", _patched(tick, "wake_rooms", lambda *_: 0), scene=disabled_often, oracle="late_after_enable"
    ),
    Sabotage(
        "jobs moved into a room that nobody knows",
        _patched(DirectPath, "want", lambda *_: True),
        scene=disabled_often,
        oracle="late_after_enable",
    ),
    Sabotage("a bundle is deleted before all its jobs were sent on", _patched(bundles, "send_on", _send_on_unseen), 3, refused_bundles),
    Sabotage("a sweep that sees nothing", _patched(LaggingJobs, "sweep", lambda *_, **__: ([], None)), scene=orphaned),
    # operations on many jobs
    Sabotage("an operation started without a place", _patched(MemoryOperations, "add", _add_anywhere), scene=bulk),
    Sabotage("a step of an operation waits in its function", _patched(OperationStep, "run", _run_and_wait), scene=bulk),
    Sabotage(
        "an operation cancels what its owner has just changed",
        _patched(cancel_jobs, "is_filtered", lambda job, operation: _is_filtered(replace(job, changed_at=None), operation)),
        scene=moving_bulk,
        oracle="cancelled_anyway",
    ),
    Sabotage("a refused job stops its operation", _patched(CancelJobs, "takes_changes", lambda *_: False), scene=bulk),
    # changes of tasks while plan is away
    Sabotage(
        "an edit drops missed runs", _patched(planning, "hand_on", _hand_on_nothing), seed=4, scene=changed_behind, oracle="run_missing"
    ),
    Sabotage(
        "a pause records no missed runs",
        _patched(planning, "hand_on", _hand_on_without_entry),
        seed=4,
        scene=changed_behind,
        oracle="run_missing",
    ),
    Sabotage(
        "runs of an earlier generation planned again",
        _patched(top_up, "earlier_keys", lambda *_: []),
        seed=2,
        scene=changed_behind,
        oracle="missed_run_twice",
    ),
    Sabotage("plan tops up one task after the other", _patched(plan, "GROUP", 1), scene=many_tasks, oracle="planned_after_its_time"),
    # runs that catch up
    Sabotage(
        "late runs do not wait for the run before",
        _patched(RunGate, "_before", lambda *_: None),
        scene=catching_up,
        oracle="skipped_while_catching_up",
    ),
    Sabotage(
        "a run in time starts before late ones",
        _patched(RunGate, "_must_wait", _must_wait_if_late),
        scene=catching_up,
        oracle="skipped_while_catching_up",
    ),
    Sabotage(
        "runs that waited for late ones count as in time",
        _patched(settlement, "requeue", _settle_without_cause),
        scene=catching_up,
        oracle="skipped_while_catching_up",
    ),
    Sabotage("jobs of a step that died are not counted", _patched(CancelJobs, "_is_ours", lambda *_: False), scene=dying_bulk),
    # redrives
    Sabotage("dead letters redriven newest first", _patched(MemoryJobs, "letters", _letters_newest_first), seed=2, scene=redriven),
    Sabotage("dead letters redriven in the order of their ids", _patched(stores, "_failed_position", _place_by_id), seed=3, scene=redriven),
    Sabotage("no job waits for an earlier one to be redriven", _patched(ordering, "REDRIVEN_MS", 0), scene=redriven),
    Sabotage("a job is redriven while an open job has its key", _patched(redrives, "_is_taken", lambda *_: False), scene=redriven),
    Sabotage(
        "a chunk begun without storing what it changes",
        _patched(OperationStep, "_announce", lambda *_: True),
        seed=3,
        scene=redriven_by_dying_steps,
    ),
    # replays
    Sabotage(
        "a replay of many with a random id",
        _patched(replay_jobs, "_random", _any_random),
        scene=replayed_by_dying_steps,
        oracle="replayed_twice",
    ),
    Sabotage(
        "a replay of many at the time of the step",
        _patched(replay_jobs, "_submission", _submission_of_now),
        scene=replayed_by_dying_steps,
        oracle="replayed_twice",
    ),
    Sabotage("a replay waits for the jobs of its ordering key", _patched(replay, "OF_ORIGINAL", {"key": None}), oracle="replay_kept"),
    # what dispatchers read
    Sabotage("a full step reads nobody's jobs", _patched(slot_pages, "_source", lambda entry: ("", entry.lane)), scene=crowded_instant),
    Sabotage("jobs that were not read count as started", _patched(SlotReader, "count", lambda *_: 0), scene=crowded_instant),
    Sabotage("an empty overflow is not looked at again", _patched(overflow, "READ_AGAIN_MS", 3_600_000), scene=late_index),
    Sabotage("jobs stored before the overflow is wanted", _patched(direct_path, "want", lambda *_: False), scene=late_index),
    # keys of owners
    Sabotage("a key taken whoever has it", _patched(MemoryJobs, "_take", _take_from_anyone), scene=crowded_keys),
    Sabotage("a key taken from a job that has not ended", _patched(by_key, "decide", _decide_to_create), scene=crowded_keys),
    Sabotage("a change by key answered whether stored or not", _patched(by_key, "try_change", _change_or_not), scene=crowded_keys),
    Sabotage("a job of a key starts without the write that fixes it", _patched(WaitingJobs, "_fix", _fix_in_memory), scene=crowded_keys),
    Sabotage("a repeated put acts again", _patched(by_key, "_repeated", lambda *_: None), scene=crowded_keys),
    # notices beside receivers that hang
    Sabotage("batches wait for their receivers", _patched(notify, "PATIENCE_MS", 10**9), scene=beside_a_hanging_receiver),
    Sabotage("owners take all places for calls", _patched(Calls, "_has_place", lambda *_: True), scene=beside_a_hanging_receiver),
    Sabotage("invocations take no further messages", _patched(invocation, "RECEIVES_MS", 0), scene=beside_a_hanging_receiver),
    Sabotage("slow calls begin until an invocation ends", _patched(invocation, "SLOW_CALLS_MS", 10**9), scene=beside_several),
    Sabotage("a receiver that throttles is not paced", _patched(Calls, "_pace", lambda *_: None), scene=with_a_receiver_that_throttles),
    Sabotage("recoveries do not wait for failures", _patched(notify, "_wait_for_failures", lambda *_: None), scene=with_recoveries),
    # queues
    Sabotage("release steps that do not come again", _patched(worker, "release", _release_once), scene=queues.waiting),
    Sabotage("expired jobs take starts", _patched(release.Release, "_is_expired", lambda *_: False), scene=queues.expired),
    Sabotage("users of a target queue do not take turns", _patched(target_queue, "fair_order", _in_order_of_joining), scene=queues.waiting),
    Sabotage("a job that reports by call-back frees its slot", _patched(LimitGate, "ended", lambda *_: None), scene=queues.reporting),
    Sabotage("released jobs queue again", _patched(limit_gate, "RELEASED_MS", -60_000), scene=queues.long_jobs),
    Sabotage("every job of an ordering queue is checked soon", _patched(ordering, "check_at", lambda *_, **__: None), scene=queues.ordered),
    # limits of keys
    Sabotage(
        "jobs of a key start without its limit", _patched(limit_gate, "limiters_of", _no_keys), scene=keys.quick, oracle="more_at_once"
    ),
    Sabotage("the end of a job of a key requests no step", _patched(target_queue, "wants_ends", lambda *_: False), scene=keys.long_jobs),
    Sabotage("steps of a key come seldom", _patched(Release, "_pause_of_key", lambda *_: 900_000), scene=keys.even, oracle="idle_key"),
    Sabotage("a job takes a start while its key is full", _patched(Release, "_assign_together", _none_together), scene=keys.two_limits),
    Sabotage("keys leave their queues", _patched(MemoryTargets, "drop_queue", lambda *_: True), scene=keys.quick, oracle="left_of_key"),
    Sabotage("records of keys stay", _patched(limits, "expiry", lambda *_: None), scene=keys.quick),
    # a hostile owner
    Sabotage("users pin as many executors as they like", _patched(pins, "is_within", lambda *_: True), scene=pinning),
    Sabotage(
        "dispatchers with nothing to release keep their steps",
        _patched(Dispatch, "_is_barred", lambda *_: False),
        scene=filling,
        oracle="steps_held",
    ),
    Sabotage(
        "past minutes keep all steps", _patched(step_sharing, "_shares_steps", lambda *_: False), scene=few_steps, oracle="others_late"
    ),
    # quotas
    Sabotage(
        "refused jobs stay in the tally",
        _patched(MemoryUsers, "add_within", _add_before_the_decision),
        scene=at_the_quota,
        oracle="below_rate",
    ),
    Sabotage(
        "a tally without its ceiling",
        _patched(MemoryUsers, "add_within", _add_above_the_ceiling),
        seed=5,
        scene=at_the_quota,
        oracle="above_rate",
    ),
    Sabotage(
        "processes begin at the start of a block",
        _patched(QuotaWorld, "begin", lambda _: 0.0),
        seed=6,
        scene=at_the_quota,
        oracle="above_rate",
    ),
    Sabotage("cancelled jobs stay in the stock", _patched(MemoryUsers, "free", lambda *_: None), scene=at_the_quota, oracle="below_stock"),
    Sabotage("all freed jobs are believed", _patched(quota, "_believed", lambda _: 10**9), scene=at_the_quota, oracle="above_stock"),
    # upgrades
    Sabotage(
        "latencies of another deployment are believed",
        _patched(MemoryLedger, "latency", _latency_of_any),
        scene=upgrades.quiet,
        oracle="late",
    ),
    Sabotage(
        "deployments that are not announced", _patched(latency, "expect_cold", lambda *_: None), scene=upgrades.announced, oracle="late"
    ),
    # jobs that wait for others
    Sabotage(
        "jobs start without a check of their predecessors",
        _patched(AfterGate, "concerns", lambda *_: False),
        scene=following,
        oracle="started_before_predecessor",
    ),
    Sabotage(
        "any end of a predecessor is a success",
        _patched(after, "end_of", _succeeded_anyhow),
        scene=following,
        oracle="started_before_predecessor",
    ),
    Sabotage("an open predecessor is gone", _patched(after, "end_of", _deleted_if_open), scene=following, oracle="skipped_though_met"),
    Sabotage(
        "no end is noted, and waiting jobs are checked once a day",
        lambda: _both(_patched(followers, "_note", lambda *_: ([], [])), _patched(after, "FIRST_MS", 86_400_000)),
        scene=following,
        oracle="successor_never_decided",
    ),
    Sabotage(
        "predecessors do not know of their followers",
        _patched(MemoryJobs, "_follow", lambda *_: True),
        scene=following_calmly,
        oracle="late_though_free",
    ),
    # traces
    Sabotage(
        "all attempts have one span", _patched(trace, "attempted", _attempted_once), scene=traced_in_trouble, oracle="span_of_two_things"
    ),
    Sabotage("attempts pass the wait on", _patched(trace, "passed_on", _waited_on), scene=traced, oracle="passed_other_span"),
    # the lease of a batch
    Sabotage("a lease by the monotonic clock alone", _patched(Moment, "since", _since_by_the_monotonic_clock)),
    Sabotage("jobs start whose messages were not leased", _patched(Lease, "take", _take_anyway), oracle="started_unleased"),
    Sabotage("a lost lease is renewed once more", _patched(Lease, "renew", _renew_although_lost), seed=5, scene=frozen),
]
# The default run does not find these: `--all` tries them too.
UNPROVED = [
    Sabotage("the last read before the instant ignored", _patched(BatchWrites, "still_ours", lambda *_: True)),
    Sabotage("running jobs never taken back by reconcile", _patched(leftover, "decide", _recheck_without_take_back)),
    Sabotage("executors ignore pauses", _patched(LaneStateCache, "is_paused", lambda *_: False)),
    Sabotage("take-back of a lease that was extended", _patched(LaggingJobs, "_change", _change_without_lease)),
    Sabotage("turns written without their version", _patched(MemoryOrderingQueues, "_set_head", _head_without_version)),
    Sabotage("a failure pauses no key", lambda: _everywhere(ordering, "pauses", lambda job: False)),
]


def main() -> int:
    parser = argparse.ArgumentParser(description="Remove each guard in turn, and show which oracle of the simulation notices.")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"the most seeds to try (default {SEEDS}, as in the default run)")
    parser.add_argument("--only", default="", help="only guards whose names contain this text")
    parser.add_argument("--all", action="store_true", help="also guards that the default run does not find")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    missed = 0
    print(f"{'sabotage':56} {'found by':24} {'seed':>4}  after")
    for sabotage in [*SABOTAGES, *(UNPROVED if args.all else [])]:
        if args.only not in sabotage.name:
            continue
        found = find(sabotage, [sabotage.seed, *range(1, args.seeds + 1)])
        missed += found is None
        print(f"{sabotage.name:56} " + (f"{found.oracle:24} {found.seed:4}  {found.after_s:5} s" if found else "not found"), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
