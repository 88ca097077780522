"""A view counter that is rolled up every minute: each view counts once, even if a roll-up is delivered twice.

python -m examples.view_counter.main [--views 500] [--rate "2 seconds"] [--runs 3]
"""

import argparse
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping

from punctual import Punctual

from examples.receiver import Receiver

KEY = "example-view-counter"


class Views:
    """Views go to a buffer; a roll-up moves the buffer to the totals. `done` has the key of each roll-up, in the same step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buffer: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        self.done: dict[str, int] = {}

    def count(self, page: str) -> None:
        with self._lock:
            self._buffer[page] += 1

    def roll_up(self, key: str) -> int:
        """Move the buffer to the totals, once for each key. Return the number of views that this key has moved."""
        with self._lock:
            if key not in self.done:
                self.totals.update(self._buffer)
                self.done[key] = self._buffer.total()
                self._buffer.clear()
            return self.done[key]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--views", type=int, default=500)
    options.add_argument("--rate", default="2 seconds", help='"1 minute" in a real program')
    options.add_argument("--runs", type=int, default=3)
    arguments = options.parse_args()
    views, lost_one = Views(), threading.Event()

    def roll_up(path: str, headers: Mapping[str, str], body: bytes) -> int:
        key = headers["idempotency-key"]  # the job's id, the same in every attempt
        repeated = key in views.done
        print(f"roll-up {len(views.done) + (not repeated)}: {views.roll_up(key)} views{' (again)' if repeated else ''}")
        if not lost_one.is_set():
            lost_one.set()
            return 500  # the work is done and the answer is bad: the roll-up comes again
        return 200

    with Punctual() as punctual, Receiver(roll_up) as receiver:
        task = punctual.tasks.put(
            KEY,
            name="Roll up views",
            rate=arguments.rate,
            max_runs=arguments.runs,
            http=receiver.url("/roll-up"),
            overlap="queue_one",  # never two at once
            misfire="run_latest",  # the views of a missed run are still in the buffer
            retry={"base_seconds": 1, "cap_seconds": 1},
        ).task
        chances = random.Random(3)
        for _ in range(arguments.views):
            views.count(chances.choice(("/home", "/prices", "/docs")))
        while task.status != "ended" or any(not job.ended for job in punctual.tasks.jobs(task.id)):
            time.sleep(1)
            task = punctual.tasks.get(task.id)
        skipped = sum(job.status == "skipped" for job in punctual.tasks.jobs(task.id))
        punctual.tasks.delete(task.id)
    views.roll_up("the end")
    print(f"totals: {dict(views.totals)}, {views.totals.total()} of {arguments.views} views, {skipped} roll-ups skipped")
    return 0 if views.totals.total() == arguments.views else 1


if __name__ == "__main__":
    raise SystemExit(main())
