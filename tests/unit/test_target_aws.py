"""Common behaviour of all targets on AWS: ids, refusals, the deadline, a stop, and the reach of the stage."""

import json
import threading
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from scheduler.model.job import Failure, FailureKind
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.targets import mail_budget, registry
from scheduler.targets.base import NotAllowed, Reach
from scheduler.targets.calls import Refused, Request
from tests.conftest import NOW
from tests.unit.fake_calls import BUS, FUNCTION, MACHINE, QUEUE, REGION, TOPIC, FakeCalls, context, raising
from tests.unit.stage import Wrapped, refuse

MINIMAL: dict[str, dict[str, Any]] = {
    "lambda": {"function": FUNCTION},
    "sqs": {"queue": QUEUE, "body": "b"},
    "sns": {"topic": TOPIC, "message": "m"},
    "eventbridge": {"bus": BUS, "source": "shop", "detail_type": "Paid"},
    "stepfunctions": {"state_machine": MACHINE},
    "email": {"to": ["ann@example.com"], "subject": "s", "text": "t"},
}
CALL = {
    "lambda": "invoke",
    "sqs": "send_message",
    "sns": "publish",
    "eventbridge": "put_events",
    "stepfunctions": "start_execution",
    "email": "send_email",
}
WITH_ARN = sorted(MINIMAL.keys() - {"email"})


def checked(name: str, payload: Any) -> None:
    TypeAdapter(registry.load(name).payload).validate_json(json.dumps(payload), strict=True)


def rules(name: str, payload: Any) -> dict[str, str]:
    """The broken rules, by field."""
    with pytest.raises(ValidationError) as found:
        checked(name, payload)
    return {".".join(str(part) for part in error["loc"]): str(error["msg"]) for error in found.value.errors()}


def json_of(request: Request) -> Any:
    """The JSON object that a request carries to its worker."""
    (entry,) = request.parameters.get("Entries", [request.parameters])
    return json.loads(entry[{"invoke": "Payload", "put_events": "Detail", "start_execution": "input"}[request.operation]])


def ids_of(name: str, asked: Request) -> tuple[str, str]:
    """The idempotency key and the job id in a request."""
    if name in ("sqs", "sns"):
        carried = {each: value["StringValue"] for each, value in asked.parameters["MessageAttributes"].items()}
    elif name == "email":
        carried = {each["Name"]: each["Value"] for each in asked.parameters["Content"]["Simple"]["Headers"]}
    else:
        ours = json_of(asked)["punctual"]
        return ours["idempotency_key"], ours["job_id"]
    return carried["Idempotency-Key"], carried["Punctual-Job-Id"]


@pytest.mark.parametrize("name", MINIMAL)
def test_every_target_gets_the_same_ids_in_every_attempt(name: str) -> None:
    calls = FakeCalls()
    for attempt in (1, 2):
        result = registry.load(name).run(MINIMAL[name], context(calls, attempt=attempt))
        assert result.failure is None and result.output
    first, second = calls.asked
    assert ids_of(name, first) == ("01JOB", "01JOB")
    assert first == second


@pytest.mark.parametrize("name", MINIMAL)
@pytest.mark.parametrize(("retryable", "kind"), [(True, "retryable"), (False, "permanent")])
def test_a_refusal_of_aws_becomes_a_failure_with_code_and_message(name: str, retryable: bool, kind: str) -> None:
    calls = FakeCalls(**{CALL[name]: raising(Refused("Code", "told", retryable=retryable))})
    failure = registry.load(name).run(MINIMAL[name], context(calls)).failure
    assert failure is not None and (failure.kind, failure.message) == (kind, "Code: told")


@pytest.mark.parametrize("name", MINIMAL)
def test_a_call_gets_the_time_that_is_left(name: str) -> None:
    calls = FakeCalls()
    registry.load(name).run(MINIMAL[name], context(calls, seconds=600))
    assert all(540 < left <= 600 for left in calls.left)


@pytest.mark.parametrize("name", MINIMAL)
def test_a_hanging_call_is_abandoned_at_the_deadline(name: str) -> None:
    hang = threading.Event()
    calls = FakeCalls(**{CALL[name]: lambda: hang.wait(60)})
    failure = registry.load(name).run(MINIMAL[name], context(calls, seconds=0.05)).failure
    hang.set()
    assert failure == Failure(FailureKind.TIMEOUT, "no answer within the job's time-out")


@pytest.mark.parametrize("name", MINIMAL)
def test_a_hanging_call_is_abandoned_at_a_stop(name: str) -> None:
    hang, stop = threading.Event(), threading.Event()

    def answer() -> Any:
        stop.set()
        hang.wait(60)

    failure = registry.load(name).run(MINIMAL[name], context(FakeCalls(**{CALL[name]: answer}), seconds=600, stop=stop)).failure
    hang.set()
    assert failure == Failure(FailureKind.TIMEOUT, "stopped before the answer came")


@pytest.mark.parametrize("name", MINIMAL)
def test_nothing_is_called_after_a_stop(name: str) -> None:
    stop = threading.Event()
    stop.set()
    failure = registry.load(name).run(MINIMAL[name], context(stop=stop)).failure
    assert failure is not None and failure.kind is FailureKind.TIMEOUT


def test_no_time_is_left_after_a_stop() -> None:
    stop = threading.Event()
    at = context(stop=stop, seconds=9)
    assert 8 < at.left() <= 9
    stop.set()
    assert at.left() == 0
    assert context(seconds=-1).left() == 0


@pytest.mark.parametrize("name", MINIMAL)
def test_a_bug_in_a_call_is_raised_in_the_attempt(name: str) -> None:
    with pytest.raises(ZeroDivisionError):
        registry.load(name).run(MINIMAL[name], context(FakeCalls(**{CALL[name]: raising(ZeroDivisionError())})))


@pytest.mark.parametrize("name", MINIMAL)
def test_an_attempt_fails_if_its_arn_is_no_longer_allowed(name: str) -> None:
    calls = FakeCalls()
    failure = registry.load(name).run(MINIMAL[name], context(calls, reach=Reach())).failure
    assert failure is not None and failure.kind is FailureKind.PERMANENT and calls.asked == []


@pytest.mark.parametrize("name", WITH_ARN)
def test_a_refusal_names_the_field_and_the_allowed_arns(name: str) -> None:
    field = next(iter(MINIMAL[name]))
    own = MINIMAL[name][field]
    with pytest.raises(NotAllowed, match="is not allowed for jobs of this stage; allowed: none") as found:
        registry.check_reach(name, MINIMAL[name], Reach())
    assert found.value.field == field
    other = own.replace("orders", "books")
    with pytest.raises(NotAllowed, match=f"allowed: {other}$"):
        registry.check_reach(name, MINIMAL[name], Reach((other, "arn:aws:sqs:x:1:unrelated") if name != "sqs" else (other,)))
    registry.check_reach(name, MINIMAL[name], Reach((own,)))


OWN_API = {"function": f"arn:aws:lambda:{REGION}:function:punctual-prod-ApiFunction3DD2C2CF-abc", "event": {"requestContext": {}}}
OWN_LANE = {"queue": f"https://sqs.{REGION.partition(':')[0]}.amazonaws.com/123456789012/punctual-prod-LanesRetry4C7573CB-abc", "body": "x"}


@pytest.mark.parametrize(("name", "payload"), [("lambda", OWN_API), ("sqs", OWN_LANE)])
def test_no_job_reaches_the_scheduler_itself_whatever_the_stage_allows(name: str, payload: dict[str, Any]) -> None:
    """The event of a call of our own API would name its caller, an administrator perhaps."""
    everything = Reach(("arn:aws:lambda:*:*:function:*", "arn:aws:sqs:*:*:*"))
    with pytest.raises(NotAllowed, match="belongs to the scheduler itself") as found:
        registry.check_reach(name, payload, everything)
    assert found.value.field == next(iter(payload))
    calls = FakeCalls()
    failure = registry.load(name).run(payload, context(calls, reach=everything)).failure
    assert failure is not None and failure.kind is FailureKind.PERMANENT and calls.asked == []


def test_an_e_mail_needs_a_sender_and_no_arn() -> None:
    registry.check_reach("email", MINIMAL["email"], Reach(sender="a@example.com"))
    with pytest.raises(NotAllowed, match="cannot send e-mail") as found:
        registry.check_reach("email", MINIMAL["email"], Reach(("arn:aws:sqs:*:*:*",)))
    assert found.value.field == ""


@pytest.mark.parametrize(
    ("address", "domains", "allowed"),
    [
        ("ann@example.com", (), True),
        ("ann@EXAMPLE.com", (), True),
        ("ann@mail.example.com", (), False),
        ("ann@stranger.example", (), False),
        ("ann@example.com.stranger.example", (), False),
        ("ann@xexample.com", ("*.example.com",), False),
        ("ann@mail.example.com", ("example.org", "*.example.com"), True),
        ("ann@example.com", ("example.org",), False),
        ("ann@stranger.example", ("*",), True),
    ],
)
def test_mail_goes_to_the_domains_of_the_stage(address: str, domains: tuple[str, ...], allowed: bool) -> None:
    mail, reach, calls = MINIMAL["email"] | {"to": [address]}, Reach(sender="ops@example.com", mail_domains=domains), FakeCalls()
    result = registry.load("email").run(mail, context(calls, reach=reach))
    assert (result.failure is None) is allowed and len(calls.asked) == allowed
    if result.failure is not None:
        assert result.failure.kind is FailureKind.PERMANENT and "option email_domains" in result.failure.message
        with pytest.raises(NotAllowed, match="sends no mail") as found:
            registry.check_reach("email", mail, reach)
        assert found.value.field == "to"


def test_an_address_that_its_placeholders_made_is_checked_again() -> None:
    mail, calls = MINIMAL["email"] | {"to": ["x@stranger.example, y@example.com"]}, FakeCalls()
    failure = registry.load("email").run(mail, context(calls, reach=Reach(sender="ops@example.com"))).failure
    assert failure is not None and failure.kind is FailureKind.PERMANENT and calls.asked == []


def test_a_mail_beyond_the_budget_of_its_owner_is_not_sent() -> None:
    users, calls, sent = MemoryUsers(), FakeCalls(), []
    mail = MINIMAL["email"] | {"to": ["ann@example.com", "bob@example.com"]}
    for number in range(6):
        owner, now = ("ann", "eve")[number == 3], NOW + 10_000 * number + mail_budget.DAY_MS * (number == 5)
        admits = partial(mail_budget.admit, owner, most=5, users=users, now=now)
        result = registry.load("email").run(mail, replace(context(calls, reach=Reach(sender="ops@example.com")), admits_mail=admits))
        sent.append(result.failure is None)
        assert result.failure is None or (result.failure.kind, "budget" in result.failure.message) == (FailureKind.PERMANENT, True)
    assert sent == [True, True, False, True, False, True], "eve has a budget of her own, and a day later it is full again"


def test_mail_is_sent_while_it_cannot_be_counted() -> None:
    users = Wrapped(MemoryUsers(), add_to_tally=refuse)
    assert mail_budget.admit("ann", 5, 1, users, NOW) and mail_budget.admit("ann", 5, 0, MemoryUsers(), NOW)


@pytest.mark.parametrize("name", ["http", "log"])
def test_types_outside_aws_need_no_permission(name: str) -> None:
    registry.check_reach(name, {}, Reach())


@pytest.mark.parametrize("name", MINIMAL)
def test_the_smallest_payload_is_valid_and_an_unknown_field_is_not(name: str) -> None:
    checked(name, MINIMAL[name])
    assert list(rules(name, {**MINIMAL[name], "more": 1})) == ["more"]


@pytest.mark.parametrize("name", WITH_ARN)
def test_an_arn_of_another_resource_is_refused(name: str) -> None:
    field = next(iter(MINIMAL[name]))
    other = f"arn:aws:s3:{REGION}:orders"
    for bad in (other, "orders", "", "https://example.com/orders", f"{MINIMAL[name][field]}*", f"{MINIMAL[name][field]}\n"):
        assert list(rules(name, {**MINIMAL[name], field: bad})) == [field], bad


@pytest.mark.parametrize(("name", "field"), [("lambda", "event"), ("eventbridge", "detail"), ("stepfunctions", "input")])
def test_the_field_that_carries_the_ids_cannot_be_given(name: str, field: str) -> None:
    assert "is set by the scheduler" in rules(name, {**MINIMAL[name], field: {"punctual": 1}})[field]


@pytest.mark.parametrize("name", ["sqs", "sns"])
def test_attributes_need_names_that_aws_allows_and_are_not_reserved(name: str) -> None:
    many = {f"n{number}": "v" for number in range(9)}
    assert list(rules(name, {**MINIMAL[name], "attributes": many})) == ["attributes"]
    for bad in ("a b", "AWS.x", ".x", "x..y", "idempotency-key", "Punctual-Job-Id"):
        assert list(rules(name, {**MINIMAL[name], "attributes": {bad: "v"}})) == [f"attributes.{bad}.[key]"]
    checked(name, {**MINIMAL[name], "attributes": {"color.x": "red"}})


@pytest.mark.parametrize(("name", "field"), [("sqs", "queue"), ("sns", "topic")])
def test_fifo_needs_a_group_and_drops_a_second_message_of_one_job(name: str, field: str) -> None:
    fifo = {**MINIMAL[name], field: f"{MINIMAL[name][field]}.fifo"}
    assert "group is required" in rules(name, fifo)[""]
    calls = FakeCalls()
    registry.load(name).run({**fifo, "group": "g"}, context(calls))
    registry.load(name).run({**MINIMAL[name], "group": "g"}, context(calls))
    sent = [each.parameters for each in calls.asked]
    assert [(each["MessageGroupId"], each.get("MessageDeduplicationId")) for each in sent] == [("g", "01JOB"), ("g", None)]


@pytest.mark.parametrize(("name", "field"), [("sqs", "body"), ("sns", "message")])
@pytest.mark.parametrize(("given", "sent"), [("text é", "text é"), ({"é": [1]}, '{"é": [1]}'), (None, "null"), (0, "0")])
def test_a_text_is_sent_as_it_is_and_anything_else_as_json(name: str, field: str, given: Any, sent: str) -> None:
    calls = FakeCalls()
    registry.load(name).run({**MINIMAL[name], field: given}, context(calls))
    (request,) = calls.asked
    assert request.parameters["MessageBody" if name == "sqs" else "Message"] == sent


@pytest.mark.parametrize(("name", "field"), [("sqs", "body"), ("sns", "message")])
def test_an_empty_message_is_refused(name: str, field: str) -> None:
    assert "must not be empty" in rules(name, {**MINIMAL[name], field: ""})[""]
