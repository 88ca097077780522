"""A job that takes longer than a call: a worker takes it over, sends heartbeats, and reports. One worker dies on the way.

python -m examples.long_job.main [--pages 5] [--seconds 1]
"""

import argparse
import multiprocessing
import os
import signal
import time
from collections.abc import Mapping
from multiprocessing.process import BaseProcess

from punctual import CallbackEnded, Punctual, Worker

from examples.receiver import Receiver

LEASE = 10  # seconds: the shortest lease. A real job has a minute or more


def work(headers: Mapping[str, str], pages: int, seconds: float, dies: bool) -> None:
    """The worker, a process of its own: writes one page after the other."""
    try:
        with Worker.from_headers(headers) as job:
            for page in range(1, pages + 1):
                job.progress(page / pages, f"page {page} of {pages}")
                time.sleep(seconds)  # the work
                if job.cancel_requested.is_set():
                    job.fail("stopped as requested")
                    return
                if dies and page == 2:
                    print(f"worker {os.getpid()}: killed after page {page}", flush=True)
                    os.kill(os.getpid(), signal.SIGKILL)
            job.complete({"pages": pages})
            print(f"worker {os.getpid()}: done", flush=True)
    except CallbackEnded:
        print(f"worker {os.getpid()}: another worker has the job", flush=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pages", type=int, default=5)
    options.add_argument("--seconds", type=float, default=1, help="how long a page takes")
    arguments = options.parse_args()
    processes = multiprocessing.get_context("spawn")
    workers: list[BaseProcess] = []

    def accept(path: str, headers: Mapping[str, str], body: bytes) -> int:
        """Start a worker and answer at once: the job goes on without this request."""
        worker = processes.Process(target=work, args=(dict(headers), arguments.pages, arguments.seconds, not workers))
        workers.append(worker)
        worker.start()
        print(f"worker {worker.pid}: takes the job over", flush=True)
        return 202

    with Punctual() as punctual, Receiver(accept) as receiver:
        job = punctual.jobs.create(http=receiver.url("/report"), callback={"lease_seconds": LEASE, "max_seconds": 600})
        shown = None
        while not job.ended:
            time.sleep(0.5)
            job = punctual.jobs.get(job.id)
            if job.progress and job.progress != shown and not job.ended:
                shown = job.progress
                print(f"job: {job.progress.fraction:.0%} {job.progress.message}", flush=True)
        for worker in workers:
            worker.join()
    print(f"{job.status} after {len(job.attempts)} attempts: {', '.join(attempt.outcome for attempt in job.attempts)}; output {job.output}")
    return 0 if job.succeeded and [attempt.outcome for attempt in job.attempts] == ["crashed", "succeeded"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
