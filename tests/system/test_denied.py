"""Missing grants on the deployed stack: removes a grant from each function, and checks that `denials` reports each denied call.

Every system test relies on this: `denials` must be empty at the end of its session, even if a function handles the denied call.
Fetch has no row: it may only write its log, and the local AWS requires no grant for that.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from punctual import Punctual

from local.home import Home
from local.receiver import Receiver
from local.stack import up
from scheduler.model.job import JobKey, Lane, Message
from scheduler.storage import messages
from tests.system.conftest import System, ended, sent, until

pytestmark = pytest.mark.apart

TAKEN = {
    "Api": ("cognito-idp:AdminCreateUser", "userpool/"),
    "Tick": ("dynamodb:Query", "StorageLedger"),
    "Dispatch": ("sns:PublishBatch", "LanesTopic"),  # as the local AWS calls `sns:Publish`
    "ExecuteOneTime": ("dynamodb:PartiQLUpdate", "StorageJobs"),
    "ExecuteRecurring": ("dynamodb:UpdateItem", "StorageJobs"),
    "ExecuteRetry": ("dynamodb:UpdateItem", "StorageJobs"),
    "Bury": ("dynamodb:BatchGetItem", "StorageJobs"),
    "Plan": ("dynamodb:Query", "StorageTasks"),
    "Project": ("dynamodb:UpdateItem", "StorageCounters"),
    "Notify": ("dynamodb:BatchGetItem", "StorageNotices"),
    "Scale": ("dynamodb:Query", "StorageCounters"),
}


@pytest.fixture
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A separate stack: this test provokes denials."""
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("denied"))))
    with Receiver() as receiver, up(home, enforce_iam=True) as stack:
        yield System(stack, receiver)


def role_of(system: System, function: str) -> str:
    functions = system.aws("lambda").get_paginator("list_functions").paginate()
    (role,) = [each["Role"] for page in functions for each in page["Functions"] if f"-{function}Function" in each["FunctionName"]]
    return str(role.rpartition("/")[2])


def take(system: System, role: str, action: str, resource: str) -> None:
    """Remove one action on one resource from the policies of a role."""
    iam = system.aws("iam")
    taken = 0
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        document = document if isinstance(document, dict) else json.loads(unquote(document))
        for statement in document["Statement"]:
            actions, resources = (_listed(statement[key]) for key in ("Action", "Resource"))
            if action in actions and any(resource in each for each in resources):
                assert all(resource in each for each in resources), "this would remove the action on other resources as well"
                statement["Action"] = [each for each in actions if each != action]
                taken += 1
        document["Statement"] = [each for each in document["Statement"] if each["Action"]]
        iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))
    assert taken, f"{role} may not {action} on {resource}"


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def provoke(system: System, client: Punctual) -> None:
    """Make each of the other functions use its removed grant. Tick, plan and scale run every minute anyway."""
    assert sent(client, "POST", "/users", {"username": "denied", "password": "Correct-horse-1"})[0] >= 500
    client.jobs.create_many([{"message": "more than may go directly: the others go by dispatch"}] * 300)
    client.tasks.create("every two seconds", "log", {"message": "m"}, schedule={"rate": "2 seconds"})
    sqs = system.aws("sqs")
    nobody = JobKey(client.me().id, "01J00000000000000000000000")
    for lane, name in ((Lane.RETRY, "LanesRetry"), (Lane.ONE_TIME, "LanesDead")):
        (url,) = [each for each in sqs.list_queues()["QueueUrls"] if f"-{name}" in each and each.count("Dead") == name.count("Dead")]
        sqs.send_message(QueueUrl=url, MessageBody=messages.encode(Message(nobody, 1, lane, 0)))


def test_a_grant_removed_from_each_function_is_a_denial_in_its_log(apart: System) -> None:
    client = apart.client()
    failing = client.tasks.create(
        "fails",
        "http",
        {"method": "POST", "url": apart.receiver.url("/status/404/denied")},
        schedule={"cron": "0 0 1 1 *"},
        notifications={"emails": ["denied@example.com"]},
    ).raw
    (dead,) = ended(client, [client.request("POST", f"/tasks/{failing['id']}/run", {})], 60)
    assert (dead["status"], apart.denials()) == ("failed", [])

    roles = {function: role_of(apart, function) for function in TAKEN}
    take(apart, roles["Notify"], *TAKEN["Notify"])  # first: without its grants, no executor settles a job, and no notice is sent
    ended(client, [client.request("POST", f"/tasks/{failing['id']}/run", {})], 60)
    until(60, apart.denials)
    for function in TAKEN.keys() - {"Notify"}:
        take(apart, roles[function], *TAKEN[function])
    provoke(apart, client)

    expected = {f"assumed-role/{roles[function]} {action}" for function, (action, _) in TAKEN.items()}

    def unreported() -> set[str]:
        return expected - {f"{line.rpartition('/')[0]} {line.split()[-1]}" for line in apart.denials()}

    with suppress(AssertionError):
        until(150, lambda: not unreported())
    assert unreported() == set()
