"""Events of ended jobs: the writes that have one, its content, and its documentation."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from scheduler.model import lifecycle
from scheduler.model.job import Job, RunInfo, Status
from scheduler.model.rules import Rules
from scheduler.model.spec import Ordering
from scheduler.notify import announce
from scheduler.notify.announce import DETAIL_TYPES, of_change
from scheduler.storage.memory.ports import MemoryPorts
from tests.conftest import FixedClock
from tests.contract import make

PAGE = (Path(__file__).resolve().parents[2] / "docs/guides/events.md").read_text()
SCHEMA = json.loads(PAGE.partition("```json")[2].partition("```")[0])
VALID = jsonschema_rs.Draft202012Validator(SCHEMA, validate_formats=True)
FULL = make.job(target="reports", tags=("a",), ordering=Ordering("k"), events=True)
EVENTS = Rules(events=True)
RUN = make.job(origin=RunInfo("t1", 2, make.NOW - 5), events=True)


@dataclass(frozen=True)
class Write:
    before: Job | None
    after: Job | None


def an_end(job: Job) -> Write:
    return Write(make.claimed(job), make.failed(make.claimed(job)))


def detail(write: Write) -> dict[str, Any]:
    (event,) = of_change(write)
    return dict(event.detail)


def ends() -> list[Write]:
    taken = make.claimed(FULL)
    killed = replace(make.failed(taken), failed_at=None, killed_at=make.NOW)
    skipped = lifecycle.skip(RUN, make.NOW, reason="it expired")
    return [
        Write(taken, make.succeeded(taken)),
        an_end(FULL),
        Write(taken, killed),
        Write(FULL, make.cancelled(FULL)),
        Write(RUN, skipped),
        Write(None, skipped),  # plan stores runs that are skipped already
    ]


@pytest.mark.parametrize("write", ends())
def test_each_end_has_an_event_of_the_documented_schema(write: Write) -> None:
    (event,) = of_change(write)
    assert write.after is not None
    status = lifecycle.state(write.after)
    assert event.detail_type == DETAIL_TYPES[status] == f"Punctual Job {status.title()}"
    assert event.detail["status"] == status and event.at == getattr(write.after, lifecycle.FINAL_TIMES[status])
    VALID.validate(event.detail)


def test_the_page_has_every_field_in_its_example_and_its_schema() -> None:
    example = json.loads(re.findall(r'^    (\{"version".*?\})$', PAGE, re.MULTILINE | re.DOTALL)[0])
    assert list(example) == list(SCHEMA["properties"]) == SCHEMA["required"] == list(detail(an_end(FULL)))
    VALID.validate(example)
    assert SCHEMA["properties"]["status"]["enum"] == [status.value for status in lifecycle.FINAL_TIMES]


def test_the_page_lists_every_detail_type() -> None:
    rows = re.findall(r"^\| `(Punctual Job \w+)` \|", PAGE, re.MULTILINE)
    assert rows == list(DETAIL_TYPES.values()) and list(DETAIL_TYPES) == [*list(Status)[3:]]


def test_writes_that_end_no_job_have_no_event() -> None:
    dead = make.failed(make.claimed(FULL))
    for write in (Write(None, FULL), Write(FULL, make.claimed(FULL)), Write(dead, replace(dead, output="o")), Write(dead, None)):
        assert not list(of_change(write))


def test_an_event_quotes_the_error_and_neither_payload_nor_output() -> None:
    told = json.dumps(detail(an_end(replace(FULL, spec=replace(FULL.spec, payload={"message": "s3cret"}), output="s3cret"))))
    assert "s3cret" not in told and "permanent: no" in told


def test_an_end_after_a_redrive_has_another_id() -> None:
    first, again = detail(an_end(FULL)), detail(an_end(replace(FULL, redrives=1)))
    assert (first["id"], again["id"]) == (f"{FULL.id}.0", f"{FULL.id}.1")
    assert first["id"] == detail(an_end(FULL))["id"], "the same for each delivery of the record"


def test_a_run_names_its_task_and_its_nominal_time() -> None:
    told = detail(an_end(RUN))
    assert told["task_id"] == "t1" and told["nominal_at"].endswith("Z")


def test_a_replay_names_its_original_and_has_its_nominal_time() -> None:
    told = detail(an_end(replace(FULL, replay_of="01A", nominal_at=make.NOW)))
    assert (told["replay_of"], told["nominal_at"]) == ("01A", announce.instant(make.NOW))
    assert detail(an_end(replace(FULL, replay_of=None, nominal_at=None)))["replay_of"] is None


def test_a_batch_is_delivered_again_from_its_first_refused_event() -> None:
    ports = MemoryPorts(FixedClock(), EVENTS)
    jobs = [make.job(events=True) for _ in range(3)]
    batch = [Write(None, jobs[0]), *(an_end(job) for job in jobs)]
    ports.events.refuses = {f"{jobs[1].id}.0"}
    result = announce.announce(batch, ports)
    assert (result.sent, result.refused) == (2, 2), "the place in the batch, beside changes without an event"
    ports.events.refuses = ()
    assert announce.announce(batch[result.refused or 0 :], ports) == announce.AnnounceResult(sent=2)
    assert {event.detail["job_id"] for event in ports.events.sent} == {job.id for job in jobs}


def test_a_batch_without_ends_makes_no_call() -> None:
    ports = MemoryPorts(FixedClock(), EVENTS)
    ports.events = None
    assert announce.announce([Write(None, FULL)], ports) == announce.AnnounceResult()


def test_jobs_that_ask_for_no_event_have_one_only_if_all_have() -> None:
    """With traces the stream brings the ends of all jobs."""
    silent = an_end(make.job())
    assert announce.announce([silent], MemoryPorts(FixedClock(), EVENTS)).sent == 0
    assert announce.announce([silent], MemoryPorts(FixedClock(), replace(EVENTS, all_events=True))).sent == 1


def test_without_a_bus_only_spans_are_sent() -> None:
    ports = MemoryPorts(FixedClock(), Rules(traces=True))
    result = announce.announce([an_end(FULL)], ports)
    assert not ports.events.sent and result.spans == len(ports.traces.spans) > 0 and not result.dropped


def test_a_refused_event_holds_back_the_spans_behind_it_alone() -> None:
    ports = MemoryPorts(FixedClock(), replace(EVENTS, traces=True))
    jobs = [make.job(events=True) for _ in range(3)]
    batch = [an_end(job) for job in jobs]
    ports.events.refuses = {f"{jobs[1].id}.0"}
    refused = announce.announce(batch, ports).refused
    assert refused == 1 and {_job_of(span) for span in ports.traces.spans} == {jobs[0].id}
    ports.events.refuses = ()
    announce.announce(batch[refused:], ports)
    assert len({span["spanId"] for span in ports.traces.spans}) == len(ports.traces.spans), "no span is sent twice"


def test_a_collector_that_is_away_loses_spans_and_no_event() -> None:
    ports = MemoryPorts(FixedClock(), replace(EVENTS, traces=True))
    ports.traces.away = True
    result = announce.announce([an_end(FULL)], ports)
    assert (result.sent, result.refused, result.spans) == (1, None, 0) and result.dropped == 2, "its wait and its attempt"


def _job_of(span: Mapping[str, Any]) -> str:
    values: dict[str, str] = {each["key"]: each["value"].get("stringValue", "") for each in span["attributes"]}
    return values["messaging.message.id"]
