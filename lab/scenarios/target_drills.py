"""Drills of targets: limits that are kept and slow no other target, a target whose URL changes, and every way to fail."""

import itertools
import math
import socket
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from punctual import Punctual
from punctual.fields import RetryFields
from punctual.records import Json

from lab.judge import FINAL, Outcome, milliseconds, percentile
from local.receiver import Receiver
from local.samples import rfc3339

RATE, AT_ONCE, TAKES_MS = 20, 5, 150
LIMITED, OTHERS = 400, 100
AHEAD = timedelta(seconds=15)
NEAR = 0.1  # how far a measured rate may be from the limit, as a fraction
PATIENCE = 120.0


def limits(client: Punctual, receiver: Receiver) -> Outcome:
    """Run many jobs of a limited target beside jobs of another target. Check the limits, and that they do not slow the other target.
    Then change the target's URL while a task uses it."""
    seen, run = Outcome(), time.time_ns()
    free, limited = f"drill-free-{run}", f"drill-limited-{run}"
    client.targets.create(free, "http", defaults=_call(receiver, f"/slow/{TAKES_MS / 1_000:g}/free-{run}"))
    client.targets.create(
        limited, "http", defaults=_call(receiver, f"/slow/{TAKES_MS / 1_000:g}/limited-{run}"), rate=RATE, concurrency=AT_ONCE
    )
    beside_free = _beside(client, receiver, free, f"/ok/beside-free-{run}")
    due = datetime.now(UTC)
    beside_limited = _beside(client, receiver, limited, f"/ok/beside-limited-{run}")
    calls = _calls(client, receiver, f"/slow/{TAKES_MS / 1_000:g}/limited-{run}", LIMITED)
    seen.expect(len(calls) == LIMITED, f"{len(calls)} calls instead of {LIMITED}")
    if len(calls) > 1:
        rate = (len(calls) - 1) * 1_000 / (calls[-1] - calls[0])
        # At first, executors claim all jobs and requeue most of them, slowly on a busy machine. The rate after that is a figure too.
        later = calls[len(calls) // 4 :]
        steady = (len(later) - 1) * 1_000 / (later[-1] - later[0])
        most = max(sum(at <= other < at + TAKES_MS for other in calls) for at in calls)
        by_ten = [sum(at // 10_000 == n for at in (call - calls[0] for call in calls)) for n in range((calls[-1] - calls[0]) // 10_000 + 1)]
        seen.figures["calls by ten seconds"] = ", ".join(map(str, by_ten))
        fastest = max(sum(at <= other < at + 1_000 for other in calls) for at in calls)
        seen.figures |= {"calls a second, all": round(rate, 2), "once the line stands": round(steady, 2)}
        seen.figures |= {"most calls in a second": fastest, "most at once": most}
        seen.expect(RATE * (1 - NEAR) <= rate <= RATE * (1 + NEAR), f"{rate:.1f} calls a second instead of {RATE}")
        seen.expect(most <= AT_ONCE, f"{most} calls at once instead of {AT_ONCE}")
    requeues = [job.attempts[0].number - 1 for job in client.jobs.list(from_=due) if job.target and job.attempts]
    seen.figures["times given back, mean"] = round(sum(requeues) / max(len(requeues), 1), 2)
    ratio = percentile(beside_limited, 99) / max(percentile(beside_free, 99), 1)
    seen.figures |= {"others' p99 ms beside a free target": percentile(beside_free, 99)}
    seen.figures |= {"beside the limited one": percentile(beside_limited, 99), "ratio": round(ratio, 2)}
    seen.expect(len(beside_limited) == OTHERS, f"the other target was called {len(beside_limited)} times instead of {OTHERS}")
    seen.expect(ratio <= 1.5, f"the limited target slows others: their p99 is {ratio:.1f} times that beside an unlimited target")
    _repoint(client, receiver, seen, limited, run)
    for name in (free, limited):
        client.targets.delete(name)
    return seen


def _beside(client: Punctual, receiver: Receiver, target: str, path: str) -> list[int]:
    """Post jobs of `target` and of another target for the same instant; returns how late the other target was called, in ms."""
    at = (datetime.now(UTC) + AHEAD).replace(microsecond=0)
    others: list[Json] = [{"type": "http", "payload": _call(receiver, path), "execute_at": rfc3339(at)} for _ in range(OTHERS)]
    jobs: list[Json] = [{"target": target, "execute_at": rfc3339(at)} for _ in range(LIMITED)]
    client.jobs.create_many(jobs + others)
    time.sleep(AHEAD.total_seconds())
    return [call - milliseconds(rfc3339(at)) for call in _calls(client, receiver, path, OTHERS)]


def _calls(client: Punctual, receiver: Receiver, path: str, count: int) -> list[int]:
    """Return the times at which the path was called, once there are `count`, at the latest after `PATIENCE`."""
    end = time.monotonic() + PATIENCE
    while len(calls := receiver.calls(path)) < count and time.monotonic() < end:
        time.sleep(0.5)
    return sorted(call.at for call in calls)


def _repoint(client: Punctual, receiver: Receiver, seen: Outcome, target: str, run: int) -> None:
    """Change the target's URL while a task of the target runs every few seconds. Check that later runs call the new URL."""
    client.targets.replace(target, "http", defaults=_call(receiver, f"/ok/before-{run}"))
    form = {"name": "drill re-pointed", "schedule": {"rate": "2 seconds"}, "target": target}
    task: Json = client.request("POST", "/tasks", form)
    time.sleep(12)
    client.targets.replace(target, "http", defaults=_call(receiver, f"/ok/after-{run}"))
    moved = time.time_ns() // 1_000_000 + 1_500  # executors cache a target for a second
    time.sleep(10)
    unchanged: Json = client.request("GET", f"/tasks/{task['id']}")
    client.tasks.pause(task["id"], reason="the drill is over")
    before, after = (receiver.calls(f"/ok/{when}-{run}") for when in ("before", "after"))
    seen.figures |= {"runs before and after it was re-pointed": f"{len(before)}, {len(after)}"}
    seen.expect(bool(before) and len(after) >= 3, "the task did not call both URLs")
    seen.expect(all(call.at < moved for call in before), "a run called the old URL after the change of the target")
    seen.expect(unchanged["generation"] == task["generation"], "the change of the target changed the task")


def failures(client: Punctual, receiver: Receiver) -> Outcome:
    """Call targets that fail in every way. Check the kinds of failure, the attempts, and the waits between them."""
    seen, run = Outcome(), time.time_ns()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        posted = {
            "500, 500, 200": _post(client, receiver.url(f"/fail-twice/{run}"), max_attempts=3, retry={"jitter": "equal"}),
            "429, 200": _post(client, receiver.url(f"/throttled/7/{run}"), max_attempts=1),
            "404": _post(client, receiver.url(f"/status/404/{run}"), max_attempts=3),
            "refused": _post(client, nobody, max_attempts=1),
            "no answer in time": _post(client, receiver.url(f"/slow/4/{run}"), max_attempts=1, timeout=1),
            "malformed": _post(client, receiver.url(f"/broken/{run}"), max_attempts=1),
            "10 MB": _post(client, receiver.url(f"/large/10000000/{run}"), max_attempts=1),
        }
        jobs = {name: _ended(client, job) for name, job in posted.items()}
    kinds = {name: [(each["failure"] or {}).get("kind") for each in job["attempts"]] for name, job in jobs.items()}
    expected = {
        "500, 500, 200": ("succeeded", ["retryable", "retryable", None]),
        "429, 200": ("succeeded", ["throttled", None]),
        "404": ("failed", ["permanent"]),
        "refused": ("failed", ["retryable"]),
        "no answer in time": ("failed", ["retryable"]),
        "malformed": ("failed", ["retryable"]),
        "10 MB": ("succeeded", [None]),
    }
    for name, job in jobs.items():
        found = (job["status"], kinds[name])
        seen.figures[name] = f"{job['status']}, attempts {', '.join(kind or 'succeeded' for kind in kinds[name])}"
        seen.expect(found == expected[name], f"{name}: {found} instead of {expected[name]}")
    _waits(seen, "500, 500, 200", jobs["500, 500, 200"]["attempts"], [(0.5, 1.0), (1.0, 2.0)])
    _waits(seen, "429, 200", jobs["429, 200"]["attempts"], [(7.0, 7.0)])
    after = _ended(client, _post(client, receiver.url(f"/ok/{run}"), max_attempts=1))
    seen.expect(after["status"] == "succeeded" and len(after["attempts"]) == 1, "an executor no longer works")
    return seen


def _waits(seen: Outcome, name: str, attempts: Sequence[Json], bounds: Sequence[tuple[float, float]]) -> None:
    """Check the waits from the end of each attempt to the start of the next. A wait may be 1.5 s longer than declared, never shorter."""
    waits = [(milliseconds(b["started_at"]) - milliseconds(a["ended_at"])) / 1_000 for a, b in itertools.pairwise(attempts)]
    seen.figures[f"{name}: waits in s"] = ", ".join(f"{wait:.2f}" for wait in waits)
    in_bounds = len(waits) == len(bounds) and all(low <= wait <= high + 1.5 for wait, (low, high) in zip(waits, bounds, strict=True))
    seen.expect(in_bounds, f"{name}: waits of {waits} s, declared {list(bounds)}")


def _post(client: Punctual, url: str, *, max_attempts: int, timeout: int = 30, retry: RetryFields | None = None) -> Json:
    payload = {"method": "POST", "url": url, "timeout_seconds": timeout}
    return client.jobs.create("http", payload, max_attempts=max_attempts, retry=retry or {}).raw


def _ended(client: Punctual, job: Json) -> Json:
    end = time.monotonic() + math.ceil(PATIENCE / 2)
    while (found := client.jobs.get(job["id"]).raw)["status"] not in FINAL and time.monotonic() < end:
        time.sleep(0.3)
    return found


def _call(receiver: Receiver, path: str) -> Json:
    return {"method": "POST", "url": receiver.url(path)}
