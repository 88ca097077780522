"""Operations on many jobs and tasks: on the deployed stack over HTTP."""

from collections import Counter
from typing import Any

import pytest
from punctual import ApiError, Punctual

from local import process
from tests.system.conftest import System, soon, until

JOBS, RATE = 2_000, 200


def post(client: Punctual, count: int, tag: str) -> None:
    """Post jobs that are due in a day."""
    execute_at = soon(86_400)
    for start in range(0, count, 1_000):
        body = {"type": "log", "payload": {"message": "m"}, "execute_at": execute_at, "tags": [tag]}
        done = client.jobs.create_many([body] * min(1_000, count - start))
        assert done.refused == 0


def progress(client: Punctual, made: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = client.request("GET", f"/operations/{made['id']}")
    return found


def done(client: Punctual, made: dict[str, Any], seen: list[int] | None = None) -> dict[str, Any]:
    """Wait for the end of an operation, and note its progress."""

    def over() -> dict[str, Any] | None:
        found = progress(client, made)
        if seen is not None:
            seen.append(found["done"])
        return found if found["status"] == "done" else None

    return until(120, over)


def statuses(client: Punctual) -> Counter[str]:
    return Counter(job.status for job in client.jobs.list(upcoming=True))


def test_thousands_of_jobs_are_cancelled_at_a_rate_and_an_abort_stops_it(deployed: System) -> None:
    client = deployed.client("canceller")
    post(client, JOBS, "many")
    post(client, 10, "other")
    counted = client.request("POST", "/jobs/cancel", {"tag": "many", "dry_run": True})
    assert counted["matched"] == JOBS or (not counted["complete"] and 0 < counted["matched"] < JOBS)  # on a busy machine it reads a part

    first = client.request("POST", "/jobs/cancel", {"tag": "many", "rate": RATE})
    until(60, lambda: progress(client, first)["done"] >= JOBS // 4)
    client.request("POST", f"/operations/{first['id']}/abort", {})
    second = client.request("POST", "/jobs/cancel", {"tag": "many", "status": "scheduled", "rate": RATE})
    seen: list[int] = []
    ended = done(client, second, seen)
    aborted = progress(client, first)
    assert aborted["status"] == "aborted" and JOBS // 4 <= aborted["done"] < JOBS
    assert aborted["done"] + ended["done"] == JOBS and (ended["skipped"], ended["failed"]) == (0, 0)
    assert any(0 < count < ended["done"] for count in seen) and seen == sorted(seen)
    assert statuses(client) == {"cancelled": JOBS, "scheduled": 10}
    listed = client.request("GET", "/operations")["items"]
    assert [each["id"] for each in listed] == [second["id"], first["id"]]
    actions = Counter(entry["action"] for entry in client.request("GET", "/me/audit", query={"action": "operation"})["items"])
    assert actions == {"operation.cancel_jobs": 3, "operation.abort": 1}


def test_tasks_are_paused_resumed_and_deleted_by_tag(deployed: System) -> None:
    client = deployed.client("tidier")
    for number in range(12):
        client.tasks.create(f"report {number}", "log", {"message": "m"}, schedule={"rate": "1 hours"}, tags=["a" if number < 8 else "b"])
    with pytest.raises(ApiError) as refused:
        client.request("POST", "/tasks/delete", {})
    assert refused.value.status == 400

    def states() -> Counter[str]:
        return Counter(task.status for task in client.tasks.list())

    for verb, after in (("pause", {"inactive": 8, "active": 4}), ("resume", {"active": 12}), ("delete", {"active": 4})):
        ended = done(client, client.request("POST", f"/tasks/{verb}", {"tag": "a", "rate": 50}))
        assert (ended["done"], ended["skipped"], ended["failed"]) == (8, 0, 0) and states() == after


@pytest.mark.apart  # a killed dispatcher may make a start late
def test_killed_worker_of_an_operation_is_replaced(deployed: System) -> None:
    client = deployed.client("survivor")
    post(client, 1_000, "killed")
    made = client.request("POST", "/jobs/cancel", {"all": True, "rate": 50})
    until(60, lambda: progress(client, made)["done"] > 100)
    for each in deployed.workers("DispatchFunction"):
        process.kill(each)
    assert progress(client, made)["status"] == "running"
    ended = done(client, made)
    assert (ended["done"], ended["skipped"], ended["failed"]) == (1_000, 0, 0) and statuses(client) == {"cancelled": 1_000}
