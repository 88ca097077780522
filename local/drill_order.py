"""The drill of ordering keys: many lines at once, with failures and doubled messages, and what that does to other jobs."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

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
SETTLING = 420.0  # a lost wake costs up to five minutes
FAST = {"base_seconds": 0.2, "cap_seconds": 1, "jitter": "none"}
Double = Callable[[Sequence[Json]], None]


def ordering(client: Client, receiver: Receiver, double: Double, *, keys: int = 50, each: int = 20, controls: int = 150) -> Outcome:
    """`each` jobs of each key at one instant: strictly in order, one at a time; a parked key holds nobody else; others start as before.

    `double` sends the messages of jobs once more.
    """
    seen, run = Outcome(), f"{time.time_ns():x}"
    alone = _controls(client, f"alone-{run}", controls, datetime.now(UTC) + timedelta(seconds=20))
    plain = _beside_plain(client, receiver, run, keys * each, controls)
    chance = random.Random(run)
    instant = (datetime.now(UTC) + timedelta(seconds=25)).replace(microsecond=0)
    lines = {f"{run}-{number}": [_path(f"{run}/{number}/{place}", chance) for place in range(each)] for number in range(keys)}
    made = _post(client, receiver, lines, instant, each)
    parked = _parked(client, receiver, f"{run}-parked", instant)
    doubled = [job for job in made if chance.randrange(100) < DOUBLED]
    delays: list[int] = []
    beside = threading.Thread(target=lambda: delays.extend(_controls(client, f"beside-{run}", controls, instant + timedelta(seconds=1))))
    beside.start()
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))
    double(doubled[::2])
    time.sleep(1)
    double(doubled)
    beside.join()
    jobs = _ended(client, instant, {job["id"] for job in made})
    _judge(seen, receiver, lines, {job["id"]: job for job in jobs}, [job["id"] for job in made])
    seen.figures |= {
        "jobs": len(jobs),
        "keys": keys,
        "failed first": sum(path.startswith("/fail") for line in lines.values() for path in line),
    }
    seen.figures |= {"messages doubled": len(doubled) + len(doubled[::2])}
    took = max(instant_of(job["completed_at"]) for job in jobs if job["completed_at"]) - instant
    seen.figures |= {"seconds until all lines were done": round(took.total_seconds(), 1)}
    _judge_parked(seen, client, receiver, f"{run}-parked", parked)
    seen.figures |= {"start delay of others ms p50, p99 alone": (share(alone, 50), share(alone, 99))}
    seen.figures |= {"beside as many jobs without keys": (share(plain, 50), share(plain, 99))}
    ratio = round(share(delays, 99) / max(1, share(plain, 99)), 2)
    seen.figures |= {"beside the lines": (share(delays, 50), share(delays, 99)), "ratio of the last two p99": ratio}
    return seen


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


def _judge(seen: Outcome, receiver: Receiver, lines: dict[str, list[str]], jobs: dict[str, Json], order: Sequence[str]) -> None:
    bad = [job["id"] for job in jobs.values() if job["status"] != "succeeded"]
    seen.expect(len(jobs) == len(order) and not bad, f"{len(bad)} of {len(jobs)} jobs did not succeed, {len(order)} were posted")
    calls = receiver.calls()
    for key, paths in lines.items():
        heard = [call.path for call in calls if call.path in set(paths)]
        first = list(dict.fromkeys(heard))
        seen.expect(first == paths, f"{key}: called in the order {first}")
        mixed = [path for number, path in enumerate(heard) if path in heard[:number] and heard[number - 1] != path]
        seen.expect(not mixed, f"{key}: another one was called between the attempts of {mixed}")
    by_key: dict[str, list[Json]] = {}
    for job_id in order:
        if job_id in jobs:
            by_key.setdefault(jobs[job_id]["tags"][0], []).append(jobs[job_id])
    for key, line in by_key.items():
        for one, following in itertools.pairwise(line):
            apart = one["completed_at"] and following["attempts"] and one["completed_at"] <= following["attempts"][0]["started_at"]
            seen.expect(bool(apart), f"{key}: {following['id']} started before {one['id']} had ended")


def _parked(client: Client, receiver: Receiver, key: str, instant: datetime) -> list[Json]:
    """A line whose first job fails for good."""
    common = {"type": "http", "execute_at": rfc3339(instant), "ordering_key": key, "on_failure": "park"}
    paths = [f"/status/404/{key}", *(f"/ok/{key}/{number}" for number in range(5))]
    asked = [{**common, "payload": {"method": "POST", "url": receiver.url(path)}} for path in paths]
    return [result["job"] for result in client.post_jobs(asked)["results"]]


def _judge_parked(seen: Outcome, client: Client, receiver: Receiver, key: str, jobs: Sequence[Json]) -> None:
    path = f"/me/ordering-keys/{key}"
    line = client.request("GET", path)
    seen.expect(line["parked_by"] == jobs[0]["id"] and line["waiting"] == 5, f"the key is not parked: {line}")
    seen.expect(not any(call.path.startswith(f"/ok/{key}/") for call in receiver.calls()), "a job of the parked key ran")
    client.request("POST", f"{path}/resume")
    end = time.monotonic() + SETTLING
    while (states := {client.job(job["id"])["status"] for job in jobs[1:]}) != {"succeeded"} and time.monotonic() < end:
        time.sleep(1)
    seen.expect(states == {"succeeded"}, f"after the resume: {states}")
    heard = [call.path for call in receiver.calls() if call.path.startswith(f"/ok/{key}/")]
    seen.expect(heard == sorted(heard) and len(heard) == 5, f"after the resume: {heard}")


def _ms(text: str) -> int:
    return round(instant_of(text).timestamp() * 1000)
