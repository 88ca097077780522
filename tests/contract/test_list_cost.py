"""What the lists of an owner's jobs cost on DynamoDB, and what they make of an index that is behind its table."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from scheduler.model import ids
from scheduler.model.job import Page
from scheduler.storage.aws import items, keys, lists
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.ports import Change, Written
from tests.contract import make, tables
from tests.contract.make import NOW
from tests.contract.wire import Wire

List = Callable[[DynamoJobs], object]
TASK = make.task(owner="ada").key


@pytest.fixture
def wired(request: pytest.FixtureRequest) -> tuple[DynamoJobs, Wire]:
    client = tables.on_moto(request, "jobs", tables.JOBS)
    return DynamoJobs(client, "jobs"), Wire(client)


def history(jobs: DynamoJobs, limit: int = 20) -> Page:
    return jobs.history("ada", since=None, until=None, after=None, limit=limit, newest_first=True)


LISTS: dict[str, tuple[List, dict[str, int]]] = {
    "history": (history, {"": ids.PARTITIONS, keys.MOVED: keys.MOVED_PARTITIONS}),
    "of_task": (
        lambda jobs: jobs.of_task(TASK, since=None, until=None, after=None, limit=20, newest_first=True),
        {keys.BY_TASK: 1, keys.MOVED: keys.MOVED_PARTITIONS},
    ),
    "failures": (lambda jobs: jobs.failures("ada", since=None, until=None, after=None, limit=20), {keys.FAILURES: ids.PARTITIONS}),
    "letters": (
        lambda jobs: jobs.letters("ada", since=None, until=None, after=None, limit=20, newest_first=True),
        {keys.FAILURES: ids.PARTITIONS},
    ),
    "count_ahead": (lambda jobs: jobs.count_ahead("ada", NOW), {"": 2 * ids.PARTITIONS, keys.MOVED: keys.MOVED_PARTITIONS}),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_few_jobs_takes_one_query_of_each_partition(wired: tuple[DynamoJobs, Wire], name: str) -> None:
    (jobs, wire), (read, queries) = wired, LISTS[name]
    for number in range(3):
        jobs.put(make.job(at=NOW + number))
    wire.calls.clear()
    read(jobs)
    indexes = [call.get("IndexName", "") for call in wire.sent("Query")]
    assert {index: indexes.count(index) for index in dict.fromkeys(indexes)} == queries
    assert len(wire.calls) == sum(queries.values()), "nothing else is read"


@pytest.mark.long
@pytest.mark.parametrize("limit", [20, 100])
def test_a_page_of_many_jobs_takes_hardly_more_queries(wired: tuple[DynamoJobs, Wire], limit: int) -> None:
    jobs, wire = wired
    for number in range(8 * limit):
        jobs.put(make.job(at=NOW + number))
    wire.calls.clear()
    assert len(history(jobs, limit).jobs) == limit
    assert len(wire.sent("Query")) <= ids.PARTITIONS + keys.MOVED_PARTITIONS + 4


def test_a_count_reads_late_jobs_until_a_page_of_ended_ones(wired: tuple[DynamoJobs, Wire]) -> None:
    """A page has 1 MB, here five jobs. The latest job waits, those before it have ended, and the earliest one waits."""
    jobs, _ = wired
    spec = replace(make.job().spec, payload={"text": "x" * 170_000})
    late = [replace(make.job(at=NOW + number), id=ids.new(NOW + number, 1, partitions=1), spec=spec) for number in range(-8, 0)]
    for job in late:
        jobs.put(job if job in (late[0], late[-1]) else replace(job, slot=None, cancelled_at=NOW))
    assert jobs.count_ahead("ada", NOW) == 2, "the first page has a waiting job, so the second one is read"
    assert jobs.change([Change(late[-1], replace(late[-1], slot=None, cancelled_at=NOW))]) == [Written.YES]
    assert jobs.count_ahead("ada", NOW) == 0, "the first page has none"


@pytest.mark.parametrize("checked", [1, 3])
def test_a_count_reads_few_of_the_moved_jobs(checked: int, wired: tuple[DynamoJobs, Wire], monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, wire = wired
    for number in range(4):
        moved = make.rescheduled(make.job(at=NOW - 9 + number), NOW + 60_000)
        jobs.put(replace(moved, slot=None, cancelled_at=NOW))
    monkeypatch.setattr(lists, "CHECKED", checked)
    wire.calls.clear()
    assert jobs.count_ahead("ada", NOW) == 4 - checked, "those that were not read are assumed to wait"
    assert [len(call["RequestItems"]["jobs"]["Keys"]) for call in wire.sent("BatchGetItem")] == [checked]


def test_an_outdated_entry_of_the_index_of_moved_jobs_lists_no_job(wired: tuple[DynamoJobs, Wire]) -> None:
    """The index is behind: it has three jobs at a former time, of which one was moved back, one moved on, and one is gone."""
    jobs, wire = wired
    back, on, gone = (make.job(at=NOW + number) for number in range(3))
    further = make.rescheduled(on, NOW + 90_000)
    jobs.put(back)
    jobs.put(further)
    outdated = [items.encode(make.rescheduled(job, NOW + 60_000)) for job in (back, on, gone)]
    present = items.encode(further)
    names = ("pk", "sk", "moved_partition", "moved_position")

    def answer(params: dict[str, object]) -> object:
        asked = str(params["body"])
        entries = [item for item in [*outdated, present] if keys.MOVED in asked and f'"{item["moved_partition"]["S"]}"' in asked]
        if keys.MOVED not in asked:
            return None
        found = sorted(entries, key=lambda item: item["moved_position"]["S"], reverse=True)
        return Wire.OK, {"Items": [{name: item[name] for name in names} for item in found]}

    wire.answers["Query"] = answer
    assert history(jobs) == Page([further, back])
