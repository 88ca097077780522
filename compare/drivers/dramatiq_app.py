"""dramatiq with Redis: a process per core, 8 threads each (defaults), `delay` for each job. It has no bulk call."""

import os
import time
from collections.abc import Mapping
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from compare.drivers import lib

broker = RedisBroker(url=lib.REDIS or "redis://127.0.0.1:1/0")
dramatiq.set_broker(broker)
cores = os.cpu_count() or 1


@dramatiq.actor
def job(name: str, url: str) -> None:
    lib.run(name, url)


def describe() -> Mapping[str, Any]:
    return {
        "versions": lib.versions("dramatiq", "redis"),
        "settings": f"{cores} processes, 8 threads each (defaults); its delay queue prefetches 8,000 messages a process (default)",
        "workers": [["dramatiq", "compare.drivers.dramatiq_app", "--processes", str(cores), "--threads", "8"]],
        "per_second": 1_500,
        "ready_s": 5,
    }


def produce(order: lib.Order) -> Mapping[str, Any]:
    from compare.drivers import dramatiq_app as imported  # the name of the module under which the workers know the actor

    imported.broker.client.ping()
    with lib.Creating("send_with_options(delay)") as done:
        for name, at in lib.each(order):
            imported.job.send_with_options(args=(name, order.url), delay=max(0, round(1_000 * (at - time.time()))))
    return done.answer


if __name__ == "__main__":
    lib.main(describe, produce)
