"""Idempotency keys of requests, and their receipts."""

from dataclasses import replace
from typing import Any

import pytest

from lab.world.gateway import event
from lambdas.rest import idempotency
from scheduler.model import ids
from scheduler.model.errors import Invalid
from scheduler.model.job import Receipt
from tests.lambdas.gateway import NOW


def receipt(body: str | None = '{"message": "m"}', *, path: str = "/api/v1/jobs", method: str = "POST", **headers: str) -> Receipt:
    given = headers or {"idempotency-key": "k"}
    made = idempotency.of_request(event(method, path, body=body, headers=given), "ann", NOW)
    assert made is not None
    return made


def test_a_request_without_the_header_has_no_receipt() -> None:
    assert idempotency.of_request(event("POST", "/api/v1/jobs", body="{}"), "ann", NOW) is None


@pytest.mark.parametrize("name", ["idempotency-key", "Idempotency-Key"])
def test_a_receipt_has_the_owner_key_and_instant_of_the_request(name: str) -> None:
    made = receipt(**{name: "order 7"})
    assert (made.owner, made.key, made.at) == ("ann", "order 7", NOW) and 0 <= made.random < 1 << ids.RANDOM_BITS


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel", "a\tb", "a\n"])
def test_an_invalid_key_is_refused_by_the_header_name(key: str) -> None:
    with pytest.raises(Invalid) as refused:
        receipt(**{"idempotency-key": key})
    assert refused.value.details == [{"field": "Idempotency-Key", "rule": idempotency.RULE}]


@pytest.mark.parametrize("key", ["x", "x" * 255, " ~!"])
def test_any_other_key_is_accepted(key: str) -> None:
    assert receipt(**{"idempotency-key": key}).key == key


def test_the_layout_of_the_body_does_not_matter() -> None:
    same = [receipt('{"a": 1, "b": {"c": 2, "d": [3]}}'), receipt(' {"b":{"d":[3],"c":2},\n"a":1}')]
    assert same[0].fingerprint == same[1].fingerprint and receipt(None).fingerprint == receipt("{}").fingerprint


@pytest.mark.parametrize(
    "other", [{"body": '{"message": "n"}'}, {"path": "/api/v1/tasks"}, {"method": "PUT"}, {"body": '{"message": ["m"]}'}]
)
def test_another_body_path_or_method_is_another_request(other: dict[str, Any]) -> None:
    assert receipt(**other).fingerprint != receipt().fingerprint


def test_the_id_for_a_key_cannot_be_guessed() -> None:
    first, second = receipt(), receipt()
    assert first.random != second.random and replace(first, random=0) == replace(second, random=0)
