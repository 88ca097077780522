"""The port `Calls` on boto3: the AWS calls of targets. Each refusal is marked as retryable or permanent.

A client is made on first use, one per service, region and time-out: boto3 takes no time-out per call. Each session of a role in another
account has clients of its own.
"""

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, EndpointConnectionError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection
from botocore.model import ServiceModel
from botocore.parsers import ResponseParserError

from scheduler.storage.aws import clients, errors, retry_data
from scheduler.storage.aws.sessions import SESSION_S, Opened, Sessions
from scheduler.storage.ports import Clock
from scheduler.targets.calls import LONGEST_BODY, Left, Refused, Request, Role

# Connections that were not used for this long may have closed while the function was frozen. A call that must not be sent twice would be
# lost with such a connection, so it gets a new one.
RESTED_MS = 30_000
QUICK = 5.0  # seconds that a call may take, unless its request has `waits`
READ_TIMEOUTS = (1.0, QUICK, 30.0, 120.0, 900.0)  # a call uses the smallest one that covers its remaining time
PASSING = errors.TRANSIENT | {
    "AWS.SimpleQueueService.RequestThrottled",
    "CodeArtifactUserPendingException",
    "EC2ThrottledException",
    "ENILimitReachedException",
    "ExecutionLimitExceeded",
    "KMSThrottlingException",
    "MaxSendingRateExceeded",
    "ResourceConflictException",  # a function that is being updated
    "ResourceNotReadyException",
    "SnapStartNotReadyException",
}
# The codes with which services refuse the credentials of a session that has ended: they have carried nothing out.
ENDED = {"ExpiredToken", "ExpiredTokenException", "InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException"}
LONGEST_SESSION_NAME = 64  # characters


class AwsCalls:
    """The port `Calls`. `options` are keyword arguments of `boto3.client`, for every client."""

    def __init__(self, clock: Clock, **options: Any) -> None:
        self._clock, self._options = clock, options
        self._clients: dict[tuple[str, str | None, float], Any] = {}
        self._used_at: dict[tuple[str, str | None, float], int] = {}  # not monotonic, which may stop while the function is frozen
        self._lock = threading.Lock()  # a boto3 session must not make two clients at once
        self._sessions = Sessions(clock, self._opened)

    def send(self, request: Request, *, left: Left) -> Mapping[str, Any]:
        """Send the request, and again at once if its connection is found closed: idle connections close while a warm function is frozen."""
        seconds = left()
        if seconds <= 0:
            raise Refused("Stopped", "no time is left", retryable=True)
        if request.role is not None:
            return self._send_with(request.role, replace(request, role=None), left)
        client = self._client(request.service, request.region, seconds if request.waits else min(seconds, QUICK))
        read, broken = (_whole, retry_data.refused) if request.is_any else (_read, _broken)
        try:
            return read(getattr(client, xform_name(request.operation))(**request.parameters))
        except (ConnectionClosedError, EndpointConnectionError) as error:
            if not request.again or left() <= 0:
                raise broken(error, client.meta.service_model) from error
        except (ClientError, BotoCoreError, ResponseParserError) as error:
            raise broken(error, client.meta.service_model) from error
        return self.send(replace(request, again=False), left=left)

    def _send_with(self, role: Role, request: Request, left: Left) -> Mapping[str, Any]:
        session = self._sessions.get(role, left=left)
        try:
            return session.send(request, left=left)
        except Refused as refused:
            if refused.code not in ENDED:
                raise
            self._sessions.end(role, session)
        return self._sessions.get(role, left=left).send(request, left=left)

    def _opened(self, role: Role) -> "Opened[AwsCalls]":
        """Assume a role, by STS in this function's region: sessions of the global endpoint fail in some regions. Raises Refused."""
        client = self._client("sts", None, QUICK)
        name = role.external_id.replace("/", "-")[:LONGEST_SESSION_NAME]  # CloudTrail of the other account shows it
        try:
            answer = client.assume_role(RoleArn=role.arn, RoleSessionName=name, ExternalId=role.external_id, DurationSeconds=SESSION_S)
        except (ClientError, BotoCoreError, ResponseParserError) as error:
            refused = retry_data.refused(error, client.meta.service_model)
            check = "; check that the role exists, and that its trust policy names this id and the executors" if refused.is_denied else ""
            text = f"{role.arn} with the external id {role.external_id} was refused{check}: {refused}"
            raise Refused("AssumeRole", text, retryable=refused.retryable, throttled=refused.throttled) from error
        found = answer["Credentials"]
        keys = {
            "aws_access_key_id": found["AccessKeyId"],
            "aws_secret_access_key": found["SecretAccessKey"],
            "aws_session_token": found["SessionToken"],
        }
        return Opened(AwsCalls(self._clock, **self._options | keys), round(found["Expiration"].timestamp() * 1000))

    def _client(self, service: str, region: str | None, seconds: float) -> Any:
        key = service, region, next((timeout for timeout in READ_TIMEOUTS if timeout >= seconds), READ_TIMEOUTS[-1])
        with self._lock:
            if key not in self._clients:
                self._clients[key] = clients.once(*key, **self._options)
            client, now = self._clients[key], self._clock.now()
            if now - self._used_at.get(key, now) > RESTED_MS:
                client.close()  # its idle connections; it stays usable, and calls in progress keep theirs
            self._used_at[key] = now
            return client


def _read(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, with its streamed bodies as bytes. Raises Refused for the first failed entry of the answer."""
    for entry in (entry for entries in answer.values() if isinstance(entries, list) for entry in entries):
        if isinstance(entry, Mapping) and entry.get("ErrorCode"):
            raise _refused(entry["ErrorCode"], entry.get("ErrorMessage", ""), 400)
    return {name: value.read() if hasattr(value, "read") else value for name, value in answer.items()}


def _whole(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, with the beginnings of its streamed bodies as bytes."""
    return {name: _beginning(value) if hasattr(value, "read") else value for name, value in answer.items()}


def _beginning(body: Any) -> bytes:
    read: bytes = body.read(LONGEST_BODY)
    body.close()  # its connection too, if more would follow
    return read


def _broken(error: Exception, model: ServiceModel) -> Refused:
    if isinstance(error, ClientError):
        response: Any = error.response
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
        return _refused(errors.code(error), str(response.get("Error", {}).get("Message", "")), status)
    passes = isinstance(error, NoConnection | HTTPClientError | ResponseParserError)
    return Refused(type(error).__name__, str(error), retryable=passes)


def _refused(code: str, message: str, status: int) -> Refused:
    return Refused(code, errors.shown(code, message), retryable=code in PASSING or status >= 500 or status == 429)
