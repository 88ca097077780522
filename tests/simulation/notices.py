"""Notices in virtual time: notify as Lambda runs it, beside receivers that hang, fail or answer slowly.

Each process is one of the concurrent invocations, with calls and threads of its own. The oracles: notices of owners whose receivers answer
are not late, no notice is lost, none is accepted twice, and no receiver gets a failure after the recovery that ended it.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from lab.world.clock import SimClock
from lab.world.hub import Hub
from scheduler.model.job import Failure, FailureKind, Result, Status, TaskKey
from scheduler.model.notice import News, NoticeMessage, ReceivedNotice, Sending
from scheduler.model.notifications import Notifications, Webhook
from scheduler.notify import calls
from scheduler.notify.invocation import process
from scheduler.notify.notify import Post
from scheduler.storage.memory.notices import MemoryNoticeQueue, MemoryNotices
from scheduler.storage.memory.ports import MemoryPorts
from tests.contract import make

BEGIN = make.NOW - make.NOW % 60_000
TABLE_MS, QUEUE_MS = 5, 10  # of each call
LATE_MS = 1_600  # a notice alone takes up to 600 ms with these times; a second more is late
QUIET, QUIET_EVERY_MS = "berta", 5_000


class Answer(NamedTuple):
    """How a receiver behaves: after how long it answers, and whether with a success."""

    takes: int
    succeeds: bool
    every_ms: int = 0  # it answers 429 to a call that comes sooner after the last one that it accepted


GOOD, HANGS, FAILS, SLOW = Answer(200, True), Answer(10_000, False), Answer(30, False), Answer(3_000, True)
THROTTLES = Answer(100, True, 1_000)


@dataclass
class Crowd:
    """An owner whose tasks fail at one moment. Its receivers answer from `back_at` (ms from the begin) on as they should."""

    owner: str
    tasks: int
    receivers: int
    answer: Answer
    hosts: bool = False  # a host for each receiver
    back_at: int | None = None
    at: int = 3_000
    recovers: int | None = None  # how long after its failure each task succeeds; then a failure may be dropped


@dataclass
class NoticeReport:
    violations: Counter[str] = field(default_factory=Counter)
    latest_ms: int = 0  # of the quiet owner's notices
    calls: Counter[str] = field(default_factory=Counter)  # by owner
    most_receives: int = 0


class SimNoticeQueue(MemoryNoticeQueue):
    """A fair queue of SQS: it delivers in any order, and messages of the owner with the fewest messages in flight first."""

    def __init__(self, hub: Hub, random: Random) -> None:
        super().__init__(SimClock(hub, 0))
        self._hub, self._random = hub, random
        self.most_receives = 0

    def send(self, messages: Sequence[NoticeMessage], now: int) -> None:
        self._hub.sleep_until(self._hub.time + QUEUE_MS)
        super().send(messages, self._hub.time)

    def put(self, message: NoticeMessage) -> None:
        super().send([message], self._hub.time)

    def put_back(self, delays: Mapping[str, int]) -> None:
        self._hub.sleep_until(self._hub.time + QUEUE_MS * len(delays) // 8)
        super().put_back(delays)

    def _chosen(self, visible: list[str]) -> list[str]:
        flying = Counter(
            _owner(queued.message) for queued in self.messages.values() if queued.receives and queued.visible_at > self._hub.time
        )
        self._random.shuffle(visible)
        visible.sort(key=lambda name: flying[_owner(self.messages[name].message)])
        return visible[: self.TEN]

    def _received(self, name: str) -> ReceivedNotice:
        received = super()._received(name)
        self.most_receives = max(self.most_receives, self.messages[name].receives)
        return received


def _owner(message: NoticeMessage) -> str:
    return (message.notice.task if isinstance(message, Sending) else message.task).owner


class SimNotices(MemoryNotices):
    """The table, each of whose calls takes its time."""

    def __init__(self, hub: Hub, queue: SimNoticeQueue) -> None:
        super().__init__()
        self._hub = hub
        self.send = queue.send  # type: ignore[method-assign]
        for name in ("read", "decide", "delivery", "set_delivery"):
            setattr(self, name, self._timed(getattr(self, name)))

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            self._hub.sleep_until(self._hub.time + TABLE_MS)
            return call(*arguments)

        return timed


class SimThreads:
    """The threads of a process: a call without a free one waits for it."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self._free = hub, calls.AT_ONCE
        self._waiting: deque[Callable[[], None]] = deque()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "SimFuture":
        future = SimFuture(self._hub)
        self._waiting.append(lambda: self._run(future, function, arguments))
        self._begin()
        return future

    def _begin(self) -> None:
        if self._free and self._waiting:
            self._free -= 1
            self._hub.spawn(self._waiting.popleft())

    def _run(self, future: "SimFuture", function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        future.answer, future.is_done = function(*arguments), True
        self._free += 1
        self._begin()


class SimFuture:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.answer: Any = None
        self.is_done = False

    def result(self) -> Any:
        while not self.is_done:
            self._hub.sleep_until(self._hub.time + 10)
        return self.answer


class NoticeWorld:
    """Crowds beside the quiet owner, whose task fails all the time."""

    def __init__(self, seed: int, crowds: Sequence[Crowd], *, processes: int, minutes: int) -> None:
        self.hub, self.random, self.report = Hub(BEGIN), Random(seed), NoticeReport()
        self.crowds = {crowd.owner: crowd for crowd in crowds}
        self.ports = MemoryPorts(SimClock(self.hub, 0))
        self.queue = SimNoticeQueue(self.hub, self.random)
        self.ports.notices = SimNotices(self.hub, self.queue)
        self.due: dict[str, int] = {}  # when the news of each notice of the quiet owner was sent, by job
        self.accepted: dict[str, list[int]] = {}  # when a receiver accepted each sending
        self.accepted_at: dict[str, int] = {}  # when a receiver that throttles accepted the last call, by owner
        self.recovered: dict[str, str] = {}  # the last success that a receiver heard of
        self.end = BEGIN + minutes * 60_000
        for _ in range(processes):
            self.hub.spawn(self._invocations)
        for crowd in crowds:
            self._fail(crowd.owner, crowd.tasks, crowd.receivers, [crowd.at] * crowd.tasks, crowd.hosts, crowd.recovers)
        quiet = [*range(4_000, (minutes - 1) * 60_000, QUIET_EVERY_MS)]
        self.due = self._fail(QUIET, len(quiet), 1, quiet, False)

    def run(self) -> NoticeReport:
        self.hub.run(self.end)
        self.report.most_receives = self.queue.most_receives
        for job, at in self.due.items():
            accepted = [times[0] for id, times in self.accepted.items() if f".{job}." in id]
            late = accepted[0] - at if accepted else self.end - at
            self.report.latest_ms = max(self.report.latest_ms, late)
            self._check("lost" if not accepted else "late", bool(accepted) and late <= LATE_MS)
        for times in self.accepted.values():
            self._check("twice", len(times) == 1)
        for crowd in self.crowds.values():
            if crowd.back_at is not None or crowd.answer.succeeds:
                told = ".failure." if crowd.recovers is None else ".recovery."
                accepted = [id for id in self.accepted if f"notice_{crowd.owner}-" in id and told in id]
                self._check("lost", len(accepted) == crowd.tasks * crowd.receivers)
        return self.report

    def _check(self, kind: str, is_right: bool) -> None:
        if not is_right:
            self.report.violations[kind] += 1

    def _fail(self, owner: str, tasks: int, receivers: int, at: Sequence[int], hosts: bool, recovers: int | None = None) -> dict[str, int]:
        """Let tasks fail, and return when, by job."""
        hooks = tuple(Webhook(f"https://{owner}{n if hosts else ''}.example.com/{n}", "hook") for n in range(receivers))
        due = {}
        for number in range(tasks):
            task = make.task(owner=owner, id=f"{owner}-{number}", notifications=Notifications(webhooks=hooks))
            assert self.ports.tasks.store(None, task, [])
            job, time = f"{owner}_{number}", BEGIN + at[number] + self.random.randint(0, 1_000)
            news = News(TaskKey(owner, task.id), f"{job}.0", job, "log", Status.FAILED, time, time)
            self.hub.at(time, lambda news=news: self.queue.put(news))  # type: ignore[misc]
            if recovers is not None:
                over = News(news.task, f"{job}.1", job, "log", Status.SUCCEEDED, time + recovers, time)
                self.hub.at(over.at, lambda over=over: self.queue.put(over))  # type: ignore[misc]
            due[job] = time
        return due

    def _invocations(self) -> None:
        post, threads = Post(lambda payload, id: Result(), self._call), SimThreads(self.hub)
        while True:
            event = self.queue.receive(20)
            if not event:
                continue
            self.hub.sleep_until(self.hub.time + QUEUE_MS)
            result = process(event, self.queue, self.ports, post=post, threads=threads)  # type: ignore[arg-type]
            self.queue.delete([each.receipt for each in event if each.message_id not in result.unfinished])

    def _call(self, owner: str, payload: Mapping[str, Any], id: str) -> Result:
        crowd = self.crowds.get(owner)
        is_good = crowd is None or (crowd.back_at is not None and self.hub.time >= BEGIN + crowd.back_at)
        answer = GOOD if crowd is None or is_good else crowd.answer
        self.report.calls[owner] += 1
        self.hub.sleep_until(self.hub.time + answer.takes)
        if not answer.succeeds:
            return Result(failure=Failure(FailureKind.RETRYABLE, "no answer"))
        if answer.every_ms and self.hub.time < self.accepted_at.get(owner, 0) + answer.every_ms:
            return Result(failure=Failure(FailureKind.THROTTLED, "HTTP 429", answer.every_ms))
        self.accepted_at[owner] = self.hub.time
        self.accepted.setdefault(id, []).append(self.hub.time)
        self._check_order(payload)
        return Result()

    def _check_order(self, payload: Mapping[str, Any]) -> None:
        """Check a notice that a receiver has accepted: it must not tell of a failure before the last success that it heard of."""
        told = payload["body"]
        task = f"{told['data']['task']['id']} {payload['url']}"
        if told["type"] == "task.recovery":
            self.recovered[task] = max(told["timestamp"], self.recovered.get(task, ""))
        self._check("after its recovery", told["type"] != "task.failure" or told["timestamp"] > self.recovered.get(task, ""))


def beside_a_hanging_receiver(seed: int) -> NoticeWorld:
    """One owner's receivers hang; in a small account two batches run at once."""
    return _ran(NoticeWorld(seed, [Crowd("anton", 120, 3, HANGS)], processes=2, minutes=4))


def beside_several(seed: int) -> NoticeWorld:
    """Receivers of several owners hang, each in its own way."""
    crowds = [Crowd("anton", 40, 2, HANGS, back_at=60_000), Crowd("carla", 3, 30, HANGS, hosts=True), Crowd("dora", 60, 1, SLOW)]
    crowds += [Crowd("emil", 60, 1, FAILS), *(Crowd(f"f{number}", 20, 1, HANGS, at=number * 9_000) for number in range(4))]
    return _ran(NoticeWorld(seed, crowds, processes=2, minutes=12))


def with_a_receiver_that_throttles(seed: int) -> NoticeWorld:
    """300 tasks fail at one moment, and their one receiver accepts a call a second, as a webhook of Slack does."""
    return _ran(NoticeWorld(seed, [Crowd("ina", 300, 1, THROTTLES)], processes=5, minutes=60))


def with_recoveries(seed: int) -> NoticeWorld:
    """Tasks succeed soon after their failure, while their receivers are slow or fail."""
    crowds = [Crowd("gerd", 8, 2, SLOW, recovers=2_000), Crowd("hans", 10, 2, FAILS, back_at=40_000, recovers=5_000)]
    return _ran(NoticeWorld(seed, crowds, processes=2, minutes=6))


def _ran(world: NoticeWorld) -> NoticeWorld:
    world.run()
    return world
