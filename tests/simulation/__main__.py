"""`make simulate`: runs many seeds, prints a line for each, and one JSON object on the last line.

The runs of the usual world are followed by a few of the world `unexpected`, which takes three times as long for a job: its jobs are items.
The last run is that of the world `hostile`, in which one owner does ten things at once beside quiet owners (20 s).
"""

import argparse
import gc
import json
import logging
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

from lab.world.faults import CALM, ROUGH
from tests.simulation.hostile import HostileWorld
from tests.simulation.item_faults import CodedWorld
from tests.simulation.keyed import KeyedWorld
from tests.simulation.lenient import LenientWorld
from tests.simulation.unexpected import UnexpectedWorld
from tests.simulation.world import USUAL, Report, World

KINDS: tuple[str, ...] = ("lost", "early", "double_settled", "double_started", "stuck", "started_after_cancel", "ledger_open")
KINDS += (
    "run_missing",
    "missed_run_twice",
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
    "started_before_predecessor",
    "successor_never_decided",
    "skipped_though_met",
    "started_in_paused_key",
    "more_at_once",
    "above_rate",
    "closed_over",
    "doubled_by_key",
    "conflict_with_itself",
    "others_late",
    "planned_late",
    "group_early",
    "group_twice",
    "group_never",
    "group_miscounted",
    "group_lost",
)
WORLDS: dict[str, type[World]] = {
    "usual": World,
    "coded": CodedWorld,
    "keyed": KeyedWorld,
    "lenient": LenientWorld,
    "unexpected": UnexpectedWorld,
    "hostile": HostileWorld,
}
LONG = {"seeds": 1_000, "jobs": 10_000, "minutes": 60, "unexpected": 40}  # `--long`: ten million jobs, an hour and a half of one core


class Run(NamedTuple):
    """The report of one seed, and the processor time that it took."""

    world: str
    report: Report
    seconds: float


def main() -> int:
    args = _arguments()
    violations, faults, ordered, after = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    jobs, runs, starts, done, seconds = 0, 0, 0, 0, 0.0
    began = time.monotonic()
    worlds = [(args.world, args.first + number) for number in range(args.seeds)]
    worlds += [("unexpected", args.first + number) for number in range(args.unexpected)] if args.world == "usual" and not args.calm else []
    worlds += [("hostile", args.first)] if args.world == "usual" and not args.calm else []
    with ProcessPoolExecutor(args.processes, initializer=_prepare) as pool:
        for world, report, took in pool.map(partial(_run, args), worlds):
            _show(world, report, args)
            violations += report.violations
            faults += report.faults
            jobs += report.jobs + args.ordered
            runs += report.runs
            starts += report.starts
            ordered.update(started=report.ordered, waited=report.waited, paused=report.paused)
            after.update(started=report.after, skipped=report.skipped_after)
            if world == args.world:  # the speed is that of the chosen world
                done, seconds = done + report.jobs + args.ordered + report.runs, seconds + took
    summary = {
        "seeds": len(worlds),
        "jobs": jobs,
        "runs_started": runs,
        "starts": starts,
        "ordered": dict(ordered),
        "after": dict(after),
        "faults": dict(faults),
    } | {kind: violations[kind] for kind in KINDS}
    summary |= {kind: count for kind, count in violations.items() if kind not in KINDS}
    # Per second of one processor: that figure is compared between versions. Per minute of the clock: what one waits for.
    minutes = max(time.monotonic() - began, 0.001) / 60
    speed = {"jobs_per_minute": round((jobs + runs) / minutes), "jobs_per_second": round(done / max(seconds, 0.001))}
    print(json.dumps(summary | speed))
    return 1 if violations else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the real services in virtual time, with faults between any two effects.")
    parser.add_argument("--seeds", type=int, default=40, help="number of runs, each with its own seed (default 40)")
    parser.add_argument("--first", type=int, default=1, help="the first seed; the same seed repeats a run exactly (default 1)")
    parser.add_argument("--jobs", type=int, default=USUAL["jobs"], help=f"jobs per run (default {USUAL['jobs']})")
    parser.add_argument("--tasks", type=int, default=USUAL["tasks"], help=f"tasks per run (default {USUAL['tasks']})")
    parser.add_argument(
        "--ordered", type=int, default=USUAL["ordered"], help=f"further jobs with ordering keys per run (default {USUAL['ordered']})"
    )
    parser.add_argument("--groups", type=int, default=USUAL["groups"], help=f"groups of jobs per run (default {USUAL['groups']})")
    parser.add_argument(
        "--after", type=int, default=USUAL["after"], help=f"further jobs that wait for others per run (default {USUAL['after']})"
    )
    parser.add_argument(
        "--minutes", type=int, default=USUAL["minutes"], help=f"virtual minutes in which jobs are posted (default {USUAL['minutes']})"
    )
    parser.add_argument("--calm", action="store_true", help="no faults")
    parser.add_argument(
        "--world",
        choices=WORLDS,
        default="usual",
        help="coded: jobs are items; keyed: users also name jobs by keys; lenient: queues take old receipts; unexpected: see --unexpected; "
        "hostile: one owner beside quiet ones, of a size of its own",
    )
    parser.add_argument(
        "--unexpected", type=int, default=4, help="further runs in which calls raise any error and batches are answered in part (default 4)"
    )
    parser.add_argument("--long", action="store_true", help="{seeds} runs of {jobs} jobs in {minutes} minutes".format(**LONG))
    processors = os.cpu_count() or 1
    parser.add_argument(
        "--processes", type=int, default=processors, help=f"seeds that run at the same time (default: the processors, here {processors})"
    )
    args = parser.parse_args()
    if args.long:
        vars(args).update(LONG)
    return args


def _prepare() -> None:
    """Prepare a process that runs seeds."""
    logging.disable(logging.CRITICAL)  # the services log every simulated fault
    gc.disable()  # a world is full of young objects: frequent collections take a tenth of the time
    gc.freeze()  # the collection after a world skips the imported modules


def _run(args: argparse.Namespace, which: tuple[str, int]) -> Run:
    name, seed = which
    began = time.process_time()
    rates = None if name == "hostile" else CALM if args.calm else ROUGH
    world = HostileWorld(seed) if rates is None else WORLDS[name](seed, rates)
    others = {"ordered": args.ordered, "groups": args.groups, "after": args.after}
    report = world.run(args.jobs, args.minutes, tasks=args.tasks, **others)
    world.take_apart()
    gc.collect()  # frees the rest of the world
    return Run(name, report, time.process_time() - began)


def _show(world: str, report: Report, args: argparse.Namespace) -> None:
    delays = sorted(report.delays)
    late = delays[len(delays) * 99 // 100] if delays else 0
    bad = sum(report.violations.values())
    counts = f"jobs {report.jobs:6d}  runs {report.runs:5d}  starts {report.starts:6d}"
    name = "" if world == args.world else f"  {world}"
    print(f"seed {report.seed:6d}  {counts}  p99 {late:8d} ms  violations {bad}{name}", flush=True)
    for example in report.examples:
        print("   ", example)
    if bad:
        options = "--unexpected 0 " if world == "usual" else f"--world {world} "
        options += (
            f"--jobs {args.jobs} --tasks {args.tasks} --ordered {args.ordered} --groups {args.groups} --after {args.after} "
            f"--minutes {args.minutes}" + " --calm" * args.calm
        )
        print(f"    repeat exactly: .venv/bin/python -m tests.simulation --first {report.seed} --seeds 1 {options}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
