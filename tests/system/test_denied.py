"""What a missing grant does on the deployed stack: one is taken away from each function, and each denial is found where the tests look.

That is what every system test leans on: `denials` has to be empty at the end of its session, whatever else became of a denied call.
Fetch has no row: it may write its log and nothing else, and the local AWS asks no role for that.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from local.client import Client
from local.home import Home
from local.receiver import Receiver
from local.stack import up
from scheduler.model.job import JobKey, Lane, Message
from scheduler.storage import messages
from tests.system.conftest import System, ended, until

pytestmark = pytest.mark.apart

TAKEN = {
    "Api": ("cognito-idp:ListUsers", "userpool/"),
    "Tick": ("dynamodb:Query", "StorageLedger"),
    "Dispatch": ("sns:PublishBatch", "LanesTopic"),  # as the local AWS calls `sns:Publish`
    "ExecuteOneTime": ("dynamodb:PartiQLUpdate", "StorageJobs"),
    "ExecuteRecurring": ("dynamodb:UpdateItem", "StorageJobs"),
    "ExecuteRetry": ("dynamodb:UpdateItem", "StorageJobs"),
    "Bury": ("dynamodb:BatchGetItem", "StorageJobs"),
    "Plan": ("dynamodb:Query", "StorageTasks"),
    "Redrive": ("dynamodb:Query", "StorageJobs"),
    "Project": ("dynamodb:UpdateItem", "StorageCounters"),
    "Notify": ("dynamodb:BatchGetItem", "StorageNotices"),
    "Scale": ("dynamodb:Query", "StorageCounters"),
}


@pytest.fixture
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A stack of its own: denials are what it is for."""
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("denied"))))
    with Receiver() as receiver, up(home, enforce_iam=True) as stack:
        yield System(stack, receiver)


def role_of(system: System, function: str) -> str:
    functions = system.aws("lambda").get_paginator("list_functions").paginate()
    (role,) = [each["Role"] for page in functions for each in page["Functions"] if f"-{function}Function" in each["FunctionName"]]
    return str(role.rpartition("/")[2])


def take(system: System, role: str, action: str, resource: str) -> None:
    """Take one action on one resource away from a role."""
    iam = system.aws("iam")
    taken = 0
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        document = document if isinstance(document, dict) else json.loads(unquote(document))
        for statement in document["Statement"]:
            actions, resources = (_listed(statement[key]) for key in ("Action", "Resource"))
            if action in actions and any(resource in each for each in resources):
                assert all(resource in each for each in resources), "it would take more than the one"
                statement["Action"] = [each for each in actions if each != action]
                taken += 1
        document["Statement"] = [each for each in document["Statement"] if each["Action"]]
        iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))
    assert taken, f"{role} may not {action} on {resource}"


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def provoke(system: System, client: Client) -> None:
    """Have each of the others do what it may not do any more. Tick, plan and scale come by themselves every minute."""
    assert client.send("GET", "/users")[0] >= 500
    client.post_jobs([{"message": "more than may go directly: the others go by dispatch"}] * 300)
    client.create_task("every two seconds", "log", {"message": "m"}, {"rate": "2 seconds"})
    client.request("POST", "/dead-letters/redrive", {"type": "http", "rate": 10})
    sqs = system.aws("sqs")
    nobody = JobKey(client.user_id(), "01J00000000000000000000000")
    for lane, name in ((Lane.RETRY, "LanesRetry"), (Lane.ONE_TIME, "LanesOneTimeDead")):
        (url,) = [each for each in sqs.list_queues()["QueueUrls"] if f"-{name}" in each and each.count("Dead") == name.count("Dead")]
        sqs.send_message(QueueUrl=url, MessageBody=messages.encode(Message(nobody, 1, lane, 0)))


def test_a_grant_removed_from_each_function_is_a_denial_in_its_log(apart: System) -> None:
    client = apart.client()
    failing = client.create_task(
        "fails",
        "http",
        {"method": "POST", "url": apart.receiver.url("/status/404/denied")},
        {"cron": "0 0 1 1 *"},
        notifications={"emails": ["denied@example.com"]},
    )
    (dead,) = ended(client, [client.request("POST", f"/tasks/{failing['id']}/run", {})], 60)
    assert (dead["status"], apart.denials()) == ("failed", [])

    roles = {function: role_of(apart, function) for function in TAKEN}
    take(apart, roles["Notify"], *TAKEN["Notify"])  # first: news of a job that no executor can settle never come
    ended(client, [client.request("POST", f"/tasks/{failing['id']}/run", {})], 60)
    until(60, apart.denials)
    for function in TAKEN.keys() - {"Notify"}:
        take(apart, roles[function], *TAKEN[function])
    provoke(apart, client)

    expected = {f"assumed-role/{roles[function]} {action}" for function, (action, _) in TAKEN.items()}

    def untold() -> set[str]:
        return expected - {f"{line.rpartition('/')[0]} {line.split()[-1]}" for line in apart.denials()}

    with suppress(AssertionError):
        until(150, lambda: not untold())
    assert untold() == set()
