"""Tasks on the deployed stack over HTTP: a short form of the drills of `make drill`."""

from punctual import Punctual

from lab.scenarios import drills
from local.write_units import stored_units
from tests.system.conftest import System


def test_every_nominal_time_has_one_job_that_is_called_once(system: System, client: Punctual) -> None:
    seen = drills.regular(client, system.receiver, seconds=75, schedules=[{"cron": "*/1 * * * *"}, {"rate": "rate(5 seconds)"}])
    assert not seen.complaints, seen.figures


def test_nothing_of_an_old_version_starts_after_its_edit_returned(system: System, client: Punctual) -> None:
    seen = drills.edits(client, system.receiver, seconds=12)
    assert not seen.complaints, seen.figures


def test_overlap_follows_the_policy_of_the_task(system: System, client: Punctual) -> None:
    seen = drills.overlap(client, schedule={"rate": "10 seconds"}, takes=15, seconds=62)
    assert not seen.complaints, seen.figures


def test_a_batch_with_keys_is_stored_once(system: System) -> None:
    seen = drills.batch(system.client("batcher-with-keys"), lambda beginning: stored_units(system.stack, beginning), count=100)
    assert not seen.complaints, seen.figures
