"""The state of a monitor after pings and after silence."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.instants import parse
from scheduler.model.monitor import BAD, MOST_RECENT, EventKind, Monitor, MonitorState, NoticeKind, Ping, PingIntake, PingKind
from scheduler.model.schedule import Cron, Schedule
from scheduler.monitors import ping_intake, rules
from scheduler.monitors.rules import FLIPS, HOUR_MS, STABLE_MS

NOW = 1_800_000_000_000
MINUTE = 60_000
START, SUCCESS, FAIL = Ping(PingKind.START), Ping(PingKind.SUCCESS), Ping(PingKind.FAIL, 2, body="disk full")


def monitor(at: int = NOW, **fields: Any) -> Monitor:
    if "cron" in fields:
        fields["schedule"] = Schedule(Cron(fields.pop("cron"), fields.pop("zone", "UTC")))
    else:
        fields.setdefault("period_ms", 5 * MINUTE)
    given: dict[str, Any] = {"grace_ms": MINUTE, "max_duration_ms": 30 * MINUTE} | fields
    return Monitor("ann", "backup", "id", "Backup", "hash", 1, created_at=at, updated_at=at, pulse=rules.created(at), **given)


def after(found: Monitor, *steps: tuple[int, Ping | None], intake: PingIntake | None = None) -> Monitor:
    """The monitor after pings, and judgements (None), at instants."""
    for at, ping in steps:
        found = (rules.judged(found, intake, at) if ping is None else rules.pinged(found, ping, at)).monitor
    return found


def kinds(found: Monitor) -> list[NoticeKind]:
    return [each.kind for each in found.pulse.pending]


def test_silence_is_one_notice_and_the_next_ping_another_one() -> None:
    late = NOW + 6 * MINUTE
    assert after(monitor(), (late - 1, None)).pulse.state is MonitorState.NEW
    silent = after(monitor(), (NOW, SUCCESS), (late, None), (late + 1, None))
    assert silent.pulse.state is MonitorState.DOWN and kinds(silent) == [NoticeKind.DOWN]
    back = after(silent, (late + 2, SUCCESS), (late + 3, SUCCESS))
    assert back.pulse.state is MonitorState.UP and kinds(back) == [NoticeKind.DOWN, NoticeKind.UP]
    assert [each.number for each in back.pulse.pending] == [1, 2]


def test_a_start_ends_silence_but_no_failure() -> None:
    silent = after(monitor(), (NOW + 6 * MINUTE, None))
    assert after(silent, (NOW + 7 * MINUTE, START)).pulse.state is MonitorState.UP
    failed = after(monitor(), (NOW, FAIL))
    assert failed.pulse.state is MonitorState.FAILED and failed.pulse.pending[0].cause == "exit code 2: disk full"
    assert after(failed, (NOW + 1, START)).pulse.state is MonitorState.FAILED
    assert kinds(after(failed, (NOW + 1, START), (NOW + 2, SUCCESS))) == [NoticeKind.FAILED, NoticeKind.UP]


def test_one_notice_for_an_incident_whatever_follows() -> None:
    found = after(monitor(), (NOW + 6 * MINUTE, None), (NOW + 7 * MINUTE, FAIL), (NOW + 8 * MINUTE, FAIL))
    assert kinds(found) == [NoticeKind.DOWN] and found.pulse.state is MonitorState.FAILED


def test_a_start_on_time_and_a_long_run_are_one_long() -> None:
    """Two graces: that of the start is kept, that of the duration is not."""
    hourly = monitor(cron="0 * * * *")
    started = parse("2027-01-15T09:00:00Z")
    found = after(hourly, (started, START), (started + 29 * MINUTE, None))
    assert found.pulse.state is MonitorState.UP
    found = after(found, (started + 30 * MINUTE, None), (started + 50 * MINUTE, SUCCESS), (started + 51 * MINUTE, None))
    assert kinds(found) == [NoticeKind.LONG, NoticeKind.UP]
    assert found.pulse.recent[-1].duration_ms == 50 * MINUTE


def test_a_success_without_a_start_counts_as_both() -> None:
    found = after(monitor(cron="0 * * * *"), (parse("2027-01-15T09:00:10Z"), SUCCESS))
    assert rules.expected_at(found, None) == parse("2027-01-15T10:00:00Z") and found.pulse.started_at is None


@pytest.mark.parametrize("early", [1_000, 30_000, MINUTE])
def test_a_ping_a_little_early_counts_for_its_time(early: int) -> None:
    due = parse("2027-01-16T22:51:00Z")
    daily = after(monitor(cron="51 22 * * *"), (due - early, SUCCESS), (due + 2 * MINUTE, None))
    assert daily.pulse.state is MonitorState.UP and rules.expected_at(daily, None) == due + 24 * HOUR_MS


def test_a_ping_long_before_its_time_does_not_count_for_it() -> None:
    due = parse("2027-01-16T22:51:00Z")
    daily = after(monitor(cron="51 22 * * *"), (due - 2 * MINUTE, SUCCESS), (due + MINUTE, None))
    assert daily.pulse.state is MonitorState.DOWN


def test_the_end_of_a_run_is_no_early_start_of_the_next_one() -> None:
    started = parse("2027-01-16T22:00:00Z")
    hourly = after(monitor(cron="0 * * * *", max_duration_ms=2 * HOUR_MS), (started, START), (started + 59 * MINUTE + 30_000, SUCCESS))
    assert rules.expected_at(hourly, None) == started + HOUR_MS


def test_no_start_is_expected_while_a_run_is_open() -> None:
    started = parse("2027-01-16T22:00:00Z")
    hourly = after(monitor(cron="0 * * * *", max_duration_ms=2 * HOUR_MS), (started, START), (started + 90 * MINUTE, None))
    assert hourly.pulse.state is MonitorState.UP
    assert rules.wake_at(hourly, None, started + 90 * MINUTE) == started + 2 * HOUR_MS


def test_overlapping_runs_with_ids_and_without() -> None:
    a, b = "a", "b"
    steps = [(NOW, Ping(PingKind.START, run=a)), (NOW + 1, Ping(PingKind.START, run=b))]
    both = after(monitor(), *steps, (NOW + 2_001, Ping(PingKind.SUCCESS, run=b)), (NOW + 3_000, Ping(PingKind.SUCCESS, run=a)))
    assert [each.duration_ms for each in both.pulse.recent] == [None, None, 2_000, None] and both.pulse.started_at is None
    open_b = after(monitor(), *steps, (NOW + 2_001, Ping(PingKind.SUCCESS, run=a)))
    assert open_b.pulse.started_at == NOW + 1 and open_b.pulse.run == b
    without = after(monitor(), (NOW, START), (NOW + 1, START), (NOW + 2, SUCCESS), (NOW + 3, SUCCESS))
    assert without.pulse.started_at is None and without.pulse.state is MonitorState.UP and not without.pulse.pending


def test_a_paused_monitor_records_pings_and_is_never_down() -> None:
    still = rules.paused(monitor(), NOW).monitor
    found = after(still, (NOW + 1, FAIL), (NOW + HOUR_MS, None), (NOW + HOUR_MS, SUCCESS))
    assert found.pulse.state is MonitorState.PAUSED and found.pulse.pings == 2 and not found.pulse.pending
    assert rules.wake_at(found, None, NOW) is None


def test_a_resume_begins_a_new_period() -> None:
    later = NOW + HOUR_MS
    found = rules.resumed(rules.paused(monitor(), NOW).monitor, later).monitor
    assert after(found, (later, None)).pulse.state is MonitorState.NEW
    assert rules.wake_at(found, None, later) == later + 6 * MINUTE


def test_a_pause_drops_the_notices_that_wait() -> None:
    assert not rules.paused(after(monitor(), (NOW, FAIL)), NOW + 1).monitor.pulse.pending


def test_flapping_is_one_notice_and_then_the_state_once_it_is_stable() -> None:
    found, at = monitor(), NOW
    for _ in range(20):
        found, at = after(found, (at + 1_000, FAIL), (at + 2_000, SUCCESS)), at + 2_000
    assert kinds(found) == [*[NoticeKind.FAILED, NoticeKind.UP] * (FLIPS // 2), NoticeKind.FLAPPING]
    calm = rules.without_pending(found, found.pulse.pending)
    assert rules.wake_at(calm, None, at) == at + 6 * MINUTE
    assert kinds(after(calm, (at + STABLE_MS - 1, SUCCESS), (at + STABLE_MS - 1, None))) == []
    assert kinds(after(calm, (at + STABLE_MS, SUCCESS), (at + STABLE_MS, None))) == [NoticeKind.UP]


def test_a_flapping_monitor_that_stays_down_is_notified_as_down() -> None:
    found, at = monitor(), NOW
    for _ in range(10):
        found, at = after(found, (at + 1_000, FAIL), (at + 2_000, SUCCESS)), at + 2_000
    found = rules.without_pending(found, found.pulse.pending)
    found = after(found, (at + 6 * MINUTE, None))
    assert kinds(found) == [] and found.pulse.state is MonitorState.DOWN
    assert kinds(after(found, (at + 6 * MINUTE + STABLE_MS, None))) == [NoticeKind.DOWN]


def test_no_monitor_goes_down_while_the_intake_is_away() -> None:
    intake, late = PingIntake(NOW + 4 * MINUTE), NOW + 6 * MINUTE
    assert after(monitor(), (late, None), intake=intake).pulse.state is MonitorState.NEW
    assert after(monitor(), (late, None), intake=PingIntake(late - MINUTE)).pulse.state is MonitorState.DOWN


def test_an_outage_extends_the_deadlines_it_touches_by_a_period() -> None:
    back = NOW + 20 * MINUTE
    intake = ping_intake.checked(PingIntake(NOW), back)
    assert (intake.away_since, intake.back_at, intake.seen_at) == (NOW, back, back)
    pinged = after(monitor(), (NOW, SUCCESS))
    assert rules.start_deadline(pinged, intake) == back + 6 * MINUTE
    assert after(pinged, (back, None), intake=intake).pulse.state is MonitorState.UP
    dead = after(pinged, (back + 6 * MINUTE, None), intake=replace(intake, seen_at=back + 6 * MINUTE))
    assert kinds(dead) == [NoticeKind.DOWN]
    again = after(monitor(), (back + MINUTE, SUCCESS))
    assert rules.start_deadline(again, intake) == back + 7 * MINUTE


def test_an_outage_extends_an_open_run() -> None:
    back = NOW + 40 * MINUTE
    intake = PingIntake(back, NOW + 20 * MINUTE, back)
    found = after(monitor(), (NOW, START), (back, None), intake=intake)
    assert found.pulse.state is MonitorState.UP and rules.wake_at(found, intake, back) == back + 30 * MINUTE


def test_outages_that_follow_each_other_are_one() -> None:
    first = ping_intake.checked(PingIntake(NOW), NOW + 20 * MINUTE)
    second = ping_intake.checked(first, NOW + 30 * MINUTE)
    assert (second.away_since, second.back_at) == (NOW, NOW + 30 * MINUTE)
    assert ping_intake.checked(first, NOW + 21 * MINUTE) == replace(first, seen_at=NOW + 21 * MINUTE)


@pytest.mark.parametrize("cron", ["30 * * * *", "30 2 * * *", "0 3 * * *"])
def test_a_change_of_the_clock_is_no_alarm(cron: str) -> None:
    """A year with pings at the times that the same schedule has for a task."""
    at, found = NOW, monitor(cron=cron, zone="Europe/Berlin")
    while at < NOW + 366 * 24 * HOUR_MS:
        expected = rules.expected_at(found, None)
        assert expected is not None and at < expected <= at + 26 * HOUR_MS
        found = after(found, (expected + 59_000, None), (expected + 59_500, SUCCESS))
        at = expected
    assert not found.pulse.pending


def test_a_write_arms_a_timer_only_if_the_armed_one_comes_too_late() -> None:
    assert rules.must_arm(None, 5, 0) and rules.must_arm(5, 4, 0) and rules.must_arm(0, 5, 0)
    assert not rules.must_arm(4, 5, 0) and not rules.must_arm(4, 4, 0) and not rules.must_arm(4, None, 0)


def test_a_success_moves_no_timer() -> None:
    found = after(monitor(), (NOW, SUCCESS))
    before, now = rules.wake_at(found, None, NOW), NOW + MINUTE
    assert not rules.must_arm(before, rules.wake_at(after(found, (now, SUCCESS)), None, now), now)


def test_the_pulse_keeps_the_last_pings() -> None:
    found = after(monitor(), *((NOW + place, SUCCESS) for place in range(MOST_RECENT + 5)))
    assert len(found.pulse.recent) == MOST_RECENT and found.pulse.recent[0].at == NOW + 5 and found.pulse.pings == MOST_RECENT + 5


def test_events_are_stored_for_texts_failures_and_changes() -> None:
    assert rules.pinged(after(monitor(), (NOW, SUCCESS)), SUCCESS, NOW + 1).events == ()
    first = rules.pinged(monitor(), SUCCESS, NOW).events
    assert [event.kind for event in first] == [EventKind.UP]
    assert [event.kind for event in rules.pinged(monitor(), FAIL, NOW).events] == [EventKind.FAIL, EventKind.FAILED]
    assert len({(event.at, event.number) for event in rules.pinged(monitor(), FAIL, NOW).events}) == 2
    told = rules.pinged(after(monitor(), (NOW, SUCCESS)), Ping(PingKind.SUCCESS, body="12 rows"), NOW).events
    assert [(event.kind, event.body) for event in told] == [(EventKind.SUCCESS, "12 rows")]


def test_every_bad_state_has_a_notice_of_its_name() -> None:
    assert {state.value for state in BAD} | {"up", "flapping"} == {kind.value for kind in NoticeKind}
