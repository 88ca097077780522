"""The breaker of a dead target: when it opens, which job probes, and that ordinary retries never open it."""

from typing import Any

import pytest

from scheduler.admission import breaker
from scheduler.admission.breaker import Breaker
from scheduler.admission.breaker_gate import BreakerRegistry
from scheduler.admission.lane_state import LaneStateCache
from scheduler.model import lifecycle
from scheduler.model.job import Failure, FailureKind, Finished, Job, Lane, Result
from scheduler.model.spec import RetryPolicy
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse

URL = {"url": "https://Example.com:8443/a?b"}
DEAD = Result(failure=Failure(FailureKind.RETRYABLE, "ConnectionRefusedError"))
HTTP_500 = Result(response={"status": 500}, failure=Failure(FailureKind.RETRYABLE, "HTTP 500"))
WELL = Result(response={"status": 200})


def http(**fields: Any) -> Job:
    return a_job(type="http", payload=URL, **fields)


@pytest.mark.parametrize(
    ("job", "circuit"),
    [
        (http(), "host example.com:8443"),
        (http(target="invoices"), "target invoices"),
        (a_job(type="sqs", payload={"queue": "arn:q"}), "arn:q"),
        (a_job(type="lambda", payload={"function": "arn:f"}), "arn:f"),
        (a_job(), None),
        (a_job(type="email", payload={}), None),
    ],
)
def test_jobs_of_one_circuit_fail_together(job: Job, circuit: str | None) -> None:
    assert breaker.circuit(job) == circuit


@pytest.mark.parametrize(
    ("result", "dead"),
    [
        (DEAD, True),
        (HTTP_500, True),
        (Result(failure=Failure(FailureKind.TIMEOUT, "t")), True),
        (Result(response={"status": 408}, failure=Failure(FailureKind.RETRYABLE, "HTTP 408")), False),
        (Result(response={"status": 404}, failure=Failure(FailureKind.PERMANENT, "HTTP 404")), False),
        (Result(response={"status": 429}, failure=Failure(FailureKind.THROTTLED, "HTTP 429")), False),
        (Result(output="Traceback", failure=Failure(FailureKind.RETRYABLE, "FunctionError")), False),
        (WELL, False),
    ],
)
def test_only_silence_and_5xx_indicate_a_dead_target(result: Result, dead: bool) -> None:
    assert breaker.is_dead(result) is dead


def test_a_breaker_stays_open_twice_as_long_each_time_up_to_five_minutes() -> None:
    waits, each = [], breaker.opened("c", NOW)
    for _ in range(7):
        waits.append((each.until - each.opened_at) // 1_000)
        each = breaker.opened("c", NOW, each)
    assert waits == [10, 20, 40, 80, 160, 300, 300]


class Executors:
    """Two executors with one ledger."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.a, self.b = self.process(), self.process()

    def process(self) -> BreakerRegistry:
        return BreakerRegistry(self.stage, LaneStateCache(self.stage))

    def fail(self, circuits: BreakerRegistry, times: int, *, every: int = 300, result: Result = DEAD) -> None:
        for _ in range(times):
            now = self.stage.clock.now()
            circuits.note(Finished(http(), now, now, result))
            self.stage.clock.advance(every)

    def run(self, circuits: BreakerRegistry, job: Job, result: Result = WELL) -> ScriptedPool:
        pool = ScriptedPool(self.stage.clock, result=result)
        self.stage.execute(self.stage.hand(job), pool=pool, lane=job.lane, pauses=circuits.watch, circuits=circuits)
        return pool

    @property
    def open(self) -> dict[str, Breaker]:
        found: dict[str, Breaker] = self.stage.ledger.watched().breakers
        return found


def test_five_failures_in_a_row_open_the_breaker_for_all_executors() -> None:
    at = Executors()
    at.fail(at.a, 4)
    assert at.open == {}
    at.fail(at.a, 1)
    assert list(at.open) == ["host example.com:8443"]
    due = at.stage.clock.now()
    job = http(due_at=due)
    assert at.run(at.b, job).starts == []
    back = at.stage.stored(job)
    opened = at.open["host example.com:8443"]
    assert opened.until < back.due_at <= opened.until + 2_500
    assert (back.charged, back.attempts, back.reserved_at) == (0, (), None)
    assert (back.reason or "").startswith("breaker: host example.com:8443 does not answer; open until ")


def test_a_success_resets_the_row_of_failures() -> None:
    at = Executors()
    for _ in range(3):
        at.fail(at.a, 4)
        at.fail(at.a, 1, result=WELL)
    assert at.open == {}


def test_a_batch_that_fails_at_one_instant_does_not_open_the_breaker() -> None:
    at = Executors()
    at.fail(at.a, 30, every=0)
    assert at.open == {}


def test_without_failures_no_breaker_is_read_or_written() -> None:
    at = Executors()
    ledger = Wrapped(at.stage.ledger, set_breaker=refuse, watched=refuse)
    circuits = BreakerRegistry(at.stage.but(ledger=ledger), LaneStateCache(at.stage.but(ledger=ledger)))
    at.fail(circuits, 10, result=WELL)
    assert circuits.find(http()) is None


def opened(at: Executors) -> Breaker:
    at.fail(at.a, 5)
    (found,) = at.open.values()
    at.stage.clock.at = found.until + 1
    return found


def test_a_probe_that_succeeds_closes_the_breaker() -> None:
    at = Executors()
    opened(at)
    now = at.stage.clock.now()
    taken = at.stage.hand(http(due_at=now), http(due_at=now))
    pool = ScriptedPool(at.stage.clock, result=WELL)
    at.stage.execute(taken, pool=pool, pauses=at.b.watch, circuits=at.b)
    assert len(pool.starts) == 1, "the other one waits for what it finds"
    assert at.open == {}
    ((tried, _),) = pool.starts
    at.stage.clock.advance(1_000)
    other = http(due_at=at.stage.clock.now())
    starts = [job.id for job, _ in at.run(at.a, other).starts]
    (waited,) = {job.message.key.id for job in taken} - {tried.id}
    assert [id for id in starts if id != waited] == [other.id], (
        "nothing is held back; whether the one that waited is due yet, its name says"
    )


def test_a_probe_that_fails_opens_the_breaker_for_twice_as_long() -> None:
    at = Executors()
    before = opened(at)
    job = http(due_at=at.stage.clock.now())
    assert len(at.run(at.b, job, HTTP_500).starts) == 1
    (after,) = at.open.values()
    assert (after.waits_ms, after.version) == (20_000, before.version + 2)
    assert at.stage.stored(job).charged == 1, "it was tried"


def test_a_probe_without_a_result_is_followed_by_another() -> None:
    at = Executors()
    found = opened(at)
    job = http(due_at=at.stage.clock.now(), timeout_ms=1_000)
    assert at.a.probe(found, job)
    (half,) = at.open.values()
    assert not breaker.may_probe(half, at.stage.clock.now())
    assert breaker.may_probe(half, at.stage.clock.now() + 1_000 + breaker.PROBE_MS)
    assert not at.b.probe(found, job), "of two that want to try, one does"


@pytest.mark.parametrize(
    "fields",
    [
        {"start_by": NOW + 5_000},
        {"delay_ms": 0, "retry": RetryPolicy(max_elapsed_ms=5_000)},
        {"scheduled_at": NOW - breaker.PATIENCE_MS, "due_at": NOW, "created_at": NOW - breaker.PATIENCE_MS},
    ],
)
def test_a_job_that_cannot_wait_is_not_requeued(fields: dict[str, Any]) -> None:
    assert not breaker.can_wait(http(**fields), NOW + 12_000)
    assert breaker.can_wait(http(), NOW + 12_000)


def test_the_retries_of_a_flaky_endpoint_never_open_the_breaker() -> None:
    """500, 500, 200 within the bounds of their waits: 1 s, then 2 s."""
    at = Executors()
    job = http(retry=RetryPolicy(), lane=Lane.ONE_TIME)
    pool_starts: list[int] = []
    taken = at.stage.hand(job)
    for result in (HTTP_500, HTTP_500, WELL):
        pool = ScriptedPool(at.stage.clock, result=result)
        lane = taken[0].message.lane
        at.stage.execute(taken, pool=pool, lane=lane, pauses=at.a.watch, circuits=at.a)
        pool_starts += [start for _, start in pool.starts]
        stored = at.stage.stored(job)
        if lifecycle.is_open(stored):
            at.stage.clock.at = max(at.stage.clock.at, stored.due_at)
            taken = at.stage.receive(Lane.RETRY)
    assert len(pool_starts) == 3 and at.stage.stored(job).completed_at is not None
    assert pool_starts[1] - pool_starts[0] <= 1_100 and pool_starts[2] - pool_starts[1] <= 2_100
    assert at.open == {}


def test_a_blocked_job_gets_an_answer_although_the_breaker_closed() -> None:
    """The breaker closes between the claim and the start of the job: the job must not be left without an answer."""
    at = Executors()
    found = opened(at)
    now = at.stage.clock.now()
    job = http(due_at=now + 2_000)
    at.b.watch.look()
    at.stage.ledger.set_breaker(found, None)
    pool = ScriptedPool(at.stage.clock)
    at.stage.execute(at.stage.hand(job), pool=pool, pauses=at.b.watch, circuits=at.b)
    assert [start for _, start in pool.starts] == [now + 2_000]
