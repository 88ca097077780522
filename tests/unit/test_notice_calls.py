"""Which calls of receivers may begin beside those in progress."""

from dataclasses import replace

import pytest

from scheduler.model.job import Status, TaskKey
from scheduler.model.notice import News, Notice, Sending
from scheduler.model.notifications import Occasion, Webhook
from scheduler.notify.calls import (
    AT_ONCE,
    LONGEST_RETRY_MS,
    MOST_GAP_MS,
    SLOW_FOR_MS,
    SLOW_MS,
    SLOW_PLACES,
    Answer,
    Call,
    Calls,
    Receiver,
    receiver_of,
)
from tests.conftest import NOW


def begun(calls: Calls, receiver: Receiver, now: int = NOW) -> Call | None:
    call = calls.begin("m", receiver, now)
    if call is not None:
        call.called_at = now
    return call


def known(calls: Calls, *owners: str) -> Calls:
    """Let a receiver of each owner answer in time."""
    for owner in owners:
        call = begun(calls, Receiver(owner, "a.example"))
        assert call is not None
        ended(calls, call, NOW)
    return calls


def begin_all(calls: Calls, owner: str, now: int = NOW, host: str = "a.example") -> list[Call]:
    """Begin as many calls as there are places for the owner."""
    found = []
    while (call := begun(calls, Receiver(owner, host), now)) is not None:
        found.append(call)
    return found


def ended(calls: Calls, call: Call, now: int) -> None:
    calls.answered(call, now)
    calls.end(call, Answer("sent"))


def test_an_owner_leaves_places_to_others() -> None:
    owners = ("ada", "bob", "eve", "joe")
    calls = known(Calls(), *owners)
    counts = [len(begin_all(calls, owner)) for owner in owners]
    assert counts[0] == AT_ONCE // 5 and min(counts) >= 3 and sum(counts) < AT_ONCE * 2 // 3, counts
    assert begun(calls, Receiver("new", "b.example")) is not None


def test_a_dozen_owners_whose_receivers_hang_at_once_leave_a_place() -> None:
    owners = [f"u{number}" for number in range(12)]
    calls = known(Calls(), *owners)
    assert all(begin_all(calls, owner) for owner in owners)
    assert begun(calls, Receiver("new", "b.example")) is not None


def test_an_owner_calls_one_new_receiver_at_a_time() -> None:
    calls = Calls()
    assert [len(begin_all(calls, f"u{number}")) for number in range(AT_ONCE - 1)] == [1] * (AT_ONCE - 1)
    assert begun(calls, Receiver("u0", "b.example")) is None and begun(calls, Receiver("new", "b.example")) is not None


def test_slow_receivers_share_a_few_places() -> None:
    calls = known(Calls(), "ada")
    first = begin_all(calls, "ada")
    later = NOW + SLOW_MS
    for call in first:
        ended(calls, call, later)
    assert len(begin_all(calls, "ada", later)) == 2
    for number in range(30):
        slow = begun(calls, Receiver(f"u{number}", "a.example"), later)
        if slow is not None:
            calls.answered(slow, later + SLOW_MS)
            calls.end(slow, Answer("failed"))
    in_progress = [begin_all(calls, f"u{number}", later + SLOW_MS) for number in range(30)]
    assert 2 < sum(map(len, in_progress)) <= SLOW_PLACES
    assert begun(calls, Receiver("new", "b.example"), later + SLOW_MS) is not None


def test_a_receiver_is_slow_while_a_call_hangs_and_a_minute_longer() -> None:
    calls, receiver = Calls(), Receiver("ada", "a.example")
    call = begun(calls, receiver)
    assert call is not None and not calls.is_slow(receiver, NOW + SLOW_MS - 1) and calls.is_slow(receiver, NOW + SLOW_MS)
    ended(calls, call, NOW + 10_000)
    assert calls.is_slow(receiver, NOW + 10_000 + SLOW_FOR_MS - 1) and not calls.is_slow(receiver, NOW + 10_000 + SLOW_FOR_MS)
    again = begin_all(calls, "ada", NOW + 10_000 + SLOW_FOR_MS)
    assert len(again) == 1, "it is new again"
    ended(calls, again[0], NOW + 10_000 + SLOW_FOR_MS)
    assert len(begin_all(calls, "ada", NOW + 10_000 + SLOW_FOR_MS)) > 1


def test_other_receivers_of_its_owner_are_slow_unless_they_have_answered() -> None:
    calls, good, new = Calls(), Receiver("ada", "good.example"), Receiver("ada", "new.example")
    quick = begun(calls, good)
    assert quick is not None
    ended(calls, quick, NOW + 200)
    hanging = begun(calls, Receiver("ada", "bad.example"))
    assert hanging is not None
    assert calls.is_slow(new, NOW + SLOW_MS) and not calls.is_slow(good, NOW + SLOW_MS)
    assert not calls.is_slow(Receiver("bob", "new.example"), NOW + SLOW_MS)
    ended(calls, hanging, NOW + 10_000)
    assert calls.is_slow(new, NOW + 11_000) and not calls.is_slow(good, NOW + 11_000)


def test_an_invocation_that_is_about_to_end_begins_no_slow_call() -> None:
    calls, slow = Calls(takes_slow=False), Receiver("ada", "a.example")
    call = begun(calls, slow)
    assert call is not None
    ended(calls, call, NOW + SLOW_MS)
    assert begun(calls, slow, NOW + SLOW_MS) is None
    assert begun(calls, Receiver("bob", "a.example"), NOW + SLOW_MS) is not None


def test_messages_without_a_place_return_one_after_the_other() -> None:
    calls, slow = Calls(), Receiver("ada", "a.example")
    call = begun(calls, slow)
    assert call is not None
    turns = [calls.retry_in_s(slow, NOW + SLOW_MS) for _ in range(200)]
    assert turns[:3] == [5, 10, 15] and max(turns) == LONGEST_RETRY_MS // 1_000 and turns.count(5) == 4
    assert calls.retry_in_s(Receiver("bob", "a.example"), NOW) == 1


def test_the_answer_of_a_call_that_was_left_is_kept() -> None:
    calls = Calls()
    over, late = begun(calls, Receiver("ada", "")), calls.begin("m2", Receiver("bob", ""), NOW)
    assert over is not None and late is not None
    calls.end(over, Answer("sent"))
    assert not calls.leave(over) and calls.leave(late) and not calls.is_idle
    assert list(calls.take_late()) == []
    calls.end(late, Answer("failed", 30))
    assert not calls.is_idle, "its answer is not taken yet"
    assert list(calls.take_late()) == [("m2", Answer("failed", 30))] and calls.is_idle


@pytest.mark.parametrize(
    ("to", "host"), [("ann@example.com", ""), (Webhook("https://Hooks.example.com:8443/1?a=b", "s"), "hooks.example.com:8443")]
)
def test_a_receiver_is_a_host_of_an_owner(to: str | Webhook, host: str) -> None:
    news = News(TaskKey("ada", "t1"), "j1.0", "j1", "http", Status.FAILED, NOW, NOW)
    sending = Sending(Notice("n1", Occasion.FAILURE, news), to, "s1")
    assert receiver_of(sending) == Receiver("ada", host)
    assert receiver_of(replace(sending, id="s2")) == Receiver("ada", host)


def test_the_memory_of_receivers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.notify.calls.MOST_KNOWN", 10)
    calls = Calls()
    for number in range(35):
        receiver = Receiver(f"u{number}", "a.example")
        call = begun(calls, receiver)
        assert call is not None
        calls.retry_in_s(receiver, NOW)
        ended(calls, call, NOW + SLOW_MS)
    assert max(len(calls._slow_until), len(calls._owners), len(calls._retry_at)) <= 10


THROTTLING = Receiver("ada", "hooks.example.com")


def throttled(calls: Calls, now: int, pause_ms: int = 1_000) -> None:
    call = begun(calls, THROTTLING, now)
    assert call is not None
    calls.answered(call, now, pause_ms)
    calls.end(call, Answer("failed"))


def test_a_receiver_that_throttles_gets_its_calls_one_by_one_with_gaps() -> None:
    calls = Calls()
    throttled(calls, NOW, 4_000)
    assert calls.is_paced(THROTTLING) and begun(calls, THROTTLING, NOW + 3_999) is None
    call = begun(calls, THROTTLING, NOW + 4_000)
    assert call is not None and begun(calls, THROTTLING, NOW + 9_000) is None, "one is in progress"
    ended(calls, call, NOW + 9_000)
    assert begun(calls, THROTTLING, NOW + 11_999) is None and begun(calls, THROTTLING, NOW + 12_000) is not None


def test_each_further_refusal_doubles_the_gap_and_successes_end_the_pace() -> None:
    calls, now = Calls(), NOW
    throttled(calls, now)
    throttled(calls, now + 1_000)
    assert begun(calls, THROTTLING, now + 2_999) is None
    now += 3_000
    for _ in range(10):
        throttled(calls, now)
        now += MOST_GAP_MS
    while calls.is_paced(THROTTLING):
        call = begun(calls, THROTTLING, now)
        assert call is not None
        ended(calls, call, now)
        now += MOST_GAP_MS
    assert now - NOW < 40 * MOST_GAP_MS


def test_calls_that_began_before_the_pace_do_not_change_it() -> None:
    calls = known(Calls(), "ada")
    others = [calls.begin("m", THROTTLING, NOW) for _ in range(3)]
    first = [each for each in others if each is not None]
    for each in first:
        each.called_at = NOW
        calls.answered(each, NOW + 10, 1_000)
        calls.end(each, Answer("failed"))
    assert first and begun(calls, THROTTLING, NOW + 1_010) is not None


def test_sendings_to_a_paced_receiver_return_at_its_pace_and_others_sooner() -> None:
    calls = known(Calls(), "ada")
    throttled(calls, NOW, 10_000)
    assert [calls.retry_in_s(THROTTLING, NOW) for _ in range(3)] == [10, 20, 30]
    assert calls.retry_in_s(Receiver("ada", "a.example"), NOW) == 1


def test_a_longer_pause_that_a_receiver_requests_is_kept() -> None:
    calls = Calls()
    throttled(calls, NOW, 120_000)
    assert calls.retry_in_s(THROTTLING, NOW) == 120 and begun(calls, THROTTLING, NOW + 119_999) is None
