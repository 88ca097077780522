"""Users, machine clients, quotas, slow logins and the audit trail, on the deployed stack with IAM enforced."""

import base64
import json
import secrets
import statistics
import sys
import threading
import time
from typing import Any

import pytest
import urllib3

from local.client import ApiError, Client
from tests.system.conftest import System

PASSWORD = f"{secrets.token_urlsafe(15)}-aA1"


def made(system: System, name: str, **options: Any) -> tuple[dict[str, Any], Client]:
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
    job = of_ann.post_job("log", {"message": "mine"}, execute_at="2030-01-01T00:00:00Z")
    assert refused(lambda: of_ben.job(job["id"])).status == 404
    assert refused(lambda: of_ben.request("GET", f"/me/jobs/{job['id']}", query={"user": ann["id"]})).status == 403
    assert refused(lambda: of_ben.request("GET", "/users")).status == 403
    assert admin.request("GET", f"/me/jobs/{job['id']}", query={"user": ann["id"]})["id"] == job["id"]
    admin.request("POST", f"/me/jobs/{job['id']}/cancel", query={"user": ann["id"]})
    entries = of_ann.request("GET", "/me/audit")["entries"]
    assert [(entry["action"], entry["object"], entry["status"]) for entry in entries] == [("job.cancel", job["id"], 200)]
    assert entries[0]["actor_name"] == system.stack.username
    everybodys = admin.request("GET", "/audit", query={"action": "user", "limit": 100})["entries"]
    assert ann["id"] in {entry["object"] for entry in everybodys if entry["action"] == "user.create"}
    listed = {user["id"]: user for user in admin.request("GET", "/users", query={"limit": 60})["users"]}
    assert listed[ann["id"]]["job_weight"] == 2.5


def test_roles_change_with_the_next_sign_in(system: System) -> None:
    admin = system.client()
    user, client = made(system, "olga")
    admin.request("PATCH", f"/users/{user['id']}", {"role": "operator"})
    assert refused(lambda: client.request("GET", "/users")).status == 403
    again = system.sign_in(user["username"], PASSWORD)
    assert again.request("GET", "/me")["role"] == "operator"
    assert again.request("GET", "/users")["users"]
    assert refused(lambda: again.request("POST", "/system/pause", {})).status == 403


def test_a_disabled_user_loses_access_within_half_a_minute(system: System) -> None:
    admin = system.client()
    user, client = made(system, "dora")
    client.page()
    admin.request("PUT", f"/users/{user['id']}/disabled")
    assert refused(lambda: system.sign_in(user["username"], PASSWORD)).status == 401
    deadline = time.monotonic() + 35
    while client.send("GET", "/me/jobs")[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert refused(client.page).status == 403
    admin.request("PUT", f"/users/{user['id']}/enabled")
    assert system.sign_in(user["username"], PASSWORD).page()


def test_passwords_are_changed_by_their_owner_and_by_administrators(system: System) -> None:
    user, client = made(system, "petra")
    assert (
        refused(lambda: client.request("POST", "/auth/password", {"current_password": "wrong", "new_password": PASSWORD + "x"})).status
        == 400
    )
    client.request("POST", "/auth/password", {"current_password": PASSWORD, "new_password": PASSWORD + "x"})
    assert refused(lambda: system.sign_in(user["username"], PASSWORD)).status == 401
    system.client().request("PUT", f"/users/{user['id']}/password", {"password": PASSWORD + "y"})
    assert system.sign_in(user["username"], PASSWORD + "y").page()


def test_a_changed_password_ends_the_other_sessions(system: System) -> None:
    user, client = made(system, "paul")
    client.page()
    thief = Client(system.address)
    stolen = thief.login(user["username"], PASSWORD)
    changed = client.request("POST", "/auth/password", {"current_password": PASSWORD, "new_password": PASSWORD + "x"})
    deadline = time.monotonic() + 35
    while thief.send("GET", "/me/jobs")[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert refused(thief.page).status == 401
    assert refused(lambda: thief.request("POST", "/auth/refresh", {"refresh_token": stolen["refresh_token"]})).status == 401
    went_on = Client(system.address, token=changed["token"])
    assert went_on.page() and went_on.request("POST", "/auth/refresh", {"refresh_token": changed["refresh_token"]})["token"]
    assert went_on.request("POST", "/auth/logout", {}) == {"signed_out": True}
    assert refused(lambda: went_on.request("POST", "/auth/refresh", {"refresh_token": changed["refresh_token"]})).status == 401


def test_the_console_keeps_its_refresh_token_in_a_cookie(system: System) -> None:
    user, _ = made(system, "carla")
    host = system.stack.console_address.removeprefix("http://")  # a browser resolves it, Python does not
    with urllib3.PoolManager() as pool:

        def post(path: str, body: Any, **headers: str) -> Any:
            answer = pool.request("POST", f"{system.stack.aws.endpoint}/api/v1/auth/{path}", json=body, headers={**headers, "Host": host})
            return answer.status, json.loads(answer.data).get("data"), answer.headers.get("Set-Cookie", "")

        status, session, cookie = post("login", {"username": user["username"], "password": PASSWORD, "cookie": True})
        assert (status, session["refresh_token"]) == (200, "")
        assert cookie.endswith("; Path=/api/v1/auth; Max-Age=2592000; HttpOnly; Secure; SameSite=Strict")
        sent = cookie.partition(";")[0]
        status, session, cookie = post("refresh", {}, Cookie=sent)
        assert status == 200 and session["token"] and "refresh_token" not in session and "HttpOnly" in cookie
        sent = cookie.partition(";")[0]
        status, _, cookie = post("logout", {"everywhere": False}, Cookie=sent, Authorization=f"Bearer {session['token']}")
        assert status == 200 and "Max-Age=0" in cookie
        assert post("refresh", {}, Cookie=sent)[0] == 401


def token_of(system: System, name: str) -> str:
    """Return an access token by client credentials, as a program gets it."""
    clients = dict(each.split("=") for each in system.outputs["MachineClients"].split())
    known = system.aws("cognito-idp").describe_user_pool_client(UserPoolId=system.outputs["UserPoolId"], ClientId=clients[name])
    pair = f"{clients[name]}:{known['UserPoolClient']['ClientSecret']}"
    headers = {
        "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    with urllib3.PoolManager() as pool:
        answer = pool.request("POST", f"{system.stack.aws.endpoint}/oauth2/token", body=b"grant_type=client_credentials", headers=headers)
    return str(json.loads(answer.data)["access_token"])


def test_a_machine_client_may_do_what_its_scopes_allow(system: System) -> None:
    program = Client(system.address, token=token_of(system, "sample"))
    job = program.post_job("log", {"message": "by a program"}, execute_at="2030-01-01T00:00:00Z")
    assert program.job(job["id"])["status"] == "scheduled"
    assert program.request("GET", "/me")["scopes"] == ["jobs:read", "jobs:write"]
    assert refused(lambda: program.request("GET", "/users")).status == 403
    boss = Client(system.address, token=token_of(system, "sample-admin"))
    assert boss.request("GET", "/users")["clients"]
    program.cancel(job["id"])


def test_a_flood_of_creates_by_one_user_is_refused(system: System, capsys: pytest.CaptureFixture[str]) -> None:
    _, flooding = made(system, "flood", quotas={"creates_per_second": 2, "max_jobs": 100_000})
    _, calm = made(system, "calm")
    ahead = "2030-01-01T00:00:00Z"
    first = flooding.send("POST", "/me/jobs", {"message": "x", "execute_at": ahead})
    assert first[0] == 201

    def p50() -> float:
        took = []
        for _ in range(40):
            began = time.perf_counter()
            calm.post_job("log", {"message": "x"}, execute_at=ahead)
            took.append((time.perf_counter() - began) * 1000)
            time.sleep(0.02)
        return statistics.median(took)

    alone = p50()
    statuses: list[int] = []
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            statuses.append(flooding.send("POST", "/me/jobs", {"message": "x", "execute_at": ahead})[0])

    flooders = [threading.Thread(target=flood) for _ in range(2)]
    began = time.monotonic()
    for each in flooders:
        each.start()
    time.sleep(1)
    beside = p50()
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
    answers: dict[str, list[tuple[int, str, int]]] = {}
    for name in (user["username"], nobody):
        for _ in range(11):
            began = time.perf_counter()
            status, answer = Client(system.address).send("POST", "/auth/login", {"username": name, "password": "wrong"})
            took = round((time.perf_counter() - began) * 1000)
            answers.setdefault(name, []).append((status, answer["error"]["message"], took))
    known, unknown = answers[user["username"]], answers[nobody]
    times = [statistics.median(took for _, _, took in each[:10]) for each in (known, unknown)]
    with capsys.disabled():
        sys.stdout.write(f"\nfailed sign-ins: p50 {times[0]} ms with a known name, {times[1]} ms with an unknown one\n")
    assert [each[:2] for each in known] == [each[:2] for each in unknown]
    assert [each[0] for each in known] == [401] * 10 + [429]
    assert abs(times[0] - times[1]) < 100
    right = Client(system.address).send("POST", "/auth/login", {"username": user["username"], "password": PASSWORD})
    assert right[0] == 429


def test_no_call_was_denied(system: System) -> None:
    assert system.denials() == []
