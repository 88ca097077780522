"""`make simulate`: many seeds, a table, and one JSON object on the last line."""

import argparse
import gc
import json
import logging
import sys
import time
from collections import Counter

from tests.simulation.faults import CALM, ROUGH
from tests.simulation.world import World

KINDS = ("lost", "early", "double_settled", "double_started", "stuck", "started_after_cancel", "ledger_open")
KINDS += (
    "run_missing",
    "run_open",
    "old_generation_started",
    "started_while_paused",
    "overlapped",
    "out_of_order",
    "started_too_late",
    "started_in_paused_lane",
    "rescued_early",
    "rescued_late",
    "out_of_line",
    "two_of_a_key",
    "started_in_parked_key",
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the real services in virtual time, with faults between any two effects.")
    parser.add_argument("--seeds", type=int, default=40, help="how many runs (default 40)")
    parser.add_argument("--first", type=int, default=1, help="the first seed: a failing one replays exactly (default 1)")
    parser.add_argument("--jobs", type=int, default=5_000, help="jobs per run (default 5000)")
    parser.add_argument("--tasks", type=int, default=12, help="tasks that people keep in each run (default 12)")
    parser.add_argument("--ordered", type=int, default=300, help="jobs with ordering keys per run, besides (default 300)")
    parser.add_argument("--minutes", type=int, default=30, help="virtual minutes in which they are posted (default 30)")
    parser.add_argument("--calm", action="store_true", help="no faults")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)  # a million simulated troubles are no news
    violations: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    ordered: Counter[str] = Counter()
    gc.set_threshold(100_000, 50, 50)  # a world is full of young objects: to look at them all the time is a fifth of the work
    jobs, runs, began = 0, 0, time.process_time()
    for seed in range(args.first, args.first + args.seeds):
        report = World(seed, CALM if args.calm else ROUGH).run(args.jobs, args.minutes, tasks=args.tasks, ordered=args.ordered)
        delays = sorted(report.delays)
        late = delays[len(delays) * 99 // 100] if delays else 0
        bad = sum(report.violations.values())
        print(
            f"seed {seed:6d}  jobs {report.jobs:6d}  runs {report.runs:5d}  starts {report.starts:6d}  p99 {late:8d} ms  violations {bad}"
        )
        for example in report.examples:
            print("   ", example)
        violations += report.violations
        faults += report.faults
        jobs += report.jobs
        runs += report.runs
        ordered.update(started=report.ordered, waited=report.waited, parked=report.parked)
    seconds = time.process_time() - began
    summary = {"seeds": args.seeds, "jobs": jobs, "runs_started": runs, "ordered": dict(ordered), "faults": dict(faults)} | {
        kind: violations[kind] for kind in KINDS
    }
    summary |= {kind: count for kind, count in violations.items() if kind not in KINDS}
    print(json.dumps(summary | {"jobs_per_second": round((jobs + runs) / seconds)}))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
