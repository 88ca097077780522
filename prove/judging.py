"""Figures and complaints: of the jobs of each part by the promises, of the peers by their own instants. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from punctual.records import Json

from lab.judge import TOO_LATE_MS, Promise, after, judge, milliseconds, percentile
from lab.scenarios.executors import KILLED_WITHIN
from prove import costs
from prove.report import Row

NAMED = 3  # complaints of a part that name their job; further ones are counted
WAITS_MS = 300_000  # a job of an ordering key waits for the ones before it; a lost wake-up costs up to five minutes
Found = Mapping[str, Json]  # jobs by id
Judged = tuple[Row, list[str]]


def of_part(
    key: str,
    title: str,
    promises: Sequence[Promise],
    found: Found,
    *,
    too_late_ms: int = TOO_LATE_MS,
    expect: str = "succeeded",
    note: str = "",
) -> Judged:
    """Judge jobs that must start at their instant, once, and end as `expect`."""
    verdict = judge(promises, {id: _as_expected(job, expect) for id, job in found.items()}, too_late_ms)
    delays = [delay for each in promises if (delay := found.get(each.id, {}).get("start_delay_ms")) is not None]
    row = Row(
        key,
        title,
        len(promises),
        verdict.late_p50_ms if delays else None,
        verdict.late_p99_ms if delays else None,
        max(delays, default=None),
        verdict.lost,
        verdict.early,
        verdict.duplicated,
        costs.of_jobs(key, len(promises)),
        note,
    )
    return row, _few(key, verdict.complaints)


def _as_expected(job: Json, status: str) -> Json:
    """Return the job with the status that `judge` expects, if it ended as it should; else with a status that names both."""
    found = job["status"]
    return job if status == "succeeded" else {**job, "status": "succeeded" if found == status else f"{found}, not {status}"}


def of_order(ids: Sequence[str], found: Found) -> Judged:
    """Judge the jobs of one ordering key, posted in this order: one after the other, each once."""
    row, complaints = of_part("order", f"{len(ids)} jobs of one ordering key", promises(ids), found, too_late_ms=WAITS_MS)
    pairs = [(found[one], found[two]) for one, two in itertools.pairwise(ids) if one in found and two in found]
    bad = [f"{two['id']} started before {one['id']}, which is before it, had ended" for one, two in pairs if not after(two, one)]
    complaints += _few("order", bad)
    ran = [job["attempts"][-1] for job in found.values() if job["id"] in set(ids) and job["attempts"]]
    took = max(milliseconds(each["ended_at"]) for each in ran) - min(milliseconds(each["started_at"]) for each in ran) if ran else 0
    note = "out of order" if bad else f"in order, one at a time, {took / 1000:.1f} s in all"
    return replace(row, p50_ms=None, p99_ms=None, max_ms=None, note=note), complaints


def of_killed(id: str, found: Found, timeout_s: float) -> Judged:
    """Judge a job whose work takes longer than its time-out: it must be killed shortly after it."""
    row, complaints = of_part("killed", "a job past its time-out", promises([id]), found, expect="killed")
    job = found.get(id, {})
    if not job.get("killed_at") or not job.get("started_at"):
        return row, complaints
    over = (milliseconds(job["killed_at"]) - milliseconds(job["started_at"])) / 1000 - timeout_s
    if not 0 <= over <= KILLED_WITHIN:
        complaints.append(f"killed: {id} was killed {over:.3f} s after its time-out, not within {KILLED_WITHIN:g} s")
    return replace(row, note=f"killed {over:.2f} s after its time-out"), complaints


def of_cancelled(id: str, found: Found) -> Judged:
    """Judge a job that was cancelled before its instant: it must never run."""
    job = found.get(id)
    lost = int(job is None)
    ran = job is not None and bool(job["started_at"] or job["attempts"])
    complaints = [f"cancelled: {id} does not exist"] if job is None else []
    if ran:
        complaints.append(f"cancelled: {id} ran, although it was cancelled before its instant")
    elif job and job["status"] != "cancelled":
        complaints.append(f"cancelled: {id} is {job['status']}, although it was cancelled")
    note = "" if complaints else "never ran"
    return Row("cancelled", "a cancelled job", 1, lost=lost, early=0, twice=0, dollars=costs.of_jobs("cancelled", 1), note=note), complaints


def of_http(id: str, found: Found, calls: Sequence[int] | None, target: str) -> Judged:
    """Judge a job that calls a URL. `calls`: when the receiver was called, UTC ms; None if only the answer is known."""
    row, complaints = of_part("http", "an http job", [Promise(id, "http", calls=calls)], found)
    job = found.get(id, {})
    status = (job.get("response") or {}).get("status")
    if job.get("status") == "succeeded" and status != 200:
        complaints.append(f"http: {id} succeeded with the status {status} instead of 200")
    if calls is not None and len(calls) != 1:
        complaints.append(f"http: the receiver was called {len(calls)} times instead of once")
    return replace(row, note=f"called {target}: {status}"), complaints


def of_peer(key: str, title: str, expected: int, delays: Mapping[int, Sequence[int]], dollars: float, note: str) -> Row:
    """Return the figures of a peer. `delays`: those of all messages for an instant, by its number."""
    first = [each[0] for each in delays.values()]
    return Row(
        key,
        title,
        expected,
        percentile(first, 50) if first else None,
        percentile(first, 99) if first else None,
        max(first, default=None),
        expected - len(delays),
        sum(delay < 0 for delay in first),
        sum(len(each) > 1 for each in delays.values()),
        dollars,
        note,
    )


def grouped(pairs: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """Return the delays by number, each list in the order of the pairs (number, delay).

    >>> grouped([(1, 30), (2, 5), (1, 40)])
    {1: [30, 40], 2: [5]}
    """
    delays: dict[int, list[int]] = {}
    for number, delay in pairs:
        delays.setdefault(number, []).append(delay)
    return delays


def promises(ids: Sequence[str]) -> list[Promise]:
    return [Promise(id, "job") for id in ids]


def _few(key: str, complaints: Sequence[str]) -> list[str]:
    """Return the first complaints of a part, and the number of those that follow."""
    more = len(complaints) - NAMED
    return [f"{key}: {text}" for text in complaints[:NAMED]] + ([f"{key}: {more} more of its jobs broke a promise"] if more > 0 else [])
