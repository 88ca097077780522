"""Lists over HTTP: one shape for all, several values of a filter, unknown parameters; and the clear names of routes."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from docs_build.expanded import expanded
from lab.world.gateway import event
from lambdas import api
from lambdas.rest import door
from scheduler.model import attempt_output, lifecycle
from scheduler.model.instants import render
from scheduler.model.job import Claim, Failure, FailureKind, Job, Result
from tests.conftest import a_job
from tests.lambdas.gateway import NOW, World, send
from tests.unit.stage import Wrapped, refuse

pytestmark = pytest.mark.usefixtures("world")

ADMIN = {"role": "administrator"}
LISTS = (
    "/jobs",
    "/tasks",
    "/dead-letters",
    "/types",
    "/types/aws/actions",
    "/targets",
    "/users",
    "/audit",
    "/me/audit",
    "/system/breakers",
    "/operations",
)
DONE = Result("o")
FAILED = Result(failure=Failure(FailureKind.PERMANENT, "m"))


def ended(world: World, end: Any = lifecycle.succeed, result: Result = DONE, **fields: Any) -> Job:
    job = a_job(owner="sub-ann", due_at=NOW - 9_000, created_at=NOW - 9_000, claim=Claim("m", "n", NOW - 9_000, True), **fields)
    job = end(job, NOW - 1_000, started_at=NOW - 5_000, result=result)
    world.jobs.put(job)
    return job


@pytest.mark.parametrize("path", LISTS)
def test_every_list_has_one_shape(path: str) -> None:
    found = send("GET", path, query={"limit": "1"}, **ADMIN).data
    assert len(found["items"]) <= 1 and [name for name, value in found.items() if isinstance(value, list)] == ["items"]
    assert found["has_more"] is (found["cursor"] is not None)


def test_one_pager_reads_every_list_to_its_end(world: World) -> None:
    for number in range(3):
        ended(world, payload={"message": f"m{number}"})
        send("POST", "/targets", json_body={"name": f"t{number}", "kind": "log"}, **ADMIN)
    for path in LISTS:
        whole, paged, query = send("GET", path, query={"limit": "60"}, **ADMIN).data["items"], [], {"limit": "2"}
        while True:
            page = send("GET", path, query=query, **ADMIN).data
            paged += page["items"]
            if not page["has_more"]:
                break
            query["cursor"] = page["cursor"]
        assert paged == whole, path


@pytest.mark.parametrize("path", ["/targets", "/types", "/types/aws/actions", "/system/breakers", "/dead-letters"])
@pytest.mark.parametrize("query", [{"cursor": "x"}, {"cursor": "0"}, {"cursor": "-1"}, {"limit": "0"}, {"limit": "101"}])
def test_a_wrong_page_is_refused_by_name(path: str, query: dict[str, str]) -> None:
    answered = send("GET", path, query=query, **ADMIN)
    assert answered.status == 400 and answered.fields.keys() == query.keys()


@pytest.mark.parametrize("path", [*LISTS, "/me", "/forecast", "/system", "/version", "/jobs/x"])
def test_an_unknown_parameter_is_refused(path: str) -> None:
    answered = send("GET", path, query={"colour": "red"}, **ADMIN)
    assert (answered.status, answered.fields) == (400, {"colour": "is not a known parameter"})


def test_failed_jobs_include_killed_jobs(world: World) -> None:
    failed, killed, done = ended(world, lifecycle.fail, FAILED), ended(world, lifecycle.kill, FAILED), ended(world)

    def found(status: str) -> set[str]:
        return {job["id"] for job in send("GET", "/jobs", query={"status": status}).data["items"]}

    assert found("failed") == {failed.id, killed.id} and found("killed") == {killed.id}
    assert found("succeeded,killed") == {done.id, killed.id} and found("failed,succeeded") == {failed.id, killed.id, done.id}


def test_several_tags_must_all_be_there(world: World) -> None:
    both, one = ended(world, tags=("a", "b")), ended(world, tags=("a",))
    for query, expected in ({"tag": "a"}, {both.id, one.id}), ({"tag": "a,b"}, {both.id}), ({"tag": "b,c"}, set[str]()):
        assert {job["id"] for job in send("GET", "/jobs", query=query).data["items"]} == expected


@pytest.mark.parametrize("query", [{"status": "failed,dead"}, {"tag": "ä"}, {"tag": ",".join("abcdefghijk")}])
@pytest.mark.parametrize("path", ["/jobs", "/tasks"])
def test_a_wrong_value_among_several_is_refused_by_name(path: str, query: dict[str, str]) -> None:
    answered = send("GET", path, query=query)
    assert answered.status == 400 and answered.fields.keys() == query.keys()


def test_a_job_shows_its_end_whatever_it_was(world: World) -> None:
    for job in ended(world), ended(world, lifecycle.fail, FAILED), ended(world, lifecycle.kill, FAILED):
        shown = send("GET", f"/jobs/{job.id}").data
        assert (shown["ended_at"], shown["duration_ms"]) == (render(NOW - 1_000), 4_000)
    waiting = send("POST", "/jobs", json_body={"message": "m", "execute_at": render(NOW + 9_000)}).data
    assert (waiting["ended_at"], waiting["duration_ms"]) == (None, None)
    cancelled = send("POST", f"/jobs/{waiting['id']}/cancel").data
    assert (cancelled["ended_at"], cancelled["duration_ms"]) == (render(NOW), None)


def test_a_request_by_a_promised_name_is_the_same_request(world: World) -> None:
    headers = {"idempotency-key": "k"}
    first = send("POST", "/jobs", json_body={"message": "m"}, headers=headers)
    again = send("POST", "/me/jobs", json_body={"message": "m"}, headers=headers)
    assert first.headers["Location"] == f"/api/v1/jobs/{first.data['id']}"
    assert (first.status, again.headers["Idempotency-Replayed"], again.data) == (201, "true", first.data)


def test_a_task_is_paused_and_resumed_by_clear_names(world: World) -> None:
    task = send("POST", "/tasks", json_body={"name": "n", "message": "m", "schedule": {"rate": "1 hours"}}).data["id"]
    assert send("POST", f"/tasks/{task}/pause", json_body={"reason": "r"}).data["status"] == "inactive"
    assert send("POST", f"/tasks/{task}/resume").data["status"] == "active"
    refused = send("GET", f"/tasks/{task}/pause")
    assert (refused.status, refused.headers["Allow"]) == (405, "POST")


def test_a_task_is_paused_by_its_promised_name() -> None:
    task = send("POST", "/tasks", json_body={"name": "n", "message": "m", "schedule": {"rate": "1 hours"}}).data["id"]
    assert send("PUT", f"/tasks/{task}/inactive", json_body={"reason": "r"}).data["inactive_reason"] == "r"
    refused = send("GET", f"/tasks/{task}/inactive")
    assert (refused.status, refused.headers["Allow"]) == (405, "PUT")


def test_a_wrong_method_of_a_promised_name_is_answered_with_405() -> None:
    refused = send("DELETE", "/me/jobs")
    assert (refused.status, refused.headers["Allow"]) == (405, "GET, POST")


def test_reports_of_workers_have_one_name() -> None:
    assert send("POST", "/jobs/x/heartbeat", json_body={}, user=None).status == 401


def test_the_document_has_clear_names_and_marks_the_promised_ones(world: World) -> None:
    document = send("GET", "/openapi.json", user=None).body
    operations = {
        f"{method.upper()} {path.removeprefix('/api/v1')}": operation
        for path, each in document["paths"].items()
        for method, operation in each.items()
    }
    promised = {name.replace("<", "{").replace(">", "}") for name in door.PROMISED}
    assert {name for name, operation in operations.items() if operation.get("deprecated")} == promised
    ids = [operation["operationId"] for operation in operations.values()]
    assert len(ids) == len(set(ids))


def test_the_version_is_that_of_the_package() -> None:
    import tomllib
    from pathlib import Path

    package = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
    assert send("GET", "/version").data == {"version": package, "api": "v1"}


def test_every_time_in_the_document_has_a_complete_format(world: World) -> None:
    schemas = expanded(send("GET", "/openapi.json", user=None).body)["components"]["schemas"]
    times = re.compile(r".*_at|expire|nominal|at|start|end|since|until|from|to|lease_until|probe_until")
    found = {
        f"{name}.{field}": schema
        for name, each in schemas.items()
        for field, schema in each.get("properties", {}).items()
        if times.fullmatch(field) and name != "EmailPayload"
    }
    assert len(found) > 30
    assert [name for name, schema in found.items() if '"format": "date-time"' not in json.dumps(schema)] == []


def test_a_listed_job_names_what_it_calls_and_its_task(world: World) -> None:
    read: list[int] = []

    def heads(verb: Any, keys: Any) -> Any:
        read.append(len(keys))
        return verb(keys)

    task = send("POST", "/tasks", json_body={"name": "Nightly", "schedule": {"cron": "@daily"}, "message": "hello"}).data
    run = send("POST", f"/tasks/{task['id']}/run").data
    send("POST", "/jobs", json_body={"type": "http", "payload": {"url": "https://api.example.com/orders/7?token=x"}})
    world.tasks = Wrapped(world.tasks, heads=heads)
    listed = {each["task_id"]: (each["calls"], each["task_name"]) for each in send("GET", "/jobs").data["items"]}
    assert listed == {task["id"]: (None, "Nightly"), None: ("api.example.com/orders/7", None)}
    assert read == [1], "one read for the page, however many runs it has"
    world.tasks = Wrapped(world.tasks, heads=refuse)
    assert send("GET", f"/jobs/{run['id']}").data["task_name"] is None, "the job is shown nevertheless"


def test_the_reason_of_a_failed_job_has_its_last_error(world: World) -> None:
    refused = Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 500"))
    job = ended(world, lambda job, at, **more: lifecycle.fail(job, at, reason="no attempt is left of 3", **more), refused)
    assert send("GET", f"/jobs/{job.id}").data["reason"] == "no attempt is left of 3: HTTP 500"
    (listed,) = send("GET", "/jobs", query={"status": "failed"}).data["items"]
    assert listed["reason"] == "no attempt is left of 3: HTTP 500"
    long = Result(failure=Failure(FailureKind.PERMANENT, "x" * 5_000))
    job = ended(world, lambda job, at, **more: lifecycle.fail(job, at, reason="the error is permanent", **more), long)
    assert len(send("GET", f"/jobs/{job.id}").data["reason"]) == len("the error is permanent: ") + 500


ANSWER = 6_291_556  # bytes that a function may answer: "6 MB" of https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
NOISE = "\x1b" * attempt_output.ROOM  # a log of control characters: seven bytes for each, as a part of a body in an answer


def pages_of(path: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The pages of a list: the bytes of the function's answer, as its runtime writes it, and the entries."""
    send("GET", path)  # ann becomes a person
    query = {"limit": "100"}
    while True:
        answered = api.handler(event("GET", f"/api/v1{path}", query=query), None)
        page = json.loads(answered["body"])["data"]
        yield len(json.dumps(answered, ensure_ascii=False).encode()), page["items"]
        if page["cursor"] is None:
            return
        query["cursor"] = page["cursor"]


def with_long_texts(world: World, number: int) -> Job:
    """A job whose output, log, response and failure are as long as they may be."""
    answer = {"status": 500, "headers": {"x": "\x1b" * (attempt_output.HEADERS - 1)}, "body": ""}
    result = Result(NOISE, response=answer, failure=Failure(FailureKind.PERMANENT, "\x1b" * 10_000), log=NOISE)
    at = NOW - 9_000 - number
    job = a_job(owner="sub-ann", due_at=at, created_at=at, claim=Claim("m", "n", at, True))
    ended = lifecycle.fail(job, NOW, started_at=NOW, result=attempt_output.split(job, result)[0], reason="the error is permanent")
    world.jobs.put(ended)
    return ended


def with_quotes(world: World, number: int) -> Job:
    return ended(world, payload={"message": '"' * 120_000, "number": number})


@pytest.mark.parametrize(("made", "count"), [(with_quotes, 8), (with_long_texts, 100)])
def test_no_page_is_longer_than_an_answer_of_a_function(world: World, made: Callable[[World, int], Job], count: int) -> None:
    jobs = {made(world, number).id for number in range(count)}
    pages = list(pages_of("/jobs"))
    assert [size for size, _ in pages if size > ANSWER] == []
    assert {job["id"] for _, page in pages for job in page} == jobs and all(page for _, page in pages)


def test_no_page_of_tasks_is_longer_than_an_answer_of_a_function(world: World) -> None:
    body = {"schedule": {"cron": "@daily"}, "message": '"' * 120_000}
    tasks = {send("POST", "/tasks", json_body={"name": f"n{number}"} | body).data["id"] for number in range(8)}
    pages = list(pages_of("/tasks"))
    assert [size for size, _ in pages if size > ANSWER] == []
    assert {task["id"] for _, page in pages for task in page} == tasks
