"""The report of present problems: the record of the client, and the output of `punctual status`."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import test_cli as cli
from fake_api import Flavor, answer, refusal

from punctual import NoAnswer
from punctual.records import StatusReport

OF = {"owner": "u2", "owner_name": "shop"}
PAUSED = {
    "kind": "lane_paused",
    "severity": "critical",
    "title": "The lane one-time is paused: 14 jobs wait",
    "inspect": "punctual jobs list --status queued --everyone",
    "since": "2026-11-20T09:00:00.000Z",
    "last_at": None,
    "by": "u1",
    "by_name": "ann",
    "reason": "incident 17",
    "count": 14,
    "lane": "one-time",
    "circuit": None,
    "what": None,
    "owner": None,
    "owner_name": None,
    "task": None,
    "task_name": None,
    "fingerprint": None,
    "remedy": {
        "label": "Resume the lane",
        "method": "POST",
        "path": "/system/resume",
        "body": {"lane": "one-time"},
        "command": "punctual system resume one-time",
    },
}
SKIPS = {**PAUSED, "kind": "task_skips", "severity": "warning", "title": "The task Sync skips runs", "since": None, "by_name": None}
SKIPS |= {"inspect": "punctual jobs list --task 01T --status skipped"}
SKIPS |= {"by": None, "reason": "overlap", "lane": None, "remedy": None}
REPORT: dict[str, Any] = {
    "at": "2026-11-20T09:59:50.000Z",
    "scope": "all",
    "well": False,
    "problems": [PAUSED, SKIPS],
    "more_problems": True,
    "scheduler": {"lag_seconds": 14.2, "oldest_open_minute": "2026-11-20T09:59:00.000Z"},
    "late": {"count": 14, "at_least": True, "longest_seconds": 303.1},
    "lanes": [
        {
            "lane": "one-time",
            "paused_at": "2026-11-20T09:00:00.000Z",
            "paused_by": "u1",
            "paused_by_name": "ann",
            "reason": "incident 17",
            "waiting": 14,
            "at_least": True,
        },
        {"lane": "retry", "paused_at": None, "paused_by": None, "paused_by_name": None, "reason": None, "waiting": 0, "at_least": False},
        {
            "lane": "recurring",
            "paused_at": None,
            "paused_by": None,
            "paused_by_name": None,
            "reason": None,
            "waiting": 3,
            "at_least": False,
        },
    ],
    "breakers": [
        {
            "circuit": "host api.example.com",
            **OF,
            "state": "open",
            "opened_at": "2026-11-20T09:00:00.000Z",
            "until": "2026-11-20T10:00:00.000Z",
            "probe_until": None,
        }
    ],
    "waiting": [{**OF, "count": 13, "command": "punctual jobs cancel --status queued --owner shop --dry-run"}],
    "failures": [
        {
            **OF,
            "what": "127.0.0.1:4898",
            "count": 26,
            "first_at": "2026-11-20T09:10:00.000Z",
            "last_at": "2026-11-20T09:50:00.000Z",
            "fingerprint": "3f9c2a7e5b8d",
            "error": "retryable: HTTP 500",
            "job": "01J",
            "task": None,
        }
    ],
    "skipping": [{**OF, "task": "01T", "task_name": "Sync", "skipped": 4, "of": 6, "reason": "overlap"}],
}
NOTHING = {"more_problems": False, "lanes": [], "breakers": [], "waiting": [], "failures": [], "skipping": []}
WELL: dict[str, Any] = {**REPORT, **NOTHING, "scope": "own", "well": True, "problems": [], "scheduler": None}
WELL["late"] = {"count": 0, "at_least": False, "longest_seconds": 0}


def test_the_client_reads_the_report(flavor: Flavor) -> None:
    asked: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return answer(REPORT)

    found: StatusReport = flavor.run(respond, lambda client: client.status(scope="all"))
    assert (asked[0].url.path, dict(asked[0].url.params)) == ("/api/v1/status", {"scope": "all"})
    assert not found.well and found.more_problems and found.raw == REPORT
    (first, second) = found.problems
    assert first.remedy is not None and first.remedy.command == "punctual system resume one-time" and second.remedy is None
    assert found.scheduler is not None and found.scheduler.lag_seconds == 14.2 and found.late.at_least
    assert (found.lanes[0].paused_by_name, found.breakers[0].circuit) == ("ann", "host api.example.com")
    assert (found.waiting[0].owner_name, found.failures[0].count, found.skipping[0].of) == ("shop", 26, 6)
    assert flavor.run(lambda request: answer(WELL), lambda client: client.status()).well


@pytest.mark.usefixtures("signed_in")
def test_a_terminal_shows_each_problem_with_the_command_that_mends_it() -> None:
    terminal = cli.api({"GET /status": REPORT})
    shown = cli.done(terminal("status", "--everyone", terminal=True))
    assert terminal.api.last[2] == {"scope": "all"}
    plain = [line.rstrip() for line in cli.plain(shown).splitlines()]
    assert plain[0] == "critical: The lane one-time is paused: 14 jobs wait"
    assert plain[1].startswith("  since ") and plain[1].endswith("(59m 50s ago) by ann: incident 17")
    assert plain[2] == "  Resume the lane: punctual system resume one-time"
    assert plain[3] == "  More: punctual jobs list --status queued --everyone"
    assert plain[4:6] == ["warning: The task Sync skips runs", "  overlap"]
    assert plain[6:8] == ["  More: punctual jobs list --task 01T --status skipped", "There are more problems than these."]
    assert "The scheduler is 14s behind." in plain and "At least 14 jobs are late, the longest by 5m 3s." in plain
    for heading, row in (
        ("Lanes", "one-time paused 14+"),
        ("Breakers that are not closed", "host api.example.com open"),
        ("Jobs that are due and wait", "shop 13 punctual jobs cancel --status"),
        ("Failures of the last hour", "127.0.0.1:4898 26"),
        ("Tasks that skip runs", "Sync 4 of 6"),
    ):
        assert " ".join(plain[plain.index(heading) + 2].split()).startswith(row), plain
    breaker = plain[plain.index("Breakers that are not closed") + 2]
    assert breaker.endswith(" shop") and "u2" not in breaker, "the name of the owner, not the id"
    assert " ".join(plain[plain.index("Lanes") + 3].split()) == "recurring active 3", "its jobs wait for something else"
    assert not any(line.startswith("retry") for line in plain)


@pytest.mark.usefixtures("signed_in")
def test_a_pipe_gets_a_line_for_each_problem_and_json_the_whole_report() -> None:
    terminal = cli.api({"GET /status": REPORT})
    first, second = (line.split("\t") for line in cli.done(terminal("status")).splitlines())
    assert terminal.api.last[2] == {}
    assert first[:2] == ["critical", PAUSED["title"]] and first[3:] == ["ann", "incident 17", "punctual system resume one-time"]
    assert second[:2] == ["warning", SKIPS["title"]] and second[5] == SKIPS["inspect"]
    assert cli.done(terminal("status", "--quiet")) == "lane_paused\ntask_skips\n"
    assert json.loads(cli.done(terminal("status", "--json"))) == REPORT


@pytest.mark.usefixtures("signed_in")
def test_the_exit_code_tells_of_problems_only_with_check() -> None:
    for report, code in ((REPORT, 6), (WELL, 0)):
        terminal = cli.api({"GET /status": report})
        assert terminal("status").exit_code == 0 and terminal("status", "--check").exit_code == code
        assert terminal("status", "--check", "--json").exit_code == code
    assert cli.plain(cli.done(cli.api({"GET /status": WELL})("status", terminal=True))) == "All is well.\n"
    denied = cli.api({"GET /status": refusal(403, "forbidden", "scope all is for operators")})("status", "--everyone")
    assert denied.exit_code == 1 and "for operators" in denied.stderr


def watched(reports: list[Any], *words: str, terminal: bool = False) -> str:
    """Return what `--watch` shows until Ctrl-C after the last of these reports."""
    screen = cli.api({"GET /status": reports})

    def pause(seconds: float) -> None:
        screen.pauses.append(seconds)
        if len(screen.pauses) == len(reports):
            raise KeyboardInterrupt

    screen.pause = pause  # type: ignore[method-assign]
    return cli.done(screen("status", "--watch", *words, terminal=terminal))


@pytest.mark.usefixtures("signed_in")
def test_a_watching_pipe_gets_a_line_when_a_problem_begins_changes_or_is_over() -> None:
    more = {**REPORT, "problems": [{**PAUSED, "title": "The lane one-time is paused: 15 jobs wait"}, SKIPS]}
    lines = [line.split("\t")[:2] for line in watched([REPORT, REPORT, more, {**REPORT, "problems": [SKIPS]}, WELL]).splitlines()]
    assert lines == [
        ["critical", "The lane one-time is paused: 14 jobs wait"],
        ["warning", "The task Sync skips runs"],
        ["critical", "The lane one-time is paused: 15 jobs wait"],
        ["over", "The lane one-time is paused: 15 jobs wait"],
        ["over", "The task Sync skips runs"],
    ]
    assert [json.loads(line) for line in watched([WELL, WELL, REPORT, REPORT], "--json").splitlines()] == [WELL, REPORT]
    assert "\033" not in watched([REPORT, WELL])


@pytest.mark.usefixtures("signed_in")
def test_a_watching_terminal_changes_in_place_and_waits_for_a_silent_api() -> None:
    shown = watched([REPORT, NoAnswer("nothing came"), WELL], terminal=True)  # what the client raises after all repeats
    frames = cli.plain(shown)
    assert "The lane one-time is paused: 14 jobs wait" in frames and "Breakers that are not closed" in frames
    assert "what is below may be old" in frames
    assert "\033[1A" in shown  # it goes back to the lines before, and clears no screen
    assert "\033[2J" not in shown


@pytest.mark.usefixtures("signed_in")
def test_a_watch_is_no_check() -> None:
    refused = cli.api({"GET /status": WELL})("status", "--watch", "--check")
    assert refused.exit_code == 2 and "--check is for one look" in refused.stderr
