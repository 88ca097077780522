"""The first guesses of new users work, or the error names what to write instead."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
import test_cli as cli
from fake_api import JOB, Flavor, answer, refusal
from test_cli import ID, TASK, page

import punctual
from punctual.cli._app import MEANT

ENDED = {**JOB, "status": "failed", "ended_at": "2026-11-20T09:00:01.000Z"}


def test_the_version_is_an_option() -> None:
    assert cli.done(cli.api({})("--version")) == f"punctual {punctual.__version__}\n"


def test_help_is_a_command() -> None:
    terminal = cli.api({})
    assert cli.done(terminal("help")) == cli.done(terminal("--help"))
    assert cli.done(terminal("help", "jobs", "create")) == cli.done(terminal("jobs", "create", "--help"))


@pytest.mark.parametrize("option", ["--in", "--delay"])
@pytest.mark.usefixtures("signed_in")
def test_a_delay_has_the_name_of_the_api_too(option: str) -> None:
    terminal = cli.api({"POST /jobs": JOB})
    cli.done(terminal("jobs", "create", option, "30m", "log", "hello"))
    assert terminal.api.last[3]["delay_seconds"] == 1800


@pytest.mark.parametrize("option", ["--at", "--execute-at"])
@pytest.mark.usefixtures("signed_in")
def test_an_instant_has_the_name_of_the_api_too(option: str) -> None:
    terminal = cli.api({"POST /jobs": JOB})
    cli.done(terminal("jobs", "create", option, "2026-11-21T10:00:00Z", "log", "hello"))
    assert terminal.api.last[3]["execute_at"].startswith("2026-11-21T10:00:00")


@pytest.mark.parametrize(
    ("words", "method"), [(("https://example.com/expire",), "POST"), (("PUT", "https://example.com/expire"), "PUT")], ids=["URL", "method"]
)
@pytest.mark.usefixtures("signed_in")
def test_a_url_alone_is_a_call(words: tuple[str, ...], method: str) -> None:
    terminal = cli.api({"POST /jobs": JOB, "POST /tasks": TASK})
    wanted = {"type": "http", "payload": {"method": method, "url": "https://example.com/expire", "body": {"a": 1}}}
    cli.done(terminal("jobs", "create", *words, "-d", '{"a": 1}'))
    assert terminal.api.last[3] == wanted
    cli.done(terminal("tasks", "create", "n", *words, "-d", '{"a": 1}'))
    assert terminal.api.last[3] == {"name": "n", **wanted}


@pytest.mark.usefixtures("signed_in")
def test_get_and_ls_are_show_and_list_in_each_group() -> None:
    terminal = cli.api({f"GET /jobs/{ID}": JOB, f"GET /tasks/{ID}": TASK, "GET /jobs": page(JOB), "GET /tasks": page(TASK)})
    for group in ("jobs", "tasks"):
        assert cli.done(terminal(group, "get", ID)) == cli.done(terminal(group, "show", ID))
        assert cli.done(terminal(group, "ls")) == cli.done(terminal(group, "list"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("jobs", "delete", ID), "punctual jobs cancel"),
        (("health",), "punctual status"),
        (("logs", ID), "punctual jobs log"),
        (("config",), "punctual profiles"),
        (("open",), "the console is at the address that `make deploy`, `make run` or `punctual dev` prints"),
        (("jobs", "lits"), "Did you mean 'list'?"),
        (("create",), "There is no command 'create'. Did you mean 'jobs create' or 'tasks create'?"),
        *[(("secrets", word), f"There is no command 'secrets {word}'. Did you mean 'secrets put'?") for word in ("set", "create", "add")],
        (("tasks", "next"), "Did you mean 'tasks preview'?"),
        (("tasks", "year"), "Did you mean 'tasks calendar'?"),
        (("tasks", "add"), "Did you mean 'tasks create'?"),
        (("receivers", "create"), "Did you mean 'receivers put'?"),
        (("tasks", "rm"), "Did you mean 'tasks delete'?"),
    ],
)
def test_a_command_that_there_is_not_names_the_one_that_there_is(words: tuple[str, ...], said: str) -> None:
    result = cli.api({})(*words)
    assert result.exit_code == 2 and said in " ".join(result.stderr.split())


def test_each_command_that_is_meant_exists() -> None:
    for meant in (each for group in MEANT.values() for each in group):
        cli.done(cli.api({})(*meant.split(), "--help"))


@pytest.mark.parametrize(
    ("words", "noun"),
    [
        *[(("jobs", verb), "job") for verb in ("show", "watch", "cancel", "retry", "replay", "output", "log")],
        (("jobs", "update", "--in", "1h"), "job"),
        *[(("tasks", verb), "task") for verb in ("show", "pause", "resume", "run", "jobs", "calendar")],
        (("tasks", "update", "--name", "n"), "task"),
        (("tasks", "delete", "--yes"), "task"),
        (("tasks", "preview", "--id"), "task"),
    ],
)
@pytest.mark.usefixtures("signed_in")
def test_a_key_in_the_place_of_an_id_leads_to_the_option_of_keys(words: tuple[str, ...], noun: str) -> None:
    result = cli.api({})(*words, "order 1")
    assert result.exit_code == 4
    assert result.stderr.startswith(f"error: there is no {noun} with the id 'order 1'\nFor a key of your own: --key 'order 1'\n")
    by_key = cli.api({})(*words[: -1 if "--id" in words else None], "--key", "order 1").stderr
    assert "For a key of your own" not in by_key and "Another owner's objects: --owner NAME" in by_key
    assert "For a key of your own" not in cli.api({})(*words, ID).stderr


@pytest.mark.usefixtures("signed_in")
def test_the_format_is_json_with_an_option_of_other_tools() -> None:
    terminal = cli.api({f"GET /jobs/{ID}": JOB})
    assert json.loads(cli.done(terminal("jobs", "show", ID, "-o", "json"))) == JOB
    result = terminal("jobs", "show", ID, "-o", "yaml")
    assert result.exit_code == 2 and "error: -o: must be json, not 'yaml'" in result.stderr


@pytest.mark.usefixtures("signed_in")
def test_a_job_is_moved_and_changed_by_a_command() -> None:
    terminal = cli.api({"GET /jobs/by-key/order-17": JOB, f"PATCH /jobs/{ID}": JOB})
    assert f"Job {ID} is changed. It starts at" in cli.done(terminal("jobs", "update", "--key", "order-17", "--in", "2h"))
    assert terminal.api.last[3] == {"delay": "7200s"}
    cli.done(terminal("jobs", "update", ID, "--at", "2026-11-21T10:00:00Z", "--max-attempts", "5", "--tag", "a", "--payload", '{"n": 1}'))
    sent = terminal.api.last[3]
    assert sent.pop("execute_at").startswith("2026-11-21T10:00:00")
    assert sent == {"max_attempts": 5, "tags": ["a"], "payload": {"n": 1}}
    for wrong in ((ID,), ("--in", "1h"), (ID, "--key", "k", "--in", "1h"), (ID, "--in", "1h", "--at", "2026-11-21T10:00:00Z")):
        assert terminal("jobs", "update", *wrong).exit_code == 2


def test_a_delay_moves_a_job(flavor: Flavor) -> None:
    sent: list[Any] = []

    def respond(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return answer(JOB)

    for delay in ("2h", 90, 0.25, timedelta(minutes=30)):
        flavor.run(respond, lambda client, delay=delay: client.jobs.update(ID, delay=delay))
    assert sent == [{"delay": "2h"}, {"delay": "90s"}, {"delay": "0.25s"}, {"delay": "1800s"}]


CALLS: dict[str, tuple[Any, str, str]] = {
    "jobs.update": (lambda c: c.jobs.update(key="k", tags=["a"]), "PATCH", f"/jobs/{ID}"),
    "jobs.retry": (lambda c: c.jobs.retry(key="k"), "POST", f"/jobs/{ID}/retry"),
    "jobs.wait": (lambda c: c.jobs.wait(key="k"), "GET", f"/jobs/{ID}"),
    "jobs.output": (lambda c: c.jobs.output(key="k", attempt=2), "GET", f"/jobs/{ID}/attempts/2/output"),
    "jobs.log": (lambda c: c.jobs.log(key="k", attempt=2), "GET", f"/jobs/{ID}/attempts/2/log"),
    "tasks.update": (lambda c: c.tasks.update(key="k", tags=["a"]), "PATCH", f"/tasks/{ID}"),
    "tasks.replace": (lambda c: c.tasks.replace(key="k", name="n", message="m"), "PUT", f"/tasks/{ID}"),
    "tasks.delete": (lambda c: c.tasks.delete(key="k"), "DELETE", f"/tasks/{ID}"),
    "tasks.pause": (lambda c: c.tasks.pause(key="k"), "POST", f"/tasks/{ID}/pause"),
    "tasks.resume": (lambda c: c.tasks.resume(key="k"), "POST", f"/tasks/{ID}/resume"),
    "tasks.run": (lambda c: c.tasks.run(key="k"), "POST", f"/tasks/{ID}/run"),
    "tasks.next": (lambda c: c.tasks.next(key="k"), "GET", f"/tasks/{ID}/next"),
    "tasks.jobs": (lambda c: c.tasks.jobs(key="k"), "GET", f"/tasks/{ID}/jobs"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_key_stands_for_an_id_wherever_one_is_taken(flavor: Flavor, name: str) -> None:
    call, method, path = CALLS[name]
    sent: list[tuple[str, str]] = []

    def respond(request: httpx.Request) -> httpx.Response:
        sent.append((request.method, request.url.path.removeprefix("/api/v1")))
        whole = {
            **TASK,
            **ENDED,
            "status": "active" if "/tasks/" in request.url.path and not request.url.path.endswith("run") else "failed",
        }
        return answer({**whole, "runs": [], "number": 2, "text": "", "complete": True, **page()})

    flavor.run(respond, call)
    assert sent == [("GET", f"/{name.partition('.')[0]}/by-key/k"), (method, path)]
    if name != "tasks.replace":  # beside an id, the key is a field of the task
        with pytest.raises(ValueError, match="an id or a key"):
            flavor.run(respond, lambda client: client.jobs.retry(ID, key="k"))


def test_an_answered_task_replaces_itself(flavor: Flavor) -> None:
    sent: list[Any] = []

    def respond(request: httpx.Request) -> httpx.Response:
        sent.append((request.url.path, json.loads(request.content)["key"]))
        return answer(TASK)

    flavor.run(respond, lambda client: client.tasks.replace(ID, **TASK))
    assert sent == [(f"/api/v1/tasks/{ID}", "nightly")]


def test_a_payload_beside_a_url_says_where_the_body_goes(flavor: Flavor) -> None:
    with pytest.raises(ValueError, match=r'http=\{"url": "https://…", "body": \{…\}\}'):
        flavor.run(lambda request: answer(JOB), lambda client: client.jobs.create(http="https://x", payload={"order": 17}))


@pytest.mark.usefixtures("signed_in")
def test_a_breaker_that_was_not_closed_is_not_said_to_be() -> None:
    closed = {**page(), "closed": {"circuit": "host api.example.com", "owner": "u2"}}
    terminal = cli.api({"POST /system/breakers/close": closed})
    assert "is closed" in cli.done(terminal("system", "close-breaker", "host api.example.com", "--owner", "shop"))
    assert terminal.api.last[3] == {"circuit": "host api.example.com", "owner": "shop"}
    for reply, code in ((refusal(404, "not_found", "no breaker is open"), 4), (refusal(409, "conflict", "two are open"), 1)):
        result = cli.api({"POST /system/breakers/close": reply})("system", "close-breaker", "http:api.example.com")
        assert result.exit_code == code and result.stdout == "" and "closed" not in result.stderr


def test_the_help_of_schedules_is_what_the_server_takes() -> None:
    for command in ("create", "preview"):
        assert "six" not in cli.done(cli.api({})("tasks", command, "--help"))
