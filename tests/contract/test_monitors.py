"""The port `Monitors`: over both implementations."""

from dataclasses import replace
from typing import Any

from scheduler.model.monitor import (
    MOST_RECENT,
    EventKind,
    Monitor,
    MonitorEvent,
    MonitorState,
    MonitorTimer,
    NoticeKind,
    PendingNotice,
    PingIntake,
    PingKind,
    Pulse,
    RecentPing,
)
from scheduler.model.notifications import Notifications, Webhook
from scheduler.model.schedule import Cron, Schedule
from scheduler.monitors import rules
from scheduler.monitors.timers import part_of
from scheduler.storage.aws import items
from scheduler.storage.aws.monitors import _encode_pulse
from scheduler.storage.ports import Monitors
from scheduler.storage.ports.monitors import PARTS
from scheduler.tasks.timers import START

NOW, HOUR = 1_800_000_000_000, 3_600_000
FULL = Pulse(
    MonitorState.DOWN,
    since=NOW,
    basis=NOW + 1,
    pinged_at=NOW + 2,
    started_at=NOW + 3,
    run="run-7",
    pings=12,
    notices=3,
    flips=(NOW, NOW + 5),
    flapping=True,
    pending=(PendingNotice(3, NoticeKind.DOWN, NOW, "silence ü"),),
    recent=(
        RecentPing(PingKind.START, NOW),
        RecentPing(PingKind.SUCCESS, NOW + 300_000, 300_000),
        RecentPing(PingKind.FAIL, NOW + 300_000),
    ),
)


def made(key: str = "backup", **fields: Any) -> Monitor:
    given: dict[str, Any] = {"token_hash": f"hash-{key}", "period_ms": 300_000, "pulse": rules.created(NOW)} | fields
    return Monitor(
        "ann", key, f"id-{key}", "Backup", salt=1, grace_ms=60_000, max_duration_ms=3_600_000, created_at=NOW, updated_at=NOW, **given
    )


def stored(monitors: Monitors, monitor: Monitor) -> Monitor:
    assert monitors.put(None, monitor)
    found = monitors.get(monitor.owner, monitor.key)
    assert found is not None
    return found


def test_a_monitor_is_read_back_whole(monitors: Monitors) -> None:
    receivers = Notifications(("ann@example.com",), (Webhook("https://example.com", "secret"),))
    whole = made(pulse=FULL, period_ms=None, schedule=Schedule(Cron("0 3 * * *", "Europe/Berlin")), notifications=receivers)
    found = stored(monitors, whole)
    assert found == replace(whole, pulse=replace(FULL, version=1))
    assert monitors.of_tokens(["hash-backup", "other"]) == {"hash-backup": found}
    assert monitors.get("eve", "backup") is None and monitors.of_tokens(["other"]) == {}


def test_a_key_has_one_monitor(monitors: Monitors) -> None:
    found = stored(monitors, made())
    assert not monitors.put(None, made(token_hash="other")) and monitors.get("ann", "backup") == found


def test_a_change_needs_the_pulse_that_was_read(monitors: Monitors) -> None:
    first = stored(monitors, made())
    assert monitors.put(first, replace(first, name="Other"))
    assert not monitors.put(first, replace(first, name="Third"))
    found = monitors.get("ann", "backup")
    assert found is not None and (found.name, found.pulse.version) == ("Other", 2)


def test_a_change_of_the_pulse_writes_the_pulse_only_and_once(monitors: Monitors) -> None:
    first = stored(monitors, made())
    pinged = replace(first, name="not stored", pulse=replace(first.pulse, pings=1))
    assert monitors.write_pulse(first, pinged) and not monitors.write_pulse(first, pinged)
    found = monitors.get("ann", "backup")
    assert found is not None and (found.name, found.pulse.pings, found.pulse.version) == ("Backup", 1, 2)


def test_another_token_takes_the_place_of_the_former(monitors: Monitors) -> None:
    first = stored(monitors, made())
    assert monitors.put(first, replace(first, token_hash="new", salt=2))
    assert monitors.of_tokens(["hash-backup"]) == {} and monitors.get("ann", "backup") == monitors.of_tokens(["new"])["new"]
    assert not monitors.write_pulse(first, first) and not monitors.put(first, replace(first, token_hash="third"))


def test_a_deleted_monitor_takes_no_ping(monitors: Monitors) -> None:
    first = stored(monitors, made())
    monitors.delete(first)
    monitors.delete(first)
    assert monitors.get("ann", "backup") is None and not monitors.write_pulse(first, first)
    stored(monitors, made())


def test_a_list_has_the_monitors_of_one_owner_by_key(monitors: Monitors) -> None:
    for key in ("c", "a", "b"):
        stored(monitors, made(key))
    stored(monitors, replace(made("d"), owner="eve"))
    page, cursor = monitors.listing("ann", after=None, limit=2)
    assert [each.key for each in page] == ["a", "b"] and cursor == "b"
    page, cursor = monitors.listing("ann", after=cursor, limit=2)
    assert [each.key for each in page] == ["c"] and cursor is None
    assert monitors.listing("bob", after=None, limit=2) == ([], None)


def test_the_history_is_read_newest_first(monitors: Monitors) -> None:
    first = stored(monitors, made())
    events = [MonitorEvent(NOW + at, at, EventKind.FAIL, 2, 1_000, f"text {at}") for at in range(5)]
    monitors.note(first, [*events, MonitorEvent(NOW + 4, 9, EventKind.FAILED)])
    assert monitors.history(first, 3) == [MonitorEvent(NOW + 4, 9, EventKind.FAILED), *events[:2:-1]]
    assert monitors.history(made("other"), 3) == []


def test_timers_are_read_by_their_instants(monitors: Monitors) -> None:
    timers = [MonitorTimer(NOW + at, "hash", NOW) for at in (3, 1, 2, 900_000)]
    for timer in timers:
        monitors.arm(timer)
        monitors.arm(timer)
    part = part_of("hash")
    assert [each.at - NOW for each in monitors.timers(part, START, NOW + 3, 10)] == [1, 2, 3]
    assert monitors.timers(part, (NOW + 2, ""), NOW + 3, 1) == [MonitorTimer(NOW + 2, "hash", NOW)]
    monitors.drop(timers[1])
    monitors.drop(timers[1])
    assert [each.at - NOW for each in monitors.timers(part, (NOW + 1, "hash"), NOW + 3, 10)] == [2, 3], "also behind one that is dropped"
    assert [each.at - NOW for each in monitors.timers(part, START, NOW + 3, 10)] == [2, 3]
    assert monitors.timers((part + 1) % PARTS, START, NOW + HOUR, 10) == []


def test_timers_of_one_instant_are_read_page_by_page(monitors: Monitors) -> None:
    hashes = [each for each in (f"{number:040x}" for number in range(40)) if part_of(each) == part_of(f"{0:040x}")]
    for each in reversed(hashes):
        monitors.arm(MonitorTimer(NOW, each, NOW))
    found, after = list[str](), START
    while page := monitors.timers(part_of(hashes[0]), after, NOW, 7):
        found += [each.token_hash for each in page]
        after = (page[-1].at, page[-1].token_hash)
    assert found == hashes and len(hashes) > 14


def test_the_intake_is_read_back(monitors: Monitors) -> None:
    assert monitors.intake() is None
    for intake in (PingIntake(NOW), PingIntake(NOW + 1, NOW, NOW + 1)):
        monitors.set_intake(intake)
        assert monitors.intake() == intake


def test_a_pulse_with_all_its_pings_fits_into_one_write_unit() -> None:
    recent = tuple(RecentPing(PingKind.SUCCESS, NOW + place * 366 * 86_400_000, 30 * 86_400_000) for place in range(MOST_RECENT))
    pulse = replace(FULL, recent=recent, run="x" * 40, pending=(), flips=tuple(NOW + place for place in range(7)), pings=10**9)
    assert items.size(_encode_pulse("f" * 40, pulse, 10**9)) <= 1_024
