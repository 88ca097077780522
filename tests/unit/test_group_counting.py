"""How the ends of a group's members are counted: pure."""

from dataclasses import replace
from random import Random

import pytest

from scheduler.groups import counting
from scheduler.model.group import FAN, SPAN, CallKind, End, Group, Leaf, LeafKey, Node, NodeKey
from scheduler.model.job import GroupKey
from tests.conftest import NOW

KEY = GroupKey("ann", "g")
GROUP = Group("ann", "g", NOW, NOW)


def a_leaf(size: int | None = None, **marks: set[int]) -> Leaf:
    return Leaf(LeafKey(KEY, 0), size, marks={End(name): frozenset(each) for name, each in marks.items()})


def test_of_the_marks_of_a_member_the_last_redrive_counts() -> None:
    leaf = a_leaf(f={1, 2, SPAN + 2}, s={SPAN + 1})
    assert counting.ends(leaf) == {1: End.SUCCEEDED, 2: End.FAILED}


def test_the_order_of_marks_changes_nothing() -> None:
    marks = [(End.FAILED, 3), (End.KILLED, SPAN + 3), (End.SUCCEEDED, 2 * SPAN + 3), (End.SUCCEEDED, 0), (End.SUCCEEDED, 0)]
    for seed in range(20):
        shuffled, found = Random(seed).sample(marks, len(marks)), dict[str, set[int]]()
        for end, mark in shuffled:
            found.setdefault(end.value, set()).add(mark)
        assert counting.ends(a_leaf(**found)) == {0: End.SUCCEEDED, 3: End.SUCCEEDED}


def test_a_real_end_is_stronger_than_a_void_number() -> None:
    assert counting.ends(a_leaf(v={1, 2}, s={1})) == {1: End.SUCCEEDED, 2: End.VOID}


def test_a_leaf_is_full_with_its_last_member() -> None:
    every = set(range(SPAN))
    assert not counting.is_full(a_leaf(s=every - {7})) and counting.is_full(a_leaf(s=every))
    assert not counting.is_full(a_leaf(2, s={0})) and counting.is_full(a_leaf(2, s={0}, v={1}))


def test_a_group_is_complete_once_it_is_sealed_and_all_have_ended() -> None:
    ended = replace(GROUP, members=2, leaf=a_leaf(s={0}, f={1}))
    assert not counting.is_complete(ended) and counting.is_complete(replace(ended, sealed_at=NOW))
    assert not counting.is_complete(replace(ended, sealed_at=NOW, members=3))
    assert counting.is_complete(replace(GROUP, sealed_at=NOW))  # an empty one at once


def test_a_large_group_is_complete_once_all_its_nodes_are_full() -> None:
    large = replace(GROUP, members=SPAN * FAN + 1, sealed_at=NOW, full=frozenset({0}))
    assert (large.leaves, large.nodes) == (FAN + 1, 2)
    assert not counting.is_complete(large) and counting.is_complete(replace(large, full=frozenset({0, 1})))


@pytest.mark.parametrize("members", [1, SPAN, SPAN + 1, 2 * SPAN, SPAN * FAN, SPAN * FAN + 1, SPAN * (FAN + 1), 1_000_000])
def test_the_last_leaf_and_node_are_sized_so_that_all_can_be_full(members: int) -> None:
    group = replace(GROUP, members=members, sealed_at=NOW)
    leaf, node = counting.sizes(group)
    in_leaf, in_node = members - (group.leaves - 1) * SPAN, group.leaves - (group.nodes - 1) * FAN
    if group.leaves > 1:
        last_leaf = Leaf(LeafKey(KEY, group.leaves - 1), leaf and leaf[1], marks={End.SUCCEEDED: frozenset(range(in_leaf))})
        last_node = Node(NodeKey(KEY, group.nodes - 1), node and node[1], frozenset(range(in_node)))
        assert counting.is_full(last_leaf) and counting.is_node_full(last_node)
    assert [each and each[0] for each in (leaf, node)] in (
        [None, None],
        [None, group.nodes - 1],
        [group.leaves - 1, group.nodes - 1],
        [group.leaves - 1, None],
    )
    assert sum(len(counting.leaves_of_node(group, number)) for number in range(group.nodes)) == group.leaves


@pytest.mark.parametrize(
    ("ended", "succeeded", "kinds"),
    [
        (None, None, []),
        (NOW, None, [CallKind.ON_COMPLETE, CallKind.ON_FAILURE]),
        (NOW, NOW, [CallKind.ON_COMPLETE, CallKind.ON_SUCCESS]),
        (NOW, NOW + 1, [CallKind.ON_COMPLETE, CallKind.ON_FAILURE, CallKind.ON_SUCCESS]),
    ],
)
def test_which_call_backs_follow(ended: int | None, succeeded: int | None, kinds: list[CallKind]) -> None:
    group = replace(GROUP, sealed_at=NOW, ended_at=ended, succeeded_at=succeeded)
    assert [kind for kind, _ in counting.calls(group)] == kinds
    assert list(counting.calls(replace(group, abandoned_at=NOW))) == []


def test_success_needs_all_members_that_have_jobs() -> None:
    group = replace(GROUP, members=3)
    assert counting.have_succeeded(group, {End.SUCCEEDED: 2, End.VOID: 1})
    assert not counting.have_succeeded(group, {End.SUCCEEDED: 2, End.SKIPPED: 1})
    assert counting.have_succeeded(GROUP, {})
