"""The breakers of failing targets: the failures that an executor's process counts, the gate that defers the jobs of such targets, and the
operations of administrators.

While targets answer, the gate reads and writes nothing: a process counts its own failures, and the read of the lane states includes the
open breakers.
"""

import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.admission import breaker as rule
from scheduler.admission.gate import Clear, Requeue, Verdict
from scheduler.admission.lane_state import LaneStateCache
from scheduler.admission.why_waits import open_breaker
from scheduler.model.breaker import Breaker, Circuit
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Finished, Job, JobKey, RequeueCause
from scheduler.storage.ports import Clock, Ledger, Ports

LISTED = 20  # open breakers that an error names
TRIES = 5  # tries at closing a breaker that executors change at the same time

log = logging.getLogger(__name__)


def not_closed(ledger: Ledger) -> list[Breaker]:
    """The breakers that are open or half-open, the one that opened last first. Raises Unavailable."""
    return sorted(ledger.watched().breakers.values(), key=lambda breaker: breaker.opened_at, reverse=True)


def close(circuit: Circuit, ledger: Ledger, owners: Mapping[str, str]) -> tuple[Circuit, list[Breaker]]:
    """Close the breaker of this circuit; return its circuit, and the others as `not_closed` does. `owners`: the names of users by id.

    The owner of `circuit` is an id or a name, or None if only one breaker has this name. Executors notice the change within a second. The
    result of a probe that is under way no longer matters. Raises NotFound, and Conflict if several breakers have the name; Unavailable.
    """
    for _ in range(TRIES):
        stored = not_closed(ledger)
        found = _meant(circuit, stored, owners)
        if ledger.set_breaker(found, None):
            return found.circuit, [breaker for breaker in stored if breaker is not found]
    raise Unavailable("the breaker keeps changing; try again")


def _meant(circuit: Circuit, stored: Sequence[Breaker], owners: Mapping[str, str]) -> Breaker:
    """The breaker of this circuit. Raises NotFound, Conflict."""
    named = [breaker for breaker in stored if breaker.circuit.name == circuit.name]
    if circuit.owner is not None:
        named = [breaker for breaker in named if circuit.owner in (breaker.circuit.owner, owners.get(breaker.circuit.owner or ""))]
    exact = [breaker for breaker in named if breaker.circuit == circuit]
    if len(found := exact or named) == 1:
        return found[0]
    if found:
        listed = ", ".join(sorted(_shown(breaker.circuit, owners) for breaker in found))
        raise Conflict(
            f"owner: several breakers have this name: {listed}", details=[{"field": "owner", "rule": f"must be one of {listed}"}]
        )
    listed = ", ".join(_shown(breaker.circuit, owners) for breaker in stored[:LISTED])
    more = f" and {len(stored) - LISTED} more" if len(stored) > LISTED else ""
    raise NotFound(f"no breaker of {_shown(circuit, owners)} is open; open: {listed or 'none'}{more}")


def _shown(circuit: Circuit, owners: Mapping[str, str]) -> str:
    if circuit.owner is None:
        return repr(circuit.name)
    name = owners.get(circuit.owner)
    return f"{circuit.name!r} of the owner {circuit.owner}" + (f" ({name})" if name else "")


class Probe(NamedTuple):
    """The attempt that tries a target, and the breaker as the executor wrote it for that."""

    key: JobKey
    fence: int
    breaker: Breaker

    def is_by(self, job: Job) -> bool:
        return (job.key, job.fence) == (self.key, self.fence)


@dataclass(slots=True)
class BreakerRegistry:
    """The failures in a row by circuit and the probing jobs of one process. Lives as long as the process."""

    ports: Ports
    watch: LaneStateCache
    _failures: dict[Circuit, tuple[int, int]] = field(default_factory=dict)  # the number in a row, and its start
    _probes: dict[Circuit, Probe] = field(default_factory=dict)
    _own: dict[Circuit, tuple[Breaker | None, int]] = field(default_factory=dict)  # with the times of its writes, after the last read

    def find(self, job: Job) -> Breaker | None:
        """The breaker of the job's target, if it is not closed."""
        if not self.watch.breakers and not self._own:
            return None
        circuit = rule.circuit(job)
        return None if circuit is None else self._known(circuit)

    def note(self, done: Finished) -> None:
        """Count the result of an attempt for its target; opens or closes the breaker where due. Never raises."""
        dead = rule.is_dead(done.result)
        if not dead and not self._failures and not self._probes:
            return
        circuit = rule.circuit(done.job)
        if circuit is None or rule.shows_nothing(done):
            return
        probe, now = self._probes.get(circuit), self.ports.clock.now()
        if probe is not None and probe.is_by(done.job):
            del self._probes[circuit]
            self._failures.pop(circuit, None)
            self._write(circuit, probe.breaker, rule.opened(circuit, now, probe.breaker) if dead else None)
        elif not dead:
            self._failures.pop(circuit, None)
        elif self._known(circuit) is None:
            count, since = self._failures.get(circuit, (0, now))
            self._failures[circuit] = (count + 1, since)
            if count + 1 >= rule.FAILURES and now - since >= rule.OVER_MS:
                del self._failures[circuit]
                self._open(circuit, now)

    def probe(self, breaker: Breaker, job: Job) -> bool:
        """Whether this job is the probe of the breaker, or becomes it now. False if another job probes, or the table refuses."""
        probe, now = self._probes.get(breaker.circuit), self.ports.clock.now()
        if probe is not None and probe.is_by(job):
            return True
        half_open = rule.probed(breaker, job, now)
        if not rule.may_probe(breaker, now) or not self._write(breaker.circuit, breaker, half_open):
            return False
        self._probes[breaker.circuit] = Probe(job.key, job.fence, half_open)
        return True

    def give_up(self, jobs: Sequence[Job]) -> None:
        """Give up the probes that these jobs still have: each was not started, or had no result. Another job may try. Never raises."""
        for circuit, probe in [*self._probes.items()]:
            if any(probe.is_by(job) for job in jobs):
                del self._probes[circuit]
                self._write(circuit, probe.breaker, rule.without_probe(probe.breaker))

    def _open(self, circuit: Circuit, now: int) -> None:
        if circuit.owner is not None and sum(known.owner == circuit.owner for known in self.watch.breakers) >= rule.MOST_OF_OWNER:
            log.warning("an owner has too many open breakers; none is added", extra={"owner": circuit.owner})
            return
        self._write(circuit, None, rule.opened(circuit, now))

    def _known(self, circuit: Circuit) -> Breaker | None:
        own = self._own.get(circuit)
        if own is not None and own[1] >= self.watch.read_at:
            return own[0]
        self._own.pop(circuit, None)
        return self.watch.breakers.get(circuit)

    def _write(self, circuit: Circuit, before: Breaker | None, after: Breaker | None) -> bool:
        try:
            done = self.ports.ledger.set_breaker(before, after)
        except Unavailable:
            done = False
        if done:
            self._own[circuit] = (after, self.ports.clock.now())
            shown = {"circuit": circuit.name, "owner": circuit.owner}
            log.warning("breaker", extra=shown | {"until": after and after.until, "probe_until": after and after.probe_until})
        return done


@dataclass(slots=True)
class BreakerGate:
    """See `admission.Gate`. A job that has once concerned it concerns it until the end of its batch."""

    circuits: BreakerRegistry
    clock: Clock
    _concerned: set[JobKey] = field(default_factory=set)

    def concerns(self, job: Job) -> bool:
        if job.key not in self._concerned and self.circuits.find(job) is not None:
            self._concerned.add(job.key)
        return job.key in self._concerned

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Return nothing: a breaker may close before the instant."""
        return {}

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        return {job.key: self._decide(job) for job in jobs}

    def left(self, jobs: Sequence[Job]) -> None:
        """Give up their probes. The probe of a job whose attempt had a result has already ended: `ended` is called first."""
        self.circuits.give_up(jobs)

    def ended(self, done: Sequence[Finished]) -> None:
        for finished in done:
            self.circuits.note(finished)

    def _decide(self, job: Job) -> Verdict:
        breaker = self.circuits.find(job)
        if breaker is None or self.circuits.probe(breaker, job):
            return Clear(self.clock.now())  # after the write of the probe, which may take a second
        now = self.clock.now()
        at = rule.back_at(breaker, now, zlib.crc32(f"{job.id}{job.fence}".encode()) / 2**32)
        if not rule.can_wait(job, at):
            return Clear(now)  # the job would expire while it waits; it uses its own attempts instead
        return Requeue(RequeueCause.BREAKER, open_breaker(breaker, now), at=at)
