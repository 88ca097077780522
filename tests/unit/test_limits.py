"""The limits of named targets, as pure decisions: rate and concurrency are never exceeded, and every job starts."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.admission import limits
from scheduler.admission.limits import Ask, At, Full, Start, TargetUsage, Ticket, UsageChange
from scheduler.model.job import JobKey
from scheduler.targets.named_target import IN_ONE_ITEM, ITEMS, OWN, NamedTarget, share_of, slots_beside
from tests.conftest import NOW


def limit(**fields: Any) -> NamedTarget:
    return NamedTarget("t", "http", NOW, NOW, "ada", "ada", **fields)


def ask(name: str, **fields: Any) -> Ask:
    return Ask(**({"job": JobKey("ann", name), "fence": 1, "timeout_ms": 1_000, "earliest": NOW} | fields))


def answers(usage: TargetUsage, target: NamedTarget, *asks: Ask, now: int = NOW) -> tuple[TargetUsage, list[Any]]:
    """The usage after these requests, which is the same one without a change, and their answers; those of starts without their slots."""
    use, found = limits.admit(usage, target, asks, now)
    after = usage if use is None else changed(usage, use)
    final = found if use is None else limits.confirmed(found, use, after)
    return after, [Start() if isinstance(final[each.job], Start) else final[each.job] for each in asks]


def changed(usage: TargetUsage, use: UsageChange) -> TargetUsage:
    after = limits.used(usage, use)
    assert after is not None
    return after


def in_turn(usage: TargetUsage, uses: Sequence[UsageChange | None]) -> tuple[TargetUsage, list[bool]]:
    """The usage after changes that were all decided before any of them was written, and which of them were valid."""
    held = []
    for use in uses:
        assert use is not None
        after = limits.used(usage, use)
        held.append(after is not None)
        usage = after or usage
    return usage, held


def free(usage: TargetUsage, name: str, now: int) -> TargetUsage:
    """The usage after the attempts of the job have ended."""
    places = [place for place in usage.places if place.job.id == name]
    return changed(usage, limits.freed(usage.target, places, usage.took_ms, now)) if places else usage


def test_each_start_is_one_step_after_the_one_before_it() -> None:
    usage, found = answers(TargetUsage("t"), limit(rate=20.0), *(ask(name) for name in "abc"))
    assert found == [Start(), At(NOW + 50), At(NOW + 100)]
    assert answers(usage, limit(rate=20.0), ask("d"))[1] == [At(NOW + 150)]


def test_a_start_requested_ahead_is_no_sooner_than_the_due_time() -> None:
    _, found = answers(TargetUsage("t"), limit(rate=20.0), ask("a", earliest=NOW + 300), ask("b", earliest=NOW + 300))
    assert found == [At(NOW + 300), At(NOW + 350)]


def test_a_job_that_requests_at_its_instant_starts_and_takes_no_more() -> None:
    usage = TargetUsage("t", start_us=(NOW + 500) * 1_000, stored=True)
    for late in (0, limits.LATE_MS):
        after, found = answers(usage, limit(rate=20.0), ask("a", start=NOW - late))
        assert found == [Start()] and after is usage
    after, found = answers(usage, limit(rate=20.0), ask("a", start=NOW - limits.LATE_MS - 1))
    assert found == [At(NOW + 500)] and after.start_us == usage.start_us + 50_000, "it was too late for its instant"


def test_a_job_that_would_wait_long_gets_a_reservation() -> None:
    target = limit(rate=1.0)
    usage, found = answers(TargetUsage("t"), target, *(ask(name) for name in "abcd"))
    assert found == [Start(), At(NOW + 1_000), Ticket(NOW + 2_000), Ticket(NOW + 3_000)]
    again, found = answers(usage, target, ask("c", ticket=NOW + 2_000), now=NOW + 2_000)
    assert found == [Start()] and again.next_us == usage.next_us


def test_late_reservations_are_valid_and_many_at_once_start_one_step_apart() -> None:
    target = limit(rate=1.0)
    usage, _ = answers(TargetUsage("t"), target, *(ask(name) for name in "abcdef"))
    late = [ask(name, ticket=NOW + at) for name, at in (("c", 2_000), ("d", 3_000), ("e", 4_000))]
    _, found = answers(usage, target, *late, now=NOW + 60_000)
    assert found[:2] == [Start(), At(NOW + 61_000)]
    assert found[2] == Ticket(NOW + 62_000), "back into the line, which is empty by now"


def test_an_executor_that_lost_its_job_takes_no_slot_of_the_next_attempt() -> None:
    target = limit(concurrency=1)
    usage, _ = answers(TargetUsage("t"), target, ask("a", fence=2))
    use, found = limits.admit(usage, target, [ask("a", fence=1), ask("b", ticket=NOW)], NOW)
    assert use is None and found == {JobKey("ann", "b"): Full()}


def test_a_new_job_starts_after_all_reservations() -> None:
    usage, _ = answers(TargetUsage("t"), limit(rate=1.0), *(ask(name) for name in "abcd"))
    assert answers(usage, limit(rate=1.0), ask("z"), now=NOW + 1_500)[1] == [Ticket(NOW + 4_000)]


def test_no_more_jobs_start_than_there_are_slots() -> None:
    usage, found = answers(TargetUsage("t"), limit(concurrency=2), ask("a"), ask("b"), ask("c"), ask("d"))
    assert found[:3] == [Start(), Start(), Full()] and isinstance(found[3], Ticket)
    assert [place.job.id for place in usage.places] == ["a", "b"]
    assert {place.until for place in usage.places} == {NOW + 1_000 + limits.LEASE_MS}


def test_a_repeated_request_already_has_its_slot() -> None:
    usage, _ = answers(TargetUsage("t"), limit(concurrency=1), ask("a"))
    again, found = answers(usage, limit(concurrency=1), ask("a", earliest=NOW + 10), now=NOW + 10)
    assert found == [Start()] and again is usage


def test_a_slot_is_free_after_its_job_its_fence_or_its_lease_has_ended() -> None:
    target = limit(concurrency=1)
    usage, _ = answers(TargetUsage("t"), target, ask("a"))
    assert answers(usage, target, ask("b", ticket=NOW))[1] == [Full()]
    assert answers(free(usage, "a", NOW + 9), target, ask("b", ticket=NOW))[1] == [Start()]
    (place,) = usage.places
    another = limits.freed("t", [replace(place, fence=2)], 1, NOW)
    assert limits.used(usage, another) is None, "another attempt's end is not its"
    assert answers(usage, target, ask("a", fence=2, ticket=NOW))[1] == [Start()]
    over = NOW + 1_000 + limits.LEASE_MS
    assert answers(usage, target, ask("b", ticket=over), now=over)[1] == [Start()]


def test_a_new_job_starts_after_waiting_ones_even_if_a_slot_is_free() -> None:
    waiting = TargetUsage("t", next_us=(NOW + 400) * 1_000, took_ms=100, stored=True)
    assert answers(waiting, limit(concurrency=1), ask("z"))[1] == [Ticket(NOW + 400)]
    assert answers(waiting, limit(concurrency=1), ask("z", earliest=NOW + 400), now=NOW + 400)[1] == [Start()]


def test_jobs_without_a_slot_repeat_requests_at_the_pace_of_freed_slots() -> None:
    busy, target = TargetUsage("t", took_ms=10_000, stored=True), limit(concurrency=5, rate=20.0)
    back = [ask(name, earliest=NOW + 1_000, again=True) for name in "abc"]
    assert answers(busy, target, *back)[1] == [Ticket(NOW + 1_000), Ticket(NOW + 2_600), Ticket(NOW + 4_200)]
    assert answers(busy, target, *(ask(name) for name in "abc"))[1] == [Start(), At(NOW + 50), At(NOW + 100)], "others by the rate"
    slow = replace(busy, took_ms=10_000_000)
    assert answers(slow, target, *back)[1][1] == Ticket(NOW + 6_000), "a line is no prison"


def test_the_time_that_slots_are_used_is_measured_as_a_median() -> None:
    usage, _ = answers(TargetUsage("t"), limit(concurrency=1), ask("a"))
    for took, measure in ((800, 251), (60_000, 251), (100, 160), (150, 160)):
        assert free(usage, "a", NOW + took).took_ms == measure, "one job changes the measure only a little"


@pytest.mark.long
@pytest.mark.parametrize("fields", [{"rate": 7.0}, {"concurrency": 3}, {"rate": 7.0, "concurrency": 3}])
@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_rate_and_concurrency_are_never_exceeded_and_every_job_starts(fields: dict[str, Any], seed: int) -> None:
    """Forty jobs arrive, end and crash in any order, and all of them follow their answers."""
    random, target, usage = Random(seed), limit(**fields), TargetUsage("t")
    pending: dict[str, tuple[int, Ticket | At | None]] = {f"{n}": (NOW + random.randint(0, 2_000), None) for n in range(40)}
    running: dict[str, int] = {}
    held: dict[str, int] = {}  # when the slot of each job is freed
    waiting: dict[str, int] = {}
    starts: list[int] = []
    while pending:
        now = min([at for at, _ in pending.values()] + list(held.values()))
        assert now < NOW + 120_000, "a job never starts"
        running = {name: end for name, end in running.items() if end > now}
        for name in [name for name, end in held.items() if end <= now]:
            del held[name]
            usage = free(usage, name, now)
        name = next((name for name, (at, _) in pending.items() if at <= now), None)
        if name is None:
            continue
        before, gives_up = pending[name][1], now - waiting.get(name, now) >= 2_000
        start = None if gives_up else now if name in waiting else before.at if isinstance(before, At) else None
        ticket = before.at if isinstance(before, Ticket) else None
        request = ask(name, earliest=now + 1_000 * gives_up, ticket=ticket, start=start, again=gives_up)
        usage, (answer,) = answers(usage, target, request, now=now)
        if isinstance(answer, Full):
            waiting.setdefault(name, now)
            pending[name] = (now + 50, None)
            continue
        waiting.pop(name, None)
        if isinstance(answer, At | Ticket):
            assert answer.at > now
            late = random.choice((0, 0, limits.LATE_MS, 5_000))  # executors are slow at times
            pending[name] = (answer.at + late, answer)
            continue
        starts.append(now)
        del pending[name]
        running[name] = now + random.randint(1, 1_000)
        if target.concurrency is not None:  # one in ten dies, which an executor finds a second later
            held[name] = running[name] + (0 if random.randrange(10) else 1_000)
        assert len(running) <= (target.concurrency or 40) and len(usage.places) <= (target.concurrency or 0)
    if target.rate is not None:
        late = limits.LATE_MS + (2_000 if target.concurrency is not None else 0)  # a job that waits for a slot keeps its start
        for i, j in itertools.combinations(range(40), 2):
            assert j - i <= target.rate * (starts[j] - starts[i] + late) / 1_000 + 1


def test_a_usage_without_a_change_stays_the_same() -> None:
    usage, _ = answers(TargetUsage("t"), limit(concurrency=1), ask("a"))
    assert answers(usage, limit(concurrency=1), ask("b", ticket=NOW))[0] is usage


def test_the_second_of_two_simultaneous_changes_follows_the_first() -> None:
    target = limit(rate=1.0)
    usage, _ = answers(TargetUsage("t"), target, *(ask(name) for name in "abc"))
    plans = [limits.admit(usage, target, [ask(name), ask(name * 2)], NOW) for name in "xyz"]
    tickets: list[Any] = []
    for use, found in plans:
        assert use is not None
        usage = changed(usage, use)
        tickets += limits.confirmed(found, use, usage).values()
    assert tickets == [Ticket(NOW + 1_000 * n) for n in range(3, 9)], "no job repeated its request"


def test_one_of_two_first_reservations_is_written_and_the_other_repeats() -> None:
    target = limit(rate=1.0)
    (first, _), (second, _) = (limits.admit(TargetUsage("t"), target, [ask(name)], NOW) for name in "ab")
    assert first is not None and second is not None
    usage = changed(TargetUsage("t"), first)
    assert limits.used(usage, second) is None
    assert answers(usage, target, ask("b"))[1] == [At(NOW + 1_000)]


def test_a_start_that_others_moved_too_far_is_refused() -> None:
    target = limit(rate=2.0)
    usage, _ = answers(TargetUsage("t"), target, ask("a"))
    plans = [limits.admit(usage, target, [ask(name), ask(name * 2)], NOW)[0] for name in "bcd"]
    usage, held = in_turn(usage, plans)
    assert held == [True, True, False] and usage.start_us == (NOW + 2_500) * 1_000


def test_one_of_two_jobs_for_the_present_instant_starts() -> None:
    target, usage = limit(rate=1.0), TargetUsage("t", start_us=NOW * 1_000, stored=True)
    (first, found), (second, _) = (limits.admit(usage, target, [ask(name)], NOW) for name in "ab")
    assert first is not None and second is not None
    assert found[JobKey("ann", "a")] == Start()
    assert limits.used(changed(usage, first), second) is None, "it would start late"


def test_simultaneous_changes_take_slots_while_there_are_free_ones() -> None:
    target = limit(concurrency=2)
    usage = TargetUsage("t", stored=True)
    plans = [limits.admit(usage, target, [ask(name)], NOW)[0] for name in "abc"]
    usage, held = in_turn(usage, plans)
    assert held == [True, True, False] and [place.job.id for place in usage.places] == ["a", "b"]


def test_one_of_two_executors_gets_a_slot_that_both_found_free() -> None:
    target = limit(concurrency=1)
    usage, _ = answers(TargetUsage("t"), target, ask("a"))
    plans = [limits.admit(usage, target, [ask(name, ticket=NOW)], NOW, usage.places)[0] for name in "bc"]
    assert plans[0] is not None and plans[1] is not None
    usage = changed(usage, plans[0])
    assert [place.job.id for place in usage.places] == ["b"] and limits.used(usage, plans[1]) is None


# Many concurrency slots: several items


@pytest.mark.parametrize("concurrency", [51, 60, 137, 500])
def test_the_shares_of_the_items_add_up_to_the_limit(concurrency: int) -> None:
    target = limit(concurrency=concurrency, beside=slots_beside(None, concurrency))
    shares = [share_of(target, number) or 0 for number in range(ITEMS + 1)]
    assert sum(shares) == concurrency and shares[0] == OWN and max(shares[1:]) <= 20


def test_few_slots_are_in_one_item_and_a_spread_target_stays_spread() -> None:
    assert slots_beside(None, 50) == slots_beside(None, None) == 0
    former = limit(concurrency=40)
    wide = limit(concurrency=500, beside=slots_beside(former, 500))
    assert share_of(wide, 0) == 40, "the forty that may be running count"
    narrow = limit(concurrency=10, beside=slots_beside(wide, 10))
    assert 0 < (share_of(narrow, 0) or 0) < 10
    shares = [(share_of(wide, number) or 0, share_of(narrow, number) or 0) for number in range(ITEMS + 1)]
    assert all(after <= before for before, after in shares) and sum(after for _, after in shares) == 10
    assert slots_beside(limit(concurrency=500), 500) == 500 - IN_ONE_ITEM, "a target of the version before, written again"
