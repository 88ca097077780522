"""Groups and jobs after jobs on the local AWS, with IAM enforced and executors that are killed."""

import os
import signal
import time
from datetime import datetime

import pytest
from punctual import Punctual
from punctual.records import Group, GroupCounts

from tests.system.conftest import HANG_S, System, ended, soon, until

JOBS, FAILING, KILLS = 300, 9, 5


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def counts(group: Group) -> GroupCounts:
    assert group.counts is not None
    return group.counts


def test_a_call_back_starts_within_seconds_of_the_last_end(client: Punctual) -> None:
    made = client.groups.create([{"message": f"{number}", "execute_at": soon(2)} for number in range(40)], on_success={"message": "all"})
    group = until(60, lambda: found if (found := client.groups.get(made.id)).ended else None)
    (call,) = ended(client, [{"id": group.callback("on_success")}], 30)
    last = max(_seconds(job.raw["ended_at"]) for job in client.groups.jobs(made.id))
    assert group.succeeded and counts(group).succeeded == 40
    assert _seconds(call["started_at"]) - last <= 2, "a second on a quiet machine"


def test_a_job_after_a_group_waits_for_its_last_member(client: Punctual) -> None:
    made = client.groups.create([{"message": "a", "delay": "1s"}, {"message": "b", "delay": "3s"}])
    follower = client.jobs.create(message="then", after=[{"group": made.id}]).raw
    (follower,) = ended(client, [follower], 60)
    last = max(_seconds(job.raw["ended_at"]) for job in client.groups.jobs(made.id))
    assert follower["status"] == "succeeded" and _seconds(follower["started_at"]) >= last


def test_a_job_after_a_failed_job_is_skipped_at_once(client: Punctual, system: System) -> None:
    first = client.jobs.create(http={"url": system.receiver.url("/status/404/first")}, max_attempts=1, delay="2s").raw
    second = client.jobs.create(message="never", after=[{"job": first["id"]}], delay="1h").raw
    third = client.jobs.create(message="never", after=[{"job": second["id"]}], delay="1h").raw
    second, third = ended(client, [second, third], 60)
    assert [job["status"] for job in (second, third)] == ["skipped", "skipped"]
    assert second["reason"] == third["reason"] == f"after: job {first['id']} failed"


@pytest.mark.apart  # on a stack of its own: no start has to be in time
def test_a_group_survives_killed_executors(deployed: System) -> None:
    client = deployed.client()
    bad = deployed.receiver.url("/status/404/member")
    jobs = [
        {"http": {"url": bad}, "max_attempts": 1, "delay": "5s"} if number < FAILING else {"message": f"{number}", "delay": "5s"}
        for number in range(JOBS)
    ]
    made = client.groups.create(
        jobs, on_complete={"message": "complete"}, on_failure={"message": "failure"}, on_success={"message": "well"}
    )
    counted = 0
    for _ in range(KILLS):
        time.sleep(2)
        for worker in [*deployed.workers("ExecuteOneTimeFunction"), *deployed.workers("ExecuteRetryFunction")][:3]:
            os.kill(worker.pid, signal.SIGKILL)
        now = counts(client.groups.get(made.id))
        ended_now = now.succeeded + now.failed
        assert counted <= ended_now <= JOBS and ended_now + now.unfinished == JOBS
        counted = ended_now
    group = until(HANG_S, lambda: found if (found := client.groups.get(made.id)).ended else None)
    statuses = [job.status for job in client.groups.jobs(made.id)]
    assert (
        (statuses.count("succeeded"), statuses.count("failed"))
        == (counts(group).succeeded, counts(group).failed)
        == (JOBS - FAILING, FAILING)
    )
    calls = [group.callback(kind) for kind in ("on_complete", "on_failure")]
    assert group.callback("on_success") is None
    done = ended(client, [{"id": call} for call in calls], 120)
    assert [job["status"] for job in done] == ["succeeded", "succeeded"]
