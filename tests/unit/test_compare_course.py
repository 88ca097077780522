"""A run of `make compare` from its orders to its figures: with a fake session in virtual time, then with a real driver in processes."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from compare import course, install
from compare.accounting import cpu_s, memory_mb, tree
from compare.contestants import CONTESTANTS, driver
from compare.drivers import lib
from compare.drivers.lib import Order
from compare.work import QUANTILES, Outcome, Start, Workload

SLEEPING = "compare.drivers.sleeping"
TEN = Workload("ten", 10)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Peer:
    """A session in virtual time: creates jobs at a rate, and starts them late, twice or not at all."""

    clock: Clock
    creates: float = 1_000  # really created in a second ...
    per_second: int = 1_000  # ... and promised
    late_ms: float = 3
    lost: int = 0
    doubled: int = 0
    roots: list[int] = field(default_factory=list)
    settings: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    orders: list[Order] = field(default_factory=list)

    def create(self, order: Order) -> Mapping[str, Any]:
        self.orders.append(order)
        began = self.clock.now
        self.clock.now += order.count / self.creates
        return {"began": began, "ended": self.clock.now, "cpu_s": 0.1, "api": "post"}

    def store(self, count: int) -> None:
        raise NotImplementedError

    def ended(self, work: Workload, order: Order) -> bool:
        return not self.lost and self.clock.now >= order.at + order.seconds + self.late_ms / 1_000

    def starts(self, work: Workload, order: Order) -> list[Start]:
        started = [Start(name, self.late_ms) for name, _ in order.jobs()[self.lost :]]
        return started + started[: self.doubled]


def ran(peer: Peer, work: Workload = TEN) -> Outcome:
    return course.run(peer, work, "http://127.0.0.1:1/", clock=peer.clock)


def test_every_job_of_a_punctual_peer_is_counted_once() -> None:
    seen = ran(Peer(Clock()))
    assert (seen.lost, seen.doubled, seen.early, seen.p50, seen.most) == (0, 0, 0, 3, 3)
    assert (seen.created_per_s, len(seen.quantiles)) == (1_000, len(QUANTILES))
    assert seen.notes[0] == "created by post"


def test_all_jobs_are_created_before_the_first_instant() -> None:
    peer = Peer(Clock())
    ran(peer, Workload("even", 500, seconds=10))
    assert peer.orders[0].at >= 1_000_000 + 0.5 + course.LEAD_S
    assert peer.orders[0].seconds == 10


def test_a_run_ends_without_the_jobs_that_do_not_start() -> None:
    peer = Peer(Clock(), lost=4)
    assert ran(peer).lost == 4
    assert peer.clock.now < peer.orders[0].at + 3 * course.STALL_S


def test_a_job_that_starts_twice_is_reported() -> None:
    seen = ran(Peer(Clock(), doubled=2))
    assert (seen.lost, seen.doubled) == (0, 2)


def test_only_jobs_that_call_get_the_url() -> None:
    peer = Peer(Clock())
    ran(peer)
    ran(peer, Workload("http", 10, calls=True))
    assert [order.url for order in peer.orders] == ["", "http://127.0.0.1:1/"]


def test_jobs_for_now_are_created_at_their_instants_in_one_try() -> None:
    peer = Peer(Clock(), creates=0.5)
    seen = ran(peer, Workload("now", 10, seconds=2, one_by_one=True))
    assert (seen.lost, seen.p50, [order.one_by_one for order in peer.orders]) == (0, 3, [True])


def test_calls_one_by_one_have_one_job_each() -> None:
    order = Order("a-", 3, 100.0, seconds=3)
    assert [len(call) for call in lib.calls(order, 2)] == [2, 1]
    assert list(lib.calls(replace(order, one_by_one=True), 2)) == [[job] for job in order.jobs()]
    assert list(lib.each(order)) == order.jobs()


def test_a_run_whose_jobs_came_too_late_is_repeated_with_more_time() -> None:
    peer = Peer(Clock(), creates=0.5)
    assert ran(peer).lost == 0
    assert [order.prefix for order in peer.orders] == ["ten1-", "ten2-"]


def test_a_peer_that_is_always_too_slow_is_reported() -> None:
    class Slower(Peer):
        def create(self, order: Order) -> Mapping[str, Any]:
            self.creates /= 10
            return super().create(order)

    with pytest.raises(TimeoutError, match="could not be created in time"):
        ran(Slower(Clock(), creates=1))


@pytest.mark.long
@pytest.mark.real_clock
def test_a_driver_creates_and_starts_jobs_and_calls_in_processes_that_end(tmp_path: Path) -> None:
    with course.receiver(tmp_path) as urls, driver("python", SLEEPING, own=True)(tmp_path, urls.log) as session:
        plain = course.run(session, TEN, urls.url)
        calls = course.run(session, Workload("calls", 10, calls=True), urls.url)
        now = course.run(session, Workload("now", 4, seconds=2, one_by_one=True), urls.url)
        roots = list(session.roots)
        assert roots and roots[0] in tree(roots)
    assert [(seen.lost, seen.doubled, seen.early) for seen in (plain, calls, now)] == [(0, 0, 0)] * 3
    assert (tmp_path / "calls.log").read_text().startswith("calls")
    assert plain.memory_mb > 0 and not tree(roots)


BUN = """#!/bin/sh
echo "$*" >>"$COMPARE_FOLDER/commands"
case "$2" in
describe) echo '{"versions": {"bun": "1"}, "settings": "s", "workers": [["bun", "peer.mjs", "worker"]], "per_second": 5, "ready_s": 0}' ;;
worker) exec sleep 60 ;;
produce) echo '{"began": 1, "ended": 2, "cpu_s": 0, "api": "add"}' ;;
esac
"""


@pytest.mark.real_clock
def test_a_driver_on_bun_is_run_by_the_bun_of_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bun").write_text(BUN)
    (tmp_path / "bun").chmod(0o755)
    monkeypatch.setattr(install, "node", lambda: str(tmp_path))
    monkeypatch.setattr(install, "NODE", tmp_path)
    with driver("bun", "peer")(tmp_path, "calls.log") as session:
        assert (session.versions, session.per_second, len(session.roots)) == ({"bun": "1"}, 5, 1)
        assert session.create(Order("a-", 1, 0.0))["api"] == "add"
        roots = list(session.roots)
    commands = [line for line in (tmp_path / "commands").read_text().splitlines() if not line.endswith("worker")]
    assert commands == ["peer.mjs describe", "peer.mjs init", f"peer.mjs produce {tmp_path}/a-order.spec"] and not tree(roots)


def test_a_driver_in_javascript_is_a_contestant_with_locked_packages() -> None:
    drivers = {path.stem for path in (install.HERE / "node").glob("*.mjs")} - {"lib"}
    assert drivers == {"bullmq", "bunqueue", "graphile", "pgboss"}
    assert {"bullmq", "bunqueue", "graphile-worker", "pg-boss"} <= {each.key for each in CONTESTANTS}
    locked = json.loads((install.HERE / "node/package.json").read_text())["dependencies"]
    assert {"bullmq", "bun", "bunqueue", "graphile-worker", "pg-boss"} <= locked.keys()


def test_processor_time_and_memory_of_this_process_are_counted() -> None:
    roots = [os.getpid()]
    before = cpu_s(roots)
    while cpu_s(roots) < before + 0.02:
        sum(range(10_000))
    assert memory_mb(roots) > 5


def test_the_jobs_of_an_order_are_at_equal_distances() -> None:
    assert Order("a-", 4, 100.0, seconds=2).jobs() == [("a-0", 100.0), ("a-1", 100.5), ("a-2", 101.0), ("a-3", 101.5)]
    assert {at for _, at in Order("b-", 3, 7.0).jobs()} == {7.0}
