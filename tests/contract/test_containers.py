"""The containers of a running local AWS: a policy allows a call of ECS if AWS would allow it, and tasks end by themselves."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import running
from tests.system import containers

pytestmark = pytest.mark.long
PASSED_TO = "ecs-tasks.amazonaws.com"
Statements = dict[str, dict[str, Any]]


class Local:
    """A local AWS that enforces IAM, with a cluster, another one, and a task definition that passes a role."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.iam, self.ecs = (boto3.client(each, endpoint_url=address) for each in ("iam", "ecs"))
        trust = {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": {"Service": PASSED_TO}, "Action": "sts:AssumeRole"}],
        }
        self.role = self.iam.create_role(RoleName="tasks", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
        self.cluster, self.other = containers.cluster(self.ecs), containers.cluster(self.ecs)
        self.definition = containers.task_definition(self.ecs, taskRoleArn=self.role)
        self.iam.create_user(UserName="ada")
        key = self.iam.create_access_key(UserName="ada")["AccessKey"]
        self.caller = boto3.client(
            "ecs", endpoint_url=address, aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"]
        )

    def least(self) -> Statements:
        """The statements that a caller needs at least, by action."""

        def allow(action: str, resource: str, test: str, key: str, value: str) -> dict[str, Any]:
            return {"Effect": "Allow", "Action": action, "Resource": resource, "Condition": {test: {key: value}}}

        tasks = f"{self.cluster.replace(':cluster/', ':task/')}/*"
        return {
            "run": allow("ecs:RunTask", self.definition, "ArnEquals", "ecs:cluster", self.cluster),
            "pass": allow("iam:PassRole", self.role, "StringEquals", "iam:PassedToService", PASSED_TO),
            "stop": allow("ecs:StopTask", tasks, "ArnEquals", "ecs:cluster", self.cluster),
            "describe": allow("ecs:DescribeTasks", tasks, "ArnLike", "ecs:cluster", self.cluster),
        }

    def refused(self, statements: Statements) -> set[str]:
        """The calls that AWS refuses a caller with these statements."""
        document = json.dumps({"Version": "2012-10-17", "Statement": list(statements.values())})
        self.iam.put_user_policy(UserName="ada", PolicyName="p", PolicyDocument=document)
        task = self.run(self.ecs)
        foreign = self.run(self.ecs, cluster=self.other)
        calls: dict[str, Callable[[], Any]] = {
            "run": lambda: self.run(self.caller),
            "run elsewhere": lambda: self.run(self.caller, cluster=self.other),
            "stop": lambda: self.caller.stop_task(cluster=self.cluster, task=task),
            "stop elsewhere": lambda: self.caller.stop_task(cluster=self.other, task=foreign),
            "describe": lambda: self.caller.describe_tasks(cluster=self.cluster, tasks=[task, task.rpartition("/")[2]]),
            "describe elsewhere": lambda: self.caller.describe_tasks(cluster=self.cluster, tasks=[task, foreign]),
        }
        return {name for name, call in calls.items() if denied(call)}

    def run(self, caller: Any, **fields: Any) -> str:
        return str(caller.run_task(**{"cluster": self.cluster, "taskDefinition": self.definition} | fields)["tasks"][0]["taskArn"])


def denied(call: Callable[[], Any]) -> bool:
    try:
        call()
    except ClientError as error:
        assert error.response["Error"]["Code"] == "AccessDeniedException", error
        return True
    return False


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, credentials: None) -> Iterator[Local]:
    with running(tmp_path_factory.mktemp("aws"), AUTH="true") as address:
        yield Local(address)


ELSEWHERE = {"run elsewhere", "stop elsewhere", "describe elsewhere"}
BROKEN: list[tuple[Callable[[Local, Statements], Any], set[str]]] = [
    (lambda aws, all: None, set()),
    (lambda aws, all: all["run"].update(Resource=aws.definition.replace(":1", ":2")), {"run"}),
    (lambda aws, all: all["run"].update(Resource=aws.cluster, Condition={}), {"run"}),
    (lambda aws, all: all["run"].update(Condition={"ArnEquals": {"ecs:cluster": f"{aws.cluster}-2"}}), {"run"}),
    (lambda aws, all: all.pop("pass"), {"run"}),
    (lambda aws, all: all["pass"].update(Condition={"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}), {"run"}),
    (lambda aws, all: [all[each].update(Resource=aws.cluster) for each in ("stop", "describe")], {"stop", "describe"}),
]


@pytest.mark.parametrize(("change", "refused"), BROKEN)
def test_a_policy_allows_a_call_of_ecs_if_aws_would_allow_it(
    local: Local, change: Callable[[Local, Statements], Any], refused: set[str]
) -> None:
    statements = local.least()
    change(local, statements)
    assert local.refused(statements) == refused | ELSEWHERE


def test_a_task_ends_by_itself_and_its_event_is_sent(local: Local) -> None:
    events, queues = (boto3.client(each, endpoint_url=local.address) for each in ("events", "sqs"))
    url = queues.create_queue(QueueName="ends")["QueueUrl"]
    pattern = {"source": ["aws.ecs"], "detail": {"startedBy": [{"prefix": "punctual/"}], "lastStatus": ["STOPPED"]}}
    events.put_rule(Name="ends", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="ends", Targets=[{"Id": "1", "Arn": "arn:aws:sqs:us-east-1:000000000000:ends"}])
    exits = {"containerOverrides": [{"name": "report", "environment": [{"name": "EXIT_AFTER", "value": "0.2"}]}]}
    task = local.run(local.ecs, startedBy="punctual/job/1", overrides=exits)
    until = time.monotonic() + 300
    while not (found := queues.receive_message(QueueUrl=url, WaitTimeSeconds=5).get("Messages", ())):
        assert time.monotonic() < until, "no event came"
    assert json.loads(found[0]["Body"])["resources"] == [task]
