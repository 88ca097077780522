"""A tick, a dispatcher or a message that AWS delivers twice starts no job twice."""

from collections.abc import Sequence
from typing import Any

from punctual import Punctual

from tests.system.conftest import HANG_S, Doubled, System, ended, queued, send_early, soon, until


def test_a_message_delivered_twice_starts_its_job_once(system: System, client: Punctual) -> None:
    path = "/ok/doubled-message"
    job = client.jobs.create("http", {"method": "POST", "url": system.receiver.url(path)}, execute_at=soon(6)).raw
    for _ in range(2):
        send_early(system, client, job, seconds=3)
    assert not _has_left(system, [job])
    (final,) = ended(client, [job], 30)
    assert (final["status"], len(final["attempts"])) == ("succeeded", 1)
    until(300, lambda: _has_left(system, [job]))
    assert len(system.receiver.calls(path)) == 1


def test_concurrent_ticks_and_dispatchers_start_each_job_once(system: System, client: Punctual, doubled: Doubled) -> None:
    doubled.calls.result(timeout=HANG_S)
    jobs = ended(client, doubled.jobs, 300)
    assert {job["status"] for job in jobs} == {"succeeded"}
    assert all(len(job["attempts"]) == 1 for job in jobs)
    until(300, lambda: _has_left(system, jobs))
    assert [len(system.receiver.calls(path)) for path in doubled.paths] == [1] * len(doubled.paths)


def _has_left(system: System, jobs: Sequence[dict[str, Any]]) -> bool:
    """True if no queue has a message of these jobs. Other tests' jobs use the same queues."""
    held = queued(system)
    return not any(job["id"] in held for job in jobs)
