"""What groups cost: the write units of their items, for each job. `docs/guides/groups.md` has the figures."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bench.operations import REQUEST, Recorder
from lab.world.stage import Stage
from scheduler.groups import ends
from scheduler.jobs import groups
from scheduler.jobs.groups import NewGroup
from scheduler.model.group import CallKind, Group
from scheduler.model.job import changed
from scheduler.model.spec import JobSpec
from scheduler.pipeline.submit import Submission
from scheduler.storage.aws.groups import INLINE_BYTES, DynamoGroups
from tests.contract.make import NOW
from tests.contract.test_write_units import made, recorder
from tests.language import ROOT

__all__ = ["recorder"]

CALLS = {CallKind.ON_SUCCESS: REQUEST.spec}


class Counted(Stage):
    """A stage whose groups are stored in a table, and nothing else is."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.groups = DynamoGroups(recorder.client, made(recorder, "tasks"))

    @property
    def units(self) -> int:
        """The units since the last call."""
        total = self.recorder.total()
        self.recorder.writes.clear()
        return total

    def create(self, jobs: int, *, seal: bool = True, calls: Mapping[CallKind, JobSpec] = CALLS, name: str = "invoices") -> Group:
        asked = [Submission(REQUEST, number) for number in range(jobs)]
        return groups.create(NewGroup(REQUEST.owner, name, calls, seal=seal), asked, self, random=1).group

    def join(self, group: Group, jobs: int, *, at_once: int) -> None:
        for _ in range(jobs // at_once):
            assert None not in self.post(*[replace(REQUEST, group=group.id)] * at_once)

    def end(self, group: Group, *, at_once: int) -> None:
        """End all members, so many in one batch of an executor."""
        members = [job for job in self.jobs.rows.values() if job.member is not None]
        for start in range(0, len(members), at_once):
            ended = [changed(job, completed_at=NOW, slot=None) for job in members[start : start + at_once]]
            ends.count_ended(ended, self, now=NOW)
            ends.count_again(ended, self, now=NOW)
        assert groups.find(group.key, self).succeeded_at is not None


@pytest.fixture
def counted(recorder: Recorder) -> Counted:
    return Counted(recorder)


@pytest.mark.parametrize(
    ("jobs", "at_once", "created", "ended"),
    [(1, 1, 1, 2), (5, 1, 1, 6), (5, 5, 1, 2), (16, 1, 1, 17), (100, 1, 11, 110)],
)
def test_a_group_that_is_created_with_its_jobs(counted: Counted, jobs: int, at_once: int, created: int, ended: int) -> None:
    """A unit for the head, one for each end or batch of ends, one for the end of all; large groups: two for each leaf."""
    group = counted.create(jobs)
    assert counted.units == created
    counted.end(group, at_once=at_once)
    assert counted.units == ended


@pytest.mark.parametrize(("jobs", "at_once", "joined"), [(40, 1, 82), (100, 100, 10)])
def test_jobs_that_join_cost_two_units_unless_they_join_in_a_batch(counted: Counted, jobs: int, at_once: int, joined: int) -> None:
    """The number and the id of each; of a batch, one number for all and one write for each leaf. The group takes two."""
    group = counted.create(0, seal=False)
    counted.join(group, jobs, at_once=at_once)
    assert counted.units == joined


def test_a_seal_costs_five_units_at_most(counted: Counted) -> None:
    group = counted.create(0, seal=False)
    counted.join(group, 40, at_once=40)
    assert counted.units
    groups.seal(group.key, counted)
    assert counted.units == 5


GUIDE: Mapping[str, tuple[int, int, int]] = {  # jobs, how many end at once, how many join at once (0: they come with the group)
    "of 5 jobs, created in one request, which end one by one": (5, 1, 0),
    "the same, if they end together, in one batch of an executor": (5, 5, 0),
    "of 100 jobs, created in one request, which end one by one": (100, 1, 0),
    "of 500 jobs that end in batches of 10": (500, 10, 0),
    "of 100 jobs that join in a batch, and end one by one": (100, 1, 100),
    "of 40 jobs that join one by one, and end one by one": (40, 1, 1),
}


@pytest.mark.long
@pytest.mark.parametrize("row", GUIDE)
def test_the_guide_says_what_groups_cost(counted: Counted, row: str) -> None:
    jobs, end, join = GUIDE[row]
    group = counted.create(0 if join else jobs, seal=not join)
    if join:
        counted.join(group, jobs, at_once=join)
        groups.seal(group.key, counted)
    counted.end(group, at_once=end)
    assert f"| {row} | {counted.units / jobs:.1f} |" in (ROOT / "docs/guides/groups.md").read_text()


@pytest.mark.parametrize("length", [0, INLINE_BYTES - 130, INLINE_BYTES])
def test_long_call_backs_do_not_make_the_ends_dearer(counted: Counted, length: int) -> None:
    calls = {CallKind.ON_SUCCESS: JobSpec("http", {"method": "POST", "url": "https://example.com", "body": "x" * length})}
    group = counted.create(16, calls=calls, name="n" * 80)
    assert counted.units == (2 if length == INLINE_BYTES else 1)
    counted.end(group, at_once=1)
    assert counted.units == (18 if length == INLINE_BYTES else 17)


@pytest.mark.parametrize("abandoned", [False, True])
def test_every_item_of_an_ended_group_expires(counted: Counted, abandoned: bool) -> None:
    calls = {CallKind.ON_SUCCESS: JobSpec("log", {"message": "x" * INLINE_BYTES})}
    group = counted.create(20, seal=not abandoned, calls=calls)
    if abandoned:
        counted.groups.abandon(group.key, NOW, 9)
    else:
        counted.end(group, at_once=20)
    items = counted.recorder.reader.scan(TableName=counted.groups._table.name)["Items"]
    stored = [item for item in items if not item["pk"]["S"].startswith("group-checks#")]
    assert [item["pk"]["S"] for item in stored if "expires" not in item] == [] and len(stored) == (3 if abandoned else 4)
