"""Files of tasks: what is read and refused, with its line; what a plan does, and what is left when it stops."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_api import answer, refusal

from punctual import NotAuthenticated, Punctual
from punctual.plan import Action, BadFile, Document, Plan, apply, changes, entries, normal, parse, plan, read, schema, to_yaml


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
    found = problems("x-a: &a", "  max_attempts: 99", "tasks:", "- {key: a, name: A, message: m, <<: *a}")
    assert found == ["tasks.yaml:2: tasks[0].max_attempts: must be at most 25"]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("schedule: {cron: 5, rate: 1 day}", "tasks[0].schedule.cron: must be text, not 5"),
        ("schedule: {}", "tasks[0].schedule: must have one of cron, rate and at"),
        ("schedule: {cron: '0 0 * * *', rate: 1 day}", "tasks[0].schedule: must have one of cron, rate and at; it has cron and rate"),
        ("schedule: {at: tomorrow}", "tasks[0].schedule.at: must be an instant with an offset, such as 2026-11-20T10:00:00Z or"),
        ("shedule: {cron: '0 0 * * *'}", "tasks[0].shedule: there is no such field; did you mean schedule?"),
        ("overlap: skipp", 'tasks[0].overlap: must be one of skip, queue_one, allow, cancel_running, not "skipp"; did you mean skip?'),
        ("misfire: skip", "tasks[0].misfire: goes with a cron or a rate: only recurring tasks have misfires"),
        ("on_failure: pause", "tasks[0].on_failure: goes with an ordering_key"),
        ("type: http", "tasks[0].type: goes without message, which is short for type log"),
        ("notifications: {on: [failure]}", "tasks[0].notifications: give emails, webhooks or both"),
        ("tags: [a, a]", "tasks[0].tags[1]: names a twice"),
        ("tags: [a b]", "tasks[0].tags[0]: must be 1 to 32 letters, digits or any of - _ . : /"),
        ("tags: [managed:x]", "tasks[0].tags[0]: tags that begin with managed: are labels: use the field `label` of the file"),
        ("max_attempts: many", 'tasks[0].max_attempts: must be a whole number, not "many"'),
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
        ("tasks: [{key: a/b, name: A, message: m}]", "1: tasks[0].key: must be 1 to 255 printable characters"),
        ("tasks: [{key: a, name: A}]", "1: tasks[0]: give one of message, type, target"),
        ("tasks: \x07", "1: has a character that YAML does not allow"),
        ("task: []", "1: tasks is missing"),
    ],
)
def test_a_file_of_another_form_is_refused(text: str, rule: str) -> None:
    assert problems(text)[0].startswith(f"tasks.yaml:{rule}")


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
    ten = "\n".join(task("message: m", f"tags: [{', '.join('abcdefghij')}]"))
    with pytest.raises(BadFile, match="may have nine tags at most"):
        parse([("t", ten)], label="shop")


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
    """An API with the tasks of one user; `refuse` has what it answers to a write of a key."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}
        self.refuse: dict[str, httpx.Response] = {}
        self.calls: list[str] = []
        self._lock = threading.Lock()

    def put(self, key: str | None, body: dict[str, Any]) -> dict[str, Any]:
        id = next((id for id, each in self.tasks.items() if key and each["key"] == key), f"id-{len(self.tasks)}")
        full = normal.of_request(body)
        if full["schedule"] and "rate" in full["schedule"]:
            full["schedule"].setdefault("start", "2026-11-20T10:00:00.000Z")
        generation = self.tasks.get(id, {}).get("generation", 0) + 1
        self.tasks[id] = {**full, "id": id, "key": key, "type": full["type"] or "http", "generation": generation, "inactive_at": None}
        return self.tasks[id]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        import json

        path = request.url.path.removeprefix("/api/v1")
        with self._lock:
            self.calls.append(f"{request.method} {path}")
            key = path.removeprefix("/tasks/by-key/")
            found = next((each for each in self.tasks.values() if each["key"] == key), None)
            if path == "/schedules/preview":
                form = json.loads(request.content)
                if form.get("cron") == "0 0 30 2 *":
                    return refusal(400, "validation_failed", "cron: bad", [{"field": "cron", "rule": "the date never comes"}])
                return answer({"runs": [{"local_at": "2026-11-21T02:30:00+01:00", "at": "2026-11-21T01:30:00.000Z"}]})
            if path == "/types":
                types = [{"type": "log", "target": None}, {"type": "http", "target": "hook"}]
                return answer({"items": [{"description": "", "payload_schema": {}, **each} for each in types], "cursor": None})
            if path == "/tasks":
                tag = request.url.params.get("tag")
                return answer({"items": [each for each in self.tasks.values() if not tag or tag in each["tags"]], "cursor": None})
            if request.method == "DELETE":
                gone = self.tasks.pop(path.removeprefix("/tasks/"), None)
                return answer({"id": "x"}) if gone else refusal(404)
            if request.method == "PUT":
                if key in self.refuse:
                    return self.refuse[key]
                body = json.loads(request.content)
                if found and body.get("generation") not in (None, found["generation"]):
                    return refusal(409, "conflict", "the task was changed meanwhile")
                return answer(self.put(key, body))
            return answer(found) if found else refusal(404, "not_found", "no task has this key")


@pytest.fixture
def api() -> FakeTasks:
    return FakeTasks()


@pytest.fixture
def client(api: FakeTasks) -> Any:
    with Punctual("https://x.test", token="t", transport=httpx.MockTransport(api), max_retries=0) as made:
        yield made


def many(count: int, **fields: Any) -> Document:
    import json

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


def test_many_tasks_are_found_in_pages_and_not_one_by_one(api: FakeTasks, client: Punctual, monkeypatch: pytest.MonkeyPatch) -> None:
    api.put("k3", {"name": "N", "message": "m", "tags": ["managed:shop"]})
    api.put("k4", {"name": "N", "message": "m"})
    assert [change.key for change in plan(client, many(20)).to_do if change.action is Action.CHANGE] == ["k4"]
    assert [call for call in api.calls if "by-key" in call] == []
    for number in range(20):
        api.put(f"other {number}", {"name": "O", "message": "m"})
    monkeypatch.setattr(changes, "PAGE", 2)
    assert plan(client, many(20)).count(Action.CREATE) == 18
    assert len([call for call in api.calls if "by-key" in call]) == 18


def test_a_change_names_each_field_before_and_after(client: Punctual) -> None:
    apply(client, plan(client, many(1, schedule={"cron": "0 2 * * *"}, description="d")))
    (change,) = plan(client, many(1, schedule={"cron": "0 3 * * *", "time_zone": "Europe/Berlin"}, retry={"cap_seconds": 60})).changes
    assert [(each.field, each.old, each.new) for each in change.fields] == [
        ("description", "d", None),
        ("schedule.cron", "0 2 * * *", "0 3 * * *"),
        ("schedule.time_zone", None, "Europe/Berlin"),
        ("retry.cap_seconds", 900, 60),
    ]
    assert change.next_run == "2026-11-21T02:30:00+01:00"


def test_a_rate_keeps_its_beat_when_another_field_changes(api: FakeTasks, client: Punctual) -> None:
    apply(client, plan(client, many(1, schedule={"rate": "5 minutes", "start": "2026-01-01T00:00:00Z"})))
    todo = plan(client, many(1, schedule={"rate": "300 seconds", "jitter_seconds": 9}))
    assert [each.field for each in todo.changes[0].fields] == ["schedule.jitter_seconds"]
    apply(client, todo)
    assert api.tasks["id-0"]["schedule"]["start"] == "2026-01-01T00:00:00.000Z"


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


def test_what_the_server_refuses_is_found_by_the_plan(client: Punctual) -> None:
    lines = task("target: hok", "schedule:", "  cron: 0 0 30 2 *")
    with pytest.raises(BadFile) as refused:
        plan(client, file(*lines))
    assert str(refused.value) == "tasks.yaml:4: tasks[0].target: there is no such target that is enabled: hok; did you mean hook?"
    with pytest.raises(BadFile) as refused:
        plan(client, file(*lines[:3], "  target: hook", *lines[4:]))
    assert str(refused.value) == "tasks.yaml:6: tasks[0].schedule.cron: the date never comes"


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
    assert '"$schema"' in schema.text() and schema.types()[0] == "email"
