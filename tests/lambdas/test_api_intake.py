"""The routes of the dead letters of the intake."""

import json
from dataclasses import replace
from typing import Any

import pytest

from lambdas import _runtime
from scheduler.accounts.quota import FRESH_MS
from scheduler.model.account import Profile, Quotas
from scheduler.model.intake import PRINCIPALS, IntakeLetter
from scheduler.model.rules import Rules
from tests.lambdas.gateway import Answered, send
from tests.lambdas.test_handler_intake import PRINCIPAL, Stage, message, receive

LETTERS = "/intake/dead-letters"
OPERATOR, ADMINISTRATOR = "operator", "administrator"


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage in which ann's role sends to the queue `jobs`."""
    made = Stage()
    made.rules = Rules(intake=True)
    made.owners.put_principal(replace(PRINCIPAL, owner="sub-ann"), new=False)
    monkeypatch.setattr(_runtime, "api", lambda: made)
    return made


def refused(stage: Stage, body: Any = "{", id: str = "m1", **fields: Any) -> IntakeLetter:
    receive(message(body, id, **fields))
    letter = stage.intake_letters.get(id)
    assert letter is not None
    return letter


def retry(id: str = "m1", body: Any = None, **options: Any) -> Answered:
    return send("POST", f"{LETTERS}/{id}/retry", json_body={} if body is None else {"body": body}, **options)


def test_a_stage_without_an_intake_has_no_list(stage: Stage) -> None:
    stage.rules = Rules()
    assert send("GET", LETTERS).status == 404


def test_dead_letters_are_listed_and_shown(stage: Stage) -> None:
    refused(stage, {"message": "x", "delay": "soon"})
    refused(stage, "{", "m2", queue="orders")
    (listed,) = send("GET", LETTERS).data["items"]
    assert (listed["message_id"], listed["queue"], listed["owner"], listed["received"]) == ("m1", "jobs", "sub-ann", 1)
    assert [each["field"] for each in listed["errors"]] == ["delay"] and "body" not in listed
    shown = send("GET", f"{LETTERS}/m1").data
    assert shown == listed | {"body": '{"message": "x", "delay": "soon"}'}


def test_a_list_has_pages(stage: Stage) -> None:
    for number in range(3):
        refused(stage, "{", f"m{number}")
    first = send("GET", LETTERS, query={"limit": "2"}).data
    rest = send("GET", LETTERS, query={"limit": "2", "cursor": first["cursor"]}).data
    assert [each["message_id"] for each in first["items"] + rest["items"]] == ["m2", "m1", "m0"] and not rest["has_more"]
    assert [*send("GET", LETTERS, query={"cursor": "x"}).fields] == ["cursor"]


def test_nobody_sees_or_changes_the_dead_letters_of_others(stage: Stage) -> None:
    refused(stage, "{", "m1", queue="orders")
    refused(stage, "{", "m2", sender="AROANOBODY")
    for id in ("m1", "m2", "m3"):
        assert send("GET", f"{LETTERS}/{id}").status == 404
        assert retry(id, {"message": "x"}).status == 404
        assert send("DELETE", f"{LETTERS}/{id}").status == 404
    assert send("GET", LETTERS, query={"unknown": "true"}).status == 403
    assert len(stage.letters) == 2 and not stage.stored


def test_operators_see_those_of_owners_and_of_unknown_senders(stage: Stage) -> None:
    refused(stage, "{", "m1", queue="orders")
    refused(stage, "{", "m2", sender="AROANOBODY")
    of_eve = send("GET", LETTERS, query={"owner": "eve"}, role=OPERATOR).data["items"]
    unknown = send("GET", LETTERS, query={"unknown": "true"}, role=OPERATOR).data["items"]
    assert [each["message_id"] for each in of_eve + unknown] == ["m1", "m2"]
    assert send("GET", f"{LETTERS}/m2", role=OPERATOR).data["owner"] is None
    assert retry("m2", role=OPERATOR).status == 404, "operators change nothing"


def test_a_corrected_message_becomes_a_job(stage: Stage) -> None:
    letter = refused(stage, {"message": "x", "delay": "soon"})
    done = retry(body={"message": "x", "delay": "1m"})
    assert (done.status, done.data["accepted"], done.data["refused"]) == (200, 1, 0)
    (job,) = stage.stored
    assert (job.owner, job.scheduled_at) == ("sub-ann", letter.message.sent_at + 60_000)
    assert send("GET", LETTERS).data["items"] == [] and retry().status == 404


def test_a_wrong_correction_changes_nothing(stage: Stage) -> None:
    before = refused(stage)
    done = retry(body={"message": "x", "delay": "later"})
    assert (done.status, [*done.fields]) == (400, ["delay"])
    assert retry().status == 400
    assert stage.letters == [before] and not stage.stored


def test_a_retry_that_is_sent_twice_makes_one_job(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(stage)
    monkeypatch.setattr(stage.intake_letters, "remove", lambda letter: False)
    assert [retry(body={"message": "x"}).status for _ in range(2)] == [409, 409]
    assert len(stage.stored) == 1


def test_a_message_that_is_valid_by_now_is_retried_as_it_was_sent(stage: Stage) -> None:
    stage.users.set_disabled("eve", 1)
    refused(stage, {"message": "x"}, queue="orders")
    assert retry(query={"owner": "eve"}, role=ADMINISTRATOR).status == 403
    stage.users.set_disabled("eve", None)
    stage.clock.sleep_until(stage.clock.now() + FRESH_MS)
    assert retry(query={"owner": "eve"}, role=ADMINISTRATOR).status == 200
    assert [job.owner for job in stage.stored] == ["eve"]


def test_an_unknown_sender_is_looked_up_at_each_retry(stage: Stage) -> None:
    refused(stage, {"message": "x"}, sender="AROANEW:session")
    assert retry(role=ADMINISTRATOR).status == 403
    stage.owners.put_principal(replace(PRINCIPAL, arn="new", unique_id="AROANEW", owner="eve"), new=True)
    stage.clock.sleep_until(stage.clock.now() + 1_000)
    assert retry(role=ADMINISTRATOR).status == 200
    assert [job.owner for job in stage.stored] == ["eve"]


def test_the_refused_jobs_of_a_batch_are_retried_alone(stage: Stage) -> None:
    refused(stage, {"jobs": [{"message": "a"}, {"message": "b", "delay": "soon"}, {"message": "c", "delay": "soon"}]})
    part = retry(body={"jobs": [{"message": "b"}, {"message": "c", "delay": "soon"}]})
    assert (part.status, part.data["accepted"], part.data["refused"]) == (207, 1, 1)
    assert part.data["results"][1]["error"]["code"] == "validation_failed"
    left = send("GET", f"{LETTERS}/m1").data
    assert left["accepted"] == 2 and json.loads(left["body"]) == {"jobs": [{"message": "c", "delay": "soon"}]}
    assert [each["field"] for each in left["errors"]] == ["jobs[0].delay"]
    assert retry(body={"jobs": [{"message": "c"}]}).status == 200
    assert sorted(job.spec.payload["message"] for job in stage.stored) == ["a", "b", "c"]


def test_a_cut_body_cannot_be_retried_as_it_is(stage: Stage) -> None:
    refused(stage, {"message": "x" * 70_000, "delay": "soon"})
    assert send("GET", f"{LETTERS}/m1").data["cut"]
    assert [*retry().fields] == ["body"]
    assert retry(body={"message": "x"}).status == 200


def test_a_retry_is_within_the_quota(stage: Stage) -> None:
    refused(stage)
    stage.users.set_quotas("sub-ann", Quotas(max_jobs=1))
    stage.quotas.forget("sub-ann")
    assert retry(body={"jobs": [{"message": "x"}, {"message": "y"}]}).status == 429
    assert stage.letters and not stage.stored


def test_a_dead_letter_is_deleted_once(stage: Stage) -> None:
    refused(stage)
    gone = send("DELETE", f"{LETTERS}/m1")
    assert (gone.status, gone.data["message_id"]) == (200, "m1")
    assert send("DELETE", f"{LETTERS}/m1").status == 404
    assert receive(message({"message": "x"}, receives=2)) == [] and not stage.stored


def test_changes_are_in_the_audit_trail_without_payloads(stage: Stage) -> None:
    for id in ("m1", "m2"):
        refused(stage, "{", id)
    retry("m1", {"message": "secret"})
    send("DELETE", f"{LETTERS}/m2")
    entries = {entry.action: entry for entry in stage.trail.rows.values()}
    assert {action: entry.object for action, entry in entries.items()} == {"intake.retry": "m1", "intake.delete": "m2"}
    assert "secret" not in json.dumps(entries["intake.retry"].changes)


def test_the_queues_name_of_the_option_for_principals_is_no_owner(stage: Stage) -> None:
    stage.users.rows[PRINCIPALS] = Profile(PRINCIPALS, name="a user")
    refused(stage, "{", sender="AROANOBODY")
    assert stage.letters[0].owner is None
