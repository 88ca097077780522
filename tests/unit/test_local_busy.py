"""What the local run tells a person on a busy machine, and that it goes on; and how it ends with a killed `make`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ReadTimeoutError
from punctual import NoAnswer, NotFound
from punctual.records import Problem, Remedy

from local import run
from local.busy import Patience, pauses, until_answered
from local.failure import Trouble
from local.home import Home
from local.stack import explain

ROOT = Path(__file__).parents[2]


class Clock:
    """A clock that a pause moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def test_a_long_wait_is_told_at_growing_distances(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    patience = Patience(clock)
    for _ in range(200):
        patience.tell("The API has not answered")
        clock.pause(1)
    told = [line for line in capsys.readouterr().out.splitlines() if "busy" in line]
    assert [line.split(" for ")[1].split(" s:")[0] for line in told] == ["30", "60", "120"]


def test_calls_are_repeated_until_the_api_answers(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()

    def call() -> str:
        if clock.now < 300:
            raise NoAnswer("nothing came")
        return "answer"

    assert until_answered(call, lambda: True, clock.pause, Patience(clock)) == "answer"
    assert "this machine is busy (load" in capsys.readouterr().out


def test_a_call_is_not_repeated_if_nothing_can_answer() -> None:
    def call() -> None:
        raise NoAnswer("nothing came")

    with pytest.raises(NoAnswer):
        until_answered(call, lambda: False, Clock().pause)


def test_an_error_of_the_api_is_not_waited_for() -> None:
    def call() -> None:
        raise NotFound(404, "NotFound", "no such job")

    with pytest.raises(NotFound):
        until_answered(call, lambda: True, Clock().pause)


@pytest.mark.parametrize(("delay", "told"), [(1_999, False), (4_400, True), (None, False)])
def test_late_jobs_are_explained(delay: int | None, told: bool) -> None:
    old = {"scheduled_at": "2026-11-28T10:00:00.000Z", "start_delay_ms": 60_000}  # it was due before this run
    job = {"scheduled_at": "2026-11-28T10:00:02.000Z", "start_delay_ms": delay}
    sentence = run.lateness([old, job], "2026-11-28T10:00:01.000000+00:00")
    assert bool(sentence) is told
    assert not told or ("up to 4 s late" in sentence and "busy" in sentence)


def test_a_pause_that_the_stack_has_kept_is_said_with_its_remedy() -> None:
    remedy = Remedy("Resume", "POST", "/api/v1/system/resume", "punctual system resume one-time")
    paused = Problem("lane_paused", "critical", "The lane one-time is paused: 3 jobs wait", by_name="ann", reason="moving", remedy=remedy)
    assert pauses([paused, Problem("late_jobs", "warning", "3 jobs are late")]) == [
        "The lane one-time is paused: 3 jobs wait. By ann: moving. Resume: .venv/bin/punctual system resume one-time"
    ]


def test_a_killed_or_slow_local_aws_is_explained_without_a_traceback(tmp_path: Path) -> None:
    slow = ReadTimeoutError(endpoint_url="http://127.0.0.1:4566")
    assert "another program killed" in str(explain(slow, Home(tmp_path), alive=False)).lower()
    assert "this machine is busy" in str(explain(slow, Home(tmp_path), alive=True))
    assert explain(Trouble("`cdk deploy` failed."), Home(tmp_path), alive=True) is None
    assert explain(KeyboardInterrupt(), Home(tmp_path), alive=False) is None
    assert explain(ZeroDivisionError(), Home(tmp_path), alive=False) is None  # a defect keeps its traceback


CHILD = """
import signal, sys
from local.stack import interruptible
with interruptible():
    print("up", flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print("stopped in order", flush=True)
"""


@pytest.mark.long
def test_a_run_stops_in_order_when_its_make_is_killed() -> None:
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"
    env = {**os.environ, "MAKELEVEL": "1"}
    with subprocess.Popen([sys.executable, "-c", parent], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as make:
        assert make.stdout is not None
        assert make.stdout.readline() == "up\n"
        make.send_signal(signal.SIGKILL)
        assert make.stdout.readline() == "stopped in order\n"


TWICE = """
import os, signal
from local.stack import interruptible
with interruptible():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(os.getpid(), number)
        print("stopped in order", flush=True)
"""


def test_a_second_signal_does_not_interrupt_the_end_of_a_run() -> None:
    done = subprocess.run([sys.executable, "-c", TWICE], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "stopped in order\n"), done.stderr
