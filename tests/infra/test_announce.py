"""The event bus is an option; the stream starts announce with the ends that it is to announce, and with nothing else."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from bench.metered import matches
from infra.options import Events, Traces
from infra.settings import DEV
from scheduler.model import lifecycle
from scheduler.model.job import CANARY_OWNER, Job, RunInfo, Status
from scheduler.storage.aws import items
from tests.contract import make
from tests.infra.conftest import ROOT, Synthesized, name_of, synthesized
from tests.infra.test_project import CANARY, claimed, ended, record

PAGE = (ROOT / "docs/internals/mechanisms.md").read_text()
WAITS = make.job()
CHOSEN = replace(WAITS, spec=replace(WAITS.spec, events=True))


def ends(job: Job) -> list[Job]:
    """The job after each kind of end."""
    taken = make.claimed(job)
    return [
        make.succeeded(taken),
        make.failed(taken),
        replace(make.failed(taken), failed_at=None, killed_at=make.NOW),
        make.cancelled(job),
        lifecycle.skip(job, make.NOW, reason="so"),
    ]


def starts(stack: Synthesized, before: Job | None, after: Job | None) -> bool:
    mapping = stack.one("Lambda::EventSourceMapping", "AnnounceJobs")
    patterns = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
    assert len(patterns) <= 5, "AWS accepts five, unless a quota was raised"
    change = record(before and items.encode(before), after and items.encode(after))
    return any(matches(pattern, change) for pattern in patterns)


def test_there_is_no_event_bus_by_default(on_aws: Synthesized) -> None:
    assert on_aws.settings.events is Events.NONE and not on_aws.settings.deployed.events
    assert not on_aws.all("Events::EventBus") and "Announce" not in on_aws.functions()


def test_each_end_of_a_job_with_events_starts_announce(local: Synthesized) -> None:
    assert [lifecycle.state(job) for job in ends(CHOSEN)] == [Status.SUCCEEDED, Status.FAILED, *list(Status)[-3:]]
    assert all(starts(local, CHOSEN, job) for job in ends(CHOSEN))


def test_other_jobs_and_other_changes_do_not_start_announce(local: Synthesized) -> None:
    assert not any(starts(local, WAITS, job) for job in ends(WAITS))
    redriven = replace(CHOSEN, redrives=1)
    for before, after in ((None, CHOSEN), (CHOSEN, make.claimed(CHOSEN)), (make.failed(make.claimed(CHOSEN)), redriven)):
        assert not starts(local, before, after)
    assert not starts(local, make.cancelled(CHOSEN), None), "DynamoDB removes it in the end"


@pytest.mark.long
def test_with_the_option_all_every_end_of_a_users_job_starts_announce() -> None:
    stack = synthesized("dev", events="all")
    assert all(starts(stack, WAITS, job) for job in ends(WAITS))
    assert CANARY.owner == CANARY_OWNER and not starts(stack, claimed(CANARY), ended(CANARY))


def test_a_refused_batch_is_retried_for_hours_and_then_goes_to_a_queue(local: Synthesized) -> None:
    mapping = local.one("Lambda::EventSourceMapping", "AnnounceJobs")
    assert name_of(mapping["EventSourceArn"]) == "StorageJobs" and mapping["StartingPosition"] == "TRIM_HORIZON"
    assert (mapping["FunctionResponseTypes"], mapping["BisectBatchOnFunctionError"]) == (["ReportBatchItemFailures"], True)
    assert mapping["MaximumRecordAgeInSeconds"] == 12 * 3_600 < 24 * 3_600, "after a day a stream has forgotten its records"
    assert name_of(mapping["DestinationConfig"]["OnFailure"]["Destination"]) == "AnnounceLost"
    assert local.one("SQS::Queue", "AnnounceLost")["MessageRetentionPeriod"] == 14 * 24 * 3_600


def test_late_and_lost_events_raise_alarms(local: Synthesized) -> None:
    behind, lost = local.one("CloudWatch::Alarm", "AnnounceBehind"), local.one("CloudWatch::Alarm", "AnnounceGivenUp")
    assert (behind["MetricName"], behind["Threshold"], behind["EvaluationPeriods"]) == ("IteratorAge", 300_000, 3)
    assert name_of(behind["Dimensions"][0]["Value"]) == "AnnounceFunction"
    assert (name_of(lost["Dimensions"][0]["Value"]), lost["Threshold"]) == ("AnnounceLost", 0)


def test_the_bus_has_the_name_of_the_stack(local: Synthesized) -> None:
    assert local.one("Events::EventBus", "AnnounceBus")["Name"] == "punctual-local"


@pytest.mark.long
def test_announce_reads_one_stream_and_puts_on_one_bus() -> None:
    stack = synthesized("dev", events="chosen")
    reads = {("dynamodb:" + action, "StorageJobs") for action in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")}
    logs = {(f"logs:{action}", "AnnounceLogs") for action in ("CreateLogStream", "PutLogEvents")}
    own = {("events:PutEvents", "AnnounceBus"), ("sqs:SendMessage", "AnnounceLost")}
    assert set(stack.grants("Announce")) == reads | logs | own
    assert {name for name in stack.functions() if ("events:PutEvents", "AnnounceBus") in stack.grants(name)} == {"Announce"}
    written = re.findall(r"^\| `([\w:]+)` \| `([^`]+)` \|", PAGE.partition("## Grants of announce")[2].partition("\n## ")[0], re.MULTILINE)
    assert set(written) == set(stack.grants("Announce"))


# Spans.


def traced(endpoint: str = "https://otel.example.com/v1/traces", **more: Any) -> Synthesized:
    return synthesized("dev", traces=Traces(endpoint=endpoint, **more))


@pytest.mark.long
def test_with_traces_creations_attempts_and_ends_start_announce() -> None:
    stack, run = traced(), make.job(origin=RunInfo("t1", 1, make.NOW))
    retried = make.retried(make.claimed(WAITS), "2026-11-20T10:05#03")
    assert starts(stack, None, WAITS) and starts(stack, make.claimed(WAITS), retried)
    assert all(starts(stack, WAITS, job) for job in (*ends(WAITS), *ends(CHOSEN), *ends(run)))
    assert not starts(stack, None, run), "no request created it"
    assert not starts(stack, WAITS, make.claimed(WAITS)) and not starts(stack, make.cancelled(WAITS), None)
    assert not starts(stack, claimed(CANARY), ended(CANARY))


@pytest.mark.long
def test_traces_alone_need_neither_bus_nor_queue_nor_alarm() -> None:
    stack = traced()
    assert not stack.all("Events::EventBus") and not [name for name in stack.all("SQS::Queue") if "Announce" in name]
    mapping = stack.one("Lambda::EventSourceMapping", "AnnounceJobs")
    assert mapping["MaximumRetryAttempts"] == 2 and "DestinationConfig" not in mapping, "spans are not worth a day of tries"
    rules = stack.settings.deployed
    assert (rules.traces, rules.trace_ratio, rules.events) == (True, 1.0, False)
    assert not DEV.deployed.traces


@pytest.mark.long
@pytest.mark.parametrize(
    ("chosen", "grants"),
    [
        ({"endpoint": "https://otel.example.com/v1/traces"}, set()),
        ({"endpoint": "xray", "ratio": 0.5}, {("xray:PutTraceSegments", "*"), ("xray:PutSpans", "*"), ("xray:PutSpansForIndexing", "*")}),
        (
            {"endpoint": "https://otel.example.com/v1/traces", "headers_secret": "punctual/collector"},
            {("secretsmanager:GetSecretValue", "arn:AWS::P:secretsmanager:AWS:AWS::A:secret:punctual/collector-??????")},
        ),
    ],
)
def test_announce_may_reach_the_collector_and_nothing_else(chosen: dict[str, Any], grants: set[tuple[str, str]]) -> None:
    stack = traced(**chosen)
    found = {(action, on) for action, on in stack.grants("Announce") if not action.startswith(("dynamodb:", "logs:"))}
    assert found == grants
    variables = stack.functions()["Announce"]["Environment"]["Variables"]
    assert variables["PUNCTUAL_TRACES_ENDPOINT"] == chosen["endpoint"] and "PUNCTUAL_EVENT_BUS" not in variables
