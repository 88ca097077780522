"""A job after an hour without any, on a system in which every function has to start first: how late does it begin?

Every invocation of tick and dispatch begins with a cold start. So does one of an executor, unless it ran within `KEPT_MS`: an early message
starts it, and it hides that message for a minute at most. AWS keeps an environment longer, without a promise. Calls take 1 to 6 ms.
"""

from random import Random

import pytest

from lab.world.faults import CALM
from lab.world.limits import COLD_MS
from scheduler.model import slots
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.model.work import WorkDelivery
from scheduler.pipeline.submit import NewJob
from tests.simulation.world import START, World

HOUR = 60 * slots.MINUTE
KEPT_MS = 120_000  # an idle environment of an executor is kept for this time
LATE_MS = 10  # the most that such a job may be late


class ColdWorld(World):
    """A world in which every invocation is the first one of its environment, but for executors that have just run."""

    _ran_at = -HOUR

    def _start(self) -> None:
        self.hub.sleep_until(self.hub.time + COLD_MS)

    def _tick(self) -> None:
        self._start()
        super()._tick()

    def _step(self, delivery: WorkDelivery) -> None:
        self._start()
        super()._step(delivery)

    def _execute(self, lane: Lane, batch: list[object]) -> None:
        if self.hub.time - self._ran_at > KEPT_MS:
            self._start()
            self._warm[lane].clear()
        super()._execute(lane, batch)
        self._ran_at = self.hub.time


def delay(due_at: int, *, posted_at: int, lead_ms: int = Rules().lead_ms, seed: int = 1) -> int:
    """Return how late (ms) the only job of a world started."""
    world = ColdWorld(seed, CALM, rules=Rules(shards=2, lead_ms=lead_ms))
    world._schedule(world._tick, due_at + 2 * slots.MINUTE)
    job = NewJob("user", JobSpec("log", {"takes": 1, "fails": 0}), due_at)
    world.hub.spawn(lambda: world._post([job]), posted_at)
    world.hub.run(due_at + 2 * slots.MINUTE)
    assert not world.report.violations
    (found,) = world.report.delays
    return found


SECONDS = (0.001, 1, 2.5, 14.2, 30, 57.499, 59.999)  # of a minute


@pytest.mark.parametrize("second", [0, 2.4, *(pytest.param(second, marks=pytest.mark.long) for second in SECONDS)])
def test_a_job_through_dispatch_is_on_time_after_an_hour_of_silence(second: float) -> None:
    due_at = START + HOUR + int(second * 1_000)
    assert max(delay(due_at, posted_at=START + 1_234, seed=seed) for seed in range(5)) <= LATE_MS


@pytest.mark.parametrize("ahead", [2, 61.5, *(pytest.param(ahead, marks=pytest.mark.long) for ahead in (2.9, 10.001, 245))])
def test_a_job_on_the_direct_path_is_on_time_after_an_hour_of_silence(ahead: float) -> None:
    posted = [START + HOUR + Random(seed).randrange(slots.MINUTE) for seed in range(5)]
    assert max(delay(at + int(ahead * 1_000), posted_at=at, seed=seed) for seed, at in enumerate(posted)) <= LATE_MS


@pytest.mark.long
def test_a_direct_message_may_come_a_whole_second_earlier_or_later() -> None:
    """SQS delays by whole seconds: somewhere among these the message comes as late as it can."""
    at = START + HOUR + 17_345
    assert max(delay(at + ahead, posted_at=at) for ahead in range(3_000, 4_000, 24)) <= LATE_MS


def test_a_lead_of_half_a_second_would_be_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the jobs of a dense minute, whose messages no executor sees before."""
    monkeypatch.setattr("scheduler.pipeline.dispatch.SPARSE", -1)
    assert delay(START + HOUR + 30_000, posted_at=START + 1_234) <= LATE_MS
    late = delay(START + HOUR + 30_000, posted_at=START + 1_234, lead_ms=500)
    assert late > LATE_MS and late >= COLD_MS - 500
