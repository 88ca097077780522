"""Calls with a mistake in each line that ends with `# wrong`. A type checker must find them all: `test_package.py`."""

from __future__ import annotations

from datetime import timedelta

from punctual import AsyncPunctual, JobRequest, Punctual


def right(client: Punctual) -> None:
    client.jobs.create(http={"url": "https://example.com", "body": {"order": 17}}, retry={"base_seconds": 2}, delay=1.5)
    client.jobs.create(message="m", key="k", on_conflict="extend", on_started="follow", notifications={"emails": ["a@example.com"]})
    client.jobs.update("01A", delay=timedelta(hours=2), expires_at=None, http="https://example.com")
    client.jobs.update(key="k", execute_at="2030-01-01T00:00:00Z")
    client.tasks.put("k", name="n", message="m", cron="30 2 * * *", dst_gap="skip", overlap="queue_one", misfire="run_all", tags=["a"])
    client.tasks.replace("01A", **client.tasks.get("01A").raw)
    client.tasks.update("01A", description=None, schedule={"rate": timedelta(minutes=5)})
    list(client.jobs.list(status=["failed", "killed"]))
    list(client.jobs.list(status="failed"))


def wrong(client: Punctual) -> None:
    client.jobs.create(message="m", key="k", on_conflict="replcae")  # wrong
    client.tasks.create("n", message="m", overlap="skp")  # wrong
    list(client.jobs.list(status="faild"))  # wrong
    client.jobs.create(message="m", retry={"base_secs": 2})  # wrong
    client.jobs.create(http={"uri": "https://example.com"})  # wrong
    client.tasks.put("k", name="n", message="m", crn="30 2 * * *")  # wrong
    client.jobs.update("01A", atempts=5)  # wrong
    client.jobs.create(message="m", delay=["30m"])  # wrong
    client.jobs.create(message="m", notifications={"email": ["a@example.com"]})  # wrong
    client.tasks.put("k", name="n", message="m", rate="5 minutes", misfire="run_last")  # wrong
    client.jobs.create(message="m", key="k", on_started="folow")  # wrong
    client.tasks.put("k", name="n", message="m", schedule={"crn": "30 2 * * *"})  # wrong
    client.tasks.pause_many(tags="a")  # wrong
    client.system.pause("onetime")  # wrong
    JobRequest(message="m", on_failure="stop")  # wrong


async def wrong_too(client: AsyncPunctual) -> None:
    await client.jobs.update("01A", delay=["2h"])  # wrong
    await client.tasks.run("01A", overlap="skp")  # wrong
    await client.status(scope="everyone")  # wrong
