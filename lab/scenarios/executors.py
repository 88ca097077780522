"""Drills of executors: jobs whose work is killed, and killed executors. A worker process of the local AWS represents one of Lambda's."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from punctual import Punctual
from punctual.records import Json

from lab.judge import FINAL, Outcome
from lab.scenarios.drills import ended
from local import process
from local.process import Process
from local.receiver import Call, Receiver

CHILD = "lambdas._child"  # part of the command line of the child processes in which executors run jobs
TIMEOUT = 2  # time-out in seconds of a job that would take a minute
KILLED_WITHIN = 1.0  # seconds after the deadline
STOPPED_WITHIN = 30.0  # seconds after a cancel was requested
LEASE = 30.0
PATIENCE = 420.0  # seconds: the tick reconciles a slot within six minutes
GROWN = 4.0  # seconds after which a worker has started, even on a busy machine
EACH = 3.0  # seconds that a call of the crash drill takes


def kill(client: Punctual, count: int = 5) -> Outcome:
    """Check that work past its time-out is killed in time together with its process, and that cancelled work stops within its grace."""
    seen, work = Outcome(), {"message": "long work", "sleep_seconds": 60}
    with _Watched() as children:
        overdue = [client.jobs.create("log", work, timeout_seconds=TIMEOUT, max_attempts=1).raw for _ in range(count)]
        killed = _all(client, overdue)
        running = [client.jobs.create("log", work).raw for _ in range(count)]
        _until(lambda: all(client.jobs.get(job["id"]).status == "running" for job in running))
        for job in running:
            client.jobs.cancel(job["id"])
        stopped = _all(client, running)
    overshoot = [_seconds(job["started_at"], job["killed_at"] or job["started_at"]) - TIMEOUT for job in killed]
    seen.expect({job["status"] for job in killed} == {"killed"}, f"past their time-out: {_statuses(killed)}")
    seen.expect(
        0 <= min(overshoot) and max(overshoot) <= KILLED_WITHIN, f"killed {min(overshoot):.3f} to {max(overshoot):.3f} s after the deadline"
    )
    pids = [_pid(job) for job in killed]
    unseen = [pid for pid in pids if pid not in {each.pid for each in children.seen}]
    alive = [each.pid for each in children.seen if each.pid in pids and each.alive]
    seen.expect(not unseen and len(set(pids)) == count, f"the jobs of {unseen or pids} had no process of their own")
    seen.expect(not alive, f"the processes {alive} of killed jobs are still alive")
    waits = [_seconds(job["cancel_requested_at"], job["cancelled_at"] or job["cancel_requested_at"]) for job in stopped]
    seen.expect({job["status"] for job in stopped} == {"cancelled"}, f"cancelled while running: {_statuses(stopped)}")
    seen.expect(max(waits) <= STOPPED_WITHIN, f"a cancelled job stopped after {max(waits):.1f} s")
    seen.figures |= {"killed": len(killed), "s after the deadline, most": round(max(overshoot), 3), "processes of them alive": len(alive)}
    seen.figures |= {"cancelled while running": len(stopped), "s until stopped, most": round(max(waits), 1)}
    return seen


@dataclass
class Hunter:
    """Kills executors: at random, and each one whose job calls a path with `/poison`."""

    workers: Callable[[], Sequence[Process]]
    receiver: Receiver
    kills: list[float] = field(default_factory=list)  # times of the random kills
    most: int = 0  # workers at once
    cut: list[Call] = field(default_factory=list)  # calls that a random kill interrupted
    poisoned: Counter[str] = field(default_factory=Counter)  # kills by a call, by path
    _since: dict[Process, float] = field(default_factory=dict)  # when each worker was seen first

    def watch(self, call: Call) -> None:
        """Kill the executor that made a call with `/poison`, found by its connection."""
        if "/poison" in call.path and (worker := process.connected(self.workers(), call.port, self.receiver.port)):
            self.poisoned[call.path] += 1
            process.kill(worker)

    def shoot(self) -> None:
        """Kill one worker, unless there were two kills for each worker already. Workers that have just started are spared.

        The victim is a worker with an open call until a first call was interrupted, and every other time from then on; else any worker.
        A worker that dies before it has set the visibility of its messages leaves them invisible for the queue's own 15 minutes.
        In that case no lease expires, and the jobs are found by their slots within about five minutes.
        """
        workers = list(self.workers())
        self.most = max(self.most, len(workers))
        for worker in workers:
            self._since.setdefault(worker, time.monotonic())
        grown = [worker for worker in workers if time.monotonic() - self._since[worker] > GROWN]
        at_work: dict[Process, list[Call]] = {}
        for call in self.receiver.open_calls():
            if caller := process.connected(grown, call.port, self.receiver.port):
                at_work.setdefault(caller, []).append(call)
        targets = list(at_work) if not self.cut or len(self.kills) % 2 else grown
        if not targets or len(self.kills) >= 2 * self.most:
            return
        victim = random.choice(targets)
        process.kill(victim)
        self.kills.append(time.time())
        left = self.receiver.open_calls()  # the receiver answered the others just before the worker died
        self.cut += [call for call in at_work.get(victim, ()) if call in left]


def crash(
    client: Punctual, receiver: Receiver, workers: Callable[[], Sequence[Process]], *, count: int = 300, seconds: float = 60
) -> Outcome:
    """Kill executors at random while jobs run, until a kill interrupted a call and there were two kills for each: at most for three times
    `seconds`, or for `PATIENCE` without an interrupted call. Then run one job that kills each executor that starts it. Check that every
    job ends, that crashes are recorded, and that nothing finishes twice."""
    seen, hunter, name = Outcome(), Hunter(workers, receiver), f"/slow/{EACH:g}/crash-{time.time_ns()}"
    paths: list[str] = []
    posted: list[Json] = []
    began = time.monotonic()
    while (so_far := time.monotonic() - began) < (seconds * 3 if hunter.cut else PATIENCE) and (
        len(posted) < count or not hunter.cut or len(hunter.kills) < 2 * hunter.most
    ):
        most = count if hunter.cut else 10 * count  # on a busy machine calls begin late, and may end before their worker may be killed
        new = [f"{name}-{number}" for number in range(len(posted), min(most, int(so_far / seconds * count) + 1))]
        if new:
            paths += new
            calls = [{"type": "http", "payload": {"method": "POST", "url": receiver.url(path)}} for path in new]
            posted += [job.raw for job in client.jobs.create_many(calls).all_jobs()]
        hunter.shoot()
        time.sleep(1)
    last = hunter.kills[-1] if hunter.kills else time.time()
    time.sleep(max(0.0, last + 2 * LEASE + EACH - time.time()))
    after = [client.jobs.get(job["id"]).raw for job in posted]
    stuck = [job for job in after if job["status"] == "running" and _ms(job["picked_at"]) < last * 1000]
    seen.expect(not stuck, f"{len(stuck)} jobs are still running two lease times after the last kill")
    # An executor that dies between taking back a dead executor's job and enqueuing it leaves the job to its slot.
    seen.figures |= {"left to their slots": sum(job["status"] in ("scheduled", "queued") for job in after)}
    jobs = _all(client, posted, PATIENCE)
    left = [job["id"] for job in jobs if job["status"] not in FINAL]
    seen.expect(not left, f"{len(left)} jobs have not ended: {left[:3]}")
    seen.figures |= {"all ended after the last kill, s": round((max(map(_end, jobs)) / 1000) - last, 1)}
    _judge_crashed(seen, jobs, hunter, receiver, dict(zip((job["id"] for job in posted), paths, strict=True)))
    _judge_poison(seen, client, receiver, hunter)
    return seen


def _judge_crashed(seen: Outcome, jobs: Sequence[Json], hunter: Hunter, receiver: Receiver, paths: dict[str, str]) -> None:
    crashes = sum(_outcomes(job).count("crashed") for job in jobs)
    by_path = {paths[job["id"]]: job for job in jobs}
    unrecorded = [call.path for call in hunter.cut if call.path in by_path and not _crashed(by_path[call.path], call)]
    seen.expect(not unrecorded, f"{len(unrecorded)} crashes are in no history: {unrecorded[:3]}")
    counts = receiver.counts()
    starts = sum(counts[path] for path in by_path)
    attempts = sum(max((each["number"] for each in job["attempts"]), default=0) for job in jobs)
    excess = [path for path, job in by_path.items() if counts[path] > max((each["number"] for each in job["attempts"]), default=0)]
    seen.expect(not excess, f"more starts than attempts: {excess[:3]}")
    twice = [job["id"] for job in jobs if _outcomes(job).count("succeeded") > 1 or "succeeded" in _outcomes(job)[:-1]]
    seen.expect(not twice, f"finished twice: {twice[:3]}")
    numbers = Counter((call.path, call.headers.get("Punctual-Attempt")) for call in receiver.calls() if call.path in by_path)
    twins = [which for which, times in numbers.items() if times > 1]  # two starts under one fence follow the same history: one number
    seen.expect(not twins, f"two starts of one attempt: {twins[:3]}")
    odd = [job["id"] for job in jobs if job["status"] == "failed" and _outcomes(job).count("crashed") < 2]
    seen.expect(not odd, f"failed without two crashes: {odd[:3]}")
    seen.expect(bool(hunter.cut) and crashes > 0, "no executor was killed during a call: the drill shows nothing")
    seen.figures |= {"jobs": len(jobs), **{f"ended {status}": number for status, number in Counter(job["status"] for job in jobs).items()}}
    seen.figures |= {
        "workers at once, most": hunter.most,
        "kills": len(hunter.kills),
        "kills of each worker, mean": round(len(hunter.kills) / max(1, hunter.most), 2),
        "calls cut by them": len(hunter.cut),
        "crashes in histories": crashes,
    }
    seen.figures |= {"starts": starts, "attempts": attempts}


def _judge_poison(seen: Outcome, client: Punctual, receiver: Receiver, hunter: Hunter) -> None:
    """Check a job that kills every executor that starts it: it fails, and the other jobs of its batch succeed."""
    name = f"/slow/1/neighbour-{time.time_ns()}"
    urls = [receiver.url(f"{name}-{number}") for number in range(9)] + [receiver.url(f"/slow/5/poison-{time.time_ns()}")]
    receiver.watch = hunter.watch
    try:
        jobs = [{"type": "http", "payload": {"method": "POST", "url": url}} for url in urls]
        *innocent, guilty = _all(client, [job.raw for job in client.jobs.create_many(jobs).all_jobs()], PATIENCE)
    finally:
        receiver.watch = lambda call: None
    seen.expect(guilty["status"] == "failed", f"the job that kills its executor ended {guilty['status']}")
    seen.expect({job["status"] for job in innocent} == {"succeeded"}, f"its neighbours: {_statuses(innocent)}")
    harmed = [job for job in innocent if "crashed" in _outcomes(job)]
    seen.figures |= {"executors killed by one job": hunter.poisoned.total(), "its neighbours": _statuses(innocent)}
    seen.figures |= {
        "neighbours that ran again": len(harmed),
        "the job itself": f"{guilty['status']} after {len(guilty['attempts'])} attempts",
    }


class _Watched:
    """Watches in the background for the child processes in which executors run jobs."""

    def __init__(self) -> None:
        self.seen: set[Process] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "_Watched":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            self.seen |= set(process.of_command(CHILD))


def _all(client: Punctual, posted: Sequence[Json], seconds: float = 90) -> list[Json]:
    """Return the jobs in the order in which they were posted, once all have ended, at the latest after `seconds`."""
    left, found = {job["id"] for job in posted}, dict[str, Json]()

    def read() -> Iterator[Json]:
        for job_id in list(left):
            found[job_id] = client.jobs.get(job_id).raw
            if found[job_id]["status"] in FINAL:
                left.discard(job_id)
        return iter(found.values())

    ended(client, read, seconds=seconds, count=len(posted))
    return [found[job["id"]] for job in posted]


def _until(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)


def _pid(job: Json) -> int | None:
    """Return the id of the process in which the last attempt ran, read from its log."""
    log = (job["attempts"][-1]["log"] or "") if job["attempts"] else ""
    words = log.split()
    return int(words[1]) if words[:1] == ["process"] else None


def _outcomes(job: Json) -> list[str]:
    return [each["outcome"] for each in job["attempts"]]


def _crashed(job: Json, call: Call) -> bool:
    """True if the attempt that made the call ended by a crash."""
    crashed = [each for each in job["attempts"] if each["outcome"] == "crashed"]
    return any(_ms(each["picked_at"]) <= call.at <= _ms(each["ended_at"]) for each in crashed)


def _end(job: Json) -> int:
    return max((_ms(each["ended_at"]) for each in job["attempts"]), default=0)


def _statuses(jobs: Sequence[Json]) -> str:
    return ", ".join(f"{number} {status}" for status, number in Counter(job["status"] for job in jobs).items())


def _seconds(start: str, end: str) -> float:
    return (_ms(end) - _ms(start)) / 1000


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
