"""APScheduler 3: one process (its job stores must not be shared), a job store in SQLite, ten threads. The worker creates the jobs, too.

Its default for late jobs drops those that are more than a second late: here none are dropped.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

from compare.drivers import lib


def describe() -> Mapping[str, Any]:
    return {
        "versions": lib.versions("apscheduler", "sqlalchemy"),
        "settings": "1 process, BackgroundScheduler, job store in SQLite, 10 threads (default), misfire_grace_time None (default 1 s)",
        "workers": [["python", "-m", "compare.drivers.apscheduler_app", "worker"]],
        "per_second": 250,
        "ready_s": 3,
    }


def worker() -> None:
    from compare.drivers.lib import run  # the store keeps a reference to it

    store = SQLAlchemyJobStore(url=f"sqlite:///{lib.FOLDER}/jobs.sqlite")
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone=UTC, job_defaults={"misfire_grace_time": None})
    scheduler.start()
    lib.follow(
        lambda name, at, url: scheduler.add_job(run, "date", run_date=datetime.fromtimestamp(at, UTC), args=[name, url], id=name),
        "add_job, in the scheduler's process",
    )


if __name__ == "__main__":
    lib.main(describe, lib.hand_over, worker=worker)
