"""Monitors in virtual time: a process dies after each of its effects, messages are lost, the intake and the engine go away.

The oracle: a silent monitor has one notice `down`, the next ping gives one `up`, and no other monitor has any.
"""

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pytest

from lab.world.clock import NOW, FixedClock
from scheduler.model.errors import Unavailable
from scheduler.model.monitor import Monitor, NoticeKind, Ping, PingKind
from scheduler.model.notice import Sending
from scheduler.model.notifications import Notifications
from scheduler.model.work import WorkItem, WorkKind
from scheduler.monitors import judge, ping, rules, service, steps, tokens
from scheduler.monitors.service import NewMonitor
from scheduler.monitors.throttle import PingThrottle
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports.monitors import PARTS

MINUTE, SECOND = 60_000, 1_000
PERIOD, GRACE = 5 * MINUTE, MINUTE
EFFECTS = ("arm", "drop", "write_pulse", "put", "note", "set_intake", "send")
DELIVERY_MS = 150  # the delivery of a message, at most


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Dying:
    """A port whose process meets its fate at effect number `fatal` of all ports."""

    port: Any
    effects: "Effects"

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.port, name)
        if name not in EFFECTS:
            return method

        def effect(*arguments: Any, **options: Any) -> Any:
            self.effects.count += 1
            fatal = self.effects.count == self.effects.fatal
            if fatal and self.effects.fate == "refused":
                raise Unavailable
            if fatal and self.effects.fate == "overtaken":
                self.effects.overtake()
            done = method(*arguments, **options)
            if fatal and self.effects.fate == "dies":
                raise Killed
            return done

        return effect


@dataclass
class Effects:
    """`fate`: the process dies after the effect, AWS refuses it, or other workers judge all that is due just before it."""

    fatal: int = 0
    fate: str = ""
    overtake: Callable[[], object] = lambda: None
    count: int = 0


@dataclass
class Stage:
    """The real services over ports in memory; the loop carries out messages, minutes and pings when they are due."""

    effects: Effects = field(default_factory=Effects)
    lossy: random.Random | None = None  # loses half of the messages of timers
    clock: FixedClock = field(default_factory=FixedClock)
    is_reachable: bool = True
    is_running: bool = True
    acts: list[tuple[int, int, Callable[[], object]]] = field(default_factory=list)  # a heap
    costs_ms: int = 0  # the time of a page of timers, and of the writes of its monitors

    def __post_init__(self) -> None:
        self.plain = MemoryPorts(self.clock)
        names = ("monitors", "notices", "work")
        self.ports = self.plain.but(**{name: Dying(getattr(self.plain, name), self.effects) for name in names})
        self.throttle = PingThrottle()
        self.numbers = itertools.count()
        if self.costs_ms:
            self._slow(self.plain.monitors, "timers", "of_tokens")
        self.effects.overtake = lambda: [judge.wake(part, self.plain) for part in range(PARTS)]

    def _slow(self, port: Any, *names: str) -> None:
        for name in names:
            method = getattr(port, name)
            setattr(port, name, lambda *given, method=method: (self.clock.advance(self.costs_ms), method(*given))[1])

    def create(self, key: str, **fields: Any) -> Monitor:
        receivers = Notifications(("ann@example.com",))
        values: dict[str, Any] = {"period_ms": PERIOD, "grace_ms": GRACE, "max_duration_ms": 30 * MINUTE, "notifications": receivers}
        made: Monitor = self.tried(lambda: service.put(NewMonitor("ann", key, key, **values | fields), self.ports)[0])
        return made

    def tried(self, act: Callable[[], Any]) -> Any:
        """The result of the act, which is repeated after an error."""
        for _ in range(3):
            try:
                return act()
            except (Killed, Unavailable):
                continue
        raise AssertionError("the act never succeeds")

    def ping(self, key: str, kind: PingKind = PingKind.SUCCESS) -> None:
        """A ping. While the intake is away, it is lost."""
        if not self.is_reachable:
            return
        monitor = self.plain.monitors.get("ann", key)
        assert monitor is not None
        token = tokens.derive(monitor.id, monitor.salt, b"key")
        now = self.clock.now()
        self.tried(lambda: ping.ping(token, Ping(kind), "1.2.3.4", self.ports, self.throttle))
        self.clock.at = now  # pings are handled at the same time

    def at(self, at: int, act: Callable[[], object]) -> None:
        heapq.heappush(self.acts, (at, next(self.numbers), act))

    def run(self, until: int) -> None:
        minute = self.clock.now() // MINUTE * MINUTE + MINUTE
        while True:
            wakes = [sent.visible_at + DELIVERY_MS for sent in self.plain.work.queued.values()]
            following = min([minute, *(at for at, *_ in self.acts[:1]), *wakes])
            if following > until:
                self.clock.at = max(self.clock.at, until)
                return
            self.clock.at = max(self.clock.at, following)
            now = self.clock.now()
            if minute <= now:
                minute += MINUTE
                if self.is_running:
                    self.plain.work.send([WorkItem(WorkKind.CHECKS)])
            while self.acts and self.acts[0][0] <= now:
                heapq.heappop(self.acts)[2]()
            for sent in self.plain.work.receive(now - DELIVERY_MS):
                self.plain.work.delete(sent.receipt)
                if not self.is_running or self._loses(sent.item):
                    continue  # the next minute sends it again
                with suppress(Killed, Unavailable):
                    steps.step(sent, self.ports, lambda: None, reachable=lambda: self.is_reachable)
                self.clock.at = now  # the processes of several messages work at the same time

    def _loses(self, item: WorkItem) -> bool:
        """Messages of timers are lost; that of the minute is an outage if it is missing for long."""
        return self.lossy is not None and item.kind is WorkKind.MONITOR and self.lossy.random() < 1 / 2

    def notices(self, key: str) -> list[NoticeKind]:
        """The notices that receivers get, in order: a sending that is enqueued again has the same id."""
        found = {each.id: each for each in self.plain.notices.sent if isinstance(each, Sending) and each.notice.news.job == key}
        return [NoticeKind(each.notice.news.monitor or "") for each in found.values()]


def silent_once(stage: Stage) -> None:
    """A monitor falls silent and pings again."""
    stage.create("dead")
    stage.create("alive")
    for number in range(20):
        stage.at(NOW + number * PERIOD, lambda: stage.ping("alive"))
        if number not in (2, 3, 4):
            stage.at(NOW + number * PERIOD + SECOND, lambda: stage.ping("dead"))
    stage.run(NOW + 20 * PERIOD)


def check(stage: Stage) -> None:
    assert stage.notices("dead") == [NoticeKind.DOWN, NoticeKind.UP], stage.effects
    assert stage.notices("alive") == []
    found = stage.plain.monitors.get("ann", "dead")
    assert found is not None and not found.pulse.pending
    assert rules.wake_at(found, None, stage.clock.now()) is not None
    assert {timer.token_hash for timer in stage.plain.monitors.armed.values()} == set(stage.plain.monitors.stored)


def effects_of_the_scene() -> int:
    stage = Stage()
    silent_once(stage)
    check(stage)
    return stage.effects.count


@pytest.mark.long
@pytest.mark.parametrize("fate", ["dies", "refused", "overtaken"])
def test_one_notice_each_way_whatever_happens_at_an_effect(fate: str) -> None:
    for fatal in range(1, effects_of_the_scene() + 1):
        stage = Stage(Effects(fatal, fate))
        silent_once(stage)
        check(stage)


@pytest.mark.parametrize("seed", range(5))
def test_lost_messages_delay_a_notice_and_lose_none(seed: int) -> None:
    stage = Stage(lossy=random.Random(seed))
    silent_once(stage)
    check(stage)


def test_down_comes_within_a_second_of_the_grace() -> None:
    stage = Stage()
    for number in range(200):
        stage.create(f"m{number}")
        stage.at(NOW + number * 137, lambda number=number: stage.ping(f"m{number}"))  # type: ignore[misc]
    noted: dict[str, int] = {}
    send = stage.plain.notices.send

    def timed(messages: list[Sending], now: int) -> None:
        noted.update({each.notice.news.job: now for each in messages})
        send(messages, now)

    stage.plain.notices.send = timed
    stage.run(NOW + 10 * MINUTE)
    late = sorted(noted[f"m{number}"] - (NOW + number * 137 + PERIOD + GRACE) for number in range(200))
    assert len(late) == 200 and late[0] >= 0 and late[-1] < SECOND, late[-1]


def test_monitors_that_are_due_in_one_second_share_a_message() -> None:
    stage, sent = Stage(), Counter[int]()
    for number in range(60):
        stage.create(f"m{number}", period_ms=MINUTE, grace_ms=MINUTE // 2)
    send = stage.plain.work.send

    def counted(items: Sequence[WorkItem], **options: Any) -> Any:
        sent[stage.clock.now() // MINUTE] += sum(each.kind is WorkKind.MONITOR for each in items)
        return send(items, **options)

    stage.plain.work.send = counted
    for minute in range(1, 5):
        for number in range(60):
            stage.at(NOW + minute * MINUTE - 20_000, lambda number=number: stage.ping(f"m{number}"))  # type: ignore[misc]
    stage.run(NOW + 4 * MINUTE)
    later = [count for minute, count in sent.items() if minute > NOW // MINUTE]
    assert 0 < max(later) <= 4 * PARTS, sent


def test_monitors_that_recover_at_one_instant_are_reported_at_once() -> None:
    """Their timers stay for a minute, so that each wake finds those again that it has judged."""
    stage = Stage()
    keys = [f"m{number}" for number in range(5 * judge.PAGE)]
    for key in keys:
        stage.create(key)
    back = NOW + 10 * MINUTE + 371
    stage.at(back, lambda: [stage.ping(key) for key in keys])
    stage.run(back - 1)
    assert all(stage.notices(key) == [NoticeKind.DOWN] for key in keys)
    stage.run(back + 2 * SECOND)
    assert all(stage.notices(key) == [NoticeKind.DOWN, NoticeKind.UP] for key in keys)


@pytest.mark.long
def test_an_outage_of_the_intake_is_no_storm_and_a_dead_monitor_is_found() -> None:
    """Twenty minutes without pings, and three hundred monitors that ping before and after them."""
    stage = Stage()
    for number in range(300):
        stage.create(f"m{number}")
        for turn in range(12):
            stage.at(NOW + number * 967 + turn * PERIOD, lambda number=number: number and stage.ping(f"m{number}"))  # type: ignore[misc]
    stage.ping("m0")
    stage.at(NOW + 12 * MINUTE, lambda: setattr(stage, "is_reachable", False))
    stage.at(NOW + 32 * MINUTE, lambda: setattr(stage, "is_reachable", True))
    stage.run(NOW + 59 * MINUTE)
    assert stage.notices("m0") == [NoticeKind.DOWN]
    assert {key for key in range(1, 300) if stage.notices(f"m{key}")} == set()


def test_a_monitor_that_dies_in_an_outage_goes_down_after_it() -> None:
    stage = Stage()
    stage.create("dead")
    stage.at(NOW + 4 * MINUTE, lambda: stage.ping("dead"))
    stage.at(NOW + 5 * MINUTE, lambda: setattr(stage, "is_reachable", False))
    stage.at(NOW + 25 * MINUTE, lambda: setattr(stage, "is_reachable", True))
    stage.run(NOW + 30 * MINUTE)
    assert stage.notices("dead") == []
    stage.run(NOW + 34 * MINUTE)
    assert stage.notices("dead") == [NoticeKind.DOWN]


def test_an_engine_that_was_away_reports_no_silence_of_its_own() -> None:
    """Pings are recorded meanwhile, and nobody judges; a ping that failed with the engine would have come in this time."""
    stage = Stage()
    stage.create("dead")
    stage.create("alive")
    for number in range(10):
        stage.at(NOW + number * PERIOD, lambda: stage.ping("alive"))
    stage.at(NOW + 2 * MINUTE, lambda: setattr(stage, "is_running", False))
    stage.at(NOW + 20 * MINUTE, lambda: setattr(stage, "is_running", True))
    stage.run(NOW + 24 * MINUTE)
    assert stage.notices("alive") == stage.notices("dead") == []
    stage.run(NOW + 30 * MINUTE)
    assert stage.notices("alive") == [] and stage.notices("dead") == [NoticeKind.DOWN]


@pytest.mark.parametrize("number", [pytest.param(2_000, marks=pytest.mark.long), pytest.param(100_000, marks=pytest.mark.soak)])
def test_many_monitors_are_judged_in_time_and_a_ping_writes_once(number: int) -> None:
    """Each is pinged every five minutes, and one of fifty misses three pings. A page of timers takes 30 ms, its monitors another 30."""
    stage = Stage(costs_ms=30)
    keys = [f"m{each}" for each in range(number)]
    silent = {key for at, key in enumerate(keys) if at % 50 == 7}
    noted: dict[tuple[str, str], list[int]] = {}
    send = stage.plain.notices.send

    def timed(messages: list[Sending], now: int) -> None:
        for each in messages:
            noted.setdefault((each.notice.news.job, each.notice.news.monitor or ""), []).append(now)
        send(messages, now)

    stage.plain.notices.send = timed
    pinged: dict[str, list[int]] = {}
    writes = [0]

    def ping_all(few: list[str], turn: int) -> None:
        for key in few:
            if turn == 0:
                stage.create(key)
            if key not in silent or turn not in (1, 2, 3):
                began = stage.effects.count
                stage.ping(key)
                writes[0] += stage.effects.count - began if turn and key not in silent else 0
                pinged.setdefault(key, []).append(stage.clock.now())

    for second in range(300):
        for turn in range(6):
            few = keys[second::300]
            stage.at(NOW + turn * PERIOD + second * SECOND + second * 37 % SECOND, lambda few=few, turn=turn: ping_all(few, turn))  # type: ignore[misc]
    stage.run(NOW + 6 * PERIOD - SECOND)
    wrong = {key for key, _ in noted} ^ silent | {key for (key, _), times in noted.items() if len(times) > 1}
    assert not wrong, sorted(wrong)[:9]
    late = sorted(noted[key, NoticeKind.DOWN][0] - (pinged[key][0] + PERIOD + GRACE) for key in silent)
    assert 0 <= late[0] and late[-1] < 1.2 * SECOND, late[-1]  # a message comes up to 800 ms after the instant, and 150 ms later arrives
    up = sorted(noted[key, NoticeKind.UP][0] - pinged[key][1] for key in silent)
    assert 0 <= up[0] and up[-1] < 10 * SECOND, up[-1]
    assert writes[0] == sum(len(pinged[key]) - 1 for key in keys if key not in silent)  # the first one of a monitor also arms its timer
    print(f"\n{number:,} monitors: down {late[len(late) // 2]} ms after the grace (p50), {late[-1]} ms at most; one write a ping; ", end="")
    print(f"up {up[len(up) // 2]} ms after the ping (p50), {up[-1]} ms at most")


# Sabotage: each change makes the oracle red.


def armed_afterwards(stage: Stage) -> Any:
    """The process that ends an incident dies before it arms a timer: no timer is left."""
    return patch.object(ping, "arm", lambda before, after, ports, now: None)


def notice_not_stored(stage: Stage) -> Any:
    """The notice is no part of the pulse: it is lost with its process."""
    original = rules._noticed
    lost = lambda pulse, *rest: replace(original(pulse, *rest), pending=())  # noqa: E731
    return patch.object(rules, "_noticed", lost)


def timer_dropped_at_once(stage: Stage) -> Any:
    """A timer is dropped although its monitor was not judged."""
    return patch.object(rules, "wake_at", lambda monitor, intake, now: None)


@pytest.mark.parametrize("sabotage", [armed_afterwards, notice_not_stored, timer_dropped_at_once])
def test_the_oracle_sees_sabotage(sabotage: Callable[[Stage], Any]) -> None:
    stage = Stage()
    with sabotage(stage):
        silent_once(stage)
    with pytest.raises(AssertionError):
        check(stage)
