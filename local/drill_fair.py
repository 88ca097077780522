"""The drills of fair share: three users who want more than few executors do, and a flood for at once beside another user's jobs."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from local.client import ApiError, Client, Json
from local.drills import Outcome, ended, share
from local.failure import Trouble
from local.samples import rfc3339

WEIGHTS = {"anton": 1.0, "berta": 1.0, "carla": 3.0}
FLOOD = {"anton": 5_000, "berta": 100, "carla": 100}  # how long do the few wait that stand beside a flood?
LONG = {"anton": 2_000, "berta": 300, "carla": 900}  # enough to see shares: Berta and Carla wait all the time, and end together
EXECUTORS, BATCH = 10, 10  # jobs of a second: about a hundred a second
IN_THE_LANE = 2 * EXECUTORS * BATCH  # in work, and about a second's besides: in any order
AHEAD = timedelta(minutes=6)  # a job so far ahead has the slot of its own minute
CALL = 1_000  # jobs of one call
BETWEEN = timedelta(minutes=3)  # the flood is done long before
SLACK_S = 3  # of the bound on waits: what the lane has in hand, and the first looks at its rate


def fair(clients: Mapping[str, Client]) -> Outcome:
    """Many jobs of a second for one instant, of three users: who has few waits for few, and while all wait starts follow the weights."""
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


def _delays(seen: Outcome, name: str, client: Client, at: datetime, count: int) -> list[int]:
    window = {"from": rfc3339(at), "to": rfc3339(at + timedelta(milliseconds=1)), "limit": 100}
    jobs = ended(client, lambda: _patiently(lambda: list(client.jobs(**window))), seconds=90)
    statuses = Counter(job["status"] for job in jobs)
    seen.expect(statuses == {"succeeded": count}, f"{name} has {dict(statuses)}, {count} were posted")
    return [job["start_delay_ms"] for job in jobs]


def _judge(seen: Outcome, title: str, starts: Sequence[tuple[int, str]], posted: Mapping[str, int]) -> None:
    """How long each waited, beside the order of arrival: Anton's came first."""
    rate = len(starts) * 1000 / (starts[-1][0] + 1000)
    seen.figures[f"{title}: starts a second"] = round(rate, 1)
    before = 0
    for name in posted:
        longest = max(delay for delay, who in starts if who == name) / 1000
        before += posted[name]
        bound = (posted[name] * sum(WEIGHTS.values()) / WEIGHTS[name] + len(WEIGHTS) - 1) / rate + SLACK_S  # as fairness.py promises
        told = f"{longest:.1f}" + (f" (at most {bound:.1f})" if name != "anton" else "")
        seen.figures[f"{title}: longest wait of {name}, s"] = f"{told}, by arrival {before / rate:.1f}"
        seen.expect(name == "anton" or longest <= bound, f"{title}: {name} waited {longest:.1f} s, computed were {bound:.1f}")


def _judge_shares(seen: Outcome, starts: Sequence[tuple[int, str]], posted: Mapping[str, int]) -> None:
    """The starts of each until one has no more left than its share of what is in the lane."""
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


def flood(one: Client, other: Client, *, count: int = 5_000, seconds: int = 30) -> Outcome:
    """A user posts thousands of jobs for at once; another user's jobs, scheduled ones and such for at once, hardly notice."""
    _warm(one)
    seen, since = Outcome(), datetime.now(UTC)
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=5)
    for second in range(seconds):
        other.post_job("log", {"message": "scheduled"}, execute_at=rfc3339(start + timedelta(seconds=second)))
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        posting = pool.submit(_post, one, count, payload={"message": "flood"})
        for second in range(seconds):
            time.sleep(max(0.0, began + second - time.monotonic()))
            other.post_job("log", {"message": "at once"})
        seen.figures["flood posted in s"] = round(posting.result(), 1)
    window = {"from": rfc3339(since), "limit": 100}
    theirs = ended(other, lambda: _patiently(lambda: list(other.jobs(**window))), seconds=120, count=2 * seconds)
    flooded = ended(one, lambda: _patiently(lambda: list(one.jobs(**window))), seconds=180, count=count)
    seen.expect(_succeeded(flooded) == count, f"of the flood {_succeeded(flooded)} of {len(flooded)} jobs succeeded, {count} were posted")
    seen.expect(_succeeded(theirs) == 2 * seconds, f"of the other user {_succeeded(theirs)} of {2 * seconds} jobs succeeded")
    seen.figures["flood, last start after s"] = round(max(job["start_delay_ms"] or 0 for job in flooded) / 1000, 1)
    for message in ("scheduled", "at once"):
        delays = [job["start_delay_ms"] for job in theirs if job["payload"]["message"] == message]
        seen.figures |= {f"{message}: delay ms p50": share(delays, 50), f"{message}: max": max(delays)}
        seen.expect(max(delays) <= 2_000, f"a job of the other user ({message}) started {max(delays)} ms late")
    return seen


def _warm(client: Client, count: int = 300, **work: int) -> None:
    """As many executors as a burst brings up, and the processes in which they do such work.

    Their first starts, all at once on one machine, are not what is asked about.
    """
    at = (datetime.now(UTC) + timedelta(seconds=20)).replace(microsecond=0)
    _post(client, count, execute_at=rfc3339(at), payload={"message": "warm-up", **work})
    window = {"from": rfc3339(at), "to": rfc3339(at + timedelta(milliseconds=1)), "limit": 100}
    ended(client, lambda: _patiently(lambda: list(client.jobs(**window))), seconds=120, count=count)


def _patiently(look: Callable[[], list[Json]], tries: int = 10) -> Iterator[Json]:
    """What a look shows; while the machine is busy the local AWS refuses some."""
    for left in reversed(range(tries)):
        try:
            return iter(look())
        except ApiError as error:
            if error.status not in (0, 503) or not left:
                raise
            time.sleep(2)
    raise AssertionError


def _succeeded(jobs: Sequence[Json]) -> int:
    return sum(job["status"] == "succeeded" for job in jobs)


def _post(client: Client, count: int, *, payload: Json, execute_at: str | None = None) -> float:
    """The seconds it took."""
    began = time.monotonic()
    job = {"type": "log", "payload": payload} | ({"execute_at": execute_at} if execute_at else {})
    for first in range(0, count, CALL):
        done = client.post_jobs([job] * min(CALL, count - first))
        if done["refused"]:
            raise Trouble(f"{done['refused']} jobs were refused: {done['results'][:1]}")
    return time.monotonic() - began
