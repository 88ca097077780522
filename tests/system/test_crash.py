"""The executor process of a job is killed: another executor runs the job again, and the job's history shows both attempts."""

import os
import signal
import time

from punctual import Punctual

from tests.system.conftest import System, ended, until


def test_a_job_with_a_killed_executor_runs_again_within_70_seconds(system: System, client: Punctual) -> None:
    job = client.jobs.create("log", {"message": "survivor", "sleep_seconds": 20}).raw
    until(60, lambda: client.jobs.get(job["id"]).status == "running")
    killed_at = time.monotonic()
    for worker in system.workers("ExecuteOneTimeFunction"):
        os.kill(worker.pid, signal.SIGKILL)
    (final,) = ended(client, [job], 90)
    assert time.monotonic() - killed_at < 90  # 70 s to start again, 20 s to run
    assert final["status"] == "succeeded"
    assert [attempt["outcome"] for attempt in final["attempts"]] == ["crashed", "succeeded"]
    assert final["attempts"][0]["failure"]["kind"] == "crashed"
