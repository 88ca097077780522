"""CPU per job of api, plan, dispatch and execute with AWS answered in process, and CPU of a fresh process until it can serve.

Each measurement runs several times, each in its own process. The figure is their median: a busy machine can only add time.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.figures import Figure
from bench.inprocess import ENVIRONMENT
from local.steps import step

RUNS = 3
TRIES = 3
COLD_RUNS = 7
SHORT_JOBS, SHORT_HELD = 60, 10  # in the short form, which runs each measurement once
COLD = "import time; begin = time.process_time(); import lambdas.{0}; from lambdas import _runtime; _runtime.{0}(); "
COLD += "import sys; sys.stderr.write(str((time.process_time() - begin) * 1000))"

PARTS: list[tuple[str, int, str, float | None]] = [  # measurement, jobs, what, budget in ms
    ("dispatch", 5_000, "dispatch, a minute of 5,000 jobs at 1,000/s", 0.15),
    ("dispatch-sparse", 3_000, "  at 50/s (two jobs a call)", None),
    ("dispatch-floor", 5_000, "  boto3 alone: full batches, prepared arguments", None),
    ("execute", 2_000, "execute, full batches of `log`", 1.0),
    ("execute-held", 100, "  the same, waiting for their instant and read again", None),
    ("execute-runs", 2_000, "  runs of recurring tasks, which read their tasks before they start", None),
    ("execute-batch-floor", 2_000, "  boto3 alone: three calls a batch", None),
    ("execute-floor", 2_000, "  boto3 alone: two UpdateItem calls a job", None),
    ("plan", 6_000, "plan, top-ups of hourly tasks, six runs each", None),
    ("api", 500, "api, POST /me/jobs", None),
    ("batch", 5_000, "api, POST /me/jobs/batch, 1,000 jobs a call", 0.2),
]


def measure(short: bool = False) -> Iterator[Figure]:
    for name, jobs, what, budget in PARTS:
        if short:
            jobs = SHORT_HELD if name == "execute-held" else SHORT_JOBS
        with step(f"CPU: {what.strip()}"):
            spent = statistics.median(_per_job(name, jobs) for _ in range(1 if short else RUNS))
        yield Figure(f"cpu.{name}_ms", f"CPU per job: {what}" if not what.startswith(" ") else what, round(spent, 4), "ms", budget)
    for verb in ("tick", "dispatch", "execute"):
        with step(f"CPU: a fresh process for {verb}"):
            spent = statistics.median(_cold(verb) for _ in range(1 if short else COLD_RUNS))
        yield Figure(f"cpu.cold_{verb}_ms", f"CPU of import and first clients: {verb}", round(spent, 1), "ms", 300)


def spent(name: str, jobs: int) -> dict[str, Any]:
    """Run one measurement of `bench.inprocess` and return its result; a failed run, usually of a busy machine, is repeated."""
    command = [sys.executable, "-m", "bench.inprocess", name, str(jobs)]
    for _ in range(TRIES):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.returncode:
            break
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _per_job(name: str, jobs: int) -> float:
    return float(spent(name, jobs)["cpu_ms"]) / jobs


def _cold(verb: str) -> float:
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run([sys.executable, "-c", COLD.format(verb)], env=environment, capture_output=True, text=True, check=True)
    return float(done.stderr)
