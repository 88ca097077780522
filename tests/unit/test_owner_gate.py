"""Jobs of disabled users wait, and start after the user is enabled again; jobs of deleted users are cancelled."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from scheduler.accounts import user_admin
from scheduler.admission.lane_state import pause
from scheduler.admission.owner_gate import FRESH_MS, STALE_MS, WHY_DELETED, WHY_DISABLED, BarredOwners
from scheduler.model import lifecycle, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor, Job, Lane, RequeueCause, Status
from scheduler.model.rules import Rules
from scheduler.pipeline.verdicts import ROOM_AGAIN_MS
from scheduler.storage.ports import Barred
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times
from tests.unit.task_stage import TaskStage

MINUTE = 60_000


def a_stage() -> Stage:
    """A stage with the disabled user ann."""
    stage = Stage(rules=Rules(shards=1))
    stage.ledger.advance(None, Cursor(slots.minute_of(NOW), 1))
    give_name(stage)
    user_admin.disable("ann", "me", stage)
    return stage


def room(job: Job) -> str:
    return slots.slot(slots.room_of_owner(job.owner), job.id, 1)


def run(stage: Stage, *jobs: Job, ports: Mapping[str, Any] | None = None, **process: Any) -> list[str]:
    """The ids of the jobs that start when an executor gets these."""
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(*jobs), pool=pool, **process, **(ports or {}))
    return [started.id for started, _ in pool.starts]


def go_on(stage: Stage, until: int) -> list[str]:
    """Execute the work and the messages of the one-time lane up to an instant; returns the ids of the jobs that start."""
    pool = ScriptedPool(stage.clock)
    while stage.clock.now() < until:
        stage.work_off()
        stage.clock.advance(1_000)
        if batch := stage.receive():
            stage.execute(batch, pool=pool)
    return [started.id for started, _ in pool.starts]


@pytest.mark.parametrize("ahead", [0, 3_000], ids=["due now", "due soon"])
def test_a_job_of_a_disabled_user_waits_in_the_room_and_is_not_charged(ahead: int) -> None:
    stage = a_stage()
    job = a_job(owner="ann", due_at=NOW + ahead)
    assert run(stage, job) == [] and stage.waiting(Lane.ONE_TIME) == []
    back = stage.stored(job)
    assert lifecycle.is_open(back) and (back.charged, back.claim, back.reason) == (0, None, WHY_DISABLED)
    assert (back.requeue_cause, back.due_at, back.slot) == (RequeueCause.PAUSED, job.due_at, room(job))
    (unit,) = stage.ledger.overflow_units()
    assert back.slot in unit.slots and unit.handed_out_at is None


def test_it_starts_after_the_user_is_enabled_again() -> None:
    stage = a_stage()
    job = a_job(owner="ann")
    assert run(stage, job) == [] and go_on(stage, NOW + 3 * MINUTE) == []
    user_admin.enable("ann", stage)
    assert go_on(stage, NOW + 3 * MINUTE + 5_000) == [job.id]
    assert lifecycle.state(stage.stored(job)) is Status.SUCCEEDED and stage.stored(job).charged == 1


def test_the_next_tick_wakes_its_room_if_the_message_of_the_enable_is_lost() -> None:
    stage = a_stage()
    job = a_job(owner="ann")
    run(stage, job)
    stage.users.set_disabled("ann", None)
    assert go_on(stage, NOW + MINUTE) == []
    stage.tick()
    assert go_on(stage, NOW + MINUTE + 5_000) == [job.id]


@pytest.mark.long
def test_nothing_looks_at_a_waiting_job_for_days() -> None:
    stage = a_stage()
    job = a_job(owner="ann")
    run(stage, job)
    waits = stage.stored(job)
    stage.jobs = Wrapped(stage.jobs, due=lambda verb, slot, **_: pytest.fail("read it") if "user/" in slot else verb(slot))
    for hour in range(48):
        stage.clock.at = NOW + hour * 60 * MINUTE
        stage.tick()
        stage.work.queued = {id: each for id, each in stage.work.queued.items() if slots.owner_of_room(each.item.of)}
        stage.work_off()
    assert stage.stored(job) == waits


@pytest.mark.parametrize("end", ["enabled", "deleted"])
def test_an_enable_or_deletion_while_a_job_is_moved_is_noticed(end: str) -> None:
    """The dispatcher of the room may have gone by then."""
    stage, job = a_stage(), a_job(owner="ann")

    def change(verb: Any, changes: Any) -> Any:
        stage.users.set_disabled("ann", None) if end == "enabled" else stage.users.delete("ann", NOW)
        return verb(changes)

    assert run(stage, job, ports={"jobs": Wrapped(stage.jobs, change=times(1, change))}) == []
    assert stage.waiting(Lane.ONE_TIME) == [job.id]
    assert go_on(stage, NOW + 5_000) == ([job.id] if end == "enabled" else [])
    assert lifecycle.state(stage.stored(job)) is (Status.SUCCEEDED if end == "enabled" else Status.CANCELLED)


def test_an_old_read_sends_no_job_away() -> None:
    stage, job = a_stage(), a_job(owner="ann")
    owners = BarredOwners(stage)
    owners.refresh()
    stage.users.set_disabled("ann", None)
    assert run(stage, job, owners=owners) == [job.id]


def test_a_job_whose_room_cannot_be_opened_is_checked_again_soon() -> None:
    """Nobody would notice it there."""
    stage, job = a_stage(), a_job(owner="ann")
    assert run(stage, job, ports={"ledger": Wrapped(stage.ledger, unit=refuse)}) == []
    back = stage.stored(job)
    assert not slots.is_always_open(back.slot or "") and back.due_at == NOW + ROOM_AGAIN_MS
    assert go_on(stage, NOW + 2 * ROOM_AGAIN_MS) == [] and stage.stored(job).slot == room(job)


def test_jobs_in_the_room_are_cancelled_when_their_owner_is_deleted() -> None:
    stage, jobs = a_stage(), [a_job(owner="ann", due_at=NOW - number) for number in range(5)]
    run(stage, *jobs)
    give_name(stage)
    user_admin.delete("ann", "me", stage)
    assert go_on(stage, NOW + 5_000) == []
    assert {(lifecycle.state(stage.stored(job)), stage.stored(job).reason) for job in jobs} == {(Status.CANCELLED, WHY_DELETED)}


def test_jobs_leave_the_room_of_a_user_except_those_of_a_paused_lane() -> None:
    stage = a_stage()
    jobs = [a_job(owner="ann", due_at=NOW - number) for number in range(5)]
    late = a_job(owner="ann", lane=Lane.RETRY, fence=2, charged=1)
    run(stage, *jobs)
    stage.execute(stage.hand(late), lane=Lane.RETRY)
    assert stage.stored(late).slot == room(late)
    pause([Lane.RETRY], None, stage)
    user_admin.enable("ann", stage)
    assert go_on(stage, NOW + 10_000) == [job.id for job in reversed(jobs)]
    assert stage.stored(late).slot == slots.waiting(Lane.RETRY, late.id, stage.rules.shards)


def test_a_user_who_is_disabled_again_keeps_the_jobs_in_the_room() -> None:
    stage, job = a_stage(), a_job(owner="ann")
    run(stage, job)
    stage.users.set_disabled("ann", None)
    stage.tick()
    stage.users.set_disabled("ann", NOW)
    assert go_on(stage, NOW + 5 * MINUTE) == [] and stage.stored(job).slot == room(job)
    user_admin.enable("ann", stage)
    assert go_on(stage, NOW + 5 * MINUTE + 5_000) == [job.id]


def test_the_unit_of_an_empty_room_is_closed() -> None:
    stage, job = a_stage(), a_job(owner="ann")
    run(stage, job)
    user_admin.enable("ann", stage)
    assert go_on(stage, NOW + 5_000) == [job.id]
    for minute in range(1, 20):
        stage.clock.at = NOW + minute * MINUTE
        stage.tick()
        go_on(stage, NOW + minute * MINUTE + 5_000)
    assert stage.ledger.overflow_units() == []
    stage.users.set_disabled("ann", stage.clock.now())
    other = a_job(owner="ann", due_at=stage.clock.now())
    run(stage, other)
    assert stage.stored(other).slot == room(other) and len(stage.ledger.overflow_units()) == 1


def test_jobs_of_other_users_start_on_time() -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    pool = ScriptedPool(stage.clock)
    mine, other = a_job(owner="ann", due_at=NOW + 2_000), a_job(owner="ben", due_at=NOW + 2_000)
    stage.execute(stage.hand(mine, other), pool=pool)
    assert [(job.id, at) for job, at in pool.starts] == [(other.id, NOW + 2_000)]


def test_a_run_of_a_disabled_user_is_skipped_by_its_misfire_rule() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"}, owner="ann")
    stage.users.set_disabled("ann", NOW)
    run_at, following = stage.times(task)[:2]
    stage.clock.at = run_at
    (batch,) = [stage.receive(Lane.RECURRING)]
    pool = ScriptedPool(stage.clock)
    stage.execute(batch, pool=pool, lane=Lane.RECURRING)
    first = stage.runs(task)[0]
    assert pool.starts == [] and lifecycle.is_open(first)
    while lifecycle.is_open(first := stage.runs(task)[0]) and stage.clock.now() < NOW + 10 * MINUTE:
        stage.clock.advance(1_000)
        if batch := stage.receive(Lane.RECURRING):
            stage.execute(batch, pool=pool, lane=Lane.RECURRING)
    assert pool.starts == [] and lifecycle.state(first) is Status.SKIPPED and (first.reason or "").startswith("misfire")
    assert (first.skipped_at or 0) >= following


def test_a_job_that_expires_while_its_owner_is_disabled_is_skipped() -> None:
    stage = a_stage()
    job = a_job(owner="ann", start_by=NOW + 3_600_000)
    run(stage, job)
    stage.clock.advance(3_600_000)
    user_admin.enable("ann", stage)
    assert go_on(stage, NOW + 3_600_000 + 5_000) == []
    assert lifecycle.state(stage.stored(job)) is Status.SKIPPED and (stage.stored(job).reason or "").startswith("expired")


def test_a_job_that_expires_soon_is_skipped_while_its_owner_is_disabled() -> None:
    """The runs of a task with a short interval would gather in the room."""
    stage = a_stage()
    job = a_job(owner="ann", start_by=NOW + 30_000)
    run(stage, job)
    assert go_on(stage, NOW + MINUTE) == []
    assert (lifecycle.state(stage.stored(job)), stage.stored(job).fence) == (Status.SKIPPED, 2)


def test_a_retry_of_a_disabled_user_waits_with_its_attempts() -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    job = a_job(owner="ann", lane=Lane.RETRY, fence=2, charged=1)
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(job), pool=pool, lane=Lane.RETRY)
    back = stage.stored(job)
    assert pool.starts == [] and (back.charged, back.lane) == (1, Lane.RETRY) and lifecycle.is_open(back)


def test_a_job_of_a_deleted_user_is_cancelled() -> None:
    stage = Stage()
    stage.users.delete("ann", NOW)
    job = a_job(owner="ann")
    assert run(stage, job) == []
    assert lifecycle.state(stage.stored(job)) is Status.CANCELLED and stage.stored(job).reason == WHY_DELETED


def test_busy_process_reads_the_users_every_ten_seconds_not_per_job() -> None:
    stage, reads = Stage(), list[int]()

    def counted(verb: Any) -> Barred:
        reads.append(stage.clock.now())
        return verb()  # type: ignore[no-any-return]

    stage.users = Wrapped(stage.users, barred=counted)
    owners = BarredOwners(stage)
    for second in range(60):
        stage.clock.at = NOW + second * 1_000
        assert len(run(stage, a_job(owner=f"user{second}", due_at=stage.clock.at), owners=owners)) == 1
    assert len(reads) == 60_000 // FRESH_MS


def test_idle_process_learns_of_a_disable_before_it_starts_a_job() -> None:
    stage = Stage()
    owners = BarredOwners(stage)
    assert len(run(stage, a_job(owner="ann"), owners=owners)) == 1
    stage.users.set_disabled("ann", NOW)
    assert len(run(stage, a_job(owner="ann"), owners=owners)) == 1, "a read is valid for a while"
    stage.clock.advance(STALE_MS)
    assert run(stage, a_job(owner="ann", due_at=stage.clock.now()), owners=owners) == []
    assert STALE_MS + stage.rules.hold_ms < MINUTE


@pytest.mark.parametrize("trouble", [Unavailable(), RuntimeError("no grant")])
def test_a_users_table_that_refuses_stops_no_job(trouble: Exception) -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    owners = BarredOwners(stage)
    owners.refresh()

    def raising(verb: Any) -> Barred:
        raise trouble

    stage.users = Wrapped(stage.users, barred=raising)
    stage.clock.advance(10 * MINUTE)
    now = stage.clock.now()
    assert len(run(stage, a_job(owner="ben", due_at=now), owners=owners)) == 1
    assert run(stage, a_job(owner="ann", due_at=now), owners=owners) == [], "the cached users are kept"
    assert len(run(stage, a_job(owner="ann", due_at=now))) == 1, "a new process has no users"


# a process that ends at any point


class Ends(BaseException):
    """The process ends. Not an Exception, so that no service can catch it."""


class Fragile(Stage):
    """A stage with the disabled user ann, on which the process ends at the call `fatal` of a service, before or after its effect.

    Just before the call `enabled`, the user is enabled by another process, whose message is lost.
    """

    PORTS = ("jobs", "ledger", "users", "lanes", "work")

    def __init__(self, fatal: int | None = None, *, after: bool = False, enabled: int | None = None) -> None:
        super().__init__(rules=Rules(shards=1))
        self.ledger.advance(None, Cursor(slots.minute_of(NOW), 1))
        give_name(self)
        self.calls, self.fatal, self.after, self.enabled = 0, fatal, after, enabled
        self.plain = self.but()
        user_admin.disable("ann", "me", self)

    def break_off(self) -> None:
        for name in self.PORTS:
            setattr(self, name, Counting(getattr(self, name), self._call))

    def _call(self, effect: Any) -> Any:
        self.calls += 1
        number = self.calls
        if number == self.enabled:
            self.plain.users.set_disabled("ann", None)
        if number == self.fatal and not self.after:
            raise Ends
        answer = effect()
        if number == self.fatal:
            raise Ends
        return answer

    def go_on(self, seconds: int) -> None:
        """Let all services go on for this time."""
        pool, until = ScriptedPool(self.clock), self.clock.now() + seconds * 1_000
        while self.clock.now() < until:
            self.try_(self.work_off)
            self.clock.advance(1_000)
            if self.clock.now() // 1_000 % 60 == 30:
                self.try_(self.tick)
            for lane in (Lane.ONE_TIME, Lane.RETRY):
                if batch := self.plain.lanes.receive(lane, 10, self.clock.now()):
                    self.try_(lambda batch=batch, lane=lane: self.execute(batch, pool=pool, lane=lane))  # type: ignore[misc]

    def state(self, job: Job) -> Status:
        found = self.plain.jobs.get(job.key)
        return lifecycle.status(found, self.clock.now())

    @staticmethod
    def try_(step: Any) -> None:
        try:
            step()
        except Ends:
            pass


class Counting:
    """A port whose calls go through `call`."""

    def __init__(self, port: Any, call: Any) -> None:
        self._port, self._call = port, call

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._port, name)
        return (lambda *args, **kwargs: self._call(lambda: verb(*args, **kwargs))) if callable(verb) else verb


def moves(stage: Fragile, job: Job) -> None:
    """An executor gets the job of the disabled user."""
    batch = stage.hand(job)
    stage.break_off()
    stage.try_(lambda: stage.execute(batch))


def give_name(stage: Stage) -> None:
    """Make a person of the owner, whose state stays."""
    stage.users.put(replace(stage.users.profiles(["ann"])["ann"], name="ann"))


def finish(stage: Fragile, end: str) -> None:
    """An administrator enables or deletes the user, repeatedly until that is stored."""
    give_name(stage.plain)
    if end == "enabled":
        stage.try_(lambda: user_admin.enable("ann", stage))
        stage.plain.users.set_disabled("ann", None)
        return
    stage.try_(lambda: user_admin.delete("ann", "me", stage))
    stage.plain.users.delete("ann", NOW)


def test_a_job_starts_soon_after_an_enable_wherever_its_executor_ended() -> None:
    moves(whole := Fragile(), a_job(owner="ann"))
    assert whole.calls > 8
    for enabled in range(1, whole.calls + 2):
        for fatal in range(enabled, whole.calls + 2):
            stage, job = Fragile(fatal, after=True, enabled=enabled), a_job(owner="ann")
            moves(stage, job)
            if enabled == whole.calls + 1:
                stage.plain.users.set_disabled("ann", None)
            stage.go_on(100)
            assert stage.state(job) is Status.SUCCEEDED, (enabled, fatal)


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("end", ["enabled", "deleted"])
def test_a_waiting_job_goes_on_wherever_a_process_ends(end: str, after: bool) -> None:
    for fatal in range(1, 60):
        stage, job = Fragile(fatal, after=after), a_job(owner="ann")
        stage.execute(stage.hand(job))
        assert stage.stored(job).slot == room(job)
        stage.break_off()
        finish(stage, end)
        stage.go_on(75)
        assert stage.state(job) is (Status.SUCCEEDED if end == "enabled" else Status.CANCELLED), fatal
