"""The limits of named targets, as pure decisions: never more at once, never faster, nobody left behind."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.admission import limits
from scheduler.admission.limits import Ask, At, Full, Start, Ticket, Usage, Use
from scheduler.model.job import JobKey
from scheduler.targets.named_target import NamedTarget
from tests.conftest import NOW


def limit(**fields: Any) -> NamedTarget:
    return NamedTarget("t", "http", NOW, NOW, "ada", "ada", **fields)


def ask(name: str, **fields: Any) -> Ask:
    return Ask(**({"job": JobKey("ann", name), "fence": 1, "timeout_ms": 1_000, "earliest": NOW} | fields))


def answers(usage: Usage, target: NamedTarget, *asks: Ask, now: int = NOW) -> tuple[Usage, list[Any]]:
    """The usage after it, the same one if nothing was given away, and what each was told; of a start, not at which place."""
    use, found = limits.admit(usage, target, asks, now)
    after = usage if use is None else changed(usage, use)
    told = found if use is None else limits.confirmed(found, use, after)
    return after, [Start() if isinstance(told[each.job], Start) else told[each.job] for each in asks]


def changed(usage: Usage, use: Use) -> Usage:
    after = limits.used(usage, use)
    assert after is not None
    return after


def in_turn(usage: Usage, uses: Sequence[Use | None]) -> tuple[Usage, list[bool]]:
    """The usage after changes that were all decided before any of them, and which of them held."""
    held = []
    for use in uses:
        assert use is not None
        after = limits.used(usage, use)
        held.append(after is not None)
        usage = after or usage
    return usage, held


def free(usage: Usage, name: str, now: int) -> Usage:
    """The usage after the attempts of that job have ended."""
    places = [place for place in usage.places if place.job.id == name]
    return changed(usage, limits.freed(usage.target, places, usage.took_ms, now)) if places else usage


def test_each_start_is_one_step_after_the_one_before_it() -> None:
    usage, found = answers(Usage("t"), limit(rate=20.0), *(ask(name) for name in "abc"))
    assert found == [Start(), At(NOW + 50), At(NOW + 100)]
    assert answers(usage, limit(rate=20.0), ask("d"))[1] == [At(NOW + 150)]


def test_a_start_asked_ahead_is_no_sooner_than_the_job_is_due() -> None:
    _, found = answers(Usage("t"), limit(rate=20.0), ask("a", earliest=NOW + 300), ask("b", earliest=NOW + 300))
    assert found == [At(NOW + 300), At(NOW + 350)]


def test_who_comes_at_its_instant_starts_and_takes_nothing_more() -> None:
    usage = Usage("t", start_us=(NOW + 500) * 1_000, stored=True)
    for late in (0, limits.LATE_MS):
        after, found = answers(usage, limit(rate=20.0), ask("a", start=NOW - late))
        assert found == [Start()] and after is usage
    after, found = answers(usage, limit(rate=20.0), ask("a", start=NOW - limits.LATE_MS - 1))
    assert found == [At(NOW + 500)] and after.start_us == usage.start_us + 50_000, "it came too late for its instant"


def test_who_would_wait_long_gets_a_ticket_and_asks_again_then() -> None:
    target = limit(rate=1.0)
    usage, found = answers(Usage("t"), target, *(ask(name) for name in "abcd"))
    assert found == [Start(), At(NOW + 1_000), Ticket(NOW + 2_000), Ticket(NOW + 3_000)]
    again, found = answers(usage, target, ask("c", ticket=NOW + 2_000), now=NOW + 2_000)
    assert found == [Start()] and again.next_us == usage.next_us


def test_a_ticket_that_comes_late_is_worth_as_much_and_many_at_once_start_one_step_apart() -> None:
    target = limit(rate=1.0)
    usage, _ = answers(Usage("t"), target, *(ask(name) for name in "abcdef"))
    late = [ask(name, ticket=NOW + at) for name, at in (("c", 2_000), ("d", 3_000), ("e", 4_000))]
    _, found = answers(usage, target, *late, now=NOW + 60_000)
    assert found[:2] == [Start(), At(NOW + 61_000)]
    assert found[2] == Ticket(NOW + 62_000), "back into the line, which is empty by now"


def test_an_executor_that_has_lost_its_job_does_not_take_the_place_of_the_attempt_that_runs() -> None:
    target = limit(concurrency=1)
    usage, _ = answers(Usage("t"), target, ask("a", fence=2))
    use, found = limits.admit(usage, target, [ask("a", fence=1), ask("b", ticket=NOW)], NOW)
    assert use is None and found == {JobKey("ann", "b"): Full()}


def test_a_newcomer_goes_behind_those_who_have_tickets() -> None:
    usage, _ = answers(Usage("t"), limit(rate=1.0), *(ask(name) for name in "abcd"))
    assert answers(usage, limit(rate=1.0), ask("z"), now=NOW + 1_500)[1] == [Ticket(NOW + 4_000)]


def test_no_more_than_the_places_there_are() -> None:
    usage, found = answers(Usage("t"), limit(concurrency=2), ask("a"), ask("b"), ask("c"), ask("d"))
    assert found[:3] == [Start(), Start(), Full()] and isinstance(found[3], Ticket)
    assert [place.job.id for place in usage.places] == ["a", "b"]
    assert {place.until for place in usage.places} == {NOW + 1_000 + limits.LEASE_MS}


def test_who_asks_again_has_its_place_already() -> None:
    usage, _ = answers(Usage("t"), limit(concurrency=1), ask("a"))
    again, found = answers(usage, limit(concurrency=1), ask("a", earliest=NOW + 10), now=NOW + 10)
    assert found == [Start()] and again is usage


def test_a_place_is_free_again_when_its_job_ends_when_it_has_another_fence_and_when_its_lease_is_over() -> None:
    target = limit(concurrency=1)
    usage, _ = answers(Usage("t"), target, ask("a"))
    assert answers(usage, target, ask("b", ticket=NOW))[1] == [Full()]
    assert answers(free(usage, "a", NOW + 9), target, ask("b", ticket=NOW))[1] == [Start()]
    (place,) = usage.places
    another = limits.freed("t", [replace(place, fence=2)], 1, NOW)
    assert limits.used(usage, another) is None, "another attempt's end is not its"
    assert answers(usage, target, ask("a", fence=2, ticket=NOW))[1] == [Start()]
    over = NOW + 1_000 + limits.LEASE_MS
    assert answers(usage, target, ask("b", ticket=over), now=over)[1] == [Start()]


def test_a_newcomer_goes_behind_those_who_wait_even_if_a_place_is_free_just_now() -> None:
    waiting = Usage("t", next_us=(NOW + 400) * 1_000, took_ms=100, stored=True)
    assert answers(waiting, limit(concurrency=1), ask("z"))[1] == [Ticket(NOW + 400)]
    assert answers(waiting, limit(concurrency=1), ask("z", earliest=NOW + 400), now=NOW + 400)[1] == [Start()]


def test_who_found_no_place_comes_back_at_the_pace_at_which_places_become_free() -> None:
    busy, target = Usage("t", took_ms=10_000, stored=True), limit(concurrency=5, rate=20.0)
    back = [ask(name, earliest=NOW + 1_000, again=True) for name in "abc"]
    assert answers(busy, target, *back)[1] == [Ticket(NOW + 1_000), Ticket(NOW + 2_600), Ticket(NOW + 4_200)]
    assert answers(busy, target, *(ask(name) for name in "abc"))[1] == [Start(), At(NOW + 50), At(NOW + 100)], "others by the rate"
    slow = replace(busy, took_ms=10_000_000)
    assert answers(slow, target, *back)[1][1] == Ticket(NOW + 6_000), "a line is no prison"


def test_how_long_places_are_held_is_measured_by_and_large() -> None:
    usage, _ = answers(Usage("t"), limit(concurrency=1), ask("a"))
    for took, measure in ((800, 251), (60_000, 251), (100, 160), (150, 160)):
        assert free(usage, "a", NOW + took).took_ms == measure, "one job does not say much"


@pytest.mark.parametrize("fields", [{"rate": 7.0}, {"concurrency": 3}, {"rate": 7.0, "concurrency": 3}])
@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_never_faster_never_more_at_once_and_nobody_left_behind(fields: dict[str, Any], seed: int) -> None:
    """Forty jobs in any order of coming, ending and dying, all of whom do as they are told."""
    random, target, usage = Random(seed), limit(**fields), Usage("t")
    pending: dict[str, tuple[int, Ticket | At | None]] = {f"{n}": (NOW + random.randint(0, 2_000), None) for n in range(40)}
    running: dict[str, int] = {}
    held: dict[str, int] = {}  # until when its place is not known to be free
    waiting: dict[str, int] = {}
    starts: list[int] = []
    while pending:
        now = min([at for at, _ in pending.values()] + list(held.values()))
        assert now < NOW + 120_000, "somebody waits for ever"
        running = {name: end for name, end in running.items() if end > now}
        for name in [name for name, end in held.items() if end <= now]:
            del held[name]
            usage = free(usage, name, now)
        name = next((name for name, (at, _) in pending.items() if at <= now), None)
        if name is None:
            continue
        told, gives_up = pending[name][1], now - waiting.get(name, now) >= 2_000
        start = None if gives_up else now if name in waiting else told.at if isinstance(told, At) else None
        ticket = told.at if isinstance(told, Ticket) else None
        asked = ask(name, earliest=now + 1_000 * gives_up, ticket=ticket, start=start, again=gives_up)
        usage, (answer,) = answers(usage, target, asked, now=now)
        if isinstance(answer, Full):
            waiting.setdefault(name, now)
            pending[name] = (now + 50, None)
            continue
        waiting.pop(name, None)
        if isinstance(answer, At | Ticket):
            assert answer.at > now
            late = random.choice((0, 0, limits.LATE_MS, 5_000))  # machines are slow at times
            pending[name] = (answer.at + late, answer)
            continue
        starts.append(now)
        del pending[name]
        running[name] = now + random.randint(1, 1_000)
        if target.concurrency is not None:  # one in ten dies, which somebody finds out a second later
            held[name] = running[name] + (0 if random.randrange(10) else 1_000)
        assert len(running) <= (target.concurrency or 40) and len(usage.places) <= (target.concurrency or 0)
    if target.rate is not None:
        late = limits.LATE_MS + (2_000 if target.concurrency is not None else 0)  # who waits for a place keeps its start
        for i, j in itertools.combinations(range(40), 2):
            assert j - i <= target.rate * (starts[j] - starts[i] + late) / 1_000 + 1


def test_a_usage_that_gives_nothing_away_stays_the_same() -> None:
    usage, _ = answers(Usage("t"), limit(concurrency=1), ask("a"))
    assert answers(usage, limit(concurrency=1), ask("b", ticket=NOW))[0] is usage


def test_who_asked_at_the_same_moment_and_came_second_stands_behind() -> None:
    target = limit(rate=1.0)
    usage, _ = answers(Usage("t"), target, *(ask(name) for name in "abc"))
    plans = [limits.admit(usage, target, [ask(name), ask(name * 2)], NOW) for name in "xyz"]
    tickets: list[Any] = []
    for use, found in plans:
        assert use is not None
        usage = changed(usage, use)
        tickets += limits.confirmed(found, use, usage).values()
    assert tickets == [Ticket(NOW + 1_000 * n) for n in range(3, 9)], "nobody had to ask twice"


def test_of_two_who_would_start_the_line_one_does_and_the_other_asks_again() -> None:
    target = limit(rate=1.0)
    (first, _), (second, _) = (limits.admit(Usage("t"), target, [ask(name)], NOW) for name in "ab")
    assert first is not None and second is not None
    usage = changed(Usage("t"), first)
    assert limits.used(usage, second) is None
    assert answers(usage, target, ask("b"))[1] == [At(NOW + 1_000)]


def test_a_start_moved_so_far_by_others_that_it_would_be_waited_for_too_long_is_none() -> None:
    target = limit(rate=2.0)
    usage, _ = answers(Usage("t"), target, ask("a"))
    plans = [limits.admit(usage, target, [ask(name), ask(name * 2)], NOW)[0] for name in "bcd"]
    usage, held = in_turn(usage, plans)
    assert held == [True, True, False] and usage.start_us == (NOW + 2_500) * 1_000


def test_of_two_for_the_instant_that_has_come_one_starts() -> None:
    target, usage = limit(rate=1.0), Usage("t", start_us=NOW * 1_000, stored=True)
    (first, found), (second, _) = (limits.admit(usage, target, [ask(name)], NOW) for name in "ab")
    assert first is not None and second is not None
    assert found[JobKey("ann", "a")] == Start()
    assert limits.used(changed(usage, first), second) is None, "it would start, and late"


def test_places_are_taken_side_by_side_while_there_are_some() -> None:
    target = limit(concurrency=2)
    usage = Usage("t", stored=True)
    plans = [limits.admit(usage, target, [ask(name)], NOW)[0] for name in "abc"]
    usage, held = in_turn(usage, plans)
    assert held == [True, True, False] and [place.job.id for place in usage.places] == ["a", "b"]


def test_a_place_known_to_be_free_is_given_to_one_of_two_who_know_it() -> None:
    target = limit(concurrency=1)
    usage, _ = answers(Usage("t"), target, ask("a"))
    plans = [limits.admit(usage, target, [ask(name, ticket=NOW)], NOW, usage.places)[0] for name in "bc"]
    assert plans[0] is not None and plans[1] is not None
    usage = changed(usage, plans[0])
    assert [place.job.id for place in usage.places] == ["b"] and limits.used(usage, plans[1]) is None
