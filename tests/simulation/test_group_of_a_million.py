"""The counts of large groups: how often each key of the table is written, and what follows the last end."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lab.world.stage import Stage
from scheduler.groups import ends
from scheduler.model import ids
from scheduler.model.group import SPAN, CallKind, End, Group, GroupKey, Leaf, LeafKey, Marks, NodeKey
from scheduler.model.job import Job, changed, new_job
from scheduler.model.spec import JobSpec
from scheduler.storage.memory.groups import MemoryGroups

SPEC = JobSpec("log", {"message": "hi"})
CALLS = {kind: JobSpec("log", {"message": kind.value}) for kind in CallKind}
A_SECOND = 10_000  # ends: far more than a stage with a thousand executors
BATCH = 10  # jobs that an executor settles together
CALL_MS = 20  # a call of DynamoDB takes less than half of this; of a batch of reads, too
MOST_UNITS = 1_000  # write units a second that a partition takes


class Metered(MemoryGroups):
    """Groups that count the writes of each key by second, and the calls."""

    def __init__(self, second: Callable[[], int]) -> None:
        super().__init__()
        self._second = second
        self.writes: Counter[tuple[object, int]] = Counter()
        self.total = self.calls = 0

    def _note(self, key: object) -> None:
        self.writes[key, self._second()] += 1
        self.total += 1

    def mark(self, marks: Mapping[LeafKey, Marks], now: int) -> list[Leaf | Group]:
        self.calls += 1
        for key in marks:
            self._note(key.group if key.number == 0 else key)
        return super().mark(marks, now)

    def fill(self, key: NodeKey, leaves: Any, now: int) -> Any:
        self.calls += 1
        self._note(("node", key))
        return super().fill(key, leaves, now)

    def count(self, key: NodeKey, counts: Any, seen: int) -> None:
        self.calls += 1
        self._note(("node", key))
        super().count(key, counts, seen)

    def fill_head(self, key: GroupKey, nodes: Any) -> Group | None:
        self.calls += 1
        self._note(key)
        return super().fill_head(key, nodes)

    def end(self, key: GroupKey, at: int, *, succeeded: bool, expires: int) -> Group:
        self.calls += 1
        self._note(key)
        return super().end(key, at, succeeded=succeeded, expires=expires)

    def leaves(self, keys: Sequence[LeafKey]) -> dict[LeafKey, Leaf]:
        self.calls += -(-len(keys) // 100)
        return super().leaves(keys)

    def nodes(self, keys: Sequence[NodeKey]) -> dict[NodeKey, Any]:
        self.calls += -(-len(keys) // 100)
        return super().nodes(keys)

    def get(self, key: GroupKey) -> Group | None:
        self.calls += 1
        return super().get(key)


def an_end(group: GroupKey, number: int, now: int) -> Job:
    job = new_job(
        owner="ann", id=f"j{number}", spec=SPEC, scheduled_at=now, due_at=now, created_at=now, slot="", group=group.id, member=number
    )
    return changed(job, slot=None, **({"failed_at": now} if number % 33 == 0 else {"completed_at": now}))


def counted(members: int, seed: int = 1) -> tuple[Stage, Metered, GroupKey]:
    """A group of so many members, all of which have ended at `A_SECOND`, in an order that only nearly is that of their numbers."""
    stage = Stage()
    metered = Metered(lambda: stage.clock.at // 1_000)
    stage.groups = metered
    key = GroupKey("ann", ids.new(stage.clock.now(), 1))
    group = Group(*key, stage.clock.now(), stage.clock.now(), calls=CALLS, members=members, sealed_at=stage.clock.now())
    stage.groups.add(replace(group, leaf=Leaf(LeafKey(key, 0), members={0: "j0"})))
    ends.note_sealed(group, stage, now=stage.clock.now())
    metered.writes.clear()
    metered.total, random = 0, Random(seed)
    order = sorted(range(members), key=lambda number: number + random.randint(0, 20_000))
    for start in range(0, members, BATCH):
        stage.clock.at = group.created_at + start * 1_000 // A_SECOND
        before = metered.calls
        ends.count_ended([an_end(key, number, stage.clock.at) for number in order[start : start + BATCH]], stage, now=stage.clock.now())
        last = metered.calls - before
    metered.calls = last
    return stage, metered, key


@pytest.mark.parametrize("members", [3_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_no_key_is_written_too_often_and_the_last_end_is_soon_followed(members: int) -> None:
    stage, metered, key = counted(members)
    group = stage.groups.get(key)
    assert group is not None and group.ended_at == stage.clock.now()
    counts = ends.counts_of(group, stage)
    assert sum(counts.values()) == members and counts[End.FAILED] == len(range(0, members, 33))
    assert sorted(job.spec.payload["message"] for job in stage.jobs.rows.values()) == ["on_complete", "on_failure"]
    assert max(metered.writes.values()) <= MOST_UNITS / 2
    assert metered.total / members <= 1.1, "write units a job: nearly each end is alone in its leaf, in this order"
    assert metered.calls * CALL_MS <= 5_000
    busiest, each = max(metered.writes.values()), metered.total / members
    print(f"{members:,} members: {each:.3f} writes each, {busiest} a second at most, {metered.calls} calls at the end")


def test_ends_in_order_share_their_writes() -> None:
    stage = Stage()
    metered = Metered(lambda: 0)
    stage.groups = metered
    key = GroupKey("ann", ids.new(stage.clock.now(), 1))
    stage.groups.add(Group(*key, stage.clock.now(), stage.clock.now(), members=10 * SPAN))
    ends.count_ended([an_end(key, number, stage.clock.now()) for number in range(5 * SPAN)], stage, now=stage.clock.now())
    assert metered.total == 5 + 1
