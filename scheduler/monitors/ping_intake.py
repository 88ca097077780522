"""Each minute the engine checks that pings can arrive. While they cannot, no monitor goes down; afterwards the deadlines are extended.

The same check shows an outage of the engine itself: it did not come then.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from scheduler.model.monitor import PingIntake
from scheduler.monitors import timers
from scheduler.storage.ports import Ports

CHECKED_MS = 90_000  # no monitor goes down if the last successful check is older than this: it comes each minute
OUTAGE_MS = 150_000  # an intake that was not seen in this time was away
MERGED_MS = 3_600_000  # outages that follow each other within this time are one

log = logging.getLogger(__name__)

Reachable = Callable[[], bool]  # whether the address of pings answers


def minute(ports: Ports, reachable: Reachable) -> None:
    """Check the intake, if there has been a monitor, and request the wakes of the coming minute. Raises Unavailable."""
    now, before = ports.clock.now(), ports.monitors.intake()
    if before is None:
        return
    if reachable():
        after = checked(before, ports.clock.now())
        if after.back_at != before.back_at:
            log.warning("pings could not arrive: the deadlines of monitors are extended", extra={"since": after.away_since, "until": now})
        ports.monitors.set_intake(after)
    else:
        log.error("the address of pings does not answer: no monitor goes down until it does")
    timers.request(ports, now)


def expect_pings(ports: Ports, now: int) -> None:
    """Begin the checks with the first monitor of the stage. Raises Unavailable."""
    if ports.monitors.intake() is None:
        ports.monitors.set_intake(PingIntake(now))


def checked(intake: PingIntake, at: int) -> PingIntake:
    """The intake after a check at `at` has found it. A long time without such a check was an outage: of the intake, or of the engine."""
    if at - intake.seen_at < OUTAGE_MS:
        return replace(intake, seen_at=max(at, intake.seen_at))
    since = intake.seen_at
    if intake.away_since is not None and intake.back_at is not None and since - intake.back_at < MERGED_MS:
        since = intake.away_since
    return PingIntake(at, since, at)


def is_away(intake: PingIntake | None, at: int) -> bool:
    """Whether pings may be lost now."""
    return intake is not None and at - intake.seen_at > CHECKED_MS
