"""A short form of the table of faults, on a separate stack behind a misbehaving proxy. `make drill ONLY=faults` causes all of them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from punctual.records import Json

from local import faults
from local.drills import Outcome
from local.faulty import Faulty
from local.home import Home
from local.receiver import Receiver
from local.stack import up

pytestmark = pytest.mark.apart


@pytest.fixture(scope="module")
def dealt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Outcome, list[Json]]]:
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("faults"))))
    with Receiver() as receiver, Faulty() as proxy, up(home, enforce_iam=True) as stack:
        yield faults.deal(stack, proxy, receiver, faults.SHORT)


def test_no_fault_loses_a_job_or_finishes_one_twice(dealt: tuple[Outcome, list[Json]], capsys: pytest.CaptureFixture[str]) -> None:
    seen, lines = dealt
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(faults.as_text(lines)) + "\n")
    assert not seen.complaints
    assert len(lines) == len(faults.SHORT) and all(line["final"] >= 5 for line in lines)


def test_each_fault_really_happened(dealt: tuple[Outcome, list[Json]]) -> None:
    counts = dealt[0].figures["faults dealt"]
    wanted = ("throttle dynamodb", "error sqs", "lose_call dynamodb", "lose_answer dynamodb", "deleted message", "killed executor")
    assert all(counts.get(name, 0) >= 3 for name in (*wanted, "throttle sns", "killed dispatcher")), counts
