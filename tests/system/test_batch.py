"""Many jobs posted in one call, on the deployed stack over HTTP."""

from collections import Counter

from punctual import Punctual

from tests.system.conftest import System, ended, soon


def test_a_hundred_jobs_of_one_call_all_run_once(system: System, client: Punctual) -> None:
    """Some jobs are due now, some at an instant: all take the direct path."""
    at = soon(10)
    paths = [f"/ok/batch-{n}" for n in range(100)]
    calls = [{"type": "http", "payload": {"method": "POST", "url": system.receiver.url(path)}} for path in paths]
    answer = client.jobs.create_many([call if n % 4 == 0 else call | {"execute_at": at} for n, call in enumerate(calls)])
    assert (answer.accepted, answer.refused) == (100, 0)
    jobs = ended(client, [job.raw for job in answer.jobs], 90)
    assert Counter(job["status"] for job in jobs) == {"succeeded": 100}
    assert all(job["start_delay_ms"] >= 0 for job in jobs)
    assert [job["payload"]["url"] for job in jobs] == [system.receiver.url(path) for path in paths]  # each result is its item's
    counts = {path: count for path, count in system.receiver.counts().items() if path.startswith("/ok/batch-")}
    assert counts == dict.fromkeys(paths, 1)


def test_bad_items_are_refused_and_the_others_run(system: System, client: Punctual) -> None:
    answer = client.jobs.create_many(
        [{"message": "good"}, {"message": ""}, {"message": "late", "execute_at": "tomorrow"}, {"message": "better"}]
    )
    codes = [result.error.code if result.error else None for result in answer.results]
    assert codes == [None, "validation_failed", "validation_failed", None]
    jobs = ended(client, [job.raw for job in answer.jobs], 30)
    assert [(job["status"], job["output"]) for job in jobs] == [("succeeded", "good"), ("succeeded", "better")]


def test_a_thousand_jobs_are_accepted_in_one_call(system: System) -> None:
    client = system.client("batcher")
    answer = client.jobs.create_many([{"message": f"{n}", "execute_at": soon(86_400)} for n in range(1_000)])
    assert answer.accepted == 1_000
    assert len({job.id for job in client.jobs.list(upcoming=True)}) == 1_000
