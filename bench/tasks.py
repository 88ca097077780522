"""`python -m bench.tasks`: the number of minutely tasks that one plan a minute keeps in runs, and the cost of planning them.

The processor time is measured with AWS answered in process (`bench.inprocess`). AWS's latency and the share of a core are those that
`bench.units` assumes. A plan works for `WORK_MS` of its minute at most.
"""

from collections.abc import Iterator

from bench import prices
from bench.cpu import spent
from bench.inprocess import MINUTELY
from infra.settings import DEV, PROD, Settings
from lab.world.calls import NETWORK_MS, on_core
from scheduler.storage.aws.table import CONNECTIONS
from scheduler.tasks.plan import WORK_MS

TASKS = 100_000
MEASURED = 24_000  # runs
MONTH_MINUTES = 730 * 60


def main() -> None:
    used = spent("plan-minutely", MEASURED)
    top_ups = MEASURED / MINUTELY
    waits = (used["calls"]["BatchGetItem"] + used["calls"]["BatchExecuteStatement"] / CONNECTIONS) * NETWORK_MS / top_ups
    print(f"{used['cpu_ms'] / top_ups:.2f} ms of processor time and {waits:.2f} ms of calls a top-up, which stores {MINUTELY} runs\n")
    print(f"| stage | memory of plan | seconds of a minute for {TASKS:,} tasks | tasks at most | dollars a month for them |")
    print("|---|--:|--:|--:|--:|")
    for row in _rows(used["cpu_ms"] / top_ups, waits):
        print(row)


def _rows(cpu_ms: float, waits_ms: float) -> Iterator[str]:
    """Yield a row of the table for each stage."""
    for settings in (PROD, DEV):
        each_ms = _each_ms(settings, cpu_ms, waits_ms)
        seconds = TASKS / MINUTELY * each_ms / 1000
        function = seconds * settings.memory_mb["plan"] / 1_024 * prices.GB_SECOND * MONTH_MINUTES
        reads = TASKS / MINUTELY * prices.READ_UNIT * MONTH_MINUTES
        most = int(WORK_MS / each_ms * MINUTELY)
        memory, cost = f"{settings.memory_mb['plan']:,} MB", f"{function:.0f} + {reads:.0f} for reads"
        yield f"| {settings.stage} | {memory} | {seconds:.0f} | {most:,} | {cost} |"


def _each_ms(settings: Settings, cpu_ms: float, waits_ms: float) -> float:
    """Return the time of a top-up."""
    return on_core(cpu_ms, settings.memory_mb["plan"]) + waits_ms


if __name__ == "__main__":
    main()
