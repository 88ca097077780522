"""All ports in one record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from scheduler.model.rules import Rules
from scheduler.storage.ports.calendars import Calendars
from scheduler.storage.ports.counters import Counters
from scheduler.storage.ports.execution import Clock
from scheduler.storage.ports.followers import Followers
from scheduler.storage.ports.groups import Groups
from scheduler.storage.ports.intake import IntakeDeadLetters
from scheduler.storage.ports.jobs import Jobs
from scheduler.storage.ports.lanes import Functions, Lanes, WorkQueue
from scheduler.storage.ports.ledger import Ledger
from scheduler.storage.ports.monitors import Monitors
from scheduler.storage.ports.notices import EventBus, Notices, Traces
from scheduler.storage.ports.operations import Operations
from scheduler.storage.ports.orders import OrderingQueues
from scheduler.storage.ports.outputs import Outputs
from scheduler.storage.ports.owner_alerts import OwnerAlerts
from scheduler.storage.ports.owners import Owners
from scheduler.storage.ports.receipts import Receipts
from scheduler.storage.ports.receivers import Receivers
from scheduler.storage.ports.run_timers import RunTimers
from scheduler.storage.ports.secrets import Secrets
from scheduler.storage.ports.targets import Targets
from scheduler.storage.ports.tasks import Tasks
from scheduler.storage.ports.users import Identity, Trail, Users


class Ports(Protocol):
    """All ports in one record: the argument of most services. An adapter is created when its port is first used."""

    def side_by_side(self, *calls: Callable[[], Any]) -> list[Any]:
        """Make calls that do not wait for each other; return their answers, in order, once the last one has ended.

        Raises the first error in that order, then too only once all have ended: Lambda freezes what an invocation leaves behind.
        """

    @property
    def clock(self) -> Clock: ...
    @property
    def rules(self) -> Rules: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def calendars(self) -> Calendars: ...
    @property
    def orders(self) -> OrderingQueues: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def followers(self) -> Followers: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def work(self) -> WorkQueue: ...
    @property
    def functions(self) -> Functions: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def targets(self) -> Targets: ...
    @property
    def users(self) -> Users: ...
    @property
    def owners(self) -> Owners: ...
    @property
    def identity(self) -> Identity: ...
    @property
    def trail(self) -> Trail: ...
    @property
    def counters(self) -> Counters: ...
    @property
    def monitors(self) -> Monitors: ...
    @property
    def run_timers(self) -> RunTimers: ...
    @property
    def notices(self) -> Notices: ...
    @property
    def receivers(self) -> Receivers: ...
    @property
    def owner_alerts(self) -> OwnerAlerts: ...
    @property
    def events(self) -> EventBus: ...
    @property
    def traces(self) -> Traces: ...
    @property
    def outputs(self) -> Outputs: ...
    @property
    def intake_letters(self) -> IntakeDeadLetters: ...
    @property
    def secrets(self) -> Secrets: ...
