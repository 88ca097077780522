"""Invalid calls over the real gateway: each gets the documented status and message, and changes nothing."""

import json
import time
from typing import Any

import pytest
from punctual import ApiError, Punctual

from tests.system.conftest import System, ended, sent, soon

JOBS = "/jobs"
LOG = {"type": "log", "payload": {"message": "x"}}


@pytest.mark.parametrize(
    ("body", "status", "code", "says"),
    [
        pytest.param(LOG | {"type": "nonsense"}, 400, "validation_failed", ["type", "log", "http"], id="unknown type"),
        pytest.param(LOG | {"colour": "red"}, 400, "validation_failed", ["colour"], id="unknown field"),
        pytest.param({"type": "log", "payload": {"text": "x"}}, 400, "validation_failed", ["payload"], id="unknown payload field"),
        pytest.param(LOG | {"execute_at": "2026-11-20T10:00:00"}, 400, "validation_failed", ["execute_at", "offset"], id="no offset"),
        pytest.param(LOG | {"execute_at": "2020-01-01T00:00:00Z"}, 400, "validation_failed", ["execute_at", "day"], id="too old"),
        pytest.param(LOG | {"max_attempts": 0}, 400, "validation_failed", ["max_attempts"], id="no attempts"),
        pytest.param(b'{"type": ', 400, "malformed_json", [], id="malformed"),
        pytest.param({"type": "log", "payload": {"message": "x" * 300_000}}, 413, "payload_too_large", ["256"], id="300 KB"),
    ],
)
def test_an_invalid_job_is_refused_with_its_field_and_rule(client: Punctual, body: Any, status: int, code: str, says: list[str]) -> None:
    before = _stored(client)
    got, answer = sent(client, "POST", JOBS, body)
    assert (got, answer["success"], answer["error"]["code"]) == (status, False, code), answer
    assert answer["error"]["request_id"]
    text = json.dumps(answer["error"]).lower()
    assert all(word in text for word in says), answer
    assert _stored(client) == before


def _stored(client: Punctual) -> set[str]:
    """Return the ids of all posted jobs. Reads upcoming jobs first: a job that falls due in between is then in the second listing."""
    return {job.id for upcoming in (True, False) for job in client.jobs.list(upcoming=upcoming) if job.task_id is None}


def test_a_past_instant_is_due_now_and_marked_late(client: Punctual) -> None:
    (job,) = ended(client, [client.jobs.create("log", {"message": "late"}, execute_at=soon(-60)).raw], 30)
    assert (job["status"], job["late"]) == ("succeeded", True)


@pytest.mark.parametrize("token", [None, "nonsense", "eyJhbGciOiJub25lIn0.e30."])
def test_without_a_valid_token_the_gateway_refuses(system: System, token: str | None) -> None:
    caller = Punctual(system.address, token=token)
    status, answer = sent(caller, "GET", JOBS)
    assert (status, answer) == (401, {"message": "Unauthorized"})


def test_an_expired_token_is_refused(system: System) -> None:
    pool = {"UserPoolId": system.outputs["UserPoolId"], "ClientId": system.outputs["UserPoolClientId"]}
    cognito = system.aws("cognito-idp")
    known = cognito.describe_user_pool_client(**pool)["UserPoolClient"]
    kept = {name: known[name] for name in ("AccessTokenValidity", "TokenValidityUnits", "ExplicitAuthFlows") if name in known}
    try:
        cognito.update_user_pool_client(**pool, **(kept | {"AccessTokenValidity": 1, "TokenValidityUnits": {"AccessToken": "seconds"}}))
        caller = Punctual(system.address, token=system.client().token())
    finally:
        cognito.update_user_pool_client(**pool, **kept)
    time.sleep(2)  # the token's life, by the gateway's clock
    assert sent(caller, "GET", JOBS)[0] == 401


def test_a_wrong_password_and_an_unknown_user_get_the_same_answer(system: System) -> None:
    answers = [
        sent(system.anonymous(), "POST", "/auth/login", {"username": name, "password": "wrong-Password-1"})
        for name in (system.stack.username, "nobody")
    ]
    for _, answer in answers:
        answer["error"].pop("request_id")
    assert answers[0] == answers[1]
    assert answers[0][0] == 401


def test_another_users_job_is_not_found(system: System, client: Punctual) -> None:
    job = client.jobs.create("log", {"message": "mine"}, execute_at=soon(3_600)).raw
    other = system.client("other")
    for call in (other.jobs.get, other.jobs.cancel):
        with pytest.raises(ApiError) as refused:
            call(job["id"])
        assert (refused.value.status, refused.value.code) == (404, "not_found")
    assert client.jobs.cancel(job["id"]).status == "cancelled"
    with pytest.raises(ApiError) as unknown:
        client.jobs.get("nonsense")
    assert unknown.value.status == 404


def test_a_finished_job_cannot_be_cancelled(client: Punctual) -> None:
    (job,) = ended(client, [client.jobs.create("log", {"message": "done"}).raw], 30)
    with pytest.raises(ApiError) as refused:
        client.jobs.cancel(job["id"])
    assert (refused.value.status, refused.value.code) == (409, "conflict")
