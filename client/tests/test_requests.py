"""Repeats, errors, tokens and pages of both clients."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
import pytest
from fake_api import JOB, KEY, Flavor, answer, refusal

import punctual
from punctual import profiles
from punctual.profiles import Profile


class Api:
    """Answers one response after the other, the last one again and again; an exception is raised."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, Exception):
            raise found
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("Idempotency-Key") for request in self.requests]


BROKEN = httpx.RemoteProtocolError("peer closed connection")
LOST = httpx.ReadTimeout("no answer")


@pytest.mark.parametrize("first", [refusal(429), refusal(503), refusal(502), httpx.Response(504, text="gateway"), BROKEN, LOST])
def test_a_create_is_repeated_with_the_same_key(flavor: Flavor, first: Any) -> None:
    api = Api(first, answer(JOB, 201))
    job = flavor.run(api, lambda c: c.jobs.create(message="m"))
    assert job.id == JOB["id"] and len(api.requests) == 2
    assert api.keys[0] and api.keys[0] == api.keys[1]
    assert api.requests[0].content == api.requests[1].content


def test_a_put_by_key_is_repeated_with_the_same_idempotency_key(flavor: Flavor) -> None:
    api = Api(refusal(503), answer(JOB, 201))
    flavor.run(api, lambda c: c.jobs.create(message="m", key="order-17"))
    assert [request.method for request in api.requests] == ["PUT", "PUT"] and api.keys[0] and api.keys[0] == api.keys[1]


def test_two_creates_have_two_keys(flavor: Flavor) -> None:
    api = Api(answer(JOB, 201))
    flavor.run(api, lambda c: c.jobs.create(message="m"))
    flavor.run(api, lambda c: c.jobs.create(message="m"))
    assert len(set(api.keys)) == 2


@pytest.mark.parametrize("first", [refusal(503), BROKEN, LOST])
def test_a_request_that_is_not_safe_to_repeat_is_sent_once(flavor: Flavor, first: Any) -> None:
    api = Api(first, answer(JOB))
    with pytest.raises((punctual.NoAnswer, punctual.Unavailable)):
        flavor.run(api, lambda c: c.jobs.retry("01A"))
    assert len(api.requests) == 1


@pytest.mark.parametrize("first", [refusal(429), httpx.ConnectError("refused")])
def test_a_request_that_was_not_handled_is_always_repeated(flavor: Flavor, first: Any) -> None:
    api = Api(first, answer(JOB))
    assert flavor.run(api, lambda c: c.jobs.retry("01A")).id == JOB["id"]


def test_the_pause_respects_retry_after(flavor: Flavor) -> None:
    soon = datetime.fromtimestamp(flavor.times.at + 9, timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    api = Api(refusal(429, Retry_After="7"), refusal(429, Retry_After=soon), answer(JOB))
    flavor.run(api, lambda c: c.jobs.get("01A"))
    first, second = flavor.times.slept
    assert 7 <= first <= 7.25 and 9 - first <= second <= 9.5 - first + 1


@pytest.mark.parametrize("asked", ["soon", "-7", "7.5", "Fri, 20 Nov 99999 10:00:07 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", ""])
def test_a_malformed_retry_after_is_ignored(flavor: Flavor, asked: str) -> None:
    api = Api(refusal(429, Retry_After=asked), answer(JOB))
    flavor.run(api, lambda c: c.jobs.get("01A"))
    assert flavor.times.slept[0] <= 0.25


def test_repeats_end_after_max_retries_or_the_time_out(flavor: Flavor) -> None:
    api = Api(refusal(503))
    with pytest.raises(punctual.Unavailable):
        flavor.run(api, lambda c: c.jobs.get("01A"), max_retries=3)
    assert len(api.requests) == 4
    api = Api(refusal(429, Retry_After="40"))
    with pytest.raises(punctual.QuotaExceeded) as refused:
        flavor.run(api, lambda c: c.jobs.get("01A"), timeout=60)
    assert len(api.requests) == 2 and refused.value.retry_after == 40


def test_no_answer_names_the_request(flavor: Flavor) -> None:
    with pytest.raises(punctual.NoAnswer, match=r"GET https://api.example.com/api/v1/jobs/01A: no answer after 2 tries: peer closed"):
        flavor.run(Api(BROKEN), lambda c: c.jobs.get("01A"), max_retries=1)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, punctual.InvalidRequest),
        (422, punctual.InvalidRequest),
        (413, punctual.InvalidRequest),
        (403, punctual.NotAllowed),
        (404, punctual.NotFound),
        (410, punctual.NotFound),
        (409, punctual.Conflict),
        (412, punctual.Conflict),
        (418, punctual.ApiError),
    ],
)
def test_a_refusal_is_an_exception_with_its_fields(flavor: Flavor, status: int, error: type[punctual.ApiError]) -> None:
    api = Api(refusal(status, "validation_failed", "bad", [{"field": "payload.url", "rule": "must be a URL"}]))
    with pytest.raises(error) as refused:
        flavor.run(api, lambda c: c.jobs.create(http="x"))
    found = refused.value
    assert (found.status, found.code, found.request_id) == (status, "validation_failed", "r-1")
    assert found.details == (punctual.FieldError("payload.url", "must be a URL"),)
    assert str(found) == f"{status} validation_failed: bad\n  payload.url: must be a URL"


def test_an_answer_of_another_server_is_recognized(flavor: Flavor) -> None:
    with pytest.raises(punctual.UnexpectedAnswer, match="is the address right"):
        flavor.run(Api(httpx.Response(200, text="<html>")), lambda c: c.health())
    with pytest.raises(punctual.NotFound, match="not_found: Not Found"):
        flavor.run(Api(httpx.Response(404, json={"message": "Not Found"})), lambda c: c.health())
    with pytest.raises(punctual.UnexpectedAnswer, match="answered no list"):
        flavor.run(Api(answer({"jobs": []})), lambda c: c.jobs.list())
    with pytest.raises(punctual.UnexpectedAnswer, match="it has no 'id'"):
        flavor.run(Api(answer({"type": "http"})), lambda c: c.jobs.get("01A"))
    with pytest.raises(punctual.UnexpectedAnswer, match="scheduled_at has an unexpected value"):
        flavor.run(Api(answer(JOB | {"scheduled_at": "tomorrow"})), lambda c: c.jobs.get("01A"))


def test_unknown_fields_are_ignored_and_kept_in_raw(flavor: Flavor) -> None:
    job = flavor.run(Api(answer(JOB | {"new": 1, "status": "paused"})), lambda c: c.jobs.get("01A"))
    assert job.raw["new"] == 1 and job.status == "paused"
    assert job.scheduled_at == datetime(2026, 11, 20, 10, tzinfo=timezone.utc)


def test_a_deletion_that_is_repeated_has_succeeded(flavor: Flavor) -> None:
    assert flavor.run(Api(LOST, refusal(404)), lambda c: c.tasks.delete("01A")) is None
    with pytest.raises(punctual.NotFound):
        flavor.run(Api(refusal(404)), lambda c: c.tasks.delete("01A"))


def test_a_list_reads_all_pages_up_to_the_limit(flavor: Flavor) -> None:
    def pages(request: httpx.Request) -> httpx.Response:
        at, size = int(request.url.params.get("cursor", 0)), int(request.url.params["limit"])
        return answer({"items": [JOB | {"id": str(at + n)} for n in range(size)], "cursor": str(at + size) if at + size < 250 else None})

    assert [job.id for job in flavor.run(pages, lambda c: c.jobs.list(limit=230))] == [str(n) for n in range(230)]
    assert len(flavor.run(pages, lambda c: c.jobs.list())) == 300


def test_waiting_ends_with_the_job_or_the_time_out(flavor: Flavor) -> None:
    ended = JOB | {"status": "succeeded", "ended_at": "2026-11-20T10:00:01.000Z"}
    job = flavor.run(Api(answer(JOB), answer(JOB), answer(ended)), lambda c: c.jobs.wait("01A", timeout=5))
    assert job.succeeded and flavor.times.slept == [0.5, 0.5]
    with pytest.raises(punctual.WaitTimeout, match="01A has not ended within 2 s"):
        flavor.run(Api(answer(JOB)), lambda c: c.jobs.wait("01A", timeout=2))


def test_waiting_goes_on_through_an_outage_but_not_without_a_first_answer(flavor: Flavor) -> None:
    ended = JOB | {"status": "succeeded", "ended_at": "2026-11-20T10:00:01.000Z"}
    job = flavor.run(Api(answer(JOB), *[LOST] * 20, refusal(503), answer(ended)), lambda c: c.jobs.wait("01A"), max_retries=3)
    assert job.succeeded
    with pytest.raises(punctual.WaitTimeout):
        flavor.run(Api(answer(JOB), LOST), lambda c: c.jobs.wait("01A", timeout=300))
    with pytest.raises(punctual.NoAnswer):
        flavor.run(Api(LOST), lambda c: c.jobs.wait("01A", timeout=300))


# Requests


def body(flavor: Flavor, call: Any, reply: Any = JOB) -> tuple[str, dict[str, Any]]:
    api = Api(answer(reply))
    flavor.run(api, call)
    return f"{api.requests[0].method} {api.requests[0].url.raw_path.decode()}", json.loads(api.requests[0].content)


def test_times_and_contents_of_a_job(flavor: Flavor) -> None:
    at = datetime(2026, 11, 20, 11, tzinfo=timezone(timedelta(hours=1)))
    assert body(flavor, lambda c: c.jobs.create(message="m", execute_at=at))[1] == {
        "message": "m",
        "execute_at": "2026-11-20T10:00:00.000Z",
    }
    assert body(flavor, lambda c: c.jobs.create(message="m", delay=timedelta(minutes=30)))[1] == {"message": "m", "delay_seconds": 1800}
    assert body(flavor, lambda c: c.jobs.create(message="m", delay=0.25))[1] == {"message": "m", "delay_seconds": 0.25}
    called = {"method": "PUT", "url": "https://example.com"}
    assert body(flavor, lambda c: c.jobs.create(http=called))[1] == {"type": "http", "payload": called}
    assert body(flavor, lambda c: c.jobs.create(target="billing", payload={"id": 7}))[1] == {"target": "billing", "payload": {"id": 7}}
    assert body(flavor, lambda c: c.jobs.create(message="m", key="order/17"))[0] == "PUT /api/v1/jobs/by-key/order%2F17"


def test_a_dry_run_of_a_put_answers_the_changes(flavor: Flavor) -> None:
    task = {name: JOB[name] for name in ("id", "type", "payload", "created_at", "max_attempts", "timeout_seconds", "retry")}
    task |= {"name": "n", "status": "active", "generation": 1, "overlap": "skip", "updated_at": JOB["created_at"]}
    changes = [{"field": "schedule.cron", "before": "0 2 * * *", "after": None}]
    api = Api(answer({**task, "outcome": "updated", "changes": changes}), answer({**task, "outcome": "updated", "changes": None}))
    found = flavor.run(api, lambda c: c.tasks.put("k", name="n", message="m", dry_run=True))
    assert (found.outcome, [(each.field, each.before, each.after) for each in found.changes]) == (
        "updated",
        [("schedule.cron", "0 2 * * *", None)],
    )
    assert flavor.run(api, lambda c: c.tasks.put("k", name="n", message="m")).changes == ()
    assert [dict(each.url.params) for each in api.requests] == [{"dry_run": "true"}, {}]


def test_wrong_arguments_are_refused_before_a_request(flavor: Flavor) -> None:
    api = Api(answer(JOB))
    for call in (
        lambda c: c.jobs.create(message="m", execute_at=datetime(2026, 11, 20)),
        lambda c: c.jobs.create(http="https://example.com", message="m"),
        lambda c: c.jobs.get(),
        lambda c: c.jobs.get("01A", key="k"),
        lambda c: c.jobs.get(""),
        lambda c: c.jobs.create(type="http", payload={"x": float("nan")}),
    ):
        with pytest.raises(ValueError):
            flavor.run(api, call)
    with pytest.raises(TypeError):
        flavor.run(api, lambda c: c.jobs.create(message=object()))
    assert api.requests == []


def test_a_batch_is_split_and_busy_items_are_sent_again(flavor: Flavor) -> None:
    sizes: list[int] = []
    keys: set[str] = set()

    def batches(request: httpx.Request) -> httpx.Response:
        jobs = json.loads(request.content)["jobs"]
        sizes.append(len(jobs))
        results: list[dict[str, Any]] = []
        for index, job in enumerate(jobs):
            busy = job["message"] == "busy" and job["idempotency_key"] not in keys
            keys.add(job["idempotency_key"])
            bad = job["message"] == "bad"
            error = {"code": "unavailable" if busy else "validation_failed", "message": "m", "details": []}
            accepted = {"id": job["message"], "status": "scheduled", "scheduled_at": JOB["scheduled_at"]}
            results.append({"index": index, "error": error} if busy or bad else {"index": index, "job": accepted})
        done = sum("job" in one for one in results)
        return answer({"accepted": done, "refused": len(results) - done, "results": results})

    wanted = [{"message": "busy" if n == 1500 else "bad" if n == 3 else str(n)} for n in range(2100)]
    result = flavor.run(batches, lambda c: c.jobs.create_many(wanted))
    assert sizes == [1000, 1000, 1, 100]
    assert (result.accepted, result.refused) == (2099, 1)
    assert [one.index for one in result.results] == list(range(2100))
    assert [one.index for one in result.errors] == [3] and result.jobs[-1].id == "2099"
    with pytest.raises(punctual.InvalidRequest, match="1 of 2100 jobs were refused; the first is number 3: m"):
        result.all_jobs()
    sizes.clear()
    assert len(flavor.run(batches, lambda c: c.jobs.create_many([{"message": "x" * 200_000}] * 40)).all_jobs()) == 40
    assert sizes == [9, 9, 9, 9, 4]


# Tokens


def test_a_password_signs_in_once_and_again_after_a_401(flavor: Flavor) -> None:
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.path.rsplit("/", 1)[1])
        if request.url.path.endswith("/auth/login"):
            assert json.loads(request.content) == {"username": "ann", "password": "secret"}
            return answer({"token": f"t{seen.count('login')}", "expires_in": 3600})
        return answer({"version": "1", "api": "1"}) if request.headers["Authorization"] == "Bearer t2" else refusal(401)

    assert flavor.run(handle, lambda c: c.version(), username="ann", password="secret").version == "1"
    assert seen == ["login", "version", "login", "version"]


def test_a_password_with_a_second_factor_is_no_credential_of_a_program(flavor: Flavor) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(202, json={"success": True, "data": {"challenge": "totp", "session": "s"}})

    with pytest.raises(punctual.NotAuthenticated, match="second factor"):
        flavor.run(handle, lambda c: c.version(), username="ann", password="secret")


def test_a_token_is_renewed_before_it_expires(flavor: Flavor) -> None:
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.path.rsplit("/", 1)[1])
        if seen[-1] == "login":
            flavor.times.at += 1
            return answer({"token": "abc", "expires_in": 3600})
        assert request.headers["Authorization"] == "Bearer abc"
        flavor.times.at += 3000
        return answer({"version": "1", "api": "1"})

    ann = {"username": "ann", "password": "secret"}
    if flavor.kind == "sync":
        flavor.run(handle, lambda c: [c.version() for _ in range(3)], **ann)
    else:

        async def thrice(c: Any) -> None:
            for _ in range(3):
                await c.version()

        flavor.run(handle, thrice, **ann)
    assert seen == ["login", "version", "version", "login", "version"]


def test_a_refused_token_without_another_way_is_an_error(flavor: Flavor) -> None:
    with pytest.raises(punctual.NotAuthenticated):
        flavor.run(Api(refusal(401)), lambda c: c.version())


def test_a_profile_is_used_and_keeps_the_renewed_token(flavor: Flavor) -> None:
    profiles.save(Profile("dev", "https://api.example.com", username="ann", token="old", refresh_token="r", expires_at=flavor.times.at - 1))

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/auth/refresh"):
            assert json.loads(request.content) == {"refresh_token": "r"}
            return answer({"token": "new", "expires_in": 3600})
        assert request.headers["Authorization"] == "Bearer new"
        return answer({"version": "1", "api": "1"})

    flavor.run(handle, lambda c: c.version(), profile="dev")
    stored = profiles.find("dev")
    assert stored is not None and (stored.token, stored.refresh_token, stored.expires_at) == ("new", "r", flavor.times.at + 3600)
    assert oct(profiles.path().stat().st_mode & 0o777) == "0o600"
    with pytest.raises(punctual.NotAuthenticated, match="sign in again with `punctual login`"):
        profiles.save(Profile("dev", "https://api.example.com", token="old", refresh_token="r", expires_at=0))
        flavor.run(Api(refusal(401)), lambda c: c.version(), profile="dev")


def test_a_logout_forgets_the_tokens(flavor: Flavor) -> None:
    profiles.save(Profile("dev", "https://api.example.com", username="ann", token="t", refresh_token="r"))
    api = Api(answer({"signed_out": True}))
    flavor.run(api, lambda c: c.logout(everywhere=False), profile="dev")
    assert json.loads(api.requests[0].content) == {"everywhere": False, "refresh_token": "r"}
    stored = profiles.find("dev")
    assert stored is not None and (stored.token, stored.refresh_token) == (None, None)


def test_a_changed_password_continues_the_session(flavor: Flavor) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/auth/login"):
            return answer({"token": "first", "expires_in": 3600})
        return answer({"changed": True, "token": "second", "expire": JOB["created_at"], "refresh_token": "r2"})

    flavor.run(handle, lambda c: c.change_password("old", "new"), username="ann", password="old")


# The sources of the settings


def test_settings_come_from_the_environment_then_from_the_profile(flavor: Flavor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCTUAL_URL", "https://env.example.com/api/v1/")
    monkeypatch.setenv("PUNCTUAL_TOKEN", "from-env")
    api = Api(answer({"version": "1", "api": "1"}))
    flavor.run(api, lambda c: c.version(), url="", anonymous=True)
    assert str(api.requests[0].url) == "https://env.example.com/api/v1/version"
    assert api.requests[0].headers["Authorization"] == "Bearer from-env"
    flavor.run(api, lambda c: c.version(), url="https://other.example.com", token="mine")
    assert api.requests[1].headers["Authorization"] == "Bearer mine"


def test_credentials_of_a_profile_go_to_its_address_only(flavor: Flavor) -> None:
    profiles.save(Profile("dev", "https://dev.example.com", token="secret"))
    api = Api(answer({"version": "1", "api": "1"}))
    flavor.run(api, lambda c: c.version(), url="https://evil.example.com", anonymous=True)
    assert "Authorization" not in api.requests[0].headers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": ""}, "there is no address: run `punctual login"),
        ({"url": "api.example.com"}, "is no address: it begins with https://"),
        ({"url": "https://a.example", "key": "secret"}, "the key .PUNCTUAL_KEY. is none: an API key has the form"),
        ({"url": "https://a.example", "token": KEY}, "the token is an API key: give it as key"),
        ({"url": "https://a.example", "token": "t", "owner": "a/b"}, "the owner 'a/b' is no id: it has 1 to 64 letters"),
        ({"url": "https://a.example", "username": "ann"}, "username needs password"),
        ({"profile": "prod"}, "there is no profile 'prod'"),
    ],
)
def test_missing_settings_say_what_to_do(options: dict[str, Any], message: str) -> None:
    with pytest.raises(punctual.NotConfigured, match=message):
        punctual.Punctual(**options)


def test_a_broken_file_of_profiles_says_what_to_do() -> None:
    profiles.path().write_text("{")
    with pytest.raises(punctual.NotConfigured, match="delete it, then sign in again"):
        profiles.load()


def test_raw_requests(flavor: Flavor) -> None:
    api = Api(refusal(422))
    response = flavor.run(api, lambda c: c.send("POST", "/jobs", b"{"))
    assert response.status_code == 422 and api.requests[0].content == b"{"
    assert flavor.run(Api(answer({"a": 1})), lambda c: c.request("GET", "/me", query={"x": True})) == {"a": 1}


def test_a_schedule_has_one_expression_or_several() -> None:
    several = {"cron": ["@daily", "0 9 LW * *"], "start": "2026-12-07T08:00:00Z"}
    assert punctual.Schedule.from_json(several).cron == ("@daily", "0 9 LW * *")
    assert punctual.Schedule.from_json({"cron": "@daily"}).cron == "@daily"
    every = punctual.Schedule.from_json({"every": "2 weeks", "times": "09:00", "weekdays": ["MON", "WED"]})
    assert (every.every, every.times, every.weekdays, every.cron) == ("2 weeks", "09:00", ("MON", "WED"), None)


def test_parts_of_a_schedule_are_sent_as_they_are(flavor: Flavor) -> None:
    api = Api(answer({"runs": []}))
    flavor.run(api, lambda c: c.schedules.preview(every="2 weeks", weekdays=["MON"], times=("09:00", "18:30"), count=3))
    flavor.run(api, lambda c: c.schedules.preview(cron=["@daily", "@hourly"], count=3))
    assert [json.loads(each.content) for each in api.requests] == [
        {"every": "2 weeks", "weekdays": ["MON"], "times": ["09:00", "18:30"], "count": 3},
        {"cron": ["@daily", "@hourly"], "count": 3},
    ]
