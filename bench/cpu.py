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
SHORT_JOBS, SHORT_EARLY = 60, 10  # in the short form, which runs each measurement once
# Imports a handler as Lambda does, with the clients of its first invocation; prints the milliseconds of processor time.
COLD = """
import importlib._bootstrap_external as loader, os, sys, time
written = loader.cache_from_source
def without(path, *more, **options):
    if "-packages" in path or not path.startswith(os.path.dirname(os.__file__)):
        raise NotImplementedError
    return written(path, *more, **options)
if {compiles}:  # only Python's own modules have bytecode
    loader.cache_from_source, sys.dont_write_bytecode = without, True
begin = time.process_time()
import lambdas.{verb}
sys.stderr.write(str((time.process_time() - begin) * 1000))
"""
COLD_VERBS = {"execute": 300, "worker": 300, "tick": 300, "fetch": 300, "api": None}  # with their budgets in ms

PARTS: list[tuple[str, int, str, float | None]] = [  # measurement, jobs, what, budget in ms
    ("dispatch", 5_000, "dispatch, a minute of 5,000 jobs at 1,000/s", 0.10),
    ("dispatch-sparse", 3_000, "  at 50/s (two jobs a call)", None),
    ("dispatch-floor", 5_000, "  boto3 alone: full batches, prepared arguments", None),
    ("execute", 2_000, "execute, full batches of `log`", 0.35),
    ("execute-held", 100, "  the same, waiting for their instant and read again", None),
    ("execute-runs", 2_000, "  runs of recurring tasks, which read their tasks before they start", None),
    ("execute-batch-floor", 2_000, "  boto3 alone: three calls a batch", None),
    ("execute-floor", 2_000, "  boto3 alone: two UpdateItem calls a job", None),
    ("plan", 6_000, "plan, top-ups of hourly tasks, six runs each", None),
    ("api", 500, "api, POST /jobs", None),
    ("batch", 5_000, "api, POST /jobs/batch, 1,000 jobs a call", 0.12),
]


def measure(short: bool = False) -> Iterator[Figure]:
    for name, jobs, what, budget in PARTS:
        if short:
            jobs = SHORT_EARLY if name == "execute-held" else SHORT_JOBS
        with step(f"CPU: {what.strip()}"):
            spent = statistics.median(_per_job(name, jobs) for _ in range(1 if short else RUNS))
        yield Figure(f"cpu.{name}_ms", f"CPU per job: {what}" if not what.startswith(" ") else what, round(spent, 4), "ms", budget)
    for verb, budget in COLD_VERBS.items():
        with step(f"CPU: a fresh process for {verb}"):
            cold, compiling = (statistics.median(_cold(verb, each) for _ in range(1 if short else COLD_RUNS)) for each in (False, True))
        yield Figure(f"cpu.cold_{verb}_ms", f"CPU of import and first clients: {verb}", round(cold, 1), "ms", budget)
        yield Figure(f"cpu.cold_{verb}_compiling_ms", "  without bytecode", round(compiling, 1), "ms")


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


def _cold(verb: str, compiles: bool) -> float:
    environment = {**os.environ, **ENVIRONMENT, "AWS_LAMBDA_FUNCTION_NAME": verb}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    code = COLD.format(verb=verb, compiles=compiles)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(done.stderr)
