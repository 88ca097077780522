"""The composition root of declare: the API as it calls it, the place where CloudFormation waits, and the schemas of requests."""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import urllib3

from lambdas._clock import SystemClock
from lambdas._settings import Settings
from lambdas.rest.calendar_models import CalendarRequest
from lambdas.rest.door import TEMPLATE
from lambdas.rest.models import Request
from lambdas.rest.monitor_models import MonitorRequest
from lambdas.rest.paths import BASE
from lambdas.rest.resolution import payload_of
from lambdas.rest.target_models import TargetRequest
from lambdas.rest.task_models import TaskRequest
from scheduler.declarations.conversion import converted
from scheduler.declarations.declare import DeclarePorts
from scheduler.model.account import Scope
from scheduler.model.declaration import ObjectKind, TemplateEntry
from scheduler.model.errors import Unavailable
from scheduler.storage.aws import clients, invocations
from scheduler.storage.aws.declarations import DynamoDeclarations
from scheduler.storage.ports import ApiAnswer
from scheduler.targets import registry

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

ANSWER_S = 29  # the time-out of the API's function
TRIES = 3
MODELS: dict[ObjectKind, type[Request]] = {
    ObjectKind.TASK: TaskRequest,
    ObjectKind.TARGET: TargetRequest,
    ObjectKind.CALENDAR: CalendarRequest,
    ObjectKind.MONITOR: MonitorRequest,
}
OF_TYPE = {"payload": "type", "defaults": "kind"}  # fields with the content of a job, and the fields that name its type

logging.getLogger("urllib3").setLevel(logging.WARNING)  # below that, it logs paths, which are signed


class InvokedApi:
    """The port `OwnApi`. An event names its caller, so IAM allows only this function and API Gateway to send one."""

    def __init__(self, client: "LambdaClient", function: str) -> None:
        self._client, self._function = client, function

    def send(
        self, method: str, path: str, body: Mapping[str, Any] | None, entry: TemplateEntry, scopes: Sequence[Scope], request_id: str
    ) -> ApiAnswer:
        event = request(method, path, body, entry, scopes, request_id)
        return answered(invocations.invoke(self._client, self._function, event))


def request(
    method: str, path: str, body: Mapping[str, Any] | None, entry: TemplateEntry, scopes: Sequence[Scope], request_id: str
) -> dict[str, Any]:
    """The event of a request, as API Gateway makes it, with an authorizer that API Gateway does not have."""
    acting = {"name": entry.name, "owner": entry.owner, "scopes": [str(each) for each in scopes]}
    text = None if body is None else json.dumps(body)
    return {
        "version": "2.0",
        "routeKey": f"{method} {BASE}/{{proxy+}}",
        "rawPath": BASE + path,
        "rawQueryString": "",
        "headers": {} if text is None else {"content-type": "application/json", "content-length": str(len(text.encode()))},
        "requestContext": {
            "requestId": request_id,
            "stage": "$default",
            "http": {"method": method, "path": BASE + path, "sourceIp": ""},
            "authorizer": {TEMPLATE: acting},
        },
        "body": text,
        "isBase64Encoded": False,
    }


def answered(answer: Mapping[str, Any]) -> ApiAnswer:
    """Read an answer. Raises Unavailable for one that another try may change."""
    status, found = int(answer["statusCode"]), json.loads(answer.get("body") or "{}")
    message = str(found.get("error", {}).get("message", ""))
    if status in (429, 503):
        raise Unavailable(message)
    return ApiAnswer(status, found.get("data") or {}, message)


class StackAnswers:
    """The port `Answers`. It follows no redirection, and reads nothing of what comes back."""

    def __init__(self) -> None:
        self._pool = urllib3.PoolManager(timeout=5, retries=False)  # a retry of its own would log the address

    def send(self, url: str, body: bytes) -> None:
        """Send an answer, up to three times. Raises Unavailable."""
        for _ in range(TRIES):
            try:
                answer = self._pool.request("PUT", url, body=body, headers={"Content-Type": ""}, redirect=False)
            except urllib3.exceptions.HTTPError:
                continue
            if answer.status < 300:
                return
        raise Unavailable("CloudFormation could not be answered")


def fields(kind: ObjectKind, properties: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request from the properties of a resource."""
    found: dict[str, Any] = converted(properties, _schema(kind))
    for name, type_field in OF_TYPE.items():
        if isinstance(found.get(name), Mapping) and found.get(type_field) in registry.names():
            found[name] = converted(found[name], payload_of(found[type_field]).json_schema())
    return found


@cache
def _schema(kind: ObjectKind) -> dict[str, Any]:
    return MODELS[kind].model_json_schema()


class Declaring:
    """The ports, and the entry of each alias."""

    def __init__(self, settings: Settings) -> None:
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        self.entries = settings.templates
        self.ports = DeclarePorts(
            DynamoDeclarations(clients.dynamodb(), settings.ledger_table),
            InvokedApi(clients.once("lambda", None, ANSWER_S), settings.api_function),
            StackAnswers(),
            fields,
            SystemClock(),
            settings.api_url.replace("{endpoint}", endpoint),
            endpoint,
        )

    def entry(self, invoked: str) -> TemplateEntry | None:
        """The entry of the alias in the ARN that was called. Lambda names it: the caller cannot."""
        return self.entries.get(invoked.rpartition(":")[2])


@cache
def declaring() -> Declaring:
    return Declaring(Settings.parse(os.environ))
