"""The trace context: what is taken from a request, the ids of spans, and what an attempt passes on."""

from dataclasses import replace

import pytest

from scheduler.model import trace
from scheduler.model.job import Job, RunInfo
from tests.contract import make

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"
OWN = make.claimed(make.job())
ASKED = make.claimed(make.job(trace=f"{GOOD} vendor=1"))
LATE = make.NOW + trace.NEAR_MS + 1


def claimed_at(job: Job, at: int, fence: int = 1) -> Job:
    assert job.claim is not None
    return replace(job, claim=replace(job.claim, at=at), fence=fence)


def passed(job: Job, ratio: float | None = 1.0) -> trace.Passed:
    found = trace.passed_on(job, ratio)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("parent", "kept"),
    [
        (GOOD, GOOD),
        (f" {GOOD}\t", GOOD),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"00-{TRACE}-{SPAN}-03", GOOD),  # flags that this version does not know
        (f"00-{TRACE}-{SPAN}-fe", f"00-{TRACE}-{SPAN}-00"),
        (f"cc-{TRACE}-{SPAN}-01", GOOD),  # a later version
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-holds", GOOD),
    ],
)
def test_a_valid_traceparent_is_kept_as_version_0(parent: str, kept: str) -> None:
    assert trace.parse(parent) == kept


@pytest.mark.parametrize(
    "parent",
    [
        *(None, "", "00", "nonsense", "-" * 55, GOOD[:-1], f"{GOOD}1", f"{GOOD}-", f"{GOOD}-more", f"{GOOD},{GOOD}", GOOD.upper()),
        *(f"ff-{TRACE}-{SPAN}-01", f"FF-{TRACE}-{SPAN}-01", f".0-{TRACE}-{SPAN}-01", f"0-{TRACE}-{SPAN}-01", f"000-{TRACE}-{SPAN}-01"),
        *(f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{'.' + TRACE[1:]}-{SPAN}-01", f"00-{TRACE[1:]}-{SPAN}-01"),
        *(f"00-{TRACE}0-{SPAN}-01", f"00-{TRACE}-{SPAN[1:]}-01", f"00-{TRACE}-{SPAN}0-01", f"00-{TRACE}-{SPAN}-1", f"00-{TRACE}-{SPAN}-0x"),
        *(
            f"cc-{TRACE}-{SPAN}-01.more",
            f"cc-{TRACE}-{SPAN}-0",
            f"00_{TRACE}_{SPAN}_01",
            f"{GOOD}\n",
            f"00-{TRACE}-{SPAN}-01;a=b",
            "٠" * 55,
        ),
        *(f"00-{TRACE[:-1]}g-{SPAN}-01", f"00-{TRACE}-{SPAN}-\x00\x01", "a" * 100_000, f"00-{'٤' * 32}-{SPAN}-01"),
    ],
)
def test_a_traceparent_that_is_not_valid_is_dropped(parent: str | None) -> None:
    assert trace.parse(parent, "vendor=1") is None


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ("vendor=1", "vendor=1"),
        ("a=1 , b=2\t,,", "a=1,b=2"),
        ("tenant@system=x y", "tenant@system=x y"),
        ("", ""),
        ("a", ""),
        ("a=1,a=2", ""),
        ("A=1", ""),
        ("a=\x00", ""),
        ("a=1=2", ""),
        ("a=ü", ""),
        (",".join(f"k{number}=1" for number in range(32)), ",".join(f"k{number}=1" for number in range(32))),
        (",".join(f"k{number}=1" for number in range(33)), ""),
        (f"a={'x' * 256}", f"a={'x' * 256}"),
        (f"a={'x' * 257}", ""),
        (f"a={'x' * 250},b={'x' * 250},c={'x' * 250}", ""),
        ("," * 1_000_000, ""),
    ],
)
def test_a_tracestate_is_kept_in_one_spelling_or_left_out_alone(state: str, kept: str) -> None:
    assert trace.parse(GOOD, state) == f"{GOOD} {kept}".strip()


def test_the_stored_text_is_read_back() -> None:
    assert trace.stored(f"{GOOD} a=x y") == trace.SpanContext(TRACE, SPAN, True, "a=x y")
    assert trace.stored(f"{GOOD} a=x y").parent == GOOD


def test_the_ids_are_the_same_each_time_and_differ_between_spans() -> None:
    other = replace(OWN, owner="bob")
    spans = [made(job, 1.0) for job in (OWN, other) for made in (trace.created, trace.waited, trace.unstarted)]
    spans += [trace.attempted(job, fence, make.NOW, 1.0) for job in (OWN, other) for fence in (1, 2)]
    assert len({span.span for span in spans}) == len(spans)
    assert spans[0] == trace.created(replace(OWN), 1.0) and trace.parse(spans[0].parent) == spans[0].parent


def test_a_job_for_now_is_in_the_trace_of_its_request() -> None:
    for span in (trace.created(ASKED, 0), trace.waited(ASKED, 0), trace.attempted(ASKED, 1, make.NOW, 0)):
        assert (span.trace, span.is_sampled, span.state) == (TRACE, True, "vendor=1") and span.span != SPAN


def test_a_job_for_later_has_a_trace_of_its_own() -> None:
    job = replace(ASKED, created_at=ASKED.scheduled_at - trace.NEAR_MS - 1)
    assert trace.created(job, 1).trace == TRACE != trace.waited(job, 1).trace == trace.attempted(job, 1, make.NOW, 1).trace
    near = replace(ASKED, created_at=ASKED.scheduled_at - trace.NEAR_MS)
    assert trace.waited(near, 1).trace == TRACE


def test_each_run_of_a_task_has_a_trace_of_its_own() -> None:
    runs = [make.job(origin=RunInfo("t1", 1, make.NOW)) for _ in range(1_000)]
    assert len({trace.attempted(run, 1, make.NOW, 1).trace for run in runs}) == 1_000
    assert all(trace.created(run, 1).trace != trace.waited(run, 1).trace for run in runs)


def test_an_attempt_that_is_late_has_a_trace_of_its_own() -> None:
    late = [trace.attempted(ASKED, fence, LATE, 1) for fence in (1, 2)]
    assert len({TRACE, *(span.trace for span in late)}) == 3 and not late[0].state


def test_a_request_decides_whether_its_trace_is_sampled() -> None:
    unwanted = replace(ASKED, trace=f"00-{TRACE}-{SPAN}-00")
    assert not trace.attempted(unwanted, 1, make.NOW, 1).is_sampled and passed(unwanted).parent.endswith("-00")
    assert trace.attempted(unwanted, 1, LATE, 1).is_sampled, "a trace that begins here has a decision of its own"
    assert not trace.attempted(ASKED, 1, LATE, 0).is_sampled


def test_the_ratio_is_that_of_the_traces_that_begin_here() -> None:
    jobs = [make.job() for _ in range(2_000)]
    sampled = [job for job in jobs if trace.waited(job, 0.25).is_sampled]
    assert 400 <= len(sampled) <= 600
    assert all(trace.attempted(job, 3, LATE, 0.25).is_sampled and trace.waited(job, 0.5).is_sampled for job in sampled)
    assert not any(trace.waited(job, 0.0).is_sampled for job in jobs) and all(trace.waited(job, 1.0).is_sampled for job in jobs)


def test_an_attempt_passes_its_own_span_on() -> None:
    first, again = passed(ASKED), passed(claimed_at(ASKED, make.NOW + 5, fence=2))
    assert first.parent == trace.attempted(ASKED, 1, make.NOW, 1).parent != again.parent
    assert first.state == again.state == "vendor=1"
    assert first.steady == again.steady == trace.waited(ASKED, 1).parent


def test_without_export_the_context_of_the_request_is_passed_on_as_it_is() -> None:
    assert passed(ASKED, None) == trace.Passed(GOOD, GOOD, "vendor=1") == passed(claimed_at(ASKED, LATE, fence=4), None)
    assert trace.passed_on(OWN, None) is None, "nothing is made up"


def test_the_attempt_of_the_history_is_the_one_that_was_passed_on() -> None:
    for job in (OWN, ASKED, claimed_at(ASKED, LATE, fence=7)):
        ended = make.retried(job, "2026-11-20T10:05#03")
        assert trace.of_attempt(ended, ended.attempts[-1], 1).parent == passed(job).parent


def test_a_replay_links_to_the_last_span_of_the_original() -> None:
    ended = make.failed(ASKED)
    assert trace.last(ended, 1).parent == passed(ASKED).parent
    cancelled = make.cancelled(make.job())
    assert trace.last(cancelled, 1) == trace.waited(cancelled, 1)
