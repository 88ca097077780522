"""The names of our own metrics, for the functions that emit them and for the alarms and widgets that show them.

Each metric has one dimension, `service`: the function that emits it, or `storage` if any function may. A user, a job or a task is never a
dimension, because AWS bills every value of a dimension as a metric, for each hour in which it is emitted. So a metric is emitted only
for a noteworthy value, unless its absence rings an alarm. Plain counts are fields of log lines, which the dashboard adds up.
`docs/reference/metrics-alarms.md` has this table; a test compares them.
"""

from typing import NamedTuple

NAMESPACE = "Punctual"
SERVICE = "service"

OLDEST_OPEN_MINUTE = "OldestOpenMinuteSeconds"
PLAN_LAG = "PlanLagSeconds"
BURIED = "Buried"
DEAD = "DeadLetters"
START_DELAY = "StartDelay"
LATENCY = "JobLatency"
OVERHEAD = "JobOverhead"
CANARY_DELAY = "CanaryDelay"
UNREADABLE = "UnreadableItems"
SENT = "NoticesSent"
UNDELIVERED = "NoticesGivenUp"
REQUIRED = "RequiredExecutors"
SPANS_LOST = "SpansLost"
ALERT_LAG = "AlertLagSeconds"


def namespace(stage: str) -> str:
    """Return the namespace of a stage: several stages of an account and region must not ring each other's alarms."""
    return f"{NAMESPACE}/{stage}"


class Metric(NamedTuple):
    """One metric: the function that emits it, its CloudWatch unit, and its meaning."""

    name: str
    service: str
    unit: str
    meaning: str


METRICS = (
    Metric(OLDEST_OPEN_MINUTE, "tick", "Seconds", "the scheduler's lag: age of the oldest minute not closed"),
    Metric(PLAN_LAG, "tick", "Seconds", "for how long plan is late with its oldest minute; only while it is"),
    Metric(BURIED, "bury", "Count", "jobs whose message reached a dead-letter queue"),
    Metric(DEAD, "project", "Count", "jobs that failed for good or were killed"),
    Metric(START_DELAY, "project", "Milliseconds", "start minus scheduled time, of jobs that waited for their time or a living executor"),
    Metric(LATENCY, "project", "Milliseconds", "finish minus scheduled time, of the same"),
    Metric(OVERHEAD, "project", "Milliseconds", "that without the time the job itself took; only if it took a job more than a second"),
    Metric(CANARY_DELAY, "project", "Milliseconds", "delay of a job that the scheduler sends itself every two minutes"),
    Metric(UNREADABLE, "storage", "Count", "reads of items and stream records that this version cannot read; any function emits it"),
    Metric(SENT, "notify", "Count", "notices that reached a receiver"),
    Metric(UNDELIVERED, "notify", "Count", "notices that did not, and are not tried again"),
    Metric(SPANS_LOST, "announce", "Count", "spans that the collector did not take, and that are not sent again"),
    Metric(ALERT_LAG, "worker", "Seconds", "for how long the deadline of a watched run had passed when it was judged, if over a minute"),
    Metric(REQUIRED, "scale", "Count", "executors that the busiest of the next ten minutes requires, if ten or more"),
)
BY_NAME = {metric.name: metric for metric in METRICS}
