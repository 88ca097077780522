"""Measure the time from publish to claim in an executor; the dispatcher of the same deployment derives its lead from it.

The executors of a new deployment are cold, so the latencies of the ones before do not apply to them.
"""

import logging
from collections import deque
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.storage.ports import Ledger

REPORT_MS, DELAYED_REPORT_MS = 15_000, 60_000  # with few jobs, the second is a tenth of a write unit for each
SAMPLES = 200
REPORTERS = 8  # names that the executors of a lane share, so that no item becomes hot
NEXT = "next"  # the reporter of latencies that nobody has measured yet
FRESH_MS = 120_000  # older latencies are ignored
COLD_LEAD_MS = Rules().lead_ms  # enough for a cold executor; the rules of a stage may have less, as those of the local one

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

    def report(self, ledger: Ledger, now: int, deployment: str) -> None:
        """Report the 99th percentile of an executor of `deployment`, now and then. Never raises: a refusal is no reason to fail a batch."""
        if not self.samples or now - self._reported_at < (DELAYED_REPORT_MS if self.delayed else REPORT_MS):
            return
        self._reported_at = now
        p99 = sorted(self.samples)[len(self.samples) * 99 // 100]
        try:
            ledger.report_latency(self.lane, self.reporter, p99, now, deployment=deployment, delayed=self.delayed)
        except Unavailable:
            log.info("could not report the latency: the ledger refuses for now")
        self.samples.clear()


def expect_cold(ledger: Ledger, rules: Rules, until: int) -> None:
    """Let the deployment with these rules publish jobs as early as for cold executors, until the instant `until` (ms).

    Jobs that it publishes just before the next deployment meet executors of the next one, which are cold. Raises Unavailable.
    """
    lead_ms = max(rules.lead_ms, COLD_LEAD_MS)
    for lane in Lane:
        for delayed in (False, True):
            ledger.report_latency(lane, NEXT, lead_ms * 4 // 5, until - FRESH_MS, deployment=rules.deployment, delayed=delayed)
