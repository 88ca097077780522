"""Targets in other accounts of the local AWS with IAM enforced, by roles whose trust policies are those of docs/guides/other-accounts.md.

The stack is one of its own, since the option changes what every job may do.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from punctual import ApiError, Punctual

from local.aws import ACCOUNT, REGION
from local.home import Home
from local.receiver import Receiver
from local.stack import up
from tests.infra.conftest import Synthesized, as_list, synthesized
from tests.system.conftest import System, ended
from tests.system.test_any_action import EXECUTORS, apply, clients_of, resolved
from tests.system.test_denied import role_of

pytestmark = pytest.mark.apart

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "other-accounts.md"
OTHER, OF_ANN = "210987654321", "310987654321"  # all owners may use the first account, only ann the second
QUEUE, TABLE = "orders", "orders"
UPDATE: dict[str, Any] = {
    "service": "dynamodb",
    "action": "UpdateItem",
    "parameters": {"TableName": TABLE, "Key": {"id": {"S": "{{job.id}}"}}},
}


@dataclass(frozen=True)
class Reaching:
    """The stack, and two of its users. The trust policies name the external id of ann alone."""

    system: System
    ann: Punctual
    bob: Punctual

    def there(self, account: str, service: str) -> Any:
        """Return a client of another account's root user."""
        return boto3.client(  # type: ignore[call-overload]
            service,
            endpoint_url=self.system.stack.aws.endpoint,
            region_name=REGION,
            aws_access_key_id=account,
            aws_secret_access_key="test",
        )

    def messages(self, account: str) -> list[str]:
        """Return the messages in the queue of an account, and delete them."""
        sqs = self.there(account, "sqs")
        url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for each in found:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return [each["Body"] for each in found]


def queue_of(account: str) -> str:
    return f"arn:aws:sqs:{REGION}:{account}:{QUEUE}"


def role_in(account: str) -> str:
    return f"arn:aws:iam::{account}:role/punctual-targets"


@pytest.fixture(scope="module")
def reaching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reaching]:
    """A separate stack with the option, and the roles, queues and tables of two other accounts."""
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("accounts"))))
    with Receiver() as receiver, up(home, enforce_iam=True) as stack:
        system = System(stack, receiver)
        found = Reaching(system, system.client("ann"), system.client("bob"))
        made = synthesized.__wrapped__(
            "local",
            allowed_targets=tuple(map(queue_of, (OTHER, OF_ANN))),
            allowed_actions=({"action": "dynamodb:UpdateItem", "resources": (f"arn:aws:dynamodb:*:{OTHER}:table/{TABLE}",)},),
            accounts=(
                {"id": OTHER, "role": role_in(OTHER)},
                {"id": OF_ANN, "role": role_in(OF_ANN), "owners": (found.ann.me().id,)},
            ),
        )
        apply(system, made)
        for executor in EXECUTORS:
            document = {"Version": "2012-10-17", "Statement": resolved(on_sts(made, executor), system)}
            system.aws("iam").put_role_policy(
                RoleName=role_of(system, executor), PolicyName="Accounts", PolicyDocument=json.dumps(document)
            )
        for account in (ACCOUNT, OTHER, OF_ANN):
            make(found, account)
        yield found


def on_sts(made: Synthesized, executor: str) -> list[dict[str, Any]]:
    """The statements on STS that the template gives an executor."""
    role = made.all("IAM::Role")[made.functions()[executor]["Role"]["Fn::GetAtt"][0]]
    statements = [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]]
    return [each for each in statements if "sts:AssumeRole" in as_list(each["Action"])]


def make(found: Reaching, account: str) -> None:
    """Make a queue, a table and the role of the guide in an account."""
    iam = found.there(account, "iam")
    found.there(account, "sqs").create_queue(QueueName=QUEUE)
    found.there(account, "dynamodb").create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    iam.create_role(RoleName="punctual-targets", AssumeRolePolicyDocument=json.dumps(trust_policy(found.ann.me().id)))
    rights = [("sqs:SendMessage", queue_of(account)), ("dynamodb:UpdateItem", f"arn:aws:dynamodb:{REGION}:{account}:table/{TABLE}")]
    statements = [{"Effect": "Allow", "Action": action, "Resource": on} for action, on in rights]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_role_policy(RoleName="punctual-targets", PolicyName="Targets", PolicyDocument=document)


def trust_policy(owner: str) -> Any:
    """The trust policy of the guide, for an owner of the local stage."""
    text = next(block for block in re.findall(r"```json\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "sts:ExternalId" in block)
    text = text.replace("3f1c7a52-0000-4000-8000-000000000001", owner).replace("123456789012", ACCOUNT)
    return json.loads(text.replace("punctual/prod/", "punctual/local/").replace("punctual-prod-", "punctual-local-"))


def ran(client: Punctual, type: str, payload: dict[str, Any]) -> dict[str, Any]:
    (job,) = ended(client, [client.jobs.create(type, payload).raw], 60)
    return job


@pytest.mark.parametrize("account", [OTHER, OF_ANN])
def test_a_job_reaches_a_queue_of_another_account_by_its_role(reaching: Reaching, account: str) -> None:
    job = ran(reaching.ann, "sqs", {"queue": queue_of(account), "body": f"to {account}"})
    assert job["status"] == "succeeded", job["reason"]
    assert reaching.messages(account) == [f"to {account}"] and reaching.messages(ACCOUNT) == []


def test_an_aws_job_is_called_in_the_account_that_it_names(reaching: Reaching) -> None:
    job = ran(reaching.ann, "aws", UPDATE | {"account": OTHER})
    assert job["status"] == "succeeded", job["reason"]
    key = {"id": {"S": job["id"]}}
    assert ["Item" in reaching.there(account, "dynamodb").get_item(TableName=TABLE, Key=key) for account in (OTHER, ACCOUNT, OF_ANN)] == [
        True,
        False,
        False,
    ]
    job = ran(reaching.ann, "aws", UPDATE | {"account": OTHER, "parameters": UPDATE["parameters"] | {"TableName": "secrets"}})
    assert job["status"] == "failed" and f"see the policies of the role that the option accounts has for {OTHER}" in job["reason"], job
    assert ran(reaching.ann, "aws", UPDATE)["status"] == "failed", "the executors have no right to that table in their own account"


@pytest.mark.parametrize(("type", "payload"), [("sqs", {"queue": queue_of(OTHER), "body": "b"}), ("aws", UPDATE | {"account": OTHER})])
def test_an_owner_whose_external_id_the_role_does_not_trust_is_refused(reaching: Reaching, type: str, payload: dict[str, Any]) -> None:
    job = ran(reaching.bob, type, payload)
    assert (job["status"], len(job["attempts"])) == ("failed", 1), job["reason"]
    assert f"{role_in(OTHER)} with the external id punctual/local/{reaching.bob.me().id} was refused; check that the role" in job["reason"]
    assert reaching.messages(OTHER) == []


@pytest.mark.parametrize(
    ("type", "payload", "field"),
    [("sqs", {"queue": queue_of(OF_ANN), "body": "b"}, "payload.queue"), ("aws", UPDATE | {"account": OF_ANN}, "payload.account")],
)
def test_the_role_of_another_owner_is_refused_at_creation(reaching: Reaching, type: str, payload: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiError, match="which the option accounts opens to other owners only") as refused:
        reaching.bob.jobs.create(type, payload)
    assert refused.value.status == 400 and field in str(refused.value)


@pytest.mark.parametrize("account", [ACCOUNT, "410987654321"])
def test_an_executor_assumes_only_the_listed_roles(reaching: Reaching, account: str) -> None:
    """Each of these roles trusts everybody."""
    iam = reaching.there(account, "iam")
    everybody = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName="open", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [everybody]}))
    sts = clients_of(reaching.system, role_of(reaching.system, "ExecuteOneTime"))("sts")
    call = {"RoleArn": f"arn:aws:iam::{account}:role/open", "RoleSessionName": "test", "ExternalId": "punctual/local/x"}
    assert reaching.there(ACCOUNT, "sts").assume_role(**call), "the role admits everybody who has the right"
    with pytest.raises(ClientError, match="AccessDenied"):
        sts.assume_role(**call)
    with pytest.raises(ClientError, match="AccessDenied"):
        sts.get_session_token()
