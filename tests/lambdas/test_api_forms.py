"""The requests of a form before it is saved: previews of schedules, and the task types."""

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docs_build.expanded import expanded
from lambdas.rest import form_models, shapes
from scheduler.model.account import Role
from scheduler.model.instants import DAY, FUTURE_LIMIT, LAST, parse, render
from scheduler.targets import registry
from scheduler.tasks import schedule_form
from tests.lambdas.gateway import NOW, Answered, World, send
from tests.unit.schedule_examples import BEGIN, END, EXAMPLES, PAGE, Example

pytestmark = pytest.mark.usefixtures("world")

DAILY = {"cron": "30 2 * * *", "time_zone": "Europe/Berlin"}


def preview(**body: Any) -> Answered:
    return send("POST", "/schedules/preview", json_body=body)


def runs(**body: Any) -> list[Any]:
    answered = preview(**body)
    shapes.Answer[form_models.PreviewPageShape].model_validate(answered.body)
    return list(answered.data["runs"])


def starts(**body: Any) -> list[str]:
    return [run["at"] for run in runs(**body)]


# Answers


def test_a_run_is_shown_in_utc_and_in_local_time() -> None:
    assert runs(**DAILY, count=1) == [
        {
            "nominal": "2026-11-21T01:30:00.000Z",
            "at": "2026-11-21T01:30:00.000Z",
            "local_at": "2026-11-21T02:30:00+01:00",
            "dst_note": None,
        }
    ]


def test_ten_runs_are_shown_by_default() -> None:
    assert len(runs(**DAILY)) == 10
    assert len(runs(**DAILY, count=100)) == 100


def documented(example: Example) -> list[list[str]]:
    """The lines of an example in docs/reference/schedules.md: local time, UTC, and the oddity."""
    blocks = re.split(r"^\| (?=`)", PAGE.read_text().split(BEGIN)[1].split(END)[0], flags=re.MULTILINE)[1:]
    assert len(blocks) == len(EXAMPLES)
    return [[cell.strip() for cell in line.split("|")[-4:-1]] for line in blocks[EXAMPLES.index(example)].splitlines()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{each.expression} {each.zone} {each.since[:10]}")
def test_a_clock_change_is_shown_as_documented(world: World, example: Example) -> None:
    world.clock.at = parse(example.since) - DAY  # some examples are in the past
    form = {"cron": example.expression, "time_zone": example.zone, "dst_gap": example.dst_gap, "dst_overlap": example.dst_overlap}
    shown = [run for run in runs(**form, after=example.since, count=example.count) if run["at"] is not None]
    local = [run["local_at"][:16] + run["local_at"][19:] for run in shown]
    assert [[at, f"{run['at'][:16]}Z", run["dst_note"] or ""] for at, run in zip(local, shown, strict=True)] == documented(example)


def test_skipped_times_are_listed_among_the_runs_but_not_counted() -> None:
    assert runs(**DAILY, dst_gap="skip", after="2027-03-27T12:00:00Z", count=1) == [
        {
            "nominal": "2027-03-28T01:00:00.000Z",
            "at": None,
            "local_at": "2027-03-28T03:00:00+02:00",
            "dst_note": "gap: 02:30 does not exist, skipped",
        },
        {
            "nominal": "2027-03-29T00:30:00.000Z",
            "at": "2027-03-29T00:30:00.000Z",
            "local_at": "2027-03-29T02:30:00+02:00",
            "dst_note": None,
        },
    ]


def test_skipped_times_are_listed_beside_a_run_at_the_end_of_the_gap() -> None:
    shown = runs(cron="0,30 2,3 * * *", time_zone="Europe/Berlin", dst_gap="skip", after="2027-03-27T12:00:00Z", count=1)
    assert [(run["nominal"][11:16], run["at"] is None, run["dst_note"]) for run in shown] == [
        ("01:00", True, "gap: 02:00 to 02:30 do not exist, skipped"),
        ("01:00", False, None),
    ]


def test_skipped_times_are_shown_within_the_bounds_only() -> None:
    skipping = {**DAILY, "dst_gap": "skip", "start": "2027-03-27T00:00:00Z"}
    assert starts(**skipping, end="2027-03-28T00:59:59Z") == ["2027-03-27T01:30:00.000Z"]
    assert starts(**skipping, end="2027-03-28T01:00:01Z") == ["2027-03-27T01:30:00.000Z", None]
    assert starts(**skipping, end="2028-01-01T00:00:00Z", count=1) == ["2027-03-27T01:30:00.000Z"]
    assert starts(**skipping, max_runs=1) == ["2027-03-27T01:30:00.000Z"]
    assert starts(**{**skipping, "start": "2027-03-28T01:00:01Z"}, count=1) == ["2027-03-29T00:30:00.000Z"]


def test_a_repeated_time_is_not_skipped() -> None:
    shown = runs(**DAILY, dst_gap="skip", after="2027-10-30T12:00:00Z", count=1)
    assert [(run["at"], run["dst_note"]) for run in shown] == [("2027-10-31T00:30:00.000Z", "overlap: first of two")]


def test_only_fixed_times_are_skipped() -> None:
    hourly = {"cron": "*/30 * * * *", "time_zone": "Europe/Berlin", "dst_gap": "skip", "after": "2027-03-28T00:00:00Z"}
    assert starts(**hourly, count=2) == ["2027-03-28T00:30:00.000Z", "2027-03-28T01:00:00.000Z"]


def test_a_rate_begins_at_its_start_or_an_interval_from_now() -> None:
    assert starts(rate="rate(5 minutes)", count=2) == ["2026-11-20T10:05:00.500Z", "2026-11-20T10:10:00.500Z"]
    assert starts(rate={"every": 1, "unit": "day"}, start="2026-12-01T00:00:00Z", count=1) == ["2026-12-01T00:00:00.000Z"]


def test_an_instant_is_one_run() -> None:
    assert starts(at="2026-11-20T12:00:00+01:00") == ["2026-11-20T11:00:00.000Z"]
    assert starts(at=render(NOW)) == [render(NOW)]


def test_an_instant_of_the_past_day_is_a_run() -> None:
    """A task for this instant is accepted and runs at once."""
    assert starts(at=render(NOW - DAY)) == [render(NOW - DAY)]


def test_a_bounded_schedule_shows_only_its_runs() -> None:
    assert starts(rate="1 hour", max_runs=2) == ["2026-11-20T11:00:00.500Z", "2026-11-20T12:00:00.500Z"]
    assert starts(rate="1 hour", end="2026-11-20T11:00:00.501Z") == ["2026-11-20T11:00:00.500Z"]
    assert starts(**DAILY, end="2026-12-01T00:00:00Z", after="2026-12-02T00:00:00Z") == []


def test_jitter_delays_a_run_within_its_window() -> None:
    for run in runs(cron="0 * * * *", jitter_seconds=600):
        assert 0 < parse(run["at"]) - parse(run["nominal"]) < 600_000


def test_runs_after_an_instant_are_later_and_not_past() -> None:
    assert starts(cron="0 * * * *", after="2027-01-01T10:00:00+01:00", count=1) == ["2027-01-01T10:00:00.000Z"]
    assert starts(rate="1 hour", after=render(NOW - DAY)) == starts(rate="1 hour")


def test_an_absent_field_equals_null() -> None:
    absent = dict.fromkeys(["rate", "at", "start", "end", "max_runs", "jitter_seconds", "dst_gap", "dst_overlap", "after"])
    assert runs(**DAILY, **absent) == runs(**DAILY)


def test_a_preview_uses_only_the_clock(world: World) -> None:
    world.be("sub-ann", "ann", Role.USER)
    world.jobs = world.lanes = world.ledger = world.identity = None
    assert preview(**DAILY).status == 200


def test_several_expressions_and_every_other_week_are_shown() -> None:
    shown = runs(cron=["0 9 LW * *", "0 9 L-3,30 * *"], count=3)
    assert [run["local_at"][:16] for run in shown] == ["2026-11-27T09:00", "2026-11-30T09:00", "2026-12-28T09:00"]
    shown = runs(
        every="2 weeks", weekdays=["TUE", "SUN"], times=["09:00", "18:00"], start="2027-03-25T00:00:00Z", time_zone="Europe/Berlin", count=3
    )
    assert [run["local_at"] for run in shown] == ["2027-03-28T09:00:00+02:00", "2027-03-28T18:00:00+02:00", "2027-04-06T09:00:00+02:00"]


@pytest.mark.long
def test_a_rare_date_is_found_a_hundred_times() -> None:
    """Leap days that are Mondays: the hundredth is in the year 4692."""
    shown = runs(cron="0 0 * 2 MON#5", count=100)
    assert len(shown) == 100 and shown[-1]["at"] > "4"


# Pages


def pages(**body: Any) -> list[Any]:
    """The data of all pages."""
    found = [preview(**body).data]
    while found[-1]["cursor"] is not None:
        found.append(preview(**body, cursor=found[-1]["cursor"]).data)
    return found


def test_a_year_of_hourly_runs_is_shown_by_pages() -> None:
    found = pages(cron="0 * * * *", time_zone="Europe/Berlin", days=366, count=1_000)
    assert [len(page["runs"]) for page in found] == [1_000] * 8 + [784]
    at = [parse(run["at"]) for page in found for run in page["runs"]]
    assert [later - earlier for earlier, later in itertools.pairwise(at)] == [3_600_000] * 8_783


def test_pages_have_ten_thousand_runs_together() -> None:
    found = pages(rate="1 minute", days=366, count=1_000)
    assert [len(page["runs"]) for page in found] == [1_000] * 10


def test_pages_keep_the_time_of_the_first_one(world: World) -> None:
    body = {"rate": "rate(7 hours)", "max_runs": 5, "count": 2}
    whole = starts(**{**body, "count": 9})
    first = preview(**body).data
    world.clock.advance(3_600_000)
    second = preview(**body, cursor=first["cursor"]).data
    world.clock.advance(3_600_000)
    third = preview(**body, cursor=second["cursor"]).data
    assert [run["at"] for page in (first, second, third) for run in page["runs"]] == whole
    assert len(whole) == 5 and third["cursor"] is None
    world.clock.advance(DAY)
    assert list(preview(**body, cursor=first["cursor"]).fields) == ["cursor"]


def test_skipped_times_are_on_one_page_each() -> None:
    body = DAILY | {"dst_gap": "skip", "after": "2027-03-26T12:00:00Z", "days": 3}
    found = pages(**body, count=1)
    assert [[run["at"] for run in page["runs"]] for page in found] == [["2027-03-27T01:30:00.000Z"], [None, "2027-03-29T00:30:00.000Z"]]
    assert [run["at"] for run in runs(**body | {"days": 2})] == ["2027-03-27T01:30:00.000Z", None]


def test_a_page_of_the_far_future_ends_before_the_last_year() -> None:
    far = f"{NOW}.{parse('9869-01-01T00:00:00Z')}.5"
    assert preview(cron="0 0 * 2 MON#5", count=100, cursor=far).status == 200


# Refusals

REFUSED = [
    ({}, "body", "must have one of at, rate, cron, every"),
    ({"count": 5}, "body", "must have one of at, rate, cron, every"),
    ({"cron": ["@daily", "61 * * * *"]}, "cron.1", "minute: "),
    ({"every": "2 months", "times": "09:00"}, "every", "must be a whole number of days up to 366, or of weeks up to 52"),
    ({"every": "2 weeks"}, "times", "is required beside every"),
    ({"every": "2 weeks", "times": "09:00", "weekdays": ["MON", "DAY"]}, "weekdays.1", "must be one of MON, TUE"),
    ({"every": "2 days", "times": "09:00", "weekdays": "MON"}, "weekdays", "requires a number of weeks in every"),
    ({"cron": "@daily", "rate": "5 minutes"}, "cron", "must be absent beside rate"),
    ({"at": render(NOW), "rate": "5 minutes"}, "rate", "must be absent beside at"),
    ({"cron": "@daily", "timezone": "UTC"}, "timezone", "is not a known field"),
    ({"cron": "@daily", "type": "log"}, "type", "is not a known field"),
    ({"cron": 5}, "cron", "must be a text"),
    ({"cron": "* * * *"}, "cron", "five fields"),
    ({"cron": "61 * * * *"}, "cron", "minute: "),
    ({"cron": "*/90 * * * *"}, "cron", "rate(90 minutes)"),
    ({"cron": "0 0 30 2 *"}, "cron", "never runs"),
    ({"cron": "0 0 * * *", "end": "2026-11-20T23:00:00Z"}, "cron", "has no run between its start and its end"),
    ({"rate": "often"}, "rate", "must be a whole number and a unit"),
    ({"rate": "5 fortnights"}, "rate", "unknown unit fortnights"),
    ({"rate": "0 seconds"}, "rate", "must be between one second and 366 days"),
    ({"rate": {"every": 367, "unit": "days"}}, "rate", "must be between one second and 366 days"),
    ({"rate": {"every": 1}}, "rate", "must be a whole number and a unit"),
    ({"rate": "5 minutes", "dst_gap": "skip"}, "dst_gap", "must be absent beside rate"),
    ({"at": "tomorrow"}, "at", "must be an RFC 3339 instant"),
    ({"at": render(NOW - DAY - 1)}, "at", "must not be more than a day in the past"),
    ({"at": render(NOW + FUTURE_LIMIT + 1)}, "at", "must not be more than ten years ahead"),
    ({"at": render(NOW), "max_runs": 1}, "max_runs", "must be absent beside at"),
    ({"cron": "@daily", "time_zone": "Europe/Bonn"}, "time_zone", "must be an IANA time zone"),
    ({"cron": "@daily", "time_zone": "europe/berlin"}, "time_zone", "did you mean Europe/Berlin?"),
    ({"cron": "@daily", "time_zone": 1}, "time_zone", "must be an IANA time zone"),
    ({"cron": "@daily", "dst_gap": "jump"}, "dst_gap", "must be one of shift, skip"),
    ({"cron": "@daily", "dst_overlap": "last"}, "dst_overlap", "must be one of first, second, both"),
    ({"cron": "@daily", "exclude": ["2026-02-30"]}, "exclude", 'has "2026-02-30": an entry is a date'),
    ({"cron": "@daily", "only": ["fr"]}, "only", "names fr, and there is no such calendar"),
    ({"cron": "@daily", "on_excluded": "skip"}, "on_excluded", "requires exclude or only"),
    ({"cron": "@daily", "working_days": ["MON"]}, "working_days", "requires exclude or only"),
    ({"cron": "@daily", "start": "2026-11-21"}, "start", "must be an RFC 3339 instant"),
    ({"cron": "@daily", "start": render(NOW + FUTURE_LIMIT + 1)}, "start", "must not be more than ten years ahead"),
    ({"cron": "@daily", "end": render(NOW)}, "end", "must be after the start and after now"),
    ({"cron": "@daily", "jitter_seconds": -1}, "jitter_seconds", "must be a whole number from 0 to 86400"),
    ({"cron": "@daily", "jitter_seconds": 0.5}, "jitter_seconds", "must be a whole number from 0 to 86400"),
    ({"cron": "@daily", "max_runs": 0}, "max_runs", "must be a whole number from 1 to"),
    ({"cron": "@daily", "max_runs": True}, "max_runs", "must be a whole number from 1 to"),
    ({"cron": "@daily", "count": 0}, "count", "must be at least 1"),
    ({"cron": "@daily", "count": 101}, "count", "must be at most 100 without days"),
    ({"cron": "@daily", "count": 1001, "days": 3}, "count", "must be at most 1000"),
    ({"cron": "@daily", "days": 0}, "days", "must be at least 1"),
    ({"cron": "@daily", "days": 367}, "days", "must be at most 366"),
    ({"cron": "@daily", "cursor": "x"}, "cursor", "must be the cursor of an answer of the last day, unchanged"),
    ({"cron": "@daily", "cursor": f"{NOW + 1}.{NOW}.5"}, "cursor", "must be the cursor of an answer of the last day, unchanged"),
    ({"cron": "@daily", "cursor": f"{NOW}.{NOW - 2 * DAY}.5"}, "cursor", "must be the cursor of an answer of the last day, unchanged"),
    ({"cron": "@daily", "cursor": f"{NOW}.{LAST}.5"}, "cursor", "must be the cursor of an answer of the last day, unchanged"),
    ({"cron": "@daily", "cursor": "5" * 61}, "cursor", "must have at most 60 characters"),
    ({"cron": "@daily", "count": "5"}, "count", "must be a whole number"),
    ({"cron": "@daily", "after": "now"}, "after", "must be an RFC 3339 instant"),
    ({"cron": "@daily", "after": render(NOW - DAY - 1)}, "after", "must not be more than a day in the past"),
    ({"cron": "@daily", "after": render(NOW + FUTURE_LIMIT + 1)}, "after", "must not be more than ten years ahead"),
    ({"cron": "@daily", "after": render(NOW), "max_runs": 3}, "after", "must be absent beside max_runs"),
]


@pytest.mark.parametrize(("body", "field", "rule"), REFUSED, ids=lambda part: json.dumps(part) if isinstance(part, dict) else "")
def test_an_invalid_schedule_is_refused_with_field_and_rule(body: dict[str, Any], field: str, rule: str) -> None:
    answered = preview(**body)
    assert (answered.status, answered.error["code"]) == (400, "validation_failed")
    assert list(answered.fields) == [field] and rule in answered.fields[field]


def test_every_field_has_a_refusal() -> None:
    assert {field for _, field, _ in REFUSED} >= set(form_models.PreviewRequest.model_fields)


OTHERS = [name for name in form_models.PreviewRequest.model_fields if name not in schedule_form.KINDS]
ODD = [
    "9999-12-31T23:59:59.9-23:59",
    "0001-01-01T00:00:00Z",
    "2030-01-01T00:00:00Z",
    render(NOW + FUTURE_LIMIT),
    "Pacific/Apia",
    "skip",
    "both",
]
scalars = st.sampled_from(ODD) | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
anything = scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.sampled_from(["every", "unit"]), scalars)
when = st.fixed_dictionaries({"cron": st.sampled_from(["*/30 * * * *", "30 2 * * *", "0 0 * 2 MON#5", "@yearly"]) | anything})
when |= st.fixed_dictionaries({"cron": st.lists(st.sampled_from(["@daily", "0 0 LW * *"]) | scalars, max_size=12)})
when |= st.fixed_dictionaries({"every": st.sampled_from(["2 weeks", "3 days"]) | anything, "times": st.sampled_from(["09:00"]) | anything})
when |= st.fixed_dictionaries({"rate": st.sampled_from(["366 days", "1 second"]) | anything}) | st.fixed_dictionaries({"at": anything})


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(when, st.dictionaries(st.sampled_from([*OTHERS, "other"]), anything, max_size=3))
def test_no_body_breaks_the_preview(form: dict[str, Any], more: dict[str, Any]) -> None:
    answered = preview(**form | more)
    assert answered.status in (200, 400), answered.text
    assert answered.status == 200 or answered.error["details"]


# Task types


def task_types() -> dict[str, Any]:
    answered = send("GET", "/types")
    shapes.Answer[form_models.TaskTypesShape].model_validate(answered.body)
    return {each["type"]: each for each in answered.data["items"]}


def test_every_task_type_is_listed_with_its_description() -> None:
    assert list(task_types()) == registry.names()
    for each in task_types().values():
        assert each["description"][:1].isupper() and each["description"].endswith(".")


def test_a_form_can_be_drawn_from_the_schema() -> None:
    schema = task_types()["http"]["payload_schema"]
    assert schema["required"] == ["url"] and schema["additionalProperties"] is False
    assert schema["properties"]["method"] == {
        "default": "GET",
        "description": "The HTTP method. If it is absent: POST with a body, else GET.",
        "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
        "title": "Method",
        "type": "string",
    }
    for each in task_types().values():
        assert all("description" in field for field in each["payload_schema"]["properties"].values())


def test_the_api_requires_the_fields_that_the_schema_requires() -> None:
    for name, each in task_types().items():
        refused = send("POST", "/jobs", json_body={"type": name, "payload": {}}).fields
        assert refused == {f"payload.{field}": "is required" for field in each["payload_schema"]["required"]}


# The document


@pytest.fixture(scope="module")
def document() -> Any:
    return expanded(send("GET", "/openapi.json", user=None).body)


def test_the_document_describes_every_field_of_a_schedule(document: Any) -> None:
    fields = document["components"]["schemas"]["PreviewRequest"]["properties"]
    assert set(fields) == {*schedule_form.FIELDS, "count", "after", "days", "cursor"}
    assert all("description" in field and ("type" in field or "anyOf" in field) for field in fields.values())
    assert {"type": "string", "enum": ["shift", "skip"]} in fields["dst_gap"]["anyOf"]


def test_the_api_answers_the_examples_of_the_document(document: Any) -> None:
    content = document["paths"]["/api/v1/schedules/preview"]["post"]["requestBody"]["content"]["application/json"]
    assert [len(runs(**example["value"])) for example in content["examples"].values()] == [3, 3, 4, 5, 10]
    march = content["examples"]["skip"]["value"] | {"after": "2027-03-26T12:00:00Z"}
    assert any(run["at"] is None for run in runs(**march))


def test_the_example_answer_of_the_api_page_is_real() -> None:
    page = PAGE.read_text().partition("## Preview\n")[2].partition("\n| field |")[0]
    asked, _, shown = page[page.index("    {") :].partition("\n\n")
    assert send("POST", "/schedules/preview", body=asked.strip()).data == json.loads(shown)
