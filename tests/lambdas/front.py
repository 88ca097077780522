"""API Gateway in front of the api handler as a WSGI application, for tools that send real requests."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from lab.world.gateway import Caller, Request, respond

TOKENS = {name: Caller("sub-ann") for name in ("token", "token2")}  # as `OneAccount` knows them


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer one request."""
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    content = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    path = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
    request = Request(environ["REQUEST_METHOD"], path, environ.get("QUERY_STRING", ""), headers, content)
    code, answered, body = respond(request, TOKENS.get)
    status = HTTPStatus(code)
    start_response(f"{status.value} {status.phrase}", answered)
    return [body]
