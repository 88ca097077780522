"""The typed environment: what is rendered is what is parsed, and every complaint names its variable."""

from dataclasses import MISSING, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas._settings import (
    ApiSettings,
    BurySettings,
    DispatchSettings,
    ExecuteSettings,
    NotifySettings,
    PlanSettings,
    ProjectSettings,
    ScaleSettings,
    Settings,
    SettingsError,
    TickSettings,
)

KINDS = [
    ApiSettings,
    TickSettings,
    PlanSettings,
    DispatchSettings,
    ExecuteSettings,
    BurySettings,
    ProjectSettings,
    NotifySettings,
    ScaleSettings,
]


def some(kind: type[Settings], **chosen: Any) -> Settings:
    values: dict[str, Any] = {item.name: f"the {item.name}" for item in fields(kind) if item.default is MISSING}
    return kind(**(values | chosen))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_rendered_is_parsed_back(kind: type[Settings]) -> None:
    assert kind.parse(some(kind).render()) == some(kind)


@given(st.integers(), st.booleans(), st.text())
def test_any_value_survives(number: int, flag: bool, text: str) -> None:
    settings = some(ExecuteSettings, shards=number, allow_private_http=flag, stage=text)
    assert ExecuteSettings.parse(settings.render()) == settings


@pytest.mark.parametrize("kind", KINDS)
def test_each_missing_variable_is_named(kind: type[Settings]) -> None:
    rendered = some(kind).render()
    for item in fields(kind):
        name = f"PUNCTUAL_{item.name.upper()}"
        less = {key: value for key, value in rendered.items() if key != name}
        if item.default is MISSING:
            with pytest.raises(SettingsError, match=f"^{name} is not set$"):
                kind.parse(less)
        else:
            assert getattr(kind.parse(less), item.name) == item.default


@pytest.mark.parametrize("kind", KINDS)
def test_each_variable_of_the_wrong_type_is_named_with_what_it_holds(kind: type[Settings]) -> None:
    for item in fields(kind):
        if item.type is not str:
            name = f"PUNCTUAL_{item.name.upper()}"
            with pytest.raises(SettingsError, match=f"^{name} must be .* not 'yes'$"):
                kind.parse(some(kind).render() | {name: "yes"})


def test_allowed_targets_stand_in_one_variable() -> None:
    settings = some(ApiSettings, allowed_targets=("arn:aws:sqs:*:*:a", "arn:aws:sns:*:*:b"))
    assert settings.render()["PUNCTUAL_ALLOWED_TARGETS"] == "arn:aws:sqs:*:*:a arn:aws:sns:*:*:b"
    assert ApiSettings.parse(settings.render()) == settings


def test_other_variables_do_not_matter() -> None:
    assert BurySettings.parse(some(BurySettings).render() | {"AWS_REGION": "eu-west-1", "PUNCTUAL_NEW": "1"}) == some(BurySettings)
