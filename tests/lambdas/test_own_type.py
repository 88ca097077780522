"""A custom target type, the example of docs/guides/own-task-types.md, in the executor's pool and a real child process."""

import json
import os
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lambdas import _children
from lambdas._children import Children
from lambdas._clock import SystemClock
from lambdas._pool import Resources, ThreadPool
from lambdas.rest.resolution import payload_of
from local import process
from scheduler.admission import breaker
from scheduler.model import retry
from scheduler.model.job import Claim, FailureKind, Job, Result
from scheduler.model.retry import GiveUp
from scheduler.storage.memory.stores import MemoryOutputs
from scheduler.targets import registry, types
from scheduler.targets.named_target import default_locks
from scheduler.targets.target_type import TargetType
from tests.conftest import a_job
from tests.lambdas.gateway import World, send

PAGE = (Path(__file__).resolve().parents[2] / "docs/guides/own-task-types.md").read_text()
SECTION = PAGE.partition("\n## ")[0]
EXAMPLE = SECTION.partition("```python\n")[2].partition("```")[0]
REQUEST = SECTION.partition("-d '")[2].partition("'\n")[0]
SHOWN = Path(__file__).parent / "own_type" / "primes.py"
FAILED = re.search(r"`(Result\(failure=.*)`", SECTION)
ANSWERS = f'''"""`answers`: returns what its payload names."""
from scheduler.model.job import Failure, Result
from scheduler.targets.target_type import TargetType
circle = []
circle.append(circle)
ANSWERS = {{
    "of the page": lambda: {FAILED and FAILED[1]},
    "unknown kind": lambda: Result(failure=Failure("forever", "why")),
    "nothing": lambda: None,
    "number": lambda: Result(5),
    "log of bytes": lambda: Result("done", log=b"log"),
    "endless": lambda: Result(failure=Failure("permanent", circle)),
}}
TYPE = TargetType(payload=dict, run=lambda payload, context: ANSWERS[payload["answer"]](), is_work=lambda payload: payload["is_work"])
'''
SLOW = 1_000_000  # computing the prime of this number takes longer than any test

pytestmark = pytest.mark.real_clock


@pytest.fixture(autouse=True)
def primes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installs the example of the page, and the type `answers`, as files among the types, for this process and its children."""
    (tmp_path / "primes.py").write_text(EXAMPLE)
    (tmp_path / "answers.py").write_text(ANSWERS)
    monkeypatch.setattr(types, "__path__", [*types.__path__, str(tmp_path)])
    start = f"import scheduler.targets.types as t; t.__path__.append({str(tmp_path)!r}); from lambdas._child import main; main()"
    monkeypatch.setattr(_children, "COMMAND", (sys.executable, "-S", "-P", "-c", start))
    registry._modules.cache_clear()
    yield
    registry._modules.cache_clear()
    registry.load.cache_clear()
    payload_of.cache_clear()
    for name in ("primes", "answers"):
        sys.modules.pop(f"{types.__name__}.{name}", None)


class Executor:
    """The pool of an executor, with one thread."""

    def __init__(self, threads: ThreadPoolExecutor, children: Children) -> None:
        self.clock = SystemClock()
        self.pool = ThreadPool(Resources(threads, self.clock, children, MemoryOutputs))

    def start(self, number: int, **fields: Any) -> Job:
        return self.run(a_job(type="primes", payload={"number": number}, due_at=self.clock.now(), **fields))

    def run(self, job: Job) -> Job:
        self.pool.start(job)
        return job

    def result(self) -> Result:
        (done,) = self.pool.wait(self.clock.now() + 60_000)
        return done.result


@pytest.fixture
def executor() -> Iterator[Executor]:
    children = Children()
    with ThreadPoolExecutor(1) as threads:
        yield Executor(threads, children)
    children.close()


def pid(result: Result) -> int:
    first = (result.log or "").partition("\n")[0]
    assert first.startswith("process ")
    return int(first.removeprefix("process "))


def test_the_page_shows_the_tested_type() -> None:
    assert EXAMPLE == SHOWN.read_text()


def test_the_page_lists_every_field_of_a_declaration() -> None:
    table = PAGE.partition("## Fields of a type")[2].partition("\n## ")[0]
    listed = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert listed == [field.name for field in fields(TargetType)]


def test_the_file_alone_makes_the_type_known() -> None:
    assert "primes" in registry.names()
    assert registry.description("primes") == "Finds the n-th prime number."
    assert payload_of("primes").json_schema()["required"] == ["number"]
    with pytest.raises(ValidationError):
        payload_of("primes").validate_json('{"number": 0}', strict=True)
    assert default_locks("primes", {"number": 1}) == ()
    assert breaker.circuit(a_job(type="primes", payload={"number": 1})) is None


def test_the_api_accepts_the_request_of_the_page(world: World) -> None:
    answer = send("POST", "/jobs", json_body=json.loads(REQUEST))
    assert (answer.status, answer.data["type"], answer.data["payload"]) == (201, "primes", {"number": 1000})


def test_an_own_type_runs_in_a_child_with_output_and_log(executor: Executor) -> None:
    executor.start(100)
    result = executor.result()
    assert (result.output, result.failure) == ("541", None)
    assert pid(result) != os.getpid()
    assert (result.log or "").splitlines()[1:] == ["looking for prime number 100"]


@pytest.mark.parametrize("is_work", [True, False])
@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ("of the page", FailureKind.PERMANENT, "why"),
        ("unknown kind", FailureKind.RETRYABLE, "ValueError: 'forever' is no kind of a failure; use one of retryable, permanent"),
        ("nothing", FailureKind.RETRYABLE, "TypeError: `run` returned NoneType instead of Result"),
        ("number", FailureKind.RETRYABLE, "TypeError: the output of a result is text, not int"),
        ("log of bytes", FailureKind.RETRYABLE, "TypeError: the log of a result is text, not bytes"),
        ("endless", FailureKind.RETRYABLE, "TypeError: the message of a failure is text, not list"),
    ],
)
def test_a_failed_or_a_wrong_answer_of_an_own_type_is_a_failure(
    executor: Executor, is_work: bool, answer: str, kind: FailureKind, message: str
) -> None:
    job = executor.run(a_job(type="answers", payload={"answer": answer, "is_work": is_work}, due_at=executor.clock.now()))
    failure = executor.result().failure
    assert failure is not None and failure.kind is kind and failure.message.startswith(message)
    if answer == "of the page":
        now = executor.clock.now()
        assert isinstance(retry.decide(replace(job, claim=Claim("m", "n", now, True)), failure, now), GiveUp)


@pytest.mark.long
def test_an_own_type_is_killed_at_its_time_out_and_its_log_is_kept(executor: Executor) -> None:
    executor.start(10)  # so that loading the child is no part of the time-out
    child = pid(executor.result())
    executor.start(SLOW, timeout_ms=2_000)
    result = executor.result()
    assert pid(result) == child
    assert result.failure is not None and result.failure.kind == "timeout"
    assert result.failure.message == f"the job's time-out of 2 s passed; process {pid(result)} was killed"
    assert process.started(pid(result)) is None
    assert "looking for prime number 1000000" in (result.log or "")
    executor.start(10)
    assert executor.result().output == "29", "the executor continues with another process"


@pytest.mark.long
def test_an_ignored_stop_is_followed_by_a_kill(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    began, run = threading.Event(), Children.run

    def runs(*args: Any) -> Result:
        began.set()
        return run(*args)

    monkeypatch.setattr(Children, "run", runs)
    job = executor.start(SLOW)
    assert began.wait(60), "a job that is cancelled before does not begin"
    executor.pool.cancel(job)
    assert executor.pool.wait(executor.clock.now() + 500) == []
    executor.pool.kill(job)
    result = executor.result()
    assert result.failure is not None and "did not stop when asked to" in result.failure.message
    assert process.started(pid(result)) is None
