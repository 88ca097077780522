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
from scheduler.admission.limits import Ask, At, Full, Queue, Start
from scheduler.model.job import JobKey
from scheduler.model.named_target import NamedTarget
from scheduler.model.target_usage import Place, TargetUsage, UsageChange
from scheduler.targets.named_target import IN_ONE_ITEM, ITEMS, OWN, share_of, slots_beside
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


def test_a_job_that_would_wait_long_goes_into_the_queue() -> None:
    target = limit(rate=1.0)
    usage, found = answers(TargetUsage("t"), target, *(ask(name) for name in "abcd"))
    assert found == [Start(), At(NOW + 1_000), Queue(), Queue()]
    assert usage.start_us == (NOW + 2_000) * 1_000, "the queue takes no starts"


def test_a_job_behind_others_of_its_owner_takes_no_start() -> None:
    usage = TargetUsage("t", stored=True)
    for target in (limit(rate=1.0), limit(concurrency=1)):
        use, found = limits.admit(usage, target, [ask("a", behind=True)], NOW)
        assert use is None and found == {JobKey("ann", "a"): Queue()}


def test_a_released_job_starts_at_its_instant_even_if_it_is_somewhat_late() -> None:
    target, usage = limit(rate=0.1), TargetUsage("t", (NOW + 9_000) * 1_000, 10_000_000, stored=True)
    for late in (0, 2_500):
        assert answers(usage, target, ask("a", start=NOW - late, released=True))[1] == [Start()]
    assert answers(usage, target, ask("a", start=NOW - 2_501, released=True))[1] == [Queue()], "its start is lost"
    assert limits.late_ms(limit(rate=20.0)) == limits.LATE_MS


def test_a_raised_rate_brings_the_next_start_forward() -> None:
    slow, fast = limit(rate=0.1), limit(rate=10.0)
    usage, _ = answers(TargetUsage("t"), slow, ask("a"))
    assert usage.start_us == (NOW + 10_000) * 1_000
    after, found = answers(usage, fast, ask("b"), ask("c"), now=NOW + 50)
    assert found == [At(NOW + 100), At(NOW + 200)] and (after.start_us, after.step_us) == ((NOW + 300) * 1_000, 100_000)
    plans = [limits.admit(usage, fast, [ask(name)], NOW + 50)[0] for name in "bc"]
    assert in_turn(usage, plans)[1] == [True, False], "one of two executors that both bring it forward decides again"


def test_a_lowered_rate_applies_after_the_starts_that_are_assigned() -> None:
    usage, _ = answers(TargetUsage("t"), limit(rate=10.0), ask("a"))
    usage, found = answers(usage, limit(rate=1.0), ask("b"), ask("c"))
    assert found == [At(NOW + 100), At(NOW + 1_100)]


def test_an_executor_that_lost_its_job_takes_no_slot_of_the_next_attempt() -> None:
    target = limit(concurrency=1)
    usage, _ = answers(TargetUsage("t"), target, ask("a", fence=2))
    use, found = limits.admit(usage, target, [ask("a", fence=1), ask("b", released=True)], NOW)
    assert use is None and found == {JobKey("ann", "b"): Full()}


def test_no_more_jobs_start_than_there_are_slots() -> None:
    usage, found = answers(TargetUsage("t"), limit(concurrency=2), ask("a"), ask("b"), ask("c"), ask("d"))
    assert found == [Start(), Start(), Full(), Full()]
    assert [place.job.id for place in usage.places] == ["a", "b"]
    assert {place.until for place in usage.places} == {NOW + 1_000 + limits.LEASE_MS}


def test_a_repeated_request_already_has_its_slot() -> None:
    usage, _ = answers(TargetUsage("t"), limit(concurrency=1), ask("a"))
    again, found = answers(usage, limit(concurrency=1), ask("a", earliest=NOW + 10), now=NOW + 10)
    assert found == [Start()] and again is usage


def test_a_slot_is_free_after_its_job_its_fence_or_its_lease_has_ended() -> None:
    target = limit(concurrency=1)
    usage, _ = answers(TargetUsage("t"), target, ask("a"))
    assert answers(usage, target, ask("b", released=True))[1] == [Full()]
    assert answers(free(usage, "a", NOW + 9), target, ask("b", released=True))[1] == [Start()]
    (place,) = usage.places
    another = limits.freed("t", [replace(place, fence=2)], 1, NOW)
    assert limits.used(usage, another) is None, "another attempt's end is not its"
    assert answers(usage, target, ask("a", fence=2, released=True))[1] == [Start()]
    over = NOW + 1_000 + limits.LEASE_MS
    assert answers(usage, target, ask("b", released=True), now=over)[1] == [Start()]


def test_few_jobs_wait_for_a_slot_in_their_executors() -> None:
    quick = TargetUsage("t", took_ms=100, stored=True)
    target = limit(concurrency=1)
    usage, _ = answers(quick, target, ask("a"))
    assert answers(usage, target, ask("b"), ask("c"))[1] == [Full(), Queue()], "as many as there are slots"
    assert answers(replace(usage, took_ms=60_000), target, ask("b"))[1] == [Queue()], "none where slots are kept for long"
    assert answers(usage, target, ask("b"), now=NOW + 5_000)[1] == [Queue()], "or where they are kept for long at this moment"
    wide = replace(quick, queued_until=NOW + 1, places=tuple(Place(JobKey("x", f"{n}"), 1, NOW, NOW + 9_999) for n in range(3)))
    assert answers(wide, limit(concurrency=3), ask("b"), ask("c"))[1] == [Full(), Queue()], "one while others wait in the queue"


def test_a_job_that_waits_for_its_slot_keeps_waiting() -> None:
    target = limit(concurrency=1)
    usage, _ = answers(TargetUsage("t", took_ms=60_000, stored=True), target, ask("a"))
    assert answers(usage, target, ask("b", waits=True, start=NOW), ask("c", released=True))[1] == [Full(), Full()]
    assert answers(usage, target, ask("b", behind=True))[1] == [Queue()], "until it has waited too long"


def test_the_time_that_slots_are_used_is_measured_as_a_median() -> None:
    usage, _ = answers(TargetUsage("t"), limit(concurrency=1), ask("a"))
    for took, measure in ((800, 251), (60_000, 251), (100, 160), (150, 160)):
        measured = replace(usage, took_ms=201)
        assert abs(free(measured, "a", NOW + took).took_ms - measure) <= 1, "one job changes the measure only a little"
    assert free(usage, "a", NOW + 60_000).took_ms == 60_000, "the first measurement"


@pytest.mark.long
@pytest.mark.parametrize("fields", [{"rate": 7.0}, {"concurrency": 3}, {"rate": 7.0, "concurrency": 3}])
@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_rate_and_concurrency_are_never_exceeded_and_every_job_starts(fields: dict[str, Any], seed: int) -> None:
    """Forty jobs arrive, end and crash in any order, and all of them follow their answers; the queue releases one whenever it may."""
    random, target, usage = Random(seed), limit(**fields), TargetUsage("t")
    pending: dict[str, tuple[int, At | None]] = {f"{n}": (NOW + random.randint(0, 2_000), None) for n in range(40)}
    running: dict[str, int] = {}
    held: dict[str, int] = {}  # when the slot of each job is freed
    waiting: dict[str, int] = {}
    queued: list[str] = []
    starts: list[int] = []
    while pending or queued:
        now = min([at for at, _ in pending.values()] + list(held.values()) + [NOW + 1_000 * (1 + len(starts))] * bool(queued))
        assert now < NOW + 120_000, "a job never starts"
        running = {name: end for name, end in running.items() if end > now}
        for name in [name for name, end in held.items() if end <= now]:
            del held[name]
            usage = free(usage, name, now)
        if queued and (target.concurrency is None or len(usage.places) < target.concurrency):
            job = JobKey("ann", queued[0])
            move = limits.reserve(usage, target, [job], now) if target.rate is not None else None
            usage = usage if move is None else changed(usage, UsageChange("t", first=not usage.stored, starts=move))
            if target.rate is None or move is not None:
                pending[queued.pop(0)] = (now, At(limits.assigned(UsageChange("t", starts=move), usage).get(job, now)))
        name = next((name for name, (at, _) in pending.items() if at <= now), None)
        if name is None:
            continue
        before, gives_up = pending[name][1], now - waiting.get(name, now) >= 2_000
        start = None if gives_up else now if name in waiting else before.at if isinstance(before, At) else None
        request = ask(name, earliest=now, start=start, released=before is not None, waits=name in waiting, behind=gives_up)
        usage, (answer,) = answers(usage, target, request, now=now)
        if isinstance(answer, Full):
            waiting.setdefault(name, now)
            pending[name] = (now + 50, before)
            continue
        waiting.pop(name, None)
        if isinstance(answer, Queue):
            queued.append(name)
            del pending[name]
            continue
        if isinstance(answer, At):
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
    assert answers(usage, limit(concurrency=1), ask("b", released=True))[0] is usage


def test_the_second_of_two_simultaneous_changes_follows_the_first() -> None:
    target = limit(rate=20.0)
    usage, _ = answers(TargetUsage("t"), target, *(ask(name) for name in "abc"))
    plans = [limits.admit(usage, target, [ask(name), ask(name * 2)], NOW) for name in "xyz"]
    starts: list[Any] = []
    for use, found in plans:
        assert use is not None
        usage = changed(usage, use)
        starts += limits.confirmed(found, use, usage).values()
    assert starts == [At(NOW + 50 * n) for n in range(3, 9)], "no job repeated its request"


def test_a_release_step_reserves_only_starts_that_are_near() -> None:
    jobs = [JobKey("ann", name) for name in "abcdef"]
    usage = TargetUsage("t", (NOW + 500) * 1_000, 500_000, stored=True)
    move = limits.reserve(usage, limit(rate=2.0), jobs, NOW)
    assert move is not None and [at // 1_000 - NOW for _, at in move.assigned] == [500, 1_000, 1_500]
    after = changed(usage, UsageChange("t", starts=move))
    assert limits.reserve(after, limit(rate=2.0), jobs, NOW) is None and limits.next_start(after, limit(rate=2.0), NOW) == NOW + 2_000


def test_one_of_two_first_starts_is_written_and_the_other_repeats() -> None:
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
    plans = [limits.admit(usage, target, [ask(name, released=True)], NOW, usage.places)[0] for name in "bc"]
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
    assert slots_beside(limit(concurrency=500), 500) == 500 - IN_ONE_ITEM
