"""`make drill`: check the promises of Punctual on a fresh local stack: tasks on time and once, edits, overlap, batches, kills, crashes,
redrives, an outage of the tick, faults of the services, services away.

    python -m lab.scenarios.drill                    all drills
    python -m lab.scenarios.drill regular batch      some drills; `--help` lists them

The last line is JSON. The exit code is 1 if a promise was broken.
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from botocore.exceptions import ClientError
from punctual import Punctual, PunctualError
from rich import box
from rich.table import Table

from lab.judge import Outcome
from lab.scenarios import drill_fair, drill_order, drills, executors, faults, target_drills
from lab.scenarios.faulty import Faulty
from local import previous, process
from local.failure import Trouble, exit_code
from local.receiver import Receiver
from local.stack import Stack, up
from local.steps import console, step
from local.stop import DRILL
from local.warmup import warm_up
from local.write_units import stored_units
from scheduler.model import slots

ROUNDS = (  # the drills of a round run at the same time
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
    ("away",),
    ("fair",),  # last: it leaves the stack with few executors
)
NAMES = tuple(name for names in ROUNDS for name in names)
ABOUT = {
    "batch": "Posting a thousand jobs in one call, twice",
    "limits": "Running 400 jobs of a target limited to 20 a second and 5 at once, beside 100 jobs of another target",
    "failures": "Calling targets that fail in every way",
    "edits": "Editing a task every second for a minute",
    "kill": "Killing work past its time-out, and cancelling running work",
    "crash": "Killing executors at random while 300 jobs run, then running a job that kills each executor that starts it",
    "redrive": "Redriving 500 dead jobs at 50 a second",
    "ordering": "Running a thousand jobs of fifty ordering keys with failures and duplicate messages, alone and beside blocked keys",
    "regular": "Running two tasks for five minutes",
    "overlap": "four tasks whose jobs take longer than their interval, for seven minutes",
    "flood": "Posting five thousand jobs at once beside another user's jobs",
    "fair": "Sharing ten executors between three users who post more than these can run",
    "outage": "Stopping the tick for ten minutes (nineteen minutes in all)",
    "faults": "Causing twelve faults, one after the other (a quarter of an hour)",
    "away": "Taking DynamoDB, SQS and SNS away for 100 s, each and together (twenty minutes)",
}
AHEAD = timedelta(minutes=7)  # the first missed minute: too far ahead for the direct path
MISSED = 10
HUNTED = 10  # executors of one-time jobs in the crash drill; the retry lane has more


def main() -> int:
    names = _names()
    previous.clear(DRILL)
    shutil.rmtree(DRILL.root, ignore_errors=True)
    with up(DRILL, port=os.environ.get("PORT"), enforce_iam=True) as stack, Receiver() as receiver:
        with step("Warming up the functions"):
            _warm(stack)
        outcomes: dict[str, Outcome] = {}
        for chosen in ([name for name in names_of_round if name in names] for names_of_round in ROUNDS):
            if chosen:
                with step(" and ".join(ABOUT[name] for name in chosen)), ThreadPoolExecutor(len(chosen)) as pool:
                    work = {name: pool.submit(_drills(stack, receiver)[name]) for name in chosen}
                    outcomes |= {name: ended(future) for name, future in work.items()}
    return report(outcomes)


def ended(work: Future[Outcome]) -> Outcome:
    """Return the outcome of a drill. An error that ended it is a complaint, so that the other drills are reported."""
    try:
        return work.result()
    except (PunctualError, Trouble, ClientError) as error:
        seen = Outcome()
        seen.expect(False, f"ended by an error: {error}")
        return seen


def _warm(stack: Stack) -> None:
    """Start as many executors as a burst would: on AWS they start independently, here their starts would share a few cores."""
    warm_up(stack.aws, stack.outputs, OneTime=stack.most_executors, Recurring=8, Retry=20)


def _drills(stack: Stack, receiver: Receiver) -> dict[str, Callable[[], Outcome]]:
    def client() -> Punctual:
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
        "ordering": lambda: drill_order.ordering(client(), receiver, drill_order.doubler(stack, client().me().id)),
        "limits": lambda: target_drills.limits(client(), receiver),
        "failures": lambda: target_drills.failures(client(), receiver),
        "outage": lambda: outage(stack, client()),
        "flood": lambda: drill_fair.flood(stack.user("anton"), stack.user("berta")),
        "fair": lambda: fair(stack),
        "faults": lambda: deal_faults(stack, receiver, faults.MOST),
        "away": lambda: deal_faults(stack, receiver, faults.AWAY),
    }


def deal_faults(stack: Stack, receiver: Receiver, names: Sequence[str]) -> Outcome:
    """Cause these faults of `lab/scenarios/faults.py`. Then the functions reach the local AWS without the proxy again, which ends here."""
    try:
        with Faulty() as proxy:
            seen, lines = faults.deal(stack, proxy, receiver, names)
    finally:
        stack.functions_endpoint = None
        stack.restart(enforce_iam=True)
    seen.figures |= {line["fault"]: " ".join(f"{line[name]} {name}," for name in faults.COLUMNS[1:]).rstrip(",") for line in lines}
    return seen


def workers(stack: Stack) -> list[process.Process]:
    """Return the executor processes of the one-time and the retry lane."""
    names = [stack.outputs[f"Execute{lane}Function"] for lane in ("OneTime", "Retry")]
    return [each for name in names for each in process.naming(stack.home.scratch, name)]


def crash(stack: Stack, receiver: Receiver) -> Outcome:
    """Run the crash drill on few executors, so that two kills for each fit into it. Restores their number afterwards."""
    most = stack.most_executors
    stack.narrow(HUNTED)
    for idle in workers(stack):  # left by the warm-up and by earlier drills
        process.kill(idle)
    seen = executors.crash(stack.client(), receiver, lambda: workers(stack))
    stack.narrow(most)
    _warm(stack)
    kills, at_once = seen.figures["kills"], seen.figures["workers at once, most"]
    seen.expect(kills >= 2 * at_once, f"{kills} kills for {at_once} workers: fewer than two for each")
    return seen


def outage(stack: Stack, client: Punctual) -> Outcome:
    """Stop the tick while ten runs of each task fall due, and start it again when all of them are late."""
    start = (datetime.now(UTC) + AHEAD).replace(second=0, microsecond=0)
    missed = drills.plan_missed(client, start=start, interval=drills.MINUTE, count=MISSED, threshold=60)
    until(start - timedelta(milliseconds=slots.OPEN_AHEAD, seconds=5))  # no tick has opened the first missed minute yet
    stack.set_tick("DISABLED")
    until(start + drills.MINUTE * (MISSED - 1) + timedelta(seconds=65))
    stack.set_tick("ENABLED")
    return drills.judge_missed(client, missed, seconds=180)


def fair(stack: Stack) -> Outcome:
    """Run the drill of fair shares on few executors, and leave the stack with them."""
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
    parser = argparse.ArgumentParser(
        prog="python -m lab.scenarios.drill",
        description="Check the promises of Punctual on a fresh local stack.",
        epilog="The last line is JSON. The exit code is 1 if a promise was broken.",
    )
    parser.add_argument("drills", nargs="*", default=list(NAMES), help=f"any of {', '.join(NAMES)} (default: all)")
    names: list[str] = parser.parse_args().drills
    if unknown := [name for name in names if name not in NAMES]:
        raise Trouble(f"There is no drill {', '.join(unknown)}. Choose from: {', '.join(NAMES)}")
    return names


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
