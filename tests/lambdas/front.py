"""API Gateway in front of the api handler as a WSGI application, for tools that send real requests."""

import base64
import contextlib
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from lambdas import api
from tests.lambdas.gateway import event

TOKENS = {"token": ("sub-ann", None), "token2": ("sub-ann", "[administrators]")}  # as `OneAccount` knows them


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """One request. An unknown token counts as none: no authorizer refuses it here, so the handler itself must check for a token."""
    answered = api.handler(_event(environ), None)
    status = HTTPStatus(answered["statusCode"])
    headers = [(name, value) for name, value in answered.get("headers", {}).items() if isinstance(value, str)]
    start_response(f"{status.value} {status.phrase}", headers)
    body = answered.get("body") or ""
    return [base64.b64decode(body) if answered.get("isBase64Encoded") else body.encode()]


def _event(environ: Mapping[str, Any]) -> dict[str, Any]:
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    text, encoded = _text(raw)
    user, groups = TOKENS.get(headers.get("authorization", "").removeprefix("Bearer "), (None, None))
    query: dict[str, str] = {}
    for name, value in parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value  # as the gateway joins them
    made = event(
        environ["REQUEST_METHOD"],
        environ["PATH_INFO"].encode("latin-1").decode(errors="replace"),
        body=text if raw else None,
        query=query,
        user=user,
        groups=groups,
        base64=encoded,
    )
    made["headers"] = {"content-length": str(len(raw)), **headers} if raw else headers
    made["rawQueryString"] = environ.get("QUERY_STRING", "")
    return made


def _text(raw: bytes) -> tuple[str, bool]:
    """A body as the event contains it; a body that is no text is in base64."""
    with contextlib.suppress(UnicodeDecodeError):
        return raw.decode(), False
    return base64.b64encode(raw).decode(), True
