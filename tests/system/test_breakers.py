"""Breakers on the deployed stack: the failing calls of one user stop the jobs of no other user, and an administrator closes a breaker."""

from typing import Any

from punctual import Punctual

from tests.system.conftest import System, ended, soon, until

FAILURES = 45


def calls(system: System, path: str, count: int, *, seconds: float, **options: Any) -> list[dict[str, Any]]:
    """Return the jobs that call this path, `count` of them, ten a second, from `seconds` ahead."""
    payload = {"url": system.receiver.url(path), **options}
    return [{"type": "http", "payload": payload, "max_attempts": 1, "execute_at": soon(seconds + n / 10)} for n in range(count)]


def posted(client: Punctual, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [job.raw for job in client.jobs.create_many(jobs).all_jobs()]


def of(owner: str, admin: Punctual) -> list[dict[str, Any]]:
    """Return the breakers of an owner that are not closed."""
    return [each for each in admin.request("GET", "/system/breakers")["items"] if each["owner"] == owner]


def test_failing_calls_of_one_user_delay_no_job_of_another(system: System, client: Punctual) -> None:
    mallory, victim = system.client("mallory"), system.client("victim")
    posted(mallory, calls(system, "/status/500/mallory", FAILURES, seconds=2))
    (found,) = until(60, lambda: of(mallory.me().id, client))
    # By their time every executor has read of the breaker. One of them at most is the next probe.
    held = posted(mallory, calls(system, "/status/500/mallory", 3, seconds=3))
    assert found["circuit"] == f"host 127.0.0.1:{system.receiver.port}"
    for last in (False, False, True):  # the best of three rounds counts: other stacks share the machine
        jobs = ended(victim, posted(victim, calls(system, "/ok/victim", 10, seconds=2)), 60)
        assert {job["status"] for job in jobs} == {"succeeded"}
        delays = sorted(job["start_delay_ms"] for job in jobs)
        on_time = delays[len(delays) // 2] <= 10 and delays[-1] < 1_000
        assert delays[0] >= 0 and (on_time or not last), delays
        if on_time:
            break
    why = f"breaker: {found['circuit']} does not answer"
    until(60, lambda: any((mallory.jobs.get(job["id"]).reason or "").startswith(why) for job in held))
    body = {"circuit": found["circuit"], "owner": found["owner"], "reason": "its path is wrong, not its host"}
    assert found["owner"] not in {each["owner"] for each in client.request("POST", "/system/breakers/close", body)["items"]}
    (entry,) = client.request("GET", "/audit", query={"action": "system.close-breaker"})["items"]
    assert (entry["changes"], entry["status"]) == (body, 200)


def test_time_outs_that_a_user_chose_open_no_breaker(system: System, client: Punctual) -> None:
    impatient = system.client("impatient")
    jobs = ended(impatient, posted(impatient, calls(system, "/slow/1/impatient", FAILURES, seconds=2, timeout_seconds=0.1)), 60)
    assert {job["attempts"][0]["failure"]["message"] for job in jobs} == {"no answer within 0.1 s, the timeout_seconds of its payload"}
    assert of(impatient.me().id, client) == []
