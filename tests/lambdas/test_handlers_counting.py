"""The handlers `project`, `scale` and `provision`, behind their triggers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lambdas import _runtime, project, provision, scale
from lambdas._metrics import emit
from scheduler.insight import counting, metrics
from scheduler.model.counters import CounterEntry, Row
from scheduler.model.errors import Invalid, Unavailable, Unreadable
from scheduler.model.job import CANARY_OWNER, Job, Lane, RunInfo, Status, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.task import Task
from scheduler.storage.aws import items, keys, readable, task_items
from scheduler.storage.memory.ports import MemoryPorts
from tests.conftest import NOW, FixedClock
from tests.contract import make

SHARD = "shardId-00000001795168800000-0badf00d"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryPorts]:
    made = MemoryPorts(FixedClock(), Rules(shards=2))
    monkeypatch.setattr(_runtime, "ports", lambda: made)
    yield made


def record(number: int, before: Job | Task | None, after: Job | Task | None) -> dict[str, Any]:
    """A record of a stream, in the fields that Lambda sends."""
    images = [task_items.encode(each) if isinstance(each, Task) else items.encode(each) if each else None for each in (before, after)]
    known = images[1] or images[0] or {}
    told = {"Keys": {"pk": known["pk"], "sk": known["sk"]}, "SequenceNumber": str(100 + number), "StreamViewType": "NEW_AND_OLD_IMAGES"}
    told |= {name: image for name, image in zip(("OldImage", "NewImage"), images, strict=True) if image is not None}
    table = "tasks" if isinstance(before or after, Task) else "jobs"
    source = f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}/stream/2026-11-20T10:00:00.000"
    return {"eventID": f"e{number}", "eventSource": "aws:dynamodb", "eventSourceARN": source, "dynamodb": told}


def event(*records: dict[str, Any], shard: str | None = SHARD) -> dict[str, Any]:
    named = {} if shard is None else {"shardId": shard, "window": {"start": "x", "end": "y"}, "state": {}, "isFinalInvokeForWindow": False}
    return {"Records": list(records), **named}


def ended(number: int = 1) -> list[dict[str, Any]]:
    job = make.job(at=make.NOW)
    claimed = make.claimed(job)
    steps = [(None, job), (job, claimed), (claimed, make.succeeded(claimed, make.NOW + 250))]
    return [record(number + place, before, after) for place, (before, after) in enumerate(steps)]


def emitted(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    found = {name: value for line in lines for name, value in line.items()}
    units = {each["Name"]: each["Unit"] for line in lines for each in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
    assert all(metrics.BY_NAME[name].unit == unit for name, unit in units.items())
    return found


def test_a_metric_has_the_namespace_of_its_stage(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", metrics.namespace("staging"))
    emit("bury", {metrics.BURIED: 1})
    line = json.loads(capsys.readouterr().out)
    assert line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Punctual/staging"


def test_values_beyond_one_line_of_metrics_are_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    emit("project", {metrics.START_DELAY: list(range(250)), metrics.DEAD: 7, metrics.CANARY_DELAY: []})
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    values = [value for line in lines for value in line.get(metrics.START_DELAY, [])]
    assert sorted(values) == list(range(250)) and len(lines) == 3
    assert sum(sum(line.get(metrics.DEAD, [])) for line in lines) == 7
    assert all(line[metrics.SERVICE] == "project" and metrics.CANARY_DELAY not in line for line in lines)


def test_a_line_of_metrics_that_is_just_full_is_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    emit("project", {metrics.START_DELAY: list(range(200))})
    assert len(capsys.readouterr().out.splitlines()) == 2


def stats(world: MemoryPorts) -> dict[str, int]:
    rows = world.counters.read(counting.stats_partition("ada"), "0", "~")
    return dict(rows[0].amounts) if rows else {}


def test_a_batch_is_counted_and_reported(world: MemoryPorts, capsys: pytest.CaptureFixture[str], logged: pytest.LogCaptureFixture) -> None:
    assert project.handler(event(*ended()), None) == {"state": {}}
    assert stats(world)["succeeded"] == 1
    told = emitted(capsys)
    (line,) = [vars(record) for record in logged.records if record.message == "project"]
    assert (line["jobs_created"], line["jobs_processed"], told[metrics.SERVICE]) == (1, 1, "project")
    assert (told[metrics.START_DELAY], told[metrics.LATENCY]) == ([0.0], [250.0])
    assert not told.keys() & {metrics.DEAD, metrics.CANARY_DELAY, metrics.OVERHEAD}


@pytest.mark.parametrize(("late_ms", "noted"), [(0, False), (999, False), (1_000, True), (15_000, True)])
def test_overheads_are_emitted_if_one_job_took_long(
    world: MemoryPorts, late_ms: int, noted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make.job(at=make.NOW)
    claimed = make.claimed(job)
    done = make.succeeded(claimed, make.NOW + late_ms + 250)
    late = replace(done, started_at=make.NOW + late_ms)
    project.handler(event(*ended(), record(9, claimed, late)), None)
    told = emitted(capsys)
    assert told.get(metrics.OVERHEAD) == ([0.0, float(late_ms)] if noted else None)


def test_a_batch_of_the_canary_alone_logs_no_counts(
    world: MemoryPorts, capsys: pytest.CaptureFixture[str], logged: pytest.LogCaptureFixture
) -> None:
    claimed = make.claimed(make.job(at=make.NOW, owner=CANARY_OWNER))
    project.handler(event(record(1, claimed, make.succeeded(claimed, make.NOW + 250))), None)
    assert metrics.CANARY_DELAY in emitted(capsys) and not logged.records


def test_a_repeated_batch_adds_nothing(world: MemoryPorts) -> None:
    batch = event(*ended())
    for _ in range(3):
        project.handler(batch, None)
    assert stats(world)["succeeded"] == 1


def test_shards_and_tables_are_counted_separately(world: MemoryPorts) -> None:
    project.handler(event(*ended()), None)
    project.handler(event(*ended(), shard="shardId-2"), None)
    project.handler(event(record(1, None, make.task())), None)
    assert stats(world)["succeeded"] == 2
    assert len(world.counters.read(counting.recurring_partition("ada"), "0", "~")) == 1


def test_sequence_numbers_sort_by_their_value_not_as_text(world: MemoryPorts) -> None:
    first, last = ended(1), ended(900)  # 101..103, 1000..1002: a digit longer
    project.handler(event(*first), None)
    project.handler(event(*last), None)
    assert stats(world)["succeeded"] == 2


def test_an_event_without_a_shard_needs_a_stream_with_one_shard(world: MemoryPorts) -> None:
    with pytest.raises(Invalid, match="tumbling window"):
        project.handler(event(*ended(), shard=None), None)
    assert stats(world) == {}
    world.rules = replace(world.rules, one_shard=True)
    project.handler(event(*ended(), shard=None), None)
    assert stats(world)["succeeded"] == 1


def test_the_end_of_a_window_has_no_records(world: MemoryPorts, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.handler(event(), None) == {"state": {}}
    assert emitted(capsys) == {}


@pytest.mark.parametrize(
    "broken", [{}, {"Keys": {"pk": {"S": "a#00"}, "sk": {"S": "b"}}, "SequenceNumber": "7", "NewImage": {"x": {"S": ""}}}]
)
def test_an_unreadable_record_is_left_out_and_reported(
    world: MemoryPorts, broken: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    project.handler(event(record(1, None, make.job()) | {"dynamodb": broken}, *ended(2)), None)
    assert stats(world)["succeeded"] == 1
    assert emitted(capsys)[metrics.UNREADABLE] == [1.0]


def test_items_beside_jobs_and_tasks_are_ignored(world: MemoryPorts, capsys: pytest.CaptureFixture[str]) -> None:
    canary = keys.canary(UnitKey("2026-11-20T10:00", 0)) | {"slot": {"S": "s"}, "due_at": {"N": "0"}}
    mark = keys.MARK | {"number": {"N": "7"}}
    others = [canary, mark, keys.holder(make.task().key) | {"job": {"S": "j"}}, {"pk": {"S": "order#ada#0"}, "sk": {"S": "m#1"}}]
    template = record(1, None, make.job())
    for number, image in enumerate(others):
        told = {"Keys": {"pk": image["pk"], "sk": image["sk"]}, "SequenceNumber": str(number), "NewImage": image}
        project.handler(event(template | {"dynamodb": told}), None)
    assert world.counters.rows == {} and emitted(capsys) == {}


def test_the_end_of_a_notified_run_is_sent_with_every_delivery(world: MemoryPorts) -> None:
    claimed = make.claimed(make.job(at=make.NOW, origin=RunInfo("t1", 1, make.NOW, notify=True)))
    batch = event(record(1, claimed, make.failed(claimed)), *ended(2))
    for _ in range(2):
        project.handler(batch, None)
    assert [(each.job, each.ended) for each in world.notices.sent] == [(claimed.id, Status.FAILED)] * 2


def test_only_jobs_deleted_by_ttl_go_to_the_archive(world: MemoryPorts) -> None:
    claimed = make.claimed(make.job(at=make.NOW, tags=("a",)))
    done = make.succeeded(claimed, make.NOW + 250)
    by_ttl = {"userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}}
    project.handler(event(record(1, done, None) | by_ttl, record(2, make.job(), None), record(3, make.task(), None) | by_ttl), None)
    (kept,) = world.outputs.archived
    assert (kept["id"], kept["status"], kept["ended_at"], kept["tags"]) == (done.id, "succeeded", make.NOW + 250, ["a"])
    assert kept["day"] == counting.day_of(make.NOW) and json.loads(kept["details"])["output"] == "hello"
    assert stats(world) == {}, "that it left the table counts for nothing"


@pytest.mark.parametrize(("jobs", "required"), [(27, 3), (90, 10)])
def test_scale_emits_the_required_capacity_and_sends_a_canary(
    world: MemoryPorts, jobs: int, required: int, capsys: pytest.CaptureFixture[str]
) -> None:
    project.handler(event(*[record(number, None, make.job(at=NOW + 60_000)) for number in range(jobs)]), None)
    capsys.readouterr()
    world.rules = replace(world.rules, executors=10, lag_canary=True)
    answer = scale.handler({"anything": ["at", "all"]}, None)
    assert (answer["required"], answer["available"], answer["canary"]) == (required, 10, True)
    assert emitted(capsys).get(metrics.REQUIRED) == ([float(required)] if required >= 10 else None)
    assert [job.owner for job in world.jobs.rows.values()] == [CANARY_OWNER]


RINGS: dict[str, Any] = {"source": "aws.cloudwatch", "alarmArn": "arn", "alarmData": {"state": {"value": "ALARM"}}}


def provisioning(world: MemoryPorts) -> None:
    """Let the next minutes require 400 executors of the one-time lane, which may keep pollers ready."""
    world.rules = replace(world.rules, most_pollers={Lane.ONE_TIME: 100})
    row = Row(counting.load_partition(counting.EVERYBODY), counting.hour_of(NOW))
    world.counters.add("s", [CounterEntry(row, "1", {"05#log": 3_600})])


@pytest.mark.parametrize("event", [RINGS, {}, {"anything": ["at", "all"]}], ids=["an alarm", "by hand", "anything"])
def test_an_alarm_keeps_pollers_ready_and_scale_follows(world: MemoryPorts, event: dict[str, Any]) -> None:
    provisioning(world)
    assert scale.handler({}, None)["pollers"] == {}
    assert provision.handler(event, None) == {"pollers": {"one-time": 40}, "refused": []}
    assert scale.handler({}, None)["pollers"] == {"one-time": 40} == {str(lane): kept for lane, kept in world.functions.provisioned.items()}


def test_an_alarm_whose_pollers_are_refused_is_called_again(world: MemoryPorts) -> None:
    """Lambda repeats only a call that raises."""

    def refuse(lane: Lane, count: int) -> None:
        raise Unavailable

    provisioning(world)
    world.functions.keep_pollers = refuse
    with pytest.raises(Unavailable, match="one-time"):
        provision.handler(RINGS, None)


def test_each_unreadable_item_is_counted_as_a_metric(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Unreadable):
        readable.read(items.decode, {"pk": {"S": "ann#00"}, "sk": {"S": "j1"}, "v": {"N": "2"}})
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "UnreadableItems" in line]
    assert (line["UnreadableItems"], line["service"]) == ([1.0], "storage")
