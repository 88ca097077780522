"""`--owner` and `--everyone`: operators see, and administrators change, what belongs to others."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import test_cli as cli
from fake_api import JOB, answer
from test_cli import DONE, GROUP, ID, OPERATION, REDRIVE, TASK, USER, page

from punctual.cli import _owners

USERS = page(USER, {**USER, "id": "u2", "username": "shop"})
OF_SHOP = {"owner": "u2"}
FAILED = {**JOB, "status": "failed", "ended_at": "2026-11-20T09:00:01.000Z", "calls": "example.com/", "task_name": "Sync"}


def asked(terminal: cli.Terminal) -> list[tuple[str, str, str | None]]:
    """Method, path and user of each request but those for the list of users."""
    return [(method, path, query.get("owner")) for method, path, query, _ in terminal.api.sent if path != "/users"]


@pytest.mark.parametrize(
    ("words", "requests"),
    [
        ("jobs list", [("GET", "/jobs")]),
        (f"jobs show {ID}", [("GET", f"/jobs/{ID}")]),
        ("jobs show --key k", [("GET", "/jobs/by-key/k")]),
        (f"jobs watch {ID}", [("GET", f"/jobs/{ID}")]),
        (f"jobs cancel {ID}", [("POST", f"/jobs/{ID}/cancel")]),
        ("jobs cancel --tag a --yes", [("POST", "/jobs/cancel"), ("POST", "/jobs/cancel")]),
        (f"jobs retry {ID}", [("POST", f"/jobs/{ID}/retry")]),
        ("jobs retry --key k", [("GET", "/jobs/by-key/k"), ("POST", f"/jobs/{ID}/retry")]),
        (f"jobs update {ID} --in 1h", [("PATCH", f"/jobs/{ID}")]),
        (f"jobs output {ID} --attempt 1", [("GET", f"/jobs/{ID}/attempts/1/output")]),
        (f"jobs log {ID} --attempt 1", [("GET", f"/jobs/{ID}/attempts/1/log")]),
        ("tasks list", [("GET", "/tasks")]),
        (f"tasks show {ID}", [("GET", f"/tasks/{ID}")]),
        (f"tasks jobs {ID}", [("GET", f"/tasks/{ID}/jobs")]),
        (f"tasks run {ID}", [("POST", f"/tasks/{ID}/run")]),
        (f"tasks update {ID} --overlap queue_one", [("PATCH", f"/tasks/{ID}")]),
        ("tasks update --key k --rate 5m", [("GET", "/tasks/by-key/k"), ("PATCH", f"/tasks/{ID}")]),
        (f"tasks preview --id {ID}", [("GET", f"/tasks/{ID}/next")]),
        (f"tasks pause {ID}", [("POST", f"/tasks/{ID}/pause")]),
        ("tasks resume --key k", [("GET", "/tasks/by-key/k"), ("POST", f"/tasks/{ID}/resume")]),
        (f"tasks delete {ID} --yes", [("DELETE", f"/tasks/{ID}")]),
        ("tasks pause --all --yes", [("POST", "/tasks/pause"), ("POST", "/tasks/pause")]),
        ("dead-letters list", [("GET", "/dead-letters")]),
        ("dead-letters jobs f1", [("GET", "/dead-letters/f1/jobs")]),
        ("dead-letters redrive --all --yes", [("GET", "/dead-letters"), ("POST", "/dead-letters/redrive")]),
        ("dead-letters watch r1", [("GET", "/dead-letters/redrives/r1")]),
        ("dead-letters abort r1", [("POST", "/dead-letters/redrives/r1/abort")]),
        ("operations list", [("GET", "/operations")]),
        ("operations show o1", [("GET", "/operations/o1")]),
        ("operations watch o1", [("GET", "/operations/o1")]),
        ("operations abort o1", [("POST", "/operations/o1/abort")]),
    ],
)
@pytest.mark.parametrize("who", ["shop", "u2"])
@pytest.mark.usefixtures("signed_in")
def test_a_command_is_about_the_objects_of_the_named_user(words: str, requests: list[tuple[str, str]], who: str) -> None:
    ended, redriven = {**FAILED, "status": "succeeded"}, {**REDRIVE, "status": "done"}
    counted = {"action": "cancel_jobs", "filter": {}, "matched": 1, "complete": True}
    text, runs = {"number": 1, "text": "t", "complete": True}, {"runs": []}
    answers: dict[tuple[str, str], Any] = {
        ("GET", "/jobs"): page(),
        ("GET", "/tasks"): page(),
        ("GET", "/operations"): page(),
        ("GET", "/dead-letters"): page(GROUP),
        ("GET", "/dead-letters/f1/jobs"): page(),
        ("GET", f"/tasks/{ID}/jobs"): page(),
        ("GET", f"/tasks/{ID}/next"): runs,
        ("GET", f"/jobs/{ID}/attempts/1/output"): text,
        ("GET", f"/jobs/{ID}/attempts/1/log"): text,
        ("POST", "/jobs/cancel"): [counted, DONE],
        ("POST", "/tasks/pause"): [counted, DONE],
        ("POST", f"/tasks/{ID}/run"): JOB,
    }
    by_prefix = {"/jobs": ended, "/tasks": TASK, "/dead-letters": redriven, "/operations": DONE}
    routes = {
        f"{method} {path}": answers.get((method, path), next(one for prefix, one in by_prefix.items() if path.startswith(prefix)))
        for method, path in requests
    }
    terminal = cli.api({"GET /users": USERS, **routes})
    cli.done(terminal(*words.split(), "--owner", who))
    assert [each for each in asked(terminal) if each[1] != "/health"] == [(method, path, "u2") for method, path in requests]


@pytest.mark.usefixtures("signed_in")
def test_an_unknown_user_is_refused_before_anything_is_asked_for() -> None:
    terminal = cli.api({"GET /users": USERS})
    result = terminal("jobs", "list", "--owner", "bob")
    assert result.exit_code == 4 and "--owner: there is no user 'bob'" in result.stderr and asked(terminal) == []
    assert "not both" in terminal("jobs", "list", "--owner", "shop", "--everyone").stderr


class Lists(cli.Api):
    """Answers a list by the user whom the query names."""

    def __init__(self, path: str, lists: dict[str, list[dict[str, Any]]]) -> None:
        super().__init__({"GET /users": USERS})
        self.path, self.lists = path, lists

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == f"/api/v1{self.path}":
            return answer(page(*self.lists.get(request.url.params["owner"], [])))
        return super().__call__(request)


def everyone(path: str, lists: dict[str, list[dict[str, Any]]]) -> cli.Terminal:
    terminal = cli.Terminal()
    terminal.api = Lists(path, lists)
    return terminal


@pytest.mark.usefixtures("signed_in")
def test_lists_of_everyone_are_merged_and_name_the_owner() -> None:
    older = {**FAILED, "id": "01OLD", "scheduled_at": "2026-11-20T08:00:00.000Z"}
    terminal = everyone("/jobs", {"u1": [older], "u2": [FAILED]})
    rows = [line.split("\t") for line in cli.done(terminal("jobs", "list", "--everyone", "--status", "failed")).splitlines()]
    assert [row[:3] for row in rows] == [["shop", ID, "failed"], ["ann", "01OLD", "failed"]]
    assert rows[0][-2].startswith("Sync: ")
    lines = [json.loads(line) for line in cli.done(terminal("jobs", "list", "--everyone", "--json")).splitlines()]
    assert lines[0] == {**FAILED, "owner": {"id": "u2", "username": "shop"}}
    assert "owner" in cli.done(terminal("jobs", "list", "--everyone", terminal=True)).splitlines()[0]
    assert cli.done(terminal("jobs", "list", "--everyone", "-n", "1", "-q")) == f"{ID}\n"
    groups = everyone("/dead-letters", {"u2": [GROUP]})
    assert cli.done(groups("dead-letters", "list", "--everyone")).startswith("shop\t3f9c2a7e5b8d\t7\t")
    tasks = everyone("/tasks", {"u1": [TASK]})
    assert cli.done(tasks("tasks", "list", "--everyone")).startswith("ann\t")
    operations = everyone("/operations", {"u1": [{**DONE, "started_at": "2026-11-20T09:59:30.000Z"}], "u2": [OPERATION]})
    assert [line.split("\t")[0] for line in cli.done(operations("operations", "list", "--everyone")).splitlines()] == ["shop", "ann"]


@pytest.mark.usefixtures("signed_in")
def test_a_list_of_everyone_says_that_users_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_owners, "MOST_USERS", 1)
    result = everyone("/jobs", {"u1": [FAILED]})("jobs", "list", "--everyone", "--json")
    assert result.exit_code == 0 and "only 1 users were asked, there are more" in result.stderr
    monkeypatch.setattr(_owners, "MOST_USERS", 2)
    assert everyone("/jobs", {"u1": [FAILED]})("jobs", "list", "--everyone", "--json").stderr == ""


@pytest.mark.usefixtures("signed_in")
def test_own_lists_and_what_is_not_found_name_the_options_for_others() -> None:
    terminal = cli.api({"GET /dead-letters": page()})
    assert "You have no dead letters. Those of all users: --everyone" in cli.done(terminal("dead-letters", "list", terminal=True))
    assert "Another owner's objects: --owner NAME" in terminal("jobs", "show", ID).stderr
