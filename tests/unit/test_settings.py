"""The typed environment: parsing returns the rendered values, and every complaint names its variable."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas._settings import NAMES, Settings, SettingsError
from scheduler.model.job import Lane
from scheduler.model.lifecycle import Retention
from scheduler.model.rules import Rules
from scheduler.targets.base import Reach

OTHERS: dict[Any, Any] = {int: 7_919, float: 0.25, bool: None, Retention: Retention(1, 2)}  # than any default; None: the opposite
ARNS = ("arn:aws:sqs:*:*:a", "arn:aws:sns:*:*:b")


def parsed(rules: str = "{}", reach: str = "{}") -> Settings:
    return Settings.parse({"PUNCTUAL_RULES": rules, "PUNCTUAL_REACH": reach})


def other_rules() -> Rules:
    """Rules without a default value in any field."""
    chosen: dict[str, Any] = {
        "windows": {Lane.RETRY: 3},
        "crowds": {Lane.RETRY: 4},
        "deployment": "0123456789ab",
        "most_pollers": {Lane.ONE_TIME: 4},
        "concurrency": {Lane.ONE_TIME: 5},
    }
    for item in fields(Rules):
        if item.name not in chosen:
            other = OTHERS[item.type]
            chosen[item.name] = not item.default if other is None else other
    return Rules(**chosen)


def test_what_is_rendered_is_parsed_back() -> None:
    names = {name: f"the {name}" for name in NAMES}
    reach = Reach(ARNS, "ops@example.com", plain_http=True, hosts=("*.example.com",))
    made = Settings(rules=other_rules(), reach=reach, **names)
    read = Settings.parse(made.render())
    assert (read.rules, read.reach) == (made.rules, made.reach)
    assert {name: getattr(read, name) for name in NAMES} == names
    assert read.render() == made.render()


@given(st.integers(), st.booleans(), st.text())
def test_any_value_survives(number: int, flag: bool, text: str) -> None:
    made = Settings(stage=text, rules=Rules(shards=number, lag_canary=flag), reach=Reach(sender=text))
    read = Settings.parse(made.render())
    assert (read.stage, read.rules, read.reach) == (text, made.rules, made.reach)


def test_a_name_that_was_not_given_is_reported_when_it_is_read() -> None:
    with pytest.raises(SettingsError, match=r"^PUNCTUAL_JOBS_TABLE is not set$"):
        _ = Settings.parse({}).jobs_table
    assert Settings.parse({}).get("jobs_table") == ""


def test_a_name_with_a_default_may_be_left_out() -> None:
    assert (Settings.parse({}).fetch_function, Settings.parse({}).secret_prefix) == ("", "")


def test_there_are_no_other_names_than_the_declared_ones() -> None:
    with pytest.raises(TypeError, match="no setting job_table"):
        Settings(job_table="j")
    with pytest.raises(AttributeError):
        _ = Settings.parse({}).job_table  # type: ignore[attr-defined]


def test_rules_that_do_not_differ_from_their_defaults_take_no_room() -> None:
    assert Settings(stage="test").render() == {"PUNCTUAL_STAGE": "test"}
    assert Settings(rules=Rules(units=2)).render() == {"PUNCTUAL_RULES": '{"units":2}'}


@pytest.mark.parametrize("item", list(fields(Rules)), ids=lambda item: str(item.name))
def test_each_rule_of_the_wrong_type_is_named_with_what_it_holds(item: Any) -> None:
    wrong = 7 if item.type is str else "yes"
    with pytest.raises(SettingsError, match=f"^PUNCTUAL_RULES: {item.name} must be .* not {wrong!r}$"):
        parsed(json.dumps({item.name: wrong}))


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ("yes", "PUNCTUAL_RULES must be a JSON object, not 'yes'"),
        ("[]", "PUNCTUAL_RULES must be a JSON object, not '[]'"),
        ('{"shards":true}', "PUNCTUAL_RULES: shards must be a whole number, not True"),
        ('{"lag_canary":1}', "PUNCTUAL_RULES: lag_canary must be true or false, not 1"),
        ('{"windows":{"slow":1}}', "PUNCTUAL_RULES: windows must be whole numbers by one-time and recurring and retry"),
        ('{"retention":{"days":"all"}}', "PUNCTUAL_RULES: retention must be whole numbers by days and failure_days"),
    ],
)
def test_rules_that_cannot_be_read_are_refused_in_words(rules: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parsed(rules)
    assert str(raised.value).startswith(complaint)


@pytest.mark.parametrize(
    ("reach", "complaint"),
    [
        ('{"arns":["orders"]}', "PUNCTUAL_REACH: arns must be a list of arns, not ['orders']"),
        ('{"hosts":["https://example.com"]}', "PUNCTUAL_REACH: hosts must be a list of hosts, not ['https://example.com']"),
        ('{"hosts":"example.com"}', "PUNCTUAL_REACH: hosts must be a list of hosts, not 'example.com'"),
        ('{"plain_http":"yes"}', "PUNCTUAL_REACH: plain_http must be true or false, not 'yes'"),
    ],
)
def test_a_reach_that_cannot_be_read_is_refused_in_words(reach: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parsed(reach=reach)
    assert str(raised.value) == complaint


@pytest.mark.parametrize("variable", ["RULES", "REACH"])
def test_fields_of_another_version_are_ignored_with_one_log_line(variable: str, caplog: pytest.LogCaptureFixture) -> None:
    known = Settings(rules=Rules(units=2), reach=Reach(plain_http=True)).render()
    newer = json.loads(known[f"PUNCTUAL_{variable}"]) | {"speed": {"of": ["light"]}, "colour": 1}
    assert Settings.parse(known | {f"PUNCTUAL_{variable}": json.dumps(newer)}).render() == known
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", f"PUNCTUAL_{variable} has fields that this version does not know; ignored: colour, speed")
    ]


def test_other_variables_do_not_matter() -> None:
    made = Settings(stage="test", jobs_table="j", rules=replace(Rules(), shards=2))
    assert Settings.parse(made.render() | {"AWS_REGION": "eu-west-1", "PUNCTUAL_NEW": "1"}).render() == made.render()
