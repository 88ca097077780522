"""Users, API keys, teams, quotas, slow logins and the audit trail, on the deployed stack with IAM enforced."""

import secrets
import statistics
import sys
import threading
import time
from typing import Any

import httpx
import pytest
from punctual import ApiError, Punctual

from tests.system.conftest import System, sent

PASSWORD = f"{secrets.token_urlsafe(15)}-aA1"


def made(system: System, name: str, **options: Any) -> tuple[dict[str, Any], Punctual]:
    """Create a user through the API as the administrator; returns the user and a signed-in client."""
    body = {"username": f"{name}-{secrets.token_hex(4)}", "password": PASSWORD, **options}
    user: dict[str, Any] = system.client().request("POST", "/users", body)
    return user, system.sign_in(body["username"], PASSWORD)


def refused(call: Any) -> ApiError:
    with pytest.raises(ApiError) as error:
        call()
    return error.value


def test_a_new_user_signs_in_and_sees_only_their_own_jobs(system: System) -> None:
    admin = system.client()
    ann, of_ann = made(system, "ann", job_weight=2.5)
    _, of_ben = made(system, "ben")
    me = of_ann.request("GET", "/me")
    assert (me["id"], me["role"], me["job_weight"]) == (ann["id"], "user", 2.5)
    job = of_ann.jobs.create("log", {"message": "mine"}, execute_at="2030-01-01T00:00:00Z").raw
    assert refused(lambda: of_ben.jobs.get(job["id"]).raw).status == 404
    assert refused(lambda: of_ben.request("GET", f"/jobs/{job['id']}", query={"owner": ann["id"]})).status == 403
    assert refused(lambda: of_ben.request("GET", "/users")).status == 403
    assert admin.request("GET", f"/jobs/{job['id']}", query={"owner": ann["id"]})["id"] == job["id"]
    admin.request("POST", f"/jobs/{job['id']}/cancel", query={"owner": ann["id"]})
    entries = of_ann.request("GET", "/me/audit")["items"]
    assert [(entry["action"], entry["object"], entry["status"]) for entry in entries] == [("job.cancel", job["id"], 200)]
    assert entries[0]["actor_name"] == system.stack.username
    everybodys = admin.request("GET", "/audit", query={"action": "user", "limit": 100})["items"]
    assert ann["id"] in {entry["object"] for entry in everybodys if entry["action"] == "user.create"}
    listed = {user["id"]: user for user in admin.request("GET", "/users", query={"limit": 60})["items"]}
    assert listed[ann["id"]]["job_weight"] == 2.5


def test_a_changed_role_applies_within_half_a_minute(system: System) -> None:
    admin = system.client()
    user, client = made(system, "olga")
    assert refused(lambda: client.request("GET", "/users")).status == 403
    admin.request("PATCH", f"/users/{user['id']}", {"role": "operator"})
    deadline = time.monotonic() + 35
    while sent(client, "GET", "/users")[0] == 403 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert client.request("GET", "/users")["items"] and client.request("GET", "/me")["role"] == "operator"
    assert refused(lambda: client.request("POST", "/system/pause", {})).status == 403
    admin.request("PATCH", f"/users/{user['id']}", {"role": "user"})
    deadline = time.monotonic() + 35
    while sent(client, "GET", "/users")[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert refused(lambda: client.request("GET", "/users")).status in (401, 403)


def test_a_disabled_user_loses_access_within_half_a_minute(system: System) -> None:
    admin = system.client()
    user, client = made(system, "dora")
    client.request("GET", "/jobs")
    admin.request("POST", f"/users/{user['id']}/disable")
    assert refused(lambda: system.sign_in(user["username"], PASSWORD)).status == 401
    deadline = time.monotonic() + 35
    while sent(client, "GET", "/jobs")[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert refused(lambda: client.request("GET", "/jobs")).status == 403
    admin.request("POST", f"/users/{user['id']}/enable")
    assert system.sign_in(user["username"], PASSWORD).request("GET", "/jobs")


def test_passwords_are_changed_by_their_owner_and_by_administrators(system: System) -> None:
    user, client = made(system, "petra")
    assert (
        refused(lambda: client.request("POST", "/auth/password", {"current_password": "wrong", "new_password": PASSWORD + "x"})).status
        == 400
    )
    client.request("POST", "/auth/password", {"current_password": PASSWORD, "new_password": PASSWORD + "x"})
    assert refused(lambda: system.sign_in(user["username"], PASSWORD)).status == 401
    system.client().request("PUT", f"/users/{user['id']}/password", {"password": PASSWORD + "y"})
    assert system.sign_in(user["username"], PASSWORD + "y").request("GET", "/jobs")


def test_a_changed_password_ends_the_other_sessions(system: System) -> None:
    user, client = made(system, "paul")
    client.request("GET", "/jobs")
    stolen = system.anonymous().request("POST", "/auth/login", {"username": user["username"], "password": PASSWORD})
    thief = Punctual(system.address, token=stolen["token"])
    changed = client.request("POST", "/auth/password", {"current_password": PASSWORD, "new_password": PASSWORD + "x"})
    deadline = time.monotonic() + 35
    while sent(thief, "GET", "/jobs")[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert refused(lambda: thief.request("GET", "/jobs")).status == 401
    assert refused(lambda: thief.request("POST", "/auth/refresh", {"refresh_token": stolen["refresh_token"]})).status == 401
    went_on = Punctual(system.address, token=changed["token"])
    assert (
        went_on.request("GET", "/jobs") and went_on.request("POST", "/auth/refresh", {"refresh_token": changed["refresh_token"]})["token"]
    )
    assert went_on.request("POST", "/auth/logout", {}) == {"signed_out": True}
    assert refused(lambda: went_on.request("POST", "/auth/refresh", {"refresh_token": changed["refresh_token"]})).status == 401


def test_the_console_keeps_its_refresh_token_in_a_cookie(system: System) -> None:
    user, _ = made(system, "carla")
    host = system.stack.console_address.removeprefix("http://")  # a browser resolves it, Python does not
    with httpx.Client(trust_env=False, timeout=60) as browser:

        def post(path: str, body: Any, **headers: str) -> Any:
            browser.cookies.clear()
            answer = browser.post(f"{system.stack.aws.endpoint}/api/v1/auth/{path}", json=body, headers={**headers, "Host": host})
            return answer.status_code, answer.json().get("data"), answer.headers.get("Set-Cookie", "")

        status, session, cookie = post("login", {"username": user["username"], "password": PASSWORD, "cookie": True})
        assert (status, session["refresh_token"]) == (200, "")
        assert cookie.endswith("; Path=/api/v1/auth; Max-Age=2592000; HttpOnly; Secure; SameSite=Strict")
        kept = cookie.partition(";")[0]
        status, session, cookie = post("refresh", {}, Cookie=kept)
        assert status == 200 and session["token"] and "refresh_token" not in session and "HttpOnly" in cookie
        kept = cookie.partition(";")[0]
        status, _, cookie = post("logout", {"everywhere": False}, Cookie=kept, Authorization=f"Bearer {session['token']}")
        assert status == 200 and "Max-Age=0" in cookie
        assert post("refresh", {}, Cookie=kept)[0] == 401


def test_an_api_key_does_what_its_scopes_and_its_maker_allow(system: System) -> None:
    user, maker = made(system, "kim")
    key = maker.request("POST", "/keys", {"name": "ci", "scopes": ["jobs:*"], "expires_in_days": 1})
    program = Punctual(system.address, key=key["key"])
    job = program.jobs.create("log", {"message": "by a program"}, execute_at="2030-01-01T00:00:00Z").raw
    assert program.jobs.get(job["id"]).status == "scheduled" and maker.jobs.get(job["id"]).status == "scheduled"
    assert (program.request("GET", "/me")["kind"], program.request("GET", "/me")["id"]) == ("key", user["id"])
    for path in ("/users", "/tasks", "/keys"):
        assert refused(lambda path=path: program.request("GET", path)).status == 403  # type: ignore[misc]
    program.jobs.cancel(job["id"])
    entry = maker.request("GET", "/me/audit", query={"action": "job.cancel"})["items"][0]
    assert (entry["actor"], entry["key"], entry["actor_name"]) == (user["id"], key["id"], user["username"])
    maker.request("DELETE", f"/keys/{key['id']}")
    assert ended_within_half_a_minute(program)


def ended_within_half_a_minute(client: Punctual) -> bool:
    """Whether 200 requests are refused at the latest 30 s from now, and none succeeds after that."""
    until = time.monotonic() + 30
    statuses = []
    for _ in range(200):
        at, status = time.monotonic(), sent(client, "GET", "/jobs")[0]
        statuses.append((at, status))
        time.sleep(max(0.0, 0.2 - (time.monotonic() - at)))
    assert {status for _, status in statuses} <= {200, 401, 403}
    return all(status != 200 for at, status in statuses if at > until) and statuses[-1][0] > until


def test_a_team_owns_what_its_members_create(system: System) -> None:
    _, ann = made(system, "ann")
    ben, of_ben = made(system, "ben")
    team = ann.request("POST", "/teams", {"name": "Team"})
    invited = ann.request("POST", f"/teams/{team['id']}/invitations", {"role": "editor"})
    assert of_ben.request("POST", "/invitations/accept", {"token": invited["token"]})["role"] == "editor"
    assert refused(lambda: of_ben.request("POST", "/invitations/accept", {"token": invited["token"]})).status == 404
    theirs = {"owner": team["id"]}
    task = of_ben.request("POST", "/tasks", {"name": "t", "message": "m", "schedule": {"rate": "1 minutes"}}, query=theirs)
    key = of_ben.request("POST", "/keys", {"name": "ci", "scopes": ["jobs:*"]}, query=theirs)
    program = Punctual(system.address, key=key["key"])
    job = program.jobs.create("log", {"message": "of the team"}).raw
    assert ann.request("GET", f"/jobs/{job['id']}", query=theirs)["id"] == job["id"]
    assert refused(lambda: ann.request("GET", f"/jobs/{job['id']}")).status == 404
    ann.request("DELETE", f"/teams/{team['id']}/members/{ben['id']}")
    assert ended_within_half_a_minute(program), "the key of a former member"
    assert refused(lambda: of_ben.request("GET", "/jobs", query=theirs)).status == 403
    deadline = time.monotonic() + 90
    while not (runs := ann.request("GET", f"/tasks/{task['id']}/jobs", query={**theirs, "status": "succeeded"})["items"]):
        assert time.monotonic() < deadline, "the tasks of the team go on"
        time.sleep(1)
    assert runs[0]["status"] == "succeeded"
    assert refused(lambda: ann.request("DELETE", f"/teams/{team['id']}")).status == 409
    ann.request("POST", f"/tasks/{task['id']}/pause", {}, query=theirs)
    assert ann.request("DELETE", f"/teams/{team['id']}")["id"] == team["id"]
    assert refused(lambda: ann.request("GET", f"/teams/{team['id']}")).status == 404


def test_a_flood_of_creates_by_one_user_is_refused(system: System, capsys: pytest.CaptureFixture[str]) -> None:
    _, flooding = made(system, "flood", quotas={"creates_per_second": 2, "max_jobs": 100_000})
    _, calm = made(system, "calm")
    ahead = "2030-01-01T00:00:00Z"
    first = sent(flooding, "POST", "/jobs", {"message": "x", "execute_at": ahead})
    assert first[0] == 201

    def p50() -> float:
        took = []
        for _ in range(40):
            began = time.perf_counter()
            calm.jobs.create("log", {"message": "x"}, execute_at=ahead)
            took.append((time.perf_counter() - began) * 1000)
            time.sleep(0.02)
        return statistics.median(took)

    alone = p50()
    statuses: list[int] = []
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            statuses.append(sent(flooding, "POST", "/jobs", {"message": "x", "execute_at": ahead})[0])

    flooders = [threading.Thread(target=flood) for _ in range(2)]
    began = time.monotonic()
    for each in flooders:
        each.start()
    time.sleep(1)
    beside = p50()
    # On a slow machine the flood goes on until most of its calls must be refused.
    while len(statuses) <= 2 * (31 + 2 * (time.monotonic() - began)) and time.monotonic() - began < 60:
        time.sleep(0.1)
    stop.set()
    for each in flooders:
        each.join()
    seconds = time.monotonic() - began
    let_in, out = statuses.count(201), statuses.count(429)
    with capsys.disabled():
        sys.stdout.write(
            f"\nquota: {let_in} accepted, {out} refused; another user's create: p50 {alone:.1f} ms alone, {beside:.1f} ms beside it"
        )
        sys.stdout.write(f" ({beside / alone:.2f} times)\n")
    assert set(statuses) == {201, 429} and let_in <= 20 + 2 * seconds + 10 and out > let_in


def test_failed_sign_ins_take_the_same_time_and_are_refused_after_ten(system: System, capsys: pytest.CaptureFixture[str]) -> None:
    user, _ = made(system, "lena")
    nobody = f"nobody-{secrets.token_hex(4)}"
    anybody = system.anonymous()
    answers: dict[str, list[tuple[int, str, int]]] = {}
    for name in (user["username"], nobody):
        for _ in range(11):
            began = time.perf_counter()
            status, answer = sent(anybody, "POST", "/auth/login", {"username": name, "password": "wrong"})
            took = round((time.perf_counter() - began) * 1000)
            answers.setdefault(name, []).append((status, answer["error"]["message"], took))
    known, unknown = answers[user["username"]], answers[nobody]
    times = [statistics.median(took for _, _, took in each[:10]) for each in (known, unknown)]
    with capsys.disabled():
        sys.stdout.write(f"\nfailed sign-ins: p50 {times[0]} ms with a known name, {times[1]} ms with an unknown one\n")
    assert [each[:2] for each in known] == [each[:2] for each in unknown]
    assert [each[0] for each in known] == [401] * 10 + [429]
    assert abs(times[0] - times[1]) < 100
    right = sent(anybody, "POST", "/auth/login", {"username": user["username"], "password": PASSWORD})
    assert right[0] == 429


def test_no_call_was_denied(system: System) -> None:
    assert system.denials() == []
