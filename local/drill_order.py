"""The drill of ordering keys: many lines at once, with failures and doubled messages, and what that does to other jobs."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from local.client import Client, Json
from local.drills import Outcome, ended, instant_of, share
from local.receiver import Receiver
from local.samples import rfc3339
from local.stack import Stack
from scheduler import messages
from scheduler.model import JobKey, Lane, Message

FAILING = 10  # of a hundred jobs: so many are answered 500 first
DOUBLED = 20  # of a hundred: so many messages come again
CONTROL_MS = 100  # between two of the jobs without a key
MOST_RATIO = 1.5  # of the p99 of other keys beside held ones and alone; from run to run it varies by a quarter
SETTLING = 420.0  # a lost wake costs up to five minutes
HELD: dict[str, tuple[int, Json]] = {  # a line whose first job fails for good: what it is answered, and what it asks for
    "parked": (404, {"on_failure": "park"}),
    "blocked": (503, {"max_attempts": 5, "retry": {"base_seconds": 4, "cap_seconds": 4, "jitter": "none"}}),
}
FAST = {"base_seconds": 0.2, "cap_seconds": 1, "jitter": "none"}
Double = Callable[[Sequence[Json]], None]


class _Round(NamedTuple):
    """The lines of one instant, and what ran beside them."""

    lines: dict[str, list[str]]  # by ordering key: the paths in the order of its jobs
    jobs: list[Json]  # of the lines, in the order in which they were posted, as they ended
    doubled: int  # messages
    others: list[int]  # start delays of jobs without a key, ms
    held: dict[str, tuple[str, list[Json]]]  # by its name in HELD: key and jobs of a line that is held up


def ordering(client: Client, receiver: Receiver, double: Double, *, keys: int = 50, each: int = 20, controls: int = 150) -> Outcome:
    """`each` jobs of each key at one instant: strictly in order, one at a time. Twice: alone, and beside a key that is parked and
    one whose first job is tried over and over; these hold nobody else.

    `double` sends the messages of jobs once more.
    """
    seen, run = Outcome(), f"{time.time_ns():x}"
    alone = _controls(client, f"alone-{run}", controls, datetime.now(UTC) + timedelta(seconds=20))
    plain = _beside_plain(client, receiver, run, keys * each, controls)
    free = _round(client, receiver, double, f"{run}-free", keys, each, controls, held=False)
    held = _round(client, receiver, double, f"{run}-held", keys, each, controls, held=True)
    for beside, lines in {"alone": free, "beside held keys": held}.items():
        _judge(seen, receiver, lines, keys * each)
        took = max(instant_of(job["completed_at"]) - instant_of(job["scheduled_at"]) for job in lines.jobs if job["completed_at"])
        seen.figures |= {
            f"{keys} lines {beside}: jobs": len(lines.jobs),
            f"{beside}: failed first": sum(path.startswith("/fail") for paths in lines.lines.values() for path in paths),
            f"{beside}: messages doubled": lines.doubled,
            f"{beside}: start delay ms p50, p99": _shares(_delays(lines)),
            f"{beside}: ms from the end of the one before, p50, p99": _shares(_turns(lines)),
            f"{beside}: seconds until all were done": round(took.total_seconds(), 1),
        }
    _judge_parked(seen, client, receiver, *held.held["parked"])
    _judge_blocked(seen, client, held.held["blocked"][1])
    for what, delays in {"start delay": _delays, "from the end of the one before": _turns}.items():
        ratio = share(delays(held), 99) / max(1, share(delays(free), 99))
        seen.figures |= {f"{what}: ratio of the p99": round(ratio, 2)}
        seen.expect(ratio <= MOST_RATIO, f"held keys slow others: p99 of {what} is {ratio:.1f} times what it is without them")
    seen.figures |= {"jobs without a key, alone: start delay ms p50, p99": _shares(alone)}
    seen.figures |= {"beside as many without a key": _shares(plain), "beside the lines": _shares(free.others)}
    seen.figures |= {"beside lines and held keys": _shares(held.others)}
    return seen


def _round(client: Client, receiver: Receiver, double: Double, name: str, keys: int, each: int, controls: int, *, held: bool) -> _Round:
    """All lines at one instant, some of their messages twice, and jobs without a key; `held`: beside those of `HELD`."""
    chance = random.Random(keys)  # the same jobs fail and are doubled in every round
    instant = (datetime.now(UTC) + timedelta(seconds=25)).replace(microsecond=0)
    lines = {f"{name}-{number}": [_path(f"{name}/{number}/{place}", chance) for place in range(each)] for number in range(keys)}
    stuck = {how: (f"{name}-{how}", _held(client, receiver, f"{name}-{how}", how, each, instant)) for how in HELD if held}
    made = _post(client, receiver, lines, instant, each)
    doubled = [job for job in made if chance.randrange(100) < DOUBLED]
    delays: list[int] = []
    beside = threading.Thread(target=lambda: delays.extend(_controls(client, f"beside-{name}", controls, instant + timedelta(seconds=1))))
    beside.start()
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))
    double(doubled[::2])
    time.sleep(1)
    double(doubled)
    beside.join()
    ended_jobs = {job["id"]: job for job in _ended(client, instant, {job["id"] for job in made})}
    jobs = [ended_jobs[job["id"]] for job in made if job["id"] in ended_jobs]
    return _Round(lines, jobs, len(doubled) + len(doubled[::2]), delays, stuck)


def _delays(lines: _Round) -> list[int]:
    return [job["start_delay_ms"] for job in lines.jobs if job["start_delay_ms"] is not None]


def _turns(lines: _Round) -> list[int]:
    """How long after the end of the one before each job of a line started, ms."""
    pairs = [pair for key in lines.lines for pair in itertools.pairwise(job for job in lines.jobs if job["tags"] == [key])]
    both = [
        (former["attempts"][-1]["ended_at"], job["attempts"][0]["started_at"])
        for former, job in pairs
        if former["attempts"] and job["attempts"]
    ]
    return [_ms(started) - _ms(end) for end, started in both]


def _shares(delays: Sequence[int]) -> tuple[float, float]:
    return share(delays, 50), share(delays, 99)


def _beside_plain(client: Client, receiver: Receiver, run: str, count: int, controls: int) -> list[int]:
    """How late others start beside as many jobs of one instant that have no keys: what the machine makes of so many."""
    instant = (datetime.now(UTC) + timedelta(seconds=25)).replace(microsecond=0)
    jobs = [
        {"type": "http", "payload": {"method": "POST", "url": receiver.url(f"/ok/plain-{run}/{n}")}, "execute_at": rfc3339(instant)}
        for n in range(count)
    ]
    wanted = {result["job"]["id"] for result in client.post_jobs(jobs)["results"]}
    delays = _controls(client, f"beside-plain-{run}", controls, instant + timedelta(seconds=1))
    _ended(client, instant, wanted)
    return delays


def doubler(stack: Stack, owner: str) -> Double:
    """Sends the first message of each job again, past the scheduler, into the queue of its lane."""
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


def _controls(client: Client, name: str, count: int, start: datetime) -> list[int]:
    """Start delays of jobs without a key, one every `CONTROL_MS`."""
    times = [start + timedelta(milliseconds=CONTROL_MS * number) for number in range(count)]
    posted = client.post_jobs([{"message": f"{name} {number}", "execute_at": rfc3339(at)} for number, at in enumerate(times)])
    wanted = {result["job"]["id"] for result in posted["results"]}
    time.sleep(max(0.0, (times[-1] - datetime.now(UTC)).total_seconds() + 2))
    window = {"from": rfc3339(times[0]), "to": rfc3339(times[-1] + timedelta(milliseconds=1)), "limit": 100}
    jobs = ended(client, lambda: (job for job in client.jobs(**window) if job["id"] in wanted), seconds=120, count=count)
    return [job["start_delay_ms"] for job in jobs if job["start_delay_ms"] is not None]


def _path(name: str, chance: random.Random) -> str:
    return f"/{'fail-once' if chance.randrange(100) < FAILING else 'ok'}/{name}"


def _post(client: Client, receiver: Receiver, lines: dict[str, list[str]], instant: datetime, each: int) -> list[Json]:
    """The jobs of all lines, all places of a line after each other and the lines mixed; in the order of the calls."""
    mixed = [(key, paths[place]) for place in range(each) for key, paths in lines.items()]
    made: list[Json] = []
    for first in range(0, len(mixed), 1_000):
        asked = [
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
        made += [result["job"] for result in client.post_jobs(asked)["results"]]
    return made


def _ended(client: Client, instant: datetime, wanted: set[str]) -> list[Json]:
    window = {"from": rfc3339(instant), "to": rfc3339(instant + timedelta(milliseconds=1)), "limit": 100}
    return ended(client, lambda: (job for job in client.jobs(**window) if job["id"] in wanted), seconds=SETTLING, count=len(wanted))


def _judge(seen: Outcome, receiver: Receiver, round_: _Round, posted: int) -> None:
    bad = [job["id"] for job in round_.jobs if job["status"] != "succeeded"]
    seen.expect(len(round_.jobs) == posted and not bad, f"{len(bad)} of {len(round_.jobs)} jobs did not succeed, {posted} were posted")
    calls = receiver.calls()
    for key, paths in round_.lines.items():
        heard = [call.path for call in calls if call.path in set(paths)]
        first = list(dict.fromkeys(heard))
        seen.expect(first == paths, f"{key}: called in the order {first}")
        mixed = [path for number, path in enumerate(heard) if path in heard[:number] and heard[number - 1] != path]
        seen.expect(not mixed, f"{key}: another one was called between the attempts of {mixed}")
        for one, following in itertools.pairwise(job for job in round_.jobs if job["tags"] == [key]):
            seen.expect(_after(following, one), f"{key}: {following['id']} started before {one['id']} had ended")


def _after(job: Json, former: Json) -> bool:
    """Whether `job` started when `former` had ended, well or badly."""
    return bool(former["attempts"] and job["attempts"] and former["attempts"][-1]["ended_at"] <= job["attempts"][0]["started_at"])


def _held(client: Client, receiver: Receiver, key: str, how: str, count: int, instant: datetime) -> list[Json]:
    """A line of `count` that its first job holds up as `HELD` tells."""
    status, wanted = HELD[how]
    paths = [f"/status/{status}/{key}", *(f"/ok/{key}/{number}" for number in range(1, count))]
    common = {"type": "http", "execute_at": rfc3339(instant), "ordering_key": key, **wanted}
    asked = [{**common, "payload": {"method": "POST", "url": receiver.url(path)}} for path in paths]
    return [result["job"] for result in client.post_jobs(asked)["results"]]


def _judge_parked(seen: Outcome, client: Client, receiver: Receiver, key: str, jobs: Sequence[Json]) -> None:
    path, waiting = f"/me/ordering-keys/{key}", len(jobs) - 1
    line = client.request("GET", path)
    seen.expect(line["parked_by"] == jobs[0]["id"] and line["waiting"] == waiting, f"the key is not parked: {line}")
    seen.expect(not any(call.path.startswith(f"/ok/{key}/") for call in receiver.calls()), "a job of the parked key ran")
    client.request("POST", f"{path}/resume")
    _succeeded(seen, client, jobs[1:], "after the resume")
    heard = [int(call.path.rpartition("/")[2]) for call in receiver.calls() if call.path.startswith(f"/ok/{key}/")]
    seen.expect(heard == list(range(1, waiting + 1)), f"after the resume: {heard}")


def _judge_blocked(seen: Outcome, client: Client, jobs: Sequence[Json]) -> None:
    _succeeded(seen, client, jobs[1:], "behind a job that is tried again")
    line = [client.job(job["id"]) for job in jobs]
    attempts = HELD["blocked"][1]["max_attempts"]
    seen.expect(line[0]["status"] == "failed" and len(line[0]["attempts"]) == attempts, f"the first one was not tried so often: {line[0]}")
    for former, job in itertools.pairwise(line):
        seen.expect(_after(job, former), f"behind a job that is tried again: {job['id']} started before {former['id']} had ended")


def _succeeded(seen: Outcome, client: Client, jobs: Sequence[Json], when: str) -> None:
    end = time.monotonic() + SETTLING
    while (states := {client.job(job["id"])["status"] for job in jobs}) != {"succeeded"} and time.monotonic() < end:
        time.sleep(1)
    seen.expect(states == {"succeeded"}, f"{when}: {states}")


def _ms(text: str) -> int:
    return round(instant_of(text).timestamp() * 1000)
