"""Whatever answers: each error is a PunctualError, each call ends in its time, each list ends, and heartbeats go on."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_api import JOB, Flavor, answer

import punctual
from punctual import Worker, profiles, worker

DEEP = b"[" * 200_000
STRANGE = {
    "no JSON": lambda: httpx.Response(200, text="<html>sign in to the network</html>"),
    "JSON of another API": lambda: httpx.Response(200, json=[1]),
    "nested too deep": lambda: httpx.Response(200, content=DEEP),
    "an integer of 5,000 digits": lambda: httpx.Response(200, content=b'{"success": true, "data": ' + b"1" * 5_000 + b"}"),
    "an error without a shape": lambda: httpx.Response(400, json={"error": {"details": 5}}),
    "details without a shape": lambda: httpx.Response(400, json={"error": {"message": "no", "details": ["x", None]}}),
    "an error that is nested too deep": lambda: httpx.Response(400, content=DEEP),
    "a charset that is none of text": lambda: httpx.Response(400, content=b"zz", headers={"Content-Type": "text/plain; charset=hex"}),
    "bad gzip": lambda: httpx.Response(200, stream=httpx.ByteStream(b"\x1f\x8bno"), headers={"Content-Encoding": "gzip"}),
    "a redirect to no address": lambda: httpx.Response(302, headers={"Location": "http://[::1"}),
    "a pause that is no number": lambda: httpx.Response(429, headers=[(b"Retry-After", b"\xb2")]),
    "a record without its fields": lambda: answer({}),
    "fields of other types": lambda: answer({name: {"x": []} for name in JOB}),
    "items that are no list": lambda: answer({"items": 5}),
}


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.jobs.get("j"),
        lambda client: client.jobs.create(message="x"),
        lambda client: client.jobs.create_many([{"message": "x"}]),
        lambda client: client.jobs.list(),
        lambda client: client.tasks.put("k", name="n", message="x"),
        lambda client: client.schedules.preview(cron="0 2 * * *"),
        lambda client: client.system.pause(),
        lambda client: client.system.close_breaker("c"),
    ],
)
def test_a_strange_answer_is_an_error_of_this_package(name: str, call: Any, flavor: Flavor) -> None:
    with pytest.raises(punctual.PunctualError):
        flavor.run(lambda request: STRANGE[name](), call, max_retries=1)


@pytest.mark.parametrize("lasts", ["soon", [1], {"x": 1}])
def test_a_sign_in_with_a_strange_life_is_an_error(lasts: Any, flavor: Flavor) -> None:
    with pytest.raises(punctual.UnexpectedAnswer, match="expires_in"):
        flavor.run(lambda request: answer({"token": "t", "expires_in": lasts}), lambda client: client.me(), username="a", password="b")


NO_HOSTS = ["https://a..example", "https://" + "a" * 64 + ".example", "https://\ud800.example"]


@pytest.mark.parametrize(
    "url", ["http://[::1", "https://", "api.example.com", "http://a:99999999", "http://a\x00b", "ftp://a", "", *NO_HOSTS]
)
def test_an_address_that_is_none_is_not_configured(url: str) -> None:
    with pytest.raises(punctual.NotConfigured):
        punctual.Punctual(url, token="t")


@pytest.mark.parametrize("token", ["tök", "t\n", "a b", "t\ud800", "t\x00"])
def test_a_token_that_no_header_can_have_is_not_configured(token: str, flavor: Flavor) -> None:
    with pytest.raises(punctual.NotConfigured, match="the token has"):
        punctual.Punctual("https://a", token=token)
    profiles.save(profiles.Profile("a", "https://a", token=token))
    with pytest.raises(punctual.NotConfigured, match="the token has"):
        punctual.Punctual()
    content = json.dumps({"success": True, "data": {"token": token}})
    with pytest.raises(punctual.UnexpectedAnswer, match="token that no header can have"):
        flavor.run(lambda request: httpx.Response(200, text=content), lambda client: client.me(), username="a", password="b")


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda client: client.jobs.create(message="x", idempotency_key="schlüssel"), "Idempotency-Key must be printable ASCII"),
        (lambda client: client.jobs.create(message="x", idempotency_key="a\nb"), "Idempotency-Key must be printable ASCII"),
        (lambda client: client.tasks.update("t", name="n", if_match='"ö"'), "If-Match must be printable ASCII"),
        (lambda client: client.send("GET", "/me", headers={"X-Ö": "a"}), "X-.xd6 must be printable ASCII"),
        (lambda client: client.send("GET", "/me", headers={"X": "ö"}), "X must be printable ASCII"),
        (lambda client: client.jobs.create(message="\ud800"), r"message is no text in UTF-8: .*\(.ud800\)"),
        (lambda client: client.jobs.create("own", {"a": [{"b": "\udcff"}]}), r"payload\.a\[0\]\.b is no text in UTF-8"),
        (lambda client: client.jobs.create("own", {"\udcff": 1}), "the name 'payload..udcff' is no text in UTF-8"),
        (lambda client: client.jobs.create("own", {"a": float("nan")}), "has no JSON form"),
        (lambda client: client.jobs.create("own", {"a": _deep()}), "has no JSON form"),
        (lambda client: client.jobs.create(message="x", delay=float("inf")), "no number of seconds"),
        (lambda client: client.jobs.create(message="x", execute_at=datetime(2026, 1, 1)), "has no time zone"),
        (lambda client: client.jobs.list(tag="\ud800"), "tag is no text in UTF-8"),
        (lambda client: client.jobs.get("\ud800"), "is no id, key or name"),
        (lambda client: client.jobs.get(".."), "is no id, key or name"),
        (lambda client: client.jobs.get(), "an id or a key"),
        (lambda client: client.request("GET", "/\ud800"), "cannot be sent"),
        (lambda client: client.change_password("\ud800", "b"), "current_password is no text in UTF-8"),
    ],
)
def test_an_argument_that_cannot_be_sent_is_an_error_of_this_package(call: Any, rule: str, flavor: Flavor) -> None:
    with pytest.raises(punctual.InvalidArgument, match=rule):
        flavor.run(lambda request: answer(JOB), call)


def test_a_password_that_cannot_be_sent_is_an_error_of_this_package(flavor: Flavor) -> None:
    with pytest.raises(punctual.InvalidArgument, match="cannot be sent"):
        flavor.run(lambda request: answer({"token": "t"}), lambda client: client.me(), username="a", password="\ud800")


def _deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


@pytest.mark.parametrize("cursors", [["a", "a"], ["a", "b", "a"], [5]])
def test_a_list_whose_cursor_does_not_move_ends(cursors: list[Any], flavor: Flavor) -> None:
    left = list(cursors)
    with pytest.raises(punctual.UnexpectedAnswer, match="would never end"):
        flavor.run(lambda request: answer({"items": [JOB], "cursor": left.pop(0)}), lambda client: client.jobs.list())


@pytest.fixture(params=["head", "body"])
def dripping(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server whose answer never ends: it sends a byte whenever the last has been read."""
    head = b"HTTP/1.1 200 OK\r\n" if request.param == "head" else b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    ended = threading.Event()

    def serve(listening: socket.socket) -> None:
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                try:
                    connection.sendall(head)
                    while not ended.wait(0.02):
                        connection.sendall(b"a")
                except OSError:
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.long
def test_a_dripping_answer_ends_with_the_time_of_the_call(dripping: str) -> None:
    with punctual.Punctual(dripping, token="t", timeout=0.3, max_retries=0) as client, pytest.raises(punctual.NoAnswer):
        client.jobs.get("j")


async def _get(url: str) -> None:
    async with punctual.AsyncPunctual(url, token="t", timeout=0.3, max_retries=0) as client:
        await client.jobs.get("j")


def test_a_dripping_answer_ends_for_the_asynchronous_client_too(dripping: str) -> None:
    with pytest.raises(punctual.NoAnswer):
        asyncio.run(_get(dripping))


# Workers

URL, TOKEN = "https://api.example.com/api/v1/jobs/01A", "attempt-token"
BEATS = {
    **{
        name: STRANGE[name]
        for name in ("no JSON", "nested too deep", "an integer of 5,000 digits", "bad gzip", "a record without its fields")
    },
    "a lease that ends in the year 9999": lambda: answer({"lease_until": "9999-12-31T23:59:59Z", "cancel_requested": False}),
    "a lease without an instant": lambda: answer({"lease_until": 7, "cancel_requested": False}),
}


@pytest.mark.parametrize("name", BEATS)
def test_heartbeats_survive_a_strange_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in ("FIRST_HEARTBEAT_SECONDS", "LEAST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS", "LONGEST_TRY"):
        monkeypatch.setattr(worker, setting, 0.01)
    beats: list[None] = []
    third = threading.Event()

    def respond(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/complete"):
            return answer({"id": "01A", "status": "succeeded"})
        beats.append(None)
        if len(beats) == 3:
            third.set()
        until = (datetime.now(timezone.utc) + timedelta(seconds=0.01)).isoformat()
        return BEATS[name]() if len(beats) == 1 else answer({"lease_until": until, "cancel_requested": False})

    with Worker(URL, TOKEN, transport=httpx.MockTransport(respond)) as work:
        assert third.wait(60)
        monkeypatch.setattr(worker, "LONGEST_TRY", 60.0)
        work.complete()


@pytest.mark.parametrize(
    "url",
    [
        "https://stranger.example/api/v1/jobs/01A",
        "http://api.example.com/api/v1/jobs/01A",
        "https://api.example.com:8443/api/v1/jobs/01A",
        "https://api.example.com@stranger.example/api/v1/jobs/01A",
        "https://user@api.example.com/api/v1/jobs/01A",
        "https://api.example.com.stranger.example/x",
        "http://[::1",
        "file:///etc/passwd",
        "api.example.com",
    ],
)
def test_a_worker_that_knows_its_api_refuses_other_hosts(url: str) -> None:
    headers = {"Punctual-Callback-Url": url, "Punctual-Callback-Token": TOKEN}
    with pytest.raises(punctual.UnexpectedAnswer):
        Worker.from_headers(headers, api="https://api.example.com/api/v1")


@pytest.mark.parametrize("api", ["https://api.example.com", "https://API.example.com:443/api/v1/"])
def test_a_worker_that_knows_its_api_accepts_its_host(api: str) -> None:
    headers = {"Punctual-Callback-Url": URL, "Punctual-Callback-Token": TOKEN}
    assert Worker.from_headers(headers, api=api).url == URL


def test_a_worker_refuses_a_token_that_no_header_can_have() -> None:
    with pytest.raises(punctual.UnexpectedAnswer, match="call-back token"):
        Worker.from_headers({"Punctual-Callback-Url": URL, "Punctual-Callback-Token": "tök"})


@pytest.mark.parametrize("url", NO_HOSTS)
def test_a_worker_without_a_host_has_no_answer(url: str) -> None:
    with pytest.raises(punctual.NoAnswer):
        Worker(url, TOKEN).heartbeat()


# Profiles


@pytest.mark.parametrize("call", [profiles.save, profiles.renew, lambda profile: profiles.remove(profile.name)])
@pytest.mark.parametrize("kind", ["a file in its place", "a folder in its place", "read-only"])
def test_profiles_that_cannot_be_written_are_not_configured(kind: str, call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "punctual"
    monkeypatch.setenv("PUNCTUAL_CONFIG", str(folder / "profiles.json"))
    if kind == "a file in its place":
        folder.write_text("")
    elif kind == "a folder in its place":
        (folder / "profiles.json" / "x").mkdir(parents=True)
    else:

        def refuse(*_: Any, **__: Any) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(punctual.NotConfigured, match=r"cannot be (written|read)"):
        call(profiles.Profile("a", "https://a"))


def test_a_user_without_a_home_has_no_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PUNCTUAL_CONFIG", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert profiles.load() == profiles.Profiles()
    with pytest.raises(punctual.NotConfigured, match="PUNCTUAL_CONFIG"):
        profiles.save(profiles.Profile("a", "https://a"))


def test_profiles_that_several_processes_save_are_all_kept() -> None:
    code = (
        "import sys; from punctual.profiles import Profile, save\nfor n in range(50): save(Profile(sys.argv[1], 'https://a', token=str(n)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(punctual.__file__).parents[1])}
    running = [subprocess.Popen([sys.executable, "-c", code, name], env=environment) for name in "abc"]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    assert {name: one.token for name, one in profiles.load().all.items()} == dict.fromkeys("abc", "49")


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_profiles_that_others_can_change_are_refused(mode: int) -> None:
    profiles.save(profiles.Profile("a", "https://a"))
    assert profiles.path().stat().st_mode & 0o777 == 0o600
    profiles.path().chmod(mode)
    with pytest.raises(punctual.NotConfigured, match="chmod 600"):
        profiles.load()


def test_a_profile_that_was_removed_is_not_renewed() -> None:
    profiles.save(profiles.Profile("a", "https://a"))
    profiles.remove("a")
    profiles.renew(profiles.Profile("a", "https://a", token="t"))
    assert profiles.load().all == {}
    assert json.loads(profiles.path().read_text())["profiles"] == {}
