"""A report each night at half past two in Berlin: previewed, created, and tried at once.

python -m examples.nightly_report.main [--keep]
"""

import argparse
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime

from punctual import Punctual
from punctual.fields import NotificationFields

from examples.receiver import Receiver

KEY = "example-nightly-report"
CRON, ZONE = "30 2 * * *", "Europe/Berlin"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--keep", action="store_true", help="do not delete the task at the end")
    keep = options.parse_args().keep
    reports: list[str] = []

    def report(path: str, headers: Mapping[str, str], body: bytes) -> int:
        """The service that makes the report: for the night that the request names, whenever it really runs."""
        night = json.loads(body)["night"]
        reports.append(night)
        print(f"made the report of {night}")
        return 200

    with Punctual() as punctual, Receiver(report) as receiver:
        spring = datetime(datetime.now(UTC).year + 1, 3, 24, tzinfo=UTC)
        print("around the change of the clock in spring:")
        for run in punctual.schedules.preview(cron=CRON, time_zone=ZONE, after=spring, count=9):
            print(f"  {run.local_at:%a %Y-%m-%d %H:%M %z}  {run.dst_note or ''}".rstrip())
        body = {"night": "{{scheduled_at}}"}  # the executor fills in the instant that the run stands for
        notifications: NotificationFields | None = None
        if "MAIL_TO" in os.environ:
            notifications = {"emails": [os.environ["MAIL_TO"]], "on": ["failure", "recovery"]}
        put = punctual.tasks.put(
            KEY,
            name="Nightly report",
            cron=CRON,
            time_zone=ZONE,
            http={"method": "POST", "url": receiver.url("/report"), "body": body},
            overlap="skip",  # a night that takes longer than a day skips the next one
            misfire="run_latest",  # after an outage only the last night is made up for
            max_attempts=5,
            notifications=notifications,
        )
        print(f"task {put.outcome}, next run {put.task.next_run.local_at if put.task.next_run else 'never'}")
        job = punctual.jobs.wait(punctual.tasks.run(put.task.id).id, timeout=120)
        print(f"run by hand: {job.status}, {job.start_delay_ms} ms after it was due")
        for past in punctual.tasks.jobs(put.task.id, limit=5):
            print(f"history: {past.scheduled_at:%Y-%m-%d %H:%M:%S} {past.status}")
        if not keep:
            punctual.tasks.delete(put.task.id)
    return 0 if job.succeeded and len(reports) == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
