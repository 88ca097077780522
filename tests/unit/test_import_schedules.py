"""Schedules of EventBridge Scheduler, imported and run by the product, against a second reading of AWS's documentation."""

import re
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from punctual.plan import eventbridge, schedule_target
from punctual.plan.eventbridge import NoEqual
from punctual.plan.stage_options import StageOptions
from pydantic import TypeAdapter

from infra.options import Options
from scheduler.targets import placeholders, registry
from scheduler.targets.base import Reach
from scheduler.tasks import schedule_form
from scheduler.tasks.preview import preview
from scheduler.tasks.schedule import after

sys.path.append(str(Path(__file__).parents[2] / "client/tests"))
import aws_reading
from imported_targets import ARN, REPORT, STREAM, TARGETS
from schedules_of_others import DOCUMENTED, PUBLIC, REFUSED, VALIDATED

NOW = datetime(2026, 11, 27, 23, 0, 30, tzinfo=UTC)
UNTIL = NOW + timedelta(days=2 * 366)
# A shift of half an hour, a jump at midnight, a second offset during Ramadan, two hours, no shift at all.
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Antarctica/Troll")
CHANGES = [datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 10, 31, tzinfo=UTC), datetime(2028, 3, 26, tzinfo=UTC)]
AROUND_CHANGES = [(change - timedelta(days=2), change + timedelta(days=2)) for change in CHANGES]
MS = timedelta(milliseconds=1)


def ms(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // MS


def form_of(expression: str, zone: str = "UTC", **fields: Any) -> Any:
    made = {
        "Name": "s",
        "ScheduleExpression": expression,
        "ScheduleExpressionTimezone": zone,
        "CreationDate": datetime(2026, 1, 1, 0, 0, 7, 250_000, tzinfo=UTC),
        "Target": {"Arn": "arn:aws:lambda:eu-central-1:111122223333:function:f", "Input": "{}"},
        **fields,
    }
    return eventbridge.entry(made, set(), now=NOW).body["schedule"]


def runs(form: Any, since: datetime = NOW, until: datetime = UNTIL) -> list[int]:
    """The runs between two instants, of a task that the server accepts now."""
    assert preview(form, count=1, after=None, now=ms(NOW))
    schedule = schedule_form.parse(form, ms(NOW))
    return [run.nominal for run in takewhile(lambda run: run.nominal < ms(until), after(schedule, ms(since)))]


def differs(expression: str, zone: str) -> str | None:
    """None if the runs of two years are as documented, or it never runs and is left out.

    Of many runs a day, those around the changes of European clocks are compared.
    """
    often = len(aws_reading.runs(expression, "UTC", NOW, NOW + timedelta(days=7))) > 7 * 24
    found, expected = list[int](), list[int]()
    try:
        form = form_of(expression, zone)
    except NoEqual as reason:
        return f"{expression} {zone}: {reason}" if aws_reading.runs(expression, zone, NOW, UNTIL) else None
    for since, until in AROUND_CHANGES if often else [(NOW, UNTIL)]:
        expected += [ms(at) for at in aws_reading.runs(expression, zone, since, until)]
        found += runs(form, since, until)
    return None if found == expected else f"{expression} {zone}: {sorted(set(found) ^ set(expected))[:3]}"


@pytest.mark.long
@pytest.mark.parametrize("inner", [*DOCUMENTED, *VALIDATED])
def test_an_imported_cron_runs_when_aws_documents_it(inner: str) -> None:
    assert [found for zone in ZONES if (found := differs(f"cron({inner})", zone))] == []


@pytest.mark.parametrize(("expression", "zone"), PUBLIC)
def test_definitions_of_others_arrive_and_run_when_aws_documents_it(expression: str, zone: str) -> None:
    assert differs(expression, zone) is None


@pytest.mark.parametrize(("inner", "reason"), REFUSED.items())
def test_a_cron_without_an_equal_is_left_out_with_the_reason(inner: str, reason: str) -> None:
    with pytest.raises(NoEqual) as refused:
        form_of(f"cron({inner})")
    assert reason in str(refused.value)


def random_field(random: Random, low: int, high: int, names: str = "") -> str:
    def value() -> str:
        number = random.randint(low, high)
        return names.split()[number - low] if names and random.random() < 0.3 else str(number)

    def part() -> str:
        form = random.choice(["{}", "{}", "{}-{}", "{}/{n}", "*/{n}", "{}-{}/{n}"])
        return form.format(value(), value(), n=random.randint(1, high + 1))

    return "*" if random.random() < 0.3 else ",".join(part() for _ in range(random.choice([1, 1, 2, 3])))


def random_expression(random: Random) -> str:
    days = "SUN MON TUE WED THU FRI SAT"
    months = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
    weekday = random.choice(
        [partial(random_field, random, 1, 7, days), lambda: f"{random.randint(1, 7)}#{random.randint(1, 5)}", lambda: "L"]
    )
    counted = [f"{random.randint(1, 31)}W", "LW", f"L-{random.randint(1, 30)}", "1,15W"]
    day = random.choice([partial(random_field, random, 1, 31), lambda: random.choice(["L", *counted])])
    dates = (
        f"? {random_field(random, 1, 12, months)} {weekday()}"
        if random.random() < 0.5
        else f"{day()} {random_field(random, 1, 12, months)} ?"
    )
    few = random.choice(["0", "30", "59", "0/30", "15,45", "10-12"])
    return f"cron({few} {random_field(random, 0, 23)} {dates} {random.choice(['*', '*', '2026-2027', '2027'])})"


def agree(seed: int) -> str | None:
    random = Random(seed)
    return differs(random_expression(random), random.choice(ZONES))


def test_random_crons_are_imported_and_run_when_aws_documents_it() -> None:
    assert [found for seed in range(25) if (found := agree(seed))] == []


@pytest.mark.long
def test_a_thousand_random_crons_run_when_aws_documents_it() -> None:
    assert [found for seed in range(1_000) if (found := agree(seed))] == []


@pytest.mark.parametrize(("count", "unit"), [(1, "minute"), (5, "minutes"), (1, "hour"), (7, "hours"), (1, "day"), (366, "days")])
def test_an_imported_rate_counts_from_the_creation(count: int, unit: str) -> None:
    every = count * {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}[unit.removesuffix("s")]
    begin = ms(datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC))
    until = NOW + min(UNTIL - NOW, 10_000 * every * MS)
    expected = [at for at in range(begin, ms(until), every) if at > ms(NOW)]
    assert runs(form_of(f"rate({count} {unit})", "Europe/Berlin"), until=until) == expected


@pytest.mark.parametrize("end", [timedelta(minutes=1), timedelta(hours=9, milliseconds=500), timedelta(days=40, microseconds=1)])
@pytest.mark.parametrize("start", [None, timedelta(days=-400), timedelta(minutes=30), timedelta(days=39)])
@pytest.mark.parametrize("expression", ["rate(1 hour)", "rate(30 days)", "cron(0 8 ? * * *)", "cron(0 0 1 1 ? *)"])
def test_bounds_are_kept_or_the_schedule_is_left_out(expression: str, start: timedelta | None, end: timedelta) -> None:
    bounds = {"EndDate": NOW + end} | ({} if start is None else {"StartDate": NOW + start})
    try:
        found = runs(form_of(expression, **bounds))
    except NoEqual as refused:
        assert "has no further run before its end" in str(refused)
    else:
        assert found and all(ms(NOW + (start or timedelta())) <= at <= ms(NOW + end) for at in found)


def test_a_run_in_the_last_second_is_kept() -> None:
    assert runs(form_of("cron(0 8 28 11 ? *)", EndDate=datetime(2026, 11, 28, 8, 0, 0, 500_000, tzinfo=UTC))) == [
        ms(datetime(2026, 11, 28, 8, tzinfo=UTC))
    ]


def test_the_schedules_of_a_stage_are_known() -> None:
    """The importer leaves out the schedules of Punctual itself, by their descriptions."""
    infra = Path(__file__).parents[2] / "infra"
    described = re.findall(r'every_minute\(self, self.function.live, "([^"]+)"\)', "".join(each.read_text() for each in infra.glob("*.py")))
    assert sorted(described) == sorted(eventbridge.OWN)


def test_the_importer_knows_the_types_whose_attempts_send_the_same() -> None:
    assert set(schedule_target._EQUAL_ATTEMPTS) == {name for name in registry.names() if registry.load(name).equal_attempts}


def test_a_stage_with_the_printed_options_accepts_each_imported_target() -> None:
    options, bodies = StageOptions(), []
    for target, content in TARGETS:
        if content["type"] not in registry.names():
            continue
        schedule = {"Name": "s", "Arn": ARN, "ScheduleExpression": "rate(1 hour)", "Target": target}
        bodies.append(eventbridge.entry(schedule, set(), now=NOW).body)
        options.add(bodies[-1], schedule)
    chosen = Options.model_validate(tomllib.loads("\n".join(options.lines())))
    reach = Reach(arns=chosen.allowed_targets, actions=[each.written for each in chosen.allowed_actions])
    for body in bodies:
        kind = registry.load(body["type"])
        TypeAdapter(kind.payload).validate_python(body["payload"])
        registry.check_reach(body["type"], body["payload"], reach)
        assert not list(placeholders.broken(body["payload"], equal_attempts=kind.equal_attempts))
    printed = {each.action: (each.resources, each.granted, each.pass_roles) for each in chosen.allowed_actions}
    assert printed["kinesis:PutRecord"] == ((STREAM,), ("kinesis:PutRecord",), ())
    assert printed["cloudwatch:DisableAlarmActions"] == (("*",), ("cloudwatch:DisableAlarmActions",), ())
    assert printed["lambda:Invoke"] == (("*",), ("lambda:InvokeFunction",), ())
    assert printed["ecs:RunTask"] == ((f"{REPORT}:*",), ("ecs:RunTask",), ("arn:aws:iam::123456789012:role/r",))
