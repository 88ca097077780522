"""The registry of named targets, the usage of their limits, and the breakers: the same in memory and on DynamoDB."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission import breaker
from scheduler.model.breaker import Circuit
from scheduler.model.job import JobKey, Lane, LaneState
from scheduler.model.limiter import KeyLimit, name_of
from scheduler.model.named_target import NamedTarget
from scheduler.model.spec import Limit
from scheduler.model.target_queue import QUEUE_PARTS, QueueUser, Released, TargetQueue
from scheduler.model.target_usage import Move, Place, TargetUsage, UsageChange
from scheduler.storage.aws import items, keys
from scheduler.storage.aws import targets as stored
from scheduler.storage.ports import ChangeResult, Ledger, Targets, Watched, Written
from scheduler.targets.named_target import IN_ONE_ITEM, ITEMS, OWN, item_name, share_of, slots_beside
from tests.contract.make import NOW


def target(name: str = "invoices", **fields: Any) -> NamedTarget:
    return NamedTarget(name, "http", NOW, NOW, "ada", "bob", **fields)


WHOLE = target(
    defaults={"url": "https://example.com", "headers": {"X-Käse": "1"}},
    locked=("url",),
    payload_schema={"type": "object", "properties": {}},
    rate=0.5,
    concurrency=5,
    description="a place",
    enabled=False,
    placeholders=True,
)


@pytest.mark.parametrize("wanted", [target(), WHOLE])
def test_a_target_round_trips(targets: Targets, wanted: NamedTarget) -> None:
    assert targets.targets(["invoices"]) == {} and targets.all() == []
    assert targets.put(None, wanted)
    assert targets.targets(["invoices", "other", "invoices"]) == {"invoices": wanted}


def test_all_targets_are_listed_by_name(targets: Targets) -> None:
    for name in ("b", "a", "c"):
        targets.put(None, target(name))
    assert [each.name for each in targets.all()] == ["a", "b", "c"]


def test_a_target_changes_only_from_its_current_version(targets: Targets) -> None:
    first, second = target(), target(version=2, rate=2.0)
    assert targets.put(None, first) and targets.put(None, first), "a repeated call succeeds: its answer may have been lost"
    assert not targets.put(None, target(rate=9.0))
    assert targets.put(first, second) and targets.put(first, second)
    assert not targets.put(first, target(version=2, rate=3.0))
    assert not targets.delete(first)
    assert targets.delete(second) and not targets.delete(second)
    assert not targets.put(second, target(version=3))
    assert targets.all() == []


SOON = 1_795_000_000_000_122
FIRST, SECOND, THIRD = (Place(JobKey("ada#b", f"j{n}"), n, NOW + n, NOW + 9) for n in (1, 2, 3))


def one(targets: Targets, use: UsageChange) -> TargetUsage | None:
    """The usage after the change, which is also stored; None: the change was refused, and the answer shows the stored usage."""
    (answer,) = targets.use([use])
    assert answer.usage == targets.usages([use.target]).get(use.target, TargetUsage(use.target))
    return answer.usage if answer.done is Written.YES else None


def test_a_usage_is_created_once(targets: Targets) -> None:
    assert targets.usages(["invoices"]) == {}
    begin = UsageChange("invoices", first=True, starts=Move(SOON + 50, 100, 9, behind=False), takes=(FIRST,), most=5, queued_until=7)
    assert one(targets, begin) == TargetUsage("invoices", SOON + 150, 9, (FIRST,), taken=1, queued_until=7, stored=True)
    assert one(targets, begin) is None
    assert targets.usages(["other"]) == {}
    for later in (
        UsageChange("other", starts=Move(SOON, 9, 9, behind=True)),
        UsageChange("other", takes=(FIRST,), most=5),
        UsageChange("other", drops=(FIRST,)),
    ):
        assert one(targets, later) is None, "there is nothing to change"


def test_an_end_moves_from_its_current_place_or_is_set_if_absent(targets: Targets) -> None:
    def moved(base: int, by: int, behind: bool, latest: int | None = None, back_from: int | None = None) -> int | None:
        after = one(targets, UsageChange("invoices", starts=Move(base, by, by, behind, latest, back_from_us=back_from)))
        assert after is None or after.step_us == by
        return None if after is None else after.start_us - SOON

    targets.use([UsageChange("invoices", first=True, starts=Move(SOON, 10, 10, behind=False))])
    assert moved(SOON + 10, 5, behind=True) == 15
    assert moved(SOON + 10, 5, behind=True) == 20, "the second one is queued behind the first"
    assert moved(SOON + 21, 5, behind=True) is None, "the end has moved since it was read"
    assert moved(SOON, 5, behind=True, latest=SOON + 19) is None
    assert moved(SOON, 5, behind=True, latest=SOON + 20) == 25
    assert moved(SOON + 25, 5, behind=False) is None
    assert moved(SOON + 26, 5, behind=False) == 31
    assert moved(SOON + 20, 5, behind=False, back_from=SOON + 30) is None, "the end has moved since it was read"
    assert moved(SOON + 20, 5, behind=False, back_from=SOON + 31) == 25


def test_free_places_are_taken_and_only_their_holders_release_them(targets: Targets) -> None:
    targets.use([UsageChange("invoices", first=True)])
    assert one(targets, UsageChange("invoices", takes=(FIRST,), most=2)) == TargetUsage("invoices", places=(FIRST,), taken=1, stored=True)
    assert one(targets, UsageChange("invoices", takes=(SECOND, THIRD), most=2)) is None
    assert one(targets, UsageChange("invoices", takes=(SECOND,), most=2)) is not None
    assert one(targets, UsageChange("invoices", takes=(THIRD,), most=2)) is None
    assert one(targets, UsageChange("invoices", drops=(replace(FIRST, fence=7),))) is None, "the place belongs to another attempt"
    assert one(targets, UsageChange("invoices", takes=(THIRD,), drops=(FIRST, replace(SECOND, until=1)), most=2)) is None
    early = replace(FIRST, fence=FIRST.fence - 1)
    assert one(targets, UsageChange("invoices", takes=(early,), most=9)) is None, "its executor was frozen, and another one goes on"
    again = replace(SECOND, fence=5, since=NOW + 5)
    changed = one(targets, UsageChange("invoices", takes=(THIRD, again), drops=(FIRST, SECOND), most=2, took_ms=70))
    assert changed == TargetUsage("invoices", places=(THIRD, again), took_ms=70, taken=4, stored=True)
    freed = one(targets, UsageChange("invoices", drops=(THIRD, again), took_ms=60, queued_until=8))
    assert freed == TargetUsage("invoices", took_ms=60, taken=4, queued_until=8, stored=True)
    assert one(targets, UsageChange("invoices", drops=(THIRD,))) is None


def test_the_largest_change_of_an_item_fits_into_its_expressions() -> None:
    """DynamoDB accepts 4 KB in each: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"""
    takes = tuple(replace(FIRST, job=JobKey("o" * 36, f"{number:026d}")) for number in range(IN_ONE_ITEM))
    drops = tuple(replace(FIRST, job=JobKey("o" * 36, f"{number:026d}")) for number in range(IN_ONE_ITEM, 2 * IN_ONE_ITEM))
    written = stored._as_update(UsageChange("invoices", takes=takes, drops=drops, most=IN_ONE_ITEM, took_ms=70, queued_until=7), "tasks")
    assert all(len(written[name].encode()) <= 4_096 for name in ("UpdateExpression", "ConditionExpression"))


def test_a_change_of_usage_is_atomic(targets: Targets) -> None:
    targets.use([UsageChange("invoices", first=True, starts=Move(SOON, 10, 10, behind=False), takes=(FIRST,))])
    assert one(targets, UsageChange("invoices", starts=Move(SOON + 10, 5, 5, behind=True), takes=(SECOND,), most=1)) is None
    assert one(targets, UsageChange("invoices", starts=Move(SOON + 11, 5, 5, behind=True), drops=(FIRST,))) is None
    both = UsageChange("invoices", starts=Move(SOON + 10, 5, 5, behind=True), takes=(SECOND,), most=2)
    assert one(targets, both) == TargetUsage("invoices", SOON + 15, 5, (FIRST, SECOND), taken=2, stored=True)


def test_usages_of_several_targets_change_independently(targets: Targets) -> None:
    first, second = (UsageChange(name, first=True, takes=(FIRST,)) for name in ("invoices", "other"))
    stands = [TargetUsage(name, places=(FIRST,), taken=1, stored=True) for name in ("invoices", "other")]
    assert targets.use([first]) == [ChangeResult(Written.YES, stands[0])]
    assert targets.use([first, second]) == [ChangeResult(Written.NO, stands[0]), ChangeResult(Written.YES, stands[1])]
    assert targets.usages(["invoices", "other", "third"]) == {"invoices": stands[0], "other": stands[1]}


def test_a_new_target_of_the_same_name_inherits_no_usage(targets: Targets) -> None:
    targets.put(None, target())
    targets.use([UsageChange("invoices", first=True, takes=(FIRST,))])
    targets.delete(target())
    assert targets.usages(["invoices"]) == {}


# The queue of a target

USER = QueueUser("invoices", "ada#b", NOW)


def test_a_user_joins_a_queue_again_and_again(targets: Targets) -> None:
    assert targets.queue("invoices") == (None, []) and list(targets.queues()) == [] and targets.queue_users([("invoices", "ada#b")]) == {}
    for owner, name in (("ada#b", "invoices"), ("eve", "invoices"), ("eve", "invoices.de")):
        targets.join_queue(name, owner, NOW)
    noted = replace(USER, finish=1.25, waiting=False)
    targets.note_queue_user(noted)
    assert targets.queue("invoices") == (None, [noted, QueueUser("invoices", "eve", NOW)])
    targets.join_queue("invoices", "ada#b", NOW + 5)
    assert targets.queue_users([("invoices", "ada#b"), ("other", "eve")]) == {
        ("invoices", "ada#b"): replace(noted, joined_at=NOW + 5, waiting=True)
    }


def test_a_user_is_dropped_unless_it_has_joined_since(targets: Targets) -> None:
    targets.join_queue("invoices", "ada#b", NOW + 5)
    assert not targets.drop_queue_user(USER) and targets.drop_queue_user(replace(USER, joined_at=NOW + 5))
    assert targets.drop_queue_user(USER), "it is gone"
    targets.note_queue_user(USER)
    assert targets.queue("invoices") == (None, []), "a note brings nobody back"


def test_a_queue_changes_under_its_epoch(targets: Targets) -> None:
    first = TargetQueue("invoices", 1, NOW, NOW + 1, "m", 0.25, NOW + 2, (Released(NOW, 3, 4),))
    assert targets.change_queue(None, first) and targets.change_queue(None, first), "the answer was lost"
    assert not targets.change_queue(None, replace(first, next_at=7))
    assert targets.queue("invoices") == (first, [])
    second = replace(first, epoch=2, lease_until=0)
    assert targets.change_queue(first, second) and not targets.change_queue(first, replace(second, clock=9.0))
    assert targets.change_queue(second, replace(second, released=()))
    targets.join_queue("other", "ada#b", NOW)
    assert list(targets.queues()) == [(replace(second, released=()), []), (TargetQueue("other"), [replace(USER, target="other")])]


@pytest.mark.parametrize("circuit", [Circuit("target invoices"), Circuit("host example.com:8080", "ann")])
def test_only_breakers_that_are_not_closed_are_read(ledger: Ledger, circuit: Circuit) -> None:
    opened = breaker.opened(circuit, NOW)
    half = replace(opened, probe_until=NOW + 9, version=2)
    ledger.set_lane_state(LaneState(Lane.RETRY, paused_at=NOW))
    assert ledger.watched() == Watched({Lane.RETRY: LaneState(Lane.RETRY, paused_at=NOW)}, {})
    assert ledger.set_breaker(None, opened) and not ledger.set_breaker(None, opened), "one of them opens it"
    assert ledger.watched().breakers == {circuit: opened}
    assert ledger.watched().lanes == {Lane.RETRY: LaneState(Lane.RETRY, paused_at=NOW)}
    assert ledger.set_breaker(opened, half) and not ledger.set_breaker(opened, half), "one of them probes"
    assert ledger.watched().breakers == {circuit: half}
    assert not ledger.set_breaker(opened, None)
    assert ledger.set_breaker(half, None)
    assert ledger.watched().breakers == {}


def test_two_owners_have_two_breakers_of_one_host(ledger: Ledger) -> None:
    of_ann, of_bob = (breaker.opened(Circuit("host example.com", owner), NOW) for owner in ("ann", "bob"))
    assert ledger.set_breaker(None, of_ann) and ledger.set_breaker(None, of_bob)
    assert ledger.watched().breakers == {each.circuit: each for each in (of_ann, of_bob)}
    assert ledger.set_breaker(of_ann, None)
    assert ledger.watched().breakers == {of_bob.circuit: of_bob}


# Many concurrency slots: several items


def test_a_target_with_slots_beside_round_trips(targets: Targets) -> None:
    wanted = target(concurrency=500, beside=492)
    assert targets.put(None, wanted) and targets.targets(["invoices"]) == {"invoices": wanted}


def test_the_items_of_a_deleted_target_are_deleted(targets: Targets) -> None:
    targets.put(None, target(concurrency=500, beside=492))
    names = ["invoices", "invoices#1", "invoices#25"]
    assert [answer.done for answer in targets.use([UsageChange(name, first=True, takes=(FIRST,)) for name in names])] == [Written.YES] * 3
    assert sorted(targets.usages(names)) == names
    targets.delete(target(concurrency=500, beside=492))
    assert targets.usages(names) == {}


def units_a_write(target: NamedTarget, number: int) -> int:
    """The write units of a change of an item whose share of the slots is in use: DynamoDB bills its size in KB, rounded up."""
    job, owner = "01M7W6C38030000000000000C0", "0b9a3f52-6f0e-4d3c-9b61-0a2f5f1d9c11"
    places = [Place(JobKey(owner, f"{job[:-3]}{n:03d}"), 12, NOW, NOW + 360_000) for n in range(share_of(target, number) or 0)]
    item: dict[str, Any] = {name: {"N": str(NOW * 1_000)} for name in ("start_us", "step_us", "took_ms", "taken", "queued_until")}
    item["places"] = {"M": {stored._name(place): stored._lease(place) for place in places}}
    return -(-items.size(keys.usage(item_name("t" * 40, number)) | item) // 1_024)


PARTITION = 1_000  # write units a second that DynamoDB takes for one partition key


def test_500_jobs_of_a_second_at_once_stay_below_the_rate_of_a_partition() -> None:
    one, spread = target(concurrency=500), target(concurrency=500, beside=slots_beside(None, 500))
    assert 2 * 500 * units_a_write(one, 0) > 40 * PARTITION, "every start and every end writes all places"
    further = [2 * (share_of(spread, number) or 0) * units_a_write(spread, number) for number in range(1, ITEMS + 1)]
    assert max(further) <= 80, "twenty starts and twenty ends a second, two units each"
    starts_and_ends, steps = 2 * OWN, 1  # of the first item
    assert (starts_and_ends + steps) * units_a_write(spread, 0) <= 600


def test_fifty_jobs_of_a_second_at_once_fit_into_one_item() -> None:
    assert 2 * 50 * units_a_write(target(concurrency=50), 0) + 50 * units_a_write(target(concurrency=50), 0) <= PARTITION
    assert 1_000 * units_a_write(target(rate=1_000.0), 0) <= PARTITION, "a start of a rate is one unit"


KEYED = name_of("ann", "crm")
LIMIT = KeyLimit(Limit("crm", concurrency=2, rate=10, period_ms=60_000), "task 1", NOW)


def test_the_limit_of_a_key_is_stored_with_its_usage(targets: Targets) -> None:
    begin = UsageChange(KEYED, first=True, limit=(None, LIMIT), expires=NOW + 86_400_000)
    assert one(targets, begin) == TargetUsage(KEYED, stored=True, limit=LIMIT, expires=(NOW + 86_400_000) // 1_000 * 1_000)
    other = replace(LIMIT, until=NOW + 60_000)
    assert one(targets, UsageChange(KEYED, limit=(None, other))) is None and one(targets, UsageChange(KEYED, limit=(other, LIMIT))) is None
    changed = one(targets, UsageChange(KEYED, takes=(FIRST,), most=2, limit=(LIMIT, other)))
    assert changed is not None and (changed.limit, changed.places) == (other, (FIRST,))


def test_a_change_of_an_expired_record_is_not_valid(targets: Targets) -> None:
    assert one(targets, UsageChange(KEYED, queued_until=NOW)) is None


def test_changes_together_are_all_applied_or_none(targets: Targets) -> None:
    assert targets.use_together([UsageChange(name, first=True, takes=(FIRST,)) for name in ("invoices", KEYED)]) is Written.YES
    both = [UsageChange("invoices", takes=(SECOND,), most=9), UsageChange(KEYED, takes=(SECOND,), most=1)]
    assert targets.use_together(both) is Written.NO
    assert [usage.places for usage in targets.usages(["invoices", KEYED]).values()] == [(FIRST,)] * 2


def test_queues_of_keys_are_read_by_part(targets: Targets) -> None:
    targets.join_queue(KEYED, "ann", NOW)
    targets.join_queue("invoices", "ann", NOW)
    assert [queue.target for queue, _ in targets.queues()] == ["invoices"]
    assert [queue.target for part in range(QUEUE_PARTS) for queue, _ in targets.queues(part)] == [KEYED]


def test_the_record_of_a_queue_is_dropped_under_its_epoch(targets: Targets) -> None:
    queue = TargetQueue(KEYED, 3)
    targets.change_queue(None, queue)
    assert not targets.drop_queue(replace(queue, epoch=2)) and targets.drop_queue(queue) and targets.queue(KEYED) == (None, [])


def test_a_join_tells_whether_jobs_waited_before(targets: Targets) -> None:
    assert [targets.join_queue(KEYED, "ann", NOW), targets.join_queue(KEYED, "ann", NOW + 5)] == [0, NOW]
    targets.note_queue_user(QueueUser(KEYED, "ann", NOW, waiting=False))
    assert targets.join_queue(KEYED, "ann", NOW + 9) == 0
