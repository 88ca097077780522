"""A stage in memory: the handler of the API and the engine over ports in memory, on a hub whose time a caller moves."""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from lab.world.clock import NOW, SimClock
from lab.world.gateway import ApiPorts, Request, loaded, respond, serving
from lab.world.hub import Hub
from lab.world.queues import AlarmedLanes, AlarmedWork, end_batch, end_step
from lambdas._logger import logger
from lambdas._settings import Settings
from scheduler.accounts import user_admin
from scheduler.callbacks.reports import Addresses
from scheduler.jobs import group_steps
from scheduler.model.account import Quotas, Role
from scheduler.model.job import Delivery, Lane
from scheduler.model.rules import BATCH, Rules
from scheduler.model.work import WorkDelivery
from scheduler.monitors import steps
from scheduler.operations.step import step
from scheduler.pipeline.execute import execute
from scheduler.pipeline.process import Process
from scheduler.pipeline.worker import work
from scheduler.sharing.fair_queue import DEFAULT_WEIGHT
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.storage.memory.owners import MemoryOwners
from scheduler.storage.memory.stores import MemorySecrets
from scheduler.storage.memory.tasks import MemoryReceipts
from scheduler.targets.base import Reach

from punctual_server.memory.accounts import Accounts
from punctual_server.memory.minutes import CountedJobs, CountedTasks, Minutes
from punctual_server.memory.pool import Answering, MemoryPool

PASSWORD = "password-of-{name}"


class ApiClock(SimClock):
    """The clock of a request, which takes no time."""

    def sleep_until(self, at: int = NOW) -> None:
        """Go on at once."""


class SharedSecrets(MemorySecrets):
    """Secrets that the jobs of all users, and all named targets, may use."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__({("", name): [value] for name, value in values.items()})

    def values(self, owner: str, name: str, now: int) -> Sequence[str]:
        return super().values("", name, now)


class MemoryStage:
    """The API and the engine. `answering` answers the requests of `http` jobs; `now` is in UTC ms. `users`: their roles, by name.

    All calls but `request` come from the thread that made it.
    """

    def __init__(
        self, answering: Answering, now: int, *, url: str, users: Mapping[str, str], secrets: Mapping[str, str], skips: bool = True
    ) -> None:
        loaded()  # on a busy machine, a first request that loads the API could time out
        self._hub, self._answering, self._thread = Hub(now), answering, threading.get_ident()
        self._moves = False
        self._reach = Reach(plain_http=True)
        self._minutes = Minutes(self._hub, skips=skips)
        members = MemoryUsers()
        owners = MemoryOwners(members)
        self.accounts = Accounts(members, owners)
        clock, jobs, receipts = SimClock(self._hub, 0), CountedJobs(self._minutes.job_placed), MemoryReceipts()
        self._ports = ApiPorts(
            clock,
            Rules(shards=1, allow_private_http=True),
            jobs=jobs,
            tasks=CountedTasks(jobs, receipts, self._minutes.task_placed),
            receipts=receipts,
            lanes=AlarmedLanes(self._hub, self._wake),
            work=AlarmedWork(self._hub, clock, lambda delivery: self._hub.spawn(partial(self._step, delivery))),
            identity=self.accounts,
            users=members,
            owners=owners,
            secrets=SharedSecrets(secrets),
        )
        self._ports.serve(Settings(stage="memory", api_url=url), self._reach)
        for name, role in users.items():
            user_admin.create(name, PASSWORD.format(name=name), Role(role), DEFAULT_WEIGHT, Quotas(), self._ports)
        self._addresses = Addresses(url, self._ports.secrets)
        self._api = self._ports.but(clock=ApiClock(self._hub, 0))
        self._idle: dict[Lane, list[Process]] = {lane: [] for lane in Lane}
        self._polls: set[Lane] = set()
        self._requests = 0
        self._minutes.start(self._ports)

    @property
    def now(self) -> int:
        return self._hub.time

    @property
    def rounds(self) -> int:
        """The number of minutes at which tick or plan had something to do."""
        return self._minutes.rounds

    def request(
        self, method: str, path: str, query: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """Answer a request to the API: status, headers, content. Any thread may call it, also while the clock moves.

        `query` is the text behind the `?`. The names in `headers` are in lower case.
        """
        with _quiet(), serving(self._api):
            self.accounts.now = self._hub.time
            answer = respond(Request(method, path, query, headers, content), self.accounts.caller)
            if method not in ("GET", "HEAD"):
                self._minutes.refresh()
        return answer

    def run(self, until: int) -> None:
        """Run all that is due up to and at this instant, in order. Raises RuntimeError from another thread, or within such a run."""
        if threading.get_ident() != self._thread:
            raise RuntimeError("only the thread that made the Memory can move its clock")
        if self._moves:
            raise RuntimeError("the clock is moving: what is called by a job cannot move it")
        self._moves = True
        try:
            with _quiet():
                self._hub.run(until)
        finally:
            self._moves = False

    def _wake(self, lane: Lane) -> None:
        if lane not in self._polls:
            self._polls.add(lane)
            self._hub.at(self._hub.time, partial(self._poll, lane))

    def _poll(self, lane: Lane) -> None:
        self._polls.discard(lane)
        batch = self._ports.lanes.receive(lane, BATCH[lane], self._hub.time)
        if batch:
            self._hub.spawn(lambda: self._execute(lane, batch))
        if len(batch) == BATCH[lane]:
            self._wake(lane)

    def _execute(self, lane: Lane, batch: list[Delivery]) -> None:
        self._requests += 1
        process = self._idle[lane].pop() if self._idle[lane] else Process.of(lane, "0", self._ports)
        pool = MemoryPool(self._hub, self._ports, self._addresses, self._reach, self._answering)
        left = execute(lane, batch, self._ports, process, pool=pool, request_id=f"r{self._requests}")
        self._idle[lane].append(process)
        end_batch(self._ports.lanes, lane, batch, left)

    def _step(self, delivery: WorkDelivery) -> None:
        done = work(delivery, self._ports, operation=step, group=group_steps.step, monitor=steps.step)
        end_step(self._ports.work, delivery, done, self._hub.time)


@contextmanager
def _quiet() -> Iterator[None]:
    """Print no lines of a function's log but errors: on Lambda they go to CloudWatch, here to the output of a test."""
    lines = logging.getLogger(logger.name)
    before = lines.level
    lines.setLevel(logging.ERROR)
    try:
        yield
    finally:
        lines.setLevel(before)
