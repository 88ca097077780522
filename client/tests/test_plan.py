"""Files of tasks: what is read and refused, with its line; what a plan does, and what is left when it stops."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_api import answer, refusal

from punctual import NotAuthenticated, Punctual, Throttled, UnexpectedAnswer
from punctual.plan import Action, BadFile, Document, Plan, apply, changes, entries, parse, plan, read, schema, to_yaml


def file(*lines: str) -> Document:
    return parse([("tasks.yaml", "\n".join(lines))])


def problems(*lines: str) -> list[str]:
    with pytest.raises(BadFile) as refused:
        file(*lines)
    assert str(refused.value) == "\n".join(map(str, refused.value.problems))
    return [str(each) for each in refused.value.problems]


def task(*lines: str, key: str = "a") -> tuple[str, ...]:
    return ("tasks:", f"- key: {key}", "  name: A", *(f"  {line}" for line in (lines or ("message: m",))))


# Reading


def test_a_task_is_the_body_of_a_request_with_the_label_as_a_tag() -> None:
    document = file("label: shop", *task("message: m", "tags: [x]", "schedule: {cron: 30 2 * * *, time_zone: Europe/Berlin}"))
    (item,) = document.items
    assert document.labels == ("shop",) and item.key == "a"
    schedule = {"cron": "30 2 * * *", "time_zone": "Europe/Berlin"}
    assert item.body == {"key": "a", "name": "A", "message": "m", "tags": ["x", "managed:shop"], "schedule": schedule}


def test_anchors_and_merge_keys_work() -> None:
    document = file(
        "x-nightly: &nightly",
        "  max_attempts: 5",
        "  schedule: {cron: '0 2 * * *'}",
        "x-loud: &loud {max_attempts: 9, events: true}",
        "tasks:",
        "- {key: a, name: A, message: m, <<: *nightly}",
        "- {<<: [*nightly, *loud], key: b, name: B, message: m, max_attempts: 7}",
    )
    first, second = (item.body for item in document.items)
    assert first["max_attempts"] == 5 and first["schedule"] == second["schedule"] == {"cron": "0 2 * * *"}
    assert second["max_attempts"] == 7 and second["events"] is True


def test_a_field_of_a_merged_mapping_is_refused_where_it_stands() -> None:
    found = problems("x-a: &a", "  attempts: 99", "tasks:", "- {key: a, name: A, message: m, <<: *a}")
    assert found == ["tasks.yaml:2: tasks[0].attempts: there is no such field; did you mean max_attempts?"]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("shedule: {cron: '0 0 * * *'}", "tasks[0].shedule: there is no such field; did you mean schedule?"),
        ("cron: '0 0 * * *'", "tasks[0].cron: there is no such field; it is a field of schedule"),
        ("late_after_seconds: 60", "tasks[0].late_after_seconds: there is no such field; it is a field of alerts"),
        ("http: 'https://example.com'", "tasks[0].http: there is no such field; write type: http, and its payload"),
        ("url: 'https://example.com'", "tasks[0].url: there is no such field; it is a field of payload"),
        ("queue: 'arn:aws:sqs:eu-central-1:123456789012:q'", "tasks[0].queue: there is no such field; it is a field of payload"),
        ("concurrency: 2", "tasks[0].concurrency: there is no such field; it is a field of limit"),
        ("emails: [a@example.com]", "tasks[0].emails: there is no such field; it is a field of notifications"),
        ("status: inactive", "tasks[0].status: there is no such field"),
        ("tags: [managed:x]", "tasks[0].tags[0]: tags that begin with managed: are labels: use the field `label` of the file"),
        ("events: yes", 'tasks[0].events: yes is a truth value for some readers of YAML and text for others: write true, or "yes"'),
        ("description: 10:01", 'tasks[0].description: 10:01 is a number for some readers of YAML and text for others: write "10:01"'),
        ("description: 0123", "tasks[0].description: 0123 is a number for some"),
        ("description: !Ref x", "tasks[0].description: the tag !Ref is not known here: leave it out"),
        ("name: B", "tasks[0].name: is given twice; first in line 3"),
        ("schedule: {cron: * * * * *}", "is not valid YAML: "),
        ("description: &a [*a]", "tasks[0].description[0]: an alias stands within its own anchor"),
        ("{{x}}: y", "tasks[0]: the name of a field must be text"),
        ("<<: 5", "tasks[0]: `<<` takes an alias of a mapping"),
    ],
)
def test_a_bad_field_is_refused_with_file_line_and_rule(line: str, rule: str) -> None:
    (found, *_) = problems(*task("message: m", line))
    assert found.startswith(f"tasks.yaml:5: {rule}")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("cron: */5 * * * *", 'text that begins with * needs quotes: cron: "*/5 * * * *"'),
        ("cron: @daily", 'text that begins with @ needs quotes: cron: "@daily"'),
        ("message: {{scheduled_at}} a", "text that begins with {{ needs quotes: message: '{{scheduled_at}} a'"),
        ("description: now: later", 'text with ": " in it needs quotes, or the indentation is wrong'),
        ("description: *other", "found undefined alias 'other': define it first with &, or put text that begins with * into quotes"),
        ("\tdescription: x", "a line is indented by a tab: use spaces"),
    ],
)
def test_the_usual_traps_of_yaml_are_named(line: str, hint: str) -> None:
    (found,) = problems(*task("message: m", line))
    assert found == f"tasks.yaml:5: is not valid YAML: {hint}"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "1: is empty: it needs a list `tasks`"),
        ("- key: a", "1: is a list: write `tasks:` in the first line and the list below it"),
        ("tasks: []\n---\ntasks: []", "2: is not valid YAML: it has more than one document: use one `tasks:` list, or several files"),
        ("tasks: [{name: A, message: m}]", "1: tasks[0]: key is missing"),
        ("tasks: [{key: .., name: A, message: m}]", "1: tasks[0].key: must be text, neither empty nor . or .."),
        ("tasks: [{key: 5, name: A, message: m}]", "1: tasks[0].key: must be text"),
        ("tasks: [5]", "1: tasks[0]: must be a mapping: a task with its fields"),
        ("tasks: {}", "1: tasks: must be a list"),
        ("tasks", "1: is no mapping: it needs a list `tasks`"),
        ("tasks: []\nlabel: [a]", "2: label: must be 1 to 24 letters, digits"),
        ("label: a b\ntasks: []", "1: label: must be 1 to 24 letters, digits"),
        ("tasks: \x07", "1: has a character that YAML does not allow"),
        ("task: []", "1: tasks is missing"),
        ("x-a: 1\ntask: []", "1: tasks is missing"),
        ("tasks: []\ntaks: []", "2: taks: there is no such field; did you mean tasks?"),
    ],
)
def test_a_file_of_another_form_is_refused(text: str, rule: str) -> None:
    assert problems(text)[0].startswith(f"tasks.yaml:{rule}")


@pytest.mark.long
def test_aliases_of_aliases_end_at_a_bound() -> None:
    lines = ["x-a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"x-{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in zip("abcdef", "bcdefg", strict=True)]
    assert "the file has too many values, by aliases of aliases" in problems(*lines, "tasks: []")[0]


def test_keys_are_unique_over_all_files_and_both_lines_are_named() -> None:
    with pytest.raises(BadFile) as refused:
        parse([("one.yaml", "\n".join(task())), ("two.yaml", "\n\n" + "\n".join(task()))])
    assert str(refused.value) == "two.yaml:4: tasks[0].key: a is given twice; first at one.yaml:2"


def test_a_label_of_the_command_is_that_of_files_without_one() -> None:
    text = "\n".join(task())
    assert parse([("t", text)], label="shop").labels == ("shop",)
    with pytest.raises(BadFile, match="label: is not the label that was requested: shop"):
        parse([("t", "label: other\n" + text)], label="shop")
    (item,) = parse([("t", "\n".join(task("message: m", "tags: a")))], label="shop").items
    assert item.body["tags"] == "a"  # the API refuses it


def test_folders_are_read_with_all_their_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for number, name in enumerate(["b.yaml", "deep/a.yml", "c.json", ".hidden.yaml", "notes.txt"]):
        (tmp_path / name).write_text(f'{{"tasks": [{{"key": "{number}", "name": "A", "message": "m"}}]}}')
    assert sorted(item.key for item in read([tmp_path]).items) == ["0", "1", "2"]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\xfd")
    for path, rule in ((tmp_path / "none.yaml", "cannot be read: No such file"), (tmp_path / "bad.yaml", "is not UTF-8 text")):
        with pytest.raises(BadFile, match=rule):
            read([path])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadFile, match=r"the folder has no \.yaml"):
        read([tmp_path / "empty"])


def test_the_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.read", lambda: "\n".join(task()))
    assert [item.file for item in read(["-"]).items] == ["-"]


# Plans


class FakeTasks:
    """An API with the tasks of one user, without defaults; `refuse` has what it answers to a write of a key."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}
        self.refuse: dict[str, httpx.Response] = {}
        self.calls: list[str] = []
        self._lock = threading.Lock()

    def put(self, key: str | None, body: dict[str, Any]) -> dict[str, Any]:
        task = self.would_put(key, body)
        self.tasks[task["id"]] = task | {"generation": task["generation"] + 1}
        return self.tasks[task["id"]]

    def would_put(self, key: str | None, body: dict[str, Any]) -> dict[str, Any]:
        found = self.find(key)
        content = {"type": "log", "payload": {"message": body["message"]}} if "message" in body else {"type": "http", "payload": {}}
        fields = (
            {"tags": [], "schedule": None, "inactive_at": None, "defaults": [] if body.get("tags") else ["tags"]}
            | content
            | {n: v for n, v in body.items() if n != "message"}
        )
        return fields | {
            "id": found["id"] if found else f"id-{len(self.tasks)}",
            "key": key,
            "generation": (found or fields).get("generation", 0),
        }

    def find(self, key: str | None) -> dict[str, Any] | None:
        return next((each for each in self.tasks.values() if key and each["key"] == key), None)

    def dry_run(self, key: str, body: dict[str, Any]) -> httpx.Response:
        after, before = self.would_put(key, body), self.find(key)
        if (body.get("schedule") or {}).get("cron") == "0 0 30 2 *":
            return refusal(400, "validation_failed", "bad", [{"field": "schedule.cron", "rule": "the date never comes"}])
        names = [n for n in dict.fromkeys((*(before or ()), *after)) if before is not None and before.get(n) != after.get(n)]
        changes = [{"field": n, "before": before.get(n), "after": after.get(n)} for n in names] if before is not None else []
        runs = [{"nominal": "2026-11-21T01:30:00Z", "local_at": "2026-11-21T02:30:00+01:00"}] if after["schedule"] else []
        outcome = "created" if before is None else "updated" if changes else "unchanged"
        return answer(after | {"outcome": outcome, "changes": changes, "next_runs": runs})

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1")
        with self._lock:
            key = path.removeprefix("/tasks/by-key/")
            is_dry = request.url.params.get("dry_run") == "true"
            self.calls.append(f"{'DRY' if is_dry else request.method} {path}")
            found = self.find(key)
            if path == "/tasks":
                tag = request.url.params.get("tag")
                return answer({"items": [each for each in self.tasks.values() if not tag or tag in each["tags"]], "cursor": None})
            if request.method == "DELETE":
                gone = self.tasks.pop(path.removeprefix("/tasks/"), None)
                return answer({"id": "x"}) if gone else refusal(404)
            assert request.method == "PUT"
            body = json.loads(request.content)
            if is_dry:
                return self.dry_run(key, body)
            if key in self.refuse:
                return self.refuse[key]
            if found and body.pop("generation", found["generation"]) != found["generation"]:
                return refusal(409, "conflict", "the task was changed meanwhile")
            return answer(self.put(key, body))


@pytest.fixture
def api() -> FakeTasks:
    return FakeTasks()


@pytest.fixture
def client(api: FakeTasks) -> Any:
    with Punctual("https://x.test", token="t", transport=httpx.MockTransport(api), max_retries=0) as made:
        yield made


def many(count: int, **fields: Any) -> Document:
    items = [{"key": f"k{number}", "name": "N", "message": "m", **fields} for number in range(count)]
    return parse([("tasks.yaml", json.dumps({"label": "shop", "tasks": items}))])


def actions(made: Plan) -> list[str]:
    return [f"{change.action.value} {change.key}" for change in made.changes]


def test_a_plan_changes_nothing_and_applies_once(api: FakeTasks, client: Punctual) -> None:
    todo = plan(client, many(3))
    assert actions(todo) == ["create k0", "create k1", "create k2"] and not api.tasks
    seen: list[str | None] = []
    result = apply(client, todo, progress=lambda change: seen.append(change.key))
    assert sorted(map(str, seen)) == ["k0", "k1", "k2"] and [change.key for change in result.done] == ["k0", "k1", "k2"]
    assert plan(client, many(3)).to_do == () and result.count(Action.CREATE) == 3


def test_tasks_that_are_stored_as_the_file_has_them_need_no_request_each(api: FakeTasks, client: Punctual) -> None:
    labelled = many(20, schedule={"cron": "0 2 * * *"})
    free = parse([("t.json", json.dumps({"tasks": [{"key": f"f{number}", "name": "F", "message": "m"} for number in range(9)]}))])
    for document in (labelled, free):
        apply(client, plan(client, document))
        api.calls.clear()
        assert plan(client, document).to_do == () and api.calls == ["GET /tasks"]
    api.put("k4", {"name": "other", "message": "m", "tags": ["managed:shop"]})
    api.calls.clear()
    seen: list[int] = []
    assert [change.key for change in plan(client, labelled, progress=seen.append).to_do] == ["k4"]
    assert api.calls == ["GET /tasks", "DRY /tasks/by-key/k4"] and seen == list(range(1, 21))


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"max_attempts": 3, "retry": {"cap_seconds": 60}, "events": False}, False),
        ({"retry": {"cap_seconds": 60, "jitter": "full"}}, False),
        ({"retry": {"cap_seconds": 900}}, True),
        ({}, True),
        ({"retry": {"cap_seconds": 60}, "max_attempts": 4}, True),
        ({"retry": {"cap_seconds": 60}, "max_attempts": 3.0}, True),
        ({"retry": {"cap_seconds": 60}, "paused": True}, True),
        ({"retry": {"cap_seconds": 60}, "tags": ["a"]}, True),
    ],
)
def test_a_field_that_is_absent_is_the_default_that_the_api_names(
    api: FakeTasks, client: Punctual, fields: dict[str, Any], asked: bool
) -> None:
    stored = api.put("k0", {"name": "N", "message": "m", "tags": ["managed:shop"]})
    stored |= {"max_attempts": 3, "retry": {"cap_seconds": 60, "jitter": "full"}, "events": False}
    stored |= {"defaults": ["max_attempts", "retry.jitter", "events"]}
    plan(client, many(1, **fields))
    assert ("DRY /tasks/by-key/k0" in api.calls) is asked


def test_a_change_names_each_field_before_and_after(client: Punctual) -> None:
    apply(client, plan(client, many(1, schedule={"cron": "0 2 * * *"}, description="d")))
    (change,) = plan(client, many(1, schedule={"cron": "0 3 * * *"})).changes
    assert {each.field: (each.before, each.after) for each in change.fields} == {
        "description": ("d", None),
        "schedule": ({"cron": "0 2 * * *"}, {"cron": "0 3 * * *"}),
    }
    assert change.next_run == "2026-11-21T02:30:00+01:00"
    (renamed,) = plan(client, many(1, schedule={"cron": "0 2 * * *"}, description="other")).changes
    assert [each.field for each in renamed.fields] == ["description"] and renamed.next_run is None


def test_prune_deletes_what_left_the_file_and_carries_its_label(api: FakeTasks, client: Punctual) -> None:
    apply(client, plan(client, many(3)), workers=1)  # in their order
    api.put("free", {"name": "F", "message": "m"})
    api.put("other", {"name": "O", "message": "m", "tags": ["managed:other"]})
    assert plan(client, many(1)).to_do == ()
    todo = plan(client, many(1), prune=True)
    assert actions(todo) == ["unchanged k0", "delete k1", "delete k2"]
    del api.tasks["id-1"]  # another client deletes it in that time
    assert apply(client, todo).count(Action.DELETE) == 2
    assert [each["key"] for each in api.tasks.values()] == ["k0", "free", "other"]


@pytest.mark.parametrize(
    ("stored", "kept", "excess"), [(1, 0, "1 of the 1"), (3, 1, "2 of the 3"), (4, 0, "4 of the 4"), (2, 1, ""), (4, 2, "")]
)
def test_a_plan_names_a_label_that_loses_more_than_half(client: Punctual, stored: int, kept: int, excess: str) -> None:
    apply(client, plan(client, many(stored)))
    assert plan(client, many(kept)).excess == ()
    found = plan(client, many(kept), prune=True).excess
    assert [str(each) for each in found] == ([f"{excess} tasks with the label shop"] if excess else [])


@pytest.mark.parametrize(
    ("number", "rule"),
    [
        ("9" * 4_301, "is a number that is too large: 99999999999999999999…; put it into quotes"),
        ("1e999", "is a number that is too large: 1e999; put it into quotes"),
        ("[" * 5_000, "is nested too deep"),
        ('"\\uD800"', "tasks.yaml:5: tasks[0].payload.n: is no text in UTF-8: it has half of a surrogate pair (\\ud800)"),
        ('1, "\\uDC00": 1', "tasks.yaml:5: tasks[0].payload: is no text in UTF-8: it has half of a surrogate pair (\\udc00)"),
    ],
)
def test_what_python_cannot_read_is_refused_with_its_line(number: str, rule: str) -> None:
    (found,) = problems(*task("type: own", f"payload: {{n: {number}}}"))
    assert found.endswith(rule)


def test_a_pair_of_escapes_of_json_is_one_character() -> None:
    (item,) = parse([("t.json", '{"tasks": [{"key": "a", "name": "\\ud83d\\ude00", "message": "m"}]}')]).items
    assert item.body["name"] == "😀"


def test_a_task_of_another_label_is_not_taken_over(api: FakeTasks, client: Punctual) -> None:
    api.put("k0", {"name": "O", "message": "m", "tags": ["managed:other"]})
    with pytest.raises(BadFile, match=r"tasks\.yaml:1: tasks\[0\]\.key: k0 belongs to another file: it has the tag managed:other"):
        plan(client, many(1))


def test_what_the_api_refuses_is_found_by_the_plan(api: FakeTasks, client: Punctual) -> None:
    lines = task("message: m", "schedule:", "  cron: 0 0 30 2 *")
    with pytest.raises(BadFile) as refused:
        plan(client, file(*lines, *task("message: n", "schedule: {cron: 0 0 30 2 *}", key="b")[1:], *task(key="c")[1:]))
    assert str(refused.value).splitlines() == [
        "tasks.yaml:6: tasks[0].schedule.cron: the date never comes",
        "tasks.yaml:10: tasks[1].schedule.cron: the date never comes",
    ]
    assert not api.tasks


def test_a_refused_request_without_a_field_is_a_problem_of_the_task(client: Punctual, monkeypatch: pytest.MonkeyPatch) -> None:
    for details in ([{"field": "body", "rule": "is bad"}], []):
        refused = refusal(413, "payload_too_large", "is bad", details)
        monkeypatch.setattr(FakeTasks, "dry_run", lambda api, key, body, refused=refused: refused)
        with pytest.raises(BadFile, match=r"^tasks\.yaml:2: tasks\[0\]: is bad$"):
            plan(client, file(*task()))


@pytest.mark.parametrize(
    "strange",
    [
        [],
        {"outcome": "created"},
        {"outcome": "updated", "changes": [5], "next_runs": []},
        {"outcome": "created", "changes": [], "next_runs": [5]},
    ],
)
def test_a_strange_answer_to_a_plan_is_an_error_of_this_package(client: Punctual, monkeypatch: pytest.MonkeyPatch, strange: Any) -> None:
    monkeypatch.setattr(FakeTasks, "dry_run", lambda api, key, body: answer(strange))
    with pytest.raises(UnexpectedAnswer):
        plan(client, file(*task()))


def test_a_throttled_request_waits_and_goes_on(api: FakeTasks, client: Punctual, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(changes, "sleep", slept.append)
    throttled = [httpx.Response(429, json={"message": "Too Many Requests"}) for _ in range(6)]
    work = FakeTasks.__call__

    def busy(self: FakeTasks, request: httpx.Request) -> httpx.Response:
        return throttled.pop() if throttled and request.method == "PUT" else work(self, request)

    monkeypatch.setattr(FakeTasks, "__call__", busy)
    todo = plan(client, many(3))
    assert todo.count(Action.CREATE) == 3 and len(slept) == 6 and all(0 < each < 2 for each in slept)
    throttled += [httpx.Response(429, json={"message": "Too Many Requests"})]
    assert len(apply(client, todo).done) == 3 and len(slept) == 7
    throttled += [httpx.Response(429, json={"message": "Too Many Requests"})] * (2 * changes.PATIENCE)
    with pytest.raises(Throttled):
        plan(client, many(1, description="d"))


def test_a_used_up_quota_is_no_reason_to_wait(api: FakeTasks, client: Punctual, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "sleep", lambda seconds: pytest.fail("it waits"))
    api.refuse["k0"] = refusal(429, "too_many_requests", "max_jobs: at most 7 jobs may be open")
    (failed,) = apply(client, plan(client, many(1))).failed
    assert "max_jobs" in str(failed)


def test_a_refused_task_stops_no_other_but_all_deletions(api: FakeTasks, client: Punctual) -> None:
    apply(client, plan(client, many(1)))
    document = file("label: shop", *task(), *task(key="b")[1:])
    api.refuse["a"] = refusal(400, "validation_failed", "bad", [{"field": "payload.message", "rule": "is bad"}])
    todo = plan(client, document, prune=True)
    result = apply(client, todo)
    assert [change.key for change in result.done] == ["b"]
    assert [str(each) for each in result.failed] == ["tasks.yaml:3: tasks[0].payload.message: is bad"]
    assert [change.key for change in result.left] == ["k0"] and "nothing is deleted" in result.reason
    del api.refuse["a"]
    again = plan(client, document, prune=True)
    assert actions(again) == ["create a", "unchanged b", "delete k0"]
    assert len(apply(client, again).done) == 2 and plan(client, document, prune=True).to_do == ()


def test_a_lost_sign_in_stops_and_the_rest_is_left(api: FakeTasks, client: Punctual) -> None:
    todo = plan(client, many(30))
    api.refuse["k0"] = refusal(401, "unauthorized", "The token has expired.")
    result = apply(client, todo, workers=1)
    assert not result.done and len(result.left) == 29 and result.reason.startswith("stopped: 401")
    (failed,) = result.failed
    assert isinstance(failed.error, NotAuthenticated) and str(failed) == "tasks.yaml:1: tasks[0]: The token has expired."


def test_a_task_that_was_changed_since_the_plan_is_not_overwritten(api: FakeTasks, client: Punctual) -> None:
    apply(client, plan(client, many(1)))
    todo = plan(client, many(1, description="mine"))
    api.put("k0", {"name": "N", "message": "theirs", "tags": ["managed:shop"]})
    result = apply(client, todo)
    assert "k0 was changed since the plan was made: run apply again" in str(result.failed[0])
    assert api.tasks["id-0"]["payload"] == {"message": "theirs"}


def test_a_repeated_change_whose_answer_was_lost_is_done(api: FakeTasks, client: Punctual) -> None:
    apply(client, plan(client, many(1)))
    todo = plan(client, many(1, description="mine"))
    api.put("k0", dict(todo.changes[0].item.body))  # type: ignore[union-attr]
    assert apply(client, todo).count(Action.CHANGE) == 1


def test_ctrl_c_leaves_what_has_not_begun(client: Punctual) -> None:
    def stop(change: object) -> None:
        raise KeyboardInterrupt

    todo = plan(client, many(30))
    result = apply(client, todo, workers=1, progress=stop)
    assert result.reason == "stopped by Ctrl-C" and result.left and len(result.done) + len(result.left) == 30
    assert not [change for change in plan(client, many(30)).to_do if change.key in {each.key for each in result.done}]


# Writing


def test_text_that_versions_of_yaml_read_differently_is_written_in_quotes() -> None:
    texts = [
        "on",
        "No",
        "10:01",
        "0123",
        "0o17",
        "1_000",
        "null",
        "true",
        "5",
        "1e3",
        "-.5",
        "~",
        "2026-12-01",
        "@daily",
        "*x",
        "a: b",
        " x",
        "a\nb\n",
        "é",
    ]
    made = [{"id": "1", "key": "k", "name": "n", "type": "http", "payload": {"url": "u", "body": texts}, "tags": [], "schedule": None}]
    document = parse([("t", to_yaml(entries(made), head=["Made", ""]))])
    assert document.items[0].body["payload"]["body"] == texts


def test_a_paused_task_and_one_without_a_key_are_written_with_a_comment() -> None:
    made = [
        {"id": str(number), "key": None, "name": "Über %/ no", "type": "log", "payload": {"message": "m"}, "inactive_at": "x"}
        for number in (1, 2)
    ]
    written = to_yaml(entries(made), label="shop")
    assert "label: shop" in written and "key: ber-no\n" in written and "key: ber-no-2\n" in written
    assert written.count("# It is paused.") == written.count("has no key; this one is proposed.") == 2
    assert to_yaml([]).endswith("tasks: []\n")


def test_the_schema_in_the_package_is_json_for_editors() -> None:
    assert '"$schema"' in schema.text() and schema.fields()[:3] == ("key", "name", "description")
