"""`python -m bench.waiting_users`: the processor time of a poll of a dispatcher in which one job of each of many users waits.

A dispatcher polls a lane each `STEP_MS` while jobs wait there. AWS answers in memory at once; reads of weights are left out.
"""

import sys
import time
from collections.abc import Sequence

from lab.world.clock import FixedClock
from scheduler.model.job import DueEntry, JobKey, Lane, UnitKey
from scheduler.model.rules import Rules
from scheduler.sharing.window import STEP_MS, Flow
from scheduler.storage.memory.ports import MemoryPorts

USERS = (1_000, 10_000, 50_000, 100_000)
WINDOW = 500  # jobs that the lane holds: all of them run, so no waiting job leaves
POLLS = 7
BEGIN = 1_800_000_000_000
LANE = Lane.ONE_TIME


def main(users: Sequence[int] = USERS) -> None:
    print("| users | processor time of a poll, seconds |")
    print("|--:|--:|")
    for count in users:
        print(f"| {count:,} | {_fastest_poll(count):.3f} |")


def _fastest_poll(users: int) -> float:
    """Return the processor time in seconds of the fastest of several polls: a busy machine can only add time."""
    clock = FixedClock(BEGIN)
    flow = Flow(
        UnitKey("2027-01-15T08:00", 0), lambda lane, until: WINDOW, lambda lane: WINDOW, MemoryPorts(clock, Rules(windows={LANE: WINDOW}))
    )
    flow.release([_entry("running", number) for number in range(WINDOW)], ())
    flow.release([_entry(f"00000000-0000-4000-8000-{number:012d}", number) for number in range(users)], ())
    times = []
    for _ in range(POLLS):
        clock.advance(STEP_MS)
        begin = time.process_time()
        flow.release((), ())
        times.append(time.process_time() - begin)
    return min(times)


def _entry(owner: str, number: int) -> DueEntry:
    return DueEntry.of(JobKey(owner, f"job-{number:06d}"), "2027-01-15T08:00#00", BEGIN, LANE, 1)


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or USERS)
