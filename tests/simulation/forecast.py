"""`python -m tests.simulation.forecast`: compares the forecast of the summary with the jobs that then become due.

Draws docs/images/forecast.svg.

The scene is a morning of three hours with a thousand cron and rate tasks of five types and 5,000 one-time jobs; the changes from their
creation go through project.
"""

import random
import sys
from collections import Counter
from dataclasses import dataclass, replace

from local.home import REPOSITORY
from local.plot import Curve, Panel, svg
from scheduler.insight import summary
from scheduler.insight.counting import EVERYBODY
from scheduler.insight.forecast import AHEAD, MINUTE, Expected, required
from scheduler.insight.project import project
from scheduler.model.instants import parse
from scheduler.model.rules import Rules
from scheduler.model.schedule import Cron, Rate, Schedule
from scheduler.model.task import Task
from scheduler.storage.aws.stream import JobChange, TaskChange
from scheduler.storage.memory.counters import MemoryCounters
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.tasks.planning import further, next_runs
from tests.contract import make

NOW = parse("2026-11-20T08:00:00Z")
TYPES = {"log": 20, "http": 400, "lambda": 2_500, "sqs": 60, "email": 900}  # ms that each takes
ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata")
CRONS = ("*/5 * * * *", "0 * * * *", "15,45 * * * *", "30 8-10 * * *", "* 9 * * *", "7 */2 * * 1-5")


def a_task(chance: random.Random) -> Task:
    zone, owner, type = chance.choice(ZONES), f"user{chance.randint(1, 20)}", chance.choice(list(TYPES))
    schedule = Schedule(Cron(chance.choice(CRONS), zone))
    if chance.random() < 0.1:
        schedule = Schedule(Rate(chance.choice([90_000, 600_000]), NOW - chance.randint(0, 10**6)))
    elif chance.random() < 0.1:
        schedule = replace(schedule, end=NOW + chance.randint(1, AHEAD))
    return make.task(
        owner=owner, type=type, schedule=schedule, created_at=NOW - 10**7, updated_at=NOW - 10**7, planned_until=NOW - 1, planned=0
    )


@dataclass(frozen=True)
class Morning:
    """The forecast and the actual values, minute by minute."""

    predicted: list[Expected]
    due: list[int]  # jobs that became due
    executors: list[int]  # executors that their work requires
    recurrences: int  # distinct recurrences that the forecast expands


def morning() -> Morning:
    chance = random.Random(7)
    tasks = [a_task(chance) for _ in range(1_000)]
    jobs = [make.job(at=NOW + chance.randint(0, AHEAD - 1), type=chance.choice(list(TYPES))) for _ in range(5_000)]
    counters, changes = MemoryCounters(), list[JobChange | TaskChange]()
    for job in jobs:
        changes.append(JobChange(f"{len(changes):040d}", None, job))
    for task in tasks:
        stored = further(task, NOW, Rules())  # plan advances the task and stores runs: the counters must count neither twice
        changes.append(TaskChange(f"{len(changes):040d}", None, task))
        changes.append(TaskChange(f"{len(changes):040d}", task, stored.task))
        changes += [JobChange(f"{len(changes) + number:040d}", None, run) for number, run in enumerate(stored.runs)]
    for type, took in TYPES.items():
        claimed = make.claimed(make.job(at=NOW - MINUTE, type=type))
        ended = replace(make.succeeded(claimed, NOW - MINUTE + took), started_at=NOW - MINUTE)
        changes.append(JobChange(f"{len(changes):040d}", claimed, ended))
    for first in range(0, len(changes), 250):
        project("s", changes[first : first + 250], MemoryPorts(None, counters=counters))

    actual: Counter[tuple[int, str]] = Counter((job.due_at // MINUTE * MINUTE, job.spec.type) for job in jobs)
    for task in tasks:
        runs = next_runs(task, NOW - 1, 400)
        actual.update((run.at // MINUTE * MINUTE, task.spec.type) for run in runs if run.at < NOW + AHEAD)

    minutes = range(NOW, NOW + AHEAD, MINUTE)
    work = [sum(actual[at, type] * took for type, took in TYPES.items()) for at in minutes]
    return Morning(
        summary.ahead(EVERYBODY, NOW, counters),
        [sum(actual[at, type] for type in TYPES) for at in minutes],
        list(map(required, work)),
        len(counters.read("recurring#*", "0", "~")),
    )


def main() -> int:
    seen = morning()
    curves = {
        "jobs per minute": ([minute.jobs for minute in seen.predicted], seen.due),
        "executors required": ([minute.executors for minute in seen.predicted], seen.executors),
    }
    panels = [
        Panel(title, [Curve(name, list(enumerate(values))) for name, values in zip(("predicted", "actual"), pair, strict=True)])
        for title, pair in curves.items()
    ]
    (REPOSITORY / "docs/images/forecast.svg").write_text(svg("Three hours, predicted and actual", panels, unit="min"))
    for title, (predicted, actual) in curves.items():
        wrong = sum(abs(one - other) for one, other in zip(predicted, actual, strict=True))
        print(f"{title}: {sum(predicted):,} predicted, {sum(actual):,} actual, difference {wrong}, at most {max(actual)} in a minute")
    print(f"distinct recurrences: {seen.recurrences}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
