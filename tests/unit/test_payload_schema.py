"""The subset of JSON Schema that checks the payloads of named targets."""

import re
import time
from typing import Any

import pytest

from scheduler.targets import payload_schema
from scheduler.targets.payload_schema import BadSchema, broken


def of(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}}


@pytest.mark.parametrize(
    ("part", "good", "bad", "rule"),
    [
        ({"type": "string"}, ["x", ""], [1, None, ["x"]], "must be of type string"),
        ({"type": ["integer", "null"]}, [1, 2.0, None], [True, 1.5, float("inf"), "1"], "must be of type integer or null"),
        ({"type": "number"}, [1, 1.5], [True, "1"], "must be of type number"),
        ({"type": "boolean"}, [True], [1, 0], "must be of type boolean"),
        ({"enum": ["a", 1]}, ["a", 1, 1.0], [True, "b"], 'must be one of "a", 1'),
        ({"const": 0}, [0], [False, 1], "must be 0"),
        ({"minLength": 2}, ["ab", 1], ["a"], "must have at least 2 characters"),
        ({"maxLength": 2}, ["ab"], ["abc"], "must have at most 2 characters"),
        ({"pattern": "^[a-z]+$"}, ["ab"], ["A"], "must match ^[a-z]+$"),
        ({"minimum": 2}, [2], [1], "must be at least 2"),
        ({"maximum": 2}, [2], [2.5], "must be at most 2"),
        ({"exclusiveMinimum": 2}, [2.1], [2], "must be more than 2"),
        ({"exclusiveMaximum": 2}, [1], [2], "must be less than 2"),
        ({"minItems": 1}, [[1]], [[]], "must have at least 1 entries"),
        ({"maxItems": 1}, [[1]], [[1, 2]], "must have at most 1 entries"),
    ],
)
def test_a_rule_accepts_valid_values_and_names_itself(part: dict[str, Any], good: list[Any], bad: list[Any], rule: str) -> None:
    payload_schema.check(of(part))
    assert [broken(of(part), {"a": value}) for value in good] == [[]] * len(good)
    for value in bad:
        assert broken(of(part), {"a": value}) == [(("a",), rule)], value


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "(x+x+)+y", r"^(\w+\s?)*$", "(.{0,30}){0,30}é$"])
def test_no_text_makes_a_pattern_slow(pattern: str) -> None:
    payload_schema.check(of({"pattern": pattern}))
    for letter in "ax":
        began = time.process_time()
        assert broken(of({"pattern": pattern}), {"a": letter * 10_000 + "!"})
        assert time.process_time() - began < 1.0


def test_the_longest_text_of_a_pattern_depends_on_its_steps() -> None:
    uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    assert broken(of({"pattern": uuid}), {"a": " " * 262_000 + "0b9a3f52-6f0e-4d3c-9b61-0a2f5f1d9c11"}) == []
    assert broken(of({"pattern": "x{1,1000}"}), {"a": "x" * 10_001}) == [
        (("a",), "must have at most 10,000 characters, because of its pattern")
    ]


def test_no_text_matches_a_stored_pattern_that_is_no_longer_supported() -> None:
    for pattern in ("^(?!test)", "(.{0,100}){0,100}$"):
        ((path, rule),) = broken(of({"pattern": pattern}), {"a": "x"})
        assert path == ("a",) and "an administrator has to change it" in rule


def test_every_broken_rule_is_reported_with_its_path() -> None:
    schema = {
        "type": "object",
        "required": ["id"],
        "additionalProperties": False,
        "properties": {"rows": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}}},
    }
    payload_schema.check(schema)
    assert broken(schema, {"rows": [{"n": 1}, {"n": "x"}], "other": 1}) == [
        (("id",), "is required"),
        (("rows", 1, "n"), "must be of type integer"),
        (("other",), "is not a known field"),
    ]


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ({}, 'must have "type": "object"'),
        ({"type": "object", "oneOf": []}, "does not know 'oneOf'"),
        (of({"type": "text"}), "at a: type has an invalid value"),
        (of({"pattern": "("}), "at a: pattern"),
        (of({"pattern": "a" * 201}), "at a: pattern has an invalid value"),
        (of({"pattern": "(?=a)b"}), "at a: pattern cannot be matched in linear time: look-around"),
        (of({"pattern": r"(a)\1"}), "at a: pattern cannot be matched in linear time: backreferences"),
        (of({"pattern": "(.{0,100}){0,100}$"}), "at a: pattern has more than 1,000 steps"),
        (of({"pattern": r"(\w{0,20}\W{0,20}){0,20}"}), "at a: pattern cannot be matched in linear time: it is too large"),
        (of({"minLength": -1}), "at a: minLength"),
        (of({"minimum": True}), "at a: minimum"),
        (of({"enum": []}), "at a: enum"),
        (of({"items": {"$ref": "#"}}), "at a.items: does not know '$ref'"),
        ({"type": "object", "properties": {"a": 1}}, "at a: must be an object"),
        ({"type": "object", "description": "x" * 20_000}, "is longer than"),
    ],
)
def test_unsupported_keywords_are_refused_at_registration(schema: dict[str, Any], rule: str) -> None:
    with pytest.raises(BadSchema, match="^" + re.escape(rule)):
        payload_schema.check(schema)


def test_the_nesting_of_a_schema_is_limited() -> None:
    deep: dict[str, Any] = {}
    for _ in range(20):
        deep = {"properties": {"a": deep}}
    with pytest.raises(BadSchema, match="nested deeper"):
        payload_schema.check({"type": "object"} | deep)


def test_a_rule_of_many_values_shows_the_first() -> None:
    (found,) = broken({"enum": [*range(1_000)]}, "x")
    assert found.rule == f"must be one of {', '.join(map(str, range(20)))} and 980 more"


def test_a_large_payload_against_a_long_list_of_values_compares_little(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def same(one: object, other: object) -> bool:
        nonlocal compared
        compared += 1
        return one == other

    monkeypatch.setattr(payload_schema, "_same", same)
    schema = {"items": {"enum": [f"c{number}" for number in range(1_000)]}}
    assert len(broken(schema, ["c999"] * 5_000 + ["x"] * 5_000)) == 5_000 and compared == 5_000
