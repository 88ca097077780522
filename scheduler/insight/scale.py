"""Every minute: say what the next minutes require, keep as many executors ready, and send a canary through the scheduler."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.insight import forecast, scaling, summary
from scheduler.insight.counting import CANARY_OWNER, EVERYBODY
from scheduler.model.errors import Unavailable
from scheduler.model.job import Lane
from scheduler.model.slots import HORIZON, MINUTE
from scheduler.model.spec import JobSpec
from scheduler.pipeline.submit import NewJob, submit
from scheduler.storage.ports import Functions, Ports

CANARY_AHEAD = HORIZON + 2 * MINUTE  # far enough to take the whole way: slot, minute, dispatch, topic, lane
CANARY_OFFSET = 20_000  # within its minute, apart from what people ask for

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ScaleResult:
    """What the next ten minutes require, against what there may be; and what was done about it."""

    required: int = 0
    available: int = 0
    pollers: dict[str, int] = field(default_factory=dict)  # by lane, where they are kept ready
    canary: bool = False

    @property
    def used_percent(self) -> float:
        return 100 * self.required / self.available if self.available else 0.0


def scale(ports: Ports, *, random: int) -> ScaleResult:
    """One round. `random` fills the canary's id. Raises Unavailable if the counters cannot be read."""
    result = ScaleResult(available=ports.rules.executors)
    if ports.rules.lag_canary:
        result.canary = _send_canary(random, ports)
    by_lane = summary.by_lane(EVERYBODY, ports.clock.now(), ports.counters, span=forecast.SCALED_AHEAD)
    result.required = forecast.most(forecast.together(by_lane.values()))
    if most := ports.rules.most_pollers:
        result.pollers = _keep_ready({lane: forecast.most(minutes) for lane, minutes in by_lane.items()}, ports.functions, most)
    return result


def _send_canary(random: int, ports: Ports) -> bool:
    """A job like any other, once a minute: its delay is measured where all others' are. That it cannot be stored is told by its absence."""
    at = (ports.clock.now() + CANARY_AHEAD) // MINUTE * MINUTE + CANARY_OFFSET
    request = NewJob(CANARY_OWNER, JobSpec("log", {"message": "canary"}, max_attempts=1), at)
    try:
        submit(request, ports, random=random)
    except Unavailable:
        log.warning("the canary was refused for now")
        return False
    return True


def _keep_ready(required: Mapping[Lane, int], functions: Functions, most: int) -> dict[str, int]:
    kept = {}
    for lane, executors in required.items():
        try:
            current = functions.pollers(lane)
            wanted = scaling.pollers(current, executors, most)
            if wanted != current:
                functions.keep_pollers(lane, wanted)
        except Unavailable as error:  # the next minute tries again, and the lane scales by itself meanwhile
            log.warning("pollers could not be set for now", extra={"lane": str(lane), "error": str(error)})
        else:
            kept[str(lane)] = wanted
    return kept
