"""CPU per job with traces: `python -m bench.tracing [--before FOLDER] [--runs N]`. Figures are ratios to the executor without traces.

    before     the executor of another checkout, such as one of the release before
    off        no option, and no traceparent
    passed on  no option, and each job has a traceparent
    on         the option `traces`, and each job has a traceparent
    spans      what `announce` adds for a job: the three spans of a success, as JSON

The variants take turns, and each figure is the median of its runs: a busy machine can only add time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench import inprocess
from lambdas._settings import Settings
from scheduler.model.job import Job
from scheduler.notify import spans

RUNS, JOBS, SPANS = 7, 1_000, 5_000
CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
VARIANTS = ("off", "passed on", "on", "spans")


class _Write(NamedTuple):
    before: Job | None
    after: Job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="the folder of another checkout")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--one", choices=VARIANTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps({"ms": _measured(args.one)}))
        return
    found: dict[str, list[float]] = {name: [] for name in (*(["before"] if args.before else []), *VARIANTS)}
    for _ in range(args.runs):
        for name, figures in found.items():
            figures.append(_before(args.before) if name == "before" else _apart(name))
    off = statistics.median(found["off"])
    for name, figures in found.items():
        middle = statistics.median(figures)
        print(f"{name:10} {middle:7.4f} ms a job, {middle / off:6.3f} of off; lowest {min(figures):.4f}, highest {max(figures):.4f}")


def _before(folder: str) -> float:
    done = _run(["bench.inprocess", "execute", str(JOBS)], folder)
    return float(done["cpu_ms"]) / JOBS


def _apart(variant: str) -> float:
    return float(_run(["bench.tracing", "--one", variant], str(Path.cwd()))["ms"])


def _run(module: list[str], folder: str) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": folder}
    done = subprocess.run([sys.executable, "-m", *module], capture_output=True, text=True, check=True, cwd=folder, env=environment)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def _measured(variant: str) -> float:
    """The milliseconds of processor time for a job, in this process."""
    if variant == "spans":
        return _spans()
    if variant == "on":
        rules = replace(inprocess.SETTINGS.rules, traces=True)
        inprocess.ENVIRONMENT |= Settings(rules=rules).render()
    if variant != "off":
        inprocess._job = _with_context(inprocess._job)  # type: ignore[assignment]
    return float(inprocess.measure("execute", JOBS)["cpu_ms"]) / JOBS


def _with_context(make: Callable[[int], Job]) -> Callable[[int], Job]:
    return lambda at: replace(make(at), trace=CONTEXT)


def _spans() -> float:
    pairs = [inprocess._pair(inprocess.NOW, "request") for _ in range(SPANS)]
    writes = [(_Write(None, job), _Write(taken, inprocess._succeeded(taken))) for job, taken in pairs]
    begin = time.process_time()
    for start in range(0, SPANS, 50):
        made = spans.of_changes([write for both in writes[start : start + 50] for write in both], 1.0)
        json.dumps(spans.document(made, {}), separators=(",", ":"))
    return (time.process_time() - begin) * 1_000 / SPANS


if __name__ == "__main__":
    main()
