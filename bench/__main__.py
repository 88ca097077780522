"""`make bench`: print a table of figures with their budgets, and on the last line the same as JSON.

    python -m bench                      all sections (about 20 minutes, most of it waiting for jobs to be due)
    python -m bench --only cpu,units     some sections
    python -m bench --stored 100000      with more jobs stored for later in the last part of `delay`
    python -m bench --record bench       write the figures to bench/results/bench.json; `python -m bench.pages` writes the docs from it
    python -m bench --short              every section with few jobs and without budgets, to check that it runs (about 8 minutes)

An exceeded budget does not change the exit code: figures of a busy machine prove little. The exit code is 1 if a section raised an
error or measured nothing.
"""

import argparse
import importlib
import json
import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from bench.figures import Figure, picture, summary
from bench.results import write
from local.failure import Trouble, exit_code
from local.steps import console

SECTIONS = ("cpu", "at_once", "schedule", "units", "idle", "scaling", "now", "delay")


def main() -> int:
    arguments = _arguments()
    machine = _machine()
    console.print("  ".join(f"{name}: {value}" for name, value in machine.items()), markup=False)
    figures: list[Figure] = []
    for section in arguments.only:
        figures += _measured(section, arguments)
    console.print(picture(figures))
    found = summary(figures, machine=machine, short=arguments.short)
    if arguments.record:
        write(arguments.record, found)
    print(json.dumps(found))
    return 0


def _measured(section: str, arguments: argparse.Namespace) -> list[Figure]:
    """Import a section and return its figures; sections that are not requested are not imported. Raises Trouble without figures."""
    options: dict[str, Any] = {"stored": arguments.stored} if section == "delay" and arguments.stored is not None else {}
    measure: Callable[..., Iterable[Figure]] = importlib.import_module(f"bench.{section}").measure
    figures = list(measure(short=arguments.short, **options))
    if not figures:
        raise Trouble(f"The section {section} measured nothing. See its output above.")
    return [replace(figure, budget=None) for figure in figures] if arguments.short else figures


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2),  # of the minute before: the load of other programs
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Punctual and print the figures with their budgets.",
        epilog="An exceeded budget does not change the exit code. It is 1 if a section raised an error or measured nothing.",
    )
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=list(SECTIONS),
        help=f"sections to run, any of {','.join(SECTIONS)} (default: all)",
    )
    parser.add_argument("--stored", type=int, help="jobs stored for later in the last part of delay (10000; 100 with --short)")
    parser.add_argument("--record", metavar="NAME", help="write bench/results/NAME.json, from which python -m bench.pages writes the docs")
    parser.add_argument("--short", action="store_true", help="few jobs, no warm-up, no budgets: only checks that every section runs")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.only if name not in SECTIONS]:
        raise Trouble(f"There is no section {', '.join(unknown)}. Choose from: {', '.join(SECTIONS)}")
    return arguments


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
