"""A posted job starts on time, runs once, and reports its result: on the deployed stack over HTTP."""

from collections import Counter
from typing import Any

from punctual import Punctual

from tests.system.conftest import System, ended, send_early, soon, until


def test_a_job_for_now_runs_and_reports_its_times(client: Punctual) -> None:
    posted = client.jobs.create("log", {"message": "hello"}).raw
    (job,) = ended(client, [posted], 30)
    assert (job["status"], job["output"], job["lane"]) == ("succeeded", "hello", "one-time")
    assert job["created_at"] <= job["picked_at"] <= job["started_at"] <= job["completed_at"]
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["succeeded"]


def test_a_job_starts_at_its_instant_and_never_before(client: Punctual) -> None:
    at = soon(8)
    jobs = ended(client, [client.jobs.create("log", {"message": f"{n}"}, execute_at=at).raw for n in range(5)], 40)
    assert all(job["scheduled_at"] == at for job in jobs)
    assert all(0 <= job["start_delay_ms"] < 1_000 for job in jobs), [job["start_delay_ms"] for job in jobs]


def test_a_hundred_jobs_of_one_instant_all_run_once(system: System, client: Punctual) -> None:
    at = soon(10)
    paths = [f"/ok/instant-{n}" for n in range(100)]
    posted = [client.jobs.create("http", {"method": "POST", "url": system.receiver.url(path)}, execute_at=at).raw for path in paths]
    jobs = ended(client, posted, 90)
    assert Counter(job["status"] for job in jobs) == {"succeeded": 100}
    assert all(job["start_delay_ms"] >= 0 for job in jobs)
    assert Counter(path for path, count in system.receiver.counts().items() if "instant" in path for _ in range(count)) == Counter(paths)


def test_an_http_job_carries_its_id_and_keeps_the_response(system: System, client: Punctual) -> None:
    url = system.receiver.url("/ok/kept")
    (job,) = ended(client, [client.jobs.create("http", {"method": "POST", "url": url, "headers": {"X-Mine": "yes"}, "body": "b"}).raw], 30)
    (call,) = system.receiver.calls("/ok/kept")
    assert (call.method, call.body, call.headers["X-Mine"]) == ("POST", b"b", "yes")
    assert call.headers["Idempotency-Key"] == call.headers["Punctual-Job-Id"] == job["id"]
    assert job["response"]["status"] == 200
    assert "received" in job["response"]["body"]


def test_a_job_that_fails_once_is_retried_through_the_retry_lane(system: System, client: Punctual) -> None:
    posted = client.jobs.create("http", {"method": "GET", "url": system.receiver.url("/fail-once/retried")}).raw
    (job,) = ended(client, [posted], 60)
    assert (job["status"], job["lane"]) == ("succeeded", "retry")
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["failed", "succeeded"]
    keys = {call.headers["Idempotency-Key"] for call in system.receiver.calls("/fail-once/retried")}
    assert keys == {job["id"]}


def test_a_job_fails_after_its_last_attempt_and_is_listed_as_failed(system: System, client: Punctual) -> None:
    url = system.receiver.url("/status/503/always")
    (job,) = ended(client, [client.jobs.create("http", {"method": "GET", "url": url}, max_attempts=2).raw], 60)
    assert job["status"] == "failed"
    assert "2" in job["reason"]
    assert [attempt["failure"]["kind"] for attempt in job["attempts"]] == ["retryable", "retryable"]
    assert job["id"] in until(60, lambda: [each.id for each in client.jobs.list(status="failed")])


def test_a_permanent_error_is_not_retried(system: System, client: Punctual) -> None:
    (job,) = ended(client, [client.jobs.create("http", {"method": "GET", "url": system.receiver.url("/status/404/gone")}).raw], 30)
    assert (job["status"], len(job["attempts"])) == ("failed", 1)


def test_a_job_past_its_time_out_is_killed(client: Punctual) -> None:
    (job,) = ended(client, [client.jobs.create("log", {"message": "long", "sleep_seconds": 30}, timeout_seconds=1, max_attempts=1).raw], 40)
    assert job["status"] == "killed"
    assert job["attempts"][0]["failure"]["kind"] == "timeout"


def test_a_job_cancelled_before_its_time_never_runs(system: System, client: Punctual) -> None:
    payload = {"method": "GET", "url": system.receiver.url("/ok/never")}
    near = client.jobs.create("http", payload, execute_at=soon(6)).raw
    far = client.jobs.create("http", payload, execute_at=soon(3_600)).raw
    assert client.jobs.cancel(near["id"]).status == "cancelled"
    assert client.jobs.cancel(far["id"]).status == "cancelled"
    assert client.jobs.cancel(far["id"]).status == "cancelled"  # idempotent
    (witness,) = ended(client, [client.jobs.create("log", {"message": "later"}, execute_at=soon(8)).raw], 40)
    assert witness["status"] == "succeeded"
    assert system.receiver.calls("/ok/never") == []


def test_a_claimed_job_can_be_cancelled_before_its_instant(system: System, client: Punctual) -> None:
    """An executor has claimed the job and waits for its instant: the answer to the cancel waits until the executor has dropped it."""
    job = client.jobs.create("http", {"method": "GET", "url": system.receiver.url("/ok/in-hand")}, execute_at=soon(12)).raw
    send_early(
        system, client, job, seconds=7
    )  # about four seconds ahead: its own message is so late that the cancel could miss the last read
    until(60, lambda: client.jobs.get(job["id"]).picked_at)
    answer = client.jobs.cancel(job["id"]).raw
    (final,) = ended(client, [job], 20)
    assert answer["status"] == final["status"]
    assert (final["status"] == "cancelled") == (system.receiver.calls("/ok/in-hand") == [])


def test_a_running_job_is_flagged(client: Punctual) -> None:
    job = client.jobs.create("log", {"message": "running", "sleep_seconds": 60}).raw
    until(60, lambda: client.jobs.get(job["id"]).status == "running")
    assert client.jobs.cancel(job["id"]).cancel_requested_at is not None
    assert ended(client, [job], 30)[0]["cancel_requested_at"] is not None


def paged(client: Punctual, size: int, **query: Any) -> list[str]:
    """Return the ids of all jobs of a list, read in pages of this size."""
    found, cursor = [], None
    while True:
        page = client.request("GET", "/jobs", query={**query, "limit": size, "cursor": cursor})
        assert len(page["items"]) <= size
        found += [job["id"] for job in page["items"]]
        if (cursor := page["cursor"]) is None:
            return found


def test_lists_are_paged_by_scheduled_time(system: System) -> None:
    client = system.client("lister")
    past = [client.jobs.create("log", {"message": f"{n}"}).raw for n in range(5)]
    ahead = [client.jobs.create("log", {"message": f"{n}"}, execute_at=soon(7_200 + n)).raw for n in range(5)]
    ended(client, past, 60)
    assert paged(client, 2) == [job["id"] for job in reversed(past)]
    assert paged(client, 2, upcoming=True) == [job["id"] for job in ahead]


def test_health_is_open(system: System) -> None:
    assert system.anonymous().health().raw == {"status": "ok"}


def test_health_reports_the_lag_to_a_signed_in_caller(client: Punctual) -> None:
    assert (client.health().lag_seconds or 0) >= 0
