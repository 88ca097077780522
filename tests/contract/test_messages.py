"""Messages as text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.errors import Invalid
from scheduler.model.job import JobKey, Message, Packed
from scheduler.storage import messages
from tests.contract import make, records

some_keys = st.builds(JobKey, st.text(min_size=1, max_size=100), records.some_ids)
all_messages = records.of(
    Message,
    key=some_keys,
    fence=st.integers(1, 10**6),
    version=st.just(messages.VERSION),
    more=st.lists(records.of(Packed, key=some_keys), max_size=4).map(tuple),
)


@given(all_messages)
def test_a_message_is_decoded_as_it_was_encoded(message: Message) -> None:
    assert messages.decode(messages.encode(message)) == message


def test_an_encoded_message_is_short() -> None:
    assert len(messages.encode(make.message(key=JobKey("0" * 36, "0" * 26), sent_at=make.NOW))) < 200


@pytest.mark.parametrize("text", ["", "hello", "null", "[]", "{}", "3", '{"v":1}', "[" * 100_000])
def test_a_text_that_is_no_message_is_invalid(text: str) -> None:
    with pytest.raises(Invalid):
        messages.decode(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"v": 2},
        {"v": True},
        {"owner": ""},
        {"owner": 3},
        {"owner": "\ud800"},
        {"owner": "é" * 257},
        {"id": None},
        {"id": "01"},
        {"id": "0" * 10 + "z" + "0" * 15},
        {"fence": -1},
        {"fence": 10**40},
        {"fence": "1"},
        {"fence": True},
        {"fence": 1.5},
        {"lane": "fast"},
        {"lane": ["retry"]},
        {"due_at": None},
        {"not_before": "soon"},
    ],
    ids=str,
)
def test_a_wrong_field_is_invalid(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        messages.decode(json.dumps(json.loads(messages.encode(make.message())) | wrong))


@given(st.text())
def test_any_text_is_a_message_or_invalid(text: str) -> None:
    with pytest.raises(Invalid):
        messages.decode(text)
