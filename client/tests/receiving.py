"""Programs of each framework with one handler, called by signed requests as Punctual sends them."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread
import boto3
import django
import httpx
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.urls import path
from django.views.decorators.http import require_POST
from fastapi import APIRouter, FastAPI
from flask import Flask

from punctual import aws_lambda
from punctual import django as for_django
from punctual import fastapi as for_fastapi
from punctual import flask as for_flask
from punctual.receivers import Call, CallReceiver

sys.path.append(str(Path(__file__).resolve().parents[2]))
from scheduler.targets import webhooks

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()
NOW = 1_795_000_000.0  # of the receiver's clock
KEY = "01KBBQ5V3M8R0W2Y4Z6A8C0E2G"
BODY = b'{"order":17}'
CONTEXT = {
    "Punctual-Job-Id": KEY,
    "Idempotency-Key": KEY,
    "Punctual-Attempt": "1",
    "Punctual-Scheduled-At": "2026-11-20T10:00:00.250Z",
    "Punctual-Nominal-At": "2026-11-20T10:00:00.000Z",
    "Content-Type": "application/json",
    "User-Agent": "Punctual/1",
    "Accept-Encoding": "identity",
}
Handler = Callable[[Call], dict[str, Any]]


@dataclass
class Clock:
    """The clock of a receiver."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Sent:
    """A request of a job: the server's own code signs it."""

    headers: dict[str, str]
    body: bytes
    method: str = "POST"


def signed(body: bytes = BODY, *, at: float = NOW, by: tuple[str, ...] = (SECRET,), key: str = KEY, **context: str) -> Sent:
    extra = {name.replace("_", "-"): value for name, value in context.items()}
    ids = {"Punctual-Job-Id": key, "Idempotency-Key": key}
    return Sent({**CONTEXT, **ids, **webhooks.headers(key, int(at * 1_000), body, by), **extra}, body)


@dataclass
class Received:
    """The answer of a program."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)


class Program(Protocol):
    """Sends a request to a program, which answers an exception of its handler with 500."""

    def __call__(self, sent: Sent) -> Received: ...


def over_http(app: Any, *, is_asgi: bool, path: str = "/expire") -> Program:
    def send(sent: Sent) -> Received:
        request = httpx.Request(sent.method, f"https://shop.example.com{path}", headers=sent.headers, content=sent.body)
        if not is_asgi:
            response = httpx.WSGITransport(app, raise_app_exceptions=False).handle_request(request)
            return Received(response.status_code, response.headers, response.read())
        return asyncio.run(sent_to(request))

    async def sent_to(request: httpx.Request) -> Received:
        response = await httpx.ASGITransport(app, raise_app_exceptions=False).handle_async_request(request)
        return Received(response.status_code, response.headers, await response.aread())

    return send


def fastapi(receiver: CallReceiver, handler: Handler) -> Program:
    router = APIRouter(route_class=for_fastapi.route_class(receiver))

    @router.post("/expire")
    def expire(content: dict[str, Any], call: for_fastapi.PunctualCall) -> dict[str, Any]:
        assert content == call.json()
        return handler(call)

    app = FastAPI()
    app.include_router(router)
    return over_http(app, is_asgi=True)


def fastapi_async(receiver: CallReceiver, handler: Handler) -> Program:
    app = FastAPI()
    app.router.route_class = for_fastapi.route_class(receiver)

    @app.post("/expire")
    async def expire(call: for_fastapi.PunctualCall) -> dict[str, Any]:
        return await anyio.to_thread.run_sync(lambda: handler(call))

    return over_http(app, is_asgi=True)


def flask(receiver: CallReceiver, handler: Handler) -> Program:
    app = Flask("shop")
    app.config["PROPAGATE_EXCEPTIONS"] = False

    @app.post("/expire")
    @for_flask.receives(receiver)
    def expire(call: Call) -> dict[str, Any]:
        return handler(call)

    return over_http(app, is_asgi=False)


def flask_async(receiver: CallReceiver, handler: Handler) -> Program:
    app = Flask("shop")
    app.config["PROPAGATE_EXCEPTIONS"] = False

    @app.post("/expire")
    @for_flask.receives(receiver)
    async def expire(call: Call) -> dict[str, Any]:
        return handler(call)

    return over_http(app, is_asgi=False)


def set_up_django() -> None:
    if not settings.configured:
        settings.configure(
            SECRET_KEY=secrets.token_hex(),
            ALLOWED_HOSTS=["shop.example.com"],
            ROOT_URLCONF=__name__,
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
            MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"],
            LOGGING_CONFIG=None,
        )
        django.setup()


urlpatterns: list[Any] = []


def on_django(view: Callable[..., Any], handler: type[WSGIHandler] | type[ASGIHandler]) -> Program:
    """A view at a path of its own, as the addresses of a process are read once."""
    name = secrets.token_hex(8)
    urlpatterns.append(path(name, view))
    from django.urls import clear_url_caches

    clear_url_caches()
    return over_http(handler(), is_asgi=handler is ASGIHandler, path=f"/{name}")


def django_sync(receiver: CallReceiver, handler: Handler) -> Program:
    set_up_django()

    @require_POST
    @for_django.receives(receiver)
    def expire(request: HttpRequest, call: Call) -> HttpResponseBase:
        return JsonResponse(handler(call))

    return on_django(expire, WSGIHandler)


def django_async(receiver: CallReceiver, handler: Handler) -> Program:
    set_up_django()

    @require_POST
    @for_django.receives(receiver)
    async def expire(request: HttpRequest, call: Call) -> HttpResponseBase:
        return JsonResponse(await anyio.to_thread.run_sync(lambda: handler(call)))

    return on_django(expire, ASGIHandler)


class LambdaContext:
    """Lambda's context, as far as the handlers of the tests read it."""

    def __init__(self, left_ms: int = 30_000) -> None:
        self.left_ms = left_ms

    def get_remaining_time_in_millis(self) -> int:
        return self.left_ms


def function_url(sent: Sent, path: str = "/expire") -> dict[str, Any]:
    """The event of a function URL, and of an HTTP API with payload 2.0."""
    http = {"method": sent.method, "path": path, "protocol": "HTTP/1.1"}
    headers = {name.lower(): value for name, value in sent.headers.items()}
    return {"version": "2.0", "rawPath": path, "headers": headers, "requestContext": {"http": http}, "body": sent.body.decode()} | {
        "isBase64Encoded": False
    }


def aws_function(receiver: CallReceiver, handler: Handler) -> Program:
    @aws_lambda.receives(receiver)
    def expire(call: Call, context: LambdaContext) -> dict[str, Any]:
        return handler(call)

    def send(sent: Sent) -> Received:
        try:
            found = expire(function_url(sent), LambdaContext())
        except Exception:  # Lambda answers it so
            return Received(502)
        return Received(found["statusCode"], httpx.Headers(found["headers"]), found["body"].encode())

    return send


PROGRAMS: dict[str, Callable[[CallReceiver, Handler], Program]] = {
    "fastapi": fastapi,
    "fastapi_async": fastapi_async,
    "flask": flask,
    "flask_async": flask_async,
    "django": django_sync,
    "django_async": django_async,
    "lambda": aws_function,
}


def calls_table() -> str:
    """Create the table of a `DynamoStore` as the guide does, and return its name."""
    boto3.client("dynamodb").create_table(
        TableName="calls",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return "calls"
