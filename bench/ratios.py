"""`python -m bench.ratios`: has Punctual become half as slow again? Compares ratios, since milliseconds differ between machines.

On one local stack, round by round, it runs: a loop of Python; messages of SQS with DelaySeconds on the same local AWS; and as many jobs of
Punctual for one instant. Each round gives three ratios:

    cpu_to_loop   processor time of a job, of the whole stack and its client, to that of the loop
    cpu_to_sqs    the same to that of a delayed message
    delay_to_sqs  median start delay of the jobs to that of the messages

A ratio is a regression if the lower quartile of its rounds is more than half above the median recorded in `bench/results/ratios.json`: a
busy machine spoils some rounds, slower code all of them. The exit code is 1 then. `--record` writes a new baseline.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.results import RESULTS, read, write
from compare import course
from compare.contestants import DRIVERS, Driven, Ours, driver, ours
from compare.servers import Running
from compare.work import Workload
from local.failure import exit_code
from local.steps import console
from local.stop import RATIOS as RATIOS_HOME

NAME = "ratios"
ROUNDS, JOBS = 5, 500
WORSE = 1.5  # a regression of half
LOOPS = 20_000
BEGIN_S = 8  # second of the minute at which a round begins; it takes half a minute
CPU_RATIOS = ("cpu_to_loop", "cpu_to_sqs")
RATIOS = (*CPU_RATIOS, "delay_to_sqs")


def loop_ms() -> float:
    """Return the milliseconds of processor of a fixed loop: JSON, as most of the time of a job goes into such work."""
    record = {"id": "0" * 26, "owner": "ada", "payload": {"message": "hello", "number": 1}, "due_at": 1_795_000_000_000}
    began = time.process_time()
    for _ in range(LOOPS):
        json.loads(json.dumps(record))
    return (time.process_time() - began) * 1_000


class Rounds:
    """The stack under test, and delayed messages on its own local AWS."""

    def __init__(self, own: Ours, sqs: Driven, jobs: int) -> None:
        self.own, self._sqs, self._jobs, self._number = own, sqs, jobs, 0

    def one(self) -> dict[str, float]:
        """Run a round; the order changes from round to round. Returns its ratios."""
        self._number += 1
        _until_second(BEGIN_S)
        work = Workload(f"round{self._number}", self._jobs)
        parts: list[Callable[[], Any]] = [loop_ms, lambda: course.run(self._sqs, work, ""), lambda: course.run(self.own, work, "")]
        order = [(self._number + offset) % 3 for offset in range(3)]
        found = {index: parts[index]() for index in order}
        loop, sqs, jobs = found[0], found[1], found[2]
        ratios = {
            "cpu_to_loop": jobs.cpu_ms_per_job * 1_000 / loop,
            "cpu_to_sqs": jobs.cpu_ms_per_job / sqs.cpu_ms_per_job,
            "delay_to_sqs": max(jobs.p50 or 1e6, 1.0) / max(sqs.p50 or 1.0, 1.0),
        }
        return {name: round(value, 4) for name, value in ratios.items()}


@contextmanager
def rounds(jobs: int = JOBS) -> Iterator[Rounds]:
    """Start a stack of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="punctual-ratios-")))
        own = stack.enter_context(ours(folder, "", RATIOS_HOME))
        aws = Running([own.stack.server.child], own.stack.aws.environment())
        sqs = stack.enter_context(driver("python", f"{DRIVERS}.sqs_delay", own=True, on=aws)(folder, ""))
        yield Rounds(own, sqs, jobs)


def _until_second(second: int) -> None:
    """Wait for this second of a minute: at its beginning the stack opens the next minutes, whatever jobs there are."""
    time.sleep((second - time.time()) % 60)


def verdict(seen: Sequence[Mapping[str, float]], baseline: Mapping[str, Mapping[str, float]], names: Sequence[str] = RATIOS) -> list[str]:
    """Return a sentence for each of these ratios that is a regression."""
    worse = []
    for name in names:
        low = quartile([each[name] for each in seen])
        limit = baseline[name]["median"] * WORSE
        if low > limit:
            worse.append(f"{name} is {low:.3g}: more than {limit:.3g}, half above its baseline of {baseline[name]['median']:.3g}")
    return worse


def quartile(values: Sequence[float]) -> float:
    """Return the lower quartile by nearest rank.

    >>> quartile([5, 1, 4, 2, 3]), quartile([7])
    (2, 7)
    """
    return sorted(values)[len(values) // 4]


def summary(seen: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return median and range of each ratio over the rounds."""
    values = {name: [each[name] for each in seen] for name in RATIOS}
    return {name: {"median": statistics.median(each), "least": min(each), "most": max(each)} for name, each in values.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.ratios", description="Compare Punctual's cost and delay, as ratios, with their baseline."
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds (default {ROUNDS})")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"jobs of a round (default {JOBS})")
    parser.add_argument("--only", choices=("cpu",), help="judge the ratios of processor time only: a busy machine delays starts")
    parser.add_argument("--record", action="store_true", help=f"write the baseline, {NAME}.json in {RESULTS.name}")
    options = parser.parse_args()
    with rounds(options.jobs) as running:
        running.one()  # warms everything up
        seen = []
        for number in range(1, options.rounds + 1):
            seen.append(running.one())
            console.print(f"  round {number}: " + ", ".join(f"{name} {value:.3g}" for name, value in seen[-1].items()), markup=False)
    found = summary(seen)
    if options.record:
        write(NAME, {"jobs": options.jobs, "ratios": found})
    baseline = read(NAME)["ratios"]
    worse = verdict(seen, baseline, CPU_RATIOS if options.only else RATIOS)
    for each in worse:
        console.print(f"REGRESSION  {each}", style="red", markup=False)
    print(json.dumps({"ratios": found, "baseline": baseline, "regressions": worse}))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
