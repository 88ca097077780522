"""The parts of outputs and logs that a job's item keeps."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model import attempt_output, lifecycle, settlement
from scheduler.model.attempt_output import FORMER, ROOM, WHOLE, FullOutput
from scheduler.model.job import Claim, Failure, FailureKind, Finished, Job, Preview, Result
from scheduler.model.rules import Rules
from tests.conftest import NOW, a_job

SHORT = Result("done", log="one line")
AGAIN = Failure(FailureKind.RETRYABLE, "once more")


def claimed(job: Job, number: int = 0) -> Job:
    return lifecycle.claim(job, claim=Claim("m", f"n{number}", NOW, alone=False))


def ended(job: Job, result: Result) -> Job:
    fits, _ = attempt_output.split(job, result)
    return settlement.settle(Finished(job, NOW, NOW, fits), NOW, Rules(shards=1))


def attempted(*results: Result) -> Job:
    job = a_job(max_attempts=25)
    for number, result in enumerate(results):
        job = ended(claimed(job, number), result)
    return job


def held(job: Job) -> int:
    texts = [attempt_output.output_of(job.output, job.response), *(text for each in job.attempts for text in (each.output, each.log))]
    return sum(len(text.encode()) for text in texts if text)


def test_output_that_fits_is_kept_unchanged() -> None:
    assert attempt_output.split(claimed(a_job()), SHORT) == (SHORT, None)


@pytest.mark.parametrize("characters", [1_024, 1_025])
def test_output_of_wide_characters_is_measured_in_bytes(characters: int) -> None:
    fits, whole = attempt_output.split(claimed(a_job()), Result("\N{OWL}" * characters))
    assert fits.output == "\N{OWL}" * 1_024 and (whole is None) == (characters == 1_024)


def test_the_item_keeps_the_start_of_long_output_and_the_end_of_its_log() -> None:
    output, log = "o" * 5_000 + "end", "begin" + "l" * 5_000
    fits, whole = attempt_output.split(claimed(a_job()), Result(output, log=log))
    assert whole == FullOutput(output, log)
    assert fits == Result("o" * (ROOM - 1_024), log="l" * 1_024, preview=Preview.STORED)


def test_the_body_of_a_response_is_the_output() -> None:
    answer = {"status": 200, "headers": {"a": "b"}, "body": "x" * 10_000}
    fits, whole = attempt_output.split(claimed(a_job()), Result(response=answer))
    assert whole == FullOutput("x" * 10_000, None)
    assert fits.response == {"status": 200, "headers": {"a": "b"}, "body": "x" * ROOM}


def test_a_long_output_leaves_room_for_the_log() -> None:
    fits, _ = attempt_output.split(claimed(a_job()), Result("o" * 10_000, log="l" * 900))
    assert (len(fits.output or ""), fits.log) == (ROOM - 900, "l" * 900)


def test_no_character_is_cut_in_two() -> None:
    fits, _ = attempt_output.split(claimed(a_job()), Result("€" * 2_000))
    assert fits.output == "€" * (ROOM // 3)


def test_an_endless_output_is_stored_up_to_a_megabyte() -> None:
    _, whole = attempt_output.split(claimed(a_job()), Result("o" * (WHOLE + 1), log="l" * (WHOLE + 1)))
    assert whole == FullOutput("o" * WHOLE, "l" * WHOLE)


def test_an_attempt_keeps_its_output_when_another_one_follows() -> None:
    job = attempted(Result("first", failure=AGAIN, log="log 1"), Result("second", log="log 2"))
    assert [(each.output, each.log, each.preview) for each in job.attempts] == [("first", "log 1", None), (None, "log 2", None)]
    assert job.output == "second"


def test_earlier_attempts_keep_less_and_are_marked_as_cut() -> None:
    job = attempted(Result("o" * 600, failure=AGAIN), Result("p" * 5_000, failure=AGAIN), SHORT)
    assert [(len(each.output or ""), each.preview) for each in job.attempts] == [(FORMER, Preview.CUT), (FORMER, Preview.STORED), (0, None)]


def test_a_redriven_job_starts_without_output() -> None:
    job = attempted(Result("why", failure=Failure(FailureKind.PERMANENT, "no"), log="log"))
    redriven = lifecycle.redrive(job, NOW, slot="2026-11-20T10:09#00")
    assert (redriven.output, redriven.attempts[0].output, redriven.attempts[0].log) == (None, "why", "log")


def test_a_crashed_attempt_does_not_get_the_output_of_the_one_before() -> None:
    job = claimed(attempted(Result("first", failure=AGAIN)), 1)
    crashed = lifecycle.take_back(job, NOW, slot="2026-11-20T10:09#00")
    assert (crashed.output, [each.output for each in crashed.attempts]) == (None, ["first", None])


def test_work_that_was_cancelled_keeps_its_log() -> None:
    job = replace(claimed(a_job()), cancel_requested_at=NOW)
    assert [each.log for each in ended(job, Result(failure=AGAIN, log="so far")).attempts] == ["so far"]


texts = st.one_of(st.none(), st.text(max_size=50), st.integers(0, 6_000).map(lambda size: "ä" * size))
results = st.builds(
    lambda output, log, as_body: Result(
        None if as_body else output, {"status": 500, "headers": {}, "body": output or ""} if as_body else None, AGAIN, log
    ),
    texts,
    texts,
    st.booleans(),
)


@pytest.mark.long
@given(st.lists(results, min_size=1, max_size=8))
def test_all_previews_of_a_job_fit_into_the_room(found: list[Result]) -> None:
    assert held(attempted(*found)) <= ROOM


@pytest.mark.parametrize("size", [1, 3, 4])
def test_lone_surrogates_are_replaced(size: int) -> None:
    fits, whole = attempt_output.split(claimed(a_job()), Result("\ud800" * size * 2_000))
    assert (whole is None) == (size * 2_000 <= ROOM) and len(fits.output or "") <= ROOM
