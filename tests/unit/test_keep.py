"""Previews of outputs and logs are stored with the job; the full text is read from the output store."""

from collections.abc import Callable

import pytest

from scheduler.model import lifecycle, settlement
from scheduler.model.attempt_output import FullOutput
from scheduler.model.errors import Gone, NotFound
from scheduler.model.job import Claim, Failure, FailureKind, Finished, Job, Preview, Result
from scheduler.model.rules import Rules
from scheduler.pipeline.output_store import Text, keep, logged, output
from scheduler.storage.memory.stores import MemoryOutputs
from scheduler.storage.ports import Outputs
from tests.conftest import NOW, a_job
from tests.unit.stage import Wrapped, refuse

LONG = "o" * 10_000
AGAIN = Failure(FailureKind.RETRYABLE, "once more")


def run(outputs: Outputs, *results: Result) -> Job:
    job = a_job()
    for number, result in enumerate(results):
        job = lifecycle.claim(job, claim=Claim("m", f"n{number}", NOW, alone=False))
        kept = keep(job, result, lambda: outputs)
        job = settlement.settle(Finished(job, NOW, NOW, kept), NOW, Rules(shards=1))
    return job


def never() -> Outputs:
    raise AssertionError("nothing needs to be stored")


def test_an_output_that_fits_is_not_stored() -> None:
    job = lifecycle.claim(a_job(), claim=Claim("m", "n", NOW, alone=False))
    assert keep(job, Result("done", log="fine"), never) == Result("done", log="fine")


def test_the_full_text_is_read_from_where_it_is_stored() -> None:
    outputs = MemoryOutputs()
    job = run(outputs, Result("short", failure=AGAIN, log="log 1"), Result(LONG, log="log 2"))
    assert outputs.rows == {(job.key, 2): FullOutput(LONG, "log 2")}
    assert (output(job, 1, outputs), logged(job, 1, outputs)) == (Text("short", True), Text("log 1", True))
    assert (output(job, 2, outputs), logged(job, 2, outputs)) == (Text(LONG, True), Text("log 2", True))


def test_the_body_of_a_response_is_the_output() -> None:
    outputs = MemoryOutputs()
    job = run(outputs, Result(response={"status": 200, "headers": {}, "body": "short"}))
    assert output(job, 1, outputs) == Text("short", True)


def test_a_refusing_store_loses_the_full_text_only() -> None:
    outputs = Wrapped(MemoryOutputs(), put=refuse)
    job = run(outputs, Result(LONG))
    assert job.completed_at is not None and job.attempts[0].preview is Preview.CUT
    assert output(job, 1, outputs) == Text("o" * 4_096, False)


def test_an_expired_full_text_is_gone_and_its_preview_is_not() -> None:
    outputs = MemoryOutputs()
    job = run(outputs, Result(LONG))
    outputs.rows.clear()
    with pytest.raises(Gone, match="output of attempt 1 is no longer stored"):
        output(job, 1, outputs)
    assert job.output == "o" * 4_096


@pytest.mark.parametrize("read", [output, logged])
def test_an_attempt_unknown_or_without_output_is_not_found(read: Callable[[Job, int, Outputs], Text]) -> None:
    job = run(MemoryOutputs(), Result())
    with pytest.raises(NotFound, match="there is no attempt 2"):
        read(job, 2, MemoryOutputs())
    with pytest.raises(NotFound, match="attempt 1 has no"):
        read(job, 1, MemoryOutputs())
