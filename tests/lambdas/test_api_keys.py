"""Posting jobs under idempotency keys, with an end, and with tags."""

from collections.abc import Mapping
from typing import Any

import pytest

from docs_build.expanded import expanded
from lambdas.rest import models, shapes
from scheduler.model.errors import Unavailable
from scheduler.model.instants import DAY, render
from scheduler.model.job import JobKey, Lane
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.ports import RECEIPT_RETENTION_MS, Written
from tests.lambdas.gateway import NOW, Answered, World, send

pytestmark = pytest.mark.usefixtures("world")

HELLO = {"message": "hello"}


def post(body: Any = HELLO, key: str | None = "k", **rest: Any) -> Answered:
    return send("POST", "/jobs", json_body=body, headers={"idempotency-key": key} if key is not None else {}, **rest)


def batch(*jobs: Any, key: str | None = None) -> list[dict[str, Any]]:
    answered = send("POST", "/jobs/batch", json_body={"jobs": list(jobs)}, headers={"idempotency-key": key} if key is not None else {})
    shapes.Answer[models.BatchShape].model_validate(answered.body)
    assert answered.status == (207 if answered.data["refused"] else 200)
    results: list[dict[str, Any]] = answered.data["results"]
    return results


def stored(world: World) -> list[str]:
    return [job.id for job in world.jobs.rows.values()]


# One job


def test_the_first_answer_is_the_same_as_without_a_key(world: World) -> None:
    answered = post()
    assert (answered.status, "Idempotency-Replayed" in answered.headers) == (201, False)
    assert send("GET", f"/jobs/{answered.data['id']}").data == answered.data and stored(world) == [answered.data["id"]]


def test_a_repeat_gets_the_first_answer_and_the_replay_header(world: World) -> None:
    first = post()
    world.clock.advance(5_000)
    again = send("POST", "/jobs", body=' { "message" : "hello" } ', headers={"Idempotency-Key": "k"})
    assert (again.status, again.text, again.headers["Location"]) == (201, first.text, first.headers["Location"])
    assert again.headers["Idempotency-Replayed"] == "true" and len(stored(world)) == 1


def test_another_body_with_the_same_key_is_a_conflict(world: World) -> None:
    post()
    answered = post({"message": "other"})
    assert (answered.status, answered.error["code"]) == (409, "conflict") and "another request" in answered.error["message"]
    assert len(stored(world)) == 1


def test_each_owner_has_separate_keys(world: World) -> None:
    assert post().data["id"] != post({"message": "other"}, user="sub-bob").data["id"]


@pytest.mark.parametrize("key", ["", "x" * 256, "ü"])
def test_an_invalid_key_is_refused_by_the_header_name(world: World, key: str) -> None:
    answered = post(key=key)
    assert (answered.status, answered.fields) == (400, {"Idempotency-Key": "must be 1 to 255 printable ASCII characters"})
    assert not world.jobs.rows and not world.receipts.rows


def test_a_refused_request_uses_up_no_key(world: World) -> None:
    assert post({"message": "m", "execute_at": render(NOW - DAY - 1)}).status == 400
    assert post({"message": ""}).status == 400
    assert post().status == 201


def test_a_repeat_is_answered_though_its_time_is_out_of_bounds_now(world: World) -> None:
    body = {"message": "m", "execute_at": render(NOW - DAY + 1), "expires_at": render(NOW + 1)}
    first = post(body)
    world.clock.advance(RECEIPT_RETENTION_MS - 1)
    again = post(body)
    assert (first.status, again.status, again.text) == (201, 201, first.text)
    assert post(body, key="fresh").status == 400
    assert post(body | {"max_attempts": 4}).status == 400


def test_without_a_stored_receipt_the_request_is_a_503(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(world.receipts, "keep", lambda receipts, now: [None for _ in receipts])
        answered = post()
        assert (answered.status, answered.error["code"], answered.headers["Retry-After"]) == (503, "unavailable", "2")
        assert not world.jobs.rows
    assert post().status == 201


def test_a_refusing_table_is_a_503_and_the_repeat_is_accepted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(job: Any) -> bool:
        raise Unavailable

    with monkeypatch.context() as patch:
        patch.setattr(world.jobs, "put", refuse)
        assert post().status == 503
    assert post().status == 201 and len(stored(world)) == 1
    assert len(world.lanes.queues[Lane.ONE_TIME]) == 1


def test_without_a_key_no_receipt_is_kept(world: World) -> None:
    post(key=None)
    post(key=None)
    assert not world.receipts.rows and len(stored(world)) == 2


@pytest.mark.parametrize("path", ["/jobs", "/jobs/batch"])
def test_the_document_names_the_header(path: str) -> None:
    operation = expanded(send("GET", "/openapi.json", user=None).body)["paths"][f"/api/v1{path}"]["post"]
    found = [(each["name"].lower(), each["in"], each.get("required", False)) for each in operation["parameters"]]
    assert found == [("owner", "query", False), ("idempotency-key", "header", False)]


# Many


def test_a_repeated_batch_with_keys_creates_no_jobs(world: World) -> None:
    jobs = [{"message": f"{number}", "idempotency_key": f"k{number}"} for number in range(100)]
    first = batch(*jobs)
    world.clock.advance(60_000)
    again = batch(*jobs)
    assert again == [result | {"replayed": True} for result in first] and len(stored(world)) == 100


def test_the_key_of_the_call_gives_each_item_its_own_key(world: World) -> None:
    first = batch(HELLO, HELLO, HELLO | {"idempotency_key": "mine"}, key="call")
    assert len({result["job"]["id"] for result in first}) == 3
    assert {key for _, key in world.receipts.rows} == {"call#0", "call#1", "mine"}
    assert batch(HELLO, HELLO, HELLO | {"idempotency_key": "mine"}, key="call") == [result | {"replayed": True} for result in first]


def test_one_key_is_the_same_in_a_batch_and_alone(world: World) -> None:
    alone = post(HELLO)
    (again,) = batch(HELLO | {"idempotency_key": "k"})
    assert (again["job"]["id"], again["replayed"]) == (alone.data["id"], True)
    (fresh,) = batch({"message": "x", "idempotency_key": "l"})
    replayed = post({"message": "x"}, key="l")
    assert (replayed.data["id"], replayed.headers["Idempotency-Replayed"]) == (fresh["job"]["id"], "true")


def test_a_reused_key_is_a_conflict_of_its_item_alone(world: World) -> None:
    post(HELLO)
    used, free = batch({"message": "other", "idempotency_key": "k"}, HELLO)
    assert (used["error"]["code"], used["error"]["details"][0]["field"]) == ("conflict", "jobs[0].idempotency_key")
    assert "job" in free and len(stored(world)) == 2


def test_the_second_item_with_one_key_is_a_replay_or_a_conflict(world: World) -> None:
    keyed = HELLO | {"idempotency_key": "k"}
    first, same, other = batch(keyed, keyed, {"message": "other", "idempotency_key": "k"})
    assert "replayed" not in first and same == {"index": 1, "job": first["job"], "replayed": True}
    assert other["error"]["code"] == "conflict" and len(stored(world)) == 1


def test_a_refused_item_uses_up_no_key(world: World) -> None:
    bad, good = batch({"message": "", "idempotency_key": "k"}, {"message": "m", "idempotency_key": "k"})
    assert bad["error"]["code"] == "validation_failed" and "replayed" not in good and len(stored(world)) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "ü", 5, [], "a\n"])
def test_an_invalid_key_refuses_only_its_item(world: World, key: Any) -> None:
    bad, _ = batch(HELLO | {"idempotency_key": key}, HELLO)
    assert [each["field"] for each in bad["error"]["details"]] == ["jobs[0].idempotency_key"] and len(stored(world)) == 1


def test_an_invalid_key_of_the_call_refuses_the_call(world: World) -> None:
    answered = send("POST", "/jobs/batch", json_body={"jobs": [HELLO]}, headers={"idempotency-key": "ü"})
    assert (answered.status, set(answered.fields)) == (400, {"Idempotency-Key"}) and not world.jobs.rows


def test_a_repeated_item_is_answered_though_it_is_out_of_bounds_now(world: World) -> None:
    job = {"message": "m", "execute_at": render(NOW - DAY + 1), "idempotency_key": "k"}
    (first,) = batch(job)
    world.clock.advance(60_000)
    again, unkeyed = batch(job, {name: value for name, value in job.items() if name != "idempotency_key"})
    assert again == first | {"replayed": True} and "error" in unkeyed


def test_a_repeated_call_creates_the_items_that_the_table_refused(world: World) -> None:
    class Throttled(MemoryJobs):
        refuses = True

        def put_many(self, jobs: Any) -> list[Written]:
            return [Written.REFUSED if self.refuses and number else Written.of(self.put(job)) for number, job in enumerate(jobs)]

    world.jobs = Throttled()
    first = batch(HELLO, HELLO, key="call")
    assert ["job" in result for result in first] == [True, False]
    world.jobs.refuses = False
    again = batch(HELLO, HELLO, key="call")
    assert again[0] == first[0] | {"replayed": True} and again[1]["job"]["id"] in stored(world) and len(stored(world)) == 2


# Expiry and tags


def job_of(world: World, answered: Answered) -> Any:
    assert answered.status == 201, answered.text
    return world.jobs.get(JobKey("sub-ann", answered.data["id"]))


def test_an_end_and_tags_are_stored_with_the_job(world: World) -> None:
    tags = ["a", "team:x/y", "Z_9.-"]
    body = HELLO | {"execute_at": render(NOW + 60_000), "expires_at": render(NOW + 60_001), "tags": tags}
    answered = post(body)
    job = job_of(world, answered)
    assert (job.start_by, job.spec.tags) == (NOW + 60_001, tuple(tags))
    assert (answered.data["expires_at"], answered.data["tags"]) == (render(NOW + 60_001), tags)


def test_by_default_a_job_has_no_end_and_no_tags(world: World) -> None:
    job = job_of(world, post())
    assert (job.start_by, job.spec.tags) == (None, ())


@pytest.mark.parametrize(
    "body",
    [
        {"expires_at": render(NOW)},
        {"execute_at": render(NOW + 60_000), "expires_at": render(NOW + 60_000)},
        {"execute_at": render(NOW - 60_000), "expires_at": render(NOW - 30_000)},
        {"expires_at": "2026-11-20T12:00:00"},
    ],
)
def test_an_end_before_the_start_or_in_the_past_is_refused(world: World, body: Mapping[str, str]) -> None:
    answered = post(HELLO | dict(body))
    assert (answered.status, set(answered.fields)) == (400, {"expires_at"}) and not world.jobs.rows
    (item,) = batch(HELLO | dict(body))
    assert [each["field"] for each in item["error"]["details"]] == ["jobs[0].expires_at"]


@pytest.mark.parametrize("tags", [["a"] * 2, [f"t{number}" for number in range(11)], [""], ["x" * 33], ["a b"], ["ü"], ["a\n"], "a", [5]])
def test_tags_that_break_a_rule_are_refused(world: World, tags: Any) -> None:
    answered = post(HELLO | {"tags": tags})
    assert answered.status == 400 and all(field.partition(".")[0] == "tags" for field in answered.fields) and not world.jobs.rows


def test_ten_tags_of_32_characters_are_accepted(world: World) -> None:
    assert len(job_of(world, post(HELLO | {"tags": [f"{number:032}" for number in range(10)]})).spec.tags) == 10
