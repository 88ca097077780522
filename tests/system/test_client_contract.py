"""The contract of the client: each operation of the API, on a stage in memory and on the deployed stack."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from punctual import ApiError, Conflict, InvalidRequest, NotAllowed, NotAuthenticated, NotFound

from docs_build.openapi import PUBLISHED
from tests.system.contract_places import InMemory, OnStack, Place, operation_of

Scene = Callable[[Place], None]
SCENES: dict[str, Scene] = {}
LATER = 3_600
ELSEWHERE = {
    "refreshToken",  # the token of a memory never expires
    *("getPing", "postPing", "getPingSignal", "postPingSignal"),  # they need no client: tests/lambdas/test_api_monitors.py
    *("getSignOn", "completeSignOn", "answerChallenge"),  # tests/system/test_sso.py
    *("getSecondFactor", "beginSecondFactor", "confirmSecondFactor", "removeSecondFactor"),
    *("listIntakeDeadLetters", "getIntakeDeadLetter", "retryIntakeDeadLetter", "deleteIntakeDeadLetter"),  # a memory has no queue
}
FLAVORS = ("sync", "async")


def scene(function: Scene) -> Scene:
    SCENES[function.__name__] = function
    return function


def ended(place: Place, id: str) -> Any:
    return place.until(lambda: (found := place.do(lambda c: c.jobs.get(id))).ended and found)


@scene
def a_job_is_created_changed_listed_and_runs(place: Place) -> None:
    tag, path = place.name("life"), place.name("/ok/life")
    job = place.do(lambda c: c.jobs.create(http=place.url(path), delay=LATER, tags=[tag]))
    place.until(lambda: [one.id for one in place.do(lambda c: c.jobs.list(upcoming=True, tag=tag))] == [job.id])
    changed = place.do(lambda c: c.jobs.update(job.id, delay=1))
    assert changed.scheduled_at < job.scheduled_at
    done = ended(place, job.id)
    assert done.succeeded and done.raw["response"]["status"] == 200 and done.start_delay_ms >= 0
    assert place.called(path)["Punctual-Job-Id"] == job.id
    assert "HTTP 200" in place.do(lambda c: c.jobs.log(job.id, 1)).text
    place.until(lambda: [one.id for one in place.do(lambda c: c.jobs.list(tag=tag, status="succeeded"))] == [job.id])


@scene
def a_monitor_is_put_paused_resumed_and_deleted(place: Place) -> None:
    key = place.name("monitor")
    made = place.do(lambda c: c.monitors.put(key, "Sync", period_seconds=300))
    assert made.state == "new" and made.ping_path is not None
    assert place.do(lambda c: c.monitors.get(key)).ping_path == made.ping_path
    assert key in [each.key for each in place.do(lambda c: c.monitors.list())]
    assert place.do(lambda c: c.monitors.pause(key)).state == "paused" and place.do(lambda c: c.monitors.resume(key)).state == "new"
    assert [event.kind for event in place.do(lambda c: c.monitors.history(key))] == ["new", "paused"]
    assert place.do(lambda c: c.monitors.renew_token(key)).ping_path not in (None, made.ping_path)
    place.do(lambda c: c.monitors.delete(key))
    with pytest.raises(NotFound):
        place.do(lambda c: c.monitors.get(key))


@scene
def a_message_is_the_output(place: Place) -> None:
    job = place.do(lambda c: c.jobs.create(message="hello"))
    assert ended(place, job.id).output == "hello" and place.do(lambda c: c.jobs.output(job.id, 1)).text == "hello"


@scene
def a_job_that_fails_is_tried_again_and_by_hand(place: Place) -> None:
    job = place.do(lambda c: c.jobs.create(http=place.url(place.name("/fail-once/again"))))
    assert [attempt["outcome"] for attempt in ended(place, job.id).raw["attempts"]] == ["failed", "succeeded"]
    gone = place.do(lambda c: c.jobs.create(http=place.url(place.name("/fail-once/by-hand")), max_attempts=1))
    assert ended(place, gone.id).status == "failed"
    place.do(lambda c: c.jobs.retry(gone.id))
    place.until(lambda: place.do(lambda c: c.jobs.get(gone.id)).succeeded)


@scene
def a_batch_is_accepted_one_by_one_and_cancelled_together(place: Place) -> None:
    tag = place.name("batch")
    items = [{"message": f"{number}", "delay": LATER, "tags": [tag]} for number in range(4)]
    result = place.do(lambda c: c.jobs.create_many([*items, {"message": "", "delay": LATER}]))
    assert (result.accepted, result.refused) == (4, 1)
    first = result.results[0].job
    assert place.do(lambda c: c.jobs.cancel(first.id)).status == "cancelled"
    operation = place.do(lambda c: c.jobs.cancel_many(tag=tag, rate=1))
    assert operation.id in [one.id for one in place.do(lambda c: c.operations.list(limit=5))]
    place.do(lambda c: c.operations.abort(operation.id))
    place.until(lambda: place.do(lambda c: c.operations.get(operation.id)).ended)
    operation = place.do(lambda c: c.jobs.cancel_many(tag=tag, rate=100))
    place.until(lambda: place.do(lambda c: c.operations.get(operation.id)).ended)
    place.until(lambda: {one.status for one in place.do(lambda c: c.jobs.list(upcoming=True, tag=tag))} <= {"cancelled"})


@scene
def a_group_starts_its_call_backs_when_all_its_jobs_have_ended(place: Place) -> None:
    path = place.name("/status/404/member")
    jobs = [{"message": "a"}, {"http": place.url(path), "max_attempts": 1}]
    made = place.do(lambda c: c.groups.create(jobs, name=place.name("g"), on_complete={"message": "done"}, on_success={"message": "well"}))
    assert (made.group.state, made.group.jobs, len(made.jobs)) == ("sealed", 2, 2)
    place.until(lambda: place.do(lambda c: c.groups.get(made.id)).ended)
    group = place.do(lambda c: c.groups.get(made.id))
    assert not group.succeeded and (group.counts.succeeded, group.counts.failed) == (1, 1)
    assert ended(place, group.callback("on_complete")).output == "done" and group.callback("on_success") is None
    assert [job.group_member for job in place.do(lambda c: c.groups.jobs(made.id, status="failed"))] == [1]
    assert made.id in [each.id for each in place.do(lambda c: c.groups.list())]


@scene
def jobs_join_a_group_until_it_is_sealed(place: Place) -> None:
    made = place.do(lambda c: c.groups.create(seal_within=3_600, on_success={"message": "{{group.id}}"}))
    task = place.do(lambda c: c.tasks.create("Hourly", message="m", rate="1 hours"))
    joined = [
        place.do(lambda c: c.jobs.create(message="one", group=made.id)).id,
        *[one.id for one in place.do(lambda c: c.jobs.create_many([{"message": "many", "group": made.id}] * 2)).all_jobs()],
        place.do(lambda c: c.tasks.run(task.id, group=made.id)).id,
    ]
    assert [job.id for job in place.do(lambda c: c.groups.jobs(made.id))] == joined
    assert not place.do(lambda c: c.groups.get(made.id)).ended
    place.do(lambda c: c.groups.seal(made.id))
    with pytest.raises(Conflict, match="is sealed"):
        place.do(lambda c: c.jobs.create(message="late", group=made.id))
    place.until(lambda: place.do(lambda c: c.groups.get(made.id)).succeeded)
    called = place.do(lambda c: c.groups.wait(made.id)).callback("on_success")
    assert ended(place, called).output == made.id
    place.do(lambda c: c.tasks.delete(task.id))


@scene
def a_group_is_cancelled(place: Place) -> None:
    made = place.do(lambda c: c.groups.create([{"message": f"{number}", "delay": LATER} for number in range(3)]))
    assert place.do(lambda c: c.groups.cancel(made.id)).cancelled_at
    place.until(lambda: place.do(lambda c: c.groups.get(made.id)).ended)
    assert place.do(lambda c: c.groups.get(made.id)).counts.cancelled == 3


@scene
def ended_jobs_are_replayed_one_by_one_and_together(place: Place) -> None:
    tag, path = place.name("replay"), place.name("/ok/replay")
    job = place.do(lambda c: c.jobs.create(http=place.url(place.name("/ok/first")), tags=[tag]))
    ahead = place.do(lambda c: c.jobs.create(message="m", delay=LATER))
    with pytest.raises(Conflict):
        place.do(lambda c: c.jobs.replay(ahead.id))
    ended(place, job.id)
    new = place.do(lambda c: c.jobs.replay(job.id, payload={"method": "GET", "url": place.url(path)}, delay=1))
    assert new.replay_of == job.id != new.id and ended(place, new.id).succeeded
    assert place.called(path)["Punctual-Job-Id"] == new.id
    place.until(lambda: place.do(lambda c: c.jobs.estimate_replay(tag=tag)).matched == 2)
    operation = place.do(lambda c: c.jobs.replay_many(tag=tag, limit=1))
    place.until(lambda: place.do(lambda c: c.operations.get(operation.id)).ended)
    place.until(lambda: [one.replay_of for one in place.do(lambda c: c.jobs.list(tag=tag))].count(job.id) == 2)


@scene
def a_changed_calendar_replaces_the_runs_of_its_tasks(place: Place) -> None:
    name, year = place.name("cal"), datetime.now(UTC).year + 1
    days = [date(year, 3, 1) + timedelta(days=n) for n in range(2)]
    made = place.do(lambda c: c.calendars.put(name, days[:1], source="typed", covers_until=date(year, 12, 31)))
    assert (made.outcome, made.operation, made.dates) == ("created", None, (days[0],))
    schedule = {"cron": "0 12 1,2,3 3 *", "exclude": [name]}
    task = place.do(lambda c: c.tasks.create("Spring", message="m", **schedule))
    assert task.next_run.local_at.date() == days[1] and task.warnings, "its tenth run is in a later year"
    assert place.do(lambda c: c.schedules.preview(**schedule, count=1))[0].local_at == task.next_run.local_at
    changed = place.do(lambda c: c.calendars.put(name, days))
    place.until(lambda: place.do(lambda c: c.operations.get(changed.operation.id)).ended)
    assert place.do(lambda c: c.operations.get(changed.operation.id)).done == 1
    assert place.do(lambda c: c.tasks.get(task.id)).next_run.local_at.date() == date(year, 3, 3)
    with pytest.raises(Conflict, match=task.id):
        place.do(lambda c: c.calendars.delete(name))
    assert name in [one.name for one in place.do(lambda c: c.calendars.list())]
    place.do(lambda c: c.tasks.delete(task.id))
    assert place.do(lambda c: c.calendars.get(name)).size == 2
    place.do(lambda c: c.calendars.delete(name))


@scene
def a_key_names_one_job(place: Place) -> None:
    key = place.name("order")
    job = place.do(lambda c: c.jobs.create(message="m", key=key, delay=LATER))
    kept = place.do(lambda c: c.jobs.create(message="n", key=key, on_conflict="keep", delay=60))
    assert kept.id == job.id == place.do(lambda c: c.jobs.get(key=key)).id
    with pytest.raises(Conflict):
        place.do(lambda c: c.jobs.create(message="m", key=key, idempotency_key=place.name("mine")))
    assert place.do(lambda c: c.jobs.cancel(key=key)).status == "cancelled"


@scene
def errors_are_exceptions(place: Place) -> None:
    with pytest.raises(NotFound):
        place.do(lambda c: c.jobs.get("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    with pytest.raises(InvalidRequest, match="max_attempts"):
        place.do(lambda c: c.jobs.create(message="m", max_attempts=0))
    with pytest.raises(InvalidRequest, match="time_zone"):
        place.do(lambda c: c.schedules.preview(cron="0 2 * * *", time_zone="Europe/Nowhere"))


@scene
def a_task_is_created_changed_run_and_deleted(place: Place) -> None:
    tag, key = place.name("task"), place.name("nightly")
    task = place.do(lambda c: c.tasks.create("Hourly", message="m", rate="1 hours", tags=[tag]))
    assert place.do(lambda c: c.tasks.get(task.id)).name == "Hourly" and len(place.do(lambda c: c.tasks.next(task.id, 3))) == 3
    assert place.do(lambda c: c.tasks.update(task.id, name="New")).name == "New"
    assert place.do(lambda c: c.tasks.replace(task.id, name="Newer", message="n", cron="30 2 * * *", tags=[tag])).name == "Newer"
    assert place.do(lambda c: c.tasks.pause(task.id, reason="incident")).status == "inactive"
    assert place.do(lambda c: c.tasks.resume(task.id)).status == "active"
    run = place.do(lambda c: c.tasks.run(task.id))
    assert ended(place, run.id).output == "n"
    place.until(lambda: run.id in [one.id for one in place.do(lambda c: c.tasks.jobs(task.id))])
    put = place.do(lambda c: c.tasks.put(key, name="Nightly", message="m", rate="10 minutes", tags=[tag]))
    assert place.do(lambda c: c.tasks.get(key=key)).id == put.task.id
    place.until(lambda: {one.id for one in place.do(lambda c: c.tasks.list(tag=tag))} == {task.id, put.task.id})
    for verb in ("pause_many", "resume_many", "delete_many"):
        operation = place.do(lambda c, verb=verb: getattr(c.tasks, verb)(tag=tag))  # type: ignore[misc]
        place.until(lambda id=operation.id: place.do(lambda c: c.operations.get(id)).ended)  # type: ignore[misc]
    place.until(lambda: place.do(lambda c: c.tasks.list(tag=tag)) == [])
    last = place.do(lambda c: c.tasks.create("Last", message="m", rate="1 hours"))
    place.do(lambda c: c.tasks.delete(last.id))
    with pytest.raises(NotFound):
        place.do(lambda c: c.tasks.get(last.id))


@scene
def a_schedule_is_previewed_over_the_change_of_the_clocks(place: Place) -> None:
    preview = place.do(lambda c: c.schedules.preview(cron="30 2 * * *", time_zone="Europe/Berlin", count=3))
    assert len(preview) == 3
    assert len(place.do(lambda c: c.schedules.preview(cron="0 * * * *", count=1_200, days=366))) == 1_200
    year = place.do(lambda c: c.schedules.calendar(cron="30 2 * * *", time_zone="Europe/Berlin"))
    assert [one.clock_change for one in year.days].count(True) == 2


@scene
def the_year_of_a_task_and_crowded_minutes_are_read(place: Place) -> None:
    tasks = [place.do(lambda c: c.tasks.create("Yearly", message="m", cron="0 12 * * *")) for _ in range(2)]
    year = place.do(lambda c: c.tasks.calendar(tasks[0].id, days=30))
    assert sum(one.planned for one in year.days) in (29, 30)
    found = place.do(lambda c: c.tasks.crowded(limit=100))
    assert any({one.id for one in tasks} <= {one.id for one in minute.tasks} for minute in found.minutes)
    for task in tasks:
        place.do(lambda c, id=task.id: c.tasks.delete(id))  # type: ignore[misc]


@scene
def dead_letters_are_listed_and_redriven(place: Place) -> None:
    path = place.name("/status/500/dead")
    job = place.do(lambda c: c.jobs.create(http=place.url(path), max_attempts=1))
    ended(place, job.id)
    group = place.until(lambda: next((one for one in place.do(lambda c: c.dead_letters.list()) if one.count), None))
    place.until(lambda: place.do(lambda c: c.dead_letters.jobs(group.fingerprint)))
    redrive = place.do(lambda c: c.dead_letters.redrive(fingerprint=group.fingerprint, rate=1))
    place.until(lambda: place.do(lambda c: c.dead_letters.get(redrive.id)).ended)
    with pytest.raises(Conflict):
        place.do(lambda c: c.dead_letters.abort(redrive.id))


@scene
def a_worker_reports_by_call_back(place: Place) -> None:
    path = place.name("/ok/worker")
    job = place.do(lambda c: c.jobs.create(http=place.url(path), callback={"lease_seconds": 30}))
    with place.worker(place.called(path)) as work:
        work.progress(0.5, "half")
        work.heartbeat()
        assert place.do(lambda c: c.jobs.get(job.id)).raw["progress"] == {"fraction": 0.5, "message": "half"}
        work.complete({"rows": 42})
    assert ended(place, job.id).output == '{"rows": 42}'
    path = place.name("/ok/failing")
    job = place.do(lambda c: c.jobs.create(http=place.url(path), callback={"lease_seconds": 30}, max_attempts=1))
    with place.worker(place.called(path)) as work:
        work.fail("out of paper")
    assert "out of paper" in str(ended(place, job.id).raw["attempts"])


@scene
def a_receiver_is_stored_tested_and_deleted(place: Place) -> None:
    name = place.name("ops")
    made = place.do(lambda c: c.receivers.put(name, "slack", place.url(place.name("/ok/secret"))))
    assert "secret" not in made.address and place.do(lambda c: c.receivers.get(name)) == made
    assert place.do(lambda c: c.receivers.test(name)).name == name
    task = place.do(lambda c: c.tasks.create(name, message="m", cron="0 0 1 1 *", notifications={"receivers": [name]}))
    with pytest.raises(Conflict, match=task.id):
        place.do(lambda c: c.receivers.delete(name))
    place.do(lambda c: c.tasks.delete(task.id))
    place.do(lambda c: c.receivers.delete(name))
    assert name not in [each.name for each in place.do(lambda c: c.receivers.list())]


@scene
def default_alerts_are_replaced(place: Place) -> None:
    told = {"webhooks": [{"url": place.url(place.name("/ok/told")), "format": "slack"}]}
    task = place.do(lambda c: c.tasks.create("Watched", message="m", cron="0 0 1 1 *", alerts={}, notifications=told))
    assert task.alerts is not None and not task.alerts.missed, "none, and not the default ones"
    made = place.do(lambda c: c.receivers.put_default_alerts(late_after_seconds=300, missed=True))
    assert (made.late_after_seconds, made.max_duration_seconds, made.missed) == (300, None, True)
    place.until(lambda: place.do(lambda c: c.operations.get(made.operation.id)).ended)
    read = place.do(lambda c: c.receivers.default_alerts())
    assert (read.late_after_seconds, read.updated_at) == (300, made.updated_at)
    assert place.do(lambda c: c.receivers.put_default_alerts()).outcome == "updated"
    place.do(lambda c: c.tasks.delete(task.id))


@scene
def a_target_is_registered_and_used(place: Place) -> None:
    name, path = place.name("billing"), place.name("/ok/billing")
    place.do(lambda c: c.targets.create(name, "http", defaults={"url": place.url(path)}))
    assert place.do(lambda c: c.targets.get(name)).kind == "http" and name in [one.name for one in place.do(lambda c: c.targets.list())]
    job = place.do(lambda c: c.jobs.create(target=name, payload={"body": {"order": 17}}))
    assert ended(place, job.id).succeeded and place.called(path)["Idempotency-Key"] == job.id
    place.do(lambda c: c.targets.replace(name, "http", defaults={"url": place.url(path)}, rate=10))
    place.do(lambda c: c.targets.delete(name))
    with pytest.raises(NotFound):
        place.do(lambda c: c.targets.get(name))


@scene
def users_are_administered_and_have_their_roles(place: Place) -> None:
    name, password = place.name("ann"), "correct-Horse-battery-7"
    user = place.do(lambda c: c.users.create(name, password, role="user"))
    assert place.do(lambda c: c.users.get(user.id)).username == name and place.do(lambda c: c.users.list(limit=1))
    assert place.do(lambda c: c.users.update(user.id, job_weight=3.0)).job_weight == 3.0
    assert place.do(lambda c: c.users.disable(user.id)) and place.do(lambda c: c.users.enable(user.id))
    place.do(lambda c: c.users.set_password(user.id, "another-Horse-battery-8"))
    with pytest.raises(NotAuthenticated):
        place.run(place.signed_in(name, password), lambda c: c.me())
    client = place.signed_in(name, "another-Horse-battery-8")
    assert place.run(client, lambda c: c.me()).username == name
    with pytest.raises(NotAllowed):
        place.run(client, lambda c: c.users.list())
    place.run(client, lambda c: c.change_password("another-Horse-battery-8", "a-third-Horse-battery-9"))
    place.run(client, lambda c: c.logout())
    place.do(lambda c: c.users.delete(user.id))


@scene
def identities_belong_to_a_provider_of_the_stage(place: Place) -> None:
    user = place.do(lambda c: c.users.create(place.name("idle"), "correct-Horse-battery-7"))
    assert place.do(lambda c: c.users.identities(user.id)) == []
    for use in (lambda c: c.users.link(user.id, "corp", "ann"), lambda c: c.users.unlink(user.id, "corp")):
        with pytest.raises(NotFound):
            place.do(use)
    place.do(lambda c: c.users.reset_second_factor(user.id))
    place.do(lambda c: c.users.delete(user.id))


@scene
def a_program_acts_by_an_api_key(place: Place) -> None:
    made = place.do(lambda c: c.keys.create(place.name("ci"), ["jobs:*"], expires_in_days=1))
    program = place.with_key(made.key)
    job = place.run(program, lambda c: c.jobs.create(message="by a program", delay=LATER))
    assert place.do(lambda c: c.jobs.get(job.id)).id == job.id
    place.run(program, lambda c: c.jobs.cancel(job.id))
    with pytest.raises(NotAllowed):
        place.run(program, lambda c: c.tasks.list())
    assert made.id in [key.id for key in place.do(lambda c: c.keys.list())] and place.do(lambda c: c.keys.get(made.id)).id == made.id
    place.do(lambda c: c.keys.revoke(made.id))
    found = place.do(lambda c: c.keys.create(place.name("leaked"), ["jobs:read"]))
    place.do(lambda c: c.keys.revoke_leaked(found.key))
    with pytest.raises(NotFound):
        place.do(lambda c: c.keys.get(found.id))


@scene
def a_team_owns_what_its_members_create(place: Place) -> None:
    name, password = place.name("ben"), "correct-Horse-battery-7"
    user = place.do(lambda c: c.users.create(name, password))
    ben = place.signed_in(name, password)
    team = place.do(lambda c: c.teams.create(place.name("team")))
    assert place.do(lambda c: c.teams.rename(team.id, place.name("crew"))).id == team.id
    withdrawn = place.do(lambda c: c.teams.invite(team.id, "viewer"))
    place.do(lambda c: c.teams.withdraw(team.id, withdrawn.id))
    invited = place.do(lambda c: c.teams.invite(team.id, "editor"))
    assert [each.id for each in place.do(lambda c: c.teams.invitations(team.id))] == [invited.id]
    assert place.run(ben, lambda c: c.teams.accept(invited.token)).role == "editor"
    assert team.id in [each.id for each in place.run(ben, lambda c: c.teams.list())]
    assert place.run(ben, lambda c: c.teams.get(team.id)).role == "editor"
    job = place.run(ben, lambda c: c.jobs.create(message="of the team", delay=LATER, owner=team.id))
    assert place.do(lambda c: c.jobs.cancel(job.id, owner=team.id)).status == "cancelled"
    assert place.do(lambda c: c.teams.set_member(team.id, user.id, "viewer")).role == "viewer"
    assert {each.user_id for each in place.do(lambda c: c.teams.members(team.id))} >= {user.id}
    place.do(lambda c: c.teams.remove_member(team.id, user.id))
    place.do(lambda c: c.teams.delete(team.id))
    with pytest.raises(NotFound):
        place.do(lambda c: c.teams.get(team.id))


@scene
def an_aws_role_is_mapped_to_an_owner(place: Place) -> None:
    arn, owner = f"arn:aws:iam::123456789012:role/{place.name('x')}", place.do(lambda c: c.me()).id
    made = place.do(lambda c: c.principals.create(arn, owner, ["jobs:write"]))
    assert made.id in [each.id for each in place.do(lambda c: c.principals.list())]
    assert list(place.do(lambda c: c.principals.update(made.id, scopes=["jobs:read"])).scopes) == ["jobs:read"]
    assert place.do(lambda c: c.principals.get(made.id)).arn == arn
    place.do(lambda c: c.principals.delete(made.id))


@scene
def jobs_of_an_ordering_key_wait_for_the_one_before(place: Place) -> None:
    key, path = place.name("customer"), place.name("/status/404/first")
    first = place.do(lambda c: c.jobs.create(http=place.url(path), ordering_key=key, on_failure="pause", max_attempts=1))
    ended(place, first.id)
    second = place.do(lambda c: c.jobs.create(message="second", ordering_key=key, on_failure="pause"))
    place.until(lambda: place.do(lambda c: c.ordering_keys.get(key)).paused_by)
    place.do(lambda c: c.ordering_keys.resume(key))
    assert ended(place, second.id).succeeded


@scene
def the_state_of_the_stage_is_read(place: Place) -> None:
    assert place.do(lambda c: c.health()).raw and place.do(lambda c: c.version()).raw
    assert place.do(lambda c: c.me()).role == "administrator"
    assert "http" in [one.type for one in place.do(lambda c: c.types())]
    assert place.do(lambda c: c.aws_actions(scope="all")) == [], "the stage has no option allowed_actions"
    with pytest.raises(NotFound, match="the option allowed_actions"):
        place.do(lambda c: c.aws_action("s3", "CopyObject"))
    place.do(lambda c: c.forecast(scope="own"))
    place.do(lambda c: c.statistics())
    place.do(lambda c: c.status(scope="own"))
    place.do(lambda c: c.audit(everyone=True, limit=1))
    place.do(lambda c: c.audit(limit=1))


@scene
def lanes_and_breakers_are_operated(place: Place) -> None:
    assert {one.lane for one in place.do(lambda c: c.system.status())} == {"one-time", "recurring", "retry"}
    place.do(lambda c: c.system.breakers(limit=1))
    with pytest.raises(ApiError):
        place.do(lambda c: c.system.close_breaker("host nobody.example.com"))
    place.do(lambda c: c.system.pause("retry", reason="incident"))
    assert "retry" in [one.lane for one in place.do(lambda c: c.system.resume("retry"))]


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("where", ["memory", pytest.param("stack", marks=pytest.mark.system)])
@pytest.mark.parametrize("name", SCENES)
def test_the_client_keeps_its_contract(request: pytest.FixtureRequest, name: str, where: str, flavor: str) -> None:
    place = InMemory(flavor) if where == "memory" else OnStack(flavor, request.getfixturevalue("system"))
    with place.closing:
        SCENES[name](place)


def test_the_scenes_use_every_operation() -> None:
    document = json.loads(PUBLISHED.read_text())
    operations = {
        operation["operationId"]: (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if not operation.get("deprecated")
    }
    place = InMemory("sync")
    with place.closing:
        for each in SCENES.values():
            each(place)
    used = {operation_of(method, path, operations) for method, path in place.requests}
    missing = operations.keys() - used - ELSEWHERE
    assert not missing, f"no scene uses {sorted(missing)}"
