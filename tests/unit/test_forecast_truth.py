"""A morning of one-time jobs and a thousand cron tasks: exactly the forecast jobs become due."""

import pytest

from scheduler.insight.forecast import AHEAD, MINUTE
from tests.simulation.forecast import NOW, morning


@pytest.mark.long
def test_predicted_and_actual_jobs_and_executors_are_the_same() -> None:
    told = morning()
    assert [each.at for each in told.predicted] == list(range(NOW, NOW + AHEAD, MINUTE))
    assert [each.jobs for each in told.predicted] == told.due
    assert [each.executors for each in told.predicted] == told.executors
    assert sum(told.due) > 20_000
    assert told.recurrences < 500, "the cost grows with distinct schedules"
