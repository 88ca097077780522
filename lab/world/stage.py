"""The world without a hub, for one invocation after the other: ports in memory, a clock that is set, and pollers that a caller plays."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from lab.world.clock import FixedClock
from lab.world.pools import ScriptedPool
from lab.world.queues import end_batch, end_step
from scheduler.admission.breaker_gate import BreakerRegistry
from scheduler.jobs import group_steps
from scheduler.model import slots
from scheduler.model.job import Delivery, Job, Lane, UnitKey
from scheduler.model.rules import Rules
from scheduler.monitors import steps
from scheduler.operations.step import step
from scheduler.pipeline import leftover
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.dispatch import dispatch
from scheduler.pipeline.execute import execute
from scheduler.pipeline.overflow import overflow
from scheduler.pipeline.process import Process
from scheduler.pipeline.publishing import DispatchResult
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from scheduler.pipeline.unit_lease import LEASE_MS, UnitLease
from scheduler.pipeline.worker import WorkResult, work
from scheduler.storage.memory.ports import MemoryPorts

STEPS = 2_000  # more steps than any scenario takes


@dataclass
class Stage(MemoryPorts):
    """Everything an invocation needs. Ports may be replaced by `Wrapped` ones."""

    clock: FixedClock = field(default_factory=FixedClock)
    rules: Rules = field(default_factory=lambda: Rules(shards=2))
    requests: int = 0
    stride: int = 86_400_000  # how far the clock moves at once while `work_off` waits (ms)

    def post(self, *requests: NewJob, direct: DirectPath | None = None) -> list[Job | None]:
        """All of them in one call; None for a refused one."""
        first = self.requests + 1
        self.requests += len(requests)
        submissions = [Submission(request, random) for random, request in enumerate(requests, first)]
        done = submit_all(submissions, self, direct=direct)
        return [each.job if isinstance(each, Accepted) else None for each in done]

    def dispatch(self, key: UnitKey) -> DispatchResult:
        """One dispatcher for a unit of a minute or of the overflow, which leases it if it is free."""
        unit, now = self.ledger.unit(key), self.clock.now()
        if unit is None or unit.lease_until > now or (unit.handed_out_at is not None and key.minute != slots.OVERFLOW):
            return DispatchResult()
        leased = replace(unit, epoch=unit.epoch + 1, lease_until=now + LEASE_MS)
        if not self.ledger.change_unit(unit, leased):
            return DispatchResult()
        lease = UnitLease(leased, self)
        return overflow(lease) if key.minute == slots.OVERFLOW else dispatch(lease)

    def dispatch_all(self, key: UnitKey) -> DispatchResult:
        """One dispatcher after the other, each when its step is due, until the unit is handed out or rests. Returns the sums."""
        total = DispatchResult()
        for _ in range(STEPS):
            done = self.dispatch(key)
            total.published, total.refused = total.published + done.published, total.refused + done.refused
            total.left_paused, total.handed_out = done.left_paused, done.handed_out
            unit = self.ledger.unit(key)
            if unit is None or unit.handed_out_at is not None or unit.next_at >= slots.start_of(key.minute) + leftover.REST_MS:
                break
            self.clock.sleep_until(unit.next_at)
        return total

    def work_off(self, *, until: int | None = None) -> list[WorkResult]:
        """Carry out the steps whose messages are visible, as the mapping does; with `until`, move the clock to each next one."""
        done: list[WorkResult] = []
        while True:
            for delivery in self.work.receive(self.clock.now()):
                done.append(result := work(delivery, self, operation=step, group=group_steps.step, monitor=steps.step))
                end_step(self.work, delivery, result, self.clock.now())
            following = min((each.visible_at for each in self.work.queued.values()), default=None)
            if following is None or following > (self.clock.now() if until is None else until):
                return done
            assert len(done) < STEPS, f"the work never ends: {done[-3:]}"
            self.clock.sleep_until(min(following, self.clock.at + self.stride))

    def execute(
        self,
        deliveries: Sequence[Delivery],
        *,
        pool: ScriptedPool | None = None,
        lane: Lane = Lane.ONE_TIME,
        request_id: str | None = None,
        **ports: Any,
    ) -> list[str]:
        """Run a batch and delete the messages that are not left, as the event source mapping does.

        `ports`: instead of the stage's. `process`: the state of the executor's process from earlier batches; the rest is new.
        """
        self.requests += 1
        chosen = {item.name: ports.pop(item.name) for item in fields(Process) if item.name in ports}
        view = self.but(**ports)
        process = Process.of(lane, "me", view)
        if "pauses" in chosen:
            process.circuits = BreakerRegistry(view, chosen["pauses"])
        left = execute(
            lane,
            deliveries,
            view,
            replace(process, **chosen),
            pool=pool or ScriptedPool(self.clock),
            request_id=request_id or f"r{self.requests}",
        )
        end_batch(self.lanes, lane, deliveries, left)
        return left

    def receive(self, lane: Lane = Lane.ONE_TIME, limit: int = 10) -> list[Delivery]:
        taken: list[Delivery] = self.lanes.receive(lane, limit, self.clock.now())
        return taken
