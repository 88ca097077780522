"""Operations on many jobs or tasks over HTTP."""

from typing import Any

import pytest

from lambdas.rest import operation_models, shapes
from scheduler.model import ids, lifecycle
from scheduler.model.instants import render
from scheduler.model.job import JobKey, TaskKey
from tests.lambdas.gateway import NOW, Answered, World, send, work_off

TASK = {"name": "report", "message": "m", "schedule": {"rate": "1 hours"}}
STARTS = ("/jobs/cancel", "/tasks/pause", "/tasks/resume", "/tasks/delete")


def post(world: World, count: int, **fields: Any) -> list[JobKey]:
    """Jobs a second apart, an hour from now."""
    made = [
        send("POST", "/jobs", json_body={"message": "m", "execute_at": render(NOW + 3_600_000 + n * 1_000)} | fields) for n in range(count)
    ]
    return [JobKey("sub-ann", each.data["id"]) for each in made]


def shown(answered: Answered) -> Any:
    """The operation in an answer, which must have the documented shape."""
    shapes.Answer[operation_models.OperationShape].model_validate(answered.body)
    return answered.data


def open_jobs(world: World, jobs: list[JobKey]) -> int:
    return sum(lifecycle.is_open(world.jobs.get(key)) for key in jobs)


def test_jobs_are_cancelled_with_progress(world: World) -> None:
    jobs, others = post(world, 5, tags=["a"]), post(world, 2)
    body = {"tag": "a", "status": "scheduled", "from": render(NOW), "rate": 1_000, "limit": 4}
    answered = send("POST", "/jobs/cancel", json_body=body)
    made = shown(answered)
    assert (answered.status, answered.headers["Location"]) == (202, f"/api/v1/operations/{made['id']}")
    assert (made["action"], made["status"], made["matched"], made["rate"], made["limit"]) == ("cancel_jobs", "running", 0, 1_000, 4)
    nothing = {"type": None, "task": None, "lane": None, "name": None, "calendar": None, "fingerprint": None, "to": None}
    assert made["filter"] == nothing | {"tag": ["a"], "status": ["scheduled"], "from": render(NOW)}
    work_off(world)
    done = shown(send("GET", f"/operations/{made['id']}"))
    assert (done["status"], done["matched"], done["done"], done["skipped"], done["failed"]) == ("done", 4, 4, 0, 0)
    assert done["ended_at"] is not None and (open_jobs(world, jobs), open_jobs(world, others)) == (1, 2)
    assert send("POST", f"/operations/{made['id']}/abort").status == 409


def test_tasks_are_paused_resumed_and_deleted(world: World) -> None:
    keys = [TaskKey("sub-ann", send("POST", "/tasks", json_body=TASK | {"tags": ["a"]}).data["id"]) for _ in range(3)]
    for verb, body in (
        ("pause", {"name": "REP", "reason": "holidays"}),
        ("resume", {"all": True}),
        ("delete", {"tag": ["a"], "status": ["active"]}),
    ):
        made = shown(send("POST", f"/tasks/{verb}", json_body=body))
        work_off(world)
        assert shown(send("GET", f"/operations/{made['id']}"))["done"] == 3
        stored = [world.tasks.get(key) for key in keys]
        assert [task and task.inactive_reason for task in stored] == ["holidays" if verb == "pause" else None] * 3
    assert stored == [None] * 3


def test_a_dry_run_counts_and_changes_nothing(world: World) -> None:
    jobs = post(world, 3)
    answered = send("POST", "/jobs/cancel", json_body={"all": True, "dry_run": True})
    shapes.Answer[operation_models.EstimateShape].model_validate(answered.body)
    assert (answered.status, answered.data["action"], answered.data["matched"], answered.data["complete"]) == (200, "cancel_jobs", 3, True)
    work_off(world)
    assert open_jobs(world, jobs) == 3 and send("GET", "/operations").data["items"] == []


@pytest.mark.parametrize("path", STARTS)
@pytest.mark.parametrize("body", [{}, {"rate": 5, "limit": 9}, {"all": False}, {"tag": []}])
def test_an_empty_filter_is_refused_unless_all_is_true(world: World, path: str, body: dict[str, Any]) -> None:
    answered = send("POST", path, json_body=body)
    assert answered.status == 400 and list(answered.fields) == ["all"] and world.operations.running() == []
    assert send("POST", path, json_body={"all": True} | {name: value for name, value in body.items() if name != "all"}).status == 202


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/jobs/cancel", {"type": "log", "rate": 0}, "rate"),
        ("/jobs/cancel", {"type": "log", "rate": 1_001}, "rate"),
        ("/jobs/cancel", {"type": "log", "limit": 0}, "limit"),
        ("/jobs/cancel", {"type": "log", "all": True}, "all"),
        ("/tasks/delete", {"status": ["active"], "all": True}, "all"),
        ("/jobs/cancel", {"task": "x"}, "task"),
        ("/jobs/cancel", {"tag": "not a tag"}, "tag.0"),
        ("/jobs/cancel", {"tag": ["a", "a"]}, "tag"),
        ("/jobs/cancel", {"status": "succeeded"}, "status.0"),
        ("/jobs/cancel", {"lane": "fast"}, "lane"),
        ("/jobs/cancel", {"from": "yesterday"}, "from"),
        ("/jobs/cancel", {"from": render(NOW), "to": render(NOW)}, "to"),
        ("/jobs/cancel", {"type": "log", "colour": "red"}, "colour"),
        ("/jobs/cancel", {"type": "log", "name": "n"}, "name"),
        ("/tasks/pause", {"name": "n", "rate": 101}, "rate"),
        ("/tasks/pause", {"name": "n", "reason": ""}, "reason"),
        ("/tasks/pause", {"status": ["active"]}, "status"),
        ("/tasks/resume", {"name": ""}, "name"),
        ("/tasks/delete", {"status": "failed"}, "status.0"),
        ("/tasks/delete", {"type": "log", "dry_run": 1}, "dry_run"),
    ],
)
def test_invalid_requests_are_refused_field_by_field(world: World, path: str, body: dict[str, Any], field: str) -> None:
    answered = send("POST", path, json_body=body)
    assert answered.status == 400 and field in answered.fields
    assert world.operations.running() == []


def test_a_sixth_operation_is_refused(world: World) -> None:
    for path in (*STARTS, "/dead-letters/redrive"):
        assert send("POST", path, json_body={"type": "log"}).status == 202
    assert send("POST", "/tasks/pause", json_body={"type": "log"}).status == 409


def test_aborting_twice_succeeds_and_nothing_is_changed(world: World) -> None:
    jobs = post(world, 3)
    made = shown(send("POST", "/jobs/cancel", json_body={"all": True}))
    for _ in range(2):
        assert shown(send("POST", f"/operations/{made['id']}/abort"))["status"] == "aborted"
    work_off(world)
    assert open_jobs(world, jobs) == 3


@pytest.mark.parametrize(("method", "end"), [("GET", ""), ("POST", "/abort")])
def test_an_unknown_or_another_users_operation_is_not_found(world: World, method: str, end: str) -> None:
    made = shown(send("POST", "/jobs/cancel", json_body={"all": True}))
    assert send(method, f"/operations/{made['id']}{end}", user="sub-eve").status == 404
    assert send(method, f"/operations/nonsense{end}").status == 404
    assert send(method, f"/dead-letters/redrives/{made['id']}{end}").status == 404


def test_operations_are_listed_with_redrives_by_pages(world: World) -> None:
    ended = [shown(send("POST", "/jobs/cancel", json_body={"all": True}))["id"] for _ in range(3)]
    for each in ended:
        send("POST", f"/operations/{each}/abort")
    redrive = send("POST", "/dead-letters/redrive", json_body={"type": "log"}).data["id"]
    answered = send("GET", "/operations", query={"limit": "2"})
    shapes.Answer[operation_models.OperationsShape].model_validate(answered.body)
    first = answered.data
    rest = send("GET", "/operations", query={"limit": "2", "cursor": first["cursor"]}).data
    newest = sorted(ended, reverse=True)
    assert [each["id"] for each in first["items"]] == [redrive, *newest[:2]] and first["items"][0]["action"] == "redrive"
    assert [each["id"] for each in rest["items"]] == newest[2:] and rest["cursor"] is None
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert send("GET", "/operations", user="sub-eve").data["items"] == []
    assert send("GET", "/operations", query={"colour": "red"}).status == 400 == send("GET", "/operations", query={"cursor": "x"}).status


def test_start_and_abort_are_in_the_audit_trail(world: World) -> None:
    made = shown(send("POST", "/tasks/delete", json_body={"name": "report", "limit": 3}))
    send("POST", f"/operations/{made['id']}/abort")
    entries = send("GET", "/me/audit", query={"action": "operation"}).data["items"]
    assert {(entry["action"], entry["object"], entry["status"]) for entry in entries} == {
        ("operation.delete_tasks", made["id"], 202),
        ("operation.abort", made["id"], 200),
    }
    assert {"name": "report", "limit": 3} in [entry["changes"] for entry in entries]


def test_an_administrator_cancels_for_another_user(world: World) -> None:
    jobs = post(world, 2)
    made = send("POST", "/jobs/cancel", json_body={"all": True}, user="sub-ada", role="administrator", query={"owner": "sub-ann"})
    assert made.status == 202
    work_off(world)
    assert open_jobs(world, jobs) == 0
    assert shown(send("GET", f"/operations/{made.data['id']}"))["done"] == 2


def test_words_of_the_new_routes_are_no_ids() -> None:
    """`/tasks/pause` and `/jobs/cancel` share their places with ids."""
    assert not any(ids.is_job_id(word) for word in ("pause", "resume", "delete", "cancel"))
