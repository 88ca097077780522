"""Clear names of routes and edits by merge patch, through the gateway of the deployed stack."""

from datetime import UTC, datetime, timedelta

import pytest
from punctual import ApiError, Punctual

from local.samples import rfc3339


def test_a_job_is_posted_changed_listed_and_cancelled_by_clear_names(client: Punctual) -> None:
    later = rfc3339(datetime.now(UTC) + timedelta(hours=1))
    job = client.request("POST", "/jobs", {"message": "m", "execute_at": later, "tags": ["a", "b"]})
    assert job["retry"]["on_timeout"] is True
    changed = client.request("PATCH", f"/jobs/{job['id']}", {"max_attempts": 2})
    assert (changed["max_attempts"], changed["retry"]) == (2, job["retry"]) and client.jobs.get(job["id"]).raw == changed
    found = client.request("GET", "/jobs", query={"upcoming": True, "tag": "a,b", "status": "scheduled,queued"})
    assert [each["id"] for each in found["items"]] == [job["id"]] and found["has_more"] is False
    cancelled = client.request("POST", f"/jobs/{job['id']}/cancel")
    assert (cancelled["status"], cancelled["ended_at"]) == ("cancelled", cancelled["cancelled_at"])


def test_a_task_takes_back_what_was_read_and_a_patch_of_it(client: Punctual) -> None:
    made = client.tasks.create("edited", "log", {"message": "m"}, schedule={"cron": "0 3 * * *"}, tags=["a"]).raw
    read = client.request("GET", f"/tasks/{made['id']}")
    assert client.tasks.replace(read["id"], **read).raw["tags"] == ["a"]
    patched = client.request("PATCH", f"/tasks/{read['id']}", {"schedule": {"rate": "1 hours"}, "description": "new"})
    assert (patched["description"], patched["tags"], "cron" in patched["schedule"]) == ("new", ["a"], False)
    with pytest.raises(ApiError, match="409"):
        client.request("PATCH", f"/tasks/{read['id']}", {"generation": 1, "description": "old"})
    assert client.request("POST", f"/tasks/{read['id']}/pause", {"reason": "r"})["status"] == "inactive"
    client.tasks.delete(read["id"])


def test_the_clear_names_of_summaries_answer(client: Punctual) -> None:
    assert client.request("GET", "/forecast")["minutes"] and "types" in client.request("GET", "/statistics")
    assert {each["type"] for each in client.request("GET", "/types")["items"]} >= {"log", "http"}
    assert client.request("GET", "/version")["api"] == "v1"
