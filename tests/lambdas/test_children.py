"""Children of an executor: real processes, killed if necessary."""

import itertools
import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lambdas._children import Child, Children
from local import process
from scheduler.model.job import FailureKind, Job, Result
from scheduler.targets.base import Context
from scheduler.targets.job_context import JobContext
from tests.conftest import a_job

ROOT = Path(__file__).resolve().parents[2]
STUBBORN = '''"""`stubborn`: ignores all rules of a target."""
import itertools, json, logging, os, signal, sys, time
from scheduler.model.job import Result
from scheduler.targets.target_type import TargetType
def run(payload, context):
    print("printed", flush=True)
    logging.getLogger("stubborn").info("begun %s", os.getpid())
    if "endless" in payload: all(itertools.repeat(True))  # holds the interpreter lock
    if "exit" in payload: os._exit(payload["exit"])
    if "signal" in payload: os.kill(os.getpid(), payload["signal"])
    if "raise" in payload: raise ValueError(payload["raise"])
    if "environment" in payload: return Result(json.dumps(dict(os.environ)))
    if "say" in payload: sys.stderr.write(payload["say"])
    end = time.monotonic() + payload.get("busy", 0)
    while time.monotonic() < end: pass
    time.sleep(payload.get("sleep", 0))
    return Result("x" * payload.get("size", 2))
TYPE = TargetType(payload=dict, run=run, is_work=lambda payload: True)
'''


@pytest.fixture
def children() -> Iterator[Children]:
    found = Children()
    yield found
    found.close()


@pytest.fixture
def stubborn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A type that ignores a stop, known only to children."""
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    (tmp_path / "sitecustomize.py").write_text("")
    from lambdas import _children

    start = f"import scheduler.targets.types as t; t.__path__.append({str(tmp_path)!r}); from lambdas._child import main; main()"
    monkeypatch.setattr(_children, "COMMAND", (sys.executable, "-S", "-P", "-c", start))


def context(seconds: float = 60.0, *, stop: threading.Event | None = None) -> Context:
    return Context(JobContext("job"), deadline=time.monotonic() + seconds, stop=stop or threading.Event())


def slow(seconds: float = 60) -> Job:
    return a_job(payload={"message": "slow", "sleep_seconds": seconds})


def wild(**payload: object) -> Job:
    return a_job(type="stubborn", payload=payload)


def run(children: Children, job: Job, asked: Context | None = None) -> Result:
    return children.run(job, asked or context(), threading.Event())


@contextmanager
def begins(kind: str, began: threading.Event, jobs: int = 1) -> Iterator[None]:
    """Sets `began` when this number of jobs of the type have logged, each in its child, that they have begun."""
    logger, handler = logging.getLogger({"log": "scheduler.targets.types.log"}.get(kind, kind)), logging.Handler(logging.INFO)
    left = itertools.count(jobs - 1, -1)
    handler.emit = lambda record: None if next(left) else began.set()  # type: ignore[method-assign]
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield
    logger.removeHandler(handler)
    logger.setLevel(level)


def pid(result: Result) -> int:
    first = (result.log or "").partition("\n")[0]
    assert first.startswith("process ")
    return int(first.removeprefix("process "))


def test_a_job_runs_in_its_own_process_which_is_kept(children: Children, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        first, second = (run(children, slow(0.01)) for _ in range(2))
    assert (first.output, first.failure) == ("slow", None)
    assert pid(first) == pid(second) != os.getpid()
    assert (first.log or "").splitlines()[1:] == ["slow"]
    assert [(record.getMessage(), record.job_id) for record in caplog.records] == [("slow", "job")] * 2  # type: ignore[attr-defined]


def test_a_child_has_the_context_of_its_run(children: Children, caplog: pytest.LogCaptureFixture) -> None:
    of_run = JobContext("job", 2, 1_795_000_000_250, 1_795_000_000_000, task_id="t1", task_name="Größe")
    with caplog.at_level(logging.INFO):
        run(children, slow(0.01), replace(context(), job=of_run))
    (line,) = (vars(record) for record in caplog.records)
    assert {name: line[name] for name in of_run.facts()} == of_run.facts()


@pytest.mark.long
@pytest.mark.parametrize("job", [wild(sleep=60), wild(busy=60)])
def test_a_child_is_killed_at_the_deadline_of_its_job(children: Children, stubborn: None, job: Job) -> None:
    began = time.monotonic()
    result = run(children, job, context(0.5))
    assert 0.5 <= time.monotonic() - began < 60
    assert result.failure is not None and result.failure.kind is FailureKind.TIMEOUT
    assert f"process {pid(result)} was killed" in result.failure.message
    assert process.started(pid(result)) is None


def test_a_killed_child_is_replaced(children: Children) -> None:
    killed = run(children, slow(), context(0))
    assert pid(run(children, slow(0.01))) != pid(killed)


def test_a_child_first_gets_a_request_to_stop(children: Children) -> None:
    stop = threading.Event()
    with begins("log", stop):
        result = run(children, slow(), context(stop=stop))
    assert result.failure is not None and result.failure.message == "stopped while it waited"
    assert pid(run(children, slow(0.01))) == pid(result), "the child lives and runs the next job, which is not stopped"


def test_a_child_that_does_not_stop_is_killed(children: Children, stubborn: None) -> None:
    stop, force = threading.Event(), threading.Event()
    stop.set()
    with begins("stubborn", force):
        result = children.run(wild(busy=60), context(stop=stop), force)
    assert result.failure is not None and "did not stop when asked to" in result.failure.message
    assert process.started(pid(result)) is None


@pytest.mark.parametrize(
    ("payload", "how"),
    [({"exit": 3}, "exit code 3"), ({"signal": 9}, "SIGKILL"), ({"signal": 11}, "SIGSEGV"), ({"exit": 0}, "exit code 0")],
)
def test_a_dying_child_fails_its_attempt_and_is_replaced(children: Children, stubborn: None, payload: dict[str, int], how: str) -> None:
    result = run(children, wild(**payload))
    assert result.failure is not None
    assert (result.failure.kind, result.failure.message) == ("retryable", f"its process ended by {how} before it had answered")
    assert "printed" in (result.log or "")
    assert run(children, wild()).output == "xx"


def test_a_child_survives_an_exception_and_logs_its_traceback(children: Children, stubborn: None) -> None:
    result = run(children, wild(**{"raise": "wrong"}))
    assert result.failure is not None and result.failure.message == "ValueError: wrong"
    assert "Traceback" in (result.log or "") and "printed" in (result.log or "")
    assert pid(run(children, wild())) == pid(result)


def test_a_child_that_died_while_idle_fails_no_job(children: Children) -> None:
    first = run(children, slow(0.01))
    os.kill(pid(first), signal.SIGKILL)
    second = run(children, slow(0.01))
    assert second.output == "slow" and pid(second) != pid(first)


def test_the_log_of_a_job_has_no_output_of_the_previous_one(children: Children, stubborn: None) -> None:
    first = run(children, wild(say="mine\n"))
    second = run(children, wild())
    assert pid(first) == pid(second)
    assert "mine" in (first.log or "") and "mine" not in (second.log or "")


def test_large_payloads_outputs_and_logs_pass(children: Children, stubborn: None) -> None:
    result = run(children, wild(say="s" * 300_000, size=900_000, more="p" * 250_000))
    assert len(result.output or "") == 900_000
    assert 200_000 < len(result.log or "") <= 262_144


@pytest.mark.long
def test_jobs_run_in_parallel_children(children: Children) -> None:
    stop = threading.Event()
    with ThreadPoolExecutor(3) as threads, begins("log", stop, jobs=3):
        results = list(threads.map(lambda _: run(children, slow(), context(stop=stop)), range(3)))
    assert len({pid(each) for each in results}) == 3
    assert {each.failure and each.failure.message for each in results} == {"stopped while it waited"}


@pytest.mark.parametrize("is_working", [False, True])
def test_a_child_ends_when_its_pipe_closes(children: Children, is_working: bool) -> None:
    """Its executor lives, so that the kernel does nothing."""
    child, began = Child(), threading.Event()
    with ThreadPoolExecutor(1) as threads, begins("log", began):
        try:
            if is_working:
                done = threads.submit(child.run, slow(600), context(600), threading.Event())
                assert began.wait(60)
            assert child._process.stdin is not None and child.is_alive
            child._process.stdin.close()
            assert child._process.wait(60) == 0, "the job would take ten minutes"
            assert not is_working or done.result(60).failure is not None
        finally:
            child.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not end it")
def test_a_child_that_cannot_read_its_pipe_ends_with_its_executor(stubborn: None) -> None:
    """Its target holds the interpreter lock, so that no thread of the child notices the closed pipe."""
    from lambdas import _children

    code = (
        "import logging, sys, threading\n"
        "from lambdas import _children\n"
        "from tests.lambdas.test_children import context, wild\n"
        f"_children.COMMAND = {_children.COMMAND!r}\n"
        "logging.basicConfig(level=logging.INFO, format='%(message)s', stream=sys.stdout)\n"
        "_children.Children().run(wild(endless=True), context(), threading.Event())"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, env=environment) as executor:
        assert executor.stdout is not None
        (_, pid) = executor.stdout.readline().split()
        ended = os.pidfd_open(int(pid))
        executor.kill()
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    try:
        assert poll.poll(60_000), "the child lives"
    finally:
        os.close(ended)
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def test_a_child_whose_executor_ended_while_it_started_ends_too() -> None:
    code = "from lambdas._child import _end_with; _end_with(parent=1); print('lives')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ("" if sys.platform == "linux" else "lives\n")


def test_a_child_gets_the_library_path_and_nothing_of_lambda(monkeypatch: pytest.MonkeyPatch, children: Children, stubborn: None) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/var/lang/lib:/lib64")
    for name in ("AWS_SESSION_TOKEN", "AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_RUNTIME_API", "LAMBDA_TASK_ROOT", "PUNCTUAL_RULES"):
        monkeypatch.setenv(name, "of the executor")
    environment = json.loads(str(run(children, wild(environment=True)).output))
    assert environment.pop("LD_LIBRARY_PATH") == "/var/lang/lib:/lib64"
    assert set(environment) == {"PYTHONPATH", "PYTHONUNBUFFERED", "LC_ALL"}


def test_a_child_without_a_library_path_starts_too(monkeypatch: pytest.MonkeyPatch, children: Children, stubborn: None) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert set(json.loads(str(run(children, wild(environment=True)).output))) == {"PYTHONPATH", "PYTHONUNBUFFERED", "LC_ALL"}


def test_a_child_has_no_environment_and_loads_no_aws_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    child = Child()
    try:
        environment = Path(f"/proc/{child.pid}/environ")
        if environment.exists():
            assert b"secret" not in environment.read_bytes()
    finally:
        child.close()
    code = "import lambdas._child, scheduler.targets.types.log, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert not {"boto3", "botocore", "pydantic", "urllib3", "aws_lambda_powertools"} & set(loaded)


def test_a_child_that_cannot_begin_fails_its_attempt(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    from lambdas import _children

    monkeypatch.setattr(_children, "COMMAND", (sys.executable, "-c", "raise SystemExit(7)"))
    result = run(children, slow())
    assert result.failure is not None and "exit code 7" in result.failure.message


def test_at_most_a_batch_of_children_is_kept_until_close() -> None:
    children = Children()
    first = run(children, slow(0.01))
    children.close()
    assert process.started(pid(first)) is None
