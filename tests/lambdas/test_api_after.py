"""Jobs that wait for other jobs, over HTTP."""

from dataclasses import replace
from typing import Any

import pytest

from lambdas.rest import job_answers, shapes
from scheduler.model.job import JobKey
from tests.lambdas.gateway import NOW, World, send

pytestmark = pytest.mark.usefixtures("world")
UNKNOWN = "01JD4Q8XKZ38W2M5R7T9V1C4FH"


def posted(**fields: Any) -> Any:
    return send("POST", "/jobs", json_body={"message": "m", "delay": "1h"} | fields)


def fail(world: World, job_id: str) -> None:
    """Let the job fail."""
    job = world.jobs.rows[JobKey("sub-ann", job_id)]
    world.jobs.rows[job.key] = replace(job, slot=None, failed_at=NOW, charged=3)


def test_a_job_shows_what_it_waits_for() -> None:
    first, named = posted().data, posted(key="nightly").data
    answered = posted(after=[{"job": first["id"]}, {"key": "nightly", "when": "ended"}])
    assert answered.status == 201
    expected = [
        {"job": first["id"], "group": None, "when": "succeeded", "outcome": None},
        {"job": named["id"], "group": None, "when": "ended", "outcome": None},
    ]
    assert answered.data["after"] == expected and answered.data["status"] == "scheduled"
    shown = send("GET", f"/jobs/{answered.data['id']}")
    shapes.Answer[job_answers.JobShape].model_validate(shown.body)
    assert shown.data["after"] == expected
    assert shown.data["reason"] == f"after: it waits for 2 of 2 jobs: {first['id']}, {named['id']}"
    assert first["after"] == []


def test_a_job_after_a_failed_one_is_skipped_or_starts(world: World) -> None:
    first = posted().data
    fail(world, first["id"])
    skipped, free = (posted(after=[{"job": first["id"], "when": when}]).data for when in ("succeeded", "ended"))
    assert (skipped["status"], skipped["reason"]) == ("skipped", f"after: job {first['id']} failed")
    assert (free["status"], free["reason"]) == ("scheduled", None) and free["after"][0]["outcome"] == "failed"


@pytest.mark.parametrize(
    ("after", "field", "rule"),
    [
        ([{}], "after.0", "give exactly one of job, key and group"),
        ([{"job": UNKNOWN, "key": "a"}], "after.0", "give exactly one of job, key and group"),
        ([{"job": "x"}], "after.0.job", "must be the id of a job"),
        ([{"job": None}], "after.0.job", "must be a string"),
        ([{"job": UNKNOWN}], "after.0.job", "names no job: there is no job with this id"),
        ([{"key": "nobody"}], "after.0.key", "names no job: no job has this key"),
        ([{"key": "mine"}], "after.0.key", "must not name the job itself"),
        ([{"job": UNKNOWN, "when": "failed"}], "after.0.when", "'succeeded' or 'ended'"),
        ([{"job": UNKNOWN}] * 51, "after", "must have at most 50 entries"),
        ([{"group": UNKNOWN}], "after.0.group", "names no group: there is no group with this id"),
        ([{"group": "x"}], "after.0.group", "must be the id of a group"),
    ],
)
def test_bad_predecessors_are_refused_by_field_and_rule(world: World, after: Any, field: str, rule: str) -> None:
    answered = posted(after=after, key="mine")
    assert answered.status == 400 and rule in answered.fields[field], answered.fields
    assert not world.jobs.rows and not world.followers.stored


def test_jobs_of_others_are_unknown() -> None:
    theirs = send("POST", "/jobs", json_body={"message": "m"}, user="bob").data
    assert posted(after=[{"job": theirs["id"]}]).fields["after.0.job"].startswith("names no job")


def test_the_jobs_of_a_batch_may_wait_for_each_other(world: World) -> None:
    jobs = [
        {"message": "last", "after": [{"key": "left"}, {"key": "right"}]},
        {"message": "l", "key": "left", "after": [{"key": "first"}]},
        {"message": "r", "key": "right", "after": [{"key": "first"}]},
        {"message": "f", "key": "first"},
    ]
    answered = send("POST", "/jobs/batch", json_body={"jobs": jobs})
    assert answered.status == 200
    last, left, right, first = (result["job"]["id"] for result in answered.data["results"])
    assert [each["job"] for each in send("GET", f"/jobs/{last}").data["after"]] == [left, right]
    assert [each["job"] for each in send("GET", f"/jobs/{left}").data["after"]] == [first]


def test_a_circle_in_a_batch_is_refused_with_its_path(world: World) -> None:
    jobs = [{"message": "m", "key": key, "after": [{"key": other}]} for key, other in ("ab", "bc", "ca")] + [{"message": "alone"}]
    answered = send("POST", "/jobs/batch", json_body={"jobs": jobs})
    assert answered.status == 207 and (answered.data["accepted"], answered.data["refused"]) == (1, 3)
    for index in range(3):
        error = answered.data["results"][index]["error"]
        assert error["code"] == "validation_failed" and error["details"][0]["field"] == f"jobs[{index}].after"
        assert "a → b → c → a" in error["message"]
    assert len(world.jobs.rows) == 1


def test_a_job_of_a_batch_is_refused_with_the_one_that_it_waits_for(world: World) -> None:
    old = posted(key="first", message="of yesterday").data
    fail(world, old["id"])
    jobs = [
        {"message": "m", "key": "first", "max_attempts": 99},
        {"message": "m", "key": "second", "after": [{"key": "first"}]},
        {"message": "m", "after": [{"key": "second"}]},
    ]
    answered = send("POST", "/jobs/batch", json_body={"jobs": jobs})
    bad, behind, last = answered.data["results"]
    assert last["error"]["code"] == "conflict" and last["error"]["details"][0]["field"] == "jobs[2].after.0.key"
    assert bad["error"]["code"] == "validation_failed" and behind["error"]["code"] == "conflict"
    assert behind["error"]["details"] == [{"field": "jobs[1].after.0.key", "rule": "names a job of this call that is refused"}]
    assert len(world.jobs.rows) == 1, "not bound to yesterday's job"


def test_a_put_by_key_takes_no_predecessors(world: World) -> None:
    first = posted().data
    answered = send("PUT", "/jobs/by-key/mine", json_body={"message": "m", "after": [{"job": first["id"]}]})
    assert answered.status == 400 and "must be absent" in answered.fields["after"] and len(world.jobs.rows) == 1


def test_a_patch_does_not_change_what_a_job_waits_for() -> None:
    first = posted().data
    job = posted(after=[{"job": first["id"]}]).data
    refused = send("PATCH", f"/jobs/{job['id']}", json_body={"after": []})
    assert refused.status == 400 and "is not a known field" in refused.fields["after"]
    moved = send("PATCH", f"/jobs/{job['id']}", json_body={"delay": "2h"})
    assert moved.status == 200 and moved.data["after"] == job["after"]
