"""Jobs of a limited target: when they start, when they are requeued, and how their concurrency slots are freed."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission import limits
from scheduler.admission.limits import Place, TargetUsage, UsageChange
from scheduler.admission.target_cache import KNOWN_MS, TargetCache
from scheduler.model import lifecycle
from scheduler.model.errors import Unavailable
from scheduler.model.job import Failure, FailureKind, Job, JobKey, Result
from scheduler.storage.memory.targets import MemoryTargets
from scheduler.storage.ports import ChangeResult, Written
from scheduler.targets.named_target import NamedTarget
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times


class Limited(Stage):
    """A stage with one named target."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.targets: Any = MemoryTargets()
        self.targets.put(None, NamedTarget("t", "log", NOW, NOW, "ada", "ada", **fields))

    def run(self, *jobs: Job, pool: ScriptedPool | None = None, **ports: Any) -> ScriptedPool:
        pool = pool or ScriptedPool(self.clock)
        self.execute(self.hand(*jobs), pool=pool, **ports)
        return pool

    @property
    def usage(self) -> TargetUsage:
        return self.targets.usages(["t"]).get("t", TargetUsage("t"))  # type: ignore[no-any-return]


def some(count: int, **fields: Any) -> list[Job]:
    return [a_job(target="t", **fields) for _ in range(count)]


def offsets(pool: ScriptedPool) -> list[int]:
    return [at - NOW for _, at in pool.starts]


def test_jobs_of_a_limited_target_start_one_step_apart() -> None:
    stage = Limited(rate=20.0)
    assert offsets(stage.run(*some(5))) == [0, 50, 100, 150, 200]


@pytest.mark.parametrize("concurrency", [None, 5])
def test_rate_is_reserved_ahead_for_a_start_on_the_millisecond(concurrency: int | None) -> None:
    stage = Limited(rate=20.0, concurrency=concurrency)
    reads: list[int] = []
    stage.targets = Wrapped(stage.targets, usages=lambda verb, *args: (reads.append(stage.clock.now()), verb(*args))[1])
    assert offsets(stage.run(*some(2, due_at=NOW + 3_000))) == [3_000, 3_050]
    assert NOW + 2_000 < reads[0] < NOW + 2_900


def test_job_with_a_long_wait_is_requeued_and_starts_at_its_new_instant() -> None:
    stage = Limited(rate=0.5)
    first, second = some(2)
    assert offsets(stage.run(first, second)) == [0]
    back = stage.stored(second)
    assert (back.due_at, back.reserved_at, back.fence, back.charged) == (NOW + 2_000, NOW + 2_000, 2, 0)
    assert back.reason == "target t is at its limit"
    stage.clock.at = NOW + 1_000
    line = stage.usage.next_us
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.receive(), pool=pool)
    assert offsets(pool) == [2_000]
    assert stage.usage.next_us == line, "it had its ticket, and took no other"


def test_rescheduled_job_loses_its_reservation() -> None:
    stage = Limited(rate=0.1)
    stage.run(*some(2))
    moved = replace(a_job(target="t", due_at=NOW + 500), reserved_at=NOW + 400, fence=2)
    stage.run(moved)
    assert stage.stored(moved).due_at == NOW + 20_000, "behind the one that waits"


def test_concurrency_is_limited_and_each_end_frees_a_slot() -> None:
    stage = Limited(concurrency=2)
    pool = ScriptedPool(stage.clock, takes=300)
    stage.run(*some(4), pool=pool)
    spans = [(at, at + 300) for _, at in pool.starts]
    assert max(sum(a <= at < b for a, b in spans) for at, _ in spans) == 2
    assert len(spans) == 4 and offsets(pool)[:2] == [0, 0]
    assert stage.usage.places == () and stage.usage.took_ms > limits.USUAL_MS


@pytest.mark.parametrize(
    "result", [Result(failure=Failure(FailureKind.RETRYABLE, "no")), Result(failure=Failure(FailureKind.PERMANENT, "no"))]
)
def test_failed_attempt_frees_its_concurrency_slot(result: Result) -> None:
    stage = Limited(concurrency=1)
    stage.run(*some(1), pool=ScriptedPool(stage.clock, result=result))
    assert stage.usage.places == ()


def full_of(stage: Limited, *jobs: Job, since: int = NOW) -> None:
    places = tuple(Place(job.key, job.fence, since, since + 600_000) for job in jobs)
    stage.targets.use([UsageChange("t", first=True, takes=places)])


def test_job_that_waits_too_long_is_requeued_without_using_an_attempt() -> None:
    stage = Limited(concurrency=1)
    (other,) = stage.hand(a_job())
    running = stage.claim(other)
    full_of(stage, running)
    (job,) = some(1)
    assert stage.run(job).starts == []
    back = stage.stored(job)
    assert NOW + 2_000 <= stage.clock.now() < NOW + 2_500
    assert back.due_at >= stage.clock.now() + 900 and back.reserved_at == back.due_at
    assert (back.charged, back.claim, lifecycle.is_open(back)) == (0, None, True)


@pytest.mark.parametrize("missing", [False, True])
def test_slot_of_a_job_that_no_longer_runs_is_taken_over_at_once(missing: bool) -> None:
    stage = Limited(concurrency=1)
    ended = replace(a_job(), slot=None, completed_at=NOW)
    if not missing:
        stage.jobs.put(ended)
    full_of(stage, ended)
    (job,) = some(1)
    assert offsets(stage.run(job)) == [0]


def test_next_job_discovers_a_slot_that_could_not_be_freed() -> None:
    stage = Limited(concurrency=1)
    real = stage.targets
    stage.targets = Wrapped(real, use=lambda verb, uses: [ChangeResult(Written.REFUSED, None)] if uses[0].drops else verb(uses))
    stage.run(*some(1))
    assert len(real.usages(["t"])["t"].places) == 1
    stage.targets = real
    stage.clock.advance(1_000)
    (job,) = some(1)
    assert len(stage.run(job).starts) == 1


def test_slot_is_freed_although_the_table_refuses_at_first() -> None:
    stage = Limited(concurrency=1)
    refusals = iter([ChangeResult(Written.REFUSED, None)])
    real = stage.targets
    stage.targets = Wrapped(real, use=lambda verb, uses: [next(refusals, None) or verb(uses)[0]] if uses[0].drops else verb(uses))
    stage.run(*some(1))
    assert next(refusals, None) is None and real.usages(["t"])["t"].places == ()


def test_slot_duration_is_measured_from_end_to_end() -> None:
    stage = Limited(concurrency=1)
    stage.run(*some(3), pool=ScriptedPool(stage.clock, takes=300))
    assert stage.usage.took_ms == 300


def test_one_of_two_simultaneous_executors_checks_again() -> None:
    stage = Limited(concurrency=1)
    real = stage.targets

    def lose(verb: Any, changes: Any) -> Any:
        full_of(stage, claimed)
        return verb(changes)

    (other,) = stage.hand(a_job())
    claimed = stage.claim(other)
    stage.targets = Wrapped(real, use=times(1, lose))
    full = real
    assert stage.run(*some(1)).starts == []
    assert [place.job for place in full.usages(["t"])["t"].places] == [claimed.key]


def test_jobs_without_limits_read_once_and_start_on_time() -> None:
    stage = Limited()
    reads: list[Any] = []
    stage.targets = Wrapped(stage.targets, targets=lambda verb, *args: (reads.append(args), verb(*args))[1], usages=refuse, use=refuse)
    assert offsets(stage.run(*some(5))) == [0] * 5
    assert len(reads) == 1, "of a whole batch, one read"
    stage.targets = Wrapped(stage.targets, targets=refuse)
    assert len(stage.run(a_job()).starts) == 1, "a job without a named target reads nothing"


def test_no_job_of_a_limited_target_starts_while_the_table_refuses() -> None:
    stage = Limited(rate=5.0)
    stage.targets = Wrapped(stage.targets, usages=refuse)
    (job,) = some(1)
    assert stage.run(job).starts == []
    assert stage.stored(job).fence == 2


def test_job_that_expires_while_it_waits_is_skipped() -> None:
    stage = Limited(rate=0.1)
    stage.run(*some(1))
    (job,) = some(1, start_by=NOW + 5_000)
    stage.run(job)
    stage.clock.at = NOW + 10_000
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.receive(), pool=pool)
    assert pool.starts == [] and stage.stored(job).skipped_at is not None


def test_targets_are_read_once_a_second_and_kept_while_refused() -> None:
    stage = Limited()
    first = stage.targets.targets(["t"])["t"]
    known = TargetCache(stage)
    assert known.find("t") == first and known.find("u") is None
    second = replace(first, version=2, enabled=False)
    stage.targets.put(first, second)
    stage.clock.advance(KNOWN_MS - 1)
    assert known.find("t") == first
    stage.clock.advance(1)
    assert known.find("t") == second
    known.ports = stage.but(targets=Wrapped(stage.targets, targets=refuse))
    stage.clock.advance(60_000)
    assert known.find("t") == second
    with pytest.raises(Unavailable):
        known.find("v")


def test_a_lease_is_as_long_as_the_job_may_take() -> None:
    stage = Limited(concurrency=1)
    seen: list[Place] = []

    class Looking(ScriptedPool):
        def start(self, job: Job) -> None:
            seen.extend(stage.usage.places)
            super().start(job)

    (job,) = some(1, timeout_ms=7_000)
    stage.run(job, pool=Looking(stage.clock))
    assert seen == [Place(JobKey(job.owner, job.id), 1, NOW, NOW + 7_000 + limits.LEASE_MS)]


def test_simultaneous_executors_get_different_starts() -> None:
    stage = Limited(rate=20.0)
    (first, second), pools = some(2), [ScriptedPool(stage.clock), ScriptedPool(stage.clock)]

    def meanwhile(verb: Any, names: Any) -> Any:
        read = verb(names)
        stage.run(second, pool=pools[1])
        return read

    calm, stage.targets = stage.targets, Wrapped(stage.targets, usages=times(1, meanwhile))
    asking, stage.targets = stage.targets, calm
    stage.execute(stage.hand(first), pool=pools[0], targets=asking)
    assert offsets(pools[1]) + offsets(pools[0]) == [0, 50]


def test_reservations_of_two_executors_are_one_step_apart() -> None:
    stage = Limited(rate=0.5)
    stage.run(*some(2))
    first, second = some(2)

    def meanwhile(verb: Any, names: Any) -> Any:
        read = verb(names)
        stage.run(second)
        return read

    calm, stage.targets = stage.targets, Wrapped(stage.targets, usages=times(1, meanwhile))
    asking, stage.targets = stage.targets, calm
    stage.execute(stage.hand(first), pool=ScriptedPool(stage.clock), targets=asking)
    assert [stage.stored(job).due_at - NOW for job in (second, first)] == [4_000, 6_000]
