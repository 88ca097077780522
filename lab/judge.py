"""The judge of all scenarios: compares the promises with the jobs and calls that were seen. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from scheduler.model.lifecycle import FINAL_TIMES

N = TypeVar("N", int, float)
TOO_LATE_MS = 10_000
FINAL = {str(status) for status in FINAL_TIMES}


@dataclass
class Outcome:
    """The result of a scenario: figures to print, and a complaint for each broken promise."""

    figures: dict[str, Any] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    def expect(self, condition: bool, complaint: str) -> None:
        if not condition:
            self.complaints.append(complaint)


@dataclass(frozen=True)
class Promise:
    """A job, posted or of a task: the number of attempts it takes, and the times at which it called the receiver."""

    id: str
    label: str
    attempts: int = 1
    calls: Sequence[int] | None = None  # UTC milliseconds; None: the job calls no receiver


def of_task(label: str, nominals: Sequence[str], jobs: Sequence[Mapping[str, Any]], calls: Mapping[str, Sequence[int]]) -> list[Promise]:
    """Return a promise for each nominal time of a task. A time without a job counts as lost, an additional job as duplicated.

    `calls`: when each job called the receiver, by job id.
    """
    promises = []
    left = sorted(jobs, key=lambda job: str(job["id"]))
    for nominal in nominals:
        job = next((job for job in left if job["nominal_at"] == nominal), None)
        if job is None:
            promises.append(Promise("no job", f"{label} at {nominal}"))  # an id that no job has: judged as lost
        else:
            left.remove(job)
            promises.append(Promise(job["id"], f"{label} at {nominal}", calls=calls.get(job["id"], ())))
    return promises + [Promise(job["id"], f"{label}, one too many", attempts=0, calls=calls.get(job["id"], ())) for job in left]


@dataclass(frozen=True)
class Verdict:
    jobs: int
    succeeded: int
    late_p50_ms: int
    late_p99_ms: int
    early: int
    lost: int
    duplicated: int
    complaints: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, int]:
        figures = asdict(self)
        del figures["complaints"]
        return figures


def judge(promises: Sequence[Promise], found: Mapping[str, Mapping[str, Any]], too_late_ms: int = TOO_LATE_MS) -> Verdict:
    """Return the figures, and a complaint for every broken promise."""
    counts = {"succeeded": 0, "early": 0, "lost": 0, "duplicated": 0}
    delays: list[int] = []
    complaints: list[str] = []
    for promise in promises:
        job = found.get(promise.id)
        delay = job.get("start_delay_ms") if job else None
        if delay is not None:
            delays.append(delay)
        for kind, complaint in _faults(promise, job, delay, too_late_ms):
            complaints.append(f"{promise.label} ({promise.id}): {complaint}")
            if kind in counts:
                counts[kind] += 1
        counts["succeeded"] += job is not None and job["status"] == "succeeded"
    return Verdict(
        jobs=len(promises),
        late_p50_ms=percentile(delays, 50),
        late_p99_ms=percentile(delays, 99),
        complaints=complaints,
        **counts,
    )


def _faults(promise: Promise, job: Mapping[str, Any] | None, delay: int | None, too_late_ms: int) -> list[tuple[str, str]]:
    """Return the faults of one job: (kind, description)."""
    if job is None:
        return [("lost", "does not exist")]
    if delay is None:
        return [("lost", f"has not started; its status is {job['status']}")]
    faults = []
    if delay < 0 or any(at < milliseconds(job["scheduled_at"]) for at in promise.calls or ()):
        faults.append(("early", f"started {-delay} ms early"))
    if delay > too_late_ms:
        faults.append(("late", f"started {delay} ms late"))
    starts = max(len(job.get("attempts") or ()), len(promise.calls or ()))
    if starts > promise.attempts:
        faults.append(("duplicated", f"ran {starts} times instead of {promise.attempts}"))
    if job["status"] != "succeeded":
        faults.append(("failed", f"ended as {job['status']}: {job.get('reason') or 'no reason given'}"))
    return faults


def after(job: Mapping[str, Any], former: Mapping[str, Any]) -> bool:
    """True if `job` started after the end of `former`, successful or not."""
    return bool(former["attempts"] and job["attempts"] and former["attempts"][-1]["ended_at"] <= job["attempts"][0]["started_at"])


def milliseconds(instant: str) -> int:
    """Return an RFC 3339 instant in UTC milliseconds.

    >>> milliseconds("1970-01-01T00:00:01.500Z")
    1500
    """
    return round(datetime.fromisoformat(instant).timestamp() * 1000)


def percentile(values: Sequence[N], share: int) -> N | int:
    """Return the percentile by nearest rank; 0 without values.

    >>> percentile([5, 1, 3], 50), percentile([5, 1, 3], 99)
    (3, 5)
    """
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * share / 100) - 1] if ordered else 0
