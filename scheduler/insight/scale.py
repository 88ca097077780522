"""Every minute: report the executors that the next minutes require, adjust the pollers kept ready, and submit a canary job."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.insight import forecast, summary
from scheduler.insight.counting import EVERYBODY
from scheduler.insight.forecast import Expected
from scheduler.insight.provision import follow
from scheduler.insight.scaling import EXECUTORS_EACH
from scheduler.model.errors import SchedulerError, Unavailable
from scheduler.model.job import CANARY_OWNER, Lane
from scheduler.model.slots import HORIZON, MINUTE
from scheduler.model.spec import JobSpec
from scheduler.pipeline.submit import NewJob, submit
from scheduler.storage.ports import Ports

CANARY_AHEAD = HORIZON + 2 * MINUTE  # far enough ahead to pass through every stage: slot, minute, dispatch, topic, lane
CANARY_OFFSET = 20_000  # ms within its minute, away from the times that users choose
CANARY_EVERY = 2  # minutes: the alarm rings after five without one

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ScaleResult:
    """The executors that the next ten minutes require, those available, and the pollers and canary of this round.

    The same of the calls of `fetch` at once. Its jobs wait while more are required.
    """

    required: int = 0
    available: int = 0
    calls: int = 0
    available_calls: int = 0  # 0: executors call URLs themselves
    pollers: dict[str, int] = field(default_factory=dict)  # kept ready, by lane; empty if no lane keeps any
    canary: bool = False


def scale(ports: Ports, *, random: int) -> ScaleResult:
    """One round. `random` fills the canary's id. Raises Unavailable if the counters cannot be read."""
    result = ScaleResult(available=ports.rules.executors, available_calls=ports.rules.calls)
    if ports.rules.lag_canary and ports.clock.now() // MINUTE % CANARY_EVERY == 0:
        result.canary = _send_canary(random, ports)
    by_lane = summary.by_lane(EVERYBODY, ports.clock.now(), ports.counters, span=forecast.SCALED_AHEAD)
    expected = forecast.together(by_lane.values())
    result.required, result.calls = forecast.most(expected), max((each.calls for each in expected), default=0)
    if 0 < result.available_calls < result.calls:
        log.warning("the next minutes require more calls of URLs at once than the stage may make: these jobs wait for each other")
    if ports.rules.most_pollers:
        result.pollers = _follow(by_lane, ports)
    return result


def _send_canary(random: int, ports: Ports) -> bool:
    """Submit an ordinary job every other minute; its delay is measured like that of any other job.

    If it cannot be stored, the alarm on missing canaries reports that.
    """
    at = (ports.clock.now() + CANARY_AHEAD) // MINUTE * MINUTE + CANARY_OFFSET
    request = NewJob(CANARY_OWNER, JobSpec("log", {"message": "canary"}, max_attempts=1), at)
    try:
        submit(request, ports, random=random)
    except Unavailable:
        log.warning("the canary was refused for now")
        return False
    return True


def _follow(by_lane: Mapping[Lane, Sequence[Expected]], ports: Ports) -> dict[str, int]:
    try:
        pollers = follow(by_lane, ports).pollers
        for lane, count in pollers.items():  # the dispatchers make packs for these executors
            ports.ledger.report_ready(Lane(lane), count * EXECUTORS_EACH, ports.clock.now())
        return pollers
    except SchedulerError as error:  # the next round tries again; until then the lanes keep their pollers
        log.warning("pollers not followed: AWS refused", extra={"error": str(error)})
        return {}
