"""Drills: checks of the promises about tasks on a running stack. `make drill` runs them, the system tests a short form."""

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from punctual import Punctual
from punctual.fields import ScheduleFields
from punctual.records import Json, Overlap

from lab.judge import FINAL, Outcome, percentile
from local.receiver import Receiver
from local.samples import rfc3339

SETTLING = 15.0  # seconds to wait for the last runs to end
MINUTE = timedelta(minutes=1)
KEYED_UNITS = 3  # write units of a job of a batch with its idempotency key
RATE = 5  # seconds between two runs of the task that is edited


def regular(client: Punctual, receiver: Receiver, *, seconds: float, schedules: Sequence[Json]) -> Outcome:
    """Run a task for each schedule. Check that every nominal time has exactly one job, called exactly once and not early."""
    seen, name = Outcome(), f"/ok/regular-{time.time_ns()}"
    # With `skip`, a run every few seconds that a busy machine delays would cause the next run to be skipped.
    tasks = [
        client.tasks.create(
            f"drill {_text(form)}",
            "http",
            _call(receiver, f"{name}/{n}"),
            schedule=cast(ScheduleFields, form),
            overlap="skip" if "cron" in form else "allow",
        ).raw
        for n, form in enumerate(schedules)
    ]
    time.sleep(seconds)
    end = datetime.now(UTC)
    delays: list[int] = []
    for number, (task, form) in enumerate(zip(tasks, schedules, strict=True)):
        expected = list(itertools.takewhile(lambda at: at <= end, _nominals(task)))

        def read(task: Json = task) -> Iterator[Json]:
            return (job for job in _runs(client, task) if instant_of(job["nominal_at"]) <= end)  # later ones may be cancelled

        ended(client, read, count=len(expected))
        client.tasks.pause(task["id"], reason="the drill is over")
        jobs = list(read())
        found = Counter(instant_of(job["nominal_at"]) for job in jobs)
        seen.expect(found == Counter(expected), f"{_text(form)}: of {len(expected)} nominal times, {_odd(expected, found)}")
        bad = Counter(job["status"] for job in jobs if job["status"] != "succeeded")
        seen.expect(not bad, f"{_text(form)}: not all runs succeeded: {dict(bad)}")
        started = Counter(job["id"] for job in ended(client, lambda task=task: _runs(client, task)) if job["started_at"])  # type: ignore[misc]
        calls = Counter(call.headers.get("Idempotency-Key", "") for call in receiver.calls(f"{name}/{number}"))
        seen.expect(calls == started, f"{_text(form)}: called {calls.total()} times for {started.total()} jobs")
        delays += [job["start_delay_ms"] for job in jobs if job["start_delay_ms"] is not None]
        seen.figures[f"runs of {_text(form)}"] = len(jobs)
    seen.expect(bool(delays) and min(delays) >= 0, "a run started early" if delays else "nothing ran")
    return _with_delays(seen, delays)


def edits(client: Punctual, receiver: Receiver, *, seconds: float, every: float = 1.0) -> Outcome:
    """Edit a task that runs every few seconds, again and again. Check that no run of an old version starts after its edit returned."""
    seen, name, start = Outcome(), f"/ok/edit-{time.time_ns()}", datetime.now(UTC)
    schedule = {"rate": f"{RATE} seconds", "start": rfc3339(start)}

    def version(number: int) -> Json:
        return {"schedule": schedule, "type": "http", "payload": _call(receiver, f"{name}/{number}"), "overlap": "allow"}

    task = client.tasks.create(
        "drill edits", "http", _call(receiver, f"{name}/0"), schedule=cast(ScheduleFields, schedule), overlap="allow"
    ).raw
    returned: list[int] = []
    took: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        client.tasks.replace(task["id"], **{"name": "drill edits", **version(len(returned) + 1)})
        returned.append(time.time_ns() // 1_000_000)
        took.append(time.monotonic() - began)
        time.sleep(max(0.0, every - took[-1]))
    time.sleep(3 * RATE)
    over = datetime.now(UTC) - timedelta(seconds=1)  # runs that are due while the task is being paused may be cancelled
    client.tasks.pause(task["id"], reason="the drill is over")
    jobs = ended(client, lambda: _runs(client, task))
    stale = [
        f"version {n} called {call.at - at} ms after the edit that replaced it had returned"
        for n, at in enumerate(returned)
        for call in receiver.calls(f"{name}/{n}")
        if call.at > at
    ]
    seen.complaints += stale
    recorded = {instant_of(job["nominal_at"]) for job in jobs}
    expected = {at for at in _rate_from(instant_of(schedule["start"]), RATE, first=1) if at < over}
    missing = sorted(expected - recorded)
    seen.expect(not missing, f"{len(missing)} nominal times have no job: {[rfc3339(at) for at in missing[:5]]}")
    # Only the last version: a run of the version before, if claimed already, is cancelled at its instant, beside the new run.
    version_runs = [job for job in jobs if job["generation"] == len(returned) + 1]
    last = [job for job in version_runs if returned[-1] < instant_of(job["scheduled_at"]).timestamp() * 1000 < over.timestamp() * 1000]
    seen.expect(bool(last) and {job["status"] for job in last} == {"succeeded"}, "runs after the last edit did not all succeed")
    statuses = Counter(job["status"] for job in jobs)
    seen.figures |= {"edits": len(returned), "edit ms p50": round(percentile(took, 50) * 1000), "edit ms max": round(max(took) * 1000)}
    seen.figures |= {"old runs started after their edit": len(stale), **{f"runs {status}": count for status, count in statuses.items()}}
    return seen


def overlap(client: Punctual, *, schedule: Json, takes: float, seconds: float) -> Outcome:
    """Run a task for each overlap policy, with jobs longer than its interval. Check which runs start, are skipped and cancelled."""
    seen = Outcome()
    payload = {"message": "long work", "sleep_seconds": takes}
    policies: tuple[Overlap, ...] = ("skip", "queue_one", "allow", "cancel_running")
    form = cast(ScheduleFields, schedule)
    made = {policy: client.tasks.create(f"drill {policy}", "log", payload, schedule=form, overlap=policy).raw for policy in policies}
    time.sleep(seconds)
    for task in made.values():
        client.tasks.pause(task["id"], reason="the drill is over")
    runs = {
        policy: ended(client, lambda task=task: _runs(client, task), seconds=takes * 3 + SETTLING)  # type: ignore[misc]
        for policy, task in made.items()
    }
    for policy, found in runs.items():
        jobs = runs[policy] = [job for job in found if "made inactive" not in (job["reason"] or "")]  # waiting at the end of the drill
        seen.figures[policy] = " ".join(job["status"] for job in jobs)
    _judge_skip(seen, runs["skip"])
    _judge_queue(seen, runs["queue_one"])
    most = most_at_once(runs["allow"])
    due = _due_at_once(runs["allow"])
    seen.expect(2 <= most <= due, f"allow: {most} runs at once of {due} that were due, {seen.figures['allow']}")
    seen.expect(_statuses(runs["allow"]) == {"succeeded"}, f"allow: {seen.figures['allow']}")
    _judge_cancel(seen, [job for job in runs["cancel_running"] if job["started_at"]])
    seen.figures["allow, most at once"] = most
    return seen


def _judge_skip(seen: Outcome, jobs: Sequence[Json]) -> None:
    ran, skipped = ([job for job in jobs if job["status"] == status] for status in ("succeeded", "skipped"))
    seen.expect(bool(ran) and bool(skipped) and len(ran) + len(skipped) == len(jobs), f"skip: {seen.figures['skip']}")
    seen.expect(most_at_once(ran) == 1, "skip: two runs at once")
    for job in skipped:
        due = instant_of(job["scheduled_at"])
        overlaps = any(instant_of(each["scheduled_at"]) < due < instant_of(each["completed_at"]) for each in ran)
        seen.expect(overlaps, f"skip: no run was in progress at {job['scheduled_at']}, and the run was skipped")
    seen.expect(all("overlap" in job["reason"] for job in jobs if job["status"] == "skipped"), "skip: a skipped run has no reason")


def _judge_cancel(seen: Outcome, started: Sequence[Json]) -> None:
    """Each run but the last was cancelled, or had ended before an executor took the next one, which a busy machine may do late."""
    seen.expect(any(job["status"] == "cancelled" for job in started[:-1]), f"cancel_running: {seen.figures['cancel_running']}")
    for before, after in itertools.pairwise(started):
        was_over = before["status"] == "succeeded" and instant_of(before["completed_at"]) <= instant_of(after["picked_at"])
        seen.expect(before["status"] == "cancelled" or was_over, f"cancel_running: {seen.figures['cancel_running']}")
    seen.expect(most_at_once(started) == 1, "cancel_running: two runs at once")


def _judge_queue(seen: Outcome, jobs: Sequence[Json]) -> None:
    seen.expect(most_at_once(jobs) == 1, "queue_one: two runs at once")
    seen.expect(_statuses(jobs) <= {"succeeded", "skipped"}, f"queue_one: {seen.figures['queue_one']}")
    ran = [job for job in jobs if job["status"] == "succeeded"]
    waits = [(instant_of(job["scheduled_at"]), instant_of(job["started_at"])) for job in ran]
    longest = max((sum(a < at < b for a, b in waits) for at, _ in waits), default=0)
    seen.expect(longest <= 1, f"queue_one: {longest} runs waited at once")
    # a run that waited starts when the one before it has ended
    gaps = [
        (instant_of(after["started_at"]) - instant_of(before["completed_at"])).total_seconds()
        for before, after in itertools.pairwise(ran)
        if instant_of(after["scheduled_at"]) < instant_of(before["completed_at"])
    ]
    seen.figures["queue_one, woken after s"] = round(max(gaps, default=0.0), 3)
    seen.expect(bool(gaps) and max(gaps) < 5, f"queue_one: a waiting run started {max(gaps, default=0):.1f} s after the one before it")


@dataclass
class Missed:
    """Tasks and a one-time job that fall due in an outage; `judge_missed` checks them after it."""

    tasks: dict[str, Json]
    one_time: Json
    count: int


def plan_missed(client: Punctual, *, start: datetime, interval: timedelta, count: int, threshold: float) -> Missed:
    """Create a task of each misfire policy with `count` runs from `start` on, and a job for `start`."""
    form: ScheduleFields = {
        "rate": {"every": round(interval.total_seconds()), "unit": "seconds"},
        "start": rfc3339(start),
        "end": rfc3339(start + interval * count),
    }
    options: Json = {"overlap": "skip", "misfire_threshold_seconds": threshold}
    tasks = {
        policy: client.tasks.create(f"drill {policy}", "log", {"message": policy}, schedule=form, misfire=policy, **options).raw
        for policy in ("run_latest", "run_all", "skip")
    }
    return Missed(tasks, client.jobs.create("log", {"message": "once"}, execute_at=rfc3339(start)).raw, count)


def judge_missed(client: Punctual, missed: Missed, *, seconds: float) -> Outcome:
    """Check that the missed runs followed their misfire policies, and that the one-time job ran late."""
    seen = Outcome()
    runs = {
        policy: ended(client, lambda task=task: _runs(client, task), seconds=seconds, count=missed.count)  # type: ignore[misc]
        for policy, task in missed.tasks.items()
    }
    for policy, jobs in runs.items():
        counts = Counter(job["status"] for job in jobs)
        seen.figures[policy] = ", ".join(f"{number} {status}" for status, number in counts.items())
    count = missed.count
    seen.expect(seen.figures["run_latest"] in (f"{count - 1} skipped, 1 succeeded",), f"run_latest: {seen.figures['run_latest']}")
    seen.expect(seen.figures["skip"] == f"{count} skipped", f"skip: {seen.figures['skip']}")
    seen.expect(seen.figures["run_all"] == f"{count} succeeded", f"run_all: {seen.figures['run_all']}")
    starts = [instant_of(job["started_at"]) for job in runs["run_all"] if job["started_at"]]
    seen.expect(starts == sorted(starts), "run_all: not in order")
    seen.expect(most_at_once(runs["run_all"]) == 1, "run_all: two runs at once")
    skipped = [job for policy in ("run_latest", "skip") for job in runs[policy] if job["status"] == "skipped"]
    seen.expect(all("misfire" in (job["reason"] or "") for job in skipped), "a skipped run has no reason")
    (once,) = ended(client, lambda: iter([client.jobs.get(missed.one_time["id"]).raw]), seconds=seconds)
    seen.expect(once["status"] == "succeeded" and once["late"], f"one-time: {once['status']}, late {once['late']}")
    seen.figures["one-time"] = f"{once['status']}, {once['start_delay_ms'] / 1000:.0f} s late"
    return seen


def batch(client: Punctual, written: Callable[[str], int], *, count: int = 1_000) -> Outcome:
    """Post many jobs with idempotency keys in one call, and the same call again. Check that the second call stores nothing.

    `written` returns the write units of all stored items whose key or message begins with its argument.
    """
    seen, run = Outcome(), time.time_ns()
    at = rfc3339(datetime.now(UTC) + timedelta(days=1))
    jobs = [{"message": f"drill-{run}-{n}", "execute_at": at, "idempotency_key": f"drill-{run}-{n}"} for n in range(count)]
    began = time.monotonic()
    first = client.jobs.create_many(jobs)
    took = time.monotonic() - began
    cost = written(f"drill-{run}-")
    second = client.jobs.create_many(jobs)
    same = [job.id for job in first.jobs] == [job.id for job in second.jobs]
    stored = sum(1 for job in client.jobs.list(upcoming=True, from_=at) if rfc3339(job.scheduled_at) == at)
    seen.expect(first.accepted == count, f"accepted {first.accepted} of {count}")
    seen.expect(same and stored == count, f"the second call created other jobs: {stored} are stored")
    seen.figures |= {"accepted": first.accepted, "seconds": round(took, 2), "write units": cost}
    seen.expect(cost == count * KEYED_UNITS, f"{cost} write units for {count} jobs with keys")
    seen.expect(written(f"drill-{run}-") == cost, "the second call stored more")
    seen.figures |= {"stored after the second call": stored}
    return seen


def redrive(client: Punctual, receiver: Receiver, *, count: int = 500, rate: int = 50) -> Outcome:
    """Redrive many dead jobs by a filter, at a rate. Check the rate, the progress, and that each runs once more. Then abort a redrive."""
    seen, name = Outcome(), f"/status/404/redrive-{time.time_ns()}"
    calls = [{"type": "http", "payload": _call(receiver, f"{name}-{n}"), "max_attempts": 1, "tags": ["drill"]} for n in range(count)]
    posted = {job.id for job in client.jobs.create_many(calls).all_jobs()}
    began = rfc3339(datetime.now(UTC) - timedelta(minutes=1))

    def dead(redrives: int) -> list[Json]:
        jobs = [job.raw for job in client.jobs.list(status="failed", from_=began) if job.id in posted]
        return [job for job in jobs if job["redrives"] == redrives]

    _until(lambda: len(dead(0)) == count, 120)
    fingerprint = dead(0)[0]["fingerprint"]
    request = {"fingerprint": fingerprint, "rate": rate, "from": began}
    made, counts, start = client.request("POST", "/dead-letters/redrive", request), list[int](), time.monotonic()
    while (found := client.request("GET", f"/dead-letters/redrives/{made['id']}"))[
        "status"
    ] == "running" and time.monotonic() - start < 300:
        counts.append(found["redriven"])
        time.sleep(0.5)
    took = time.monotonic() - start
    seen.expect(found["status"] == "done" and found["redriven"] == count, f"{found['status']}: {found['redriven']} of {count} redriven")
    between = sorted({number for number in counts if 0 < number < count})
    seen.expect(bool(between) and counts == sorted(counts), f"the redrive showed no progress: {counts}")
    _until(lambda: len(dead(1)) == count, 120)
    called = Counter(path for path, number in receiver.counts().items() if path.startswith(name) for _ in range(number))
    seen.expect(set(called.values()) == {2} and len(called) == count, f"not every job was called twice: {Counter(called.values())}")
    seen.expect(count / rate * 0.8 <= took <= count / rate * 1.5 + 5, f"{count} at {rate}/s took {took:.1f} s")
    seen.figures |= {"redriven": found["redriven"], "at a rate of": rate, "seconds": round(took, 1), "steps of progress seen": len(between)}
    made = client.request("POST", "/dead-letters/redrive", request | {"rate": 10})
    _until(lambda: client.request("GET", f"/dead-letters/redrives/{made['id']}")["redriven"] > 0, 60)
    client.request("POST", f"/dead-letters/redrives/{made['id']}/abort")
    time.sleep(3)
    after = client.request("GET", f"/dead-letters/redrives/{made['id']}")
    time.sleep(3)
    later = client.request("GET", f"/dead-letters/redrives/{made['id']}")
    seen.expect(after["status"] == later["status"] == "aborted", f"the aborted redrive is {later['status']}")
    seen.expect(
        0 < after["redriven"] == later["redriven"] < count, f"the aborted redrive continued from {after['redriven']} to {later['redriven']}"
    )
    seen.figures |= {"redriven until the abort": later["redriven"]}
    return seen


def _until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(1)


def _runs(client: Punctual, task: Json) -> Iterator[Json]:
    """Yield the runs of a task that were due, newest first."""
    return (job.raw for job in client.tasks.jobs(task["id"]))


def ended(client: Punctual, read: Callable[[], Iterator[Json]], *, seconds: float = SETTLING, count: int = 0) -> list[Json]:
    """Return the jobs that `read` finds, by scheduled time, once at least `count` exist and all have ended, or after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        jobs = sorted(read(), key=lambda job: (job["scheduled_at"], job["id"]))
        if (len(jobs) >= count and all(job["status"] in FINAL for job in jobs)) or time.monotonic() > end:
            return jobs
        time.sleep(0.5)


def _call(receiver: Receiver, path: str) -> Json:
    return {"method": "POST", "url": receiver.url(path)}


def _nominals(task: Mapping[str, Any]) -> Iterator[datetime]:
    """Yield the nominal times of a task, computed independently of the scheduler: every minute, or its rate from its start on."""
    form = task["schedule"]
    if "cron" in form:
        assert form["cron"] in ("* * * * *", "*/1 * * * *")
        first = instant_of(task["created_at"]).replace(second=0, microsecond=0) + MINUTE
        yield from (first + MINUTE * n for n in range(100_000))
        return
    every = form["rate"]["every"] if isinstance(form["rate"], dict) else float(form["rate"].strip("rate()").split()[0])
    yield from _rate_from(
        instant_of(form["start"]), float(every), first=0 if instant_of(form["start"]) > instant_of(task["created_at"]) else 1
    )


def _rate_from(start: datetime, every: float, first: int = 0) -> Iterator[datetime]:
    """Yield the nominal times of one day."""
    yield from (start + timedelta(seconds=every * n) for n in range(first, math.ceil(86_400 / every)))


def _odd(expected: Sequence[datetime], found: Counter[datetime]) -> str:
    missing = [rfc3339(at) for at in expected if at not in found]
    extra = [rfc3339(at) for at, number in found.items() if number > 1 or at not in set(expected)]
    return f"{len(missing)} have no job {missing[:3]}, {len(extra)} jobs are duplicates or unexpected {extra[:3]}"


def most_at_once(jobs: Sequence[Json]) -> int:
    """Return the largest number of jobs running when one of them started, including that one; 0 if none has started."""
    spans = [(instant_of(job["started_at"]), _end(job)) for job in jobs if job["started_at"]]
    others = ([span for m, span in enumerate(spans) if m != n] for n in range(len(spans)))
    return max((1 + sum(start <= at < end for start, end in rest) for (at, _), rest in zip(spans, others, strict=True)), default=0)


def _due_at_once(jobs: Sequence[Json]) -> int:
    """The most runs that are due and not over at once, with each run as long as the longest took from its instant."""
    dues = sorted(instant_of(job["scheduled_at"]) for job in jobs)
    longest = max(_end(job) - instant_of(job["scheduled_at"]) for job in jobs)
    return max(sum(due <= each < due + longest for each in dues) for due in dues)


def _end(job: Json) -> datetime:
    return next(instant_of(job[name]) for name in ("completed_at", "failed_at", "killed_at", "cancelled_at") if job[name])


def _statuses(jobs: Sequence[Json]) -> set[str]:
    return {job["status"] for job in jobs}


def _with_delays(seen: Outcome, delays: Sequence[int]) -> Outcome:
    if delays:
        seen.figures |= {"start delay ms p50": percentile(delays, 50), "p99": percentile(delays, 99), "max": max(delays)}
    return seen


def instant_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _text(form: Mapping[str, Any]) -> str:
    return str(form.get("cron") or form["rate"])
