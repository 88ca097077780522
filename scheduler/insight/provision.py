"""When a CloudWatch alarm rings: keep pollers ready for the lanes. Nothing else makes AWS bill pollers.

An alarm calls once, when it begins to ring. From then on `scale` follows the requirement every minute, until no pollers are left:
the pollers of the lanes are read from AWS, so the two need no state of their own.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.insight import forecast, scaling, summary
from scheduler.insight.counting import EVERYBODY
from scheduler.insight.forecast import Expected
from scheduler.model.errors import SchedulerError
from scheduler.model.job import Lane
from scheduler.storage.ports import Ports

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Provisioned:
    """The pollers that are kept ready from now on, by lane, and the lanes for which AWS refused the change."""

    pollers: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


def provision(ports: Ports) -> Provisioned:
    """Keep as many pollers ready as the next ten minutes and the waiting messages require, also if none is ready.

    Raises Unavailable if it cannot read the requirement.
    """
    by_lane = summary.by_lane(EVERYBODY, ports.clock.now(), ports.counters, span=forecast.SCALED_AHEAD)
    return _keep(_current(ports), by_lane, ports)


def follow(by_lane: Mapping[Lane, Sequence[Expected]], ports: Ports) -> Provisioned:
    """The same, but only if a lane already keeps pollers ready. Without an alarm none does, and nothing changes."""
    current = _current(ports)
    return _keep(current, by_lane, ports) if any(current.values()) else Provisioned()


def _current(ports: Ports) -> dict[Lane, int]:
    return {lane: ports.functions.pollers(lane) for lane in ports.rules.most_pollers}


def _keep(current: Mapping[Lane, int], by_lane: Mapping[Lane, Sequence[Expected]], ports: Ports) -> Provisioned:
    waiting = {lane: ports.lanes.backlog(lane) // scaling.MESSAGES_EACH for lane in current}
    required = {lane: max(forecast.most(by_lane[lane]), waiting[lane]) for lane in current}
    result = Provisioned()
    for lane, count in scaling.pollers(current, required, ports.rules.most_pollers).items():
        try:
            if count != current[lane]:
                ports.functions.keep_pollers(lane, count)
        except SchedulerError as error:  # the next call tries again; until then the lane keeps its pollers
            log.warning("pollers not set: AWS refused", extra={"lane": str(lane), "wanted": count, "error": str(error)})
            result.refused.append(str(lane))
        else:
            result.pollers[str(lane)] = count
    return result
