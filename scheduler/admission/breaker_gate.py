"""The breakers of dead targets: the failures that an executor's process counts, and the gate that defers the jobs of such targets.

While targets answer, the gate reads and writes nothing: a process counts its own failures, and open breakers come with the read of
the lane states.
"""

import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.admission import breaker as rule
from scheduler.admission.breaker import Breaker
from scheduler.admission.gate import Clear, Requeue, Verdict
from scheduler.admission.lane_state import LaneStateCache
from scheduler.model import instants
from scheduler.model.errors import Unavailable
from scheduler.model.job import Finished, Job, JobKey, RequeueCause
from scheduler.storage.ports import Clock, Ports

log = logging.getLogger(__name__)


@dataclass(slots=True)
class BreakerRegistry:
    """The failures in a row by circuit and the probing jobs of one process. Lives as long as the process."""

    ports: Ports
    watch: LaneStateCache
    _failures: dict[str, tuple[int, int]] = field(default_factory=dict)  # how many in a row, and since when
    _probes: dict[str, JobKey] = field(default_factory=dict)
    _own: dict[str, tuple[Breaker | None, int]] = field(default_factory=dict)  # as written here, and when: newer than the last read

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
        if circuit is None:
            return
        known, now = self._known(circuit), self.ports.clock.now()
        if self._probes.get(circuit) == done.job.key:
            del self._probes[circuit]
            self._failures.pop(circuit, None)
            self._write(circuit, known, rule.opened(circuit, now, known) if dead else None)
        elif not dead:
            self._failures.pop(circuit, None)
        elif known is None:
            count, since = self._failures.get(circuit, (0, now))
            self._failures[circuit] = (count + 1, since)
            if count + 1 >= rule.FAILURES and now - since >= rule.OVER_MS:
                del self._failures[circuit]
                self._write(circuit, None, rule.opened(circuit, now))

    def probe(self, breaker: Breaker, job: Job) -> bool:
        """Make this job the probe of the breaker. False if another job probes, or the table refuses."""
        if not self._write(breaker.circuit, breaker, rule.probed(breaker, job, self.ports.clock.now())):
            return False
        self._probes[breaker.circuit] = job.key
        return True

    def _known(self, circuit: str) -> Breaker | None:
        own = self._own.get(circuit)
        if own is not None and own[1] >= self.watch.read_at:
            return own[0]
        self._own.pop(circuit, None)
        return self.watch.breakers.get(circuit)

    def _write(self, circuit: str, before: Breaker | None, after: Breaker | None) -> bool:
        if before is None and after is None:
            return True
        try:
            done = self.ports.ledger.set_breaker(before, after)
        except Unavailable:
            done = False
        if done:
            self._own[circuit] = (after, self.ports.clock.now())
            log.warning("breaker", extra={"circuit": circuit, "until": after and after.until, "probe_until": after and after.probe_until})
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
        """Do nothing."""

    def ended(self, done: Sequence[Finished]) -> None:
        for finished in done:
            self.circuits.note(finished)

    def _decide(self, job: Job) -> Verdict:
        now, breaker = self.clock.now(), self.circuits.find(job)
        if breaker is None or (rule.may_probe(breaker, now) and self.circuits.probe(breaker, job)):
            return Clear(now)
        at = rule.back_at(breaker, now, zlib.crc32(f"{job.id}{job.fence}".encode()) / 2**32)
        if not rule.can_wait(job, at):
            return Clear(now)  # the job would expire while it waits; it uses its own attempts instead
        what = f"open until {instants.render(breaker.until)}" if now < breaker.until else "another job is trying it"
        return Requeue(RequeueCause.BREAKER, f"breaker: {breaker.circuit} does not answer; {what}", at=at)
