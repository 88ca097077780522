"""The handler of declare: events of CloudFormation become requests to the API, and each one is answered."""

import io
import json
import logging
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from lab.world.gateway import event
from lambdas import _declaring, api, declare
from lambdas._declaring import Declaring, InvokedApi, StackAnswers, answered, fields, request
from lambdas._settings import Settings
from lambdas.rest.door import by_credential
from scheduler.declarations.declare import DeclarePorts
from scheduler.declarations.objects import OF_OWNER
from scheduler.model.account import Role, Scope
from scheduler.model.declaration import ObjectId, ObjectKind, TemplateEntry
from scheduler.model.errors import Unavailable
from scheduler.storage.memory.declarations import MemoryDeclarations
from scheduler.storage.ports import ApiAnswer
from tests.lambdas.gateway import NOW, World, send

FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:punctual-test-Declare"
STACK = "arn:aws:cloudformation:eu-central-1:123456789012:stack/shop/6f1c0c3a"
OTHER_STACK = "arn:aws:cloudformation:eu-central-1:123456789012:stack/other/7a2d"
URL = "https://cloudformation-custom-resource-response-eucentral1.s3.eu-central-1.amazonaws.com/a?X-Amz-Signature=s3cr3t"
NIGHTLY = {"key": "nightly", "name": "Nightly report", "schedule": {"cron": "30 2 * * *"}, "message": "report"}
HEARTBEAT = {"key": "backup", "name": "Backup", "period_seconds": 3600}
QUEUE = {"name": "orders", "kind": "http", "defaults": {"url": "https://example.com/orders", "timeout_seconds": 20}}
Json = dict[str, Any]


class Requests:
    """The port `OwnApi` over the API's handler. Failures come before the next requests."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.sent: list[tuple[str, str]] = []

    def send(
        self, method: str, path: str, body: Mapping[str, Any] | None, entry: TemplateEntry, scopes: Sequence[Scope], request_id: str
    ) -> ApiAnswer:
        self.sent.append((method, path))
        if self.failures:
            raise self.failures.pop(0)
        return answered(api.handler(request(method, path, body, entry, scopes, request_id), None))


@dataclass
class CloudFormation:
    """It sends events as AWS does, and remembers the physical ids that were answered."""

    world: World
    api: Requests = field(default_factory=Requests)
    declarations: MemoryDeclarations = field(default_factory=MemoryDeclarations)
    answers: list[Json] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)

    def send(self, url: str, body: bytes) -> None:
        self.urls.append(url)
        self.bodies.append(body)
        self.answers.append(json.loads(body))

    def event(self, kind: str, properties: Any, *, resource: str = "Nightly", type: str = "Task", stack: str = STACK, **more: Any) -> Json:
        """Send an event; returns the answer. Values are texts, as in each event of CloudFormation."""
        known = self.ids.get((stack, resource))
        event = {
            "RequestType": kind,
            "ResponseURL": URL,
            "StackId": stack,
            "RequestId": f"request-{len(self.answers)}",
            "ResourceType": f"Custom::Punctual{type}",
            "LogicalResourceId": resource,
            "ResourceProperties": as_texts({"ServiceToken": f"{FUNCTION}:shop", "ServiceTimeout": 60, **properties}),
            **({"PhysicalResourceId": known} if known else {}),
        } | more
        alias = str(event.pop("alias", "shop"))
        declare.handler(event, SimpleNamespace(invoked_function_arn=f"{FUNCTION}:{alias}"))
        answer = self.answers[-1]
        if answer["Status"] == "SUCCESS" or kind == "Create":
            self.ids[stack, resource] = answer["PhysicalResourceId"]
        return answer

    def create(self, properties: Any = NIGHTLY, **more: Any) -> Json:
        return self.event("Create", properties, **more)

    def update(self, properties: Any, **more: Any) -> Json:
        return self.event("Update", properties, **more)

    def delete(self, properties: Any = NIGHTLY, **more: Any) -> Json:
        return self.event("Delete", properties, **more)


def as_texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: as_texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_texts(each) for each in value]
    return value if isinstance(value, str) else json.dumps(value)


@pytest.fixture
def stack(world: World, monkeypatch: pytest.MonkeyPatch) -> CloudFormation:
    for owner in ("team-shop", "team-other"):
        world.be(owner, owner, Role.USER)
    made = CloudFormation(world)
    ports = DeclarePorts(made.declarations, made.api, made, fields, world.clock, "https://api.example.com")
    entries = {
        "shop": TemplateEntry("shop", "team-shop"),
        "platform": TemplateEntry("platform", "team-shop", targets=True),
        "other": TemplateEntry("other", "team-other"),
        "nobody": TemplateEntry("nobody", "team-gone"),
    }
    monkeypatch.setattr(
        _declaring, "declaring", lambda: SimpleNamespace(ports=ports, entry=lambda arn: entries.get(arn.rpartition(":")[2]))
    )
    return made


def task(key: str = "nightly", owner: str = "team-shop") -> Json | None:
    found = send("GET", f"/tasks/by-key/{key}", user=owner, role=None)
    return found.data if found.status == 200 else None


# Create, update, delete.


def test_a_created_task_has_its_first_run_in_the_answer(stack: CloudFormation) -> None:
    answer = stack.create()
    made = task()
    assert made and (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "team-shop/task/nightly")
    assert answer["Data"] == {"Id": made["id"], "Key": "nightly", "NextRunAt": made["next_runs"][0]["at"]}
    assert (answer["StackId"], answer["RequestId"], answer["LogicalResourceId"]) == (STACK, "request-0", "Nightly")
    assert stack.urls == [URL] and not answer["NoEcho"]


def test_an_update_changes_the_task_and_keeps_its_ids(stack: CloudFormation) -> None:
    before = stack.create()
    after = stack.update(NIGHTLY | {"schedule": {"cron": "0 4 * * *"}})
    made = task()
    assert made and made["schedule"]["cron"] == "0 4 * * *"
    assert after["PhysicalResourceId"] == before["PhysicalResourceId"] and after["Data"]["Id"] == before["Data"]["Id"]
    assert after["Data"]["NextRunAt"] != before["Data"]["NextRunAt"]


def test_a_refused_update_changes_nothing_and_has_the_reason_of_the_api(stack: CloudFormation) -> None:
    stack.create()
    answer = stack.update(NIGHTLY | {"schedule": {"cron": "99 2 * * *"}})
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "team-shop/task/nightly")
    assert answer["Reason"].startswith("schedule.cron: ") and "99" in answer["Reason"]
    made = task()
    assert made and made["schedule"]["cron"] == "30 2 * * *"
    assert stack.update(NIGHTLY)["Status"] == "SUCCESS", "the roll-back"


def test_a_deleted_resource_has_no_task_and_is_deleted_again(stack: CloudFormation) -> None:
    stack.create()
    assert stack.delete()["Status"] == "SUCCESS" and task() is None
    assert stack.delete()["Status"] == "SUCCESS"
    assert stack.declarations.rows == {}
    assert stack.create()["Status"] == "SUCCESS", "the key is free"


def test_a_task_that_somebody_deleted_comes_back_with_the_next_update(stack: CloudFormation) -> None:
    first = stack.create()
    send("DELETE", f"/tasks/{first['Data']['Id']}", user="team-shop", role=None)
    assert stack.update(NIGHTLY | {"name": "Other"})["Status"] == "SUCCESS" and task()
    found = task()
    assert found is not None
    send("DELETE", f"/tasks/{found['id']}", user="team-shop", role=None)
    assert stack.delete()["Status"] == "SUCCESS"


def test_a_repeated_event_has_the_same_effect(stack: CloudFormation) -> None:
    first = stack.create()
    assert stack.event("Create", NIGHTLY)["Data"] == first["Data"]
    changed = NIGHTLY | {"name": "Other"}
    assert stack.update(changed)["Data"] == stack.update(changed)["Data"]
    assert len(send("GET", "/tasks", user="team-shop", role=None).data["items"]) == 1


# Another key.


def test_another_key_is_another_task_and_the_old_one_is_deleted_at_the_end(stack: CloudFormation) -> None:
    stack.create()
    old = stack.ids[STACK, "Nightly"]
    answer = stack.update(NIGHTLY | {"key": "daily"})
    assert answer["PhysicalResourceId"] == "team-shop/task/daily" and task() and task("daily")
    assert stack.delete(PhysicalResourceId=old)["Status"] == "SUCCESS"
    assert task() is None and task("daily")


def test_a_rolled_back_replacement_keeps_the_old_task(stack: CloudFormation) -> None:
    stack.create()
    stack.update(NIGHTLY | {"key": "daily"})
    new = stack.ids[STACK, "Nightly"]
    assert stack.update(NIGHTLY)["PhysicalResourceId"] == "team-shop/task/nightly", "the roll-back"
    assert stack.delete(NIGHTLY | {"key": "daily"}, PhysicalResourceId=new)["Status"] == "SUCCESS"
    assert task() and task("daily") is None


def test_a_refused_replacement_keeps_the_physical_id(stack: CloudFormation) -> None:
    stack.create()
    stack.create(NIGHTLY | {"key": "daily"}, resource="Daily")
    answer = stack.update(NIGHTLY | {"key": "daily"})
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "team-shop/task/nightly")
    assert stack.delete()["Status"] == "SUCCESS" and task("daily")


# Objects of others.


def test_an_existing_task_is_neither_taken_over_nor_deleted(stack: CloudFormation) -> None:
    send("PUT", "/tasks/by-key/nightly", user="team-shop", role=None, json_body={**NIGHTLY, "name": "By hand"})
    answer = stack.create()
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "team-shop/task/nightly")
    assert answer["Reason"] == "key: the task nightly exists already and was not made by a template: delete it, and deploy again."
    assert stack.delete()["Status"] == "SUCCESS", "of the roll-back"
    made = task()
    assert made and made["name"] == "By hand" and stack.declarations.rows == {}


@pytest.mark.parametrize(("other", "resource"), [(OTHER_STACK, "Nightly"), (STACK, "Twin")])
def test_a_task_belongs_to_one_resource(stack: CloudFormation, other: str, resource: str) -> None:
    stack.create()
    answer = stack.create(stack=other, resource=resource)
    assert answer["Reason"] == f"key: the task nightly exists already and belongs to the resource Nightly of the stack {STACK}."
    assert stack.delete(stack=other, resource=resource)["Status"] == "SUCCESS" and task()
    assert stack.update(NIGHTLY, stack=other, resource=resource)["Status"] == "FAILED"


def test_a_retained_declaration_frees_its_key_when_the_task_is_deleted(stack: CloudFormation) -> None:
    first = stack.create()
    send("DELETE", f"/tasks/{first['Data']['Id']}", user="team-shop", role=None)
    assert stack.create(stack=OTHER_STACK)["Status"] == "SUCCESS"
    assert stack.delete()["Status"] == "SUCCESS" and task(), "the first stack declares it no more"


def test_the_owner_is_that_of_the_alias_whatever_an_event_says(stack: CloudFormation) -> None:
    """A forged event gains nothing beyond the right to call the alias."""
    stack.create(NIGHTLY, alias="other", stack=OTHER_STACK)
    for forged in ({"owner": "team-other"}, {"Owner": "team-other"}):
        assert "is not a known field" in stack.create(NIGHTLY | forged, resource="Forged")["Reason"]
    answer = stack.delete(PhysicalResourceId="team-other/task/nightly", StackId=OTHER_STACK)
    assert answer["Status"] == "FAILED" and "belongs to the owner team-other" in answer["Reason"]
    answer = stack.update(NIGHTLY | {"name": "Mine"}, PhysicalResourceId="team-other/task/nightly", StackId=OTHER_STACK)
    assert answer["PhysicalResourceId"] == "team-shop/task/nightly", "a task of the alias's owner"
    other = task(owner="team-other")
    assert other and other["name"] == "Nightly report"
    token = {"ServiceToken": f"{FUNCTION}:other"}
    assert stack.create(NIGHTLY | {"key": "x"} | token, resource="X")["PhysicalResourceId"] == "team-shop/task/x"


@pytest.mark.parametrize("alias", ["live", "$LATEST", "", "7", "punctual-test-Declare"])
def test_a_call_by_no_entry_does_nothing(stack: CloudFormation, alias: str) -> None:
    answer = stack.create(alias=alias)
    assert answer["Status"] == "FAILED" and "exported alias" in answer["Reason"] and stack.api.sent == []
    assert stack.delete(alias=alias)["Status"] == "SUCCESS"


def test_an_entry_whose_owner_does_not_exist_says_so(stack: CloudFormation) -> None:
    assert "names the owner team-gone" in stack.create(alias="nobody")["Reason"]
    assert stack.declarations.rows == {}


def test_a_disabled_owner_declares_nothing(stack: CloudFormation) -> None:
    stack.world.users.set_disabled("team-shop", NOW)
    assert stack.create()["Reason"] == "This account is disabled."


def test_the_audit_trail_has_the_entry_as_actor(stack: CloudFormation) -> None:
    stack.create()
    (entry,) = [each for each in stack.world.trail.rows.values() if each.action == "task.put"]
    assert (entry.actor, entry.owner, entry.object, entry.request_id) == ("template:shop", "team-shop", "nightly", "request-0")


# Properties.


def test_texts_become_what_the_api_expects(stack: CloudFormation) -> None:
    properties = NIGHTLY | {
        "type": "http",
        "payload": {"url": "https://example.com/3", "timeout_seconds": 2.5, "body": '{"count": 3}', "headers": {"x-n": "3"}},
        "max_attempts": 3,
        "retry": {"base_seconds": 2, "on_timeout": False},
        "tags": ["1", "true"],
        "alerts": {"late_after_seconds": 60, "missed": True},
        "notifications": {"webhooks": [{"url": "https://example.com/hook", "format": "slack"}], "after_failures": 2},
    }
    del properties["message"]
    assert stack.create(properties)["Status"] == "SUCCESS", stack.answers[-1]["Reason"]
    made = task()
    assert made and (made["max_attempts"], made["retry"]["on_timeout"], made["tags"]) == (3, False, ["1", "true"])
    assert (made["payload"]["timeout_seconds"], made["payload"]["headers"]) == (2.5, {"x-n": "3"})
    assert made["payload"]["body"] == '{"count": 3}', "a body may be a text"


def test_a_payload_as_json_text_keeps_its_types(stack: CloudFormation) -> None:
    payload = {"url": "https://example.com", "body": {"count": 3, "all": True, "id": "3"}}
    properties = NIGHTLY | {"type": "http", "payload": json.dumps(payload)}
    del properties["message"]
    assert stack.create(properties)["Status"] == "SUCCESS"
    made = task()
    assert made and made["payload"]["body"] == payload["body"]


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"schedul": {"cron": "0 2 * * *"}}, "schedul: is not a known field; did you mean schedule?"),
        ({"Schedule": {"cron": "0 2 * * *"}}, "Schedule: is not a known field; did you mean schedule?"),
        ({"schedule": {"cron": "0 2 * * *", "timezone": "UTC"}}, "schedule.timezone: is not a known field; did you mean time_zone?"),
        ({"max_attempts": "many"}, "max_attempts: must be a whole number"),
        ({"key": "a/b"}, "key: must be 1 to 255 printable characters"),
        ({"key": None}, "key: must be 1 to 255 printable characters"),
        ({"key": "🎉" * 255}, "key: has too many bytes for CloudFormation, which allows 1024 together with the owner"),
    ],
)
def test_a_wrong_property_is_refused_by_its_name(stack: CloudFormation, properties: Json, reason: str) -> None:
    changed = {name: value for name, value in (NIGHTLY | properties).items() if value is not None}
    if properties == {"key": None}:
        reason = "key: is required"
    answer = stack.create(changed)
    assert answer["Status"] == "FAILED" and reason in answer["Reason"]
    assert stack.delete(changed)["Status"] == "SUCCESS" and stack.declarations.rows == {}, "the roll-back"


def test_a_wrong_type_is_refused_and_its_delete_succeeds(stack: CloudFormation) -> None:
    answer = stack.create(type="Tsk")
    assert answer["Reason"] == (
        "Type: must be one of Custom::PunctualTask, Custom::PunctualTarget, Custom::PunctualCalendar, Custom::PunctualMonitor"
    )
    assert stack.delete(type="Tsk")["Status"] == "SUCCESS"


def test_a_delete_with_an_id_that_cloudformation_made_up_deletes_the_task(stack: CloudFormation) -> None:
    """It got no answer, so it makes up an id; the function may have created the task nevertheless."""
    stack.create()
    assert stack.delete(PhysicalResourceId="shop-Nightly-1ABCDEF")["Status"] == "SUCCESS" and task() is None
    assert stack.delete(PhysicalResourceId="shop-Nightly-1ABCDEF")["Status"] == "SUCCESS"


# The other kinds.


def test_a_calendar_is_used_by_a_task_and_deleted_after_it(stack: CloudFormation) -> None:
    days = {"name": "closed", "dates": ["2030-12-24"]}
    made = stack.create(days, resource="Closed", type="Calendar")
    assert (made["PhysicalResourceId"], made["Data"]) == ("team-shop/calendar/closed", {"Id": "closed", "Key": "closed"})
    assert stack.create(NIGHTLY | {"schedule": {"cron": "0 2 * * *", "exclude": ["closed"]}})["Status"] == "SUCCESS"
    refused = stack.delete(days, resource="Closed", type="Calendar")
    assert refused["Status"] == "FAILED" and "nightly" in refused["Reason"].lower()
    assert stack.delete()["Status"] == stack.delete(days, resource="Closed", type="Calendar")["Status"] == "SUCCESS"


def test_a_monitor_answers_its_ping_url_and_hides_it(stack: CloudFormation) -> None:
    made = stack.create(HEARTBEAT, resource="Beat", type="Monitor")
    assert made["Status"] == "SUCCESS" and made["NoEcho"]
    token = made["Data"]["PingUrl"].removeprefix("https://api.example.com/api/v1")
    assert send("POST", token, user=None).status == 200
    changed = stack.update(HEARTBEAT | {"grace_seconds": 60}, resource="Beat", type="Monitor")
    assert changed["Data"] == made["Data"]
    assert stack.delete(HEARTBEAT, resource="Beat", type="Monitor")["Status"] == "SUCCESS"
    assert send("POST", token, user=None).status == 404


def test_only_an_entry_with_targets_declares_named_targets(stack: CloudFormation) -> None:
    answer = stack.create(QUEUE, resource="Orders", type="Target")
    assert answer["Reason"] == "Named targets belong to the whole stage: the entry shop of the option templates needs targets = true."
    assert stack.delete(QUEUE, resource="Orders", type="Target")["Status"] == "SUCCESS"

    def of_platform(kind: str, properties: Json) -> Json:
        return stack.event(kind, properties, resource="Orders", type="Target", alias="platform")

    assert of_platform("Create", QUEUE)["Data"] == {"Id": "orders", "Key": "orders"}
    assert of_platform("Update", QUEUE | {"rate": 5})["Status"] == "SUCCESS"
    found = send("GET", "/targets/orders", role="administrator").data
    assert (found["rate"], found["defaults"]["timeout_seconds"]) == (5, 20)
    send("DELETE", "/targets/orders", role="administrator")
    assert of_platform("Update", QUEUE)["Status"] == "SUCCESS", "it comes back"
    assert of_platform("Delete", QUEUE)["Status"] == "SUCCESS"
    assert send("GET", "/targets/orders", role="administrator").status == 404


# Faults.


def test_a_busy_api_is_asked_again(stack: CloudFormation) -> None:
    stack.api.failures = [Unavailable(), Unavailable("Too many requests.")]
    assert stack.create()["Status"] == "SUCCESS" and task()


def test_an_api_that_stays_busy_is_a_failure_that_the_roll_back_repairs(stack: CloudFormation) -> None:
    began = stack.world.clock.now()
    stack.api.failures = [Unavailable("Storage is busy.")] * 9
    answer = stack.create()
    assert (answer["Status"], answer["Reason"]) == ("FAILED", "Storage is busy.")
    assert stack.world.clock.now() - began <= 20_000
    stack.api.failures = []
    assert stack.delete()["Status"] == "SUCCESS"


def test_a_lost_answer_of_the_api_leaves_a_task_that_the_delete_finds(stack: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = stack.api.send

    def lose(method: str, *rest: Any) -> ApiAnswer:
        answer = whole(method, *rest)
        if method == "PUT":
            raise Unavailable("The answer was lost.")
        return answer

    monkeypatch.setattr(stack.api, "send", lose)
    assert stack.create()["Reason"] == "The answer was lost." and task()
    assert stack.delete()["Status"] == "SUCCESS" and task() is None


def test_an_unexpected_error_is_answered_too(stack: CloudFormation, caplog: pytest.LogCaptureFixture) -> None:
    stack.create()
    stack.api.failures = [RuntimeError("a bug")]
    answer = stack.update(NIGHTLY)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "team-shop/task/nightly")
    assert answer["Reason"].endswith("for the request id request-1.") and "a bug" not in answer["Reason"]


def test_a_process_that_ends_in_the_middle_answers(stack: CloudFormation) -> None:
    stack.api.failures = [SystemExit()]  # type: ignore[list-item]
    with pytest.raises(SystemExit):
        stack.create()
    assert stack.answers[-1]["Status"] == "FAILED"


def test_a_long_reason_is_cut_to_what_cloudformation_takes(stack: CloudFormation) -> None:
    answer = stack.create(NIGHTLY | {f"unknown_{number}_{'é' * 40}": "x" for number in range(200)})
    assert len(stack.bodies[-1]) <= 4_096 and answer["Reason"].endswith(" …")
    assert answer["Reason"].count("is not a known field") > 10


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "https://example.com/", None])
def test_an_event_with_another_address_does_nothing(stack: CloudFormation, url: str | None) -> None:
    event = {"RequestType": "Create", "ResponseURL": url, "ResourceType": "Custom::PunctualTask", "ResourceProperties": NIGHTLY}
    assert declare.handler(event, SimpleNamespace(invoked_function_arn=f"{FUNCTION}:shop")) == {}
    assert stack.answers == stack.api.sent == [] and task() is None


def test_no_log_has_the_address_of_the_answer_or_a_property(stack: CloudFormation, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("lambdas").setLevel(logging.DEBUG)
    stack.api.failures = [RuntimeError(), Unavailable()]
    stack.create(NIGHTLY | {"message": "hush-hush"})
    stack.create(NIGHTLY | {"message": "hush-hush"})
    assert "s3cr3t" not in caplog.text and "hush-hush" not in caplog.text


# The composition.


def test_the_alias_is_the_last_part_of_the_called_arn() -> None:
    settings = Settings(stage="test", template_entries="shop=team-shop platform=team-1=targets", ledger_table="l", api_function="f")
    at = Declaring.__new__(Declaring)
    at.entries = settings.templates
    assert at.entry(f"{FUNCTION}:shop") == TemplateEntry("shop", "team-shop")
    assert at.entry(f"{FUNCTION}:platform") == TemplateEntry("platform", "team-1", targets=True)
    assert at.entry(FUNCTION) is at.entry(f"{FUNCTION}:live") is None


def test_a_physical_id_is_read_as_it_was_written() -> None:
    for kind in ObjectKind:
        id = ObjectId("team-1", kind, "order:17 late")
        assert ObjectId.parse(str(id)) == id
    assert [ObjectId.parse(text) for text in ("team-1/task/", "team-1/job/x", "shop-Nightly-1ABC", "-/-/", "/task/x")] == [None] * 5


class Place(BaseHTTPRequestHandler):
    """The place where CloudFormation waits: it answers with the statuses in `status`, one after the other, and then with 200."""

    status: ClassVar[list[int]] = []
    seen: ClassVar[list[tuple[str, str | None, bytes]]] = []

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers["Content-Type"], body))
        self.send_response(self.status.pop(0) if self.status else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def place() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Place)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Place.seen.clear()
    Place.status.clear()
    yield f"http://127.0.0.1:{server.server_address[1]}/answer?X-Amz-Signature=s3cr3t"
    server.shutdown()
    server.server_close()


def test_an_answer_is_put_with_an_empty_content_type_as_it_is_signed(place: str) -> None:
    StackAnswers().send(place, b"{}")
    assert Place.seen == [("/answer?X-Amz-Signature=s3cr3t", "", b"{}")]


@pytest.mark.parametrize(("status", "calls"), [([503], 2), ([500, 503], 3)])
def test_a_refused_answer_is_sent_again(place: str, status: list[int], calls: int) -> None:
    Place.status[:] = status
    StackAnswers().send(place, b"{}")
    assert len(Place.seen) == calls


@pytest.mark.parametrize("status", [[403] * 3, [307] * 3])
def test_no_redirection_is_followed_and_an_error_has_no_address(place: str, status: list[int], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    Place.status[:] = status
    with pytest.raises(Unavailable) as refused:
        StackAnswers().send(place, b"{}")
    assert "s3cr3t" not in f"{refused.value!r} {refused.value.__cause__!r} {caplog.text}"
    assert {path for path, _, _ in Place.seen} == {"/answer?X-Amz-Signature=s3cr3t"}


def test_a_place_that_cannot_be_reached_is_no_address_in_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    address = f"http://127.0.0.1:9{URL.partition('.com')[2]}"
    with pytest.raises(Unavailable) as refused:
        StackAnswers().send(address, b"{}")
    assert "s3cr3t" not in f"{''.join(traceback.format_exception(refused.value))} {caplog.text}"


class Functions:
    """The client of Lambda, which answers with `answer`."""

    def __init__(self, answer: Json) -> None:
        self.answer, self.called = answer, list[Json]()

    def invoke(self, **arguments: Any) -> Json:
        self.called.append(arguments)
        payload = self.answer.pop("payload", None)
        return self.answer | {"Payload": io.BytesIO(json.dumps(payload).encode())}


def invoked(answer: Json) -> ApiAnswer:
    entry = TemplateEntry("shop", "team-shop")
    client: Any = Functions(answer)
    done = InvokedApi(client, "arn:api:live").send("PUT", "/tasks/by-key/nightly", NIGHTLY, entry, [Scope.TASKS_WRITE], "r-1")
    (called,) = client.called
    sent = json.loads(called["Payload"])
    assert called["FunctionName"] == "arn:api:live" and sent["rawPath"] == "/api/v1/tasks/by-key/nightly"
    assert sent["requestContext"]["authorizer"] == {"template": {"name": "shop", "owner": "team-shop", "scopes": ["tasks:write"]}}
    return done


def test_the_api_is_called_as_its_function() -> None:
    ok = {"statusCode": 201, "body": json.dumps({"success": True, "data": {"id": "t"}})}
    assert invoked({"payload": ok}) == ApiAnswer(201, {"id": "t"})
    refused = {"statusCode": 400, "body": json.dumps({"success": False, "error": {"message": "name: is required"}})}
    assert invoked({"payload": refused}) == ApiAnswer(400, {}, "name: is required")


@pytest.mark.parametrize(
    "answer",
    [
        {"payload": {"errorMessage": "timed out"}, "FunctionError": "Unhandled"},
        {"payload": {"statusCode": 503, "body": json.dumps({"error": {"message": "Storage is busy."}})}},
        {"payload": {"statusCode": 429, "body": json.dumps({"error": {"message": "Too many."}})}},
    ],
)
def test_an_answer_that_another_try_may_change_is_unavailable(answer: Json) -> None:
    with pytest.raises(Unavailable):
        invoked(answer)


@pytest.mark.parametrize("path", ["/health", "/docs"])
def test_an_entry_has_no_open_routes(stack: CloudFormation, path: str) -> None:
    answer = stack.api.send("GET", path, None, TemplateEntry("shop", "team-shop"), [Scope.TASKS_READ], "r")
    assert answer.status == 404


def test_an_entry_has_its_scopes_and_no_others(stack: CloudFormation) -> None:
    entry = TemplateEntry("shop", "team-shop")

    def status(method: str, path: str, body: Json | None, *scopes: Scope) -> int:
        return stack.api.send(method, path, body, entry, scopes, "r").status

    assert status("POST", "/targets", QUEUE, *OF_OWNER) == status("GET", "/jobs", None, *OF_OWNER) == 403
    assert status("GET", "/tasks", None, *OF_OWNER) == 200
    assert status("GET", "/tasks", None) == 403


def test_a_claim_of_this_name_makes_nobody_an_entry(world: World) -> None:
    """Claims are in the token of a person, and the authorizer of `declare` is beside them."""
    forged = event("GET", "/api/v1/tasks", user="sub-ann")
    world.be("sub-ann", "ann", Role.USER)
    claims = forged["requestContext"]["authorizer"]["jwt"]["claims"]
    claims["template"] = {"name": "shop", "owner": "team-shop", "scopes": ["admin"]}
    assert by_credential(forged) == forged
