"""A ping: one read and one conditional write, whatever it means for its monitor."""

from scheduler.model.errors import NotFound, Unavailable
from scheduler.model.monitor import Monitor, Ping
from scheduler.monitors import rules, timers, tokens
from scheduler.monitors.throttle import PingThrottle
from scheduler.monitors.writes import arm, note
from scheduler.storage.ports import Ports

TRIES = 20  # pings that arrive at once write one after the other
NO_MONITOR = "there is no monitor with this token"


def ping(token: str, content: Ping, source: str, ports: Ports, throttle: PingThrottle) -> Monitor:
    """Record a ping, and return the monitor after it. `source`: the address that sent it.

    Raises NotFound for a wrong token, TooMany after too many of them, Unavailable.
    """
    token_hash = tokens.read(token)
    throttle.admit(source, token_hash, ports.clock.now())
    for _ in range(TRIES):
        now = ports.clock.now()
        before = None if token_hash is None else ports.monitors.of_tokens([token_hash]).get(token_hash)
        if before is None or token_hash is None:
            throttle.note_wrong(source, now)
            raise NotFound(NO_MONITOR)
        throttle.note_right(token_hash)
        after, events = rules.pinged(before, content, now)
        arm(before, after, ports, now)
        if ports.monitors.write_pulse(before, after):
            note(after, events, ports)
            if after.pulse.pending:
                ports.work.send([timers.item_of(timers.part_of(token_hash))])  # the worker sends the notice; a timer is armed for that too
            return after
    raise Unavailable("the monitor keeps changing; try again")
