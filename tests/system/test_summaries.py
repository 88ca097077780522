"""Summaries of coming and past jobs on the deployed stack: each change of a stream is counted once."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.samples import rfc3339
from scheduler.insight.metrics import namespace
from tests.system.conftest import System, ended, until

pytestmark = pytest.mark.apart

LATER = timedelta(minutes=50)


def test_summaries_show_posted_jobs_in_seconds_and_count_runs_once(deployed: System) -> None:
    client = deployed.client("looking-ahead")
    minute = (datetime.now(UTC) + LATER).replace(second=0, microsecond=0)
    bodies = [{"message": str(n), "execute_at": rfc3339(minute + timedelta(seconds=n))} for n in range(12)]
    jobs = [job.raw for job in client.jobs.create_many(bodies).all_jobs()]
    task = client.tasks.create("that minute", "log", {"message": "again"}, schedule={"cron": f"{minute.minute} * * * *"}).raw

    def at_that_minute() -> dict[str, Any]:
        minutes = client.request("GET", "/forecast")["minutes"]
        assert len(minutes) == 181
        return next(each for each in minutes if each["scheduled_at"] == rfc3339(minute))

    until(300, lambda: at_that_minute()["jobs"] == 13)
    client.jobs.cancel(jobs[0]["id"])
    client.tasks.pause(task["id"], reason="seen")
    until(300, lambda: at_that_minute()["jobs"] == 11)

    done = ended(client, [client.jobs.create("log", {"message": "now"}).raw for _ in range(7)], 60)
    assert {job["status"] for job in done} == {"succeeded"}

    def of_log() -> dict[str, Any]:
        return next((each for each in client.request("GET", "/statistics")["types"] if each["type"] == "log"), {})

    until(300, lambda: of_log().get("succeeded", 0) >= 7)
    assert (of_log()["runs"], of_log()["succeeded"], of_log()["cancelled"]) == (7, 7, 1)
    everybody = deployed.client().request("GET", "/statistics")
    assert everybody["scope"] == "all"
    assert next(each for each in everybody["types"] if each["type"] == "log")["runs"] >= 7


def test_a_metric_beyond_its_threshold_triggers_its_alarm(deployed: System) -> None:
    """The local AWS checks alarms when a metric is put, ignores dimensions, and extracts no metrics from logs."""
    watch = deployed.aws("cloudwatch")
    alarms = [alarm for page in watch.get_paginator("describe_alarms").paginate() for alarm in page["MetricAlarms"]]
    ours = {alarm["AlarmName"]: alarm for alarm in alarms if alarm["Namespace"] == namespace("local") and alarm["EvaluationPeriods"] == 1}
    names = {found[1] for name in ours if (found := re.search(r"Alarms(\w+?)[0-9A-F]{8}-", name))}
    assert names == {"Buried", "DeadLetters", "JobOverhead", "StartDelay", "Unreadable"}

    def ringing() -> set[str]:
        pages = watch.get_paginator("describe_alarms").paginate(AlarmNames=list(ours))
        return {alarm["AlarmName"] for page in pages for alarm in page["MetricAlarms"] if alarm["StateValue"] == "ALARM"}

    before = ringing()
    for alarm in ours.values():
        worse = {"MetricName": alarm["MetricName"], "Dimensions": alarm["Dimensions"], "Value": alarm["Threshold"] + 1}
        watch.put_metric_data(Namespace=namespace("local"), MetricData=[worse])
    until(60, lambda: ringing() == ours.keys())
    assert before == set()
