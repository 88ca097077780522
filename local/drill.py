"""`make drill`: what is promised, shown on a fresh local stack: tasks on time and once, edits, overlap, batches, kills, crashes,
redrives, an outage of the tick, faults of the services.

    python -m local.drill                    all of it
    python -m local.drill regular batch      some drills; `--help` lists them

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

from local import drill_fair, drill_order, drills, executors, faults, previous, process, target_drills
from local.client import Client
from local.drills import Outcome
from local.failure import Trouble, tell
from local.faulty import Faulty
from local.receiver import Receiver
from local.stack import Stack, up
from local.steps import console, step
from local.stop import DRILL
from local.warmup import warm_up
from local.write_units import stored_units

ROUNDS = (  # those of a round side by side
    ("batch",),
    ("limits",),
    ("failures",),
    ("edits",),
    ("ordering",),
    ("kill",),
    ("crash",),
    ("redrive",),
    ("regular", "overlap"),
    ("outage",),
    ("flood",),
    ("faults",),
    ("fair",),  # last: the stack keeps its few executors
)
NAMES = tuple(name for names in ROUNDS for name in names)
ABOUT = {
    "batch": "A thousand jobs in a call, twice",
    "limits": "Four hundred jobs of a target that takes 20 a second and 5 at once, beside a hundred of another",
    "failures": "Targets that fail in every way",
    "edits": "A task edited every second for a minute",
    "kill": "Work past its time-out is killed, running work cancelled",
    "crash": "Executors killed at random under 300 jobs, and by one of their own",
    "redrive": "500 dead jobs at 50 a second",
    "ordering": "A thousand jobs of fifty ordering keys, with failures and doubled messages, alone and beside keys that are held up",
    "regular": "Two tasks for five minutes",
    "overlap": "four tasks whose jobs take longer than their interval, for seven",
    "flood": "Five thousand jobs at once beside another user's",
    "fair": "Three users who want more than ten executors do",
    "outage": "Ten minutes without a tick (nineteen in all)",
    "faults": "Twelve faults, one after the other (a quarter of an hour)",
}
AHEAD = timedelta(minutes=7)  # the first missed minute: far enough not to be handed over directly
MISSED = 10
HUNTED = 10  # executors of one-time jobs in the crash drill; those of the retry lane come on top


def main() -> int:
    names = _names()
    previous.clear(DRILL)
    shutil.rmtree(DRILL.root, ignore_errors=True)
    with up(DRILL, port=os.environ.get("PORT"), enforce_iam=True) as stack, Receiver() as receiver:
        with step("Warming up the functions"):
            _warm(stack)
        outcomes: dict[str, Outcome] = {}
        for wanted in ([name for name in names_of_round if name in names] for names_of_round in ROUNDS):
            if wanted:
                with step(" and ".join(ABOUT[name] for name in wanted)), ThreadPoolExecutor(len(wanted)) as pool:
                    work = {name: pool.submit(_drills(stack, receiver)[name]) for name in wanted}
                    outcomes |= {name: future.result() for name, future in work.items()}
    return report(outcomes)


def _warm(stack: Stack) -> None:
    """As many executors as a burst brings up: on AWS their starts take no processor from each other, here all share two cores."""
    warm_up(stack.aws, stack.outputs, OneTime=stack.most_executors, Recurring=8, Retry=20)


def _drills(stack: Stack, receiver: Receiver) -> dict[str, Callable[[], Outcome]]:
    def client() -> Client:
        return stack.client()

    every_minute = {"cron": "*/1 * * * *"}
    return {
        "regular": lambda: drills.regular(client(), receiver, seconds=300, schedules=[every_minute, {"rate": "rate(5 seconds)"}]),
        "edits": lambda: drills.edits(client(), receiver, seconds=60),
        "overlap": lambda: drills.overlap(client(), schedule=every_minute, takes=90, seconds=400),
        "kill": lambda: executors.kill(client()),
        "crash": lambda: crash(stack, receiver),
        "redrive": lambda: drills.redrive(client(), receiver),
        "batch": lambda: drills.batch(client(), lambda beginning: stored_units(stack, beginning)),
        "ordering": lambda: drill_order.ordering(client(), receiver, drill_order.doubler(stack, client().user_id())),
        "limits": lambda: target_drills.limits(client(), receiver),
        "failures": lambda: target_drills.failures(client(), receiver),
        "outage": lambda: outage(stack, client()),
        "flood": lambda: drill_fair.flood(stack.user("anton"), stack.user("berta")),
        "fair": lambda: fair(stack),
        "faults": lambda: deal_faults(stack, receiver),
    }


def deal_faults(stack: Stack, receiver: Receiver) -> Outcome:
    """All of `local/faults.py`."""
    with Faulty() as proxy:
        seen, lines = faults.deal(stack, proxy, receiver)
    seen.figures |= {line["fault"]: " ".join(f"{line[name]} {name}," for name in faults.COLUMNS[1:]).rstrip(",") for line in lines}
    return seen


def workers(stack: Stack) -> list[process.Process]:
    """The processes of the executors that one-time jobs and retries go to."""
    names = [stack.outputs[f"Execute{lane}Function"] for lane in ("OneTime", "Retry")]
    return [each for name in names for each in process.naming(stack.home.scratch, name)]


def crash(stack: Stack, receiver: Receiver) -> Outcome:
    """On so few executors that two kills for each fall within the time in which jobs run; the next drill finds as many as before."""
    most = stack.most_executors
    stack.narrow(HUNTED)
    for idle in workers(stack):  # what the warm-up and earlier drills left
        process.kill(idle)
    seen = executors.crash(stack.client(), receiver, lambda: workers(stack))
    stack.narrow(most)
    _warm(stack)
    kills, at_once = seen.figures["kills"], seen.figures["workers at once, most"]
    seen.expect(kills >= 2 * at_once, f"{kills} kills for {at_once} workers: fewer than two for each")
    return seen


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
    """On few executors, which the stack then keeps."""
    stack.narrow(drill_fair.EXECUTORS)
    return drill_fair.fair({name: stack.user(name, weight) for name, weight in drill_fair.WEIGHTS.items()})


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
    parser = argparse.ArgumentParser(prog="python -m local.drill", description="What is promised, shown on a fresh local stack.")
    parser.add_argument("drills", nargs="*", default=list(NAMES), help=f"of {', '.join(NAMES)}; all if none is named")
    names: list[str] = parser.parse_args().drills
    if unknown := [name for name in names if name not in NAMES]:
        raise Trouble(f"There is no drill {', '.join(unknown)}. Choose of: {', '.join(NAMES)}")
    return names


if __name__ == "__main__":
    raise SystemExit(tell(main))
