"""Instants in and out of RFC 3339."""

import doctest
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scheduler.model import instants

offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def test_the_examples_of_the_docstrings_are_true() -> None:
    assert doctest.testmod(instants).failed == 0


@given(st.integers(0, 250_000_000_000_000) | st.integers(instants.FIRST, instants.LAST))
@example(instants.FIRST)
@example(instants.LAST)
def test_a_rendered_instant_is_parsed_to_itself(at: int) -> None:
    assert instants.parse(instants.render(at)) == at


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-00:01", "9999-12-31T23:59:59.9999Z", "0001-01-01T00:00:00+00:01"])
def test_an_instant_that_cannot_be_rendered_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="four digits"):
        instants.parse(text)


@given(st.datetimes(datetime(1970, 1, 3), datetime(2200, 1, 1)), offsets)
def test_the_offset_applies_and_fractions_are_rounded_up(local: datetime, zone: timezone) -> None:
    aware = local.replace(tzinfo=zone)
    exact = (aware - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1) / 1000
    assert 0 <= instants.parse(aware.isoformat()) - exact < 1


@given(st.text())
def test_any_other_text_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(ValueError, match="RFC 3339"):
        instants.parse(text)
