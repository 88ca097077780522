"""API keys and owners of the clients: where they come from, what is sent, and that no key is ever shown."""

from __future__ import annotations

import json
import logging
import threading
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
from fake_api import JOB, KEY, SECRET, TEAM, URL, Flavor, answer, refusal

import punctual
from punctual import plan, profiles, records
from punctual.profiles import Profile
from punctual.settings import Settings, settings

TASK = {**JOB, "name": "Nightly", "generation": 1, "overlap": "skip", "updated_at": JOB["created_at"], "outcome": "created", "changes": []}
PAGE = {"items": [], "has_more": False, "cursor": None}
BAD_KEYS = [
    KEY[:-1],
    KEY + "0",
    KEY.upper(),
    KEY.replace("_", "-"),
    f"punctual_{'K2' * 8}_{SECRET}_0123abcd",
    f"punctual_{'k2' * 8}_{SECRET[:-1]}-_0123abcd",
    f" {KEY}",
    f"{KEY}\n",
    SECRET,
    "k",
]


class Api:
    """Answers each request with the same data; `requests` has them."""

    def __init__(self, data: Any = None, status: int = 200) -> None:
        self.data, self.status = data, status
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return answer(self.data) if self.status < 400 else refusal(self.status)

    @property
    def sent(self) -> list[tuple[str, str, str | None, str | None]]:
        """Method, path, owner and credential of each request."""
        return [
            (
                each.method,
                each.url.path,
                each.url.params.get("owner"),
                each.headers.get("Authorization", "").removeprefix("Bearer ") or None,
            )
            for each in self.requests
        ]


# Keys


def test_a_key_is_sent_to_the_addresses_for_keys(flavor: Flavor) -> None:
    api = Api(JOB)
    flavor.run(api, lambda c: c.jobs.create(message="m"), key=KEY)
    flavor.run(api, lambda c: c.send("GET", "/jobs"), key=KEY)
    assert [(path, credential) for _, path, _, credential in api.sent] == [("/api/v1/key/jobs", KEY)] * 2


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda c: c.health(), "/api/v1/health"),
        (lambda c: c.keys.revoke_leaked(KEY), "/api/v1/keys/revoke"),
        (lambda c: c.send("GET", "/health"), "/api/v1/health"),
    ],
)
def test_an_open_route_gets_no_key(flavor: Flavor, call: Callable[[Any], Any], path: str) -> None:
    api = Api({"status": "ok"})
    flavor.run(api, call, key=KEY)
    assert api.sent[0][1::2] == (path, None)


def test_a_refused_key_is_not_renewed_and_no_token(flavor: Flavor) -> None:
    api = Api(status=401)
    with pytest.raises(punctual.NotAuthenticated):
        flavor.run(api, lambda c: c.version(), key=KEY)
    assert len(api.requests) == 1
    assert flavor.run(api, lambda c: c.token(), key=KEY) is None


@pytest.mark.parametrize("key", BAD_KEYS)
def test_another_form_of_a_key_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(punctual.NotConfigured, match=r"an API key has the form punctual_ID_SECRET_CHECKSUM") as caught:
        punctual.Punctual(URL, key=key)
    assert key == "k" or key.strip() not in str(caught.value)
    assert SECRET not in repr(caught.value)


def test_a_key_comes_from_the_argument_the_environment_or_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    other = KEY.replace("0123abcd", "0123abce")
    profiles.save(Profile("default", URL, key=KEY))
    assert (found := settings(Settings())).key == KEY and found.url == URL
    monkeypatch.setenv("PUNCTUAL_KEY", other)
    monkeypatch.setenv("PUNCTUAL_TOKEN", "t")
    assert ((found := settings(Settings(URL))).key, found.token) == (other, None)
    assert settings(Settings(URL, key=KEY)).key == KEY
    assert ((found := settings(Settings(URL, token="mine"))).key, found.token) == (None, "mine")
    assert settings(Settings(), "default").key == KEY
    monkeypatch.delenv("PUNCTUAL_KEY")
    monkeypatch.delenv("PUNCTUAL_TOKEN")
    assert settings(Settings("https://evil.example.com")).key is None


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.keys.get(KEY),
        lambda c: c.keys.revoke(KEY),
        lambda c: c.jobs.get(KEY[:-4]),
        lambda c: c.jobs.list(owner=KEY),
        lambda c: c.request("GET", "/jobs", query={"tag": ["a", KEY]}),
    ],
)
def test_no_address_contains_a_key(flavor: Flavor, call: Callable[[Any], Any]) -> None:
    api = Api(PAGE)
    with pytest.raises(punctual.InvalidArgument, match="no address may contain one") as caught:
        flavor.run(api, call)
    assert api.requests == [] and SECRET not in "".join(traceback.format_exception_only(caught.value))


@pytest.mark.parametrize(
    "reply",
    [
        refusal(400, message=f"no {KEY}", details=[{"field": "key", "rule": f"is {KEY}"}]),
        refusal(401, message=KEY),
        httpx.Response(403, json={"message": f"{'x' * 450} {KEY}"}),
        httpx.Response(500, text=KEY),
        answer(f"{'x' * 60} {KEY}"),
        answer({"id": KEY, "created_at": f"{'x' * 60} {KEY}"}),
    ],
)
def test_an_error_never_shows_a_key(flavor: Flavor, reply: httpx.Response) -> None:
    with pytest.raises(punctual.PunctualError) as caught:
        flavor.run(
            lambda request: httpx.Response(reply.status_code, content=reply.content), lambda c: c.keys.get("k"), key=KEY, max_retries=0
        )
    error = caught.value
    shown = [str(error), repr(error), str(vars(error)), *traceback.format_exception_only(error)]
    assert not [text for text in shown if SECRET[:6] in text]


@pytest.mark.parametrize("url", [KEY, f"https://{KEY}..example", f"key:{KEY}"])
def test_a_key_in_the_place_of_the_address_is_not_shown(url: str) -> None:
    with pytest.raises(punctual.NotConfigured) as caught:
        punctual.Punctual(url, token="t")
    assert SECRET not in str(caught.value)


def test_no_repr_shows_a_key() -> None:
    found = records.ApiKey("k", "ci", "u1", "u1", ("jobs:read",), records.instants.parse(JOB["created_at"]), key=KEY, raw={"key": KEY})
    shown = [found, Settings(URL, KEY), Profile("a", URL, key=KEY), Settings(URL, profile=Profile("a", URL, key=KEY))]
    with punctual.Punctual(URL, key=KEY) as client:
        shown += [client, vars(client), *(vars(each) for each in vars(client).values())]
        assert not [each for each in shown if SECRET in repr(each)]


class Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = json.dumps({"success": True, "data": {"version": "1", "api": "1"}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def test_no_log_has_a_key_not_even_those_of_the_http_client(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with HTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.handle_request).start()
        with punctual.Punctual(f"http://127.0.0.1:{server.server_port}", key=KEY) as client:
            assert client.version().version == "1"
    assert "/api/v1/key/version" in caplog.text and SECRET not in caplog.text


# Owners


CREATIONS: list[Callable[[Any], Any]] = [
    lambda c: c.jobs.create(message="m"),
    lambda c: c.jobs.create(message="m", key="k"),
    lambda c: c.tasks.create("Nightly", message="m"),
    lambda c: c.tasks.put("k", name="Nightly", message="m"),
]
READS: list[Callable[[Any], Any]] = [
    lambda c: c.jobs.list(),
    lambda c: c.tasks.list(),
    lambda c: c.dead_letters.list(),
    lambda c: c.operations.list(),
    lambda c: c.audit(),
    lambda c: c.keys.list(),
    lambda c: list(plan.tasks(c)) if isinstance(c, punctual.Punctual) else c.tasks.list(),
]


@pytest.mark.parametrize("call", [*CREATIONS, *READS])
def test_the_owner_of_the_client_is_sent_with_each_call_that_takes_one(flavor: Flavor, call: Callable[[Any], Any]) -> None:
    api = Api(TASK | PAGE)
    flavor.run(api, call, owner=TEAM)
    flavor.run(api, call)
    assert [owner for _, _, owner, _ in api.sent] == [TEAM, None]


def test_a_batch_is_of_the_owner(flavor: Flavor) -> None:
    api = Api({"accepted": 1, "refused": 0, "results": [{"index": 0, "job": JOB}]})
    flavor.run(api, lambda c: c.jobs.create_many([{"message": "m"}]), owner=TEAM)
    flavor.run(api, lambda c: c.jobs.create_many([{"message": "m"}], owner="u2"), owner=TEAM)
    assert [owner for _, _, owner, _ in api.sent] == [TEAM, "u2"]


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.jobs.create(message="m", owner="u2"),
        lambda c: c.tasks.create("Nightly", message="m", owner="u2"),
        lambda c: c.tasks.put("k", name="Nightly", message="m", owner="u2"),
        lambda c: c.jobs.list(owner="u2"),
        lambda c: c.keys.create("ci", ["jobs:read"], owner="u2"),
    ],
)
def test_a_call_names_another_owner(flavor: Flavor, call: Callable[[Any], Any]) -> None:
    api = Api({**TASK, **PAGE, "owner": "u2", "maker": "u1", "scopes": []})
    flavor.run(api, call, owner=TEAM)
    assert [owner for _, _, owner, _ in api.sent] == ["u2"]
    assert not any(b"owner" in request.content for request in api.requests)


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.request("GET", "/me"),
        lambda c: c.targets.list(),
        lambda c: c.users.list(),
        lambda c: c.teams.list(),
        lambda c: c.audit(everyone=True),
        lambda c: c.request("GET", "/status", query={"scope": "all"}),
    ],
)
def test_a_call_about_no_owner_sends_none(flavor: Flavor, call: Callable[[Any], Any]) -> None:
    api = Api(PAGE)
    flavor.run(api, call, owner=TEAM)
    assert [owner for _, _, owner, _ in api.sent] == [None]


def test_a_summary_of_all_is_of_no_owner(flavor: Flavor) -> None:
    api = Api({"scope": "all", "available_instances": 1, "minutes": []})
    flavor.run(api, lambda c: c.forecast(scope="all"), owner=TEAM)
    flavor.run(api, lambda c: c.forecast(), owner=TEAM)
    assert [owner for _, _, owner, _ in api.sent] == [None, TEAM]


def test_the_owner_comes_from_the_argument_the_environment_or_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    profiles.save(Profile("default", URL, token="t", owner=TEAM))
    with punctual.Punctual() as client:
        assert client.owner == TEAM
    assert settings(Settings(token="other")).owner is None, "the owner of a profile goes with its credentials"
    monkeypatch.setenv("PUNCTUAL_OWNER", "u2")
    assert [settings(each).owner for each in (Settings(), Settings(owner="u3"), Settings(token="other"))] == ["u2", "u3", "u2"]
    assert settings(Settings(), "default").owner == TEAM


def test_renewed_tokens_leave_the_chosen_owner_of_the_profile(flavor: Flavor) -> None:
    profiles.save(Profile("dev", URL, username="ann", token="old", refresh_token="r", expires_at=flavor.times.at - 1))

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/auth/refresh"):
            profiles.choose_owner("dev", TEAM, "Billing")  # another process, in the meantime
            return answer({"token": "new", "expires_in": 3600})
        return answer({"version": "1", "api": "1"})

    flavor.run(handle, lambda c: c.version(), profile="dev")
    stored = profiles.find("dev")
    assert stored is not None and (stored.token, stored.owner, stored.owner_name) == ("new", TEAM, "Billing")
