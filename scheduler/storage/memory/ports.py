"""All ports in memory: one record, whose ports tests and the simulation replace by their own."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from scheduler.model.rules import Rules
from scheduler.storage.memory.accounts import MemoryIdentity, MemoryTrail, MemoryUsers
from scheduler.storage.memory.counters import MemoryCounters
from scheduler.storage.memory.event_bus import MemoryEvents
from scheduler.storage.memory.followers import MemoryFollowers
from scheduler.storage.memory.groups import MemoryGroups
from scheduler.storage.memory.intake_letters import MemoryIntakeDeadLetters
from scheduler.storage.memory.monitors import MemoryMonitors
from scheduler.storage.memory.notices import MemoryNotices
from scheduler.storage.memory.ordering_queues import MemoryOrderingQueues
from scheduler.storage.memory.owner_alerts import MemoryOwnerAlerts
from scheduler.storage.memory.owners import MemoryOwners
from scheduler.storage.memory.receivers import MemoryReceivers
from scheduler.storage.memory.run_timers import MemoryRunTimers
from scheduler.storage.memory.stores import (
    MemoryFunctions,
    MemoryJobs,
    MemoryLanes,
    MemoryLedger,
    MemoryOperations,
    MemoryOutputs,
    MemorySecrets,
    MemoryWork,
)
from scheduler.storage.memory.targets import MemoryTargets
from scheduler.storage.memory.tasks import MemoryReceipts, MemoryTasks
from scheduler.storage.memory.traces import MemoryTraces


@dataclass
class MemoryPorts:
    """The record `Ports`. Its fields are `Any`, so that any of them may be a wrapper around a port."""

    clock: Any
    rules: Rules = field(default_factory=Rules)
    jobs: Any = field(default_factory=MemoryJobs)
    tasks: Any = None  # by default one over these jobs and receipts
    calendars: Any = None  # by default those of these tasks
    orders: Any = field(default_factory=MemoryOrderingQueues)
    groups: Any = field(default_factory=MemoryGroups)
    followers: Any = field(default_factory=MemoryFollowers)
    ledger: Any = field(default_factory=MemoryLedger)
    lanes: Any = field(default_factory=MemoryLanes)
    work: Any = None  # by default one on this clock
    functions: Any = field(default_factory=MemoryFunctions)
    receipts: Any = field(default_factory=MemoryReceipts)
    operations: Any = field(default_factory=MemoryOperations)
    targets: Any = field(default_factory=MemoryTargets)
    users: Any = field(default_factory=MemoryUsers)
    owners: Any = None  # by default one over these users
    identity: Any = field(default_factory=MemoryIdentity)
    trail: Any = field(default_factory=MemoryTrail)
    counters: Any = field(default_factory=MemoryCounters)
    monitors: Any = field(default_factory=MemoryMonitors)
    run_timers: Any = field(default_factory=MemoryRunTimers)
    notices: Any = field(default_factory=MemoryNotices)
    receivers: Any = field(default_factory=MemoryReceivers)
    owner_alerts: Any = field(default_factory=MemoryOwnerAlerts)
    events: Any = field(default_factory=MemoryEvents)
    traces: Any = field(default_factory=MemoryTraces)
    outputs: Any = field(default_factory=MemoryOutputs)
    intake_letters: Any = field(default_factory=MemoryIntakeDeadLetters)
    secrets: Any = field(default_factory=MemorySecrets)
    order: Callable[[int], Iterable[int]] = range  # in which of several calls side by side have their effects

    def __post_init__(self) -> None:
        if self.tasks is None:
            self.tasks = MemoryTasks(self.jobs, self.receipts)
        if self.calendars is None:
            self.calendars = self.tasks.calendars
        if self.owners is None:
            self.owners = MemoryOwners(self.users)
        if self.work is None:
            self.work = MemoryWork(self.clock)

    def side_by_side(self, *calls: Callable[[], Any]) -> list[Any]:
        """See `Ports`."""
        answers: dict[int, Any] = {}
        errors: dict[int, Exception] = {}
        for number in self.order(len(calls)):
            try:
                answers[number] = calls[number]()
            except Exception as error:
                errors[number] = error
        if errors:
            raise errors[min(errors)]
        return [answers[number] for number in range(len(calls))]

    def but(self, **ports: Any) -> Self:
        """The same record with these ports instead."""
        other = object.__new__(type(self))
        other.__dict__ = self.__dict__ | ports
        return other
