"""Tasks as code against the API itself: what a plan shows, and what an apply makes of it."""

import json
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from hypothesis import given, reject
from hypothesis import strategies as st
from punctual import Punctual
from punctual.cli import build
from punctual.cli._app import Setup
from punctual.cli.apply import CHANGES_AHEAD
from punctual.plan import Action, BadFile, Plan, apply, entries, parse, plan, schema, tasks, to_json, to_yaml
from typer.testing import CliRunner

from docs_build import tasks_schema
from lambdas import _runtime
from scheduler.targets import registry
from tests.lambdas.gateway import World, send

_one_at_a_time = threading.Lock()  # the resolver keeps the request that it works on


def answer(request: httpx.Request) -> httpx.Response:
    """The answer of the API's handler."""
    text = request.content.decode()
    with _one_at_a_time:
        answered = send(request.method, request.url.path.removeprefix("/api/v1"), body=text or None, query=dict(request.url.params))
    return httpx.Response(answered.status, headers=dict(answered.headers), text=answered.text)


@pytest.fixture
def client(world: World) -> Iterator[Punctual]:
    with Punctual("http://punctual.test", token="token", transport=httpx.MockTransport(answer)) as made:
        yield made


def planned(client: Punctual, *items: Mapping[str, Any], label: str | None = "shop", prune: bool = False) -> Plan:
    text = httpx.Request("PUT", "http://x", json={"tasks": items}).content.decode()
    return plan(client, parse([("tasks.yaml", text)], label=label), prune=prune)


def actions(made: Plan) -> list[str]:
    return [f"{change.action.value} {change.key}" for change in made.changes]


def many(count: int) -> list[dict[str, Any]]:
    return [
        {"key": f"task {number:03}", "name": f"Task {number}", "message": "m", "schedule": {"cron": f"{number % 60} * * * *"}}
        for number in range(count)
    ]


def settings(client: Punctual) -> dict[str, Any]:
    """The fields of all tasks that a file could have, by name."""
    return {task["name"]: {name: task.get(name) for name in schema.fields()} for task in tasks(client)}


def test_the_schema_is_current() -> None:
    assert schema.text() == tasks_schema.text(), "the API has changed: renew the schema with `make reference`"


def test_the_schema_knows_every_type() -> None:
    known = json.loads(schema.text())["$defs"]["Task"]["properties"]["type"]["anyOf"][0]["enum"]
    assert known == sorted(registry.names())


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("schedule: {cron: 5}", "tasks[0].schedule.cron: must be a text"),
        ("schedule: {}", "tasks[0].schedule: must have one of at, rate, cron"),
        ("schedule: {cron: 0 0 30 2 *}", "tasks[0].schedule.cron: never runs: the month has no such day"),
        ("schedule: {cron: 0 0 * * *, rate: 1 day}", "tasks[0].schedule.cron: must be absent beside rate"),
        ("schedule: {at: tomorrow}", "tasks[0].schedule.at: must be an RFC 3339 instant"),
        ("overlap: skipp", "tasks[0].overlap: must be one of 'skip'"),
        ("misfire: skip", "tasks[0].misfire: requires cron, every or rate"),
        ("on_failure: pause", "tasks[0].on_failure: requires an ordering_key"),
        ("type: http", "tasks[0].type: give exactly one of"),
        (
            "notifications: {on: [failure]}",
            "tasks[0].notifications: give emails, webhooks or receivers: you have no default receiver",
        ),
        ("tags: [a, a]", "tasks[0].tags: names a twice"),
        ("tags: [a b]", "tasks[0].tags[0]: must be 1 to 32 letters"),
        ("tags: a", "tasks[0].tags: must be a list"),
        ("max_attempts: many", "tasks[0].max_attempts: must be a whole number"),
        ("retry: {cap_second: 5}", "tasks[0].retry.cap_second: is not a known field; did you mean cap_seconds?"),
        ("name: ''", "tasks[0].name: must not be empty"),
        ("shedule: x", "tasks[0].shedule: there is no such field; did you mean schedule?"),
    ],
)
def test_a_field_that_the_api_refuses_is_named_with_file_line_and_rule(client: Punctual, line: str, problem: str) -> None:
    name = "" if line.startswith("name") else "\n  name: A"
    with pytest.raises(BadFile) as refused:
        plan(client, parse([("t.yaml", f"tasks:\n- key: a\n  {line}\n  message: m{name}\n- {{key: b, name: B, message: m}}")]))
    (found,) = map(str, refused.value.problems)
    assert found.startswith(f"t.yaml:3: {problem}") and not list(tasks(client))


def test_a_key_that_no_path_carries_is_refused(client: Punctual) -> None:
    with pytest.raises(BadFile, match=r"t\.yaml:1: tasks\[0\]\.key: must be 1 to 255 printable characters"):
        plan(client, parse([("t.yaml", "tasks: [{key: 'a?b', name: A, message: m}]")]))


@pytest.mark.long
def test_two_hundred_tasks_are_planned_applied_changed_and_pruned(client: Punctual) -> None:
    items = many(200)
    first = planned(client, *items)
    assert first.count(Action.CREATE) == 200 and first.changes[0].next_run
    result = apply(client, first)
    assert len(result.done) == 200 and not result.failed and not result.left
    assert planned(client, *items).to_do == ()

    items[7]["schedule"] = {"cron": "30 2 * * *"}
    edited = planned(client, *items)
    assert [change.fields for change in edited.to_do] == [(*edited.to_do[0].fields,)] and edited.to_do[0].key == "task 007"
    (field,) = edited.to_do[0].fields
    assert (field.field, field.before, field.after) == ("schedule.cron", "7 * * * *", "30 2 * * *")
    assert apply(client, edited).count(Action.CHANGE) == 1
    assert planned(client, *items).to_do == ()

    gone = planned(client, *items[:199], prune=True)
    assert actions(gone)[199:] == ["delete task 199"] and apply(client, gone).count(Action.DELETE) == 1
    assert len(list(tasks(client))) == 199


def test_a_body_that_changes_from_true_to_1_is_planned_and_applied(client: Punctual) -> None:
    def item(value: Any) -> dict[str, Any]:
        content = {"type": "http", "payload": {"url": "https://x.test", "method": "POST", "body": {"on": value}}}
        return {"key": "k", "name": "n", "schedule": {"cron": "0 3 * * *"}} | content

    apply(client, planned(client, item(True)))
    edited = planned(client, item(1))
    assert [(one.field, one.before, one.after) for one in edited.changes[0].fields] == [("payload.body.on", True, 1)]
    assert apply(client, edited).count(Action.CHANGE) == 1 and planned(client, item(1)).to_do == ()


def test_tasks_without_the_label_are_never_touched(client: Punctual) -> None:
    apply(client, planned(client, *many(2), label="other"))
    apply(client, planned(client, {**many(3)[2], "key": "mine"}, label=None))
    apply(client, planned(client, {**many(1)[0], "key": "ours"}))
    assert actions(planned(client, prune=True)) == ["delete ours"]


def test_an_export_is_applied_elsewhere_as_the_same_tasks(client: Punctual, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        {"key": "a", "name": "A", "message": "on", "schedule": {"rate": "90 minutes", "jitter_seconds": 5}, "tags": ["yes", "x:1"]},
        {
            "key": "b: c",
            "name": "B",
            "type": "http",
            "payload": {"url": "https://x.test", "body": {"t": "10:01", "n": [1, 2.5, None, True]}},
            "schedule": {"cron": "*/5 * * * *", "time_zone": "Europe/Berlin", "end": "2031-01-01T00:00:00+01:00"},
            "misfire": "run_all",
            "notifications": {"emails": [], "webhooks": [{"url": "https://x.test/h", "format": "slack"}], "on": ["late"]},
            "callback": {},
            "retry": {"base_seconds": 2},
            "ordering_key": "k",
            "on_failure": "pause",
            "description": "one\n\ntwo",
        },
        {"key": "ca", "name": "Several", "message": "m", "schedule": {"cron": ["0 9 * * MON-FRI", "30 10 LW,L-2 * *"]}},
        {
            "key": "cb",
            "name": "Every",
            "message": "m",
            "schedule": {"every": "2 weeks", "weekdays": ["MON", "SUN"], "times": ["09:00", "10:30"], "time_zone": "Europe/Berlin"},
        },
        {"key": "c", "name": "*C", "message": "a\nb\n", "schedule": {"at": "2026-12-01T10:00:00Z"}, "overlap": "skip"},
    ]
    apply(client, planned(client, *items))
    client.request("POST", "/tasks", {"name": "No key / here", "message": "m"})
    before = settings(client)
    written = entries(list(tasks(client, "shop")), "shop")
    assert [entry.body["key"] for entry in entries(list(tasks(client)))] == ["a", "b: c", "c", "ca", "cb", "no-key-here"]
    everything = entries(list(tasks(client)))
    assert "no key" in everything[5].comments[0]
    assert to_yaml(everything).index("# The task") < to_yaml(everything).index("no-key-here")

    for text in (to_yaml(written, label="shop", head=["Tasks."]), to_json(written, label="shop")):
        monkeypatch.setattr(_runtime, "api", partial(lambda empty: empty, World()))
        result = apply(client, plan(client, parse([("t.yaml", text)])))
        assert len(result.done) == 5 and not result.failed, text
        assert settings(client) == {name: task for name, task in before.items() if task["key"]}, text


def test_a_paused_task_is_exported_and_created_paused(client: Punctual, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    item = {**many(1)[0], "paused": True, "pause_reason": "not yet"}
    apply(client, planned(client, item))
    (task,) = tasks(client)
    assert (task["status"], task["inactive_reason"]) == ("inactive", "not yet") and planned(client, item).to_do == ()
    text = to_yaml(entries(list(tasks(client, "shop")), "shop"), label="shop")
    monkeypatch.setattr(_runtime, "api", partial(lambda empty: empty, World()))
    apply(client, plan(client, parse([("t.yaml", text)])))
    (task,) = tasks(client)
    assert (task["status"], task["inactive_reason"]) == ("inactive", "not yet")
    client.request("POST", f"/tasks/{task['id']}/resume")
    assert plan(client, parse([("t.yaml", text)])).to_do == ()


# The fields of a task in a file, each in forms that mean the same and in others.
FORMS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"cron": st.sampled_from(["30 2 * * *", "30  2 * * *", "*/5 * * * *", "@daily"])},
        optional={
            "time_zone": st.sampled_from(["UTC", "Europe/Berlin", None]),
            "dst_gap": st.sampled_from(["shift", "skip"]),
            "jitter_seconds": st.sampled_from([0, 60]),
            "max_runs": st.sampled_from([5, None]),
            "end": st.sampled_from(["2030-01-01T00:00:00Z", "2030-01-01T01:00:00.000+01:00"]),
        },
    ),
    st.fixed_dictionaries(
        {"rate": st.sampled_from(["60 minutes", "rate(1 hour)", {"every": 3600, "unit": "Seconds"}, "90 minutes", "1 days"])},
        optional={
            "start": st.sampled_from(["2026-11-20T00:00:00Z", "2026-11-20T00:00:00.0001+00:00"]),
            "jitter_seconds": st.sampled_from([0, 60]),
        },
    ),
    st.fixed_dictionaries(
        {"cron": st.lists(st.sampled_from(["30 2 * * *", "30  02 * * *", "0 9 LW * *", "@daily", "0 0 * * *"]), min_size=1, max_size=4)}
    ),
    st.fixed_dictionaries(
        {"every": st.sampled_from(["2 weeks", "3 WEEKS", "1 week"]), "times": st.sampled_from(["09:00", ["09:00"], ["18:30", "09:00"]])},
        optional={
            "weekdays": st.sampled_from(["MON", ["mon"], ["WED", "MON", "MON"], "FRI"]),
            "time_zone": st.sampled_from(["UTC", "Europe/Berlin"]),
            "start": st.sampled_from(["2026-11-20T00:00:00Z", "2026-11-24T10:00:00Z"]),
        },
    ),
    st.fixed_dictionaries({"every": st.sampled_from(["2 days", "3 day"]), "times": st.just("09:00")}),
    st.fixed_dictionaries({"at": st.sampled_from(["2026-12-01T10:00:00Z", "2026-12-01T11:00:00+01:00", "2026-12-01T10:00:00.001Z"])}),
)
WHAT = st.one_of(
    st.sampled_from([{"message": "m"}, {"message": "n"}, {"type": "log", "payload": {"message": "m"}}]),
    st.fixed_dictionaries(
        {"url": st.just("https://x.test")},
        optional={"body": st.sampled_from([None, "b", {"a": 1}]), "method": st.sampled_from(["GET", "POST"])},
    ).map(lambda payload: {"type": "http", "payload": payload}),
    st.sampled_from([{"target": "hook", "payload": {"body": "b"}}, {"target": "hook", "type": "http"}, {"target": "hook", "payload": {}}]),
)
OTHERS = st.fixed_dictionaries(
    {"name": st.sampled_from(["n", "m"])},
    optional={
        "description": st.sampled_from([None, "d"]),
        "overlap": st.sampled_from([None, "skip", "allow"]),
        "max_attempts": st.sampled_from([3, 4]),
        "retry": st.sampled_from(
            [None, {}, {"base_seconds": 1.0}, {"cap_seconds": 900, "jitter": "full"}, {"jitter": "none"}, {"base_seconds": 0.1234567}]
        ),
        "timeout_seconds": st.sampled_from([300, 60]),
        "callback": st.sampled_from([None, {}, {"max_seconds": 86400}, {"lease_seconds": 60}]),
        "tags": st.sampled_from([[], ["a"], ["a", "b"], ["b", "a"]]),
        "notifications": st.sampled_from(
            [
                None,
                {"webhooks": [{"url": "https://x.test", "format": "slack"}]},
                {
                    "webhooks": [{"url": "https://x.test", "format": "slack", "signing_secret": None}],
                    "on": ["failure", "recovery", "failure"],
                },
                {"webhooks": [{"url": "https://x.test", "signing_secret": "s"}], "after_failures": 1, "digest_seconds": 900},
            ]
        ),
        "events": st.just(False),
    },
)
ORDER = st.sampled_from(
    [
        {},
        {"ordering_key": "k"},
        {"ordering_key": "k", "on_failure": "continue"},
        {"ordering_key": "k", "on_failure": "pause"},
        {"ordering_key": None},
    ]
)
MISFIRE = st.sampled_from(
    [
        {},
        {"misfire": "run_latest"},
        {"misfire": "run_all"},
        {"misfire": "run_all", "max_catch_up": 100},
        {"misfire": None, "misfire_threshold_seconds": 60},
        {"misfire": "skip", "misfire_threshold_seconds": 90},
    ]
)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    form = draw(FORMS)
    misfire = draw(MISFIRE) if form and "at" not in form else {}
    return {"key": "k", **draw(OTHERS), **draw(WHAT), **draw(ORDER), **misfire, **({} if form is None else {"schedule": form})}


@pytest.mark.long
@pytest.mark.hypothesis
@given(bodies(), bodies())
def test_a_change_is_planned_exactly_if_the_server_makes_one(first: dict[str, Any], second: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        world = World()
        patch.setattr(_runtime, "api", lambda: world)
        with Punctual("http://punctual.test", token="token", transport=httpx.MockTransport(answer)) as client:
            send(
                "POST",
                "/targets",
                json_body={"name": "hook", "kind": "http", "defaults": {"url": "https://x.test"}},
                role="administrator",
            )
            try:
                assert not apply(client, planned(client, first)).failed
                (change,) = planned(client, second).changes
            except BadFile:
                reject()  # rules between fields, such as call-backs by type
            data = client.request("PUT", "/tasks/by-key/k", change.item.body)
            assert data["outcome"] == ("updated" if change.action is Action.CHANGE else "unchanged"), change.fields
            assert bool(change.fields) is (change.action is Action.CHANGE)
            (after,) = planned(client, second).changes
            assert after.action is Action.KEEP, after.fields
            # Its export is the same task. The list of tasks shows it: the plan needs no dry run of it.
            (again,) = planned(client, entries([data], "shop")[0].body).changes
            assert again.action is Action.KEEP and "outcome" not in again.task


# The command line


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(build(), list(words), obj=Setup(transport=httpx.MockTransport(answer)), input=stdin)


@pytest.fixture
def signed_in(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with a file of three tasks; the command is signed in by its environment."""
    for name, value in (("URL", "http://punctual.test"), ("TOKEN", "token"), ("CONFIG", str(tmp_path / "profiles.json"))):
        monkeypatch.setenv(f"PUNCTUAL_{name}", value)
    file = tmp_path / "tasks.yaml"
    file.write_text(json.dumps({"label": "shop", "tasks": many(3)}))
    return file


def test_apply_shows_a_plan_and_carries_it_out(signed_in: Path) -> None:
    file = str(signed_in)
    ahead = run("tasks", "apply", "-f", file, "--dry-run")
    assert ahead.exit_code == CHANGES_AHEAD and "+ task 000  Task 0  first run 2026-11-20T11:00:00+00:00" in ahead.stdout
    assert ahead.stdout.endswith("Plan: 3 to create, 0 to change, 0 to delete, 0 unchanged.\n")
    asked = run("tasks", "apply", "-f", file)
    assert asked.exit_code == 2 and "needs a confirmation" in asked.stderr
    applied = run("tasks", "apply", "-f", file, "--yes")
    assert applied.exit_code == 0 and applied.stdout.endswith("Done: 3 created, 0 changed, 0 deleted.\n")
    again = run("tasks", "apply", "-f", file, "--dry-run")
    assert again.exit_code == 0 and again.stdout == "Plan: 0 to create, 0 to change, 0 to delete, 3 unchanged.\n"

    signed_in.write_text(json.dumps({"label": "shop", "tasks": [{**many(1)[0], "schedule": {"cron": "5 * * * *"}}]}))
    refused = run("tasks", "apply", "-f", file, "--prune", "--yes")
    assert refused.exit_code == 2 and "would delete 2 of the 3 tasks with the label shop: nothing was changed" in refused.stderr
    pruned = run("tasks", "apply", "-f", file, "--prune", "--prune-most", "--yes")
    assert '    schedule.cron: "0 * * * *" → "5 * * * *"' in pruned.stdout and "- task 002  Task 2\n" in pruned.stdout
    assert pruned.stdout.endswith("Done: 0 created, 1 changed, 2 deleted.\n") and pruned.exit_code == 0


def test_apply_speaks_json(signed_in: Path) -> None:
    ahead = json.loads(run("tasks", "apply", "-f", str(signed_in), "--dry-run", "--json").stdout)
    assert ahead["applied"] is False and [each["action"] for each in ahead["changes"]] == ["create"] * 3
    applied = json.loads(run("tasks", "apply", "-f", str(signed_in), "--yes", "--json").stdout)
    assert applied["applied"] is True and [each["outcome"] for each in applied["changes"]] == ["done"] * 3


def test_a_broken_file_changes_nothing(signed_in: Path, client: Punctual) -> None:
    signed_in.write_text("tasks:\n- key: a\n  name: A\n  message: m\n  shedule: x\n")
    refused = run("tasks", "apply", "-f", str(signed_in), "--yes")
    assert refused.exit_code == 2 and f"{signed_in}:5: tasks[0].shedule: there is no such field; did you mean schedule?" in refused.stderr
    problem = json.loads(run("tasks", "apply", "-f", str(signed_in), "--json").stderr)["error"]["problems"][0]
    assert problem == {
        "file": str(signed_in),
        "line": 5,
        "field": "tasks[0].shedule",
        "rule": "there is no such field; did you mean schedule?",
    }
    assert not list(tasks(client))


def test_a_refusal_names_its_line_and_changes_nothing(signed_in: Path, client: Punctual) -> None:
    signed_in.write_text("tasks:\n- key: a\n  name: A\n  message: '{{nothing}}'\n- {key: b, name: B, message: m}\n")
    refused = run("tasks", "apply", "-f", str(signed_in), "--yes")
    assert refused.exit_code == 2 and f"{signed_in}:4: tasks[0].message: " in refused.stderr
    assert not list(tasks(client))


def test_prune_needs_a_label(signed_in: Path) -> None:
    signed_in.write_text("tasks: []\n")
    assert "needs a label" in run("tasks", "apply", "-f", str(signed_in), "--prune").stderr
    assert run("tasks", "apply", "-f", str(signed_in), "--prune", "--label", "shop").exit_code == 0


def test_export_writes_what_apply_reads(signed_in: Path) -> None:
    run("tasks", "apply", "-f", str(signed_in), "--yes")
    for words in (["--label", "shop"], ["--label", "shop", "--format", "json"]):
        exported = run("tasks", "export", *words)
        assert exported.exit_code == 0
        same = run("tasks", "apply", "-f", "-", "--dry-run", stdin=exported.stdout)
        assert same.exit_code == 0 and "3 unchanged" in same.stdout
    assert run("tasks", "export", "--format", "xml").exit_code == 2
    assert run("tasks", "schema").stdout == schema.text()


def test_import_crontab_writes_what_apply_reads(signed_in: Path) -> None:
    lines = "# Reports\n30 2 * * * report\n@reboot start\n"
    imported = run("import", "crontab", "-", "--http", "https://run.test", "--tz", "Europe/Berlin", "--label", "cron", stdin=lines)
    assert imported.exit_code == 1 and "left out: -:3: @reboot has no time" in imported.stderr and "  # Reports\n" in imported.stdout
    applied = run("tasks", "apply", "-f", "-", "--yes", stdin=imported.stdout)
    assert applied.exit_code == 0 and "+ report  report  first run 2026-11-21T02:30:00+01:00" in applied.stdout
    assert "--time-zone" in run("import", "crontab", "-", "--target", "t", stdin=lines).stderr
    assert run("import", "crontab", "-", stdin="").exit_code == 2
    assert run("import", "crontab", "/nowhere", "--target", "t").exit_code == 2


def test_import_rrule_writes_what_apply_reads(signed_in: Path) -> None:
    lines = "DTSTART:20261207T090000\nRRULE:FREQ=WEEKLY;INTERVAL=2\nSUMMARY:Pay\nDTSTART:20261207T090000\nRRULE:FREQ=YEARLY;BYWEEKNO=1"
    imported = run("import", "rrule", "-", "--http", "https://run.test", "--tz", "Europe/Berlin", "--label", "dates", stdin=lines)
    assert imported.exit_code == 1 and "left out: -:4: line 4 chooses by BYWEEKNO=1, which has no equal" in imported.stderr
    applied = run("tasks", "apply", "-f", "-", "--yes", stdin=imported.stdout)
    assert applied.exit_code == 0 and "+ pay  Pay  first run 2026-12-07T09:00:00+01:00" in applied.stdout, applied.stdout
    assert "1 unchanged" in run("tasks", "apply", "-f", "-", "--dry-run", stdin=imported.stdout).stdout
    assert "--time-zone" in run("import", "rrule", "-", "--target", "t", stdin=lines).stderr
    assert run("import", "rrule", "-", "--target", "t", "--tz", "Mars/Olympus", stdin=lines).exit_code == 2
    assert run("import", "rrule", "-", stdin="").exit_code == 2
    assert run("import", "rrule", "/nowhere", "--target", "t").exit_code == 2


def test_tasks_of_the_new_forms_are_created_listed_and_previewed(signed_in: Path) -> None:
    every = ["--every", "2 weeks", "--weekdays", "MON, wed", "--times", "09:00", "--tz", "Europe/Berlin"]
    assert run("tasks", "create", "pay", "--key", "pay", *every, "log", "m").exit_code == 0
    assert run("tasks", "create", "twice", "--key", "twice", "--cron", "@daily", "--cron", "0 9 LW * *", "log", "m").exit_code == 0
    listed = run("tasks", "list").stdout
    assert "every 2 weeks on MON, WED at 09:00 Europe/Berlin" in listed and "0 9 LW * *; @daily" in listed
    assert "2026-11-23 09:00:00 +0100" in run("tasks", "preview", *every).stdout
    assert "2026-11-30 09:00:00" in run("tasks", "preview", "--cron", "0 9 LW * *", "--cron", "0 9 30 * *", "-n", "1").stdout
    assert run("tasks", "update", "--key", "pay", "--times", "08:00,17:00").exit_code == 0
    assert "at 08:00, 17:00" in run("tasks", "list").stdout
    assert "only one of" in run("tasks", "create", "x", "--cron", "@daily", "--every", "2 days", "log", "m").stderr
