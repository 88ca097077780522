"""Call a URL again and again, and show how it went: sixty times an hour, or as often as you like.

python -m examples.url_cron.main [--rate "1 minute"] [--runs 3] [--url https://…]
"""

import argparse
import time
from collections.abc import Mapping
from datetime import datetime

from punctual import Punctual

from examples.receiver import Receiver

KEY = "example-url-cron"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rate", default="2 seconds", help='"1 minute" is sixty times an hour')
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--url", help="the URL to call; without it, this program")
    arguments = options.parse_args()
    calls: list[datetime] = []

    def called(path: str, headers: Mapping[str, str], body: bytes) -> int:
        calls.append(datetime.now())
        return 503 if len(calls) == 2 else 200  # the second call fails, and is repeated

    with Punctual() as punctual, Receiver(called) as receiver:
        task = punctual.tasks.put(
            KEY,
            name="Call a URL",
            rate=arguments.rate,
            max_runs=arguments.runs,
            http=arguments.url or receiver.url("/tick"),
            overlap="skip",  # a slow answer does not pile up calls
            retry={"base_seconds": 1, "cap_seconds": 1},
        ).task
        print(f"task {task.id} calls every {arguments.rate}, {arguments.runs} times")
        while task.status != "ended" or any(not job.ended for job in punctual.tasks.jobs(task.id)):
            time.sleep(1)
            task = punctual.tasks.get(task.id)
        history = list(punctual.tasks.jobs(task.id))
        for job in reversed(history):
            tries = f", {len(job.attempts)} attempts" if len(job.attempts) > 1 else ""
            status = job.response.status if job.response else "-"
            print(
                f"{job.scheduled_at:%H:%M:%S}  {job.status}  HTTP {status}  {job.start_delay_ms} ms late, took {job.duration_ms} ms{tries}"
            )
        punctual.tasks.delete(task.id)
    return 0 if len(history) == arguments.runs and all(job.succeeded for job in history) else 1


if __name__ == "__main__":
    raise SystemExit(main())
