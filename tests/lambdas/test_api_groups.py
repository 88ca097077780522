"""The routes of groups: create, join, seal, cancel, read and list."""

from typing import Any

import pytest

from lab.world.gateway import AT
from lambdas.rest import group_models, job_answers, shapes
from scheduler.groups import check
from scheduler.jobs import group_steps
from scheduler.model import ids, lifecycle
from scheduler.model.group import GroupKey
from scheduler.model.instants import render
from scheduler.model.job import Job, JobKey, Status, changed
from scheduler.pipeline.follow_up import wake
from tests.lambdas.gateway import NOW, Answered, World, send

pytestmark = pytest.mark.usefixtures("world")

HOUR = 3_600_000
JOBS: list[dict[str, Any]] = [{"message": f"invoice {number}", "delay": "1h"} for number in range(3)]
CALLS = {kind: {"message": kind} for kind in ("on_complete", "on_success", "on_failure")}
UNKNOWN = ids.new(AT, 1)


def create(**body: Any) -> Answered:
    headers = {"Idempotency-Key": body.pop("idempotency_key")} if "idempotency_key" in body else {}
    answered = send("POST", "/groups", json_body=body, headers=headers)
    if answered.status < 300:
        shapes.Answer[group_models.MadeGroupShape].model_validate(answered.body)
        assert answered.headers["Location"] == f"/api/v1/groups/{answered.data['group']['id']}"
    return answered


def made(**body: Any) -> str:
    """The id of a new group."""
    id: str = create(**body).data["group"]["id"]
    return id


def group(id: str) -> Any:
    answered = send("GET", f"/groups/{id}")
    shapes.Answer[group_models.JobGroupShape].model_validate(answered.body)
    return answered.data


def job(world: World, id: str) -> Job:
    return world.jobs.rows[JobKey("sub-ann", id)]


def end(world: World, id: str, status: Status = Status.SUCCEEDED) -> None:
    """End the job, as an executor does."""
    stored = job(world, id)
    now = world.clock.now()
    fields: dict[str, Any] = {lifecycle.FINAL_TIMES[status]: now, "slot": None}
    ended = changed(stored, **fields)
    world.jobs.rows[ended.key] = ended
    wake([ended], world, now=now)


def members(id: str, **query: str) -> Answered:
    answered = send("GET", f"/groups/{id}/jobs", query=query)
    if answered.status == 200:
        shapes.Answer[job_answers.PageShape].model_validate(answered.body)
    return answered


def work_off(world: World) -> None:
    """Carry out the steps of groups that were requested."""
    for sent in world.work.receive(world.clock.now()):
        group_steps.step(sent, world, lambda: None)
        world.work.delete(sent.receipt)


# Create.


def test_a_group_is_created_with_its_jobs_and_is_sealed(world: World) -> None:
    answered = create(name="Invoices", jobs=JOBS, **CALLS)
    found, results = answered.data["group"], answered.data["results"]
    assert answered.status == 201 and found["name"] == "Invoices"
    assert (found["state"], found["jobs"], found["sealed_at"]) == ("sealed", 3, render(NOW))
    assert found["counts"] == {"unfinished": 3, "succeeded": 0, "failed": 0, "killed": 0, "cancelled": 0, "skipped": 0}
    assert found["callbacks"] == [{"kind": kind, "type": "log", "job_id": None} for kind in CALLS]
    assert [result["index"] for result in results] == [0, 1, 2] == [job(world, result["job"]["id"]).member for result in results]
    shown = send("GET", f"/jobs/{results[1]['job']['id']}").data
    assert (shown["group_id"], shown["group_member"], shown["scheduled_at"]) == (found["id"], 1, render(NOW + HOUR))
    assert group(found["id"]) == found


def test_the_last_end_starts_the_call_backs(world: World) -> None:
    answered = create(jobs=JOBS, **CALLS)
    id = answered.data["group"]["id"]
    for result, status in zip(answered.data["results"], (Status.SUCCEEDED, Status.FAILED, Status.SUCCEEDED), strict=True):
        end(world, result["job"]["id"], status)
    found = group(id)
    assert (found["state"], found["ended_at"], found["succeeded_at"]) == ("ended", render(NOW), None)
    assert (found["counts"]["succeeded"], found["counts"]["failed"]) == (2, 1)
    started = {call["kind"]: call["job_id"] for call in found["callbacks"]}
    assert started["on_success"] is None
    for kind in ("on_complete", "on_failure"):
        shown = send("GET", f"/jobs/{started[kind]}").data
        assert (shown["payload"], shown["group_id"], shown["group_member"]) == ({"message": kind}, id, None)


@pytest.mark.parametrize("jobs", [JOBS, []])
def test_a_group_says_when_it_is_sealed(jobs: list[Any]) -> None:
    assert create(jobs=jobs).data["group"]["state"] == ("sealed" if jobs else "open")
    assert create(jobs=jobs, seal=False).data["group"]["state"] == "open"
    assert create(jobs=jobs, seal=True).data["group"]["state"] == ("sealed" if jobs else "ended")


def test_a_group_names_the_instant_by_which_it_must_be_sealed() -> None:
    assert create().data["group"]["seal_by"] == render(NOW + 86_400_000)
    assert create(seal_within="2h").data["group"]["seal_by"] == render(NOW + 2 * HOUR)


@pytest.mark.parametrize("seal", [True, False])
def test_a_request_with_an_idempotency_key_is_repeated_safely(world: World, seal: bool) -> None:
    first, again = (create(jobs=JOBS, seal=seal, idempotency_key="k") for _ in range(2))
    assert again.status == 201 and again.headers["Idempotency-Replayed"] == "true" and "Idempotency-Replayed" not in first.headers
    ids_of = [[result["job"]["id"] for result in answered.data["results"]] for answered in (first, again)]
    assert ids_of[0] == ids_of[1] and again.data["group"]["id"] == first.data["group"]["id"]
    assert len(world.jobs.rows) == 3 == again.data["group"]["jobs"] and len(world.groups.heads) == 1
    other = create(jobs=JOBS[:1], seal=seal, idempotency_key="k")
    assert other.status == 409 and len(world.groups.heads) == 1


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        ({"jobs": [{"message": "a"}] * 2 + [{"message": ""}]}, "jobs[2].message", "not be empty"),
        ({"jobs": [{"message": "a"}, {"type": "http", "payload": {"url": "ftp://a"}}]}, "jobs[1].payload.url", "http"),
        ({"jobs": [{"message": "a", "colour": "red"}]}, "jobs[0].colour", "not a known field"),
        ({"jobs": [{"message": "a", "execute_at": "2020-01-01T00:00:00Z"}]}, "jobs[0].execute_at", "past"),
        ({"jobs": [{"message": "a"}, "job"]}, "jobs[1]", "object"),
        ({"jobs": [{"message": "a", "key": "k"}]}, "jobs[0].key", "must be absent"),
        ({"jobs": [{"message": "a", "idempotency_key": "k"}]}, "jobs[0].idempotency_key", "must be absent"),
        ({"jobs": [{"message": "a", "group": UNKNOWN}]}, "jobs[0].group", "must be absent"),
        ({"jobs": [{"message": "a"}] * 1_001}, "jobs", "1000"),
        ({"jobs": {"message": "a"}}, "jobs", "list"),
        ({"name": ""}, "name", "empty"),
        ({"name": "x" * 121}, "name", "at most 120"),
        ({"name": "a\nb"}, "name", "control"),
        ({"seal": "yes"}, "seal", "true or false"),
        ({"seal_within": "59s"}, "seal_within", "1m to 30d"),
        ({"seal_within": "31d"}, "seal_within", "1m to 30d"),
        ({"seal_within": "soon"}, "seal_within", "30m"),
        ({"on_complete": {"message": "a", "key": "k"}}, "on_complete.key", "must be absent"),
        ({"on_success": {"message": "a", "notifications": {"emails": ["a@example.com"]}}}, "on_success.notifications", "must be absent"),
        ({"on_failure": {"type": "http", "payload": {"url": "ftp://a"}}}, "on_failure.payload.url", "http"),
        ({"on_failure": {"target": "none"}}, "on_failure.target", "no such target"),
        ({"on_success": {"message": "a", "delay": "1h"}}, "on_success.delay", "not a known field"),
        ({"on_success": {"message": "a", "group": UNKNOWN}}, "on_success.group", "not a known field"),
        ({"on_success": {}}, "on_success.type", "exactly one"),
        ({"colour": "red"}, "colour", "not a known field"),
    ],
)
def test_a_bad_group_names_field_and_rule_and_stores_nothing(world: World, body: Any, field: str, rule: str) -> None:
    answered = send("POST", "/groups", json_body=body)
    assert answered.status == 400 and rule in answered.fields[field], answered.text
    assert not world.jobs.rows and not world.groups.heads and not world.groups.checks and not world.receipts.rows


def test_all_broken_jobs_are_named() -> None:
    assert set(create(jobs=[{"message": ""}, {"message": "a"}, {"message": "a", "key": "k"}]).fields) == {"jobs[0].message", "jobs[2].key"}


# Join.


def test_jobs_join_by_each_route(world: World) -> None:
    id = made(on_success={"message": "done"})
    one = send("POST", "/jobs", json_body={"message": "a", "group": id})
    assert (one.status, one.data["group_id"], one.data["group_member"]) == (201, id, 0)
    items = [{"message": "b", "group": id}, {"message": "c"}, {"message": "d", "group": id}]
    batch = send("POST", "/jobs/batch", json_body={"jobs": items})
    assert batch.status == 200
    assert [job(world, result["job"]["id"]).member for result in batch.data["results"]] == [1, None, 2]
    task = send("POST", "/tasks", json_body={"name": "t", "message": "e", "schedule": {"cron": "0 0 1 1 *"}}).data["id"]
    run = send("POST", f"/tasks/{task}/run", json_body={"group": id})
    assert (run.status, run.data["group_id"], run.data["group_member"]) == (201, id, 3)
    assert (group(id)["jobs"], group(id)["state"]) == (4, "open")
    assert [each["group_member"] for each in members(id).data["items"]] == [0, 1, 2, 3]


def test_a_repeated_join_gives_one_number(world: World) -> None:
    id = made()
    for _ in range(2):
        one = send("POST", "/jobs", json_body={"message": "a", "group": id}, headers={"Idempotency-Key": "k"})
        assert (one.status, one.data["group_member"]) == (201, 0)
    assert group(id)["jobs"] == 1


@pytest.mark.parametrize("state", ["unknown", "sealed", "cancelled", "abandoned"])
def test_a_group_that_takes_no_job_refuses_it(world: World, state: str) -> None:
    id = UNKNOWN if state == "unknown" else made(jobs=JOBS, seal=False)
    if state in ("sealed", "cancelled"):
        send("POST", f"/groups/{id}/{'seal' if state == 'sealed' else 'cancel'}")
    if state == "abandoned":
        world.groups.abandon(GroupKey("sub-ann", id), NOW, 1)
    task = send("POST", "/tasks", json_body={"name": "t", "message": "e", "schedule": {"cron": "0 0 1 1 *"}}).data["id"]
    before = set(world.jobs.rows)
    rule = {"unknown": "there is no group", "abandoned": "was abandoned"}.get(state, "is sealed")
    for path, body in (("/jobs", {"message": "a", "group": id}), (f"/tasks/{task}/run", {"group": id})):
        answered = send("POST", path, json_body=body)
        assert answered.status == 409 and rule in answered.fields["group"]
    batch = send("POST", "/jobs/batch", json_body={"jobs": [{"message": "b", "group": id}]})
    error = batch.data["results"][0]["error"]
    assert batch.status == 207 and error["code"] == "conflict" and error["details"][0]["field"] == "jobs[0].group"
    assert set(world.jobs.rows) == before


def test_a_group_of_another_owner_is_unknown(world: World) -> None:
    id = made(jobs=JOBS)
    for method, path in (("GET", ""), ("GET", "/jobs"), ("POST", "/seal"), ("POST", "/cancel")):
        assert send(method, f"/groups/{id}{path}", user="sub-eve", username="eve").status == 404
    assert send("GET", "/groups", user="sub-eve", username="eve").data["items"] == []
    other = send("POST", "/jobs", json_body={"message": "a", "group": made()}, user="sub-eve", username="eve")
    assert other.status == 409 and "there is no group" in other.fields["group"]


@pytest.mark.parametrize("text", ["", "x", "g#1", 5])
def test_a_text_that_is_no_id_of_a_group_is_refused(world: World, text: Any) -> None:
    answered = send("POST", "/jobs", json_body={"message": "a", "group": text})
    assert answered.status == 400 and "group" in answered.fields and not world.jobs.rows


def test_a_put_by_key_joins_no_group(world: World) -> None:
    answered = send("PUT", "/jobs/by-key/k", json_body={"message": "a", "group": made()})
    assert answered.status == 400 and "must be absent" in answered.fields["group"] and not world.jobs.rows


def test_a_job_with_a_key_joins_by_post(world: World) -> None:
    id = made()
    first, second = (send("POST", "/jobs", json_body={"message": "a", "group": id, "key": "k", "delay": "1h"}) for _ in range(2))
    assert (first.status, second.status) == (201, 409)
    sealed = send("POST", f"/groups/{id}/seal").data
    assert (sealed["jobs"], sealed["counts"]["unfinished"]) == (1, 1), "the number of the refused job is void"


def test_no_group_is_changed_later(world: World) -> None:
    id = send("POST", "/jobs", json_body={"message": "a", "delay": "1h"}).data["id"]
    answered = send("PATCH", f"/jobs/{id}", json_body={"group": made()})
    assert answered.status == 400 and "group" in answered.fields


# Seal and cancel.


def test_a_seal_starts_the_call_backs_of_an_ended_group(world: World) -> None:
    id = made(jobs=JOBS, seal=False, **CALLS)
    for each in members(id).data["items"]:
        end(world, each["id"])
    assert group(id)["state"] == "open" and not any(call["job_id"] for call in group(id)["callbacks"])
    sealed = send("POST", f"/groups/{id}/seal")
    assert (sealed.status, sealed.data["state"], sealed.data["succeeded_at"]) == (200, "ended", render(NOW))
    assert [call["kind"] for call in sealed.data["callbacks"] if call["job_id"]] == ["on_complete", "on_success"]
    assert send("POST", f"/groups/{id}/seal").data == sealed.data


def test_a_cancel_seals_and_cancels_what_waits(world: World) -> None:
    id = made(jobs=JOBS, seal=False, **CALLS)
    answered = send("POST", f"/groups/{id}/cancel")
    assert (answered.status, answered.data["state"], answered.data["cancelled_at"]) == (200, "sealed", render(NOW))
    work_off(world)
    found = group(id)
    assert (found["state"], found["counts"]["cancelled"]) == ("ended", 3)
    assert [call["kind"] for call in found["callbacks"] if call["job_id"]] == ["on_complete", "on_failure"]
    assert send("POST", f"/groups/{id}/cancel").status == 200
    assert {(entry.action, entry.object) for entry in world.trail.rows.values()} == {("group.cancel", id)}


def test_an_ended_group_is_not_cancelled(world: World) -> None:
    id = made(seal=True)
    answered = send("POST", f"/groups/{id}/cancel")
    assert answered.status == 409 and "have ended" in answered.error["message"]


def test_a_group_that_was_not_sealed_in_time_is_abandoned(world: World) -> None:
    id = made(jobs=JOBS, seal=False, seal_within="1m", **CALLS)
    world.clock.at = NOW + 60_000
    check.request_due(world, world.clock.now())
    work_off(world)
    found = group(id)
    assert (found["state"], found["abandoned_at"]) == ("abandoned", render(NOW + 60_000))
    for verb in ("seal", "cancel"):
        answered = send("POST", f"/groups/{id}/{verb}")
        assert answered.status == 409 and "abandoned" in answered.error["message"]


@pytest.mark.parametrize("id", ["x", "a" * 300, UNKNOWN])
def test_a_group_that_does_not_exist_is_not_found(id: str) -> None:
    for method, path in (("GET", ""), ("GET", "/jobs"), ("POST", "/seal"), ("POST", "/cancel")):
        assert send(method, f"/groups/{id}{path}").status == 404


# Lists.


def test_groups_are_listed_page_by_page(world: World) -> None:
    made_ids = []
    for number in range(5):
        world.clock.at = NOW + number
        made_ids.append(made(name=f"g{number}", jobs=JOBS))
    page = send("GET", "/groups", query={"limit": "3"}).data
    shapes.Answer[group_models.JobGroupsShape].model_validate({"success": True, "data": page})
    rest = send("GET", "/groups", query={"limit": "3", "cursor": page["cursor"]}).data
    assert [each["id"] for each in page["items"] + rest["items"]] == made_ids[::-1] and rest["cursor"] is None
    assert page["items"][0]["counts"]["unfinished"] == 3


def test_large_groups_are_listed_without_counts() -> None:
    made(jobs=JOBS * 6)
    (listed,) = send("GET", "/groups").data["items"]
    assert (listed["jobs"], listed["counts"]) == (18, None)


def test_members_are_listed_by_status_and_page(world: World) -> None:
    id = made(jobs=JOBS * 2)
    all_ids = [each["id"] for each in members(id).data["items"]]
    end(world, all_ids[1], Status.FAILED), end(world, all_ids[4], Status.KILLED), end(world, all_ids[5])
    assert [each["id"] for each in members(id, status="failed").data["items"]] == [all_ids[1]]
    assert [each["id"] for each in members(id, status="failed,killed").data["items"]] == [all_ids[1], all_ids[4]]
    page = members(id, limit="4").data
    rest = members(id, limit="4", cursor=page["cursor"]).data
    assert [each["id"] for each in page["items"] + rest["items"]] == all_ids and rest["cursor"] is None


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/groups", {"cursor": "nonsense"}, "cursor"),
        ("/groups", {"limit": "0"}, "limit"),
        ("/groups", {"limit": "101"}, "limit"),
        ("/groups/{id}/jobs", {"cursor": "nonsense"}, "cursor"),
        ("/groups/{id}/jobs", {"cursor": "-1"}, "cursor"),
        ("/groups/{id}/jobs", {"status": "running"}, "status"),
        ("/groups/{id}/jobs", {"status": "ended"}, "status"),
        ("/groups/{id}/jobs", {"limit": "x"}, "limit"),
    ],
)
def test_a_bad_query_names_its_parameter(path: str, query: dict[str, str], field: str) -> None:
    answered = send("GET", path.replace("{id}", made(jobs=JOBS)), query=query)
    assert answered.status == 400 and any(name.startswith(field) for name in answered.fields), answered.text


def test_a_cursor_beyond_the_last_member_gives_an_empty_page() -> None:
    assert members(made(jobs=JOBS), cursor="4000").data == {"items": [], "has_more": False, "cursor": None}
