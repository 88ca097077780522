"""huey with Redis: one consumer with a process per core, `eta` for each job. It has no bulk call, and looks for due jobs once a second."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from huey import RedisHuey

from compare.drivers import lib

huey = RedisHuey("compare", url=lib.REDIS or "redis://127.0.0.1:1/0", results=False)
cores = os.cpu_count() or 1


@huey.task()
def job(name: str, url: str) -> None:
    lib.run(name, url)


def describe() -> Mapping[str, Any]:
    command = ["python", "-m", "huey.bin.huey_consumer", "compare.drivers.huey_app.huey", "-k", "process", "-w", str(cores), "-q"]
    return {
        "versions": lib.versions("huey", "redis"),
        "settings": f"1 consumer, {cores} processes, scheduler interval 1 s (default, the least allowed), no results",
        "workers": [command],
        "per_second": 2_500,
        "ready_s": 4,
    }


def produce(order: lib.Order) -> Mapping[str, Any]:
    from compare.drivers import huey_app as imported  # the name of the module under which the consumer knows the task

    imported.huey.storage.conn.ping()
    with lib.Creating("task.schedule(eta)") as done:
        for name, at in lib.each(order):
            imported.job.schedule(args=(name, order.url), eta=datetime.fromtimestamp(at, UTC))
    return done.answer


if __name__ == "__main__":
    lib.main(describe, produce)
