"""The table of faults on a separate stack behind a misbehaving proxy: two of them, and with `make soak` most.

`make drill ONLY=faults` causes all of them.
"""

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.scenarios import faults
from lab.scenarios.faulty import Faulty
from local.home import Home
from local.receiver import Receiver
from local.stack import up

pytestmark = pytest.mark.apart

COUNTS = {  # of what each fault does to calls, messages and processes
    "throttle": ("throttle dynamodb",),
    "queues": ("error sqs",),
    "connections": ("lose_call dynamodb", "lose_answer dynamodb"),
    "messages": ("deleted message",),
    "executors": ("killed executor",),
    "topic": ("throttle sns",),
    "dispatchers": ("killed dispatcher",),
}


@pytest.mark.parametrize("names", [faults.SHORT, pytest.param(faults.MOST, marks=pytest.mark.soak)], ids=["short", "most"])
def test_no_fault_loses_a_job_or_finishes_one_twice(names: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = Home(Path(os.path.realpath(tmp_path)))
    with Receiver() as receiver, Faulty() as proxy, up(home, enforce_iam=True) as stack:
        seen, lines = faults.deal(stack, proxy, receiver, names)
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(faults.as_text(lines)) + "\n")
    assert not seen.complaints
    assert len(lines) == len(names) and all(line["final"] >= 5 for line in lines)
    dealt = Counter(seen.figures["faults dealt"])
    assert [each for name in names for each in COUNTS.get(name, ()) if dealt[each] < 3] == [], "each fault really happened"
