"""Placeholders in payloads: their values, refusals, and literal braces."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.job import Failure, FailureKind
from scheduler.model.named_target import NamedTarget
from scheduler.model.texts import as_line
from scheduler.targets import placeholders, registry
from scheduler.targets.job_context import JobContext, as_header, as_url_part
from scheduler.targets.named_target import work_of
from scheduler.targets.placeholders import OPEN, VALUES, broken, rendered, used_in
from tests.conftest import a_job

CONTEXT = JobContext(
    "01JOB", 3, scheduled_at=1_795_000_000_250, nominal_at=1_795_000_000_000, task_id="01TASK", task_name="Größe 50 %", task_key="sizes"
)
EXPECTED = {
    "scheduled_at": "2026-11-18T11:06:40.250Z",
    "scheduled_at:date": "2026-11-18",
    "scheduled_at:time": "11:06:40",
    "scheduled_at:year": "2026",
    "scheduled_at:month": "11",
    "scheduled_at:day": "18",
    "scheduled_at:hour": "11",
    "scheduled_at:minute": "06",
    "scheduled_at:unix": "1795000000",
    "scheduled_at:unix_ms": "1795000000250",
    "nominal_at": "2026-11-18T11:06:40.000Z",
    "nominal_at:unix_ms": "1795000000000",
    "job.id": "01JOB",
    "job.key": "",
    "task.id": "01TASK",
    "task.name": "Größe 50 %",
    "task.key": "sizes",
    "attempt": "3",
}


def one(text: str, context: JobContext = CONTEXT) -> str:
    found: str = rendered({"text": text}, context, {})["text"]
    return found


def rules(payload: dict[str, Any], **more: bool) -> dict[tuple[str | int, ...], str]:
    return dict(broken(payload, **more))


@pytest.mark.parametrize(("name", "value"), EXPECTED.items())
def test_each_placeholder_has_its_value(name: str, value: str) -> None:
    assert one(f"<{OPEN}{name}}}}}>") == one(f"<{OPEN} {name} }}}}>") == f"<{value}>"
    assert rules({"text": f"{OPEN}{name}}}}}"}) == {}


def test_a_job_without_context_has_empty_values() -> None:
    assert {write(JobContext("notice_1")) for name, write in VALUES.items() if name not in ("job.id", "attempt")} == {""}


@pytest.mark.parametrize("at", [-62_135_596_800_000, 253_402_300_799_999])
def test_the_first_and_the_last_year_have_four_digits(at: int) -> None:
    context = JobContext("01JOB", scheduled_at=at, nominal_at=at)
    found = one("{{scheduled_at}} {{scheduled_at:date}} {{scheduled_at:year}}", context)
    assert found in ("0001-01-01T00:00:00.000Z 0001-01-01 0001", "9999-12-31T23:59:59.999Z 9999-12-31 9999")


def test_strings_at_any_depth_are_replaced_and_nothing_else() -> None:
    payload = {"body": {"{{attempt}}": ["n {{attempt}}", 3, None, True, {"x": "{{job.id}}"}]}, "wait": False}
    assert used_in(payload) and rules(payload) == {}
    assert rendered(payload, CONTEXT, {}) == {"body": {"{{attempt}}": ["n 3", 3, None, True, {"x": "01JOB"}]}, "wait": False}


def test_a_payload_whose_names_alone_have_braces_has_no_placeholders() -> None:
    assert not used_in({"body": {"{{x}}": 1}}) and rules({"body": {"{{x}}": 1}}) == {}


@pytest.mark.parametrize("text", ["{{x}}", "{{}}", "{{Scheduled_at}}", "{{nominal_at:week}}", "{{attempt:date}}", "{{nominal_at :date}}"])
def test_an_unknown_placeholder_is_refused_with_the_known_ones(text: str) -> None:
    ((path, rule),) = rules({"body": [0, {"deep": f"a {text} b"}]}).items()
    assert path == ("body", 1, "deep")
    assert rule.startswith(f"there is no placeholder {text}; known: scheduled_at, nominal_at, job.id") and rule.endswith(
        "{{{{ for a literal {{"
    )


@pytest.mark.parametrize("text", ["{{", "a {{ b", "{{attempt}", "{{at{tempt}}", "{{{", "{{" + "x" * 101 + "}}", "{{attempt}} {{"])
def test_braces_without_an_end_are_refused(text: str) -> None:
    ((path, rule),) = rules({"text": text}).items()
    assert path == ("text",) and rule.startswith("has {{ without an end")


@pytest.mark.parametrize("text", ["}}", "a } b", "{ {x} }", '{"a":{"b":1}}', "{x}"])
def test_other_braces_are_text(text: str) -> None:
    assert not used_in({"text": text}) and one(text) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("{{{{", "{{"),
        ("{{{{name}}", "{{name}}"),
        ("{{{{{{{{", "{{{{"),
        ("{{{attempt}}}", "{3}"),
        ("{{{{{{attempt}}", "{{3"),
        ("{{{{{", "{{{"),
    ],
)
def test_four_braces_are_replaced_by_two(written: str, text: str) -> None:
    assert rules({"text": written}) == {} and used_in({"text": written}) and one(written) == text


names = st.sampled_from(sorted(VALUES)).map(lambda name: (True, name))
pieces = names | st.text(alphabet="{}a: é", max_size=6).map(lambda text: (False, text))
leaves = st.none() | st.booleans() | st.integers() | st.text(alphabet="{} a")


@given(st.lists(pieces, max_size=8))
def test_a_payload_renders_to_its_texts_and_values(given: list[tuple[bool, str]]) -> None:
    """Neighbouring texts are joined first: two braces may meet where they touch."""
    texts = [(False, "")]
    for is_name, piece in given:
        if is_name or texts[-1][0]:
            texts.append((is_name, piece))
        else:
            texts[-1] = (False, texts[-1][1] + piece)
    written = "".join(f"{{{{{piece}}}}}" if is_name else piece.replace("{{", "{{{{") for is_name, piece in texts)
    value = "".join(VALUES[piece](CONTEXT) if is_name else piece for is_name, piece in texts)
    assert rules({"text": written}) == {} and one(written) == value
    assert used_in({"text": written}) == (OPEN in written)


@pytest.mark.long
@given(st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text("{}a"), inner)))
def test_any_payload_is_either_refused_or_rendered_to_the_same_shape(value: Any) -> None:
    payload = {"value": value}
    if not used_in(payload):
        assert rules(payload) == {} and rendered(payload, CONTEXT, {}) == payload
    elif not rules(payload):
        assert _shape(rendered(payload, CONTEXT, {})) == _shape(payload)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shape(each) for name, each in value.items()}
    return [_shape(each) for each in value] if isinstance(value, list) else type(value)


def test_a_value_is_not_searched_for_placeholders() -> None:
    assert one("{{task.name}}", JobContext("01JOB", task_name="{{attempt}}")) == "{{attempt}}"


def test_an_attempt_number_is_refused_where_attempts_are_equal() -> None:
    assert rules({"input": "{{job.id}}"}, equal_attempts=True) == {}
    assert rules({"input": "{{attempt}}"}, equal_attempts=True) == {
        ("input",): "cannot have {{attempt}}: it must be the same in every attempt"
    }


def test_a_payload_has_at_most_a_hundred_placeholders() -> None:
    most = "{{attempt}}" * placeholders.MOST
    assert rules({"text": most}) == {} and rules({"text": most, "more": "{{{{"}) == {}
    assert rules({"text": most, "more": ["{{attempt}}"]}) == {(): "has more than 100 placeholders"}


@pytest.mark.parametrize("inner", ["{{attempt}}", 7, []])
def test_a_payload_with_placeholders_is_not_nested_too_deeply(inner: Any) -> None:
    deep = inner
    for _ in range(500):
        deep = [deep]
    (rule,) = broken({"body": deep, "other": "{{attempt}}"})
    assert rule == (("body",), "is nested deeper than 100 levels, which a payload with placeholders must not be")


def test_a_payload_full_of_unknown_placeholders_has_a_short_refusal() -> None:
    assert len(list(broken({"body": ["{{x}}"] * 60_000}))) == placeholders.MOST + 1


@pytest.mark.real_clock
@pytest.mark.parametrize("text", ["{" * 250_000, "{{ " * 80_000, "{{" + " " * 250_000, "{{a}" * 60_000, "{{{{a" * 50_000])
def test_a_hostile_text_is_checked_in_linear_time(text: str) -> None:
    began = time.process_time()
    list(broken({"text": text}))
    one(text)
    assert time.process_time() - began < 2


def test_a_value_takes_the_form_that_its_field_needs() -> None:
    name = JobContext("01JOB", task_name="Größe\r\nX-Evil: 50 %")
    payload = {
        "url": "https://a/{{task.name}}",
        "headers": {"X-Name": "{{task.name}}"},
        "subject": "{{task.name}}",
        "body": "{{task.name}}",
    }
    assert rendered(payload, name, {"url": as_url_part, "headers": as_header, "subject": as_line}) == {
        "url": "https://a/Gr%C3%B6%C3%9Fe%0D%0AX-Evil%3A%2050%20%25",
        "headers": {"X-Name": "Gr%C3%B6%C3%9Fe%0D%0AX-Evil: 50 %25"},
        "subject": "Größe  X-Evil: 50 %",
        "body": "Größe\r\nX-Evil: 50 %",
    }


# The payload with which a job runs


DEFAULTS = {"url": "https://a/{{task.name}}", "body": {"at": "{{x}}"}}
TARGET = NamedTarget("reports", "http", 0, 0, "ada", "ada", defaults=DEFAULTS, locked=("url",))


def work(target: NamedTarget | None, payload: dict[str, Any], **spec: Any) -> Any:
    named = {"type": "http", "target": "reports"} if target else {"type": "log"}
    return work_of(a_job(payload=payload, **named, **spec), target, CONTEXT)


def test_a_payload_of_an_earlier_version_is_left_as_it_is() -> None:
    assert work(None, {"message": "{{attempt}} {{x}}"}) == {"message": "{{attempt}} {{x}}"}
    assert work(TARGET, {"body": "{{attempt}}"}) == {"url": "https://a/{{task.name}}", "body": "{{attempt}}"}


def test_payload_and_defaults_have_placeholders_each_for_itself() -> None:
    new = NamedTarget("reports", "http", 0, 0, "ada", "ada", defaults=DEFAULTS, locked=("url",), placeholders=True)
    assert work(None, {"message": "try {{attempt}}"}, placeholders=True) == {"message": "try 3"}
    assert work(TARGET, {"body": "{{attempt}}"}, placeholders=True) == {"url": "https://a/{{task.name}}", "body": "3"}
    assert work(new, {"body": "{{attempt}}"})["url"] == "https://a/Gr%C3%B6%C3%9Fe%2050%20%25"
    assert work(new, {"body": "{{attempt}}"})["body"] == "{{attempt}}"


def test_a_value_that_the_schema_of_the_target_refuses_fails_the_job() -> None:
    """A payload that names the task must not get past the administrator's rule by it."""
    schema = {"type": "object", "properties": {"body": {"type": "string", "maxLength": 20, "pattern": "^[{}a-z._0-9]*$"}}}
    strict = NamedTarget("reports", "http", 0, 0, "ada", "ada", defaults={"url": "https://a"}, payload_schema=schema)
    failure = work(strict, {"body": "{{task.name}}"}, placeholders=True)
    assert isinstance(failure, Failure) and failure.kind is FailureKind.PERMANENT
    assert failure.message.startswith("payload.body must") and failure.message.endswith("its placeholders are replaced")
    assert work(strict, {"body": "{{task.key}}"}, placeholders=True)["body"] == "sizes"


@pytest.mark.parametrize(
    ("url", "name", "leaves"),
    [
        ("https://a/tenants/{{task.name}}/run", "..", True),
        ("https://a/tenants/{{task.name}}/run", ".", True),
        ("https://a/tenants/{{task.name}}", "..", True),
        ("https://a/tenants/{{ task.name }}?x=1", "..", True),
        ("https://a/tenants/{{task.name}}{{task.name}}#x", ".", True),
        ("https://a/tenants/.{{task.name}}/run", ".", True),
        ("https://a/tenants/.{{job.key}}/run", "x", True),  # the job has no key
        ("https://a/tenants/%2e{{task.name}}/run", ".", True),
        ("https://a/tenants/{{task.name}};v=1/run", "..", True),
        ("https://a/tenants/{{task.name}}/run", "...", False),
        ("https://a/tenants/{{task.name}}/run", "a/../b", True),  # some servers decode the slash first
        ("https://a/tenants/{{task.name}}/run", "../../admin", True),
        ("https://a/tenants/{{task.name}}/run", "a\\..", True),
        ("https://a/tenants/{{task.name}}/run", "a/b..c/d", False),
        ("https://a/tenants/x{{task.name}}/run", "..", False),
        ("https://a/tenants/run?of={{task.name}}", "..", False),
        ("https://a/tenants/run?of=/{{task.name}}/", "..", False),
        ("https://a/../b/{{task.name}}", "x", False),
    ],
)
def test_a_value_never_leaves_the_path_of_a_url(url: str, name: str, leaves: bool) -> None:
    """A target locks its path: a name of a task must not step out of it."""
    context = replace(CONTEXT, task_name=name, job_key=None)
    locked = NamedTarget("reports", "http", 0, 0, "ada", "ada", defaults={"url": url}, locked=("url",), placeholders=True)
    with_target = work_of(a_job(payload={}, type="http", target="reports"), locked, context)
    alone = work_of(a_job(payload={"url": url}, type="http", placeholders=True), None, context)
    given = NamedTarget("reports", "http", 0, 0, "ada", "ada")
    of_job = work_of(a_job(payload={"url": url}, type="http", target="reports", placeholders=True), given, context)
    for done in (with_target, alone, of_job):
        assert isinstance(done, Failure) is leaves
        assert not isinstance(done, Failure) or (done.kind is FailureKind.PERMANENT and "payload.url" in done.message)


def test_a_stricter_schema_fails_no_job_by_its_placeholders() -> None:
    schema = {"type": "object", "required": ["more"], "properties": {"body": {"type": "string"}}}
    stricter = NamedTarget("reports", "http", 0, 0, "ada", "ada", defaults={"url": "https://a"}, payload_schema=schema)
    assert work(stricter, {"body": "{{attempt}}"}, placeholders=True)["body"] == "3"


def test_json_text_without_two_braces_in_a_string_never_has_them() -> None:
    """`used_in` first searches the JSON of a payload."""
    assert OPEN not in json.dumps({"a": {"b": {}}, "c": [{"d": {}}]}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("kind", "field", "text"),
    [
        ("http", "url", "a%0Ab%25%C3%9F"),
        ("http", "headers", "a%0Ab%25%C3%9F"),
        ("sqs", "group", "a%0Ab%25%C3%9F"),
        ("sns", "subject", "a%0Ab%25%C3%9F"),
        ("sqs", "attributes", "a b%ß"),
        ("email", "subject", "a b%ß"),
        ("email", "text", "a\nb%ß"),
    ],
)
def test_each_type_declares_what_its_fields_need(kind: str, field: str, text: str) -> None:
    found = rendered({field: ["{{task.name}}"]}, JobContext("01JOB", task_name="a\nb%ß"), registry.load(kind).encodings)
    assert found == {field: [text]}
