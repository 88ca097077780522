"""The port `Calls` on boto3: what the targets ask of AWS, and its refusals sorted into those that pass and those that stay.

A client is made when it is first needed, one per service, region and time-out: its time-out cannot be chosen per call.
"""

import base64
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, EndpointConnectionError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection
from botocore.parsers import ResponseParserError

from scheduler.storage.aws import clients, errors
from scheduler.targets import arns
from scheduler.targets.calls import Execution, Invoked, Left, Mail, Message, Refused

T = TypeVar("T")
QUICK = 5.0  # seconds that any call but one that waits for a function may take
READ_TIMEOUTS = (1.0, QUICK, 30.0, 120.0, 900.0)  # the least that covers what is left is taken
PASSING = errors.TRANSIENT | {
    "AWS.SimpleQueueService.RequestThrottled",
    "CodeArtifactUserPendingException",
    "EC2ThrottledException",
    "ENILimitReachedException",
    "ExecutionLimitExceeded",
    "KMSThrottlingException",
    "MaxSendingRateExceeded",
    "ResourceConflictException",  # a function that is just being changed
    "ResourceNotReadyException",
    "SnapStartNotReadyException",
}
UNSPOKEN = ("Signature", "Token")  # AWS's words on these may hold what was signed
AWS_EXISTS = "ExecutionAlreadyExists"


class AwsCalls:
    """The port `Calls`. `options` go to every client, as of `boto3.client`."""

    def __init__(self, sender: str, **options: Any) -> None:
        self._sender = sender
        self._options = options
        self._clients: dict[tuple[str, str | None, float], Any] = {}
        self._lock = threading.Lock()  # a boto3 session must not make two clients at once

    def invoke(self, function_arn: str, event: str, *, wait: bool, left: Left) -> Invoked:
        how = {"InvocationType": "RequestResponse", "LogType": "Tail"} if wait else {"InvocationType": "Event"}

        def call(client: Any) -> Invoked:
            answer = client.invoke(FunctionName=function_arn, Payload=event.encode(), **how)
            log = base64.b64decode(answer.get("LogResult", "")).decode(errors="replace").rstrip()
            return Invoked(answer["Payload"].read().decode(errors="replace"), error="FunctionError" in answer, log=log or None)

        # No second try: where the first was cut, the function may be at work.
        return self._call("lambda", arns.region(function_arn), call, left, longest=None if wait else QUICK, again=False)

    def send(self, queue_arn: str, message: Message, *, left: Left) -> str:
        asked = {"QueueUrl": arns.queue_url(queue_arn), "MessageBody": message.body, **_envelope(message)}
        return self._call("sqs", arns.region(queue_arn), lambda client: str(client.send_message(**asked)["MessageId"]), left)

    def publish(self, topic_arn: str, message: Message, *, left: Left) -> str:
        subject = {"Subject": message.subject} if message.subject is not None else {}
        asked = {"TopicArn": topic_arn, "Message": message.body, **_envelope(message), **subject}
        return self._call("sns", arns.region(topic_arn), lambda client: str(client.publish(**asked)["MessageId"]), left)

    def put_event(self, bus_arn: str, source: str, detail_type: str, detail: str, *, left: Left) -> str:
        entry = {"EventBusName": bus_arn, "Source": source, "DetailType": detail_type, "Detail": detail}

        def call(client: Any) -> str:
            (answer,) = client.put_events(Entries=[entry])["Entries"]
            if answer.get("ErrorCode"):
                raise _refused(answer["ErrorCode"], answer.get("ErrorMessage", ""), 400)
            return str(answer["EventId"])

        return self._call("events", arns.region(bus_arn), call, left)

    def start(self, machine_arn: str, name: str, input: str, *, left: Left) -> str:
        def call(client: Any) -> str:
            return str(client.start_execution(stateMachineArn=machine_arn, name=name, input=input)["executionArn"])

        try:
            return self._call("stepfunctions", arns.region(machine_arn), call, left)
        except Refused as refused:
            if refused.code != AWS_EXISTS:
                raise
        arn = f"{machine_arn.replace(':stateMachine:', ':execution:', 1)}:{name}"
        if self.look(arn, left=left).input != input:
            raise Refused(AWS_EXISTS, f"there is an execution {name} with another input", retryable=False)
        return arn

    def look(self, execution_arn: str, *, left: Left) -> Execution:
        def call(client: Any) -> Execution:
            found = client.describe_execution(executionArn=execution_arn)
            return Execution(found["status"], found.get("input", ""), found.get("output"), found.get("error"), found.get("cause"))

        return self._call("stepfunctions", arns.region(execution_arn), call, left)

    def mail(self, mail: Mail, *, left: Left) -> str:
        body = {kind: _text(text) for kind, text in (("Text", mail.text), ("Html", mail.html)) if text is not None}
        headers = [{"Name": name, "Value": value} for name, value in mail.headers.items()]
        content = {"Simple": {"Subject": _text(mail.subject), "Body": body, "Headers": headers}}
        asked = {"FromEmailAddress": self._sender, "Destination": {"ToAddresses": list(mail.to)}, "Content": content}
        return self._call("sesv2", None, lambda client: str(client.send_email(**asked)["MessageId"]), left)

    def _call(
        self, service: str, region: str | None, call: Callable[[Any], T], left: Left, *, longest: float | None = QUICK, again: bool = True
    ) -> T:
        """The call; once more at once where the connection was found closed: warm functions sleep, and connections die meanwhile."""
        seconds = left()
        if seconds <= 0:
            raise Refused("Stopped", "no time is left", retryable=True)
        client = self._client(service, region, min(seconds, longest) if longest else seconds)
        try:
            return call(client)
        except (ConnectionClosedError, EndpointConnectionError) as error:
            if not again or left() <= 0:
                raise _broken(error) from error
        except (ClientError, BotoCoreError, ResponseParserError) as error:
            raise _broken(error) from error
        return self._call(service, region, call, left, longest=longest, again=False)

    def _client(self, service: str, region: str | None, seconds: float) -> Any:
        key = service, region, next((each for each in READ_TIMEOUTS if each >= seconds), READ_TIMEOUTS[-1])
        with self._lock:
            if key not in self._clients:
                self._clients[key] = clients.once(*key, **self._options)
            return self._clients[key]


def _envelope(message: Message) -> dict[str, Any]:
    """What queues and topics call by the same names."""
    found: dict[str, Any] = {
        "MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in message.attributes.items()}
    }
    if message.group is not None:
        found["MessageGroupId"] = message.group
    if message.unique is not None:
        found["MessageDeduplicationId"] = message.unique
    return found


def _text(text: str) -> dict[str, str]:
    return {"Data": text, "Charset": "UTF-8"}


def _broken(error: Exception) -> Refused:
    if isinstance(error, ClientError):
        response: Any = error.response
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
        return _refused(errors.code(error), str(response.get("Error", {}).get("Message", "")), status)
    passes = isinstance(error, NoConnection | HTTPClientError | ResponseParserError)
    return Refused(type(error).__name__, str(error), retryable=passes)


def _refused(code: str, message: str, status: int) -> Refused:
    told = "" if any(word in code for word in UNSPOKEN) else message
    return Refused(code, told, retryable=code in PASSING or status >= 500 or status == 429)
