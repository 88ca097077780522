"""The jobs that a dispatcher releases: a window of unfinished jobs per lane, shared among users and dispatchers."""

from collections import Counter
from typing import Any

import pytest

from scheduler.model.backlog import Backlog, Demand
from scheduler.model.job import DueEntry, JobKey, Lane, UnitKey
from scheduler.model.rules import Rules
from scheduler.sharing.fair_queue import AHEAD_S
from scheduler.sharing.window import PUBLISHED_MS, RESTED_MS, STEP_MS, STILL_MS, WEIGHTS_MS, WIDEN, Flow, narrowest
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryLedger
from tests.conftest import NOW, FixedClock
from tests.unit.stage import Wrapped, refuse

ME, OTHER = UnitKey("2026-11-20T10:01", 0), UnitKey("2026-11-20T10:01", 1)
WINDOW = 10
AHEAD_MS = 3_600_000  # due so far ahead that no job becomes late in a test


class World:
    """A flow whose lane finishes `capacity` jobs between two polls."""

    def __init__(self, capacity: int = 5, window: int = WINDOW) -> None:
        self.window = window
        self.clock, self.ledger, self.users = FixedClock(NOW), MemoryLedger(), MemoryUsers()
        self.capacity, self.in_hand, self.looks, self.queued = capacity, 0, 0, 0
        self.flow = self.made()

    def made(self, **ports: Any) -> Flow:
        windows = {Lane.ONE_TIME: self.window, Lane.RECURRING: self.window}
        ledger, users = ports.get("ledger", self.ledger), ports.get("users", self.users)
        self.flow = Flow(
            ME,
            ports.get("outstanding", self.outstanding),
            lambda lane: self.queued,
            MemoryPorts(self.clock, Rules(windows=windows), ledger=ledger, users=users),
        )
        return self.flow

    def outstanding(self, lane: Lane, until: int) -> int:
        self.looks += 1
        self.in_hand = max(self.in_hand - self.capacity, 0)
        return self.in_hand

    def release(self, *entries: DueEntry, paused: tuple[Lane, ...] = ()) -> list[DueEntry]:
        went = self.flow.release(entries, paused)
        self.in_hand += len(went)
        return went

    def step(self) -> list[DueEntry]:
        self.clock.advance(STEP_MS)
        return self.release()


def ahead(capacity: int) -> int:
    """Return how many jobs may wait in a lane besides the window, if it finishes `capacity` jobs between two polls."""
    return int(1_000 * capacity / STEP_MS * AHEAD_S)


def due(owner: str, count: int, lane: Lane = Lane.ONE_TIME) -> list[DueEntry]:
    return [DueEntry.of(JobKey(owner, f"{owner}{number:05d}"), "slot", NOW + AHEAD_MS + number, lane, 1) for number in range(count)]


def test_jobs_that_fit_the_window_go_at_once_without_a_read() -> None:
    world = World()
    nothing = Wrapped(world.ledger, report_backlog=refuse, backlogs=refuse)
    world.made(ledger=nothing, users=Wrapped(world.users, weights=refuse), outstanding=refuse)
    assert len(world.release(*due("a", WINDOW))) == WINDOW
    assert len(world.flow) == 0 and world.flow.next_at(()) is None


def test_a_window_that_seems_full_is_polled_before_a_job_waits() -> None:
    world = World(capacity=100)
    for _ in range(5):
        assert len(world.release(*due("a", WINDOW))) == WINDOW
        world.clock.advance(STEP_MS)
    assert world.looks and not world.ledger.backlogs(Lane.ONE_TIME, 0)


def test_jobs_beyond_the_window_go_as_others_finish() -> None:
    world = World(capacity=5)
    assert len(world.release(*due("a", 100))) == WINDOW
    assert len(world.flow) == 90 and world.flow.next_at(()) == NOW + STEP_MS
    went = [len(world.step()) for _ in range(12)]
    assert went[-1] == 5 and sum(went) == 12 * 5 + ahead(5)
    assert world.in_hand <= WINDOW + ahead(5)


def test_between_two_polls_only_the_room_of_the_last_one_is_used() -> None:
    world = World()
    world.release(*due("a", 100))
    world.clock.advance(STEP_MS - 1)
    assert world.release() == [] and world.looks == 0


def test_a_lane_that_could_take_more_gets_more() -> None:
    world = World(capacity=1_000)
    world.release(*due("a", 2_000))
    went = [len(world.step()) for _ in range(8)]
    assert sum(went) + WINDOW == 2_000


def test_users_share_a_lane_by_weight() -> None:
    world = World(capacity=5)
    world.users.set_weight("c", 3.0)
    world.release(*due("a", 500), *due("b", 100), *due("c", 100))
    got = Counter(entry.key.owner for _ in range(12) for entry in world.step())
    assert got["c"] == pytest.approx(3 * got["a"], abs=4) and got["a"] == pytest.approx(got["b"], abs=2)


def test_a_weight_changed_meanwhile_counts_within_a_minute() -> None:
    world = World(capacity=20)
    world.release(*due("a", 3_000), *due("b", 3_000))
    for _ in range(4):
        world.step()
    world.users.set_weight("b", 4.0)
    for _ in range(WEIGHTS_MS // STEP_MS):
        world.step()
    got = Counter(entry.key.owner for _ in range(10) for entry in world.step())
    assert got["b"] == pytest.approx(4 * got["a"], rel=0.1)


def test_many_jobs_of_one_instant_are_in_fair_order() -> None:
    world = World()
    entries = [DueEntry.of(JobKey(owner, f"{n}"), "slot", NOW + AHEAD_MS, Lane.ONE_TIME, 1) for owner in ("a", "b") for n in range(20)]
    assert Counter(entry.key.owner for entry in world.flow.order(entries)[:10]) == {"a": 5, "b": 5}
    few = entries[15:24]
    assert world.flow.order(few) == few


def test_lanes_do_not_wait_for_each_other() -> None:
    world = World()
    assert len(world.release(*due("a", 50))) == WINDOW
    assert len(world.release(*due("b", WINDOW, Lane.RECURRING))) == WINDOW


def test_jobs_that_wait_for_a_paused_lane_stay() -> None:
    world = World()
    world.release(*due("a", 50))
    world.clock.advance(STEP_MS)
    assert world.release(paused=(Lane.ONE_TIME,)) == [] and world.flow.next_at((Lane.ONE_TIME,)) is None
    assert world.release() != []


def test_a_backlog_is_published_while_it_lasts_and_dropped_after() -> None:
    world = World(capacity=10)
    world.users.set_weight("a", 2.0)
    world.release(*due("a", 60))
    world.step()
    (told,) = world.ledger.backlogs(Lane.ONE_TIME, NOW)
    assert (told.unit, told.at, told.outstanding, told.users) == (ME, NOW + STEP_MS, 0, {"a": Demand(2.0, 50)})
    while len(world.flow):
        world.step()
    assert world.ledger.backlogs(Lane.ONE_TIME, 0) == []


def test_a_dispatcher_that_ends_drops_its_backlog() -> None:
    world = World()
    world.release(*due("a", 60))
    world.step()
    world.flow.close()
    assert world.ledger.backlogs(Lane.ONE_TIME, 0) == []


def told(at: int, outstanding: int = 0, rate: float = 0.0, **users: int) -> Backlog:
    return Backlog(OTHER, Lane.ONE_TIME, at, outstanding, rate, {name: Demand(1.0, count) for name, count in users.items()})


def test_two_dispatchers_share_the_room_by_their_backlogs() -> None:
    world = World(capacity=8)
    world.release(*due("a", 200))
    world.ledger.report_backlog(told(NOW + STEP_MS, outstanding=0, b=200))
    (alone,) = [len(World(capacity=8).release(*due("a", 200)))]
    went = len(world.step())
    room = WINDOW + ahead(8) - 2  # it has done 8 of 10
    assert alone == WINDOW and went == room // 2


def test_unfinished_jobs_of_another_dispatcher_take_room() -> None:
    world = World(capacity=8)
    world.release(*due("a", 200))
    world.ledger.report_backlog(told(NOW + STEP_MS, outstanding=500, b=200))
    assert world.step() == []


def test_the_backlog_of_a_dead_dispatcher_is_ignored() -> None:
    world = World(capacity=8)
    world.release(*due("a", 200))
    world.ledger.report_backlog(told(NOW + STEP_MS - PUBLISHED_MS - 1, outstanding=500, b=200))
    assert len(world.step()) == WINDOW + ahead(8) - 2


@pytest.mark.parametrize("ports", [("ledger",), ("users",), ("ledger", "users")])
def test_without_the_ledger_each_dispatcher_decides_alone(ports: tuple[str, ...]) -> None:
    world = World(capacity=8)
    refusing: dict[str, Any] = {
        "ledger": Wrapped(world.ledger, report_backlog=refuse, backlogs=refuse, drop_backlog=refuse),
        "users": Wrapped(world.users, weights=refuse),
    }
    world.made(**{name: refusing[name] for name in ports})
    world.release(*due("a", 60), *due("b", 60))
    room = WINDOW + ahead(8) - 2
    assert Counter(entry.key.owner for entry in world.step()) == {"a": room - room // 2, "b": room // 2}
    world.flow.close()


def test_no_job_goes_while_finished_jobs_cannot_be_counted() -> None:
    world = World()
    world.made(outstanding=lambda lane, until: refuse(None))
    world.release(*due("a", 60))
    assert world.step() == [] and world.flow.next_at(()) == world.clock.at + STEP_MS


def test_a_still_lane_without_waiting_messages_gets_more() -> None:
    world = World(capacity=0)  # for example, its messages were lost
    world.release(*due("a", 100))
    went = [len(world.step()) for _ in range(-(-STILL_MS // STEP_MS))]
    assert sum(went) == went[-1] == WINDOW


def test_a_still_lane_with_waiting_messages_gets_none() -> None:
    world = World(capacity=0)
    world.queued = 1
    world.release(*due("a", 100))
    assert not any(world.step() for _ in range(10 * STILL_MS // STEP_MS))


# late jobs


def late(count: int, owner: str = "a") -> list[DueEntry]:
    return [DueEntry.of(JobKey(owner, f"{number}"), "slot", NOW - 1, Lane.ONE_TIME, 1) for number in range(count)]


def test_late_jobs_begin_with_a_narrow_window() -> None:
    world = World(window=4_000)
    assert len(world.release(*late(1_000))) == narrowest(4_000) == 100
    assert (narrowest(WINDOW), narrowest(500)) == (WINDOW, 50), "few are no crowd"


def test_a_window_is_widened_to_three_quarters_of_the_capacity() -> None:
    world = World(capacity=0, window=400)
    world.release(*late(1_000))
    for _ in range(8):
        world.step()
    assert world.in_hand == pytest.approx(300, abs=10)


def retries(count: int, owner: str = "a") -> list[DueEntry]:
    return [DueEntry.of(JobKey(owner, f"{number}"), "slot", NOW - 1, Lane.RETRY, 1) for number in range(count)]


def test_the_window_of_a_retry_lane_of_unknown_size_grows_only_by_ends() -> None:
    world = World(capacity=0, window=4_000)
    assert len(world.release(*retries(200))) == 2
    for _ in range(30):
        world.step()
    assert world.in_hand == 2, "none has ended: nothing shows that the lane has more executors"
    world = World(capacity=5, window=4_000)
    released = len(world.release(*retries(1_000)))
    for _ in range(60):
        released += len(world.step())
    assert released > 200


def test_jobs_of_a_user_at_the_bound_wait_and_others_pass() -> None:
    world = World(capacity=0, window=100)
    world.flow.pinned = lambda lane: {"a": 7}
    world.release(*due("x", 100))
    world.in_hand = 0
    world.release(*due("a", 50), *due("b", 5))
    assert Counter(entry.key.owner for entry in world.step()) == {"b": 5}
    world.flow.pinned = lambda lane: {"a": 1}
    world.in_hand = 0
    assert "a" in Counter(entry.key.owner for entry in world.step())


def test_late_jobs_of_a_user_at_the_bound_wait_and_nobody_behind_them() -> None:
    world = World(capacity=0, window=100)
    world.flow.pinned = lambda lane: {"a": 7}
    assert Counter(entry.key.owner for entry in world.release(*late(3), *late(2, "b"))) == {"b": 2}
    assert Counter(entry.key.owner for entry in world.release(*late(4, "b"), *due("a", 1))) == {"b": 4, "a": 1}
    assert world.flow.only_barred() and not world.step()
    world.flow.pinned = lambda lane: {"a": 1}
    assert Counter(entry.key.owner for entry in world.step()) == {"a": 3}


def test_a_lane_with_too_many_waiting_messages_is_narrowed() -> None:
    world = World(capacity=20, window=400)  # twenty jobs a poll, though its capacity is 400
    world.release(*due("a", 400), *late(4_000))
    world.queued = 300
    for _ in range(40):
        world.step()
    assert ahead(20) <= world.in_hand <= ahead(20) + narrowest(400)


@pytest.mark.parametrize(("queued", "a_second"), [(0, 40), (1, 16)])
def test_a_spurt_sets_the_rate_only_if_no_message_waits(queued: int, a_second: int) -> None:
    world = World(capacity=5)
    world.queued = queued
    world.release(*due("a", 1_000))
    for _ in range(20):
        world.step()
    assert world.in_hand == WINDOW + 10
    world.capacity = 20
    for _ in range(2):
        world.step()
    assert world.in_hand == WINDOW + a_second


def test_jobs_released_ahead_widen_the_window_for_late_ones() -> None:
    world = World(capacity=0, window=400)
    assert len(world.release(*due("a", 300))) == 300
    world.clock.advance(AHEAD_MS + RESTED_MS - 1)
    world.in_hand = 100  # 200 are done
    world.release(*late(1_000))
    world.step()
    assert world.in_hand >= 300


def test_a_lane_that_was_idle_begins_like_a_new_one() -> None:
    world = World(capacity=400, window=400)
    assert len(world.release(*due("a", 300))) == 300
    world.clock.advance(AHEAD_MS + 300 + RESTED_MS)
    assert len(world.release(*late(1_000))) <= WIDEN * narrowest(400)


def test_the_weight_of_a_further_user_is_read_alone() -> None:
    world, reads = World(capacity=1), list[int]()
    users = world.users
    world.made(users=Wrapped(users, weights=lambda verb, ids: (reads.append(len(ids)), verb(ids))[1]))
    world.release(*[entry for n in range(20) for entry in due(f"u{n}", 1)])
    reads.clear()
    for n in range(20, 23):
        world.clock.advance(STEP_MS)
        world.release(*due(f"u{n}", 1))
    assert reads == [1, 1, 1]
    world.clock.advance(WEIGHTS_MS)
    world.release()
    assert len(reads) == 4 and reads[-1] > 1
