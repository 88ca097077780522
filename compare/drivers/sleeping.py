"""A loop of Python that sleeps until each job's instant: the floor of this machine. Its jobs are in memory and end with it."""

import heapq
import platform
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from compare.drivers import lib

THREADS = 10  # for jobs that call a URL


def describe() -> Mapping[str, Any]:
    return {
        "versions": {"python": platform.python_version()},
        "settings": f"1 process, a heap in memory, time.sleep; {THREADS} threads for calls. It stores nothing",
        "workers": [["python", "-m", "compare.drivers.sleeping", "worker"]],
        "per_second": 50_000,
        "ready_s": 1,
    }


def worker() -> None:
    waiting: list[tuple[float, str, str]] = []
    more = threading.Condition()

    def create(name: str, at: float, url: str) -> None:
        with more:
            heapq.heappush(waiting, (at, name, url))
            if waiting[0][1] == name:
                more.notify()

    def start() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            while True:
                with more:
                    now = time.time()
                    if not waiting or waiting[0][0] > now:
                        more.wait(waiting[0][0] - now if waiting else None)
                        continue
                    _, name, url = heapq.heappop(waiting)
                if url:
                    pool.submit(lib.run, name, url)
                else:
                    lib.run(name)

    threading.Thread(target=start, daemon=True).start()
    lib.follow(create, "in memory")


if __name__ == "__main__":
    lib.main(describe, lib.hand_over, worker=worker)
