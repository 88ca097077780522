"""Tasks as code against the API itself: the client fills in the defaults that the server has, and refuses what its schema refuses."""

import threading
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import httpx
import jsonschema_rs
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from punctual import InvalidRequest, Punctual
from punctual.plan import Action, Plan, apply, entries, normal, parse, plan, schema, tasks, to_json, to_yaml

from lambdas import _runtime
from local import tasks_schema
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


@pytest.mark.parametrize("file", [tasks_schema.PUBLISHED, tasks_schema.PACKAGED])
def test_the_schema_is_current(file: Any) -> None:
    assert file.read_text() == tasks_schema.text(), "the API has changed: renew the schema with `make reference`"


def test_the_schema_knows_every_type() -> None:
    assert schema.types() == sorted(registry.names())


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
    assert (field.field, field.old, field.new) == ("schedule.cron", "7 * * * *", "30 2 * * *")
    assert apply(client, edited).count(Action.CHANGE) == 1
    assert planned(client, *items).to_do == ()

    gone = planned(client, *items[:199], prune=True)
    assert actions(gone)[199:] == ["delete task 199"] and apply(client, gone).count(Action.DELETE) == 1
    assert len(list(tasks(client))) == 199


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
            "on_failure": "park",
            "description": "one\n\ntwo",
        },
        {"key": "c", "name": "*C", "message": "a\nb\n", "schedule": {"at": "2026-12-01T10:00:00Z"}, "overlap": "skip"},
    ]
    apply(client, planned(client, *items))
    client.request("POST", "/tasks", {"name": "No key / here", "message": "m"})
    before = {task["name"]: normal.of_answer(task) for task in tasks(client)}
    written = entries(list(tasks(client, "shop")), "shop")
    assert [entry.body["key"] for entry in entries(list(tasks(client)))] == ["a", "b: c", "c", "no-key-here"]
    everything = entries(list(tasks(client)))
    assert "no key" in everything[3].comments[0]
    assert to_yaml(everything).index("# The task") < to_yaml(everything).index("no-key-here")

    for text in (to_yaml(written, label="shop", head=["Tasks."]), to_json(written, label="shop")):
        monkeypatch.setattr(_runtime, "api", partial(lambda empty: empty, World()))
        result = apply(client, plan(client, parse([("t.yaml", text)])))
        assert len(result.done) == 3 and not result.failed, text
        after = {task["name"]: normal.of_answer(task) for task in tasks(client)}
        assert after == {name: task for name, task in before.items() if task["key"]}, text


# What a file may say of a task; each field in the forms that mean the same and in others.
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
        {"ordering_key": "k", "on_failure": "block"},
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
                groups="[administrators]",
            )
            assume(not apply(client, planned(client, first, label=None)).failed)
            (change,) = planned(client, second, label=None).changes
            try:
                data = client.request("PUT", "/tasks/by-key/k", second)
            except InvalidRequest:
                reject()  # rules between fields that only the server knows, such as call-backs by type
            assert data["outcome"] == ("updated" if change.action is Action.CHANGE else "unchanged"), change.fields
            (after,) = planned(client, second, label=None).changes
            assert after.action is Action.KEEP, after.fields
            (again,) = planned(client, entries([data])[0].body, label=None).changes
            assert again.action is Action.KEEP, again.fields


@pytest.mark.hypothesis
@given(
    bodies(),
    st.sampled_from(["key", "name", "payload", "schedule", "tags", "retry", "nmae", "message", "type", "max_attempts", "on_failure"]),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 2000),
        st.floats(-1, 1),
        st.text(max_size=3),
        st.just({}),
        st.just(["a"]),
        st.just("a/b"),
        st.just({"url": 1}),
    ),
)
def test_a_file_is_refused_exactly_if_its_schema_refuses_it(body: dict[str, Any], field: str, value: Any) -> None:
    file = {"tasks": [{**body, field: value}]}
    assert bool(schema.broken(file)) is not VALIDATOR.is_valid(file), schema.broken(file)


VALIDATOR = jsonschema_rs.validator_for(dict(schema.whole()), validate_formats=False)
