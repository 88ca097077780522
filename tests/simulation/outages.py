"""Services that are away for a while, or throttle, in a simulated world: `python -m tests.simulation.scenes outages` prints the table.

While a service is away, each call to it takes 1 to 7 s, as the retries of the SDK do, and fails. A batch write fails as in the real
adapter, item by item (`REFUSED`), or as a whole. A call to a queue or topic returns what was refused. No target fails because of an
outage, and no executor dies: the only faults are these.

Oracles, besides those of `World`:

    failed_without_reason    a job ended failed or killed although its target never reported as many failures as it has attempts
    crashed                  an invocation ended with an error other than Unavailable

`done_twice` counts jobs whose target succeeded more than once. It is a violation only if a table was away for at most `SETTLED_MS`: an
executor can renew its leases for that long, and settles its jobs then. Otherwise it is a figure: work is done twice where the lease ends.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, NamedTuple

from lab.world.faults import CALM, Rates
from lab.world.layers import Layer
from lab.world.pools import outcome
from scheduler.model import lifecycle, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Lane, Status
from scheduler.model.rules import Rules
from scheduler.storage.ports import Written
from tests.simulation.stepped import SteppedWorld
from tests.simulation.world import START

TABLES = frozenset({"jobs", "tasks", "orders", "ledger", "receipts", "users", "targets", "operations"})
SERVICES: dict[str, frozenset[str]] = {  # by the name of the outage: the services that are away
    "jobs table": frozenset({"jobs"}),
    "DynamoDB": TABLES,
    "SQS": frozenset({"SQS"}),
    "SNS": frozenset({"SNS"}),
    "all": TABLES | {"SQS", "SNS"},
}
LASTS_MS = (30_000, 100_000, 600_000, 3_600_000)
RETRIES_MS = (1_000, 7_000)  # the SDK's tries before it gives up
THROTTLED = 0.5  # share of refused calls of a service that throttles
AHEAD_MS = 20_000  # the outage begins this long before a minute, whose few jobs are published 15 s before it
BEGINS_MS = 6 * slots.MINUTE - AHEAD_MS
IN_HAND_MS = 40_000  # a part of the jobs is posted this long before the outage ...
LONG_MS = (1, 5_000, 30_000, 60_000)  # ... and takes this long
AFTER_MINUTES = 4  # jobs are posted for this long after the outage
WIND_DOWN = 100
SETTLED_MS = 100_000
BATCHES: dict[str, Any] = {"claim": None, "change": Written.REFUSED, "put_many": Written.REFUSED, "withdraw": Written.REFUSED}
ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {  # by port and method: the answers of those that never raise Unavailable
    "lanes": {
        "publish": lambda messages: [*messages],
        "send": lambda messages, now: [*messages],
        "extend": lambda lane, receipts, seconds: set(),
    },
    "work": {"send": lambda items, **_: [*items], "hide": lambda receipt, seconds: False},
}


class Outage(NamedTuple):
    """Services that refuse `share` of their calls between two instants. Calls that are retried beyond the end succeed."""

    away: frozenset[str]
    begin: int
    end: int
    share: float = 1.0

    def refuses(self, service: str, at: int) -> bool:
        return service in self.away and self.begin <= at < self.end


class Away(Layer):
    """The port `name` as invocations see it during outages. `service(method)` names the service that a call reaches."""

    def __init__(self, name: str, port: Any, service: Callable[[str], str], world: "OutageWorld") -> None:
        super().__init__(port)
        self._service, self._world, self._answers = service, world, ANSWERS.get(name, {})

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        service, world, answer = self._service(name), self._world, self._answers.get(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            hub, outage = world.hub, world.outage
            if outage is None or not outage.refuses(service, hub.time) or world.chance.random() >= outage.share:
                return effect(*args, **kwargs)
            hub.sleep_until(hub.time + world.chance.randint(*RETRIES_MS))
            if not outage.refuses(service, hub.time):
                return effect(*args, **kwargs)
            world.faults.counts["away"] += 1
            if answer is not None:
                return answer(*args, **kwargs)
            if name in BATCHES and world.chance.random() < 0.5:
                return [BATCHES[name]] * len(args[0])
            raise Unavailable(f"{service} is away")

        return call


class OutageWorld(SteppedWorld):
    """A world without faults but one outage. `outage` may also be set later."""

    def __init__(self, seed: int, rates: Rates = CALM, *, outage: Outage | None = None, rules: Rules | None = None) -> None:
        self.outage, self.chance = outage, Random(seed + 5)
        self.said: Counter[JobKey] = Counter()  # failures that the target of a job reported
        self.done: Counter[JobKey] = Counter()  # its successes
        super().__init__(seed, rates, rules=rules or Rules(shards=2))
        self.workers.policy = lambda: None  # type: ignore[method-assign]  # a silent worker would be another reason to fail
        # The calls of the event source mappings fail, too.
        for queue, name in ((self.lanes, "delete"), (vars(self).get("work"), "delete"), (vars(self).get("work"), "hide")):
            if queue is not None:
                setattr(queue, name, self._unless_away(getattr(queue, name)))

    def _wrap(self, name: str, port: Any) -> Any:
        port = super()._wrap(name, port)
        if name == "lanes":
            return Away(name, port, lambda method: "SNS" if method == "publish" else "SQS", self)
        return Away(name, port, lambda method: "SQS" if name == "work" else name, self)

    def _unless_away(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: None if self._queues_away() else call(*args)

    def _queues_away(self) -> bool:
        return self.outage is not None and self.outage.share == 1 and self.outage.refuses("SQS", self.hub.time)

    def _poll(self, lane: Lane) -> None:
        """Receive nothing while the queues are away."""
        if self._queues_away():
            self._polls.discard(lane)
            self.hub.at(self.hub.time + 5_000, partial(self._wake, lane))
        else:
            super()._poll(lane)

    def _step(self, delivery: Any) -> None:
        """Deliver no message of the work queue while the queues are away. Only an engine with such a queue calls this."""
        if self.outage is not None and self._queues_away():
            self.hub.spawn(partial(self._step, delivery), self.outage.end)
            return
        queued = self.work.queued.get(delivery.message_id)  # type: ignore[attr-defined]
        if queued is not None and queued.receipt == delivery.receipt:  # else it was delivered again meanwhile
            super()._step(delivery)  # type: ignore[misc]

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        result = outcome(job, min(int(job.spec.payload["takes"]), job.spec.timeout_ms))
        (self.said if result.failure is not None else self.done)[job.key] += 1

    def _judge(self) -> Any:
        report = super()._judge()
        for key in self._accepted:
            job = self.jobs.rows.get(key)
            if job is None or lifecycle.is_open(job) or lifecycle.state(job) not in (Status.FAILED, Status.KILLED):
                continue
            if self.said[key] < job.spec.max_attempts:
                self._violation("failed_without_reason", f"{key.id} ({job.reason})")
        return report


def suffer(service: str, lasts_ms: int, *, share: float = 1.0, jobs: int = 200, seed: int = 1) -> dict[str, Any]:
    """Run a world in which `service` (see `SERVICES`) refuses `share` of its calls for `lasts_ms`. Returns the figures of its jobs.

    It has `jobs` at any time, as many that are at work when the outage begins, and a quarter that is due then.
    """
    outage = Outage(SERVICES[service], START + BEGINS_MS, START + BEGINS_MS + lasts_ms, share)
    world = OutageWorld(seed, outage=outage)
    for _ in range(jobs):  # most of them are at work when the outage begins
        at = outage.begin - world.chance.randint(0, IN_HAND_MS)
        world.post_one(at, None, world.chance.choice(LONG_MS))
    for _ in range(jobs // 4):  # and some are published when it begins
        world.post_one(START + 1_000, outage.begin + AHEAD_MS + world.chance.randint(0, IN_HAND_MS))
    minutes = (BEGINS_MS + lasts_ms) // slots.MINUTE + AFTER_MINUTES
    report = world.run(jobs, minutes, wind_down=WIND_DOWN)
    bad = report.violations
    return {
        "service": service,
        "share": share,
        "lasts_s": lasts_ms // 1_000,
        "accepted": report.accepted,
        "refused_calls": report.faults["away"],
        "failed": report.statuses[Status.FAILED] + report.statuses[Status.KILLED],
        "failed_without_reason": bad["failed_without_reason"],
        "done_twice": sum(1 for count in world.done.values() if count > 1),
        "settled_twice": bad["double_settled"],
        "lost": bad["lost"],
        "stuck": bad["stuck"],
        "early": bad["early"],
        "other": {kind: count for kind, count in bad.items() if kind not in (*KNOWN, "double_settled")},
        "latest_s": max(report.delays, default=0) // 1_000,
        "examples": report.examples[:3],
    }


def merged(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of one outage over several seeds: their sums, the latest start, and the first examples."""
    counts = {name: sum(row[name] for row in rows) for name in (*COLUMNS, "refused_calls")}
    other: Counter[str] = Counter()
    for row in rows:
        other.update(row["other"])
    examples = [example for row in rows for example in row["examples"]][:3]
    return rows[0] | counts | {"other": dict(other), "examples": examples, "latest_s": max(row["latest_s"] for row in rows)}


KNOWN = ("failed_without_reason", "settled_twice", "lost", "stuck", "early")
COLUMNS = ("accepted", "failed", "failed_without_reason", "done_twice", "settled_twice", "lost", "stuck", "early")


def is_sound(row: dict[str, Any]) -> bool:
    """Whether an outage broke no promise."""
    settles = row["service"] in ("jobs table", "DynamoDB") and row["share"] == 1 and row["lasts_s"] * 1_000 <= SETTLED_MS
    return not any(row[name] for name in (*KNOWN, "other")) and not (settles and row["done_twice"])


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures as lines of a table."""
    heads = f"{'away':12s} {'refused':>8s} {'for':>7s} " + " ".join(f"{name.replace('_', ' '):>21s}" for name in COLUMNS)
    lines = [heads]
    for row in rows:
        figures = " ".join(f"{row[name]:21d}" for name in COLUMNS)
        other = f"  {row['other']}" if row["other"] else ""
        lines.append(f"{row['service']:12s} {row['share']:8.0%} {row['lasts_s']:5d} s {figures}{other}")
    return "\n".join(lines)
