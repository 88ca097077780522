"""Jobs of a limited target: when they start, when they wait in its queue, and how their concurrency slots are freed."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission import limits
from scheduler.admission.limit_gate import TRIED, WAIT_MS
from scheduler.admission.target_cache import KNOWN_MS, TargetCache
from scheduler.callbacks.reports import report
from scheduler.callbacks.tokens import AttemptKey
from scheduler.model import lifecycle, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Claim, Failure, FailureKind, Job, JobKey, Lane, Result, TaskHead
from scheduler.model.named_target import NamedTarget
from scheduler.model.spec import CallBack
from scheduler.model.target_usage import USUAL_MS, Place, TargetUsage, UsageChange
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.memory.targets import MemoryTargets
from scheduler.storage.ports import Change, ChangeResult, Found, Written
from scheduler.targets.named_target import ITEMS, item_name, share_of, slots_beside
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


def test_job_with_a_long_wait_goes_into_the_queue_of_its_target() -> None:
    stage = Limited(rate=0.5)
    first, second = some(2)
    assert offsets(stage.run(first, second)) == [0]
    back = stage.stored(second)
    assert back.slot == slots.queued("t", "ann", second.id) and (back.due_at, back.fence, back.charged) == (NOW, 2, 0)
    assert back.reason == "target t is at its limit" and stage.waiting(Lane.ONE_TIME) == []
    assert stage.asked == [WorkItem(WorkKind.RELEASE, "t")]
    (user,) = stage.targets.queue("t")[1]
    assert (user.owner, user.joined_at, user.waiting) == ("ann", NOW, True)


def test_a_crowd_joins_its_queue_with_one_write() -> None:
    stage = Limited(rate=0.5)
    joined: list[Any] = []
    stage.targets = Wrapped(stage.targets, join_queue=lambda verb, *args: (joined.append(args), verb(*args))[1])
    stage.run(*some(10))
    assert len(joined) == 1 and len(stage.asked) == 1


def test_job_whose_owner_waits_in_the_queue_does_not_overtake() -> None:
    stage = Limited(rate=20.0)
    stage.run(*some(1))
    stage.targets.use([UsageChange("t", queued_until=NOW + 10_000)])
    stage.targets.join_queue("t", "ann", NOW)
    stage.clock.advance(1_000)
    behind, other = a_job(target="t", due_at=stage.clock.now()), a_job(target="t", due_at=stage.clock.now(), owner="eve")
    pool = stage.run(behind, other)
    assert [job.owner for job, _ in pool.starts] == ["eve"] and slots.is_queued(stage.stored(behind).slot or "")
    assert stage.asked == [], "a release step comes soon"


def test_jobs_of_a_free_target_read_no_queue() -> None:
    stage = Limited(rate=20.0, concurrency=5)
    stage.targets = Wrapped(stage.targets, queue_users=refuse, join_queue=refuse, queue=refuse)
    assert len(stage.run(*some(5)).starts) == 5


def test_edited_job_loses_its_release() -> None:
    before = replace(a_job(target="t"), released_at=NOW, fence=2)
    assert lifecycle.reschedule(before, slot=before.slot or "", fields={"due_at": NOW + 5}).released_at is None


def test_job_that_reports_by_call_back_keeps_its_slot_until_then() -> None:
    stage = Limited(concurrency=1)
    (job,) = some(1, callback=CallBack())
    stage.run(job)
    (place,) = stage.usage.places
    assert lifecycle.waits(stage.stored(job)) and place.until >= NOW + CallBack().max_ms
    assert stage.run(*some(1)).starts == []
    report(AttemptKey(job.key, 1), Result("done"), stage)
    assert stage.usage.places == () and stage.asked == [WorkItem(WorkKind.RELEASE, "t")]


def test_concurrency_is_limited_and_each_end_frees_a_slot() -> None:
    stage = Limited(concurrency=2)
    pool = ScriptedPool(stage.clock, takes=300)
    stage.run(*some(4), pool=pool)
    spans = [(at, at + 300) for _, at in pool.starts]
    assert max(sum(a <= at < b for a, b in spans) for at, _ in spans) == 2
    assert len(spans) == 4 and offsets(pool)[:2] == [0, 0]
    assert stage.usage.places == () and stage.usage.took_ms > USUAL_MS


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
    assert NOW + WAIT_MS <= stage.clock.now() < NOW + WAIT_MS + 500
    assert slots.is_queued(back.slot or "") and back.due_at == NOW
    assert (back.charged, back.claim, lifecycle.is_open(back)) == (0, None, True)


def test_jobs_that_wait_together_leave_for_the_queue_one_by_one() -> None:
    stage = Limited(concurrency=60, beside=slots_beside(None, 60))
    for number in range(ITEMS + 1):
        share = share_of(stage.targets.rows["t"], number) or 0
        taken = tuple(Place(stage.claim(stage.hand(a_job())[0]).key, 1, NOW, NOW + 600_000) for _ in range(share))
        stage.targets.use([UsageChange(item_name("t", number), first=True, takes=taken)])
    left: list[int] = []

    def change(verb: Any, changes: list[Change]) -> Any:
        left.extend(stage.clock.now() - NOW for each in changes if slots.is_queued(each.after.slot or ""))
        return verb(changes)

    stage.jobs = Wrapped(stage.jobs, change=change)
    stage.run(*some(10))
    assert len(left) == 10 and min(left) < 1_000 and max(left) > 1_500


def test_a_released_job_waits_the_whole_time_for_its_slot() -> None:
    stage = Limited(concurrency=1)
    (other,) = stage.hand(a_job())
    full_of(stage, stage.claim(other))
    jobs = [replace(job, released_at=NOW) for job in some(5)]
    assert stage.run(*jobs).starts == [] and stage.clock.now() >= NOW + WAIT_MS
    assert all(slots.is_queued(stage.stored(job).slot or "") for job in jobs)


def test_the_end_of_a_long_job_requests_a_release_step() -> None:
    for took_ms, requests in ((5_000, 1), (50, 0)):
        stage = Limited(concurrency=1)
        stage.targets.use([UsageChange("t", first=True, queued_until=NOW + 60_000, took_ms=took_ms)])
        stage.run(*some(1), pool=ScriptedPool(stage.clock, takes=took_ms))
        assert len(stage.asked) == requests, "steps come each second where jobs end quickly"


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
    assert KNOWN_MS + limits.NEAR_MS <= 3_000, "a lower limit applies to each start that is more than three seconds later"
    known.ports = stage.but(targets=Wrapped(stage.targets, targets=refuse))
    stage.clock.advance(60_000)
    assert known.find("t") == second
    with pytest.raises(Unavailable):
        known.find("v")


def test_a_lease_is_as_long_as_the_job_may_take() -> None:
    stage = Limited(concurrency=1)
    seen: list[Place] = []

    class Looking(ScriptedPool):
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
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


def test_slot_of_an_unreadable_job_stays_taken() -> None:
    stage = Limited(concurrency=1)
    ended = replace(a_job(), slot=None, completed_at=NOW)
    stage.jobs.put(ended)
    stage.jobs.unreadable[ended.key] = "its format is 2"
    full_of(stage, ended)
    assert stage.run(*some(1)).starts == []


def test_an_unreadable_target_is_not_a_missing_one() -> None:
    stage = Limited()
    cache, real = TargetCache(stage), stage.targets
    known = cache.find("t")
    stage.targets = Wrapped(real, targets=lambda verb, names: Found({}, dict.fromkeys(names, "its format is 2")))
    stage.clock.advance(KNOWN_MS)
    assert cache.find("t") == known is not None
    with pytest.raises(Unavailable):
        TargetCache(stage).find("t")


# A target whose concurrency slots lie over several items


class Spread(Limited):
    """A stage whose target has so many slots that they lie over several items. `changes` has every change of an item."""

    def __init__(self, concurrency: int = 100, **fields: Any) -> None:
        super().__init__(concurrency=concurrency, beside=slots_beside(None, concurrency), **fields)
        self.changes: list[UsageChange] = []
        self.reads: list[list[str]] = []
        real = self.targets

        def use(verb: Any, uses: list[UsageChange]) -> Any:
            self.changes += uses
            return verb(uses)

        def usages(verb: Any, names: list[str]) -> Any:
            self.reads.append(names)
            return verb(names)

        self.targets = Wrapped(real, use=use, usages=usages)

    def places(self) -> list[Place]:
        names = [item_name("t", number) for number in range(ITEMS + 1)]
        return [place for usage in self.targets._port.usages(names).values() for place in usage.places]

    def fill(self, but: int = 0) -> None:
        """All slots but some of the last item are taken by jobs that run."""
        target = self.targets.targets(["t"])["t"]
        for number in range(ITEMS + 1):
            count = (share_of(target, number) or 0) - (but if number == ITEMS else 0)
            running = [self.running() for _ in range(count)]
            places = tuple(Place(job.key, job.fence, NOW, NOW + 600_000) for job in running)
            self.targets._port.use([UsageChange(item_name("t", number), first=True, takes=places)])

    def running(self) -> Job:
        job = a_job(claim=Claim("m", "n", NOW, True))
        self.jobs.put(job)
        return job


def test_a_slot_of_a_large_target_is_taken_and_freed_in_one_small_item() -> None:
    stage = Spread(500)
    assert offsets(stage.run(*some(10))) == [0] * 10
    assert stage.places() == [] and len(stage.reads) == 1 and len(stage.reads[0]) == 1 + TRIED
    assert {change.target for change in stage.changes} <= {item_name("t", number) for number in range(ITEMS + 1)}
    assert all(change.most is None or change.most <= 20 for change in stage.changes)


def test_a_full_large_target_starts_no_job_and_the_wait_reads_little() -> None:
    stage = Spread(100)
    stage.fill()
    real, looked = stage.jobs, list[int]()

    def get_many(verb: Any, keys: list[JobKey]) -> Any:
        looked.append(len(keys))
        return verb(keys)

    (job,) = some(1)
    batch = stage.hand(job)
    stage.jobs = Wrapped(real, get_many=get_many)
    pool = ScriptedPool(stage.clock)
    stage.execute(batch, pool=pool)
    assert pool.starts == [] and len(stage.places()) == 100 and stage.stored(job).charged == 0
    items = sum(map(len, stage.reads)) + sum(looked)
    assert items <= 70 * (stage.clock.now() - NOW) / 1_000 + 60
    assert len({name for names in stage.reads for name in names}) == 1 + ITEMS, "it has looked into every item"


def test_the_one_free_slot_of_a_large_target_is_found() -> None:
    stage = Spread(100)
    stage.fill(but=1)
    assert len(stage.run(*some(2), pool=ScriptedPool(stage.clock, takes=10_000)).starts) == 1


def test_a_lost_slot_of_a_large_target_is_taken_over() -> None:
    stage = Spread(60)
    stage.fill()
    for job in list(stage.jobs.rows.values()):
        stage.jobs._store(job, replace(job, slot=None, claim=None, completed_at=NOW))
    assert len(stage.run(*some(1)).starts) == 1


def test_slots_stored_in_the_first_item_count_until_their_jobs_end() -> None:
    stage = Limited(concurrency=120)
    running = [stage.claim(item) for _ in range(6) for item in stage.hand(*(a_job() for _ in range(10)))]
    full_of(stage, *running)
    before = stage.targets.targets(["t"])["t"]
    after = replace(before, version=2, beside=slots_beside(before, 120))
    assert (after.concurrency, share_of(after, 0)) == (120, 50) and stage.targets.put(before, after)
    assert stage.run(*some(1)).starts == [], "sixty run in the first item, whose share is fifty"
    stage.targets.use([UsageChange("t", drops=stage.usage.places[:10])])
    assert len(stage.run(a_job(target="t", due_at=stage.clock.now())).starts) == 1


def test_a_dead_job_in_an_overfull_first_item_is_found() -> None:
    stage = Limited(concurrency=60)
    ended = [replace(a_job(), slot=None, completed_at=NOW) for _ in range(60)]
    for job in ended:
        stage.jobs.put(job)
    full_of(stage, *ended)
    before = stage.targets.targets(["t"])["t"]
    stage.targets.put(before, replace(before, version=2, beside=slots_beside(before, 60)))
    assert len(stage.run(*some(1)).starts) == 1


def test_rate_of_a_large_target_stays_exact() -> None:
    stage = Spread(100, rate=20.0)
    assert offsets(stage.run(*some(8))) == [number * 50 for number in range(8)]


def test_a_start_that_missed_its_slot_keeps_its_instant() -> None:
    stage = Spread(60, rate=20.0)
    refused = iter([ChangeResult(Written.REFUSED, None)])
    real = stage.targets

    def use(verb: Any, uses: list[UsageChange]) -> Any:
        return [next(refused, None) or answer for answer in verb(uses)] if uses[0].target != "t" else verb(uses)

    stage.targets = Wrapped(real, use=use)
    assert offsets(stage.run(*some(3))) == [0, 50, 100]
    assert stage.targets._port._port.usages(["t"])["t"].start_us == (NOW + 150) * 1_000, "no start was assigned twice"
