"""Jobs and tasks that reach AWS: refused where they are made, unless the stage allows what they name."""

from typing import Any

import pytest

from scheduler import targets
from scheduler.targets import Reach
from tests.lambdas.gateway import World, send
from tests.unit.fake_calls import QUEUE, REACH
from tests.unit.test_target_aws import MINIMAL

FIELD = {name: next(iter(payload)) for name, payload in MINIMAL.items() if name != "email"}
NONE = "is not among what jobs of this stage may reach; allowed: none: deploy with -c allowed_targets=..."


def asked(name: str) -> dict[str, Any]:
    return {"type": name, "payload": MINIMAL[name]}


@pytest.mark.parametrize("name", FIELD)
def test_an_arn_that_is_not_allowed_is_refused_by_field(world: World, name: str) -> None:
    for path, more in (("/me/jobs", {}), ("/tasks", {"name": "mine", "schedule": {"rate": "1 hour"}})):
        answered = send("POST", path, json_body=asked(name) | more)
        assert (answered.status, answered.fields) == (400, {f"payload.{FIELD[name]}": NONE})
    assert world.jobs.rows == {}


@pytest.mark.parametrize("name", MINIMAL)
def test_what_is_allowed_is_accepted(world: World, name: str) -> None:
    world.reach = REACH
    answered = send("POST", "/me/jobs", json_body=asked(name))
    assert (answered.status, answered.data["type"], answered.data["payload"]) == (201, name, MINIMAL[name])
    assert send("POST", "/tasks", json_body=asked(name) | {"name": "mine", "schedule": {"rate": "1 hour"}}).status == 201


def test_the_rule_tells_what_is_allowed_of_that_service(world: World) -> None:
    world.reach = Reach(("arn:aws:sqs:*:*:books-*", "arn:aws:sns:*:*:news"))
    answered = send("POST", "/me/jobs", json_body=asked("sqs"))
    assert answered.fields["payload.queue"].endswith("allowed: arn:aws:sqs:*:*:books-*")


def test_without_a_sender_no_e_mail_is_accepted(world: World) -> None:
    answered = send("POST", "/me/jobs", json_body=asked("email"))
    assert answered.status == 400 and "no sender" in answered.fields["payload"]


def test_one_of_a_batch_is_refused_and_the_others_are_not(world: World) -> None:
    answered = send("POST", "/me/jobs/batch", json_body={"jobs": [asked("sqs"), {"message": "m"}]})
    assert answered.status == 207
    assert answered.data["results"][0]["error"]["details"][0]["field"] == "jobs[0].payload.queue"


def test_a_job_cannot_be_changed_to_what_is_not_allowed(world: World) -> None:
    world.reach = Reach((QUEUE,))
    job = send("POST", "/me/jobs", json_body=asked("sqs") | {"execute_at": "2026-11-20T12:00:00Z"}).data
    changed = send("PATCH", f"/me/jobs/{job['id']}", json_body={"payload": {"queue": f"{QUEUE}-2", "body": "b"}})
    assert (changed.status, list(changed.fields)) == (400, ["payload.queue"])


def test_all_types_are_listed_with_their_schemas_and_described_in_openapi(world: World) -> None:
    listed = {each["type"]: each for each in send("GET", "/task-types").data["task_types"]}
    assert list(listed) == targets.names()
    for name, payload in MINIMAL.items():
        schema = listed[name]["payload_schema"]
        assert payload.keys() <= schema["properties"].keys() and set(schema["required"]) <= payload.keys()
        assert all(field.get("description") for field in schema["properties"].values()), name
    schemas = send("GET", "/openapi.json").body["components"]["schemas"]
    assert {f"{name.title()}Payload" for name in targets.names()} <= schemas.keys()
