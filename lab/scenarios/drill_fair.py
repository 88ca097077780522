"""The drills of fair shares: three users who post more than a few executors can run, and a flood beside another user's jobs."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from punctual import NoAnswer, Punctual, Unavailable
from punctual.records import Json

from lab.judge import Outcome, percentile
from lab.scenarios.drills import ended
from local.failure import Trouble
from local.samples import rfc3339

WEIGHTS = {"anton": 1.0, "berta": 1.0, "carla": 3.0}
FLOOD = {"anton": 5_000, "berta": 100, "carla": 100}  # measures how long a few jobs wait beside a flood
LONG = {"anton": 2_000, "berta": 300, "carla": 900}  # measures shares: Berta's and Carla's jobs wait throughout and end together
EXECUTORS, BATCH = 10, 10  # a job takes a second, so they run about a hundred a second
IN_THE_LANE = 2 * EXECUTORS * BATCH  # running jobs, and about a second's worth of messages: they start in any order
AHEAD = timedelta(minutes=6)  # a job this far ahead is in the slot of its own minute
CALL = 1_000  # jobs of one call
BETWEEN = timedelta(minutes=3)  # the flood is worked off by then
SLACK_S = 3  # added to the bound on waits: the jobs already in the lane, and the first measurements of its rate


def fair(clients: Mapping[str, Punctual]) -> Outcome:
    """Post many one-second jobs of three users for one instant. Check that a user's jobs wait in proportion to the user's own number
    of jobs, and that starts follow the weights while all users have waiting jobs."""
    _warm(next(iter(clients.values())), sleep_seconds=1)
    seen, at = Outcome(), (datetime.now(UTC) + AHEAD).replace(microsecond=0)
    instants = {"flood": (at, FLOOD), "shares": (at + BETWEEN, LONG)}
    for due, posted in instants.values():
        for name, client in clients.items():
            _post(client, posted[name], execute_at=rfc3339(due), payload={"message": name, "sleep_seconds": 1})
    for title, (due, posted) in instants.items():
        time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()) + sum(posted.values()) / (EXECUTORS * BATCH))
        starts = sorted((delay, name) for name, client in clients.items() for delay in _delays(seen, name, client, due, posted[name]))
        _judge(seen, title, starts, posted)
    _judge_shares(seen, starts, posted)
    return seen


def _delays(seen: Outcome, name: str, client: Punctual, at: datetime, count: int) -> list[int]:
    window: Json = {"from_": rfc3339(at), "to": rfc3339(at + timedelta(milliseconds=1))}
    jobs = ended(client, lambda: _patiently(lambda: [job.raw for job in client.jobs.list(**window)]), seconds=90)
    statuses = Counter(job["status"] for job in jobs)
    seen.expect(statuses == {"succeeded": count}, f"{name} has {dict(statuses)}, {count} were posted")
    return [job["start_delay_ms"] for job in jobs]


def _judge(seen: Outcome, title: str, starts: Sequence[tuple[int, str]], posted: Mapping[str, int]) -> None:
    """Check the longest wait of each user. For comparison, report the wait in order of arrival: Anton's jobs came first."""
    rate = len(starts) * 1000 / (starts[-1][0] + 1000)
    seen.figures[f"{title}: starts a second"] = round(rate, 1)
    before = 0
    for name in posted:
        longest = max(delay for delay, who in starts if who == name) / 1000
        before += posted[name]
        bound = (posted[name] * sum(WEIGHTS.values()) / WEIGHTS[name] + len(WEIGHTS) - 1) / rate + SLACK_S  # as fairness.py promises
        wait = f"{longest:.1f}" + (f" (at most {bound:.1f})" if name != "anton" else "")
        seen.figures[f"{title}: longest wait of {name}, s"] = f"{wait}, by arrival {before / rate:.1f}"
        seen.expect(name == "anton" or longest <= bound, f"{title}: {name} waited {longest:.1f} s, more than the bound of {bound:.1f} s")


def _judge_shares(seen: Outcome, starts: Sequence[tuple[int, str]], posted: Mapping[str, int]) -> None:
    """Check each user's share of the starts, up to the first user who has no waiting job outside the lane left."""
    shares = Counter[str]()
    least = {name: posted[name] - IN_THE_LANE * weight / sum(WEIGHTS.values()) for name, weight in WEIGHTS.items()}
    for _, name in starts:
        shares[name] += 1
        if shares[name] >= least[name]:
            break
    seen.figures["starts while all wait"] = " : ".join(str(shares[name]) for name in WEIGHTS)
    for name, weight in WEIGHTS.items():
        had, due = shares[name] / shares.total(), weight / sum(WEIGHTS.values())
        seen.expect(abs(had / due - 1) <= 0.05, f"{name} had {had:.3f} of the starts instead of {due:.3f}")


def flood(one: Punctual, other: Punctual, *, count: int = 5_000, seconds: int = 30) -> Outcome:
    """Post thousands of jobs of one user for now. Check that another user's jobs, some scheduled and some for now, start within 2 s."""
    _warm(one)
    seen, since = Outcome(), datetime.now(UTC)
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=5)
    for second in range(seconds):
        other.jobs.create("log", {"message": "scheduled"}, execute_at=rfc3339(start + timedelta(seconds=second)))
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        posting = pool.submit(_post, one, count, payload={"message": "flood"})
        for second in range(seconds):
            time.sleep(max(0.0, began + second - time.monotonic()))
            other.jobs.create("log", {"message": "at once"})
        seen.figures["flood posted in s"] = round(posting.result(), 1)
    window: Json = {"from_": rfc3339(since)}
    theirs = ended(other, lambda: _patiently(lambda: [job.raw for job in other.jobs.list(**window)]), seconds=120, count=2 * seconds)
    flooded = ended(one, lambda: _patiently(lambda: [job.raw for job in one.jobs.list(**window)]), seconds=180, count=count)
    seen.expect(_succeeded(flooded) == count, f"{_succeeded(flooded)} of {len(flooded)} jobs of the flood succeeded, {count} were posted")
    seen.expect(_succeeded(theirs) == 2 * seconds, f"{_succeeded(theirs)} of the other user's {2 * seconds} jobs succeeded")
    seen.figures["flood, last start after s"] = round(max(job["start_delay_ms"] or 0 for job in flooded) / 1000, 1)
    for message in ("scheduled", "at once"):
        delays = [job["start_delay_ms"] for job in theirs if job["payload"]["message"] == message]
        seen.figures |= {f"{message}: delay ms p50": percentile(delays, 50), f"{message}: max": max(delays)}
        seen.expect(max(delays) <= 2_000, f"a job of the other user ({message}) started {max(delays)} ms late")
    return seen


def _warm(client: Punctual, count: int = 300, **work: int) -> None:
    """Start as many executors as a burst does, and their child processes for such work.

    The drill does not measure these starts, which all share one machine.
    """
    at = (datetime.now(UTC) + timedelta(seconds=20)).replace(microsecond=0)
    _post(client, count, execute_at=rfc3339(at), payload={"message": "warm-up", **work})
    window: Json = {"from_": rfc3339(at), "to": rfc3339(at + timedelta(milliseconds=1))}
    ended(client, lambda: _patiently(lambda: [job.raw for job in client.jobs.list(**window)]), seconds=120, count=count)


def _patiently(read: Callable[[], list[Json]], tries: int = 10) -> Iterator[Json]:
    """Return the result of `read`. A busy local AWS refuses some calls; these are repeated up to `tries` times."""
    for left in reversed(range(tries)):
        try:
            return iter(read())
        except (NoAnswer, Unavailable):
            if not left:
                raise
            time.sleep(2)
    raise AssertionError


def _succeeded(jobs: Sequence[Json]) -> int:
    return sum(job["status"] == "succeeded" for job in jobs)


def _post(client: Punctual, count: int, *, payload: Json, execute_at: str | None = None) -> float:
    """Post `count` jobs; returns the seconds that it took."""
    began = time.monotonic()
    job = {"type": "log", "payload": payload} | ({"execute_at": execute_at} if execute_at else {})
    for first in range(0, count, CALL):
        done = client.jobs.create_many([job] * min(CALL, count - first))
        if done.refused:
            raise Trouble(f"{done.refused} jobs were refused: {done.errors[0].error}")
    return time.monotonic() - began
