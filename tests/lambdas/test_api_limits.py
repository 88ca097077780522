"""Limits of keys over HTTP: of jobs, tasks and named targets."""

from typing import Any

import pytest

from scheduler.model.job import JobKey
from scheduler.model.limiter import NOBODY, KeyLimit, name_of
from scheduler.model.spec import Limit
from tests.lambdas.gateway import NOW, Answered, World, send

TWO = {"key": "crm", "concurrency": 2}
SLOW = {"key": "crm", "rate": 10, "period": "1m"}
SHOWN = {"key": "crm", "concurrency": 2, "rate": None, "period": None}


def post(limit: Any, **fields: Any) -> Answered:
    return send("POST", "/jobs", json_body={"message": "m", "limit": limit, "delay": "1h"} | fields)


def limit_of(world: World, owner: str = "sub-ann", key: str = "crm") -> KeyLimit | None:
    name = name_of(owner, key)
    found = world.targets.usages([name])
    return found[name].limit if name in found else None


def refused(answered: Answered) -> None:
    assert (answered.status, answered.error["code"], list(answered.fields)) == (409, "conflict", ["limit"]), answered.text
    assert "is in use with another limit" in answered.fields["limit"]


def test_a_job_shows_its_limit_and_the_key_gets_it(world: World) -> None:
    job = post(TWO).data
    assert job["limit"] == SHOWN and send("GET", f"/jobs/{job['id']}").data["limit"] == SHOWN
    known = limit_of(world)
    assert known is not None and known.limit == Limit("crm", concurrency=2) and known.until > NOW + 3_600_000
    other = post({"key": "mail", "rate": 10, "period": "90s"}).data
    assert other["limit"] == {"key": "mail", "concurrency": None, "rate": 10, "period": "1m30s"}


def test_a_second_limit_of_a_key_is_refused_and_changes_nothing(world: World) -> None:
    post(TWO)
    before = dict(world.jobs.rows), limit_of(world)
    refused(post(SLOW))
    refused(post(TWO | {"concurrency": 3}))
    assert (world.jobs.rows, limit_of(world)) == before and post(TWO).status == 201


def test_items_of_a_batch_are_refused_each_on_its_own(world: World) -> None:
    items = [{"message": "m", "limit": limit} for limit in (TWO, SLOW, TWO, None)]
    results = send("POST", "/jobs/batch", json_body={"jobs": items}).data["results"]
    assert ["error" in each for each in results] == [False, True, False, False]
    assert results[1]["error"]["details"][0]["field"] == "jobs[1].limit"


def test_an_idle_key_takes_another_limit(world: World) -> None:
    post(TWO, delay="1s")
    world.clock.advance(180_000)
    assert post(SLOW).status == 201 and limit_of(world) is not None


def test_a_change_of_a_job_changes_the_limit_of_its_key(world: World) -> None:
    job = post(TWO).data
    changed = send("PATCH", f"/jobs/{job['id']}", json_body={"limit": TWO | {"concurrency": 5}})
    known = limit_of(world)
    assert changed.data["limit"]["concurrency"] == 5 and known is not None and known.limit.concurrency == 5
    assert send("PATCH", f"/jobs/{job['id']}", json_body={"limit": None}).data["limit"] is None
    assert world.jobs.rows[JobKey("sub-ann", job["id"])].spec.limit is None


def task(limit: Any, method: str = "POST", path: str = "", **fields: Any) -> Answered:
    body = {"name": "t", "message": "m", "schedule": {"cron": "0 * * * *"}, "limit": limit} | fields
    return send(method, f"/tasks{path}", json_body=body)


def test_a_task_sets_and_changes_the_limit_of_its_key(world: World) -> None:
    made = task(TWO)
    assert made.data["limit"] == SHOWN and {job.spec.limit for job in world.jobs.rows.values()} == {Limit("crm", concurrency=2)}
    path = f"/{made.data['id']}"
    assert task(SLOW, "PUT", path).status == 200
    known = limit_of(world)
    assert known is not None and known.limit.rate == 10 and known.by == f"task {made.data['id']}"
    refused(post(TWO))
    refused(task(TWO, name="another"))
    assert send("PATCH", f"/tasks{path}", json_body={"limit": {"rate": 20}}).data["limit"]["rate"] == 20


def test_a_limit_is_sent_back_as_it_was_read(world: World) -> None:
    made = task(TWO).data
    assert send("PUT", f"/tasks/{made['id']}", json_body=made).data["limit"] == SHOWN


def test_a_task_of_a_key_is_refused_with_the_limit_of_others(world: World) -> None:
    post(TWO)
    refused(task(SLOW))
    body = {"name": "t", "message": "m", "schedule": {"cron": "0 * * * *"}, "limit": SLOW}
    refused(send("PUT", "/tasks/by-key/nightly", json_body=body))


def test_named_targets_share_a_key(world: World) -> None:
    def target(name: str, limit: Any, method: str = "POST", path: str = "") -> Answered:
        body = {"kind": "log", "limit": limit} | ({"name": name} if method == "POST" else {})
        return send(method, f"/targets{path}", json_body=body, role="administrator")

    assert target("a", TWO).data["limit"] == SHOWN
    assert target("b", TWO).status == 201
    refused(target("c", SLOW))
    assert len(world.targets.all()) == 2 and limit_of(world) is None and limit_of(world, NOBODY) is not None
    assert target("a", SLOW, "PUT", "/a").status == 200


@pytest.mark.parametrize("limit", [{"key": "k", "concurrency": 0}, {"key": "k", "rate": 1, "period": "8d"}, {"key": "k"}])
def test_an_invalid_limit_changes_nothing(world: World, limit: Any) -> None:
    answered = post(limit)
    assert answered.status == 400 and all(field.startswith("limit.") for field in answered.fields)
    assert not world.jobs.rows and limit_of(world, key="k") is None
