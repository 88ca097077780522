"""How long a job travels from publish to claim, as an executor sees it: what dispatch leads by."""

import logging
from collections import deque
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.model.job import Lane
from scheduler.storage.ports import Ledger

REPORT_MS = 15_000
SAMPLES = 200

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LatencyMeter:
    """An executor's recent times from publish to claim; reported to the ledger now and then, never on the hot path."""

    lane: Lane
    reporter: str
    samples: deque[int] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    _reported_at: int = 0

    def add(self, ms: int) -> None:
        self.samples.append(max(ms, 0))

    def report(self, ledger: Ledger, now: int) -> None:
        """Write the p99, at most every `REPORT_MS`. A refusal is no reason to fail a batch."""
        if not self.samples or now - self._reported_at < REPORT_MS:
            return
        self._reported_at = now
        ordered = sorted(self.samples)
        try:
            ledger.report_latency(self.lane, self.reporter, ordered[len(ordered) * 99 // 100], now)
        except Unavailable:
            log.info("latency not reported: the ledger refuses for now")
        self.samples.clear()
