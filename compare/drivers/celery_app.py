"""Celery: one worker, prefork, a process per core (its default), `eta` for each job. It has no bulk call.

With Redis, its documentation asks for a visibility time-out beyond the longest eta. With RabbitMQ its default is a durable classic queue.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from celery import Celery

from compare.drivers import lib

broker = lib.REDIS or lib.AMQP
cores = os.cpu_count() or 1
app = Celery("compare", broker=broker)
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
if lib.REDIS:
    app.conf.broker_transport_options = {"visibility_timeout": 4 * 86_400}


@app.task(name="job")
def job(name: str, url: str) -> None:
    lib.run(name, url)


def describe() -> Mapping[str, Any]:
    own = "visibility_timeout 4 days" if lib.REDIS else "durable classic queue, no confirms (default)"
    return {
        "versions": lib.versions("celery", "kombu"),
        "settings": f"1 worker, prefork, concurrency {cores}, prefetch_multiplier 4 (defaults), no results, {own}",
        "workers": [["celery", "-A", "compare.drivers.celery_app", "worker", f"--concurrency={cores}", "-l", "WARNING"]],
        "per_second": 1_000,
        "ready_s": 6,
    }


def produce(order: lib.Order) -> Mapping[str, Any]:
    with app.producer_or_acquire() as producer:
        producer.connection.ensure_connection()
        with lib.Creating("apply_async(eta), one connection") as done:
            for name, at in lib.each(order):
                job.apply_async(args=[name, order.url], eta=datetime.fromtimestamp(at, UTC), producer=producer)
    return done.answer


if __name__ == "__main__":
    lib.main(describe, produce)
