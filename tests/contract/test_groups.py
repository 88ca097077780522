"""The port `Groups`: over both implementations."""

from dataclasses import replace

from scheduler.groups import counting
from scheduler.model import ids
from scheduler.model.group import MOST, CallKind, End, Group, GroupCheck, Leaf, LeafKey, NodeKey
from scheduler.model.job import GroupKey
from scheduler.model.spec import JobSpec
from scheduler.storage.ports import Groups

NOW = 1_800_000_000_000
ID = ids.new(NOW, 1)
KEY = GroupKey("ada", ID)
CALL = JobSpec("http", {"url": "https://example.com"}, tags=("a",))


def group(members: int = 0, **values: object) -> Group:
    leaf = Leaf(LeafKey(KEY, 0), members={number: f"job{number}" for number in range(min(members, 16))}) if members else None
    made = Group("ada", ID, NOW, NOW + 86_400_000, members=members, leaf=leaf)
    return replace(made, **values)  # type: ignore[arg-type]


def stored(groups: Groups, made: Group) -> Group:
    assert groups.add(made)
    found = groups.get(made.key)
    assert found is not None
    return found


def test_a_group_is_read_back_whole(groups: Groups) -> None:
    made = group(3, name="invoices", sealed_at=NOW, calls={CallKind.ON_COMPLETE: CALL})
    assert groups.calls_of(stored(groups, made)) == made
    assert groups.get(GroupKey("eve", ID)) is None


def test_long_call_backs_are_read_back_whole(groups: Groups) -> None:
    made = group(1, calls={CallKind.ON_FAILURE: replace(CALL, payload={"text": "x" * 1000})})
    assert groups.calls_of(stored(groups, made)) == made


def test_adding_a_group_again_changes_nothing(groups: Groups) -> None:
    made = stored(groups, group(2))
    assert not groups.add(group(5, name="other")) and groups.get(KEY) == made


def test_marks_that_come_before_their_group_stay(groups: Groups) -> None:
    """The group is stored after its jobs, which may have ended by then."""
    (early,) = groups.mark({LeafKey(KEY, 0): {End.SUCCEEDED: frozenset({1})}}, NOW)
    assert isinstance(early, Leaf) and groups.get(KEY) is None
    found = stored(groups, group(2, sealed_at=NOW))
    assert found.leaf is not None and counting.ends(found.leaf) == {1: End.SUCCEEDED} and len(found.leaf.members) == 2


def test_a_mark_that_is_added_twice_changes_nothing(groups: Groups) -> None:
    stored(groups, group(2))
    for _ in range(2):
        (found,) = groups.mark({LeafKey(KEY, 0): {End.FAILED: frozenset({0}), End.SUCCEEDED: frozenset({1, 16})}}, NOW)
    assert isinstance(found, Group) and found.leaf is not None
    assert found.leaf.marks == {End.FAILED: {0}, End.SUCCEEDED: {1, 16}} and found.members == 2


def test_numbers_are_given_once_each_until_the_group_is_sealed(groups: Groups) -> None:
    assert groups.allocate(KEY, 1) is None
    stored(groups, group())
    given = [groups.allocate(KEY, 3), groups.allocate(KEY, 20)]
    assert [found.members for found in given if found is not None] == [3, 23]
    sealed = groups.seal(KEY, NOW + 1)
    assert sealed is not None and (sealed.sealed_at, sealed.members) == (NOW + 1, 23)
    assert groups.allocate(KEY, 1) is None


def test_a_group_has_a_most_number_of_members(groups: Groups) -> None:
    stored(groups, group(members=0))
    assert groups.allocate(KEY, MOST) is not None and groups.allocate(KEY, 1) is None


def test_the_first_seal_and_the_first_cancel_count(groups: Groups) -> None:
    stored(groups, group())
    groups.seal(KEY, NOW + 1)
    groups.seal(KEY, NOW + 2, cancelled=True)
    found = groups.seal(KEY, NOW + 3, cancelled=True)
    assert found is not None and (found.sealed_at, found.cancelled_at) == (NOW + 1, NOW + 2)


def test_a_sealed_group_is_not_abandoned_and_an_abandoned_one_not_sealed(groups: Groups) -> None:
    stored(groups, group())
    found = groups.abandon(KEY, NOW + 5, 1)
    assert found is not None and found.abandoned_at == NOW + 5 and groups.seal(KEY, NOW + 6) is None and groups.allocate(KEY, 1) is None
    other = GroupKey("ada", ids.new(NOW, 2))
    groups.add(replace(group(), id=other.id))
    groups.seal(other, NOW)
    found = groups.abandon(other, NOW + 5, 1)
    assert found is not None and found.abandoned_at is None


def test_members_are_enrolled_in_their_leaves(groups: Groups) -> None:
    stored(groups, group())
    groups.enrol(KEY, {14: "a", 15: "b", 16: "c"}, NOW)
    groups.enrol(KEY, {17: "d"}, NOW)
    found = groups.leaves([LeafKey(KEY, 0), LeafKey(KEY, 1), LeafKey(KEY, 2)])
    assert {key.number: leaf.members for key, leaf in found.items()} == {0: {14: "a", 15: "b"}, 1: {0: "c", 1: "d"}}
    assert groups.size_leaf(LeafKey(KEY, 1), 2) == replace(found[LeafKey(KEY, 1)], size=2)


def test_a_node_collects_full_leaves_and_keeps_the_newest_counts(groups: Groups) -> None:
    key = NodeKey(KEY, 0)
    assert groups.nodes([key]) == {}
    groups.fill(key, {0, 2}, NOW)
    groups.size_node(key, 3)
    node = groups.fill(key, {1, 2}, NOW)
    assert node.full == {0, 1, 2} and counting.is_node_full(node)
    groups.count(key, {End.SUCCEEDED: 3}, 3)
    groups.count(key, {End.SUCCEEDED: 1}, 2)
    assert groups.nodes([key])[key].counts == {End.SUCCEEDED: 3}


def test_the_first_end_and_the_first_success_count(groups: Groups) -> None:
    stored(groups, group(1, sealed_at=NOW))
    groups.end(KEY, NOW + 1, succeeded=False, expires=9)
    groups.end(KEY, NOW + 2, succeeded=True, expires=9)
    found = groups.end(KEY, NOW + 3, succeeded=True, expires=9)
    assert (found.ended_at, found.succeeded_at) == (NOW + 1, NOW + 2)
    filled = groups.fill_head(KEY, {0, 1})
    assert filled is not None and filled.full == {0, 1}


def test_groups_are_listed_newest_first(groups: Groups) -> None:
    made = [replace(group(), id=ids.new(NOW + number, number)) for number in range(5)]
    for each in made:
        groups.add(each)
    page, cursor = groups.listing("ada", after=None, limit=3)
    assert [each.id for each in page] == [made[4].id, made[3].id, made[2].id] and cursor == made[2].id
    page, cursor = groups.listing("ada", after=cursor, limit=3)
    assert [each.id for each in page] == [made[1].id, made[0].id] and cursor is None
    assert groups.listing("eve", after=None, limit=3) == ([], None)


def test_checks_are_planned_replaced_and_dropped(groups: Groups) -> None:
    first, later = GroupCheck(KEY, NOW), GroupCheck(KEY, NOW + 60_000, node=7)
    groups.plan(None, first)
    assert groups.due(NOW - 1, 10) == [] and groups.due(NOW, 10) == [first]
    groups.plan(first, later)
    assert groups.due(NOW, 10) == [] and groups.due(NOW + 60_000, 10) == [later]
    groups.plan(later, None)
    assert groups.due(NOW + 60_000, 10) == []


def test_a_group_knows_that_jobs_wait_for_its_end(groups: Groups) -> None:
    assert groups.follow(KEY) is None
    stored(groups, group(1, sealed_at=NOW))
    before = groups.get(KEY)
    found = groups.follow(KEY)
    assert before is not None and not before.followed and found == replace(before, followed=True) == groups.get(KEY)
