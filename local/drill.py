"""`make drill`: what is promised of tasks, shown on a fresh local stack: on time and once, edits, overlap, batches, an outage of the tick.

    python -m local.drill                    all of it
    python -m local.drill regular batch      some drills; of batch, edits, regular, overlap, outage, flood, fair

The last line is JSON; exit code 1 if a promise was not kept.
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from rich import box
from rich.table import Table

from local import drills, previous
from local.client import Client
from local.drills import Outcome
from local.failure import Trouble, tell
from local.receiver import Receiver
from local.stack import Stack, up
from local.steps import console, step
from local.stop import DRILL
from local.warmup import warm_up
from local.written import written

ROUNDS = (("batch",), ("edits",), ("regular", "overlap"), ("outage",), ("flood",), ("fair",))  # those of a round side by side
NAMES = tuple(name for names in ROUNDS for name in names)
ABOUT = {
    "batch": "A thousand jobs in a call, twice",
    "edits": "A task edited every second for a minute",
    "regular": "Two tasks for five minutes",
    "overlap": "four tasks whose jobs take longer than their interval, for seven",
    "flood": "Five thousand jobs at once beside another user's",
    "fair": "Three users who want more than ten executors do",
    "outage": "Ten minutes without a tick (nineteen in all)",
}
AHEAD = timedelta(minutes=7)  # the first missed minute: far enough not to be handed over directly
MISSED = 10


def main() -> int:
    names = _names()
    previous.clear(DRILL)
    shutil.rmtree(DRILL.root, ignore_errors=True)
    with up(DRILL, port=os.environ.get("PORT"), enforce_iam=True) as stack, Receiver() as receiver:
        with step("Warming up the functions"):
            warm_up(stack.aws, stack.outputs, OneTime=3, Recurring=8, Retry=1)
        outcomes: dict[str, Outcome] = {}
        for wanted in ([name for name in names_of_round if name in names] for names_of_round in ROUNDS):
            if wanted:
                with step(" and ".join(ABOUT[name] for name in wanted)), ThreadPoolExecutor(len(wanted)) as pool:
                    work = {name: pool.submit(_drills(stack, receiver)[name]) for name in wanted}
                    outcomes |= {name: future.result() for name, future in work.items()}
    return report(outcomes)


def _drills(stack: Stack, receiver: Receiver) -> dict[str, Callable[[], Outcome]]:
    def client() -> Client:
        return stack.client()

    every_minute = {"cron": "*/1 * * * *"}
    return {
        "regular": lambda: drills.regular(client(), receiver, seconds=300, schedules=[every_minute, {"rate": "rate(5 seconds)"}]),
        "edits": lambda: drills.edits(client(), receiver, seconds=60),
        "overlap": lambda: drills.overlap(client(), schedule=every_minute, takes=90, seconds=400),
        "batch": lambda: drills.batch(client(), lambda beginning: written(stack, beginning)),
        "outage": lambda: outage(stack, client()),
        "flood": lambda: drills.flood(stack.user("anton"), stack.user("berta")),
        "fair": lambda: fair(stack),
    }


def outage(stack: Stack, client: Client) -> Outcome:
    """The tick is gone while ten runs of each task fall due; it comes back when all are late."""
    start = (datetime.now(UTC) + AHEAD).replace(second=0, microsecond=0)
    missed = drills.plan_missed(client, start=start, interval=drills.MINUTE, count=MISSED, threshold=60)
    until(start - timedelta(minutes=3))
    stack.set_tick("DISABLED")
    until(start + drills.MINUTE * (MISSED - 1) + timedelta(seconds=65))
    stack.set_tick("ENABLED")
    return drills.judge_missed(client, missed, seconds=180)


def fair(stack: Stack) -> Outcome:
    """Last of all: the stack keeps its few executors."""
    stack.narrow(drills.FEW_EXECUTORS)
    return drills.fair({name: stack.user(name, weight) for name, weight in drills.WEIGHTS.items()})


def until(instant: datetime) -> None:
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))


def report(outcomes: dict[str, Outcome]) -> int:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("drill", "figure", "value"):
        table.add_column(title)
    for name, outcome in outcomes.items():
        for number, (figure, value) in enumerate(outcome.figures.items()):
            table.add_row(name if number == 0 else "", figure, str(value))
    console.print(table)
    complaints = [f"{name}: {complaint}" for name, outcome in outcomes.items() for complaint in outcome.complaints]
    for complaint in complaints:
        console.print(f"NOT KEPT  {complaint}", style="red", markup=False)
    print(json.dumps({name: outcome.figures for name, outcome in outcomes.items()} | {"not_kept": complaints}))
    return 1 if complaints else 0


def _names() -> Sequence[str]:
    parser = argparse.ArgumentParser(prog="python -m local.drill", description="What is promised of tasks, shown on a fresh local stack.")
    parser.add_argument("drills", nargs="*", default=list(NAMES), help=f"of {', '.join(NAMES)}; all if none is named")
    names: list[str] = parser.parse_args().drills
    if unknown := [name for name in names if name not in NAMES]:
        raise Trouble(f"There is no drill {', '.join(unknown)}. Choose of: {', '.join(NAMES)}")
    return names


if __name__ == "__main__":
    raise SystemExit(tell(main))
