"""The report of the drills."""

from concurrent.futures import Future

from punctual import Unavailable

from lab.judge import Outcome
from lab.scenarios import drill


def test_a_drill_that_ends_by_an_error_is_a_complaint_beside_the_others() -> None:
    broken, kept = Future[Outcome](), Future[Outcome]()
    broken.set_exception(Unavailable(503, "unavailable", "try again"))
    kept.set_result(Outcome(figures={"jobs": 3}))
    outcomes = {"fair": drill.ended(broken), "batch": drill.ended(kept)}
    assert "503" in outcomes["fair"].complaints[0] and not outcomes["batch"].complaints
    assert drill.report(outcomes) == 1
