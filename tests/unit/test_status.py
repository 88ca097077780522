"""The status: bounded reads, whose figures say where they were cut, and problems in the order of their severity."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.admission import breaker
from scheduler.admission.lane_state import PausedBy, pause
from scheduler.insight import status
from scheduler.insight.problems import Kind, Severity, Status
from scheduler.insight.project import project
from scheduler.model import lifecycle, slots
from scheduler.model.backlog import Backlog, Demand
from scheduler.model.breaker import Circuit
from scheduler.model.fingerprint import of_job
from scheduler.model.job import Cursor, Failure, FailureKind, Job, Lane, Result, RunInfo, Unit, UnitKey, changed
from scheduler.pipeline.lag import lag
from scheduler.sharing.fair_queue import REST
from scheduler.storage.aws.stream import JobChange
from scheduler.tasks import service
from tests.command_lines import is_command_line
from tests.conftest import NOW, a_job
from tests.contract import make
from tests.unit.stage import Wrapped
from tests.unit.task_stage import TaskStage

NAMES = {"ann": "Ann", "bob": "Bob"}
SHARDS = 2


@pytest.fixture
def stage() -> Iterator[TaskStage]:
    made = TaskStage()
    made.ledger.advance(None, Cursor(slots.minute_of(NOW), SHARDS))
    yield made


def of_all(stage: TaskStage) -> Status:
    return status.of_all(NAMES, stage)


def of_ann(stage: TaskStage) -> Status:
    return status.of_owner("ann", "Ann", stage)


def kinds(found: Status) -> list[Kind]:
    return [problem.kind for problem in found.problems]


def due(stage: TaskStage, number: int = 1, *, ms: int = 10_000, **fields: Any) -> list[Job]:
    """Store jobs of ann that have been due for `ms`, in the slots of the present minute."""
    made = [a_job(**({"scheduled_at": NOW - ms, "slot": f"{slots.minute_of(NOW)}#{each % SHARDS:02d}"} | fields)) for each in range(number)]
    stage.jobs.put_many(made)
    return made


def count(stage: TaskStage, *jobs: Job) -> None:
    """Count the ends of these jobs, as their stream does."""
    project("s", [JobChange(f"{number:040d}", None, job) for number, job in enumerate(jobs, 1)], stage)


def dead(stage: TaskStage, number: int, *, owner: str = "ann", ago_ms: int = 60_000, error: str = "HTTP 500", **fields: Any) -> list[Job]:
    made = []
    for _ in range(number):
        at = NOW - ago_ms
        job = make.claimed(
            make.job(owner=owner, at=at - 1_000, **({"type": "http", "payload": {"url": "https://api.example.com/x"}} | fields))
        )
        result = Result(failure=Failure(FailureKind.PERMANENT, error))
        failed = lifecycle.fail(job, at, started_at=at, result=result, reason="the error is permanent")
        made.append(changed(failed, fingerprint=of_job(failed)))
    stage.jobs.put_many(made)
    count(stage, *made)
    return made


def test_a_quiet_stage_is_well_and_its_status_reads_little(stage: TaskStage) -> None:
    read: list[str] = []
    stage.jobs = Wrapped(stage.jobs, letters=lambda verb, *rest, **more: read.append("letters"))
    for found in (of_all(stage), of_ann(stage)):
        assert not any([found.problems, found.late.count, found.waiting, found.failures, found.skipping])
    assert read == []


def test_jobs_that_run_or_have_ended_do_not_wait(stage: TaskStage) -> None:
    waits, runs, ended = due(stage, 3)
    stage.jobs.rows[runs.key] = make.claimed(runs)
    del stage.jobs.rows[ended.key]  # the index still shows it
    for found in (of_all(stage), of_ann(stage)):
        assert [(each.owner, each.count) for each in found.waiting] == [("ann", 1)]
        assert (found.late.count, found.late.longest_ms) == (1, 10_000)
        assert kinds(found) == [Kind.LATE_JOBS]
    assert waits.key in stage.jobs.rows


def test_late_jobs_are_a_problem_from_five_seconds_on(stage: TaskStage) -> None:
    due(stage, ms=4_000)
    assert (of_all(stage).late.count, kinds(of_all(stage))) == (1, [])
    due(stage, ms=61_000)
    (problem,) = of_all(stage).problems
    assert (problem.severity, problem.title) == (Severity.CRITICAL, "2 jobs are late, the longest by 61 s")


def test_late_jobs_of_a_flood_name_its_user_and_the_commands(stage: TaskStage) -> None:
    """Without a request that mends it: the operator decides whether the jobs are cancelled."""
    due(stage, 12, ms=9_000, owner="bob")
    due(stage, 5, ms=6_000)
    found = of_all(stage)
    (problem,) = found.problems
    assert problem.title == "17 jobs are late, the longest by 9 s; 12 of them are of Bob"
    assert (problem.remedy, problem.inspect) == (None, "punctual jobs list --status queued --owner Bob")
    assert [each.command for each in found.waiting] == [
        f"punctual jobs cancel --status queued --owner {name} --dry-run" for name in ("Bob", "Ann")
    ]
    own = of_ann(stage)
    assert own.problems[0].inspect == "punctual jobs list --status queued"
    assert [each.command for each in own.waiting] == ["punctual jobs cancel --status queued --dry-run"]


def test_every_problem_names_commands_that_exist(stage: TaskStage) -> None:
    stage.ledger.set_mark(99)
    stage.ledger.open_unit(Unit(UnitKey(slots.minute_of(NOW - 600_000), 0), 0, SHARDS - 1))
    pause([Lane.RETRY], None, stage)
    stage.ledger.set_breaker(None, breaker.opened(Circuit("host api.example.com", "ann"), NOW))
    due(stage)
    due(stage, owner="bob")
    stage.users.set_disabled("bob", NOW)
    dead(stage, 1)
    task = stage.create({"cron": "0 8 3 * *"}, name="report")
    service.deactivate(task.key, None, stage)
    skipped = [a_job(scheduled_at=NOW - number, origin=RunInfo(task.id, 1, NOW - number)) for number in (1, 2)]
    skipped = [lifecycle.skip(job, job.scheduled_at, reason="overlap: run x has not ended") for job in skipped]
    stage.jobs.put_many(skipped)
    count(stage, *skipped)
    seen = set[Kind]()
    of_other = status.of_owner("ann", "Ann & Co", stage, is_own=False)
    for found in (status.of_all(NAMES, stage, "prod"), of_ann(stage), of_other):
        seen |= set(kinds(found))
        of_problems = [command for each in found.problems for command in (each.inspect, each.remedy.command if each.remedy else None)]
        for command in [*of_problems, *(each.command for each in found.waiting)]:
            program, *words = shlex.split(command or "punctual status")
            if program == "punctual":
                is_command_line(words)
            else:
                assert found.everybody and [program, *words] == ["make", "doctor", "STAGE=prod"]
    assert seen == set(Kind), "a kind is not among these problems"
    whole_stage = ("punctual doctor", "punctual system resume", "punctual system close-breaker 'host api.example.com'")
    for each in of_other.problems:
        commands = [each.inspect, each.remedy.command if each.remedy else each.inspect]
        assert all("--owner 'Ann & Co'" in command or command.startswith(whole_stage) for command in commands), commands
        if each.remedy is not None and "/system/" not in each.remedy.path:
            assert each.remedy.path.endswith("?owner=ann")
    assert [each.command for each in of_other.waiting] == ["punctual jobs cancel --status queued --owner 'Ann & Co' --dry-run"]


def test_late_jobs_are_found_in_every_place_where_they_may_wait(stage: TaskStage) -> None:
    stage.ledger.open_unit(Unit(UnitKey(slots.OVERFLOW, 0), 0, SHARDS - 1))
    stage.ledger.open_unit(Unit(UnitKey(slots.room_of("one-time"), 0), 0, SHARDS - 1))
    stage.ledger.open_unit(Unit(UnitKey(slots.minute_of(NOW - 180_000), 0), 0, SHARDS - 1))
    stage.targets.join_queue("invoices", "ann", NOW)
    places = [
        f"{slots.OVERFLOW}#01",
        f"{slots.room_of('one-time')}#00",
        f"{slots.minute_of(NOW - 180_000)}#01",
        f"{slots.first_safe_minute(NOW)}#01",
        slots.queue("invoices", "ann")[2],
    ]
    for place in places:
        due(stage, slot=place)
    assert of_all(stage).late.count == len(places)
    assert of_all(stage).unexplained.count == len(places) - 1, "the job of the target queue waits for its limit"


def test_a_paused_lane_has_its_jobs_its_author_and_its_reason(stage: TaskStage) -> None:
    pause([Lane.ONE_TIME], "moving house", stage, PausedBy("u1", "olga"))
    due(stage, 3, ms=70_000)
    due(stage, lane=Lane.RETRY, owner="bob", ms=1_500)
    found = of_all(stage)
    (problem,) = found.problems
    assert (problem.title, problem.severity) == ("The lane one-time is paused: 3 jobs wait", Severity.CRITICAL)
    assert (problem.by, problem.by_name, problem.reason, problem.lane) == ("u1", "olga", "moving house", "one-time")
    assert [(lane.waiting, lane.at_least) for lane in found.lanes] == [(3, False), (0, False), (1, False)]
    assert [(each.owner, each.count) for each in found.waiting] == [("ann", 3), ("bob", 1)]
    assert found.late.count == 4, "late are all jobs that wait, whatever explains it"


def test_jobs_in_a_room_without_a_unit_are_counted(stage: TaskStage) -> None:
    pause([Lane.RETRY], None, stage)
    due(stage, lane=Lane.RETRY, slot=f"{slots.room_of('retry')}#01")
    assert [lane.waiting for lane in of_all(stage).lanes] == [0, 0, 1]
    assert [lane.waiting for lane in of_ann(stage).lanes] == [0, 0, 1]


def test_a_pause_that_no_job_waits_for_is_a_warning(stage: TaskStage) -> None:
    pause([Lane.RETRY], None, stage)
    assert [(each.title, each.severity) for each in of_ann(stage).problems] == [
        ("The lane retry is paused: no job waits", Severity.WARNING)
    ]


def test_a_read_that_is_cut_says_so(stage: TaskStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "FIRST", 5)
    monkeypatch.setattr(status, "MORE", 20)
    due(stage, 30)
    found = of_all(stage)
    assert (found.late.count, found.late.at_least) == (20, True)
    assert found.problems[0].title == "at least 20 jobs are late, the longest by 10 s; 20 of them are of Ann"
    monkeypatch.setattr(status, "MORE", 1_000)
    assert (of_all(stage).late.count, of_all(stage).late.at_least) == (30, False)
    monkeypatch.setattr(status, "CHECKED", 10)
    assert (of_all(stage).late.count, of_all(stage).late.at_least) == (10, True)


def test_jobs_that_wait_behind_many_running_ones_are_seen(stage: TaskStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "CHECKED", 10)
    for job in due(stage, 12, ms=9_000):
        stage.jobs.rows[job.key] = make.claimed(job)
    due(stage, 8, owner="bob", ms=3_000)
    assert [(each.owner, each.count) for each in of_all(stage).waiting] == [("bob", 5)]
    users = {"bob": Demand(1.0, 2_000), REST: Demand(3.0, 7)}
    stage.ledger.report_backlog(Backlog(UnitKey(slots.OVERFLOW, 0), Lane.ONE_TIME, NOW, 0, 0.0, users))
    assert [(each.owner, each.count) for each in of_all(stage).waiting] == [("bob", 2_000)]
    assert [lane.waiting for lane in of_all(stage).lanes] == [2_007, 0, 0], "with those of users without a name"


def test_the_flood_of_another_user_hides_none_of_ones_own_jobs(stage: TaskStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "FIRST", 5)
    monkeypatch.setattr(status, "MORE", 0)
    due(stage, 100, owner="bob", ms=20_000)
    due(stage, 2)
    assert (of_ann(stage).late.count, of_ann(stage).late.at_least) == (2, False)
    assert {each.owner for each in of_all(stage).waiting} == {"bob"}


def test_a_user_sees_the_jobs_of_a_paused_lane_behind_many_newer_ones(stage: TaskStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "RECENT", 5)
    pause([Lane.RETRY], None, stage)
    stage.ledger.open_unit(Unit(UnitKey(slots.room_of("retry"), 0), 0, SHARDS - 1))
    due(stage, lane=Lane.RETRY, ms=3_600_000, slot=f"{slots.room_of('retry')}#00")
    due(stage, lane=Lane.RETRY, owner="bob", ms=3_600_000, slot=f"{slots.room_of('retry')}#00")
    for job in due(stage, 9, ms=5_000):
        stage.jobs.rows[job.key] = make.succeeded(make.claimed(job), NOW)
    assert [(each.owner, each.count) for each in of_ann(stage).waiting] == [("ann", 1)]


def test_a_disabled_user_explains_the_jobs_that_wait(stage: TaskStage) -> None:
    due(stage, 2, owner="bob")
    stage.users.set_disabled("bob", NOW)
    (problem,) = of_all(stage).problems
    assert (problem.kind, problem.title) == (Kind.USER_DISABLED, "The user Bob is disabled: 2 jobs wait")
    assert problem.remedy is not None and problem.remedy.command == "punctual users enable Bob"


def test_a_minute_that_is_not_done_is_the_first_problem(stage: TaskStage) -> None:
    stage.ledger.open_unit(Unit(UnitKey(slots.minute_of(NOW - 600_000), 0), 0, SHARDS - 1))
    dead(stage, 1)
    assert kinds(of_all(stage)) == [Kind.FAILURES], "a new stage closes the minutes before its first tick"
    stage.ledger.set_mark(99)
    found = of_all(stage)
    assert kinds(found) == [Kind.SCHEDULER_BEHIND, Kind.FAILURES] and found.lag == lag(stage.ledger, NOW)
    assert found.problems[0].since == NOW - found.lag.ms


def test_a_breaker_names_its_circuit_and_its_remedy(stage: TaskStage) -> None:
    stage.ledger.set_breaker(None, breaker.opened(Circuit("host api.example.com", "ann"), NOW))
    stage.ledger.set_breaker(None, breaker.opened(Circuit("host b.example.com", "bob"), NOW))
    stage.ledger.set_breaker(None, breaker.opened(Circuit("target invoices"), NOW))
    assert {each.circuit for each in of_all(stage).problems} == {"host api.example.com", "host b.example.com", "target invoices"}
    own = {each.circuit: each for each in of_ann(stage).problems}
    assert own.keys() == {"host api.example.com", "target invoices"}
    remedy = own["host api.example.com"].remedy
    assert remedy is not None and remedy.body == {"circuit": "host api.example.com", "owner": "ann"}
    assert remedy.command == "punctual system close-breaker 'host api.example.com' --owner Ann"


def test_failures_of_the_last_hour_are_grouped_by_owner_and_error(stage: TaskStage) -> None:
    dead(stage, 2)
    dead(stage, 3, owner="bob", error="HTTP 404", type="sqs", payload={"queue": "arn:aws:sqs:eu-west-1:123456789012:orders"})
    dead(stage, 1, error="HTTP 401", ago_ms=2 * status.HOUR)
    found = of_all(stage)
    shown = [(each.what, each.owner, each.count, each.error) for each in found.failures]
    assert shown == [("orders", "bob", 3, "HTTP 404"), ("api.example.com", "ann", 2, "HTTP 500")]
    print_of_bob, print_of_ann = (each.fingerprint for each in found.failures)
    remedies = [each.remedy for each in found.problems]
    assert [remedy and remedy.path for remedy in remedies] == [f"/api/v1/dead-letters/redrive?owner={owner}" for owner in ("bob", "ann")]
    assert [remedy and remedy.body for remedy in remedies] == [{"fingerprint": print_of_bob}, {"fingerprint": print_of_ann}]
    (own,) = of_ann(stage).problems
    assert (own.title, own.since) == ("2 jobs failed in the last hour: api.example.com, HTTP 500", NOW - 60_000)
    assert own.remedy is not None and own.remedy.path == "/api/v1/dead-letters/redrive"
    assert own.remedy.command == f"punctual dead-letters redrive --fingerprint {print_of_ann}"


def test_failures_of_two_hosts_with_one_error_are_two_groups(stage: TaskStage) -> None:
    dead(stage, 3, payload={"url": "https://a.example.com/x"}, ago_ms=50_000)
    dead(stage, 1, payload={"url": "https://b.example.com/y"}, ago_ms=60_000)
    dead(stage, 1, payload={"url": "https://b.example.com/y"}, ago_ms=40_000)
    for found in (of_all(stage), of_ann(stage)):
        shown = [(each.what, each.count, each.first_at, each.last_at) for each in found.failures]
        assert shown == [("a.example.com", 3, NOW - 50_000, NOW - 50_000), ("b.example.com", 2, NOW - 60_000, NOW - 40_000)]
        told = {each.what: (each.title, each.since, each.last_at) for each in found.problems}
        assert told == {
            "a.example.com": ("3 jobs failed in the last hour: a.example.com, HTTP 500", NOW - 50_000, NOW - 50_000),
            "b.example.com": ("2 jobs failed in the last hour: b.example.com, HTTP 500", NOW - 60_000, NOW - 40_000),
        }
        labels = {each.remedy and each.remedy.label for each in found.problems}
        assert labels == {"Run all 5 of this error again, of 2 places"}, "a redrive takes the whole error"


def test_failures_beyond_the_read_ones_count_for_the_most_frequent_place(stage: TaskStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "PLACES", 3)
    dead(stage, 2, payload={"url": "https://a.example.com/x"}, ago_ms=1_000)
    dead(stage, 1, payload={"url": "https://b.example.com/y"}, ago_ms=2_000)
    dead(stage, 4, payload={"url": "https://c.example.com/y"}, ago_ms=3_000)
    assert [(each.what, each.count) for each in of_all(stage).failures] == [("a.example.com", 6), ("b.example.com", 1)]


def test_a_task_that_skips_half_of_its_last_runs_is_found(stage: TaskStage) -> None:
    task = stage.create({"cron": "* * * * *"}, name="report")
    other = stage.create({"cron": "* * * * *"}, name="fine")
    ended = []
    for number in range(6):
        for of, skips in ((task, number % 2 == 0), (other, number == 0)):
            at = NOW - (number + 1) * 60_000
            job = a_job(scheduled_at=at, origin=RunInfo(of.id, 1, at))
            done = lifecycle.skip(job, at, reason="overlap: run x has not ended")
            ended.append(done if skips else make.succeeded(make.claimed(job), at))
    stage.jobs.put_many(ended)
    count(stage, *ended)
    for found in (of_all(stage), of_ann(stage)):
        assert [(each.task, each.task_name, each.skipped, each.of) for each in found.skipping] == [(task.id, "report", 3, 6)]
        (problem,) = found.problems
        assert problem.title == "The task report skipped 3 of its last 6 runs"
        assert problem.remedy is not None and problem.remedy.body == {"overlap": "queue_one"}


def test_a_user_sees_their_paused_tasks(stage: TaskStage) -> None:
    task = stage.create({"cron": "0 8 3 * *"}, name="report")
    service.deactivate(task.key, "on holiday", stage)
    (problem,) = of_ann(stage).problems
    assert (problem.kind, problem.severity, problem.reason) == (Kind.TASK_PAUSED, Severity.INFO, "on holiday")
    assert problem.remedy is not None and problem.remedy.command == f"punctual tasks resume {task.id}"
    assert of_all(stage).problems == []
