"""Measure the time from publish to claim in an executor; the dispatcher derives its lead from it."""

import logging
from collections import deque
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.model.job import Lane
from scheduler.storage.ports import Ledger

REPORT_MS, DELAYED_REPORT_MS = 15_000, 60_000  # with few jobs, the second is a tenth of a write unit for each
SAMPLES = 200

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LatencyMeter:
    """An executor's recent times (ms) from publish to claim; reported to the ledger after a batch, never before a job starts.

    `delayed`: from the end of their delay instead, of messages that SQS has delayed.
    """

    lane: Lane
    reporter: str
    delayed: bool = False
    samples: deque[int] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    _reported_at: int = 0

    def add(self, ms: int) -> None:
        self.samples.append(max(ms, 0))

    def report(self, ledger: Ledger, now: int) -> None:
        """Report the 99th percentile, now and then. Never raises: a refusal is no reason to fail a batch."""
        if not self.samples or now - self._reported_at < (DELAYED_REPORT_MS if self.delayed else REPORT_MS):
            return
        self._reported_at = now
        ordered = sorted(self.samples)
        try:
            ledger.report_latency(self.lane, self.reporter, ordered[len(ordered) * 99 // 100], now, delayed=self.delayed)
        except Unavailable:
            log.info("could not report the latency: the ledger refuses for now")
        self.samples.clear()
