"""procrastinate on PostgreSQL: a process per core, ten jobs at once each, polled ten times a second (its default: every five seconds)."""

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import procrastinate

from compare.drivers import lib

NAME = "compare.drivers.procrastinate_app"
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=lib.POSTGRES), import_paths=[NAME])
cores = os.cpu_count() or 1


@app.task(name="job")
async def job(name: str, url: str) -> None:
    if url:
        await asyncio.to_thread(lib.run, name, url)
    else:
        lib.run(name)


def describe() -> Mapping[str, Any]:
    worker = [
        "procrastinate",
        f"--app={NAME}.app",
        "worker",
        "--concurrency=10",
        "--delete-jobs=always",
        "--fetch-job-polling-interval=0.1",
    ]
    return {
        "versions": lib.versions("procrastinate", "psycopg"),
        "settings": f"{cores} processes, concurrency 10 each, polling interval 0.1 s (default 5 s), delete_jobs always",
        "workers": [worker] * cores,
        "per_second": 1_000,
        "ready_s": 5,
    }


def init() -> None:
    with app.open():
        app.schema_manager.apply_schema()


async def _produce(order: lib.Order) -> Mapping[str, Any]:
    async with app.open_async():
        await app.check_connection_async()
        with lib.Creating(f"batch_defer_jobs_async, {lib.CALL:,} a call") as done:
            for call in lib.calls(order):
                made = [
                    job.configure(schedule_at=datetime.fromtimestamp(at, UTC)).make_new_job(name=name, url=order.url) for name, at in call
                ]
                await app.job_manager.batch_defer_jobs_async(made)
    return done.answer


if __name__ == "__main__":
    lib.main(describe, lambda order: asyncio.run(_produce(order)), init=init)
