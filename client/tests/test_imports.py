"""Crontabs and schedules of EventBridge Scheduler as tasks."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

from punctual.plan import crontab, eventbridge, parse, to_yaml
from punctual.plan.eventbridge import NoEqual

NOW = datetime(2026, 11, 25, tzinfo=timezone.utc)
CRONTAB = """\
# Nightly
# things
SHELL=/bin/bash
30 2 * * * /usr/bin/report --day=$(date +\\%F) {{x}}

CRON_TZ=Europe/Berlin
@daily cleanup
0 9 * * MON mail -s hi%line one%line two
@reboot start
* * * *
"""


def test_each_line_of_a_crontab_becomes_a_task_with_its_comments() -> None:
    found = crontab.read(CRONTAB, crontab.to_url("https://run.test"), time_zone="America/New_York")
    first, second, third = (entry.body for entry in found.entries)
    assert first["schedule"] == {"cron": "30 2 * * *", "time_zone": "America/New_York"}
    assert first["payload"] == {
        "method": "POST",
        "url": "https://run.test",
        "body": {"command": "/usr/bin/report --day=$(date +%F) {{{{x}}"},
    }
    assert found.entries[0].comments[:2] == ["Nightly", "things"] and "SHELL=/bin/bash" in found.entries[0].comments[3]
    assert second["schedule"] == {"cron": "@daily", "time_zone": "Europe/Berlin"}
    assert third["payload"]["body"] == {"command": "mail -s hi", "stdin": "line one\nline two"}
    assert [(number, reason) for number, _, reason in found.refused] == [
        (9, "@reboot has no time: start it with the machine instead"),
        (10, "needs five fields and a command"),
    ]
    document = parse([("t", to_yaml(found.entries))])
    assert [item.key for item in document.items] == ["usr-bin-report-day-$(date-+-f)-{{x}}", "cleanup", "mail--s-hi"] or len(
        document.items
    ) == 3


def test_a_system_crontab_has_users_and_a_target_gets_the_command() -> None:
    found = crontab.read(
        "0 1 * * *  root   backup\n0 2 * * * root", crontab.to_target("commands", "event"), time_zone="UTC", with_user=True
    )
    (entry,) = found.entries
    assert entry.body == {
        "key": "backup",
        "name": "backup",
        "schedule": {"cron": "0 1 * * *"},
        "target": "commands",
        "payload": {"event": {"command": "backup", "user": "root"}},
    }
    assert found.refused == [(2, "0 2 * * * root", "has no command")]


def test_a_line_without_a_time_zone_is_refused() -> None:
    found = crontab.read("0 1 * * * a\nCRON_TZ=Asia/Tokyo\n0 1 * * * b", crontab.to_target("t", "body"), time_zone=None)
    assert [line for line, _, _ in found.refused] == [1] and found.entries[0].body["schedule"]["time_zone"] == "Asia/Tokyo"


LAMBDA = "arn:aws:lambda:eu-central-1:123456789012:function:f"


def schedule(expression: str = "rate(5 minutes)", target: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "Name": "s",
        "GroupName": "default",
        "ScheduleExpression": expression,
        "Target": {"Arn": LAMBDA, **(target or {})},
        "CreationDate": datetime(2026, 1, 1, 0, 0, 7, 250_000, tzinfo=timezone.utc),
        **fields,
    }


def form(expression: str, **fields: Any) -> Any:
    return eventbridge.entry(schedule(expression, **fields), set(), now=NOW).body["schedule"]


def reason(made: dict[str, Any]) -> str:
    with pytest.raises(NoEqual) as refused:
        eventbridge.entry(made, set(), now=NOW)
    return str(refused.value)


@pytest.mark.parametrize(
    ("expression", "cron"),
    [
        ("cron(30 2 * * ? *)", "30 2 * * *"),
        ("cron(0/15 * * * ? *)", "*/15 * * * *"),
        ("cron(5/15 2/6 3/7 1/3 ? *)", "5-59/15 2-23/6 3-31/7 */3 *"),
        ("cron(0 22-2 5-5 * ? *)", "0 22-23,0-2 5 * *"),
        ("cron(0 9 ? * 2-6 *)", "0 9 * * MON-FRI"),
        ("cron(0 9 ? * MON-FRI *)", "0 9 * * MON-FRI"),
        ("cron(0 9 ? * FRI-SUN,3 *)", "0 9 * * FRI,SAT,SUN,TUE"),
        ("cron(0 9 ? * 6#3 *)", "0 9 * * FRI#3"),
        ("cron(0 9 ? * 6L *)", "0 9 * * FRIL"),
        ("cron(0 9 ? * L *)", "0 9 * * SAT"),
        ("cron(0 9 L JAN,JUL ? *)", "0 9 L JAN,JUL *"),
    ],
)
def test_a_cron_expression_with_six_fields_has_five_here(expression: str, cron: str) -> None:
    assert form(expression) == {"cron": cron}


def test_fixed_times_in_a_time_zone_are_skipped_where_the_clock_skips_them() -> None:
    berlin = {"ScheduleExpressionTimezone": "Europe/Berlin"}
    assert form("cron(30 2 * * ? *)", **berlin) == {"cron": "30 2 * * *", "dst_gap": "skip", "time_zone": "Europe/Berlin"}
    assert form("cron(0 * * * ? *)", **berlin) == {"cron": "0 * * * *", "time_zone": "Europe/Berlin"}


def test_years_become_a_start_and_an_end() -> None:
    berlin = {"ScheduleExpressionTimezone": "Europe/Berlin"}
    assert form("cron(0 9 1 1 ? 2027-2028)", StartDate=datetime(2027, 6, 1, tzinfo=timezone.utc), **berlin) == {
        "cron": "0 9 1 1 *",
        "dst_gap": "skip",
        "time_zone": "Europe/Berlin",
        "start": "2027-06-01T00:00:00Z",
        "end": "2028-12-31T23:00:00Z",
    }
    assert reason(schedule("cron(0 9 1 1 ? 2020)")) == "has ended at 2021-01-01T00:00:00Z"
    assert "are not in a row" in reason(schedule("cron(0 9 1 1 ? 2027,2029)"))


def test_a_rate_counts_from_its_start_or_its_creation() -> None:
    assert form("rate(5 minutes)") == {"rate": "5 minutes", "start": "2026-01-01T00:00:07Z"}
    bounds = {"StartDate": datetime(2027, 1, 1, tzinfo=timezone.utc), "EndDate": datetime(2028, 1, 1, tzinfo=timezone.utc)}
    window = {"FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}}
    assert form("rate(1 hour)", **bounds, **window) == {
        "rate": "1 hour",
        "jitter_seconds": 900,
        "start": "2027-01-01T00:00:00Z",
        "end": "2028-01-01T00:00:00Z",
    }


def test_an_instant_is_read_in_its_time_zone() -> None:
    made = schedule("at(2026-12-01T10:00:00)", ScheduleExpressionTimezone="America/New_York", ActionAfterCompletion="DELETE")
    found = eventbridge.entry(made, set(), now=NOW)
    assert found.body["schedule"] == {"at": "2026-12-01T15:00:00Z", "time_zone": "America/New_York"}
    assert "The task stays after its run" in found.comments[1]
    assert reason(schedule("at(2026-11-01T10:00:00)")) == "was due at 2026-11-01T10:00:00Z"


@pytest.mark.parametrize(
    ("target", "content"),
    [
        ({"Arn": LAMBDA, "Input": '{"a": 1}'}, {"type": "lambda", "payload": {"function": LAMBDA, "event": {"a": 1}, "mode": "async"}}),
        (
            {"Arn": "arn:aws:sqs:r:1:q", "Input": "text", "SqsParameters": {"MessageGroupId": "g"}},
            {"type": "sqs", "payload": {"queue": "arn:aws:sqs:r:1:q", "body": "text", "group": "g"}},
        ),
        ({"Arn": "arn:aws:sns:r:1:t", "Input": "[1]"}, {"type": "sns", "payload": {"topic": "arn:aws:sns:r:1:t", "message": [1]}}),
        (
            {"Arn": "arn:aws:states:r:1:stateMachine:m", "Input": "{}"},
            {"type": "stepfunctions", "payload": {"state_machine": "arn:aws:states:r:1:stateMachine:m", "input": {}}},
        ),
        (
            {"Arn": "arn:aws:events:r:1:event-bus/b", "EventBridgeParameters": {"Source": "s", "DetailType": "d"}},
            {"type": "eventbridge", "payload": {"bus": "arn:aws:events:r:1:event-bus/b", "source": "s", "detail_type": "d"}},
        ),
    ],
)
def test_targets_become_types(target: dict[str, Any], content: dict[str, Any]) -> None:
    body = eventbridge.entry(schedule(target=target), set(), now=NOW).body
    assert {name: body[name] for name in ("type", "payload")} == content


def test_other_targets_go_to_a_named_one() -> None:
    made = schedule(target={"Arn": "arn:aws:scheduler:::aws-sdk:ec2:stopInstances", "Input": '{"InstanceIds": ["i"]}'})
    assert "has a target without a type here" in reason(made)
    body = eventbridge.entry(made, set(), now=NOW, target="aws").body
    assert body["target"] == "aws" and body["payload"] == {"body": {"InstanceIds": ["i"]}}


def test_keywords_become_placeholders_and_braces_stay_text() -> None:
    text = json.dumps(
        {
            "at": ["<aws.scheduler.scheduled-time>"],
            "n": "<aws.scheduler.attempt-number>",
            "id": "<aws.scheduler.execution-id>",
            "x": "{{y}}",
            "one": 1,
        }
    )
    found = eventbridge.entry(schedule(target={"Input": text}), set(), now=NOW)
    assert found.body["payload"]["event"] == {"at": ["{{nominal_at}}"], "n": "{{attempt}}", "id": "{{job.id}}", "x": "{{{{y}}", "one": 1}
    assert any("execution id" in comment for comment in found.comments)
    machine = schedule(target={"Arn": "arn:aws:states:r:1:stateMachine:m", "Input": text})
    assert "in the input of a state machine" in reason(machine)


def test_retries_and_dead_letters_are_mapped_with_what_differs() -> None:
    target = {"RetryPolicy": {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 3600}, "DeadLetterConfig": {"Arn": "a"}}
    found = eventbridge.entry(schedule(target=target, KmsKeyArn="k", Description="d"), set(), now=NOW)
    assert found.body["max_attempts"] == 25 and found.body["retry"] == {"max_elapsed_seconds": 3600} and found.body["description"] == "d"
    assert len(found.comments) == 4
    few = eventbridge.entry(schedule(target={"RetryPolicy": {"MaximumRetryAttempts": 0}}), set(), now=NOW)
    assert few.body["max_attempts"] == 1 and len(few.comments) == 1


def test_names_are_unique_over_groups() -> None:
    taken: set[str] = set()
    keys = [eventbridge.entry(schedule(GroupName=group), taken, now=NOW).body["key"] for group in ("default", "g", "default")]
    assert keys == ["s", "g.s", "s-2"]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (schedule(State="DISABLED"), "is disabled"),
        (schedule("every day"), "has an expression of another form"),
        (schedule("cron(0 0 * * ?)"), "has a cron expression without six fields"),
        (schedule("cron(0 0 15W * ? *)"), "uses W"),
        (schedule("cron(0 0 ? * 9 *)"), "has a day of the week that is not known here: 9"),
        (schedule(target={"Input": "[1]"}), "has an input that is no JSON object"),
    ],
)
def test_what_has_no_equal_is_refused_with_the_reason(made: dict[str, Any], why: str) -> None:
    assert why in reason(made)
