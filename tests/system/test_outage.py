"""Four minutes without a tick: no job is lost, due jobs run late and are marked as late, and the ledger closes its minutes."""

import time
from datetime import datetime
from typing import Any

from punctual import Punctual

from lab.scenarios import drills
from tests.system.conftest import Outage, System, ended, open_minutes, until


def test_every_job_of_the_missed_minutes_runs_late_and_marked(outage: Outage, client: Punctual) -> None:
    assert outage.over.wait(480)
    jobs = ended(client, outage.missed, 120)
    assert {job["status"] for job in jobs} == {"succeeded"}
    assert all(len(job["attempts"]) == 1 for job in jobs)
    late = [job for job in jobs if job["start_delay_ms"] >= 10_000]
    assert late, "the outage did not delay anything"
    assert all(job["late"] for job in late)


def test_missed_runs_follow_the_misfire_policy_of_their_task(outage: Outage, client: Punctual) -> None:
    assert outage.runs is not None
    seen = drills.judge_missed(client, outage.runs, seconds=120)
    assert not seen.complaints, seen.figures


def test_jobs_after_the_outage_are_dispatched_on_time(outage: Outage, client: Punctual) -> None:
    assert outage.over.wait(480)
    jobs = ended(client, outage.after, 240)
    delays = sorted(job["start_delay_ms"] for job in jobs)
    assert {job["status"] for job in jobs} == {"succeeded"}
    assert delays[0] >= 0
    assert delays[len(delays) // 2] < 1_000, delays


def test_the_minutes_of_the_outage_all_close(outage: Outage, system: System, client: Punctual) -> None:
    last = max(_minute(job) for job in [*outage.missed, *outage.after])

    until(300, lambda: all(minute > last for minute in open_minutes(system)) and time.time())


def _minute(job: dict[str, Any]) -> str:
    return datetime.fromisoformat(job["scheduled_at"]).strftime("%Y-%m-%dT%H:%M")
