"""The figures and the curves of `make load`."""

import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from lab.scenarios import load
from local import plot, process
from scheduler.model.job import Job
from tests.contract import make

NOON = 1_763_640_000_000


def started(number: int, due: int, delay: int | None) -> Job:
    """Return a job that has succeeded or, without a delay, has not started."""
    job = make.job(at=due, id=f"j{number}", delay_ms=delay)
    return job if delay is None else replace(job, slot=None, completed_at=due + delay)


def part(jobs: list[Job]) -> load.Part:
    made = load.Part("some", [job.scheduled_at for job in jobs])
    made.posted, made.found, made.posting_s = {job.id for job in jobs}, {job.id: job for job in jobs}, 2.0
    return made


def test_the_backlog_counts_due_jobs_that_have_not_started() -> None:
    jobs = [started(1, NOON, 0), started(2, NOON, 2_500), started(3, NOON + 1_000, 1_200), started(4, NOON, None)]
    zero = NOON / 1000
    assert [(at - zero, count) for at, count in load.backlog(jobs)] == [(0, 2), (1, 3), (2, 1)]


def test_delays_are_grouped_by_the_second_of_the_due_time() -> None:
    jobs = [started(1, NOON, 10), started(2, NOON + 999, 30), started(3, NOON + 1_000, 4_000)]
    assert load.delays_by_second(jobs) == [(NOON / 1000, {50: 0.01, 99: 0.03}), (NOON / 1000 + 1, {50: 4.0, 99: 4.0})]


def test_missing_jobs_count_as_lost_and_unexpected_ones_as_doubled() -> None:
    jobs = [started(1, NOON, 0), started(2, NOON, None), started(3, NOON, 5), started(4, NOON, -1)]
    seen = part(jobs)
    seen.found.pop("j3")
    seen.found["j9"] = started(9, NOON, 0)
    figures = load.figures(seen)
    assert (figures["posted"], figures["succeeded"], figures["lost"], figures["doubled"], figures["early"]) == (4, 2, 2, 1, 1)


def test_the_memory_of_a_live_process_is_known() -> None:
    mb = process.memory_mb(process.this())
    assert mb is not None and 5 < mb < 5_000
    assert process.memory_mb(process.Process(process.this().pid, "another")) is None


def drawn(*curves: plot.Curve) -> tuple[list[str | None], int]:
    """Draw the curves; returns the lines of the picture and the number of single points."""
    tree = ElementTree.fromstring(plot.svg("a < b", [plot.Panel("delay & more", curves), plot.Panel("nothing", [])]))
    name = "{http://www.w3.org/2000/svg}"
    return [each.get("points") for each in tree.iter(f"{name}polyline")], len(list(tree.iter(f"{name}circle")))


def test_the_picture_is_well_formed_and_has_a_line_for_each_curve() -> None:
    assert drawn(plot.Curve("p50 & more", [(0, 0), (1, 5)]), plot.Curve("empty", [])) == (["70.0,220.0 750.0,50.0"], 0)


def test_no_line_is_drawn_across_a_gap() -> None:
    assert drawn(plot.Curve("p50", [(0, 5), (60, 0), (61, 0)])) == (["738.9,220.0 750.0,220.0"], 1)


def test_an_axis_may_be_of_powers_of_ten_and_a_long_name_fits() -> None:
    panel = plot.Panel("share, %", [plot.Curve("a name of more than twenty letters", [(0.1, 0), (10, 50), (100, 100)])])
    picture = plot.svg("delays", [panel], "ms", gap=math.inf, is_log=True)
    assert 'points="70.0,220.0 523.3,135.0 750.0,50.0"' in picture and "<circle" not in picture
    assert [each for each in ("0.1 ms", "1 ms", "10 ms", "100 ms") if f">{each}<" not in picture] == []
    assert int(picture.split('viewBox="0 0 ')[1].split()[0]) > 750 + 34 * 6, "the name fits"


@pytest.mark.parametrize("most", [0.3, 1, 7, 99, 240, 10_000, 123_456])
def test_an_axis_ends_at_a_close_round_number(most: float) -> None:
    assert most <= plot.nice(most) <= 2.5 * most
