"""The drill of ordering keys: many ordering queues at once, with failures and duplicate messages, and their effect on other jobs."""

import itertools
import random
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from punctual import Punctual
from punctual.records import Json

from lab.judge import Outcome, percentile
from lab.scenarios import order_promises
from lab.scenarios.drills import ended, instant_of
from lab.scenarios.order_promises import SETTLING
from local.receiver import Receiver
from local.samples import rfc3339
from local.stack import Stack
from scheduler.model.job import JobKey, Lane, Message
from scheduler.storage import messages

FAILING = 10  # per cent of the jobs whose first call is answered 500
DOUBLED = 20  # per cent of the jobs whose message is sent again
CONTROL_MS = 100  # between two jobs without a key
FREE, BESIDE_STUCK = "alone", "beside held keys"
ROUNDS = (FREE, BESIDE_STUCK, BESIDE_STUCK, FREE)  # the p99 of one round varies by a half, and a stack gets slower with the jobs it stores
MOST_RATIO = 1.5  # p99 of the keys beside blocked keys, divided by their p99 alone, over both rounds
STUCK_KEYS: dict[str, tuple[int, Json]] = {  # an ordering queue whose first job always fails: the status it gets, and its options
    "paused": (404, {"on_failure": "pause"}),
    "blocked": (503, {"max_attempts": 5, "retry": {"base_seconds": 4, "cap_seconds": 4, "jitter": "none"}}),
}
FAIL_ONCE = "/fail-once"  # the receiver answers the first call of such a path 500
FAST = {"base_seconds": 0.2, "cap_seconds": 1, "jitter": "none"}
Double = Callable[[Sequence[Json]], None]


class _Round(NamedTuple):
    """The ordering queues of one instant, and the jobs that ran beside them."""

    lines: dict[str, list[str]]  # by ordering key: the paths in the order of its jobs
    jobs: list[Json]  # final jobs of the ordering queues, in the order in which they were posted
    doubled: int  # messages sent again
    others: list[int]  # start delays of jobs without a key, ms
    stuck: dict[str, tuple[str, list[Json]]]  # by name in HELD: key and jobs of a blocked ordering queue


def ordering(client: Punctual, receiver: Receiver, double: Double, *, keys: int = 50, each: int = 20, controls: int = 150) -> Outcome:
    """Post `each` jobs of each key for one instant. Check that they run strictly in order, one at a time.

    `ROUNDS`: the keys run alone, and beside a key that is paused and a key whose first job is retried many times. These two must not
    slow the others. `double` sends the messages of jobs again.
    """
    seen, run = Outcome(), f"{time.time_ns():x}"
    alone = _controls(client, f"alone-{run}", controls, datetime.now(UTC) + timedelta(seconds=20))()
    plain = _beside_plain(client, receiver, run, keys * each, controls)
    rounds: dict[str, list[_Round]] = {beside: [] for beside in ROUNDS}
    for number, beside in enumerate(ROUNDS):
        lines = _round(client, receiver, double, f"{run}-{number}", keys, each, controls, stuck=beside == BESIDE_STUCK)
        rounds[beside].append(lines)
        order_promises.in_order(seen, receiver, lines.lines, lines.jobs)
        if lines.stuck:
            order_promises.paused(seen, client, receiver, *lines.stuck["paused"])
            order_promises.blocked(seen, client, lines.stuck["blocked"][1], STUCK_KEYS["blocked"][1]["max_attempts"])
    free, beside_stuck = _together(rounds[FREE]), _together(rounds[BESIDE_STUCK])
    for beside, lines in {FREE: free, BESIDE_STUCK: beside_stuck}.items():
        seen.figures |= {
            f"{keys} lines {beside}: jobs": len(lines.jobs),
            f"{beside}: failed first": sum(path.startswith(FAIL_ONCE) for paths in lines.lines.values() for path in paths),
            f"{beside}: messages doubled": lines.doubled,
            f"{beside}: start delay ms p50, p99": _shares(_delays(lines)),
            f"{beside}: ms from the end of the one before, p50, p99": _shares(_gaps(lines)),
            f"{beside}: the same p99 in each round": [percentile(_gaps(one), 99) for one in rounds[beside]],
            f"{beside}: jobs without a key, start delay ms p50, p99": _shares(lines.others),
        }
    for what, delays in {"start delay": _delays, "from the end of the one before": _gaps}.items():
        ratio = percentile(delays(beside_stuck), 99) / max(1, percentile(delays(free), 99))
        seen.figures |= {f"{what}: ratio of the p99": round(ratio, 2)}
        seen.expect(ratio <= MOST_RATIO, f"blocked keys slow other keys: the p99 of {what} is {ratio:.1f} times the p99 without them")
    seen.figures |= {"jobs without a key, alone: start delay ms p50, p99": _shares(alone)}
    seen.figures |= {"beside as many without a key": _shares(plain)}
    return seen


def _round(client: Punctual, receiver: Receiver, double: Double, name: str, keys: int, each: int, controls: int, *, stuck: bool) -> _Round:
    """Run all ordering queues at one instant, with messages sent again, beside jobs without a key; if `stuck`, also the `STUCK_KEYS`."""
    chance = random.Random(keys)  # the same jobs fail, and the same messages are sent again, in every round
    instant = (datetime.now(UTC) + timedelta(seconds=25)).replace(microsecond=0)
    lines = {f"{name}-{number}": [_path(f"{name}/{number}/{place}", chance) for place in range(each)] for number in range(keys)}
    queues = {how: (f"{name}-{how}", _post_stuck(client, receiver, f"{name}-{how}", how, each, instant)) for how in STUCK_KEYS if stuck}
    made = _post(client, receiver, lines, instant, each)
    doubled = [job for job in made if chance.randrange(100) < DOUBLED]
    delays = _controls(client, f"beside-{name}", controls, instant + timedelta(seconds=1))
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))
    double(doubled[::2])
    time.sleep(1)
    double(doubled)
    _until_heard(receiver, itertools.chain.from_iterable(lines.values()))
    ended_jobs = {job["id"]: job for job in _ended(client, instant, instant, {job["id"] for job in made})}
    jobs = [ended_jobs[job["id"]] for job in made if job["id"] in ended_jobs]
    return _Round(lines, jobs, len(doubled) + len(doubled[::2]), delays(), queues)


def _together(rounds: Sequence[_Round]) -> _Round:
    return _Round(
        {key: paths for one in rounds for key, paths in one.lines.items()},
        [job for one in rounds for job in one.jobs],
        sum(one.doubled for one in rounds),
        [delay for one in rounds for delay in one.others],
        {},
    )


def _delays(lines: _Round) -> list[int]:
    return [job["start_delay_ms"] for job in lines.jobs if job["start_delay_ms"] is not None]


def _gaps(lines: _Round) -> list[int]:
    """Return for each job the milliseconds from the end of the job before it in its ordering queue to its start."""
    pairs = [pair for key in lines.lines for pair in itertools.pairwise(job for job in lines.jobs if job["tags"] == [key])]
    both = [
        (former["attempts"][-1]["ended_at"], job["attempts"][0]["started_at"])
        for former, job in pairs
        if former["attempts"] and job["attempts"]
    ]
    return [_ms(started) - _ms(end) for end, started in both]


def _shares(delays: Sequence[int]) -> tuple[float, float]:
    return percentile(delays, 50), percentile(delays, 99)


def _beside_plain(client: Punctual, receiver: Receiver, run: str, count: int, controls: int) -> list[int]:
    """Return the start delays of jobs beside as many jobs of one instant without keys: the delay that their number alone causes."""
    instant = (datetime.now(UTC) + timedelta(seconds=25)).replace(microsecond=0)
    paths = [f"/ok/plain-{run}/{n}" for n in range(count)]
    common = {"type": "http", "execute_at": rfc3339(instant)}
    client.jobs.create_many([{**common, "payload": {"method": "POST", "url": receiver.url(path)}} for path in paths])
    delays = _controls(client, f"beside-plain-{run}", controls, instant + timedelta(seconds=1))
    _until_heard(receiver, paths)
    return delays()


def doubler(stack: Stack, owner: str) -> Double:
    """Return a function that sends the first message of each job again, directly to the SQS queue of its lane."""
    sqs = stack.aws.client("sqs")
    (queue,) = [url for url in sqs.list_queues()["QueueUrls"] if "OneTime" in url and "Dead" not in url]

    def double(jobs: Sequence[Json]) -> None:
        now = time.time_ns() // 1_000_000
        for first in range(0, len(jobs), 10):
            texts = [
                messages.encode(Message(JobKey(owner, job["id"]), 1, Lane.ONE_TIME, _ms(job["scheduled_at"]), now))
                for job in jobs[first : first + 10]
            ]
            sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": str(n), "MessageBody": text} for n, text in enumerate(texts)])

    return double


def _controls(client: Punctual, name: str, count: int, start: datetime) -> Callable[[], list[int]]:
    """Post jobs without a key, one every `CONTROL_MS`. Returns a function that reads their start delays once they have ended."""
    times = [start + timedelta(milliseconds=CONTROL_MS * number) for number in range(count)]
    posted = client.jobs.create_many([{"message": f"{name} {number}", "execute_at": rfc3339(at)} for number, at in enumerate(times)])
    ids = {job.id for job in posted.jobs}

    def delays() -> list[int]:
        time.sleep(max(0.0, (times[-1] - datetime.now(UTC)).total_seconds() + 2))
        jobs = _ended(client, times[0], times[-1], ids)
        return [job["start_delay_ms"] for job in jobs if job["start_delay_ms"] is not None]

    return delays


def _until_heard(receiver: Receiver, paths: Iterable[str]) -> None:
    """Wait until each path was called as often as its job needs, at most for `SETTLING`.

    This calls the stack not at all: reading a thousand jobs twice a second would take a core from the measured stack.
    """
    expected, end = {path: 2 if path.startswith(FAIL_ONCE) else 1 for path in paths}, time.monotonic() + SETTLING
    while time.monotonic() < end:
        heard = receiver.counts()
        if all(heard[path] >= count for path, count in expected.items()):
            return
        time.sleep(0.5)


def _path(name: str, chance: random.Random) -> str:
    return f"{FAIL_ONCE if chance.randrange(100) < FAILING else '/ok'}/{name}"


def _post(client: Punctual, receiver: Receiver, lines: dict[str, list[str]], instant: datetime, each: int) -> list[Json]:
    """Post the jobs of all ordering queues: the first job of each queue, then the second ones, and so on. Returns them in that order."""
    mixed = [(key, paths[place]) for place in range(each) for key, paths in lines.items()]
    made: list[Json] = []
    for first in range(0, len(mixed), 1_000):
        bodies = [
            {
                "type": "http",
                "payload": {"method": "POST", "url": receiver.url(path)},
                "execute_at": rfc3339(instant),
                "ordering_key": key,
                "retry": FAST,
                "tags": [key],
            }
            for key, path in mixed[first : first + 1_000]
        ]
        made += [job.raw for job in client.jobs.create_many(bodies).all_jobs()]
    return made


def _ended(client: Punctual, first: datetime, last: datetime, ids: set[str]) -> list[Json]:
    """Return those of the `ids` jobs that are due from `first` to `last`, once all have ended, or after `SETTLING`."""
    window: Json = {"from_": rfc3339(first), "to": rfc3339(last + timedelta(milliseconds=1))}
    return ended(
        client,
        lambda: (job.raw for job in client.jobs.list(**window) if job.id in ids),
        seconds=SETTLING,
        count=len(ids),
    )


def _post_stuck(client: Punctual, receiver: Receiver, key: str, how: str, count: int, instant: datetime) -> list[Json]:
    """Post an ordering queue of `count` jobs whose first job blocks it as specified by `STUCK_KEYS`."""
    status, options = STUCK_KEYS[how]
    paths = [f"/status/{status}/{key}", *(f"/ok/{key}/{number}" for number in range(1, count))]
    common = {"type": "http", "execute_at": rfc3339(instant), "ordering_key": key, **options}
    bodies = [{**common, "payload": {"method": "POST", "url": receiver.url(path)}} for path in paths]
    return [job.raw for job in client.jobs.create_many(bodies).all_jobs()]


def _ms(text: str) -> int:
    return round(instant_of(text).timestamp() * 1000)
