"""The handler of announce, on records of the stream as Lambda delivers them."""

import json

import pytest

from lambdas import _runtime, announce
from scheduler.model.rules import Rules
from scheduler.storage.memory.ports import MemoryPorts
from tests.conftest import FixedClock
from tests.contract import make
from tests.lambdas.test_handlers_counting import event, record


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MemoryPorts:
    made = MemoryPorts(FixedClock(), Rules(events=True, traces=True))
    monkeypatch.setattr(_runtime, "ports", lambda: made)
    return made


def test_lambda_delivers_a_batch_again_from_the_first_refused_event(world: MemoryPorts) -> None:
    jobs = [make.claimed(make.job(events=True)) for _ in range(3)]
    batch = event(*(record(number, job, make.succeeded(job)) for number, job in enumerate(jobs, 1)))
    del batch["shardId"]  # the mapping has no tumbling window
    sequences = [each["dynamodb"]["SequenceNumber"] for each in batch["Records"]]
    world.events.refuses = {f"{jobs[1].id}.0"}
    assert announce.handler(batch, None) == {"batchItemFailures": [{"itemIdentifier": sequences[1]}]}
    world.events.refuses = ()
    assert announce.handler(batch | {"Records": batch["Records"][1:]}, None) == {"batchItemFailures": []}
    assert {told.detail["job_id"] for told in world.events.sent} == {job.id for job in jobs}


def test_an_unreadable_record_delays_no_other(world: MemoryPorts) -> None:
    job = make.claimed(make.job(events=True))
    batch = event(record(1, job, make.succeeded(job)), record(2, job, make.succeeded(job)))
    batch["Records"][0]["dynamodb"]["NewImage"]["v"] = {"N": "99"}
    assert announce.handler(batch, None) == {"batchItemFailures": []} and len(world.events.sent) == 1


def test_spans_of_a_batch_are_exported_and_lost_ones_are_counted(world: MemoryPorts, capsys: pytest.CaptureFixture[str]) -> None:
    job = make.claimed(make.job())
    batch = event(record(1, None, make.job()), record(2, job, make.succeeded(job)))
    announce.handler(batch, None)
    assert [str(span["name"]).split()[0] for span in world.traces.spans] == ["create", "wait", "process"]
    assert "SpansLost" not in capsys.readouterr().out
    world.traces.away = True
    assert announce.handler(batch, None) == {"batchItemFailures": []}
    (line,) = [json.loads(each) for each in capsys.readouterr().out.splitlines() if "SpansLost" in each]
    assert (line["SpansLost"], line["service"]) == ([3.0], "announce")
