"""`make prove STAGE=<stage>`: measure a deployed stage, or a fresh local one, against its promises, beside EventBridge Scheduler and SQS.

    python -m prove --stage dev                        on AWS, by the credentials and the region of the environment; asks first
    python -m prove --stage local                      on a fresh local stack of its own; asks nothing, costs nothing
    python -m prove --stage local --short              few jobs, two minutes: checks that everything works
    python -m prove --stage dev --only spread,peers    some parts
    python -m prove --stage dev --guided               also the rows of the first hour that need you

It prints a table, a block to paste into an issue, and one line of JSON, which is in prove-report.json as well. The exit code is 1 if a
promise was broken. The run deletes at its end all that it has made, also after Ctrl-C; docs/guides/prove.md has a list.
"""

import argparse
import platform
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from local.failure import Trouble, exit_code
from local.home import REPOSITORY
from local.stack import uninterruptible
from local.steps import console
from ops.cloud import trouble
from prove import answers, costs, course, first_hour, guided, report
from prove.cleanup import Cleanup
from prove.first_hour import Hour
from prove.place import LOCAL, Place, new_name, opened
from prove.plan import BEHAVIOURS, COMPARED, FULL, MEASURED, PARTS, PEERS, SHORT, SHORT_LOCAL, Plan, Size, minutes, planned
from prove.report import Result

MINUTES = 2  # of each stream
MOST_MINUTES = 5  # SQS delays a message by 15 minutes at most


def main() -> int:
    options = _options()
    try:
        with opened(options.stage, short=options.short) as place:
            result = proved(place, options)
    except (BotoCoreError, ClientError) as error:
        raise trouble(error) from error
    return printed(result)


def proved(place: Place, options: argparse.Namespace) -> Result:
    """Ask on AWS, run the parts, delete what they made. Raises Trouble if nobody agrees."""
    name, size = new_name(), _size(options)
    if not place.local:
        agree(planned(_now(), size, options.only), place, yes=options.yes)
    cleanup, context = Cleanup(), _context(place, options)
    left: list[str] = []
    hour = Hour(place, name, cleanup, input if options.guided else None)
    try:
        rows, complaints = course.run(place, planned(_now(), size, options.only), name, cleanup)
        console.print("\n  The first hour on AWS: docs/internals/first-hour.md explains the rows.", markup=False)
        rows_of_aws = first_hour.run((*answers.CHECKS, *guided.CHECKS), hour)
    finally:
        left += retained(cleanup) if options.keep else deleted(cleanup)
    return Result(context, rows, complaints, left, rows_of_aws)


def agree(plan: Plan, place: Place, *, yes: bool, ask: Callable[[str], str] = input) -> None:
    """Print what a run does and costs, and ask whether to begin. Raises Trouble if the answer is not yes, or if nobody can answer."""
    console.print(estimate(plan, place), markup=False)
    if yes:
        return
    if not sys.stdin.isatty():
        raise Trouble("There is no terminal to ask in. Nothing was created. To begin without a question, add --yes.")
    if ask("Begin? [y/N] ").strip().lower() not in ("y", "yes"):
        raise Trouble("Nothing was created.")


def estimate(plan: Plan, place: Place) -> str:
    """Return what a run does, how long it takes and what it costs, for people."""
    made = ["a user", "tables of one item", "a function with its role"]
    made += ["a task"] if "cron" in plan.keys else []
    schedules = sum(len(part.instants) for part in plan.compared)
    made += [f"two SQS queues, an IAM role, a schedule group with {schedules:,} schedules"] if PEERS in plan.keys else []
    return (
        f"\nThis run posts {plan.jobs:,} jobs to the stage {place.stage} in {place.region}.\n"
        f"It takes about {minutes(plan)} minutes and costs about ${max(costs.of_run(plan), 0.01):.2f}.\n"
        f"It creates, and deletes at the end: {', '.join(made)}.\n"
        "The jobs stay in the history of the stage until they expire.\n"
    )


def deleted(cleanup: Cleanup) -> list[str]:
    """Delete everything, whatever signals come; returns what could not be deleted."""
    console.print("  Deleting the things of the run; Ctrl-C does not stop this.")
    with uninterruptible():
        left = cleanup.run()
    for each in left:
        console.print(f"NOT DELETED  {each}", style="red", markup=False)
    return left


def retained(cleanup: Cleanup) -> list[str]:
    for each in cleanup.things:
        console.print(f"  kept: {each}", markup=False)
    return cleanup.things


def printed(result: Result, folder: Path = Path()) -> int:
    """Print the result, and write it into a file of `folder`; returns the exit code."""
    console.print(report.table(result.rows))
    for note in report.notes(result.rows):
        console.print(f"  {note}", markup=False)
    where = "; on AWS it would have been that" if result.context["stage"] == LOCAL else ""
    console.print(f"\n  Together ${result.dollars:.4f}{where}. {costs.SOURCES}", style="dim", markup=False)
    for complaint in report.shown(result.complaints):
        console.print(f"NOT KEPT  {complaint}", style="red", markup=False)
    console.print("\nTo paste into an issue:\n", style="dim")
    print(report.block(result) + "\n")
    console.print(
        f"The same for a machine, without accounts, people and addresses: {report.save(result, folder)}\n", style="dim", markup=False
    )
    print(report.line(result))
    return 1 if result.complaints else 0


def _size(options: argparse.Namespace) -> Size:
    if options.short:
        return SHORT_LOCAL if options.stage == LOCAL else SHORT
    return FULL.streaming(options.minutes)


def _context(place: Place, options: argparse.Namespace) -> dict[str, Any]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return {
        "stage": place.stage,
        "region": "local AWS" if place.local else place.region,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "punctual": project["version"],
        "commit": _commit(),
        "python": platform.python_version(),
        "boto3": boto3.__version__,
        "short": options.short,
    }


def _commit() -> str:
    """Return the commit of this checkout, with `-dirty` if it was changed."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _now() -> int:
    return time.time_ns() // 1_000_000


def _options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m prove",
        description="Measure a deployed stage, or a fresh local one, against its promises, beside EventBridge Scheduler and SQS.",
        epilog="The last line is JSON. The exit code is 1 if a promise was broken. docs/guides/prove.md says what is created and deleted.",
    )
    parser.add_argument("--stage", required=True, help="the stage on AWS, for example dev; `local`: a fresh local stack of its own")
    parser.add_argument(
        "--only",
        type=lambda text: [name for name in text.split(",") if name],
        default=list(PARTS),
        help=f"parts to run, any of {','.join(PARTS)} (default: all)",
    )
    parser.add_argument(
        "--minutes",
        type=int,
        default=MINUTES,
        help=f"length of spread and of steady, 1 to {MOST_MINUTES} (default {MINUTES}); --short has its own",
    )
    parser.add_argument("--short", action="store_true", help="few jobs and no quiet minutes: checks that everything works, measures little")
    parser.add_argument("--yes", action="store_true", help="begin without a question; needed on AWS without a terminal")
    parser.add_argument(
        "--guided",
        action="store_true",
        help="go through the rows of the first hour that need a deployment by you or burden the stage, each after a question",
    )
    parser.add_argument("--keep", action="store_true", help="delete nothing at the end, and list what is left")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.only if name not in PARTS]:
        raise Trouble(f"--only: there is no part {', '.join(unknown)}. Choose from: {', '.join(PARTS)}")
    if not set(options.only) & {*MEASURED, *BEHAVIOURS}:
        raise Trouble(f"--only: name at least one of {', '.join((*MEASURED, *BEHAVIOURS))}")
    if PEERS in options.only and not set(options.only) & set(COMPARED):
        raise Trouble(f"--only: peers are compared with {' and '.join(COMPARED)}: add one of them")
    if options.guided and not sys.stdin.isatty():
        raise Trouble("--guided asks before each row: run it in a terminal.")
    if not 1 <= options.minutes <= MOST_MINUTES:
        raise Trouble(f"--minutes must be 1 to {MOST_MINUTES}, not {options.minutes}")
    return options


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
