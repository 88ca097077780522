"""The command line against an API of a few lines: results, JSON, pipes, errors and exit codes."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer.main
from fake_api import JOB, URL, answer, refusal
from typer.testing import CliRunner, Result

from punctual import profiles
from punctual.cli import build
from punctual.cli._app import Setup
from punctual.profiles import Profile

NOW = datetime(2026, 11, 20, 9, 59, 50, tzinfo=timezone.utc)
ID = JOB["id"]
RUN = {"nominal": "2026-11-21T01:30:00.000Z", "at": "2026-11-21T01:30:00.000Z", "local_at": "2026-11-21T02:30:00.000+01:00"}
TASK: dict[str, Any] = {
    **{name: JOB[name] for name in ("id", "type", "payload", "created_at", "max_attempts", "timeout_seconds", "retry")},
    "name": "Nightly report",
    "key": "nightly",
    "status": "active",
    "generation": 1,
    "overlap": "skip",
    "updated_at": "2026-11-20T09:00:00.000Z",
    "schedule": {"cron": "30 2 * * *", "time_zone": "Europe/Berlin"},
    "next_runs": [RUN],
}
OPERATION: dict[str, Any] = {
    "id": "01OP",
    "action": "cancel_jobs",
    "status": "running",
    "filter": {"tag": ["a"]},
    "rate": 50,
    "matched": 0,
    "done": 0,
    "skipped": 0,
    "failed": 0,
    "started_at": "2026-11-20T09:59:00.000Z",
}
DONE = {**OPERATION, "status": "done", "matched": 3, "done": 2, "skipped": 1}
REDRIVE = {**{name: OPERATION[name] for name in ("id", "status", "filter", "rate", "matched", "skipped", "started_at")}, "redriven": 0}
JOB_GROUP: dict[str, Any] = {
    "id": "01GR",
    "name": "Invoices",
    "state": "sealed",
    "jobs": 50,
    "counts": {"unfinished": 13, "succeeded": 35, "failed": 2, "killed": 0, "cancelled": 0, "skipped": 0},
    "callbacks": [{"kind": "on_success", "type": "log", "job_id": None}],
    "created_at": "2026-11-20T09:59:00.000Z",
    "seal_by": "2026-11-21T09:59:00.000Z",
}
GROUP = {
    "fingerprint": "3f9c2a7e5b8d",
    "count": 7,
    "types": ["http"],
    "task_ids": [],
    "first_at": "2026-11-20T08:00:00.000Z",
    "last_at": "2026-11-20T09:00:00.000Z",
    "job_id": ID,
    "calls": "api.example.com",
    "error": {"kind": "permanent", "message": "HTTP 404"},
}
ME = {"id": "u1", "username": "ann", "role": "user", "scopes": [], "job_weight": 1, "effective_quotas": {"max_jobs": 100}}
USER = {
    "id": "u1",
    "username": "ann",
    "role": "user",
    "enabled": True,
    "job_weight": 1,
    "quotas": {},
    "effective_quotas": {"max_jobs": 100},
}
TARGET = {
    "name": "billing",
    "kind": "http",
    "enabled": True,
    "job_payload_schema": {},
    "version": 1,
    "rate": 20,
    "created_at": "2026-11-20T08:00:00.000Z",
    "updated_at": "2026-11-20T08:00:00.000Z",
}
LANES = {"lanes": [{"lane": "retry", "paused": True, "paused_at": "2026-11-20T09:00:00.000Z", "reason": "incident"}]}
STATUS: dict[str, Any] = {
    "at": "2026-11-20T09:59:50.000Z",
    "scope": "own",
    "well": True,
    "more_problems": False,
    "scheduler": None,
    "late": {"count": 0, "at_least": False, "longest_seconds": 0},
    **{name: [] for name in ("problems", "lanes", "breakers", "waiting", "failures", "skipping")},
}
SESSION = {"token": "t1", "expire": "2026-11-20T11:00:00.000Z", "refresh_token": "r1", "user": {}}


def page(*items: Any) -> dict[str, Any]:
    return {"items": list(items), "has_more": False, "cursor": None}


Reply = Any  # the data of an answer, an answer, or a list of them, one for each call


class Api:
    """Answers by route; `sent` has each request as (method, path, query, body)."""

    def __init__(self, routes: dict[str, Reply]) -> None:
        self.routes = {route: list(reply) if isinstance(reply, list) else reply for route, reply in routes.items()}
        self.sent: list[tuple[str, str, dict[str, str], Any]] = []
        self.headers = httpx.Headers()  # of the last request

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.headers = request.headers
        body = json.loads(request.content) if request.content else None
        path = request.url.raw_path.decode().partition("?")[0].removeprefix("/api/v1")
        self.sent.append((request.method, path, dict(request.url.params), body))
        reply = self.routes.get(f"{request.method} {path}", refusal(404, "not_found", "there is no such job"))
        if isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, httpx.Response) else answer(reply)

    @property
    def last(self) -> tuple[str, str, dict[str, str], Any]:
        return self.sent[-1]


class Terminal:
    """Runs commands against an API, with a clock that only pauses move."""

    def __init__(self, **routes: Reply) -> None:
        self.api = Api(routes)
        self.at = NOW
        self.pauses: list[float] = []
        self.columns = 140

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += timedelta(seconds=seconds)

    def __call__(self, *words: str, terminal: bool = False, input: str = "") -> Result:
        setup = Setup(httpx.MockTransport(self.api), lambda: self.at, self.pause, terminal)
        return CliRunner().invoke(build(), words, obj=setup, input=input, env={"COLUMNS": str(self.columns), "TERM": "xterm"})


def api(routes: dict[str, Reply]) -> Terminal:
    return Terminal(**routes)


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def plain(shown: str) -> str:
    """The text without its colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", shown)


# Sign-in


def test_login_stores_tokens_and_no_password() -> None:
    cli = api({"POST /auth/login": SESSION, "GET /me": ME})
    assert "Signed in to https://api.example.com as ann (user). Profile: default." in done(
        cli("login", f"{URL}/api/v1/", "--username", "ann", input="s3cret\n")
    )
    assert cli.api.sent[0][3] == {"username": "ann", "password": "s3cret"}
    stored = profiles.path().read_text()
    assert '"t1"' in stored and "s3cret" not in stored
    assert profiles.path().stat().st_mode & 0o777 == 0o600


def test_a_wrong_password_is_exit_code_3_and_stores_nothing() -> None:
    result = api({"POST /auth/login": refusal(401, "unauthorized", "the user name or the password is wrong")})(
        "login", URL, "--username", "ann", input="wrong\n"
    )
    assert result.exit_code == 3 and "password is wrong" in result.stderr and URL in result.stderr
    assert not profiles.path().exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("login",), "address of the api is missing"),
        (("login", URL), "user name is missing"),
        (("login", "api.example.com"), "URL: must begin with https://"),
        (("login", URL, "-u", "ann"), "password is missing"),
        (("login", URL, "--key"), "api key is missing"),
        (("login", URL, "--key", "-u", "ann"), "give --key or --username, not both"),
    ],
)
def test_login_without_a_terminal_says_what_is_missing(words: tuple[str, ...], said: str) -> None:
    result = api({})(*words)
    assert result.exit_code == 2 and said in result.stderr.lower().replace("url: must", "URL: must")


def test_logout_ends_the_session_and_deletes_the_profile() -> None:
    profiles.save(Profile("default", URL, username="ann", token="t0", refresh_token="r0", expires_at=NOW.timestamp() + 1e9))
    cli = api({"POST /auth/logout": {"signed_out": True}})
    assert "Signed out of https://api.example.com" in done(cli("logout"))
    assert cli.api.last[3] == {"everywhere": False, "refresh_token": "r0"}
    assert profiles.load().all == {}
    assert cli("logout").exit_code == 3


def test_profiles_are_listed_and_chosen() -> None:
    for name in ("a", "b"):
        profiles.save(Profile(name, f"https://{name}.example.com", username="ann", token="t"))
    cli = api({"GET /me": ME})
    assert json.loads(done(cli("profiles", "--json")).splitlines()[1])["current"] is True
    assert "https://a.example.com" in done(cli("profiles", "--use", "a", terminal=True))
    assert profiles.load().current == "a"
    assert done(cli("--profile", "b", "whoami", "--quiet")) == "ann\n"
    result = cli("whoami", "--profile", "c")
    assert result.exit_code == 3 and "there is no profile 'c' (there are: a, b)" in result.stderr and "Traceback" not in result.output


# Jobs


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("log", "hello"), {"type": "log", "payload": {"message": "hello"}}),
        (("http", "https://x"), {"type": "http", "payload": {"method": "POST", "url": "https://x"}}),
        (
            ("http", "put", "https://x", "-H", "A: b", "-d", '{"a": 1}', "--payload", '{"signing_secret": "s"}'),
            {
                "type": "http",
                "payload": {"method": "PUT", "url": "https://x", "headers": {"A": "b"}, "body": {"a": 1}, "signing_secret": "s"},
            },
        ),
        (("http", "https://x", "-d", "17"), {"type": "http", "payload": {"method": "POST", "url": "https://x", "body": "17"}}),
        (("http", "--payload", '{"url": "https://x"}'), {"type": "http", "payload": {"method": "POST", "url": "https://x"}}),
        (
            ("http", "put", "--payload", '{"url": "https://x", "method": "GET", "timeout_seconds": 5}', "-d", "text"),
            {"type": "http", "payload": {"method": "PUT", "url": "https://x", "timeout_seconds": 5, "body": "text"}},
        ),
        (
            ("https://x", "--payload", '{"method": "PUT"}', "--signing-secret", "s"),
            {"type": "http", "payload": {"method": "PUT", "url": "https://x", "signing_secret": "s"}},
        ),
        (("target", "invoices"), {"target": "invoices", "payload": {}}),
        (("sqs", "--payload", '{"queue": "q"}'), {"type": "sqs", "payload": {"queue": "q"}}),
    ],
)
@pytest.mark.usefixtures("signed_in")
def test_what_a_job_runs(words: tuple[str, ...], body: dict[str, Any]) -> None:
    cli = api({"POST /jobs": JOB})
    assert f"Job {ID} starts at" in done(cli("jobs", "create", *words))
    assert cli.api.last[3] == body


@pytest.mark.usefixtures("signed_in")
def test_the_options_of_a_job_reach_the_api() -> None:
    cli = api({"PUT /jobs/by-key/order-17": {**JOB, "outcome": "replaced"}})
    options = (
        "--in 1h30m --key order-17 --on-conflict replace --tag a -t b --max-attempts 5 --timeout 2m --ordering-key o --on-failure pause"
    )
    more = ("--expires", "2h", "-f", 'retry={"base_seconds": 5}', "-f", "events=true")
    result = cli("jobs", "create", "log", "x", *options.split(), *more)
    assert "in 10s (replaced)" in done(result)
    sent = cli.api.last[3]
    assert sent == {
        "type": "log",
        "payload": {"message": "x"},
        "delay_seconds": 5400,
        "on_conflict": "replace",
        "tags": ["a", "b"],
        "max_attempts": 5,
        "timeout_seconds": 120,
        "ordering_key": "o",
        "on_failure": "pause",
        "expires_at": "2026-11-20T11:59:50.000Z",
        "retry": {"base_seconds": 5},
        "events": True,
    }


@pytest.mark.usefixtures("signed_in")
def test_the_secret_and_the_trace_of_a_call_are_options() -> None:
    cli = api({"POST /jobs": JOB, "POST /tasks": TASK})
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    payload = {"method": "POST", "url": "https://x", "signing_secret": "s"}
    done(cli("jobs", "create", "https://x", "--signing-secret", "s", "--traceparent", parent))
    assert cli.api.last[3] == {"type": "http", "payload": payload} and cli.api.headers.get("traceparent") == parent
    done(cli("tasks", "create", "n", "https://x", "--signing-secret", "s"))
    assert cli.api.last[3] == {"name": "n", "type": "http", "payload": payload} and "traceparent" not in cli.api.headers


@pytest.mark.usefixtures("signed_in")
def test_the_rules_of_a_key_reach_the_api() -> None:
    cli = api({"PUT /jobs/by-key/page": {**JOB, "outcome": "throttled"}})
    assert f"Throttled: job {ID} won" in done(cli("jobs", "create", "log", "x", "--key", "page", "--throttle", "10m"))
    assert cli.api.last[3] == {"type": "log", "payload": {"message": "x"}, "throttle": "600s"}
    done(cli("jobs", "create", "log", "x", "--key", "page", "--debounce", "5s", "--max-wait", "1m30s"))
    assert cli.api.last[3] == {"type": "log", "payload": {"message": "x"}, "debounce": "5s", "max_wait": "90s"}
    done(cli("jobs", "create", "log", "x", "--key", "page", "--singleton"))
    assert cli.api.last[3] == {"type": "log", "payload": {"message": "x"}, "singleton": True}


@pytest.mark.usefixtures("signed_in")
def test_a_body_comes_from_a_file_or_the_standard_input(tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text("[1]")
    cli = api({"POST /jobs": JOB})
    done(cli("jobs", "create", "http", "https://x", "-d", f"@{tmp_path / 'body.json'}"))
    assert cli.api.last[3]["payload"]["body"] == [1]
    done(cli("jobs", "create", "http", "https://x", "-d", "@-", input="text"))
    assert cli.api.last[3]["payload"]["body"] == "text"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("http",), "error: URL: is missing"),
        (("http", "example.com"), "error: URL: must begin with https://"),
        (("log", "two", "words"), "put it between quotes"),
        (("log", "x", "-d", "1"), "error: --data: is for http only"),
        (("log", "x", "--signing-secret", "s"), "error: --signing-secret: is for http only"),
        (("http", "--payload", '{"method": "GET"}'), "error: URL: is missing"),
        (("sqs",), "error: --payload: is needed for a job of the type sqs"),
        (("sqs", "--payload", "{"), "error: --payload: must be JSON"),
        (("sqs", "--payload", "[1]"), "error: --payload: must be a JSON object"),
        (("sqs", "--payload", "@/nowhere"), "/nowhere cannot be read"),
        (("sqs", "queue", "--payload", "{}"), "one word too many"),
        (("log", "x", "--in", "soon"), "error: --in: must be a duration such as 90s"),
        (("log", "x", "--at", "2026-11-20T10:00:00"), "error: --at: needs an offset"),
        (("log", "x", "--at", "tomorrow"), "error: --at: must be an instant"),
        (("log", "x", "--in", "1s", "--at", "2026-11-20T10:00:00Z"), "not both of --in and --at"),
        (("log", "x", "--on-conflict", "keep"), "error: --on-conflict: needs --key"),
        (("log", "x", "--max-wait", "20s"), "error: --max-wait: needs --key"),
        (("log", "x", "--singleton"), "error: --singleton: needs --key"),
        (("log", "x", "-f", "retry"), "error: --field: must be NAME=VALUE"),
        (("http", "https://x", "-H", "Accept"), "error: --header: must be NAME:VALUE"),
        (("log", "x", "--timeout", "1.5s"), "error: --timeout: must be whole seconds"),
    ],
)
@pytest.mark.usefixtures("signed_in")
def test_a_wrong_option_names_the_rule_and_sends_nothing(words: tuple[str, ...], said: str) -> None:
    cli = api({})
    result = cli("jobs", "create", *words)
    assert result.exit_code == 2 and said in result.stderr and result.stdout == ""
    assert not cli.api.sent


@pytest.mark.usefixtures("signed_in")
def test_a_job_may_wait_for_others() -> None:
    cli = api({"POST /jobs": {**JOB, "after": [{"job": "X", "when": "ended", "outcome": None}]}})
    result = cli("jobs", "create", "log", "x", "--after", "X", "--after-key", "nightly", "--after-any-end", "--key", "k")
    assert f"Job {ID} starts after X, not before" in done(result)
    assert cli.api.last[3]["after"] == [{"job": "X", "when": "ended"}, {"key": "nightly", "when": "ended"}]
    refused = cli("jobs", "create", "log", "x", "--after-any-end")
    assert refused.exit_code == 2 and "--after-any-end: needs --after, --after-key or --after-group" in refused.stderr


@pytest.mark.usefixtures("signed_in")
def test_all_rules_that_the_server_finds_broken_are_lines() -> None:
    details = [{"field": "max_attempts", "rule": "must be at most 25"}, {"field": "tags", "rule": "must be different"}]
    cli = api({"POST /jobs": refusal(422, "validation_failed", "2 fields are not valid", details)})
    result = cli("jobs", "create", "log", "x")
    assert result.exit_code == 2
    assert result.stderr == "error: max_attempts: must be at most 25\nerror: tags: must be different\n"
    machine = cli("jobs", "create", "log", "x", "--json")
    assert json.loads(machine.stderr)["error"]["details"] == details and machine.stdout == ""


@pytest.mark.usefixtures("signed_in")
def test_lists_are_tables_tabs_lines_of_json_or_ids() -> None:
    late = {**JOB, "status": "failed", "reason": "HTTP 500", "start_delay_ms": 3, "key": "k", "ended_at": "2026-11-20T09:00:01.000Z"}
    cli = api({"GET /jobs": page(late, JOB)})
    assert [json.loads(line)["id"] for line in done(cli("jobs", "list", "--json")).splitlines()] == [ID, ID]
    assert done(cli("jobs", "list", "-q")) == f"{ID}\n{ID}\n"
    fields = done(cli("jobs", "list")).splitlines()[0].split("\t")
    assert fields[:2] == [ID, "failed"] and fields[3] == "3 ms" and fields[6:] == ["k", "POST https://example.com", "HTTP 500"]
    shown = done(cli("jobs", "list", terminal=True))
    assert "late by" in shown and "HTTP 500" in shown and "took" not in shown
    assert cli.api.last[2] == {"limit": "20"}
    for cli.columns in (60, 80, 100):
        lines = [line.rstrip() for line in plain(done(cli("jobs", "list", terminal=True))).splitlines()]
        assert len(lines) == 3 and lines[1].startswith(f"{ID}  failed") and max(map(len, lines)) <= cli.columns


@pytest.mark.usefixtures("signed_in")
def test_filters_of_lists_reach_the_api() -> None:
    cli = api({"GET /jobs": page()})
    words = "jobs list --upcoming -s failed -s queued -t a --type http --task T --since 1h --until 2026-11-20T10:00:00Z --limit 0"
    assert "No job is ahead" in done(cli(*words.split(), terminal=True))
    query = cli.api.last[2]
    assert query.pop("status") in ("failed,queued", "queued")
    assert query == {
        "upcoming": "true",
        "tag": "a",
        "type": "http",
        "task": "T",
        "from": "2026-11-20T08:59:50.000Z",
        "to": "2026-11-20T10:00:00.000Z",
        "limit": "100",
    }


@pytest.mark.usefixtures("signed_in")
def test_a_job_is_shown_with_its_attempts() -> None:
    attempt = {
        "number": 1,
        "picked_at": "2026-11-20T10:00:00.000Z",
        "started_at": "2026-11-20T10:00:00.002Z",
        "ended_at": "2026-11-20T10:00:01.000Z",
        "outcome": "failed",
        "failure": {"kind": "retryable", "message": "HTTP 503"},
    }
    ended = {**JOB, "attempts": [attempt], "response": {"status": 503, "headers": {}, "body": "busy\nvery"}, "progress": {"fraction": 0.5}}
    cli = api({f"GET /jobs/{ID}": ended, "GET /jobs/by-key/order%3A17": ended})
    shown = done(cli("jobs", "show", ID))
    assert "failed: retryable, HTTP 503" in shown and "HTTP 503\n" in shown and "50%" in shown
    assert json.loads(done(cli("jobs", "show", "--key", "order:17", "--json"))) == ended
    assert cli("jobs", "show").exit_code == cli("jobs", "show", ID, "--key", "k").exit_code == 2


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize(("started", "said"), [("00.207", "), 207 ms late"), ("02.095", "), first start 207 ms late")])
def test_the_delay_of_the_first_start_is_not_that_of_a_retry(started: str, said: str) -> None:
    times = {"scheduled_at": "2026-11-20T09:00:00.000Z", "started_at": f"2026-11-20T09:00:{started}Z", "start_delay_ms": 207}
    assert said in done(api({f"GET /jobs/{ID}": {**JOB, **times}})("jobs", "show", ID))


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize(
    ("payload", "runs"),
    [({}, "GET https://x"), ({"body": {}}, "POST https://x"), ({"method": "PUT"}, "PUT https://x")],
)
def test_a_call_without_a_method_is_shown_as_it_is_made(payload: dict[str, Any], runs: str) -> None:
    job = {**JOB, "payload": {"url": "https://x", **payload}}
    assert re.search(rf"^runs +{re.escape(runs)}$", done(api({f"GET /jobs/{ID}": job})("jobs", "show", ID)), re.MULTILINE)


@pytest.mark.usefixtures("signed_in")
def test_the_output_of_a_worker_is_shown_beside_the_answer_of_the_target() -> None:
    reported = {**JOB, "status": "succeeded", "response": {"status": 202, "headers": {}, "body": ""}, "output": '{"rows": 42}'}
    shown = done(api({f"GET /jobs/{ID}": reported})("jobs", "show", ID))
    assert "HTTP 202\n" in shown and '{"rows": 42}\n' in shown


@pytest.mark.usefixtures("signed_in")
def test_watch_ends_with_the_job_and_reports_how() -> None:
    running = {**JOB, "status": "running"}
    ended = {**JOB, "status": "succeeded", "ended_at": "2026-11-20T10:00:01.000Z", "start_delay_ms": 1}
    cli = api({f"GET /jobs/{ID}": [JOB, running, ended]})
    result = cli("jobs", "watch", ID)
    assert [line.split("\t")[1] for line in done(result).splitlines()] == ["scheduled", "running", "succeeded"]
    assert cli.pauses == [5.0, 0.5]
    failed = {**ended, "status": "failed"}
    cli = api({f"GET /jobs/{ID}": [JOB, failed]})
    result = cli("jobs", "watch", ID, "--json")
    assert result.exit_code == 1 and [json.loads(line)["status"] for line in result.stdout.splitlines()] == ["scheduled", "failed"]
    shown = api({f"GET /jobs/{ID}": [JOB, ended]})("jobs", "watch", ID, terminal=True)
    assert "succeeded" in done(shown) and "1 ms" in shown.stdout


@pytest.mark.usefixtures("signed_in")
def test_watch_gives_up_at_its_timeout() -> None:
    cli = api({f"GET /jobs/{ID}": {**JOB, "due_at": "2026-11-20T12:00:00.000Z"}})
    result = cli("jobs", "watch", ID, "--timeout", "12s")
    assert result.exit_code == 1 and f"not ended within 12s: {ID}" in result.stderr
    assert cli.pauses == [5.0, 5.0, 5.0]


@pytest.mark.usefixtures("signed_in")
def test_watch_without_an_id_follows_all_jobs() -> None:
    past = {**JOB, "id": "01A", "status": "succeeded", "scheduled_at": "2026-11-20T09:00:00.000Z"}
    cli = api({"GET /jobs": page(past, JOB)})
    lines = done(cli("jobs", "watch", "--timeout", "3s")).splitlines()
    assert [line.split("\t")[0] for line in lines] == ["01A", ID]
    assert cli.pauses == [1.0, 1.0, 1.0]


@pytest.mark.usefixtures("signed_in")
def test_create_and_watch_in_one() -> None:
    ended = {**JOB, "status": "succeeded", "ended_at": "2026-11-20T10:00:01.000Z"}
    cli = api({"POST /jobs": JOB, f"GET /jobs/{ID}": ended})
    assert "succeeded" in done(cli("jobs", "create", "--watch", "log", "x"))


@pytest.mark.usefixtures("signed_in")
def test_single_jobs_are_cancelled_and_retried() -> None:
    cancelled = {**JOB, "status": "cancelled"}
    routes = {
        f"POST /jobs/{ID}/cancel": cancelled,
        "POST /jobs/by-key/k/cancel": {**JOB, "status": "running"},
        f"POST /jobs/{ID}/retry": JOB,
    }
    cli = api(routes)
    assert done(cli("jobs", "cancel", ID)) == f"Job {ID} is cancelled.\n"
    assert "asked to stop, and is running" in done(cli("jobs", "cancel", "--key", "k"))
    assert json.loads(done(cli("jobs", "cancel", ID, "--json")))["status"] == "cancelled"
    assert "runs again" in done(cli("jobs", "retry", ID))
    assert cli("jobs", "cancel").exit_code == cli("jobs", "cancel", ID, "--all").exit_code == 2


@pytest.mark.usefixtures("signed_in")
def test_many_jobs_are_counted_asked_for_and_cancelled() -> None:
    estimate = {"action": "cancel_jobs", "filter": {}, "matched": 3, "complete": True}
    routes = {"POST /jobs/cancel": [answer(estimate), answer(OPERATION, 202)], "GET /operations/01OP": [OPERATION, DONE]}
    cli = api({"POST /jobs/cancel": estimate})
    assert done(cli("jobs", "cancel", "--tag", "a", "--dry-run")) == "3 jobs would be cancelled.\n"
    refused = cli("jobs", "cancel", "--tag", "a")
    assert refused.exit_code == 2 and "--yes" in refused.stderr
    assert all(sent[3].get("dry_run") for sent in cli.api.sent)
    cli = api(routes)
    assert done(cli("jobs", "cancel", "--tag", "a", "--rate", "9", "--yes")) == "Operation 01OP is done: 2 done, 1 skipped.\n"
    assert cli.api.sent[1][3] == {"tag": ["a"], "rate": 9}
    assert "punctual operations watch 01OP" in done(api(routes)("jobs", "cancel", "--all", "--yes", "--detach"))
    aborted = {**DONE, "status": "aborted"}
    assert api({"GET /operations/01OP": aborted})("operations", "watch", "01OP").exit_code == 1


@pytest.mark.usefixtures("signed_in")
def test_single_jobs_are_replayed() -> None:
    new = {**JOB, "id": "01NEW", "replay_of": ID}
    cli = api({f"POST /jobs/{ID}/replay": answer(new, 201), "GET /jobs/by-key/k": JOB, "GET /jobs/01NEW": new})
    assert done(cli("jobs", "replay", ID)) == f"Job 01NEW replays {ID}.\n"
    words = ("--payload", '{"message": "m"}', "--in", "5m", "--keep-ordering")
    assert json.loads(done(cli("jobs", "replay", "--key", "k", *words, "--json")))["replay_of"] == ID
    assert cli.api.sent[-1][3] == {"payload": {"message": "m"}, "delay": "300s", "keep_ordering": True}
    assert f"replay of  {ID}" in " ".join(done(cli("jobs", "show", "01NEW")).split(" ")).replace("     ", " ").replace("   ", "  ")
    for wrong in ((), (ID, "--all"), ("--all", "--in", "5m"), (ID, "--payload", "[]"), ("--all", "--keep-ordering")):
        assert cli("jobs", "replay", *wrong).exit_code == 2


@pytest.mark.usefixtures("signed_in")
def test_many_jobs_are_counted_asked_for_and_replayed() -> None:
    estimate = {"action": "replay_jobs", "filter": {}, "matched": 3, "complete": True}
    cli = api({"POST /jobs/replay": estimate})
    assert done(cli("jobs", "replay", "--type", "log", "--payload", '{"message": "m"}', "--dry-run")) == "3 jobs would be replayed.\n"
    assert cli.api.sent[0][3] == {"type": "log", "payload": {"message": "m"}, "dry_run": True}
    cli = api({"POST /jobs/replay": [answer(estimate), answer(OPERATION, 202)], "GET /operations/01OP": DONE})
    assert done(cli("jobs", "replay", "--status", "failed", "--rate", "9", "--yes")) == "Operation 01OP is done: 2 done, 1 skipped.\n"
    assert cli.api.sent[1][3] == {"status": ["failed"], "rate": 9}


@pytest.mark.usefixtures("signed_in")
def test_outputs_and_logs_are_printed_as_they_are() -> None:
    attempts = [{"number": 2, "picked_at": JOB["due_at"], "ended_at": JOB["due_at"], "outcome": "succeeded"}]
    text = {"number": 2, "text": "a [b]\n", "complete": True}
    routes = {f"GET /jobs/{ID}": {**JOB, "attempts": attempts}, f"GET /jobs/{ID}/attempts/2/output": text}
    cli = api({**routes, f"GET /jobs/{ID}/attempts/1/log": {**text, "number": 1}})
    assert done(cli("jobs", "output", ID)) == "a [b]\n"
    assert json.loads(done(cli("jobs", "log", ID, "--attempt", "1", "--json")))["number"] == 1
    assert "has not been tried yet" in api({f"GET /jobs/{ID}": JOB})("jobs", "output", ID).stderr


# Tasks


@pytest.mark.usefixtures("signed_in")
def test_a_task_is_created_or_put_by_key() -> None:
    cli = api({"POST /tasks": TASK, "PUT /tasks/by-key/nightly": {**TASK, "outcome": "unchanged"}})
    words = ("tasks", "create", "Nightly report", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "log", "x", "--overlap", "skip")
    assert f"Task {TASK['id']} is created. It runs first Sat 2026-11-21 02:30:00 +0100, in " in done(cli(*words))
    assert cli.api.last[3] == {
        "name": "Nightly report",
        "type": "log",
        "payload": {"message": "x"},
        "overlap": "skip",
        "schedule": {"cron": "30 2 * * *", "time_zone": "Europe/Berlin"},
    }
    assert "is unchanged" in done(cli(*words, "--key", "nightly"))
    assert cli("tasks", "create", "n", "log", "x", "--cron", "1", "--rate", "2").exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("http", "POST", "https://x"),
        ("http", "post", "https://x"),
        ("http", "https://x"),
        ("http", "POST", "--payload", "{}"),
        ("POST", "https://x"),
        ("log", "hello"),
        ("log", "https://x"),
        ("target", "billing"),
    ],
)
@pytest.mark.usefixtures("signed_in")
def test_a_task_without_its_name_is_refused(words: tuple[str, ...]) -> None:
    cli = api({"PUT /tasks/by-key/x": TASK})
    result = cli("tasks", "create", "--key", "x", "--cron", "0 2 * * *", *words)
    assert result.exit_code == 2 and not cli.api.sent
    assert f"error: NAME: is missing: {words[0]!r} begins the work" in result.stderr
    assert f"tasks create 'Nightly report' {' '.join(words[:2])}" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("http", "http", "POST", "https://x"),
        ("log", "log", "hello"),
        ("post", "log", "hello"),
        ("POST", "POST", "https://x"),
        ("POST", "target", "t"),
        ("report", "POST", "https://x"),
        ("sqs", "own-type", "--payload", "{}"),
    ],
)
@pytest.mark.usefixtures("signed_in")
def test_a_task_may_have_the_name_of_a_type(words: tuple[str, ...]) -> None:
    cli = api({"POST /tasks": TASK})
    done(cli("tasks", "create", *words))
    assert cli.api.last[3]["name"] == words[0]


@pytest.mark.usefixtures("signed_in")
def test_tasks_are_listed_shown_and_run() -> None:
    id = TASK["id"]
    routes = {
        "GET /tasks": page({**TASK, "next_run": RUN}),
        f"GET /tasks/{id}": TASK,
        "GET /tasks/by-key/nightly": TASK,
        f"GET /tasks/{id}/jobs": page(JOB),
        f"POST /tasks/{id}/run": JOB,
        f"GET /jobs/{ID}": {**JOB, "status": "succeeded", "ended_at": JOB["due_at"]},
    }
    cli = api(routes)
    assert "30 2 * * * Europe/Berlin" in done(cli("tasks", "list", terminal=True))
    assert "Sat 2026-11-21 02:30:00 +0100" in done(cli("tasks", "show", "--key", "nightly"))
    at_a_rate = api({f"GET /tasks/{id}": {**TASK, "schedule": {"rate": "rate(10 minutes)"}}})
    assert "every 10 minutes\n" in done(at_a_rate("tasks", "show", id))
    assert ID in done(cli("tasks", "jobs", id, "--status", "failed"))
    assert done(cli("tasks", "run", "--key", "nightly", "-q")) == f"{ID}\n"
    assert "succeeded" in done(cli("tasks", "run", id, "--watch"))


@pytest.mark.usefixtures("signed_in")
def test_a_task_is_changed_by_the_fields_that_are_given() -> None:
    cli = api({f"PATCH /tasks/{TASK['id']}": {**TASK, "next_run": RUN}})
    words = ("tasks", "update", TASK["id"], "--rate", "10 minutes", "--overlap", "queue_one", "--payload", '{"message": "y"}')
    assert f"Task {TASK['id']} is changed. It runs next Sat 2026-11-21 02:30:00 +0100, in " in done(cli(*words))
    assert cli.api.last[3] == {"overlap": "queue_one", "payload": {"message": "y"}, "schedule": {"rate": "10 minutes"}}
    assert done(cli("tasks", "update", TASK["id"], "--field", "dst_gap=skip", "-q")) == f"{TASK['id']}\n"
    assert cli.api.last[3] == {"schedule": {"dst_gap": "skip"}}
    for wrong in ([], ["--cron", "1 * * * *", "--rate", "2 minutes"], ["--key", "k", "--name", "n"], ["--payload", "text"]):
        before = len(cli.api.sent)
        assert cli("tasks", "update", TASK["id"], *wrong).exit_code == 2 and len(cli.api.sent) == before


@pytest.mark.usefixtures("signed_in")
def test_the_alerts_of_a_task_are_options() -> None:
    cli = api({"POST /tasks": TASK, f"PATCH /tasks/{TASK['id']}": TASK})
    words = ("tasks", "create", "Sync", "--cron", "0 2 * * *", "--field", "notifications={}", "log", "x")
    done(cli(*words, "--late-after", "5m", "--max-duration", "1h", "--done-by", "07:00", "--missed"))
    alerts = {"late_after_seconds": 300, "max_duration_seconds": 3_600, "done_by": "07:00", "missed": True}
    assert (cli.api.last[3]["alerts"], cli.api.last[3]["notifications"]) == (alerts, {})
    done(cli("tasks", "update", TASK["id"], "--done-by", "08:00"))
    assert cli.api.last[3] == {"alerts": {"done_by": "08:00"}}
    done(cli("tasks", "update", TASK["id"], "--no-alerts"))
    assert set(cli.api.last[3]["alerts"].values()) == {None}
    done(cli(*words, "--no-alerts"))
    assert cli.api.last[3]["alerts"] == {}
    assert cli("tasks", "update", TASK["id"], "--no-alerts", "--missed").exit_code == 2
    assert "--late-after" in cli("tasks", "update", TASK["id"], "--late-after", "1.5s").output


@pytest.mark.usefixtures("signed_in")
def test_a_task_is_shown_with_its_alerts_and_notifications() -> None:
    hook = {"url": "https://hooks.slack.com/services/T0/B0/hidden", "format": "slack", "signing_secret": None}
    notifications = {"on": ["failure", "recovery"], "after_failures": 3, "digest_seconds": 300}
    own = {"emails": ["ann@example.com"], "webhooks": [hook], "receivers": ["ops"], **notifications}
    alerts = {"late_after_seconds": 300, "max_duration_seconds": 3_600, "done_by": "07:00", "missed": True}
    cli = api({f"GET /tasks/{ID}": {**TASK, "alerts": alerts, "notifications": own}})
    shown = [re.sub(r"\s+", " ", line).strip() for line in done(cli("tasks", "show", ID)).splitlines()]
    assert "alerts late after 5m, takes longer than 1h, not done by 07:00, missed" in shown
    begin = shown.index("notifications receiver ops")
    assert shown[begin + 1 : begin + 4] == ["ann@example.com", "slack webhook hooks.slack.com", "on failure after 3 in a row, recovery"]
    default = {"emails": [], "webhooks": [], **notifications, "after_failures": 1}
    some = done(api({f"GET /tasks/{ID}": {**TASK, "alerts": {}, "notifications": default}})("tasks", "show", ID))
    assert re.search(r"alerts\s+none\s+notifications\s+your default receivers\s+on failure, recovery\n", some)
    bare = done(api({f"GET /tasks/{ID}": TASK})("tasks", "show", ID))
    assert "alerts" not in bare and "notifications" not in bare


@pytest.mark.usefixtures("signed_in")
def test_next_runs_are_previewed() -> None:
    cli = api(
        {"POST /schedules/preview": {"runs": [RUN]}, "GET /tasks/by-key/nightly": TASK, f"GET /tasks/{TASK['id']}/next": {"runs": [RUN]}}
    )
    shown = done(cli("tasks", "preview", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "1"))
    assert shown == "Sat 2026-11-21 02:30:00 +0100\t2026-11-21 01:30:00\t\n"
    assert cli.api.last[3] == {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "count": 1}
    assert "02:30:00" in done(cli("tasks", "preview", "--key", "nightly", terminal=True))
    assert done(cli("tasks", "preview", "--cron", "30 2 * * *", "-n", "1")) == shown
    assert cli.api.last[3] == {"cron": "30 2 * * *", "count": 1}
    assert cli("tasks", "preview").exit_code == cli("tasks", "preview", "1 * * * *", "--cron", "2 * * * *").exit_code == 2


@pytest.mark.parametrize(("verb", "past"), [("pause", "paused"), ("resume", "resumed")])
@pytest.mark.usefixtures("signed_in")
def test_tasks_are_paused_and_resumed(verb: str, past: str) -> None:
    id = TASK["id"]
    many = {**OPERATION, "action": f"{verb}_tasks"}
    estimate = {"action": f"{verb}_tasks", "filter": {}, "matched": 1, "complete": False}
    cli = api(
        {
            f"POST /tasks/{id}/{verb}": TASK,
            f"POST /tasks/{verb}": [answer(estimate), answer(many, 202)],
            "GET /operations/01OP": {**many, "status": "done"},
        }
    )
    assert done(cli("tasks", verb, id)) == f"Task {id} is {past}.\n"
    assert "Operation 01OP is done" in done(cli("tasks", verb, "--tag", "a", "--yes"))
    for wrong in ((), (id, "--all"), (id, "--dry-run")):
        assert cli("tasks", verb, *wrong).exit_code == 2


@pytest.mark.usefixtures("signed_in")
def test_a_task_is_deleted_after_a_question() -> None:
    id = TASK["id"]
    cli = api({f"DELETE /tasks/{id}": {"id": id}})
    assert cli("tasks", "delete", id).exit_code == 2 and not cli.api.sent
    assert json.loads(done(cli("tasks", "delete", id, "--yes", "--json"))) == {"id": id}


# Groups


def ended_group(failed: int) -> dict[str, Any]:
    counts = {**JOB_GROUP["counts"], "unfinished": 0, "succeeded": 50 - failed, "failed": failed}
    return {**JOB_GROUP, "state": "ended", "counts": counts, "succeeded_at": None if failed else "2026-11-20T10:00:00.000Z"}


@pytest.mark.usefixtures("signed_in")
def test_a_group_is_created_from_a_file(tmp_path: Path) -> None:
    body = {"name": "Invoices", "on_success": {"message": "done"}, "jobs": [{"message": "1", "delay": "1h"}, {"message": "2"}]}
    file = tmp_path / "group.json"
    file.write_text(json.dumps(body))
    cli = api({"POST /groups": answer({"group": JOB_GROUP, "results": []}, 201), "GET /groups/01GR": [JOB_GROUP, ended_group(0)]})
    assert done(cli("groups", "create", str(file))) == "Group 01GR is sealed: 37 of 50 ended, 2 failed.\n"
    assert cli.api.last[3] == body
    assert done(cli("groups", "create", "-", "--quiet", input=json.dumps(body))) == "01GR\n"
    assert "Group 01GR is ended: 50 of 50 ended." in done(cli("groups", "create", str(file), "--watch"))
    opened = {**JOB_GROUP, "state": "open"}
    cli = api({"POST /groups": answer({"group": opened, "results": []}, 201)})
    assert "Jobs may join: punctual jobs create --group" in done(cli("groups", "create", "-", input="{}"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must be a JSON object"),
        ('{"colour": 1}', "unknown field 'colour'"),
        ('{"jobs": [5]}', "list of objects"),
        ('{"jobs": {"message": "m"}}', "list of objects"),
        ('{"on_success": "m"}', "list of objects"),
    ],
)
@pytest.mark.usefixtures("signed_in")
def test_a_file_that_is_no_group_is_refused(text: str, said: str) -> None:
    cli = api({})
    result = cli("groups", "create", "-", input=text)
    assert result.exit_code == 2 and "FILE" in result.stderr and said in result.stderr and not cli.api.sent


@pytest.mark.usefixtures("signed_in")
def test_groups_are_listed_shown_sealed_and_cancelled() -> None:
    large = {**JOB_GROUP, "id": "01LG", "counts": None, "jobs": 900}
    verbs = {f"POST /groups/01GR/{verb}": JOB_GROUP for verb in ("seal", "cancel")}
    cli = api({"GET /groups": page(JOB_GROUP, large), "GET /groups/01GR": JOB_GROUP, "GET /groups/01GR/jobs": page(JOB), **verbs})
    listed = done(cli("groups", "list", terminal=True))
    assert "37 of 50 ended, 2 failed" in listed and "900 jobs" in listed
    shown = done(cli("groups", "show", "01GR"))
    assert "37 of 50 ended" in shown and "on_success  log  has not started" in shown
    assert json.loads(done(cli("groups", "get", "01GR", "--json")))["counts"]["failed"] == 2
    assert done(cli("groups", "jobs", "01GR", "--status", "failed", "--quiet")) == f"{ID}\n"
    assert cli.api.last[2] == {"status": "failed", "limit": "20"}
    assert "Group 01GR is sealed" in done(cli("groups", "seal", "01GR"))
    refused = cli("groups", "cancel", "01GR")
    assert refused.exit_code == 2 and "--yes" in refused.stderr and cli.api.last[0] == "GET"
    assert "Group 01GR is sealed" in done(cli("groups", "cancel", "01GR", "--yes")) and cli.api.last[1] == "/groups/01GR/cancel"


@pytest.mark.usefixtures("signed_in")
def test_a_group_is_watched_to_its_end() -> None:
    cli = api({"GET /groups/01GR": [JOB_GROUP, JOB_GROUP, ended_group(0)]})
    assert done(cli("groups", "watch", "01GR", terminal=True)) and cli.pauses == [1.0, 1.0]
    failed = api({"GET /groups/01GR": ended_group(2)})("groups", "watch", "01GR")
    assert failed.exit_code == 1 and "50 of 50 ended, 2 failed" in failed.stdout
    result = api({"GET /groups/01GR": JOB_GROUP})("groups", "watch", "01GR", "--timeout", "5s")
    assert result.exit_code == 1 and "not ended within 5s: 37 of 50 ended, 2 failed" in result.stderr


@pytest.mark.usefixtures("signed_in")
def test_a_job_and_a_run_join_a_group() -> None:
    cli = api({"POST /jobs": {**JOB, "group_id": "01GR"}, f"GET /jobs/{ID}": {**JOB, "group_id": "01GR"}, "POST /tasks/01T/run": JOB})
    done(cli("jobs", "create", "log", "x", "--group", "01GR"))
    assert cli.api.sent[0][3]["group"] == "01GR" and "01GR" in done(cli("jobs", "show", ID))
    done(cli("tasks", "run", "01T", "--group", "01GR"))
    assert cli.api.last[3] == {"group": "01GR"}


# Dead letters and operations


@pytest.mark.usefixtures("signed_in")
def test_dead_letters_are_listed_and_redriven() -> None:
    over = {**REDRIVE, "status": "done", "matched": 8, "redriven": 6, "skipped": 1, "conflicts": 1}
    routes = {
        "GET /health": {"status": "ok", "lag_seconds": 0, "paused_lanes": []},
        "GET /dead-letters": page(GROUP),
        "GET /dead-letters/3f9c2a7e5b8d/jobs": page(JOB),
        "POST /dead-letters/redrive": REDRIVE,
        "GET /dead-letters/redrives/01OP": [REDRIVE, over],
        "POST /dead-letters/redrives/01OP/abort": {**over, "status": "aborted"},
    }
    cli = api(routes)
    listed = done(cli("dead-letters", "list", terminal=True))
    assert "HTTP 404" in listed and "api.example.com" in listed
    assert done(cli("dead-letters", "jobs", "3f9c2a7e5b8d", "-q")) == f"{ID}\n"
    words = ("dead-letters", "redrive", "--fingerprint", "3f9c2a7e5b8d", "--rate", "20", "--yes")
    assert done(cli(*words)) == "Redrive 01OP is done: 6 of 8 run again, 1 skipped, 1 beside an open job of their key.\n"
    assert ("POST", "/dead-letters/redrive", {}, {"fingerprint": "3f9c2a7e5b8d", "rate": 20}) in cli.api.sent
    before = len(cli.api.sent)
    assert done(cli(*words[:-1], "--dry-run")) == "7 dead letters would be run again.\n"
    assert done(cli(*words, "--dry-run", "--limit", "3", "--quiet")) == "3\n"
    assert [method for method, *_ in cli.api.sent[before:]] == ["GET", "GET"], "nothing was changed"
    assert "Redrive 01OP is done" in done(api(routes)(*words, terminal=True))
    assert "dead-letters watch 01OP" in done(cli(*words, "--detach"))
    assert "is aborted" in done(cli("dead-letters", "abort", "01OP"))
    assert cli("dead-letters", "redrive").exit_code == 2


LANE = {"lane": "one-time", "paused_at": "2026-11-20T09:00:00.000Z", "paused_by": "u1", "paused_by_name": "ann", "reason": "incident 17"}
PAUSE = "its lane one-time is paused since 2026-11-20T09:00:00.000Z by ann: incident 17, as long as the database of the shop moves"


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize(
    ("words", "route", "read_again"),
    [
        (("jobs", "create", "log", "hello"), "POST /jobs", True),
        (("jobs", "retry", ID), f"POST /jobs/{ID}/retry", False),
        (("tasks", "run", "01T"), "POST /tasks/01T/run", False),
    ],
)
def test_a_command_says_that_its_job_waits_for_a_paused_lane(words: tuple[str, ...], route: str, read_again: bool) -> None:
    def said(reason: str) -> list[str]:
        waits = {**JOB, "status": "queued", "reason": reason}
        return done(api({route: {**waits, "reason": None} if read_again else waits, f"GET /jobs/{ID}": waits})(*words)).splitlines()

    assert said(PAUSE)[1] == f"It waits: {PAUSE}."
    assert len(said("ordering: job x of its key has not ended")) == 1


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize("detach", [True, False])
def test_a_redrive_says_which_lane_is_paused(detach: bool) -> None:
    routes = {
        "GET /dead-letters": page(GROUP),
        "GET /health": {"status": "ok", "lag_seconds": 0, "paused_lanes": ["one-time"]},
        "GET /status": {**STATUS, "lanes": [LANE, {"lane": "retry", "paused_at": None}]},
        "POST /dead-letters/redrive": {**REDRIVE, "status": "done"},
    }
    said = done(api(routes)("dead-letters", "redrive", "--all", "--yes", *(["--detach"] if detach else [])))
    (paused,) = said.splitlines()[1:]
    assert re.fullmatch(r"The lane one-time is paused since \S+ by ann: incident 17\. Its jobs wait\.", paused)


@pytest.mark.usefixtures("signed_in")
def test_the_reason_of_a_waiting_job_is_whole_in_pipes_and_names_the_author_at_a_terminal() -> None:
    cli = api({"GET /jobs": page({**JOB, "status": "queued", "reason": PAUSE})})
    assert done(cli("jobs", "list")).rstrip("\n").endswith(f"\t{PAUSE}")
    assert "lane one-time paused by ann: incident 17" in done(cli("jobs", "list", terminal=True))


@pytest.mark.usefixtures("signed_in")
def test_times_in_pipes_have_a_date_and_an_offset() -> None:
    routes = {
        "GET /jobs": page(JOB),
        "GET /tasks": page(TASK),
        "GET /dead-letters": page(GROUP),
        "GET /operations": page(OPERATION),
        "GET /system": LANES,
    }
    times = r"(?:^|\t)2026-11-2\dT\d\d:\d\d:\d\d\.\d{3}\+\d\d:\d\d(?:\t|$)"
    for words in (("jobs", "list"), ("tasks", "list"), ("dead-letters", "list"), ("operations", "list"), ("system", "status")):
        (line,) = done(api(routes)(*words)).splitlines()
        assert re.search(times, line), line
        assert not re.search(r"(?:^|\t)\d\d:\d\d:\d\d", line), line


@pytest.mark.usefixtures("signed_in")
def test_operations_are_listed_and_aborted() -> None:
    cli = api({"GET /operations": page(DONE), "GET /operations/01OP": DONE, "POST /operations/01OP/abort": DONE})
    assert "tag=a" in done(cli("operations", "list", terminal=True))
    assert "2 done, 1 skipped" in done(cli("operations", "show", "01OP"))
    assert "2 done" in done(cli("operations", "abort", "01OP"))


# The state of the scheduler and of the client


@pytest.mark.usefixtures("signed_in")
def test_changes_are_listed_with_their_author_and_answer() -> None:
    entry = {"id": "a1", "at": "2026-11-20T10:00:00Z", "actor": "u1", "actor_name": "ann", "owner": "u1", "action": "task.edit"}
    entry |= {"changes": {"schedule": {}, "name": "x"}, "address": "192.0.2.1", "request_id": "r", "object": TASK["id"], "status": 200}
    cut = {**entry, "id": "a2", "actor_name": None, "status": None, "object": None}
    refused = {**entry, "id": "a3", "status": 403}
    cli = api({"GET /me/audit": page(entry, cut, refused), "GET /audit": page()})
    lines = done(cli("audit", "--since", "1h", "--action", "task")).splitlines()
    assert [line.split("\t")[1:] for line in lines] == [
        ["ann", "task.edit", TASK["id"], "name, schedule", "done"],
        ["u1", "task.edit", "", "name, schedule", "not recorded"],
        ["ann", "task.edit", TASK["id"], "name, schedule", "refused (403)"],
    ]
    assert cli.api.last[2]["action"] == "task" and cli.api.last[2]["from"].endswith("Z")
    assert done(cli("audit", "-q")) == "a1\na2\na3\n"
    assert done(cli("audit", "--limit", "1", "-q")) == "a1\n"
    assert "There are no such changes" in done(cli("audit", "--everyone", terminal=True))
    assert cli.api.last[1] == "/audit"


@pytest.mark.usefixtures("signed_in")
def test_the_forecast_is_a_chart_for_people_and_lines_for_pipes() -> None:
    minutes = [
        {
            "scheduled_at": f"2026-11-20T{10 + at // 60}:{at % 60:02}:00.000Z",
            "jobs": at % 7 * 10,
            "compute_ms": at * 1_000,
            "required_instances": at // 60,
        }
        for at in range(180)
    ]
    cli = api({"GET /forecast": {"scope": "own", "available_instances": 1, "minutes": minutes}})
    chart = done(cli("forecast", terminal=True))
    assert "█" in chart and "executors of 1 available" in chart and "Jobs will start late" in chart
    assert len(done(cli("forecast")).splitlines()) == sum(each["jobs"] > 0 for each in minutes)
    assert len(json.loads(done(cli("forecast", "--json")))["minutes"]) == 180
    nothing = api({"GET /forecast": {"scope": "own", "available_instances": 1, "minutes": [minutes[0]]}})
    assert "Nothing starts" in done(nothing("forecast", terminal=True))


@pytest.mark.usefixtures("signed_in")
def test_statistics_types_and_versions_are_shown() -> None:
    counts = dict.fromkeys(("runs", "succeeded", "failed", "killed", "cancelled", "skipped", "late"), 0)
    routes = {
        "GET /statistics": {
            "scope": "own",
            "since": NOW.isoformat(),
            "until": NOW.isoformat(),
            "types": [{"type": "http", **counts, "runs": 12, "p50_ms": 90}],
        },
        "GET /types": page({"type": "http", "description": "calls a URL", "payload_schema": {}}),
        "GET /version": {"version": "9.9", "api": "v1"},
    }
    cli = api(routes)
    assert "90 ms" in done(cli("stats", terminal=True))
    assert json.loads(done(cli("stats", "--json")))["types"][0]["runs"] == 12
    assert done(cli("types")) == "http\t\tcalls a URL\n"
    assert "server 9.9 (API v1)" in done(cli("version"))
    assert "server unknown" in done(api({})("version"))


ACTION = {
    "name": "s3:CopyObject",
    "service": "s3",
    "action": "CopyObject",
    "summary": "Does it.",
    "documentation": "https://docs.aws.amazon.com/x",
    "reads_only": False,
    "idempotent": False,
}


@pytest.mark.usefixtures("signed_in")
def test_actions_of_aws_are_found_and_shown() -> None:
    fields = {
        "Metadata": {"$ref": "#/$defs/Metadata"},
        "Bucket": {"type": "string", "description": "Its bucket."},
        "Tier": {"type": "string", "enum": ["A", "B"]},
    }
    path = "GET /types/aws/actions"
    routes = {
        path: page(ACTION, ACTION | {"name": "s3:DeleteObject"}, ACTION | {"name": "ec2:CopyImage", "idempotent": True}),
        f"{path}/s3/CopyObject": ACTION | {"parameters_schema": {"properties": fields, "required": ["Bucket"]}},
    }
    cli = api(routes)
    assert done(cli("aws-actions", "list", "S3", "copy", "--quiet")) == "s3:CopyObject\n"
    assert done(cli("aws-actions", "list", "copy")) == "s3:CopyObject\tno\tDoes it.\nec2:CopyImage\tyes\tDoes it.\n"
    assert "option allowed_actions" in done(api({path: page()})("aws-actions", "list", terminal=True))
    lines = done(cli("aws-actions", "show", "s3:CopyObject")).splitlines()
    assert [line.split(maxsplit=1) for line in lines[-3:]] == [
        ["Bucket", "string, required. Its bucket."],
        ["Metadata", "object."],
        ["Tier", "string (A, B)."],
    ]
    assert json.loads(done(cli("aws-actions", "show", "s3:CopyObject", "--json")))["parameters_schema"]["required"] == ["Bucket"]
    assert "such as s3:CopyObject" in cli("aws-actions", "show", "CopyObject").stderr


HEALTH = {"status": "ok", "lag_seconds": 2, "paused_lanes": []}


def healthy(**more: str) -> httpx.Response:
    return answer(HEALTH, **{"Date": "Fri, 20 Nov 2026 09:59:50 GMT", **more})


@pytest.mark.usefixtures("signed_in")
def test_the_doctor_finds_everything_in_order() -> None:
    cli = api({"GET /health": healthy(), "GET /me": ME})
    lines = [line.split("\t") for line in done(cli("doctor")).splitlines()]
    assert [line[0] for line in lines] == ["address", "clock", "sign-in", "scheduler", "quotas"]
    assert {line[1] for line in lines} == {"ok"}
    assert "at most 100 jobs" in done(cli("doctor", terminal=True))


@pytest.mark.parametrize(
    ("routes", "check", "state", "code"),
    [
        ({"GET /health": httpx.ConnectError("refused")}, "address", "fail", 1),
        ({"GET /health": httpx.Response(200, text="<html>")}, "address", "fail", 1),
        ({"GET /health": refusal(401, "unauthorized")}, "sign-in", "fail", 1),
        ({"GET /health": healthy(Date="Fri, 20 Nov 2026 09:00:00 GMT"), "GET /me": ME}, "clock", "warn", 0),
        ({"GET /health": answer({**HEALTH, "lag_seconds": 999}), "GET /me": ME}, "scheduler", "fail", 1),
        ({"GET /health": answer({**HEALTH, "paused_lanes": ["retry"]}), "GET /me": ME}, "lanes", "warn", 0),
        ({"GET /health": answer({**HEALTH, "lag_seconds": None}), "GET /me": ME}, "scheduler", "warn", 0),
        ({"GET /health": healthy(), "GET /me": refusal(403, "forbidden")}, "sign-in", "fail", 1),
    ],
)
@pytest.mark.usefixtures("signed_in")
def test_the_doctor_names_what_is_wrong_and_what_to_do(routes: dict[str, Reply], check: str, state: str, code: int) -> None:
    result = api(routes)("doctor", "--json")
    (found,) = [each for each in map(json.loads, result.stdout.splitlines()) if each["check"] == check and each["state"] != "ok"]
    assert result.exit_code == code and found["state"] == state and (found["remedy"] or state == "warn")


def test_the_doctor_without_a_profile_says_how_to_sign_in() -> None:
    result = api({})("doctor")
    assert result.exit_code == 1 and "address\tfail" in result.stdout and "punctual login" in result.stdout


# Targets, users, lanes


@pytest.mark.usefixtures("signed_in")
def test_targets_are_listed_created_replaced_and_deleted() -> None:
    routes = {
        "GET /targets": page(TARGET),
        "GET /targets/billing": TARGET,
        "POST /targets": TARGET,
        "PUT /targets/billing": TARGET,
        "DELETE /targets/billing": {"name": "billing"},
    }
    cli = api(routes)
    assert "20/s" in done(cli("targets", "list", terminal=True))
    assert "20 a second" in done(cli("targets", "show", "billing"))
    fields = {"type": "object", "properties": {"headers": {"type": "object"}, "body": {}}}
    shown = done(api({"GET /targets/billing": {**TARGET, "job_payload_schema": fields}})("targets", "show", "billing"))
    assert "headers, body\n" in shown and "properties" not in shown
    create = ("billing", "http", "--defaults", '{"url": "https://x"}', "--lock", "url", "--rate", "20", "--disabled")
    assert done(cli("targets", "create", *create)) == "Target billing is created.\n"
    assert cli.api.last[3] == {
        "name": "billing",
        "kind": "http",
        "defaults": {"url": "https://x"},
        "locked": ["url"],
        "rate": 20.0,
        "enabled": False,
    }
    done(cli("targets", "create", "inner", "http", "--network", "private", "--allow", "10.0.0.0/16", "--allow", "*.corp.example.com"))
    assert cli.api.last[3] == {"name": "inner", "kind": "http", "network": "private", "allow": ["10.0.0.0/16", "*.corp.example.com"]}
    private = api({"GET /targets/inner": {**TARGET, "network": "private", "allow": ["10.0.0.0/16"]}})
    assert "private: 10.0.0.0/16" in done(private("targets", "show", "inner"))
    assert done(cli("targets", "replace", "billing", "http")) == "Target billing is replaced.\n"
    assert cli("targets", "delete", "billing").exit_code == 2
    assert done(cli("targets", "delete", "billing", "--yes")) == "Target billing is deleted.\n"


@pytest.mark.usefixtures("signed_in")
def test_the_default_alerts_are_shown_and_replaced() -> None:
    rules = {"late_after_seconds": 300, "max_duration_seconds": None, "missed": True, "updated_at": "2026-11-20T12:00:00.000Z"}
    put = rules | {"outcome": "updated", "operation": OPERATION}
    cli = api({"GET /default-alerts": rules, "PUT /default-alerts": put})
    shown = done(cli("alerts", "show"))
    assert "5m" in shown and "no rule" in shown
    said = done(cli("alerts", "put", "--late-after", "5m", "--missed"))
    assert said == "The default alerts are updated. The future runs of the tasks are replaced: punctual operations watch 01OP\n"
    assert cli.api.last[3] == {"late_after_seconds": 300, "missed": True}
    done(cli("alerts", "put", "--none"))
    assert cli.api.last[3] == {"missed": False}
    for wrong in ([], ["--none", "--missed"]):
        assert cli("alerts", "put", *wrong).exit_code == 2


RECEIVER = {
    "name": "ops",
    "kind": "slack",
    "address": "https://hooks.slack.com/…cret",
    "signing_secret": None,
    "region": "us",
    "default": False,
    "created_at": "2026-11-20T09:00:00.000Z",
    "updated_at": "2026-11-20T09:00:00.000Z",
    "off": False,
    "error": None,
    "failed_at": None,
    "tested_at": None,
}
REQUESTED = {"name": "ops", "requested_at": "2026-11-20T10:00:00.000Z"}


@pytest.mark.usefixtures("signed_in")
def test_receivers_are_listed_stored_and_deleted() -> None:
    routes = {
        "GET /receivers": page(RECEIVER, {**RECEIVER, "name": "gone", "error": "HTTP 410", "off": True}),
        "GET /receivers/ops": RECEIVER,
        "PUT /receivers/ops": RECEIVER,
        "DELETE /receivers/ops": {"name": "ops"},
    }
    cli = api(routes)
    listed = done(cli("receivers", "list", terminal=True))
    assert "…cret" in listed and "off" in listed
    assert "state" in done(cli("receivers", "show", "ops"))
    stored = "Receiver ops is stored. Test it: punctual receivers test ops\n"
    assert done(cli("receivers", "put", "ops", "slack", input="https://hooks.slack.com/x\n")) == stored
    assert cli.api.last[3] == {"kind": "slack", "address": "https://hooks.slack.com/x", "default": False}
    assert done(cli("receivers", "put", "ops", "pagerduty", "--keep-address", "--region", "eu", "--default")) == stored
    assert cli.api.last[3] == {"kind": "pagerduty", "region": "eu", "default": True}
    assert cli("receivers", "put", "ops", "sms").exit_code == 2
    assert cli("receivers", "delete", "ops").exit_code == 2
    assert done(cli("receivers", "delete", "ops", "--yes")) == "Receiver ops is deleted.\n"


@pytest.mark.parametrize(
    ("health", "code", "said"),
    [
        ({"tested_at": REQUESTED["requested_at"]}, 0, "The test has reached ops."),
        ({"failed_at": REQUESTED["requested_at"], "error": "HTTP 404"}, 1, "has not reached ops: HTTP 404"),
        ({"tested_at": "2026-11-20T09:59:59.000Z"}, 1, "has no result yet"),
    ],
)
@pytest.mark.usefixtures("signed_in")
def test_a_test_of_a_receiver_waits_for_its_result(health: dict[str, Any], code: int, said: str) -> None:
    result = api({"POST /receivers/ops/test": REQUESTED, "GET /receivers/ops": {**RECEIVER, **health}})("receivers", "test", "ops")
    assert result.exit_code == code and said in result.stdout


@pytest.mark.usefixtures("signed_in")
def test_users_are_found_by_name_and_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCTUAL_NEW_PASSWORD", "s3cret-S3cret")
    routes = {
        "GET /users": page(USER),
        "POST /users": USER,
        "PATCH /users/u1": USER,
        "POST /users/u1/disable": USER,
        "POST /users/u1/enable": USER,
        "PUT /users/u1/password": USER,
        "DELETE /users/u1": USER,
    }
    cli = api(routes)
    assert "ann" in done(cli("users", "list", terminal=True)) and "100" in done(cli("users", "show", "u1"))
    done(cli("users", "create", "ann", "--role", "operator"))
    assert cli.api.last[3] == {"username": "ann", "password": "s3cret-S3cret", "role": "operator"}
    done(cli("users", "update", "ann", "--max-jobs", "5"))
    assert cli.api.last[3] == {"quotas": {"max_jobs": 5}}
    for verb in ("disable", "enable", "password"):
        assert f"/users/u1/{verb}" in (done(cli("users", verb, "ann")) and cli.api.last[1])
    assert done(cli("users", "delete", "ann", "--yes")) == "User ann is deleted.\n"
    assert cli("users", "show", "bob").exit_code == 4
    assert cli("users", "update", "ann").exit_code == 2


@pytest.mark.usefixtures("signed_in")
def test_lanes_and_breakers_are_shown_and_changed() -> None:
    of_shop = {"owner": "u2", "owner_name": "shop"}
    breaker = {
        **of_shop,
        "circuit": "host x",
        "state": "open",
        "opened_at": "2026-11-20T09:00:00.000Z",
        "until": "2026-11-20T10:00:00.000Z",
    }
    routes = {
        "GET /system": LANES,
        "POST /system/pause": LANES,
        "POST /system/resume": LANES,
        "GET /system/breakers": page(breaker),
        "POST /system/breakers/close": [
            {**page(), "closed": {"circuit": "host x", **of_shop}},
            {**page(breaker), "closed": {"circuit": "target y", "owner": None, "owner_name": None}},
        ],
    }
    cli = api(routes)
    assert "incident" in done(cli("system", "status", terminal=True))
    assert done(cli("system", "pause", "retry", "--yes", "--reason", "incident", "-q")) == "retry\n"
    assert cli.api.last[3] == {"lane": "retry", "reason": "incident"}
    done(cli("system", "resume", "--all"))
    assert done(cli("system", "breakers")).split("\t")[0::4] == ["host x", "shop\n"], "not the id of the owner"
    assert done(cli("system", "close-breaker", "host x")) == "The breaker of host x is closed, of shop. All others are closed, too.\n"
    assert done(cli("system", "close-breaker", "y")) == "The breaker of target y is closed, for all users. 1 other is not.\n", "as answered"
    for wrong in (("pause",), ("pause", "retry"), ("resume",)):
        assert cli("system", *wrong).exit_code == 2


# Errors


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (refusal(401, "unauthorized", "the token has expired"), 3, "Sign in again: punctual login"),
        (refusal(403, "forbidden", "your role does not allow this"), 1, "punctual whoami"),
        (refusal(404, "not_found", "there is no such job"), 4, "https://api.example.com (profile default)"),
        (refusal(409, "conflict", "the job has ended"), 1, "error: the job has ended"),
        (refusal(500, "internal_error", "an unexpected error"), 1, "The request id for the operators: r-1"),
        (httpx.Response(200, text="<html>"), 5, "Check the address"),
        (httpx.UnsupportedProtocol("no"), 5, "Check the network and the address: https://api.example.com (profile default)"),
    ],
)
@pytest.mark.usefixtures("signed_in")
def test_an_error_says_what_to_do_next(reply: Reply, code: int, said: str) -> None:
    result = api({f"GET /jobs/{ID}": reply})("jobs", "show", ID)
    assert result.exit_code == code and said in result.stderr and result.stdout == "" and "Traceback" not in result.stderr
    machine = api({f"GET /jobs/{ID}": reply})("jobs", "show", ID, "--json")
    assert set(json.loads(machine.stderr)["error"]) >= {"code", "message", "details", "hint"}


@pytest.mark.usefixtures("signed_in")
def test_credentials_of_the_environment_are_named_in_its_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCTUAL_URL", "https://other.example.com")
    monkeypatch.setenv("PUNCTUAL_TOKEN", "old")
    result = api({"GET /me": refusal(401, "unauthorized")})("whoami")
    assert "renew them there" in result.stderr
    assert "https://other.example.com (from PUNCTUAL_URL)" in api({})("jobs", "show", ID).stderr


def test_without_a_sign_in_the_next_step_is_login() -> None:
    result = api({})("jobs", "list")
    assert result.exit_code == 3 and "punctual login" in result.stderr


def test_a_broken_file_of_profiles_is_no_traceback() -> None:
    profiles.path().write_text("{")
    result = api({})("jobs", "list")
    assert result.exit_code == 3 and "profiles.json" in result.stderr and "delete it" in result.stderr


@pytest.mark.usefixtures("signed_in")
def test_a_defect_is_a_sentence_unless_the_traceback_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    cli = api({"GET /me": ZeroDivisionError("a defect")})
    result = cli("whoami")
    assert result.exit_code == 1 and "error: ZeroDivisionError: a defect" in result.stderr and "PUNCTUAL_DEBUG=1" in result.stderr
    monkeypatch.setenv("PUNCTUAL_DEBUG", "1")
    assert isinstance(cli("whoami").exception, ZeroDivisionError)


@pytest.mark.usefixtures("signed_in")
def test_ctrl_c_ends_without_a_traceback_and_says_what_goes_on() -> None:
    cli = api({"POST /dead-letters/redrive": REDRIVE, "GET /dead-letters": page(GROUP)})

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    cli.pause = interrupt  # type: ignore[method-assign]
    result = cli("dead-letters", "redrive", "--all", "--yes", terminal=True)
    assert result.exit_code == 130 and "To stop it: punctual dead-letters abort 01OP" in result.stderr


def commands(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands of a group and of its groups, by their path."""
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, *path, name)
        elif not each.hidden:
            yield (*path, name), each


COMMANDS = dict(commands(typer.main.get_command(build())))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_each_command_has_help_with_an_example(path: tuple[str, ...]) -> None:
    shown = done(api({})(*path, "--help"))
    assert f"punctual {' '.join(path)}" in shown.partition("Examples:")[2]
    assert "--json" in shown and "--quiet" in shown and "--profile" in shown


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_each_example_is_a_valid_command_line(path: tuple[str, ...]) -> None:
    for line in COMMANDS[path].epilog.splitlines()[2:]:
        words = shlex.split(line, comments=True)
        begin = words.index("punctual") + 1
        end = next((at for at, word in enumerate(words) if at >= begin and word in ("|", ">", "&&")), len(words))
        assert tuple(words[begin : begin + len(path)]) == path
        COMMANDS[path].make_context(" ".join(path), words[begin + len(path) : end])  # raises an error of usage


def test_colour_is_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ("jobs", "list")
    assert "\x1b[" in api({})(*error, terminal=True).stderr
    assert "\x1b[" not in api({})(*error).stderr
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in api({})(*error, terminal=True).stderr


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(__file__).parents[1] / "src")
    return subprocess.run(
        [sys.executable, "-m", "punctual", *words],
        env={**os.environ, "PYTHONPATH": source, "COLUMNS": "100", "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_the_process_ends_with_the_exit_code_of_its_command() -> None:
    assert "Exit codes:" in run("--help").stdout
    wrong = run("jobs", "create", "--in")
    assert wrong.returncode == 2 and "--in" in wrong.stderr
    assert run("jobs", "lits").returncode == 2
    assert run("jobs", "list").returncode == 3
    assert run("jobs", "list", PUNCTUAL_URL="http://127.0.0.1:9", PUNCTUAL_TOKEN="t", PUNCTUAL_TIMEOUT="1").returncode == 5


def test_the_shells_get_completions() -> None:
    assert "punctual" in run("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1").stdout


@pytest.mark.parametrize("name", ["_words", "_output"])
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"punctual.cli.{name}")).failed == 0


EMPTY = ("tasks", "apply", "-f", "-", "--label", "shop", "--prune")


def _of_shop(*flags: str) -> tuple[Result, Api]:
    terminal = api({"GET /tasks": page({**TASK, "tags": ["managed:shop"]}), f"DELETE /tasks/{ID}": {"id": ID}})
    return terminal(*EMPTY, *flags, input="tasks: []"), terminal.api


def test_an_apply_that_would_delete_most_of_a_label_is_refused(signed_in: None) -> None:
    result, server = _of_shop("--yes")
    assert result.exit_code == 2 and [method for method, *_ in server.sent if method != "GET"] == []
    assert "--prune: would delete 1 of the 1 tasks with the label shop: nothing was changed" in result.stderr
    assert "--prune-most" in result.stderr
    result, _ = _of_shop("--dry-run")
    assert result.exit_code == 10
    assert result.stdout.splitlines()[-1] == "Without --prune-most this is refused: it would delete 1 of the 1 tasks with the label shop."


def test_a_flag_allows_to_delete_most_of_a_label(signed_in: None) -> None:
    result, server = _of_shop("--prune-most", "--yes")
    assert result.exit_code == 0 and server.last[:2] == ("DELETE", f"/tasks/{ID}")


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("jobs", "create", "log", "\udcff"), "message is no text in UTF-8"),
        (("jobs", "create", "own", "--payload", '{"a": "\\ud800"}'), "payload.a is no text in UTF-8"),
        (("jobs", "show", "\udcff"), "is no id, key or name"),
        (("jobs", "show", ".."), "is no id, key or name"),
        (("jobs", "list", "--tag", "\udcff"), "tag is no text in UTF-8"),
        (("tasks", "apply", "-f", "\udcff.yaml"), "cannot be read"),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_argument_that_is_no_utf8_is_refused_with_the_rule(words: tuple[str, ...], field: str, form: tuple[str, ...]) -> None:
    result = api({})(*words, *form)
    assert result.exit_code in (1, 2) and field in result.stderr and "defect" not in result.stderr


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize("name", ["tasks.yaml", "tasks.json"])
def test_half_of_a_surrogate_pair_in_a_file_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"tasks": [\n{"key": "a", "name": "\\ud800", "message": "m"}]}')
    result = api({"GET /tasks": page()})("tasks", "apply", "-f", str(tmp_path / name), "--dry-run")
    assert f"{name}:2: tasks[0].name: is no text in UTF-8" in result.stderr.replace("\n", "") and "defect" not in result.stderr
