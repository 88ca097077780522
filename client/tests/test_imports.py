"""Crontabs and schedules of EventBridge Scheduler as tasks."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from imported_targets import ARN, AT, REFUSED, TARGETS, universal
from typer.testing import CliRunner, Result

from punctual.cli import build
from punctual.plan import Entry, crontab, eventbridge, parse, to_yaml, zones
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
        ("cron(0 22-2 5-5 * ? *)", "0 0-2,22-23 5 * *"),
        ("cron(0 8 ? * * *)", "0 8 * * *"),
        ("cron(0 22-0 ? * MON-FRI/2 *)", "0 0,22-23 * * MON,WED,FRI"),
        ("cron(0/60 0/24 15,L 1/12 ? *)", "0 0 15,L JAN *"),
        ("cron(0 9 ? * 2-6 *)", "0 9 * * MON-FRI"),
        ("cron(0 9 ? * MON-FRI *)", "0 9 * * MON-FRI"),
        ("cron(0 9 ? * FRI-SUN,3 *)", "0 9 * * SUN,TUE,FRI-SAT"),
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
    found = eventbridge.entry(schedule("cron(0 * * * ? *)", **berlin), set(), now=NOW)
    assert found.body["schedule"] == {"cron": "0 0-23 * * *", "dst_gap": "skip", "time_zone": "Europe/Berlin"}
    assert "Of two equal hours it runs in the first only, as AWS documents it." in found.comments


def test_years_become_a_start_and_an_end() -> None:
    berlin = {"ScheduleExpressionTimezone": "Europe/Berlin"}
    assert form("cron(0 9 1 1 ? 2027-2028)", StartDate=datetime(2027, 6, 1, tzinfo=timezone.utc), **berlin) == {
        "cron": "0 9 1 JAN *",
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
    assert "The task stays after its last run, with its history." in found.comments
    assert reason(schedule("at(2026-11-01T10:00:00)")) == "was due at 2026-11-01T10:00:00Z"


@pytest.mark.parametrize(("target", "content"), TARGETS)
def test_targets_become_types(target: dict[str, Any], content: dict[str, Any]) -> None:
    body = eventbridge.entry(schedule(target=target, Arn=ARN), set(), now=NOW).body
    assert {name: body[name] for name in ("type", "payload")} == content


@pytest.mark.parametrize(("target", "why"), REFUSED)
def test_a_target_without_an_equal_is_left_out_or_goes_to_a_named_one(target: dict[str, Any], why: str) -> None:
    made = schedule(target=target, Arn=ARN)
    assert why in reason(made)
    found = eventbridge.entry(made, set(), now=NOW, target="legacy")
    assert found.body["target"] == "legacy" and found.body["payload"].keys() == {"body"}
    assert len(set(found.comments)) == len(found.comments)


def test_without_botocore_only_targets_with_types_of_their_own_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.loaders", None)
    assert "pip install 'punctual-client[aws]'" in reason(schedule(target=universal("ec2:stopInstances", InstanceIds=["i"])))
    assert eventbridge.entry(schedule(), set(), now=NOW).body["type"] == "lambda"


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
    assert found.body["payload"]["event"] == {"at": [AT], "n": "{{attempt}}", "id": "{{job.id}}", "x": "{{{{y}}", "one": 1}
    assert any("execution id" in comment for comment in found.comments)
    machine = schedule(target={"Arn": "arn:aws:states:r:1:stateMachine:m", "Input": text})
    assert "in the input of a state machine" in reason(machine)


def test_retries_and_dead_letters_are_mapped_with_what_differs() -> None:
    target = {
        "Input": "{}",
        "RetryPolicy": {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 3600},
        "DeadLetterConfig": {"Arn": "a"},
    }
    found = eventbridge.entry(schedule(target=target, KmsKeyArn="k", Description="d"), set(), now=NOW)
    assert found.body["max_attempts"] == 25 and found.body["retry"] == {"max_elapsed_seconds": 3600} and found.body["description"] == "d"
    assert len(found.comments) == 4
    few = eventbridge.entry(schedule(target={"Input": "{}", "RetryPolicy": {"MaximumRetryAttempts": 0}}), set(), now=NOW)
    assert few.body["max_attempts"] == 1 and len(few.comments) == 1


def test_names_are_unique_over_groups() -> None:
    taken: set[str] = set()
    keys = [eventbridge.entry(schedule(GroupName=group), taken, now=NOW).body["key"] for group in ("default", "g", "default")]
    assert keys == ["s", "g:s", "s-2"]


def test_a_key_does_not_depend_on_other_schedules() -> None:
    pairs = [("a", "b.c"), ("a.b", "c"), ("default", "Foo"), ("default", "foo")]
    for order in (pairs, pairs[::-1]):
        taken: set[str] = set()
        keys = {each: eventbridge.entry(schedule(GroupName=each[0], Name=each[1]), taken, now=NOW).body["key"] for each in order}
        assert list(map(keys.get, pairs)) == ["a:b.c", "a.b:c", "Foo", "foo"]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (schedule(Description="Punctual's heartbeat", ScheduleExpression="rate(1 minute)"), "belongs to a stage of Punctual"),
        (schedule("rate(400 days)"), "has a rate of more than 366 days"),
        (schedule("rate(0 days)"), "has a rate in a form that AWS does not document"),
        (schedule("at(2027-13-45T00:00:00)"), "is for a time that does not exist"),
        (schedule("at(2040-01-01T00:00:00)"), "a task runs within ten years"),
        (schedule("at(2027-03-28T02:30:00)", ScheduleExpressionTimezone="Europe/Berlin"), "a local time that the clock skips"),
        (schedule("at(0001-01-01T00:00:00)", ScheduleExpressionTimezone="Asia/Tokyo"), "cannot be read: OverflowError"),
        (schedule(ScheduleExpressionTimezone="Mars/Olympus"), "a time zone that is unknown here: 'Mars/Olympus'"),
        (schedule(ScheduleExpressionTimezone="../etc/passwd"), "a time zone that is unknown here"),
        (schedule(FlexibleTimeWindow={"Mode": "FLEXIBLE"}), "cannot be read: KeyError: 'MaximumWindowInMinutes'"),
        (schedule(Target=None), "cannot be read: TypeError"),
        (schedule(target={"Input": '{"a": 1, "a": 2}'}), "has a field twice"),
        (schedule(target={"Input": '{"a": 1e400}'}), "has a number in its input that would be rounded"),
        (schedule(target={"Input": '{"a": 0.1234567890123456789}'}), "has a number in its input that would be rounded"),
        (schedule(target={"Input": '{"a": NaN}'}), "has NaN in its input, which is no JSON"),
        (schedule(target={"Input": '{"a": "\\ud800"}'}), "cannot be read: UnicodeEncodeError"),
        (schedule(target={"Input": "[" * 100_000}), "cannot be read: RecursionError"),
        (schedule(target={"Input": '{"punctual": 1}'}), "has a field `punctual` in its input"),
        (schedule(target={"Input": '{"<aws.scheduler.execution-id>": 1}'}), "has a keyword in the name of a field"),
        (schedule(target={"Arn": "arn:aws:sqs:r:1:q.fifo", "Input": "x"}), "without a message group"),
        (
            schedule(target={"Input": json.dumps(["<aws.scheduler.execution-id>"] * 101), "Arn": "arn:aws:sns:r:1:t"}),
            "more than 100 keywords",
        ),
        (schedule("every day"), "has an expression of another form"),
        (schedule("cron(0 0 * * ?)"), "has a cron expression without six fields"),
        (schedule("cron(0 0 W15 * ? *)"), "in a form that AWS does not document"),
        (schedule("cron(0 0 ? * 9 *)"), "has a day of the week that does not exist: 9"),
        (schedule(target={"Input": "[1]"}), "has an input that is no JSON object"),
    ],
)
def test_what_has_no_equal_is_refused_with_the_reason(made: dict[str, Any], why: str) -> None:
    assert why in reason(made)


def test_a_disabled_schedule_arrives_paused_with_a_reason() -> None:
    found = eventbridge.entry(schedule(State="DISABLED"), set(), now=NOW)
    assert found.body["paused"] is True and "was disabled in EventBridge Scheduler" in found.body["pause_reason"]
    assert parse([("t", to_yaml([found]))]).items[0].body["paused"] is True


def test_nothing_of_a_schedule_is_dropped_without_a_word() -> None:
    ecs = {"TaskDefinitionArn": "arn:aws:ecs:r:1:task-definition/t", "TaskCount": 2}
    target = {"Arn": "arn:aws:ecs:r:1:cluster/c", "RoleArn": "arn:aws:iam::1:role/r", "EcsParameters": ecs, "Input": "text"}
    found = eventbridge.entry(schedule(target=target, Unknown=[1]), set(), now=NOW, target="runner")
    notes = "\n".join(found.comments)
    for part in (
        "role arn:aws:iam::1:role/r is not used",
        'Dropped: EcsParameters {"TaskDefinitionArn"',
        '"TaskCount": 2',
        "Dropped: Unknown [1]",
    ):
        assert part in notes
    assert found.body["payload"] == {"body": "text"}
    kinesis = {"Arn": "arn:aws:kinesis:r:1:stream/s", "KinesisParameters": {"PartitionKey": "p"}}
    assert any('{"PartitionKey": "p"}' in each for each in eventbridge.entry(schedule(target=kinesis), set(), now=NOW, target="t").comments)
    ecs |= {"TaskCount": 1, "EnableECSManagedTags": True, "ReferenceId": "r"}
    notes = "\n".join(eventbridge.entry(schedule(target={**target, "EcsParameters": ecs, "Input": "{}"}), set(), now=NOW).comments)
    assert 'Dropped: enableECSManagedTags true.\nDropped: referenceId "r".\nThe job ends when the container has started.' in notes
    ecs |= {"TaskCount": 2}
    found = eventbridge.entry(schedule(target={**target, "EcsParameters": ecs, "Input": "{}"}), set(), now=NOW)
    assert "It is a call of RunTask, since the type ecs has no equal for count." in found.comments
    assert found.body["payload"]["parameters"]["enableECSManagedTags"] is True


def test_what_is_unknown_in_a_part_is_named() -> None:
    target = {
        "Arn": "arn:aws:sqs:r:1:q.fifo",
        "Input": "text",
        "SqsParameters": {"MessageGroupId": "g", "Delay": 1},
        "RetryPolicy": {"MaximumRetryAttempts": 1, "Backoff": 2},
        "DeadLetterConfig": {"Arn": "arn:aws:sqs:r:1:d", "Size": 3},
    }
    window = {"Mode": "STRICT", "Edge": 4}
    fields: dict[str, Any] = {"FlexibleTimeWindow": window, "State": "ARCHIVED", "ActionAfterCompletion": "KEEP", "Description": "a\x1bb"}
    notes = eventbridge.entry(schedule(target=target, **fields), set(), now=NOW).comments
    for note in (
        "Dropped: SqsParameters.Delay 1.",
        "Dropped: RetryPolicy.Backoff 2.",
        "Dropped: DeadLetterConfig.Size 3.",
        "Dropped: FlexibleTimeWindow.Edge 4.",
        'Its Mode "STRICT" is unknown here, and is taken for OFF.',
        'Its State "ARCHIVED" is unknown here, and is taken for ENABLED.',
        'Its ActionAfterCompletion "KEEP" is unknown here, and is taken for NONE.',
        "Its description has control characters: they are escapes here.",
    ):
        assert note in notes
    bus = {"Arn": "arn:aws:events:r:1:event-bus/b", "Input": "{}", "EventBridgeParameters": {"Source": "s", "DetailType": "d", "Trace": 5}}
    assert "Dropped: EventBridgeParameters.Trace 5." in eventbridge.entry(schedule(target=bus), set(), now=NOW).comments


def test_what_is_known_in_a_part_is_not_named() -> None:
    target = {"RetryPolicy": {"MaximumRetryAttempts": 1, "MaximumEventAgeInSeconds": 60}}
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5}
    made = schedule(target=target, FlexibleTimeWindow=window, State="ENABLED", ActionAfterCompletion="NONE", Description="a\tb")
    assert not [each for each in eventbridge.entry(made, set(), now=NOW).comments if "Dropped" in each or "unknown" in each]


def test_the_text_of_a_message_stays_as_it_is() -> None:
    text = '{ "b":1,\n "a":2.50, "a":3, "t": "{{x}} <aws.scheduler.scheduled-time>\\u2028" }'
    made = schedule(target={"Arn": "arn:aws:sqs:r:1:q", "Input": text})
    body = eventbridge.entry(made, set(), now=NOW).body["payload"]["body"]
    assert body == text.replace("{{", "{{{{").replace("<aws.scheduler.scheduled-time>", AT)


def test_a_schedule_without_an_input_sends_the_notification_of_aws() -> None:
    made = schedule(Arn="arn:aws:scheduler:eu-central-1:1:schedule/default/s", target={"Arn": "arn:aws:sqs:r:1:q"})
    found = eventbridge.entry(made, set(), now=NOW)
    sent = json.loads(found.body["payload"]["body"])
    assert sent["source"] == "aws.scheduler" and sent["time"] == AT and sent["region"] == "eu-central-1"
    assert sent["resources"] == ["arn:aws:scheduler:eu-central-1:1:schedule/default/s"]
    assert any("has no input" in each for each in found.comments)


HOSTILE = ('"\nlabel: prod\n#"', "a\u2028label: prod", "a\x85label: prod", "\x1b]0;x\x07", "\r\nlabel: prod", "\u202elabel")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_schedule_leaves_its_comment(text: str) -> None:
    made = schedule(target={"Input": json.dumps(text)}, Description=text)
    written = to_yaml([], head=[f"Left out: {reason(made)}"]) + to_yaml([Entry({"key": "k", "name": "n", "message": "m"}, [text])])
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]", written)
    assert [line for line in written.split("\n") if line.lstrip().startswith("label")] == []


def test_a_label_is_text_for_every_reader_of_yaml() -> None:
    assert parse([("t", to_yaml([], label="on"))]).labels == ("on",)


LEFT_OUT = {
    "*/90 * * * * c": "has a step that leaves its range",
    "5-5 * * * * c": "has a range of one, which some read as all: write 5",
    "22-2 * * * * c": "has a range that goes backwards: 22-2",
    "5/15 * * * * c": "has a step without a range",
    "0~30 * * * * c": "uses ~, a random time",
    "0 9 ? * MON c": "uses ?, as Quartz and AWS do",
    "0 0 9 * * ? c": "has more than five fields",
    "0 0 12 * * * c": "has more than five fields",
    "0 0 9 * * MON-FRI c": "has more than five fields",
    "0 9 * * FRI#6 c": "has a day of the week of another form",
    "0 9 * * MON,FRI#2 c": "has # or L beside plain days of the week",
    "0 9 * * L c": "has a day of the week of another form",
    "0 9 * * 8#2 c": "has a day of the week beyond 0 to 7: 8",
    "0 9 32W * * c": "has a day of the month beyond 1 to 31: 32",
    "0 9 W * * c": "has a day of the month of another form",
    "0 9 L-3W * * c": "has a day of the month of another form",
    "0 9 30W 2 * c": "names a date that never comes",
    "H/15 * * * * c": "has a minute",
    "0 9 30 2 * c": "names a date that never comes",
    "0 9 * * 8 c": "has a day of the week beyond 0 to 7: 8",
    "0 30 * * * c": "has a hour beyond 0 to 23: 30",
    "0 9 * * MONDAY c": "has a day of the week of another form",
    "1 5 cron.daily nice run-parts /etc/cron.daily": "as in an anacrontab",
    "@monthly 45 cron.monthly nice run-parts": "as in an anacrontab",
    "@every 5m c": "@every is none of the words",
    "@600 c": "@600 is none of the words",
    "@reboot c": "@reboot has no time",
    "17 * * * * root cd /": "give --user",
    "0 1 * * * -q c": "has the option -q of BSD's cron",
    "0 1 * * * c \\": "ends with a backslash",
    "0 1 * * * %in": "has no command",
    "CRON_TZ=Europe/Berlin 0 6 * * * c": "has CRON_TZ in the line of a schedule",
    "TZ=UTC 0 6 * * * c": "has TZ in the line of a schedule",
    "RANDOM_DELAY=often": "must be a number of minutes",
    "0 1 * * * c\x1b[2J": "has a control character",
    "0 1 * * * c\udcff": "is not UTF-8 text",
    "&bootrun 0 1 * * * c": "has a minute",
}


@pytest.mark.parametrize(("line", "why"), LEFT_OUT.items())
def test_a_line_of_another_dialect_is_left_out_and_the_others_stay(line: str, why: str) -> None:
    found = crontab.read(f"0 1 * * * a\n{line}\n0 2 * * * b\n", crontab.to_target("t", "body"), time_zone="UTC")
    assert [(number, text) for number, text, _ in found.refused] == [(2, line)] and why in found.refused[0][2]
    assert [entry.body["name"] for entry in found.entries] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "cron"),
    [
        ("*/5 * * * * c", "*/5 * * * *"),
        ("0,30 8-18/2 1-7 jan,JUL mon-fri c", "0,30 8-18/2 1-7 jan,JUL mon-fri"),
        ("\t0  9\t* * 5-7 c", "0 9 * * 5-7"),
        ("0 9 * * FRI-SUN c", "0 9 * * FRI-SUN"),
        ("-*/15 * * * * c", "*/15 * * * *"),
        ("0 9 LW,15w * * c", "0 9 LW,15w * *"),
        ("0 9 L-3,1 * * c", "0 9 L-3,1 * *"),
        ("0 9 L-10 * * c", "0 9 L-10 * *"),
        ("0 9 * * FRI#2,1L c", "0 9 * * FRI#2,1L"),
        ("@Daily c", "@daily"),
        ("@every_minute c", "* * * * *"),
        ("0 1 * * * c # no comment", "0 1 * * *"),
        ("0 1 * * * c\r", "0 1 * * *"),
    ],
)
def test_the_forms_of_a_crontab_are_read(line: str, cron: str) -> None:
    found = crontab.read(line, crontab.to_target("t", "body"), time_zone="UTC")
    assert not found.refused and found.entries[0].body["schedule"] == {"cron": cron}


def test_only_a_line_feed_ends_a_line_of_a_crontab() -> None:
    for end in ("\x85", "\x0b", "\x0c", "\x1c", "\u2028", "\u2029", "\r"):
        found = crontab.read(f"# note{end}* * * * * rm -rf /\n", crontab.to_target("t", "body"), time_zone="UTC")
        assert not found.entries and not found.refused


def test_a_random_delay_is_jitter_and_a_zone_is_for_the_lines_below() -> None:
    text = "RANDOM_DELAY=45\n0 1 * * * a\n'RANDOM_DELAY' = 0\nCRON_TZ=\"Asia/Tokyo\"\n0 1 * * * b\nCRON_TZ=\n0 1 * * * c"
    found = crontab.read(text, crontab.to_target("t", "body"), time_zone="Europe/Berlin")
    assert [entry.body["schedule"] for entry in found.entries] == [
        {"cron": "0 1 * * *", "time_zone": "Europe/Berlin", "jitter_seconds": 2700},
        {"cron": "0 1 * * *", "time_zone": "Asia/Tokyo"},
        {"cron": "0 1 * * *", "time_zone": "Europe/Berlin"},
    ]


def test_without_rules_of_time_zones_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    zones._names.cache_clear()
    monkeypatch.setitem(sys.modules, "tzdata", None)
    try:
        assert "pip install tzdata" in reason(schedule(ScheduleExpressionTimezone="Europe/Berlin"))
        assert form("cron(0 9 * * ? *)") == {"cron": "0 9 * * *"}
    finally:
        zones._names.cache_clear()


def run(monkeypatch: pytest.MonkeyPatch, *words: str, stdin: bytes = b"") -> Result:
    monkeypatch.setenv("PUNCTUAL_URL", "http://punctual.test")
    return CliRunner().invoke(build(), ["import", *words], input=stdin)


def test_a_crontab_in_bytes_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = b"# \xe9\x0c* * * * * never\r\n0 1 * * * a\r\n0 2 * * * \xff\r\n0 3 * * * b"
    file = tmp_path / "crontab"
    file.write_bytes(text)
    for words, stdin in ((("crontab", str(file)), b""), (("crontab", "-"), text)):
        answered = run(monkeypatch, *words, "--target", "t", "--time-zone", "UTC", stdin=stdin)
        assert answered.exit_code == 1 and "is not UTF-8 text" in answered.stderr
        assert [item.key for item in parse([("t", answered.stdout)]).items] == ["a", "b"]


@pytest.mark.parametrize(("option", "value"), [("--time-zone", "Mars/Olympus"), ("--label", "a\nb"), ("--label", "")])
def test_a_bad_option_of_an_import_is_refused(monkeypatch: pytest.MonkeyPatch, option: str, value: str) -> None:
    answered = run(monkeypatch, "crontab", "-", "--target", "t", option, value, stdin=b"0 1 * * * a\n")
    assert answered.exit_code == 2 and option in answered.stderr and not answered.stdout


class Aws:
    """EventBridge Scheduler with four schedules, of which two cannot be read."""

    def client(self, name: str, endpoint_url: str | None) -> Aws:
        return self

    def get_paginator(self, name: str) -> Aws:
        return self

    def paginate(self) -> list[Any]:
        return [{"Schedules": [{"Name": name, "GroupName": "default"} for name in ("gone", "good", "broken", "last")]}]

    def get_schedule(self, **named: str) -> dict[str, Any]:
        if named["Name"] == "gone":
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "no \x1b[2J"}}, "GetSchedule")
        target = universal("ec2:stopInstances", InstanceIds=["i"]) if named["Name"] == "last" else {}
        made = schedule("at(2999-99-99T00:00:00)" if named["Name"] == "broken" else "rate(5 minutes)", target, Arn=ARN)
        return {**made, **named}


def test_one_bad_schedule_does_not_end_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boto3.Session", lambda **given: Aws())
    answered = run(monkeypatch, "eventbridge")
    assert answered.exit_code == 1, answered.stderr
    assert [item.key for item in parse([("t", answered.stdout)]).items] == ["good", "last"]
    shown = " ".join(answered.stderr.split())
    assert "default/gone cannot be read" in shown and "default/broken is for a time that does not exist" in shown
    assert "\x1b" not in answered.stdout + answered.stderr
    options = f"""
allowed_targets = [
    "{LAMBDA}",
]
# An action with another name in IAM needs `iam`: docs/reference/targets.md#which-actions-are-allowed
# The calls go to the region of the stage; the schedules are of eu-central-1.
[[allowed_actions]]
action = "ec2:StopInstances"
resources = ["*"]  # any resource: name those of your calls
"""
    assert options in answered.stderr and options.replace("\n", "\n# ").rstrip("# ") in answered.stdout


def test_lines_below_an_unknown_time_zone_are_refused() -> None:
    text = "0 1 * * * a\nCRON_TZ=Mars/Olympus\n0 2 * * * b\nCRON_TZ=Asia/Tokyo\n0 3 * * * c"
    found = crontab.read(text, crontab.to_target("t", "body"), time_zone="UTC")
    assert [each.body["schedule"]["cron"] for each in found.entries] == ["0 1 * * *", "0 3 * * *"]
    unknown, below = [reason for *_, reason in found.refused]
    assert "is not an IANA time zone" in unknown and below == "is in the time zone Mars/Olympus, which is unknown"


def test_only_blanks_and_tabs_divide_the_fields_of_a_line() -> None:
    found = crontab.read("0\t1 * * *  a\n0\u00a09 * * * x y", crontab.to_target("t", "body"), time_zone="UTC")
    assert [each.body["schedule"]["cron"] for each in found.entries] == ["0 1 * * *"] and len(found.refused) == 1


@pytest.mark.parametrize("expression", ["cron(0 9 * * ? *)", "rate(1 day)"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_an_end_that_nobody_reaches_is_dropped_with_a_note(expression: str, zone: str) -> None:
    end = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)
    found = eventbridge.entry(schedule(expression, EndDate=end, ScheduleExpressionTimezone=zone), set(), now=NOW)
    assert "end" not in found.body["schedule"] and any("a hundred years" in note for note in found.comments)


def test_a_rate_that_counts_from_before_1970_is_left_out() -> None:
    with pytest.raises(eventbridge.NoEqual, match="from 1970"):
        eventbridge.entry(schedule("rate(1 day)", StartDate=datetime(1969, 1, 1, tzinfo=timezone.utc)), set(), now=NOW)
