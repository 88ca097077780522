"""The frameworks in which Punctual calls a program, and the stores: each by its own ways."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from flask import Flask, Response, abort, request
from moto import mock_aws
from receiving import (
    BODY,
    KEY,
    NOW,
    SECRET,
    Clock,
    LambdaContext,
    Sent,
    calls_table,
    function_url,
    on_django,
    over_http,
    set_up_django,
    signed,
)

from punctual import aws_lambda
from punctual import django as for_django
from punctual import fastapi as for_fastapi
from punctual import flask as for_flask
from punctual.errors import InvalidArgument
from punctual.receivers import Answer, Call, CallReceiver, DynamoStore, MemoryStore, Permanent, Retry, StillRunning, Store

pytestmark = pytest.mark.filterwarnings("ignore:There is no current event loop:DeprecationWarning")
PATIENCE = 60.0  # seconds, for a thread that hangs


def receiver() -> CallReceiver:
    return CallReceiver(SECRET, store=MemoryStore(), now=Clock())


# FastAPI


def fastapi_app() -> tuple[FastAPI, APIRouter]:
    router = APIRouter(route_class=for_fastapi.route_class(receiver()))
    return FastAPI(), router


def test_a_router_of_fastapi_keeps_its_prefix_and_its_parameters() -> None:
    app, router = fastapi_app()

    @router.post("/{order}/expire")
    def expire(order: int, call: for_fastapi.PunctualCall, dry: bool = False) -> dict[str, Any]:
        return {"order": order, "dry": dry, "job": call.job_id}

    app.include_router(router, prefix="/orders")
    send = over_http(app, is_asgi=True, path="/orders/17/expire?dry=1")
    assert send(signed()).json() == {"order": 17, "dry": True, "job": KEY}
    assert send(Sent({}, BODY)).status == 401
    (operation,) = app.openapi()["paths"]["/orders/{order}/expire"].values()
    assert [each["name"] for each in operation["parameters"]] == ["order", "dry"]  # the call is none of them


def test_refusals_of_fastapi_itself_are_not_remembered() -> None:
    app, router = fastapi_app()
    states = ["locked", "open"]

    @router.post("/expire")
    def expire(content: dict[str, int], call: for_fastapi.PunctualCall) -> dict[str, int]:
        if states.pop(0) == "locked":
            raise HTTPException(409, "the order is locked")
        return content

    app.include_router(router)
    send = over_http(app, is_asgi=True)
    assert send(signed(b'{"order":"x"}')).status == 422
    assert [send(signed()).status for _ in range(3)] == [409, 200, 200] and states == []


def test_a_dependency_that_fails_at_its_end_fails_the_call() -> None:
    app, router = fastapi_app()
    commits: list[str] = []

    async def session() -> AsyncIterator[str]:
        yield "session"
        commits.append("commit")
        if len(commits) == 1:
            raise sqlite3.OperationalError("the commit failed")

    @router.post("/expire")
    async def expire(session: str = Depends(session, scope="function")) -> str:
        return session

    app.include_router(router)
    send = over_http(app, is_asgi=True)
    assert [send(signed()).status for _ in range(3)] == [500, 200, 200] and len(commits) == 2


def test_a_route_that_is_cancelled_runs_again() -> None:
    app, router = fastapi_app()
    runs: list[str] = []

    async def scene() -> int:
        began = asyncio.Event()

        @router.post("/expire")
        async def expire(call: for_fastapi.PunctualCall) -> str:
            runs.append(call.job_id)
            began.set()
            if len(runs) == 1:
                await asyncio.Event().wait()
            return "expired"

        app.include_router(router)
        transport, sent = httpx.ASGITransport(app), signed()

        def send() -> Any:
            request = httpx.Request("POST", "https://shop.example.com/expire", headers=sent.headers, content=sent.body)
            return transport.handle_async_request(request)

        first = asyncio.create_task(send())
        await began.wait()
        first.cancel()
        await asyncio.wait([first])
        return int((await send()).status_code)

    assert asyncio.run(scene()) == 200 and len(runs) == 2


def test_a_call_in_a_route_of_another_class_names_the_class() -> None:
    app = FastAPI()

    @app.post("/expire")
    def expire(call: for_fastapi.PunctualCall) -> str:
        return call.job_id

    request = httpx.Request("POST", "https://shop.example.com/expire", content=BODY)
    with pytest.raises(RuntimeError, match="route_class=route_class"):
        asyncio.run(httpx.ASGITransport(app).handle_async_request(request))


def test_a_response_of_fastapi_that_streams_is_remembered_without_its_body() -> None:
    app, router = fastapi_app()

    @router.post("/expire")
    async def expire() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"a"
            yield b"b"

        return StreamingResponse(parts(), media_type="text/plain")

    app.include_router(router)
    send = over_http(app, is_asgi=True)
    assert [send(signed()).body for _ in range(2)] == [b"ab", b""]


# Flask


def test_a_view_of_flask_gets_the_values_of_its_url_and_the_body() -> None:
    app = Flask("shop")

    @app.post("/orders/<int:number>/expire")
    @for_flask.receives(receiver())
    def expire(call: Call, number: int) -> tuple[dict[str, Any], int]:
        return {"order": number, "body": request.get_json(), "attempt": call.attempt}, 201

    with app.test_client() as client:
        for _ in range(2):
            answer = client.post("/orders/17/expire", headers=signed().headers, data=BODY)
            assert (answer.status_code, answer.get_json()) == (201, {"order": 17, "body": {"order": 17}, "attempt": 1})


def test_an_abort_of_flask_is_not_remembered_and_a_stream_only_without_its_body() -> None:
    app = Flask("shop")
    states = ["locked", "open"]

    @app.post("/expire")
    @for_flask.receives(receiver())
    def expire(call: Call) -> Response:
        if states.pop(0) == "locked":
            abort(409)
        return Response(iter(["a", "b"]))

    send = over_http(app, is_asgi=False)
    found = [send(signed()) for _ in range(3)]
    assert [(each.status, each.body) for each in found][1:] == [(200, b"ab"), (200, b"")] and found[0].status == 409


# Django


@pytest.fixture
def shop_table() -> Iterator[Any]:
    """A table whose rows refer to another, which the database checks at the end of a transaction."""
    set_up_django()
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE shop (id INTEGER PRIMARY KEY)")
        cursor.execute("CREATE TABLE sale (shop INTEGER REFERENCES shop (id) DEFERRABLE INITIALLY DEFERRED)")
    yield connection
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE sale")
        cursor.execute("DROP TABLE shop")
    connection.close()


def test_a_transaction_of_django_that_fails_at_its_end_fails_the_call(shop_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import connections
    from django.http import HttpRequest, HttpResponse
    from django.test import RequestFactory

    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)

    @for_django.receives(receiver())
    def sell(request: HttpRequest, call: Call) -> HttpResponse:
        with shop_table.cursor() as cursor:
            cursor.execute("INSERT INTO sale (shop) VALUES (17)")
        return HttpResponse("sold")

    from django.core.handlers.base import BaseHandler
    from django.db.utils import IntegrityError

    def send() -> bytes:
        sent = signed()
        made = RequestFactory().post("/", sent.body, content_type="application/json", headers=sent.headers)
        view: Any = BaseHandler().make_view_atomic(sell)
        return bytes(view(made).content)

    with pytest.raises(IntegrityError):
        send()
    with shop_table.cursor() as cursor:
        cursor.execute("INSERT INTO shop (id) VALUES (17)")
        assert [send(), send()] == [b"sold", b"sold"]
        cursor.execute("SELECT COUNT(*) FROM sale")
        assert cursor.fetchone() == (1,)


def test_a_view_of_django_needs_no_csrf_token_and_gets_its_values() -> None:
    set_up_django()
    from django.http import HttpRequest, HttpResponse
    from django.test import Client
    from django.urls import clear_url_caches, path
    from receiving import urlpatterns

    @for_django.receives(receiver())
    def expire(request: HttpRequest, call: Call, order: int) -> HttpResponse:
        return HttpResponse(f"{order} {call.attempt}", content_type="text/plain")

    urlpatterns.append(path("orders/<int:order>/expire", expire))
    clear_url_caches()
    client, sent = Client(enforce_csrf_checks=True, SERVER_NAME="shop.example.com"), signed()
    for _ in range(2):
        answer = client.post("/orders/17/expire", sent.body, content_type="application/json", headers=sent.headers)
        assert (answer.status_code, answer.content, answer["content-type"]) == (200, b"17 1", "text/plain")


def test_a_template_of_django_is_rendered_before_it_is_remembered() -> None:
    set_up_django()
    from django.core.handlers.wsgi import WSGIHandler
    from django.http import HttpRequest
    from django.template import engines
    from django.template.response import SimpleTemplateResponse
    from django.test import override_settings

    with override_settings(TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}]):
        template: Any = engines["django"].from_string("order {{ order }}")

        @for_django.receives(receiver())
        def expire(request: HttpRequest, call: Call) -> SimpleTemplateResponse:
            return SimpleTemplateResponse(template, {"order": 17})

        send = on_django(expire, WSGIHandler)
        assert [send(signed()).body for _ in range(2)] == [b"order 17"] * 2


def test_a_cache_of_django_is_a_store() -> None:
    set_up_django()
    from django.core.cache import cache

    check_store(cache)


# Lambda


def rest_api(sent: Sent) -> dict[str, Any]:
    """The event of API Gateway's REST API (payload 1.0)."""
    many = {name: [value] for name, value in sent.headers.items()}
    event = {"resource": "/expire", "httpMethod": sent.method, "headers": sent.headers, "multiValueHeaders": many}
    return {**event, "requestContext": {"stage": "prod"}, "body": sent.body.decode(), "isBase64Encoded": False}


def load_balancer(sent: Sent) -> dict[str, Any]:
    """The event of a load balancer with multi-value headers."""
    many = {name.lower(): [value] for name, value in sent.headers.items()}
    event = {"requestContext": {"elb": {"targetGroupArn": "arn"}}, "httpMethod": sent.method, "multiValueHeaders": many}
    return {**event, "body": sent.body.decode(), "isBase64Encoded": False}


def in_base64(sent: Sent) -> dict[str, Any]:
    return function_url(sent) | {"body": base64.b64encode(sent.body).decode(), "isBase64Encoded": True}


@pytest.mark.parametrize("event_of", [function_url, rest_api, load_balancer, in_base64])
def test_a_function_reads_the_events_of_all_that_calls_it_by_http(event_of: Any) -> None:
    @aws_lambda.receives(receiver())
    def expire(call: Call, context: LambdaContext) -> Any:
        return call.json()

    for body in (BODY, '{"name":"Grüße"}'.encode()):
        answer = expire(event_of(signed(body, key=f"{KEY}-{len(body)}")), LambdaContext())
        assert answer["statusCode"] == 200 and json.loads(answer["body"]) == json.loads(body)
        headers = answer["multiValueHeaders" if event_of is load_balancer else "headers"]
        assert headers["Content-Type"] == (["application/json"] if event_of is load_balancer else "application/json")
    assert expire(event_of(Sent({}, b"", "GET")), LambdaContext())["statusCode"] == 401


def test_a_function_may_return_whole_responses() -> None:
    results: list[Any] = [
        None,
        Answer(201, b"\xff\x00", "application/octet-stream"),
        {"statusCode": 202, "headers": {"content-type": "text/plain", "X-Order": "17"}, "body": "accepted"},
        {"statusCode": 409, "body": "locked"},
    ]

    @aws_lambda.receives(receiver())
    def expire(call: Call, context: LambdaContext) -> Any:
        return results[int(call.job_id)]

    def send(number: int) -> dict[str, Any]:
        return expire(function_url(signed(key=str(number))), LambdaContext())

    assert send(0) == {"statusCode": 200, "headers": {}, "body": "", "isBase64Encoded": False}
    binary = {"statusCode": 201, "headers": {"Content-Type": "application/octet-stream"}, "body": "/wA=", "isBase64Encoded": True}
    assert send(1) == binary and send(1) == binary | {"headers": binary["headers"] | {"Idempotent-Replayed": "true"}}
    assert send(2)["headers"] == {"Content-Type": "text/plain", "X-Order": "17"} and send(2)["body"] == "accepted"
    assert send(3)["statusCode"] == 409
    results[3] = {"state": "expired"}
    assert send(3)["statusCode"] == 200  # only a success is remembered


def test_the_claim_of_a_function_ends_with_its_invocation() -> None:
    clock = Clock()
    shared = CallReceiver(SECRET, store=MemoryStore(clock), now=clock)
    runs: list[int] = []

    @aws_lambda.receives(shared)
    def expire(call: Call, context: LambdaContext) -> None:
        runs.append(call.attempt)
        if len(runs) == 1:
            raise_exit()

    def raise_exit() -> None:
        shared.once.store.delete = lambda key: None  # type: ignore[method-assign, union-attr]
        raise RuntimeError("the sandbox ends, and releases nothing")

    with pytest.raises(RuntimeError):
        expire(function_url(signed()), LambdaContext(3_000))
    clock.now += 4
    assert expire(function_url(signed()), LambdaContext())["statusCode"] == 503
    clock.now += 1
    assert expire(function_url(signed()), LambdaContext())["statusCode"] == 200 and len(runs) == 2


def event(attempt: int = 1, **ours: Any) -> dict[str, Any]:
    ids = {"job_id": KEY, "idempotency_key": KEY, "attempt": attempt, "scheduled_at": "2026-11-20T10:00:00.250Z"}
    return {"order": 17, "punctual": {**ids, **ours}}


def test_a_function_that_a_job_calls_directly_runs_once() -> None:
    runs: list[Call] = []

    @aws_lambda.receives_event(MemoryStore())
    def expire(call: Call, context: LambdaContext) -> dict[str, Any]:
        runs.append(call)
        return {**call.json(), "run": len(runs)}

    assert [expire(event(attempt), LambdaContext()) for attempt in (1, 2)] == [{"order": 17, "run": 1}] * 2
    assert (runs[0].job_id, runs[0].attempt, len(runs)) == (KEY, 1, 1)
    callback = {"url": "https://api.example.com/callbacks/1", "token": "t1"}
    assert expire(event(2, callback=callback), LambdaContext())["run"] == 2
    assert runs[1].worker().url == callback["url"]
    with pytest.raises(InvalidArgument):
        expire({"order": 17}, LambdaContext())


def test_a_function_that_a_job_calls_directly_fails_by_its_exception() -> None:
    errors: list[Exception] = [Permanent("gone"), Retry(after=60), RuntimeError("no")]

    @aws_lambda.receives_event(MemoryStore())
    def expire(call: Call, context: object) -> None:
        if errors:
            raise errors.pop(0)

    for kind in (Permanent, Retry, RuntimeError):
        with pytest.raises(kind):
            expire(event(), None)
    assert expire(event(), None) is None


def test_a_second_event_in_the_time_of_the_first_raises() -> None:
    began, may_end = threading.Event(), threading.Event()

    @aws_lambda.receives_event(MemoryStore())
    def expire(call: Call, context: LambdaContext) -> str:
        began.set()
        assert may_end.wait(PATIENCE)
        return "expired"

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(expire, event(), LambdaContext())
        try:
            assert began.wait(PATIENCE)
            with pytest.raises(StillRunning):
                expire(event(), LambdaContext())
        finally:
            may_end.set()
        assert first.result(PATIENCE) == "expired"


# Stores


def check_store(store: Store) -> None:
    """The contract of a store, without its time."""
    assert store.get("punctual-call-1") is None
    assert store.add("punctual-call-1", "a", 60) and not store.add("punctual-call-1", "b", 60)
    assert store.get("punctual-call-1") == "a"
    store.set("punctual-call-1", "c", 60)
    assert store.get("punctual-call-1") == "c" and not store.add("punctual-call-1", "d", 60)
    store.delete("punctual-call-1")
    store.delete("punctual-call-1")
    assert store.get("punctual-call-1") is None and store.add("punctual-call-1", "d", 60)


def check_time(store: Store, clock: Clock) -> None:
    """An entry ends after its time, whether or not the store has deleted it."""
    store.set("punctual-call-2", "a", 60)
    clock.now += 59
    assert store.get("punctual-call-2") == "a" and not store.add("punctual-call-2", "b", 60)
    clock.now += 1
    assert store.get("punctual-call-2") is None and store.add("punctual-call-2", "b", 60)


def test_the_memory_is_a_store() -> None:
    clock = Clock()
    store = MemoryStore(clock)
    check_store(store)
    check_time(store, clock)


def test_the_memory_drops_what_has_ended() -> None:
    clock = Clock()
    store = MemoryStore(clock)
    for number in range(10_000):
        store.set(str(number), "a", 1)
        clock.now += 1
    assert len(store._entries) <= 1_000


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        yield calls_table()


def test_a_table_of_dynamodb_is_a_store(table: str) -> None:
    clock = Clock()
    store = DynamoStore(table, now=clock)
    check_store(store)
    check_time(store, clock)
    item = boto3.client("dynamodb").get_item(TableName=table, Key={"id": {"S": "punctual-call-2"}})["Item"]
    assert item["expiration"] == {"N": str(int(NOW) + 120)}  # its TTL attribute
    with pytest.raises(InvalidArgument, match="name of the table is empty"):
        DynamoStore("")


def test_two_functions_share_a_table(table: str) -> None:
    runs: list[str] = []

    def function(name: str) -> Any:
        @aws_lambda.receives(CallReceiver(SECRET, store=DynamoStore(table), now=Clock()))
        def expire(call: Call, context: LambdaContext) -> str:
            runs.append(name)
            return name

        return expire

    answers = [function(name)(function_url(signed()), LambdaContext())["body"] for name in ("a", "b")]
    assert answers == ['"a"', '"a"'] and runs == ["a"]
