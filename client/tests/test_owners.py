"""`--owner` and `--everyone`: members change what belongs to their team; operators see, and administrators change, all."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import test_cli as cli
import test_year
from fake_api import JOB, TEAM, URL, answer
from test_cli import DONE, GROUP, ID, ME, OPERATION, REDRIVE, TASK, USER, page

from punctual import profiles
from punctual.cli import _owners
from punctual.profiles import Profile

USERS = page(USER, {**USER, "id": "u2", "username": "shop"})
MEMBER = {**ME, "teams": [{"id": TEAM, "name": "Billing team", "role": "editor"}]}
OTHER = f"team-{'c4' * 10}"
TEAMS = page(
    *({"id": id, "name": name, "role": None, "created_at": JOB["created_at"]} for id, name in ((TEAM, "Billing team"), (OTHER, "ops")))
)
WHO = {"GET /me": {**MEMBER, "role": "operator"}, "GET /users": USERS, "GET /teams": TEAMS}
FAILED = {**JOB, "status": "failed", "ended_at": "2026-11-20T09:00:01.000Z", "calls": "example.com/", "task_name": "Sync"}


def asked(terminal: cli.Terminal) -> list[tuple[str, str, str | None]]:
    """Method, path and owner of each request but those that find the owner."""
    return [(method, path, query.get("owner")) for method, path, query, _ in terminal.api.sent if path not in ("/me", "/users", "/teams")]


@pytest.mark.parametrize(
    ("words", "requests"),
    [
        ("jobs create log hello", [("POST", "/jobs")]),
        ("jobs create --key k log hello", [("PUT", "/jobs/by-key/k")]),
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
        ("tasks create Nightly --rate 5m log hello", [("POST", "/tasks")]),
        ("tasks create Nightly --key k --rate 5m log hello", [("PUT", "/tasks/by-key/k")]),
        ("tasks list", [("GET", "/tasks")]),
        ("tasks export", [("GET", "/tasks")]),
        (f"tasks show {ID}", [("GET", f"/tasks/{ID}")]),
        (f"tasks jobs {ID}", [("GET", f"/tasks/{ID}/jobs")]),
        (f"tasks run {ID}", [("POST", f"/tasks/{ID}/run")]),
        (f"tasks update {ID} --overlap queue_one", [("PATCH", f"/tasks/{ID}")]),
        ("tasks update --key k --rate 5m", [("GET", "/tasks/by-key/k"), ("PATCH", f"/tasks/{ID}")]),
        (f"tasks preview --id {ID}", [("GET", f"/tasks/{ID}/next")]),
        (f"tasks calendar {ID}", [("GET", f"/tasks/{ID}/calendar")]),
        ("tasks crowded", [("GET", "/forecast/crowded")]),
        (f"tasks pause {ID}", [("POST", f"/tasks/{ID}/pause")]),
        ("tasks resume --key k", [("GET", "/tasks/by-key/k"), ("POST", f"/tasks/{ID}/resume")]),
        (f"tasks delete {ID} --yes", [("DELETE", f"/tasks/{ID}")]),
        ("tasks pause --all --yes", [("POST", "/tasks/pause"), ("POST", "/tasks/pause")]),
        ("dead-letters list", [("GET", "/dead-letters")]),
        ("dead-letters jobs f1", [("GET", "/dead-letters/f1/jobs")]),
        ("dead-letters redrive --all --yes", [("GET", "/dead-letters"), ("POST", "/dead-letters/redrive")]),
        ("dead-letters watch r1", [("GET", "/dead-letters/redrives/r1")]),
        ("dead-letters abort r1", [("POST", "/dead-letters/redrives/r1/abort")]),
        ("status", [("GET", "/status")]),
        ("forecast", [("GET", "/forecast")]),
        ("stats", [("GET", "/statistics")]),
        ("operations list", [("GET", "/operations")]),
        ("operations show o1", [("GET", "/operations/o1")]),
        ("operations watch o1", [("GET", "/operations/o1")]),
        ("operations abort o1", [("POST", "/operations/o1/abort")]),
    ],
)
@pytest.mark.parametrize(("who", "id"), [("shop", "u2"), ("u2", "u2"), ("Billing team", TEAM), ("ops", OTHER)])
@pytest.mark.usefixtures("signed_in")
def test_a_command_is_about_the_objects_of_the_named_owner(words: str, requests: list[tuple[str, str]], who: str, id: str) -> None:
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
        ("GET", f"/tasks/{ID}/calendar"): test_year.YEAR,
        ("GET", "/forecast/crowded"): test_year.CROWDED,
        ("GET", f"/jobs/{ID}/attempts/1/output"): text,
        ("GET", f"/jobs/{ID}/attempts/1/log"): text,
        ("POST", "/jobs/cancel"): [counted, DONE],
        ("POST", "/tasks/pause"): [counted, DONE],
        ("POST", f"/tasks/{ID}/run"): JOB,
        ("PUT", "/tasks/by-key/k"): {**TASK, "outcome": "created", "changes": []},
        ("GET", "/status"): cli.STATUS,
        ("GET", "/forecast"): {"scope": "own", "available_instances": 1, "minutes": []},
        ("GET", "/statistics"): {"scope": "own", "since": JOB["created_at"], "until": JOB["created_at"], "types": []},
    }
    by_prefix = {"/jobs": ended, "/tasks": TASK, "/dead-letters": redriven, "/operations": DONE, "/": None}
    routes = {
        f"{method} {path}": answers.get((method, path), next(one for prefix, one in by_prefix.items() if path.startswith(prefix)))
        for method, path in requests
    }
    terminal = cli.api({**WHO, **routes})
    cli.done(terminal(*words.split(), "--owner", who))
    assert [each for each in asked(terminal) if each[1] != "/health"] == [(method, path, id) for method, path in requests]


@pytest.mark.usefixtures("signed_in")
def test_an_unknown_owner_is_refused_before_anything_is_asked_for() -> None:
    terminal = cli.api(WHO)
    result = terminal("jobs", "list", "--owner", "bob")
    assert result.exit_code == 4 and "--owner: there is no owner 'bob' among yours" in result.stderr and asked(terminal) == []
    assert "not both" in terminal("jobs", "list", "--owner", "shop", "--everyone").stderr


def test_an_id_needs_no_list() -> None:
    profiles.save(Profile("default", URL, username="ann", token="t0"))
    terminal = cli.api({"GET /jobs": page()})
    cli.done(terminal("jobs", "list", "--owner", TEAM))
    cli.done(terminal("--owner", TEAM, "jobs", "list"))
    assert asked(terminal) == [("GET", "/jobs", TEAM)] * 2 and len(terminal.api.sent) == 2


@pytest.mark.usefixtures("signed_in")
def test_a_member_names_the_own_teams_and_nobody_else() -> None:
    terminal = cli.api({"GET /me": MEMBER, "GET /jobs": page()})
    for who in ("Billing team", "ann", "u1"):
        cli.done(terminal("jobs", "list", "--owner", who))
    assert [owner for _, _, owner in asked(terminal)] == [TEAM, "u1", "u1"]
    assert terminal("jobs", "list", "--owner", "shop").exit_code == 4 and "/users" not in [path for _, path, *_ in terminal.api.sent]


@pytest.mark.usefixtures("signed_in")
def test_a_name_of_two_teams_is_refused_with_their_ids() -> None:
    twice = {**MEMBER, "teams": [*MEMBER["teams"], {"id": OTHER, "name": "Billing team", "role": "viewer"}]}
    result = cli.api({"GET /me": twice})("jobs", "list", "--owner", "Billing team")
    assert result.exit_code == 2 and "2 teams have the name" in result.stderr and TEAM in result.stderr and OTHER in result.stderr


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize("words", ["targets list", "users list", "whoami", "system status", "teams list"])
def test_a_command_about_no_owner_refuses_the_option(words: str) -> None:
    terminal = cli.api(WHO)
    result = terminal("--owner", TEAM, *words.split())
    assert result.exit_code == 2 and "--owner: this command is not about the objects of an owner" in result.stderr
    assert terminal.api.sent == []


@pytest.mark.usefixtures("signed_in")
def test_a_next_command_names_the_owner_too() -> None:
    terminal = cli.api({**WHO, "GET /dead-letters": page(GROUP), "POST /dead-letters/redrive": REDRIVE})
    done = cli.done(terminal("dead-letters", "redrive", "--all", "--yes", "--detach", "--owner", "Billing team"))
    assert f"punctual dead-letters watch {REDRIVE['id']} --owner 'Billing team'" in done


def test_the_owner_of_the_profile_is_the_default_and_a_terminal_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    profiles.save(Profile("default", URL, username="ann", token="t0", owner=TEAM, owner_name="Billing team"))
    terminal = cli.api(
        {**WHO, "GET /jobs": page(), "GET /targets": page(), "GET /forecast": {"scope": "all", "available_instances": 1, "minutes": []}}
    )
    shown = terminal("jobs", "list", terminal=True)
    assert f"Objects of Billing team ({TEAM}), as in the profile default. Your own: punctual teams use --mine" in shown.stderr
    assert f"They would be of Billing team ({TEAM})." in cli.plain(shown.stdout)
    assert terminal("jobs", "list").stderr == "" and terminal("jobs", "list", "--json", terminal=True).stderr == ""
    assert asked(terminal) == [("GET", "/jobs", TEAM)] * 3
    cli.done(terminal("jobs", "list", "--owner", "ann"))
    cli.done(terminal("targets", "list"))
    cli.done(terminal("forecast", "--everyone"))
    assert [each[2] for each in asked(terminal)[3:]] == ["u1", None, None]
    monkeypatch.setenv("PUNCTUAL_OWNER", OTHER)
    assert f"Objects of {OTHER}, as in PUNCTUAL_OWNER." in terminal("jobs", "list", terminal=True).stderr
    assert asked(terminal)[-1] == ("GET", "/jobs", OTHER)


class Lists(cli.Api):
    """Answers a list by the owner whom the query names."""

    def __init__(self, path: str, lists: dict[str, list[dict[str, Any]]]) -> None:
        super().__init__({"GET /users": USERS, "GET /teams": TEAMS})
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
    assert lines[0] == {**FAILED, "owner": {"id": "u2", "name": "shop"}}
    assert "owner" in cli.done(terminal("jobs", "list", "--everyone", terminal=True)).splitlines()[0]
    assert cli.done(terminal("jobs", "list", "--everyone", "-n", "1", "-q")) == f"{ID}\n"
    groups = everyone("/dead-letters", {"u2": [GROUP]})
    assert cli.done(groups("dead-letters", "list", "--everyone")).startswith("shop\t3f9c2a7e5b8d\t7\t")
    tasks = everyone("/tasks", {"u1": [TASK]})
    assert cli.done(tasks("tasks", "list", "--everyone")).startswith("ann\t")
    operations = everyone("/operations", {"u1": [{**DONE, "started_at": "2026-11-20T09:59:30.000Z"}], "u2": [OPERATION]})
    assert [line.split("\t")[0] for line in cli.done(operations("operations", "list", "--everyone")).splitlines()] == ["shop", "ann"]


@pytest.mark.usefixtures("signed_in")
def test_a_list_of_everyone_says_that_owners_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_owners, "MOST_OWNERS", 3)
    result = everyone("/jobs", {"u1": [FAILED]})("jobs", "list", "--everyone", "--json")
    assert result.exit_code == 0 and "only 3 owners were asked, there are more" in result.stderr
    monkeypatch.setattr(_owners, "MOST_OWNERS", 4)
    assert everyone("/jobs", {"u1": [FAILED]})("jobs", "list", "--everyone", "--json").stderr == ""


@pytest.mark.usefixtures("signed_in")
def test_own_lists_and_what_is_not_found_name_the_options_for_others() -> None:
    terminal = cli.api({"GET /dead-letters": page()})
    assert "You have no dead letters. Those of all users: --everyone" in cli.done(terminal("dead-letters", "list", terminal=True))
    assert "Another owner's objects: --owner NAME" in terminal("jobs", "show", ID).stderr
