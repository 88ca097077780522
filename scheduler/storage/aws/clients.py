"""The one place where AWS clients are made."""

import re
import socket
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

import boto3
from botocore.args import ClientArgsCreator
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.loaders import Loader, instance_cache
from botocore.parsers import JSONParser, ResponseParserFactory
from botocore.serialize import JSONSerializer
from botocore.session import get_session

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 3},
    connect_timeout=2,  # seconds; a lost packet costs one time-out, so both are well below a lease (30 s)
    read_timeout=5,
    max_pool_connections=256,  # an executor calls up to 256 targets at once
    tcp_keepalive=True,  # see KEEP_ALIVE
    parameter_validation=False,  # AWS validates anyway, and this takes a quarter of a call's CPU time
    user_agent="punctual",  # boto3 would build its own long one twice for every call
)
# The times of keep-alive on each connection. Linux waits two hours before its first probe, but AWS's network forgets a connection without
# traffic after 350 seconds: the answer of a longer call would never arrive.
# https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html#nat-gateway-troubleshooting-timeout
_KEEP_ALIVE_S = {"TCP_KEEPIDLE": 45, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}  # names of Linux; other systems may lack some
KEEP_ALIVE = [(socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _KEEP_ALIVE_S.items() if hasattr(socket, name)]
_making = threading.Lock()  # a session makes one client at a time; adapters are made when they are first used, in any thread


def _with_keep_alive(compute: Callable[..., list[tuple[int, int, int]]]) -> Callable[..., list[tuple[int, int, int]]]:
    def computed(*arguments: Any, **named: Any) -> list[tuple[int, int, int]]:
        return [*compute(*arguments, **named), *KEEP_ALIVE]

    return computed


# botocore has an option for keep-alive as such, and none for its times.
ClientArgsCreator._compute_socket_options = _with_keep_alive(ClientArgsCreator._compute_socket_options)  # type: ignore[attr-defined]


def dynamodb(**options: Any) -> "DynamoDBClient":
    client = cast("DynamoDBClient", _client("dynamodb", options))
    client._serializer = Requests()  # type: ignore[attr-defined]  # botocore has no other way to set it
    return client


def sqs(**options: Any) -> "SQSClient":
    return cast("SQSClient", _client("sqs", options))


def sns(**options: Any) -> "SNSClient":
    client = cast("SNSClient", _client("sns", options))
    client.meta.events.register_first("request-created.sns", _encode_once)
    return client


def functions(**options: Any) -> "LambdaClient":
    return cast("LambdaClient", _client("lambda", options))


def s3(**options: Any) -> "S3Client":
    return cast("S3Client", _client("s3", options))


def secrets(**options: Any) -> Any:
    """Secrets Manager. Its two calls are not worth a package of stubs."""
    return _client("secretsmanager", options)


def parameters(**options: Any) -> Any:
    """Systems Manager. Its one call is not worth a package of stubs."""
    return _client("ssm", options)


def firehose(**options: Any) -> Any:
    """Firehose. Its one call is not worth a package of stubs."""
    return _client("firehose", options)


def events(**options: Any) -> Any:
    """EventBridge. Its one call is not worth a package of stubs."""
    return _client("events", options)


def cognito(**options: Any) -> "CognitoIdentityProviderClient":
    return cast("CognitoIdentityProviderClient", _client("cognito-idp", options))


def signed(service: str, method: str, url: str, body: bytes, headers: dict[str, str]) -> dict[str, str]:
    """The headers of a request, with its signature: for an endpoint of AWS that boto3 does not know."""
    with _making:
        session = _session()
        credentials, region = session.get_credentials(), session.region_name
    assert credentials is not None
    request = AWSRequest(method, url, headers=headers, data=body)
    SigV4Auth(credentials, service, region).add_auth(request)
    return dict(request.headers.items())


def once(service: str, region: str | None, read_timeout: float, **options: Any) -> Any:
    """A client of any service that never retries a call. `region`: None for the environment's."""
    config = CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}, read_timeout=read_timeout))
    with _making:
        return cast(Any, _session()).client(service, region_name=region, config=config, **options)


def _client(service: Any, options: dict[str, Any]) -> object:
    """Region, credentials and endpoint come from the environment, unless `options` (arguments of `boto3.client`) set them."""
    with _making:
        return _session().client(service, config=CONFIG, **options)


def _encode_once(request: Any, **_: Any) -> None:
    """Encode the form of a call: otherwise botocore encodes it to sign it, and again to send it."""
    request.data = urlencode(request.data)


class Answers(JSONParser):  # botocore's stubs lack the two methods that are called
    """Parses answers with items of DynamoDB as their plain JSON, which botocore returns as well, except for binary values.

    botocore walks through each attribute to find these, which takes 0.028 ms of processor for a claimed job, of some 0.36 in all.
    """

    _ITEMS = frozenset(f"{name}Output" for name in ("BatchExecuteStatement", "BatchGetItem", "GetItem", "Query", "Scan", "UpdateItem"))
    _BINARY = re.compile(rb'"BS?"\s*:')

    def _handle_json_body(self, raw_body: bytes, shape: Any) -> Any:
        if shape.name in self._ITEMS and not self._BINARY.search(raw_body):
            return self._parse_body_as_json(raw_body)  # type: ignore[attr-defined]
        return super()._handle_json_body(raw_body, shape)  # type: ignore[misc]


class Requests(JSONSerializer):
    """Sends statements of DynamoDB as their plain JSON, as botocore does, except for binary values: no statement of Punctual has any.

    botocore copies each attribute to convert these, which takes 0.03 ms of processor for a claimed and settled job.
    """

    def _serialize_type_structure(self, serialized: dict[str, Any], value: dict[str, Any], shape: Any, key: str | None) -> None:
        if key is None and shape.name == "BatchExecuteStatementInput":
            serialized |= value
        else:
            super()._serialize_type_structure(serialized, value, shape, key)  # type: ignore[misc]


class _Parsers(ResponseParserFactory):
    def create_parser(self, protocol_name: str) -> Any:
        return Answers() if protocol_name == "json" else super().create_parser(protocol_name)


class Descriptions(Loader):
    """Finds the services' descriptions by the names of their folders.

    botocore looks into each of 400 folders, twice, which takes 12 ms of processor of a cold start.
    """

    @instance_cache
    def list_available_services(self, type_name: str) -> list[str]:
        """Return the names of all services, also of those that lack this type of description: loading it raises DataNotFoundError."""
        return sorted({each.name for path in map(Path, self.search_paths) if path.is_dir() for each in path.iterdir()})


@lru_cache
def _session() -> boto3.Session:
    session = get_session()
    session.register_component("data_loader", Descriptions())
    session.register_component("response_parser_factory", _Parsers())
    return boto3.Session(botocore_session=session)
