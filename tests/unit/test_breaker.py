"""The breaker of a failing target: when it opens, which job probes, and that ordinary retries never open it."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission import breaker
from scheduler.admission.breaker_gate import BreakerRegistry, close, not_closed
from scheduler.admission.lane_state import LaneStateCache
from scheduler.model import lifecycle
from scheduler.model.breaker import Breaker, Circuit
from scheduler.model.errors import NotFound, Unavailable
from scheduler.model.job import Failure, FailureKind, Finished, Job, Lane, LaneState, RequeueCause, Result
from scheduler.model.named_target import NamedTarget
from scheduler.model.spec import RetryPolicy
from scheduler.model.target_usage import Place, UsageChange
from scheduler.pipeline import delivery
from scheduler.storage.ports import Written
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times

URL = {"url": "https://Example.com:8443/a?b"}
HOST = Circuit("host example.com:8443", "ann")
DEAD = Result(failure=Failure(FailureKind.RETRYABLE, "ConnectionRefusedError"))
HTTP_500 = Result(response={"status": 500}, failure=Failure(FailureKind.RETRYABLE, "HTTP 500"))
WELL = Result(response={"status": 200})
TIMED_OUT = Result(failure=Failure(FailureKind.TIMEOUT, "stopped before the answer came"))


def http(**fields: Any) -> Job:
    return a_job(type="http", payload=URL, **fields)


@pytest.mark.parametrize(
    ("job", "circuit"),
    [
        (http(), Circuit("host example.com:8443", "ann")),
        (http(owner="bob"), Circuit("host example.com:8443", "bob")),
        (http(target="invoices"), Circuit("target invoices")),
        (a_job(type="sqs", payload={"queue": "arn:q"}), Circuit("arn:q", "ann")),
        (a_job(type="lambda", payload={"function": "arn:f"}), Circuit("arn:f", "ann")),
        (a_job(), None),
        (a_job(type="email", payload={}), None),
    ],
)
def test_jobs_of_one_circuit_fail_together(job: Job, circuit: Circuit | None) -> None:
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
    waits, each = [], breaker.opened(HOST, NOW)
    for _ in range(7):
        waits.append((each.until - each.opened_at) // 1_000)
        each = breaker.opened(HOST, NOW, each)
    assert waits == [10, 20, 40, 80, 160, 300, 300]


class Executors:
    """Two executors with one ledger."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.a, self.b = self.process(), self.process()

    def process(self) -> BreakerRegistry:
        return BreakerRegistry(self.stage, LaneStateCache(self.stage))

    def fail(self, circuits: BreakerRegistry, times: int, *, every: int = 300, result: Result = DEAD, job: Job | None = None) -> None:
        for _ in range(times):
            now = self.stage.clock.now()
            circuits.note(Finished(job or http(), now, now, result))
            self.stage.clock.advance(every)

    def run(self, circuits: BreakerRegistry, job: Job, result: Result = WELL) -> ScriptedPool:
        pool = ScriptedPool(self.stage.clock, result=result)
        self.stage.execute(self.stage.hand(job), pool=pool, lane=job.lane, pauses=circuits.watch, circuits=circuits)
        return pool

    @property
    def open(self) -> dict[Circuit, Breaker]:
        found: dict[Circuit, Breaker] = self.stage.ledger.watched().breakers
        return found


def test_five_failures_in_a_row_open_the_breaker_for_all_executors() -> None:
    at = Executors()
    at.fail(at.a, 4)
    assert at.open == {}
    at.fail(at.a, 1)
    assert list(at.open) == [HOST]
    due = at.stage.clock.now()
    job = http(due_at=due)
    assert at.run(at.b, job).starts == []
    back = at.stage.stored(job)
    opened = at.open[HOST]
    assert opened.until < back.due_at <= opened.until + 2_500
    assert (back.charged, back.attempts, back.released_at) == (0, (), None)
    assert (back.reason or "").startswith("breaker: host example.com:8443 does not answer; open until ")
    assert back.requeue_cause is RequeueCause.BREAKER, "a read shows whether the breaker still explains the wait"


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
    assert len(pool.starts) == 1, "the other one waits for its result"
    assert at.open == {}
    ((tried, _),) = pool.starts
    at.stage.clock.advance(1_000)
    other = http(due_at=at.stage.clock.now())
    starts = [job.id for job, _ in at.run(at.a, other).starts]
    (waited,) = {job.message.key.id for job in taken} - {tried.id}
    assert [id for id in starts if id != waited] == [other.id], "no other job waits; its name shows whether the waiting one is due yet"


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
    at.b.watch.refresh()
    at.stage.ledger.set_breaker(found, None)
    pool = ScriptedPool(at.stage.clock)
    at.stage.execute(at.stage.hand(job), pool=pool, pauses=at.b.watch, circuits=at.b)
    assert [start for _, start in pool.starts] == [now + 2_000]


# one owner's failures are no other owner's


def test_failures_of_one_owner_stop_no_job_of_another() -> None:
    at = Executors()
    opened(at)
    due = at.stage.clock.now()
    job = http(owner="bob", due_at=due)
    assert [start for _, start in at.run(at.a, job).starts] == [due]
    assert list(at.open) == [HOST]


def test_failures_of_one_owner_stop_all_jobs_of_a_named_target() -> None:
    at = Executors()
    at.fail(at.a, 5, job=http(target="invoices"))
    job = http(owner="bob", target="invoices", due_at=at.stage.clock.now())
    assert at.run(at.b, job).starts == []
    assert (at.stage.stored(job).reason or "").startswith("breaker: target invoices does not answer; open until ")


def test_a_stored_breaker_without_an_owner_stops_no_job_of_a_url() -> None:
    """Earlier versions stored one breaker of a host for all owners; it expires by itself."""
    at = Executors()
    at.stage.ledger.set_breaker(None, breaker.opened(Circuit(HOST.name), NOW))
    due = at.stage.clock.now()
    assert [start for _, start in at.run(at.a, http(due_at=due)).starts] == [due]


def test_an_owner_has_a_limited_number_of_open_breakers() -> None:
    at = Executors()
    for number in range(breaker.MOST_OF_OWNER):
        at.stage.ledger.set_breaker(None, breaker.opened(Circuit(f"host {number}", "ann"), NOW))
    at.a.watch.refresh()
    at.fail(at.a, 10)
    assert HOST not in at.open
    at.fail(at.a, 5, job=http(owner="bob"))
    at.fail(at.a, 5, job=http(target="invoices"))
    assert len(at.open) == breaker.MOST_OF_OWNER + 2


# time-outs that a job chose


def ended(job: Job, result: Result, took: int) -> Finished:
    return Finished(job, NOW, NOW + took, result)


@pytest.mark.parametrize(
    ("done", "nothing"),
    [
        (ended(http(), DEAD, 30_000), False),
        (ended(http(), TIMED_OUT, 300_000), False),
        (ended(http(timeout_ms=30_000), TIMED_OUT, 30_000), False),
        (ended(http(timeout_ms=29_000), TIMED_OUT, 29_000), True),
        (ended(a_job(type="http", payload=URL | {"timeout_seconds": 0.1}), DEAD, 100), True),
        (ended(a_job(type="http", payload=URL | {"timeout_seconds": 5}), DEAD, 5_000), True),
        (ended(a_job(type="http", payload=URL | {"timeout_seconds": 5}), DEAD, 2), False),  # refused
        (ended(a_job(type="http", payload=URL | {"timeout_seconds": 5}), HTTP_500, 5_000), False),
        (ended(a_job(type="http", payload=URL | {"timeout_seconds": 40}), DEAD, 40_000), False),
        (ended(http(timeout_ms=5_000), DEAD, 5_000), True),
        (ended(http(target="invoices", timeout_ms=5_000), TIMED_OUT, 5_000), True),
        (ended(a_job(type="lambda", payload={"function": "arn:f"}, timeout_ms=60_000), TIMED_OUT, 60_000), True),
        (ended(a_job(type="lambda", payload={"function": "arn:f"}), TIMED_OUT, 300_000), False),
        (ended(http(cancel_requested_at=NOW), TIMED_OUT, 50), True),
        (ended(http(), Result(failure=Failure(FailureKind.THROTTLED, "all functions that call URLs are busy")), 3_000), True),
        (ended(http(), Result(response={"status": 429}, failure=Failure(FailureKind.THROTTLED, "HTTP 429")), 9), False),
        (ended(a_job(type="a type of another version", target="t", timeout_ms=1), TIMED_OUT, 1), True),
        (ended(http(timeout_ms=1_000), WELL, 1_000), False),
    ],
)
def test_a_short_time_out_shows_neither_a_dead_nor_a_living_target(done: Finished, nothing: bool) -> None:
    assert breaker.shows_nothing(done) is nothing


def test_time_outs_that_a_job_chose_open_no_breaker() -> None:
    at = Executors()
    at.fail(at.a, 45, result=TIMED_OUT, job=http(target="invoices", timeout_ms=1_000))
    assert at.open == {}


def test_a_short_time_out_leaves_the_row_of_failures_as_it_is() -> None:
    at = Executors()
    at.fail(at.a, 4)
    at.fail(at.a, 3, result=TIMED_OUT, job=http(timeout_ms=1_000))
    assert at.open == {}
    at.fail(at.a, 1)
    assert list(at.open) == [HOST]


def test_a_probe_with_a_short_time_out_lets_another_job_try() -> None:
    at = Executors()
    before = opened(at)
    assert len(at.run(at.b, http(due_at=at.stage.clock.now(), timeout_ms=1_000), TIMED_OUT).starts) == 1
    (after,) = at.open.values()
    assert (after.waits_ms, after.probe_until) == (before.waits_ms, None)
    assert breaker.may_probe(after, at.stage.clock.now())


# the probing job


def test_a_probe_whose_write_takes_a_second_is_carried_out() -> None:
    at = Executors()
    opened(at)
    real = at.stage.ledger

    def slow(verb: Any, before: Breaker | None, after: Breaker | None) -> Any:
        at.stage.clock.advance(1_000)
        return verb(before, after)

    view = at.stage.but(ledger=Wrapped(real, set_breaker=slow))
    circuits = BreakerRegistry(view, LaneStateCache(view))
    job = http(due_at=at.stage.clock.now())
    assert len(at.run(circuits, job).starts) == 1
    assert at.open == {} and at.stage.stored(job).completed_at is not None


def limited(at: Executors) -> Job:
    """Return a job whose named target has one concurrency slot, which another job has, and whose breaker is half-open."""
    at.stage.targets.put(None, NamedTarget("invoices", "http", NOW, NOW, "ada", "ada", concurrency=1))
    at.fail(at.a, 5, job=http(target="invoices"))
    (found,) = at.open.values()
    at.stage.clock.at = found.until + 1
    now = at.stage.clock.now()
    (other,) = at.stage.hand(http(target="invoices", due_at=now))
    busy = at.stage.claim(other)
    place = Place(busy.key, busy.fence, now, now + 600_000)
    assert at.stage.targets.use([UsageChange("invoices", first=True, takes=(place,))])[0].done is Written.YES
    return http(target="invoices", due_at=now)


def test_a_probe_that_waits_for_a_concurrency_slot_stays_the_probe() -> None:
    at = Executors()
    job = limited(at)
    (place,) = at.stage.targets.usages(["invoices"])["invoices"].places

    class Freed(ScriptedPool):
        """After 100 ms the other job leaves its slot."""

        def wait(self, until: int) -> list[Finished]:
            if not self.starts and self.clock.now() >= job.due_at + 100:
                at.stage.jobs.rows.pop(place.job, None)
            return super().wait(until)

    pool = Freed(at.stage.clock, result=WELL)
    at.stage.execute(at.stage.hand(job), pool=pool, pauses=at.b.watch, circuits=at.b)
    assert [start[0].id for start in pool.starts] == [job.id]
    assert at.open == {}


def test_a_probe_that_a_later_gate_requeues_is_given_up_at_once() -> None:
    at = Executors()
    job = limited(at)
    assert at.run(at.b, job).starts == []
    assert at.stage.stored(job).reason == "target invoices is at its limit"
    (after,) = at.open.values()
    assert after.probe_until is None and breaker.may_probe(after, at.stage.clock.now())


def test_a_probe_whose_lane_is_paused_while_it_waits_is_given_up() -> None:
    at = Executors()
    job = limited(at)

    class Pausing(ScriptedPool):
        def wait(self, until: int) -> list[Finished]:
            at.stage.ledger.set_lane_state(LaneState(Lane.ONE_TIME, paused_at=self.clock.now()))
            return super().wait(until)

    pool = Pausing(at.stage.clock)
    at.stage.execute(at.stage.hand(job), pool=pool, pauses=at.b.watch, circuits=at.b)
    assert pool.starts == [] and at.stage.stored(job).reason == "its lane is paused"
    (after,) = at.open.values()
    assert after.probe_until is None


def test_a_probe_of_an_executor_that_lost_its_lease_is_given_up() -> None:
    at = Executors()
    job = limited(at)

    class Frozen(ScriptedPool):
        def wait(self, until: int) -> list[Finished]:
            self.clock.advance(delivery.LOST_MS)
            return super().wait(until)

    taken = at.stage.hand(job)
    lanes = Wrapped(at.stage.lanes, extend=after_first(refuse))
    pool = Frozen(at.stage.clock)
    at.stage.execute(taken, pool=pool, pauses=at.b.watch, circuits=at.b, lanes=lanes)
    assert pool.starts == [] and pool.stopped
    (after,) = at.open.values()
    assert after.probe_until is None


def after_first(then: Any) -> Any:
    """For `Wrapped`: the first call is the real one, the others are `then`."""
    calls: list[int] = []

    def call(verb: Any, *args: Any) -> Any:
        calls.append(1)
        return verb(*args) if len(calls) == 1 else then(verb, *args)

    return call


def test_an_attempt_of_an_earlier_fence_is_not_the_probe() -> None:
    at = Executors()
    found = opened(at)
    job = http(due_at=at.stage.clock.now())
    assert at.a.probe(found, job) and at.a.probe(at.open[HOST], job)
    assert not at.a.probe(at.open[HOST], replace(job, fence=job.fence + 1))


@pytest.mark.parametrize(
    ("job", "ms"),
    [
        (http(), 30_000),
        (http(timeout_ms=5_000), 5_000),
        (a_job(type="http", payload=URL | {"timeout_seconds": 2.5}), 2_500),
        (a_job(type="lambda", payload={"function": "arn:f"}), 300_000),
    ],
)
def test_a_probe_of_a_dead_executor_ends_soon_after_its_call_would(job: Job, ms: int) -> None:
    assert breaker.probed(breaker.opened(HOST, NOW), job, NOW + 10_000).probe_until == NOW + 10_000 + ms + breaker.PROBE_MS


# how often waiting jobs are checked


def checks(timeout_ms: int, *, hours: int) -> list[int]:
    """Return how often one held job checks a breaker in each hour, while no probe ever gets an answer. Another job is always the probe."""
    now, found = NOW, breaker.opened(HOST, NOW)
    job = a_job(type="lambda", payload={"function": "arn:f"}, timeout_ms=timeout_ms)
    counts = [0] * hours
    for number in itertools.count():
        now = breaker.back_at(found, now, (number * 0.618) % 1)
        if now >= NOW + hours * 3_600_000:
            return counts
        counts[(now - NOW) // 3_600_000] += 1
        while True:  # the other jobs: the first of them tries half a second after the breaker's time is over
            if found.probe_until is None and now >= found.until + 500:
                found = breaker.probed(found, job, found.until + 500)
            elif found.probe_until is not None and now >= (failed := found.until + timeout_ms):
                found = breaker.opened(HOST, failed, found)
            else:
                break
    raise AssertionError


@pytest.mark.parametrize("timeout_ms", [30_000, 60_000, 300_000, 840_000])
def test_a_waiting_job_is_checked_at_most_40_times_an_hour(timeout_ms: int) -> None:
    first, *later = checks(timeout_ms, hours=3)
    assert first <= 40 and max(later) <= 20, (first, later)


def test_a_waiting_job_is_checked_when_the_probe_must_have_ended() -> None:
    half = breaker.probed(breaker.opened(HOST, NOW), http(), NOW + 10_000)
    for chance in (0.0, 0.5, 0.99):
        assert breaker.back_at(half, NOW + 10_100, chance) >= NOW + 10_100 + 5_000
        assert breaker.back_at(half, NOW + 40_000, chance) >= half.probe_until
        assert breaker.back_at(half, NOW + 40_000, chance) <= half.probe_until + 2_000


def test_a_job_that_would_expire_before_the_probe_ends_starts() -> None:
    at = Executors()
    found = opened(at)
    assert at.a.probe(found, http())
    job = http(due_at=at.stage.clock.now(), start_by=at.stage.clock.now() + 4_000)
    assert len(at.run(at.b, job, DEAD).starts) == 1
    assert at.stage.stored(job).charged == 1


# operations of administrators


def test_a_breaker_that_is_closed_by_hand_lets_jobs_start() -> None:
    at = Executors()
    opened(at)
    at.fail(at.a, 5, job=http(owner="bob"))
    assert [each.circuit.owner for each in not_closed(at.stage.ledger)] == ["bob", "ann"]
    due = at.stage.clock.now() + 1_000
    closed, others = close(HOST, at.stage.ledger, {})
    assert (closed, [each.circuit.owner for each in others]) == (HOST, ["bob"])
    assert [start for _, start in at.run(at.a, http(due_at=due)).starts] == [due]
    with pytest.raises(NotFound, match=r"is open; open: 'host .* of the owner bob \(Bob\)$"):
        close(HOST, at.stage.ledger, {"bob": "Bob"})


def test_closing_a_breaker_repeats_while_executors_change_it() -> None:
    at = Executors()
    found = opened(at)

    def probed(verb: Any, before: Breaker, after: None) -> Any:
        verb(before, breaker.probed(before, http(), NOW))
        return verb(before, after)

    assert close(found.circuit, Wrapped(at.stage.ledger, set_breaker=times(2, probed)), {}) == (found.circuit, [])
    assert at.open == {}
    at.stage.ledger.set_breaker(None, found)
    with pytest.raises(Unavailable):
        close(found.circuit, Wrapped(at.stage.ledger, set_breaker=probed), {})


def test_the_result_of_a_probe_changes_no_breaker_that_was_closed() -> None:
    at = Executors()
    found = opened(at)
    job = http(due_at=at.stage.clock.now())
    assert at.a.probe(found, job)
    close(HOST, at.stage.ledger, {})
    now = at.stage.clock.now()
    at.a.note(Finished(job, now, now, DEAD))
    assert at.open == {}
