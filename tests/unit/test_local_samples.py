"""The sample tasks of `make run`."""

from datetime import UTC, datetime

from local.samples import sample_tasks
from scheduler.tasks import schedule_form
from scheduler.tasks.schedule import next_runs


def test_sample_tasks_are_accepted_and_end_within_the_hour() -> None:
    now = datetime(2026, 11, 20, 10, tzinfo=UTC)
    at = round(now.timestamp() * 1000)
    for task in sample_tasks(now):
        schedule = schedule_form.parse(task.schedule, at)
        assert schedule.end == at + 3_600_000
        assert len(next_runs(schedule, at, 3)) == 3
