"""`punctual tasks`."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _owners, _work, apply, jobs, many, year
from punctual.cli import _words as words
from punctual.cli._app import Cli, Refused, command, group
from punctual.cli._output import Column, instants
from punctual.records import Alerts, NextRun, Notifications, Schedule, Task

Ids = Annotated[list[str] | None, Argument(metavar="ID...", help="The ids of tasks.")]
Id = Annotated[str | None, Argument(metavar="[ID]", help="The id of the task.")]
Cron = Annotated[
    list[str] | None,
    Option("--cron", metavar="EXPRESSION", help="A cron expression of five fields, such as '30 2 * * *'; repeat it for several."),
]
Period = Annotated[str | None, Option("--every", metavar="PERIOD", help="A number of days or weeks, such as '2 weeks', with --times.")]
Times = Annotated[str | None, Option("--times", metavar="LIST", help="The local times of --every, such as 09:00,18:30.")]
Weekdays = Annotated[str | None, Option("--weekdays", metavar="LIST", help="The weekdays of --every with weeks, such as MON,WED.")]
Every = Annotated[str | None, Option("--rate", metavar="RATE", help="An interval such as '15 minutes'.")]
Zone = Annotated[
    str | None, Option("--time-zone", "--tz", metavar="ZONE", help="The zone of the expression, such as Europe/Berlin (default UTC).")
]
Name = Annotated[str | None, Option("--name", help="Only with this in the name.")]
Once = Annotated[str | None, Option("--at", metavar="INSTANT", help="Once at this instant, RFC 3339 with an offset.")]
MaxRuns = Annotated[int | None, Option("--max-runs", metavar="N", help="End after N runs.")]
Description = Annotated[str | None, Option("--description", help="Its purpose, for people.")]
Overlap = Annotated[
    str | None, Option("--overlap", metavar="RULE", help="If a run is due while one runs: skip, queue_one, allow or cancel_running.")
]
LateAfter = Annotated[
    str | None, Option("--late-after", metavar="DURATION", help="Alert if a run has not started this long after its time.")
]
MaxDuration = Annotated[str | None, Option("--max-duration", metavar="DURATION", help="Alert if a run takes longer; it is not stopped.")]
DoneBy = Annotated[
    str | None, Option("--done-by", metavar="HH:MM", help="Alert if a run has not succeeded by this time in the zone of the task.")
]
Missed = Annotated[bool, Option("--missed", help="Alert if a run was skipped because it could not start in time.")]
NoAlerts = Annotated[bool, Option("--no-alerts", help="No alerts, and not the default ones either.")]
Count = Annotated[int, Option("--count", "-n", metavar="N", help="Show N runs.")]


def build() -> typer.Typer:
    app = group("tasks", "Create, find, pause and run tasks, which start jobs by a schedule.")
    command(
        app,
        "create",
        "punctual tasks create 'Nightly report' --cron '30 2 * * *' http https://example.com/report",
        "punctual tasks create heartbeat --rate '1 minute' --key heartbeat log alive",
        "punctual tasks create payroll --every '2 weeks' --weekdays FRI --times 09:00 --tz Europe/Berlin log pay",
        "punctual tasks create sync --cron '0 2 * * *' log sync --late-after 5m --done-by 07:00"
        ' --field \'notifications={"webhooks": [{"url": "https://hooks.slack.com/services/T0/B0/x", "format": "slack"}]}\'',
    )(create)
    command(app, "list", "punctual tasks list", "punctual tasks list --everyone", "punctual tasks list --tag nightly --json | jq -r .name")(
        list_tasks
    )
    command(app, "show", "punctual tasks show --key nightly-report", "punctual tasks show --owner shop --key nightly-report")(show)
    command(
        app,
        "update",
        "punctual tasks update --key nightly-report --cron '0 3 * * *' --overlap queue_one",
        "punctual tasks update --owner shop --key nightly-report --max-attempts 5",
    )(update)
    command(app, "jobs", "punctual tasks jobs --key nightly-report --status failed")(task_jobs)
    command(app, "run", "punctual tasks run --key nightly-report --watch")(run)
    command(
        app,
        "preview",
        "punctual tasks preview '30 2 * * *' --tz Europe/Berlin -n 10",
        "punctual tasks preview --rate '90 minutes'",
        "punctual tasks preview --key nightly-report",
    )(preview)
    year.register(app)
    command(
        app, "pause", "punctual tasks pause --key nightly-report --reason 'the database moves'", "punctual tasks pause --tag nightly --yes"
    )(pause)
    command(app, "resume", "punctual tasks resume --key nightly-report", "punctual tasks resume --tag nightly --yes")(resume)
    command(app, "delete", "punctual tasks delete --key nightly-report --yes", "punctual tasks delete --tag old --dry-run")(delete)
    apply.register(app)
    return app


def create(
    cli: Cli,
    name: Annotated[str, Argument(help="The name of the task, for people.")],
    what: _work.Words,
    cron: Cron = None,
    every: Period = None,
    times: Times = None,
    weekdays: Weekdays = None,
    rate: Every = None,
    at: Once = None,
    time_zone: Zone = None,
    max_runs: MaxRuns = None,
    key: Annotated[
        str | None, Option("--key", metavar="KEY", help="A name of yours: a task that has it is changed, and none is created.")
    ] = None,
    description: Description = None,
    overlap: Overlap = None,
    late_after: LateAfter = None,
    max_duration: MaxDuration = None,
    done_by: DoneBy = None,
    missed: Missed = False,
    no_alerts: NoAlerts = False,
    headers: _work.Header = None,
    data: _work.Data = None,
    payload: _work.Payload = None,
    signing_secret: _work.SigningSecret = None,
    tags: _work.JobTags = None,
    max_attempts: _work.MaxAttempts = None,
    timeout: _work.Timeout = None,
    ordering_key: _work.OrderingKey = None,
    on_failure: _work.OnFailure = None,
    fields: _work.Fields = None,
) -> None:
    """Create a task that runs by cron expressions, every n days or weeks, at a rate or once; without a schedule it runs at once.

    Many tasks in a file: punctual tasks apply
    """
    _work.check_name(name, what, payload)
    schedule = _scheduled(cron, _every(every, times, weekdays), rate, at, time_zone, max_runs)
    body: dict[str, Any] = {"name": name} | _work.work(what, headers, data, payload, signing_secret)
    body |= _work.common(tags, max_attempts, timeout, ordering_key, on_failure, fields) | options.present(
        overlap=overlap, description=description
    )
    if schedule:
        body["schedule"] = schedule
    if alerts := _chosen_alerts(alerts_of(late_after, max_duration, done_by, missed), no_alerts):
        body["alerts"] = {name: value for name, value in alerts.items() if value is not None}
    if key is None:
        task, outcome = cli.client.tasks.create(**body), "created"
    else:
        put = cli.client.tasks.put(key, **body)
        task, outcome = put.task, put.outcome
    first = f" It runs first {_next_in_words(task.next_run, cli.now())}." if task.next_run else ""
    cli.out.result(task.raw, f"Task {task.id} is {outcome}.{first}", quiet=task.id)


def _scheduled(
    cron: list[str] | None, every: dict[str, Any], rate: str | None, at: str | None, time_zone: str | None, max_runs: int | None
) -> dict[str, Any]:
    if sum(each is not None for each in (cron or None, every.get("every"), rate, at)) > 1:
        raise Refused("only one of --cron, --every, --rate and --at", field="--cron")
    return {**options.present(cron=_one_or_more(cron), rate=rate, at=at, time_zone=time_zone, max_runs=max_runs), **every}


def _one_or_more(cron: list[str] | None) -> str | list[str] | None:
    return cron[0] if cron and len(cron) == 1 else cron


def _every(every: str | None, times: str | None, weekdays: str | None) -> dict[str, Any]:
    """Return the parts of a schedule with a number of days or weeks."""
    lists = {"times": times, "weekdays": weekdays}
    return options.present(every=every, **{name: [each.strip() for each in value.split(",")] for name, value in lists.items() if value})


def alerts_of(late_after: str | None, max_duration: str | None, done_by: str | None, missed: bool) -> dict[str, Any]:
    """Return the rules about time. Raises Refused."""
    seconds = {
        name: None if text is None else _work.whole_seconds(option, text)
        for name, option, text in (
            ("late_after_seconds", "--late-after", late_after),
            ("max_duration_seconds", "--max-duration", max_duration),
        )
    }
    return options.present(**seconds, done_by=done_by, missed=True if missed else None)


def _chosen_alerts(rules: dict[str, Any], no_alerts: bool) -> dict[str, Any]:
    """Return the rules, or the removal of each if the task is to have none. Raises Refused."""
    if rules and no_alerts:
        raise Refused("goes with no other option of alerts", field="--no-alerts")
    return dict.fromkeys(("late_after_seconds", "max_duration_seconds", "done_by", "missed")) if no_alerts else rules


def update(
    cli: Cli,
    id: Id = None,
    key: options.Key = None,
    name: Annotated[str | None, Option("--name", help="Another name, for people.")] = None,
    cron: Cron = None,
    every: Period = None,
    times: Times = None,
    weekdays: Weekdays = None,
    rate: Every = None,
    at: Once = None,
    time_zone: Zone = None,
    max_runs: MaxRuns = None,
    description: Description = None,
    overlap: Overlap = None,
    late_after: LateAfter = None,
    max_duration: MaxDuration = None,
    done_by: DoneBy = None,
    missed: Missed = False,
    no_alerts: NoAlerts = False,
    payload: Annotated[
        str | None, Option("--payload", metavar="JSON", help="Fields of the payload; @FILE reads a file, @- the standard input.")
    ] = None,
    tags: _work.JobTags = None,
    max_attempts: Annotated[int | None, Option("--max-attempts", metavar="N", help="Make at most N attempts.")] = None,
    timeout: Annotated[str | None, Option("--timeout", metavar="DURATION", help="Stop an attempt after this long.")] = None,
    ordering_key: _work.OrderingKey = None,
    on_failure: _work.OnFailure = None,
    fields: _work.Fields = None,
) -> None:
    """Change a task: its schedule, its rules or what it runs. Absent options change nothing; runs ahead follow the change."""
    if (id is None) == (key is None):
        raise Refused("give an id or --key, and not both", field="ID")
    changes = _work.common(tags, max_attempts, timeout, ordering_key, on_failure, fields) | options.present(
        name=name,
        overlap=overlap,
        description=description,
        payload=None if payload is None else options.object_of("--payload", payload),
    )
    if schedule := _scheduled(cron, _every(every, times, weekdays), rate, at, time_zone, max_runs):
        changes["schedule"] = schedule
    if alerts := _chosen_alerts(alerts_of(late_after, max_duration, done_by, missed), no_alerts):
        changes["alerts"] = alerts
    if not changes:
        raise Refused("give something to change", field="--cron", hint="See: punctual tasks update --help")
    task = cli.client.tasks.update(*([] if id is None else [id]), key=key, **changes)
    first = f" It runs next {_next_in_words(task.next_run, cli.now())}." if task.next_run else ""
    cli.out.result(task.raw, f"Task {task.id} is changed.{first}", quiet=task.id)


def list_tasks(
    cli: Cli,
    name: Name = None,
    tag: options.Tags = None,
    type: options.Type = None,
    status: options.Statuses = None,
    everyone: options.Everyone = False,
    limit: options.Limit = 20,
) -> None:
    """List your tasks, or those of others, the newest first."""
    now = cli.now()
    listing = _owners.Listing[Task](
        partial(cli.client.tasks.list, **options.present(name=name, tag=tag, type=type, status=status, limit=limit)),
        (
            Column("id", lambda task: task.id, essential=True),
            Column("name", lambda task: task.name),
            Column("status", lambda task: task.status, essential=True),
            Column("schedule", lambda task: _schedule(task.schedule)),
            instants("next run", lambda task: _next(task), now, essential=True),
            Column("key", lambda task: task.key or ""),
            Column("what", lambda task: _work.description(task.type, task.target, task.payload)),
        ),
        id=lambda task: task.id,
        none="There are no tasks. Create one: punctual tasks create --help",
        order=lambda task: (task.created_at, task.id),
    )
    _owners.show(cli, listing, everyone, limit)


def _next(task: Task) -> datetime | None:
    return task.next_run.at if task.next_run else None


def _schedule(schedule: Schedule | None) -> str:
    if schedule is None:
        return "once, at once"
    rate = schedule.rate.removeprefix("rate(").removesuffix(")") if schedule.rate else ""
    found = _listed(schedule.cron, "; ") or (f"every {rate}" if rate else f"once, at {schedule.at}")
    if schedule.every:
        on = f" on {_listed(schedule.weekdays)}" if schedule.weekdays else ""
        found = f"every {schedule.every}{on} at {_listed(schedule.times)}"
    return f"{found} {schedule.time_zone}" if schedule.time_zone and schedule.time_zone != "UTC" else found


def _listed(words: str | tuple[str, ...] | None, between: str = ", ") -> str:
    return between.join([words] if isinstance(words, str) else words or ())


def one(cli: Cli, id: str | None, key: str | None) -> Task:
    """Return the task of an id or a key. Raises Refused unless it is one of both."""
    if (id is None) == (key is None):
        raise Refused("give an id or --key, and not both", field="ID")
    return cli.client.tasks.get(id, key=key)


def _id(cli: Cli, id: str | None, key: str | None) -> str:
    return id if id is not None and key is None else one(cli, id, key).id


def show(cli: Cli, id: Id = None, key: options.Key = None) -> None:
    """Show a task: its schedule, what it runs and its next runs."""
    task, now = one(cli, id, key), cli.now()
    cli.out.details(
        task.raw,
        (
            ("id", task.id),
            ("name", task.name),
            ("status", task.status),
            ("why", task.inactive_reason),
            ("key", task.key),
            ("description", task.description),
            ("schedule", _schedule(task.schedule)),
            ("runs", _work.description(task.type, task.target, task.payload)),
            ("tags", words.words(task.tags)),
            ("overlap", task.overlap),
            ("alerts", "" if task.alerts is None else _alerts(task.alerts)),
            ("notifications", "" if task.notifications is None else _notifications(task.notifications)),
            ("generation", task.generation),
            ("changed", words.clock(task.updated_at, now)),
            ("next runs", "\n".join(_run(each) for each in task.next_runs)),
        ),
        quiet=task.id,
    )


def _alerts(rules: Alerts) -> str:
    late, longest = rules.late_after_seconds, rules.max_duration_seconds
    found = (
        "" if late is None else f"late after {words.span(timedelta(seconds=late))}",
        "" if longest is None else f"takes longer than {words.span(timedelta(seconds=longest))}",
        "" if rules.done_by is None else f"not done by {rules.done_by}",
        "missed" if rules.missed else "",
    )
    return words.words(filter(None, found)) or "none"


def _notifications(found: Notifications) -> str:
    """Return a line for each receiver, and one for the occasions. The path of a webhook may be a secret: its host stands for it."""
    receivers = (
        *(f"receiver {each}" for each in found.receivers),
        *found.emails,
        *(f"{each.format} webhook {urlsplit(each.url).hostname}" for each in found.webhooks),
    )
    failure = f"failure after {found.after_failures} in a row" if found.after_failures > 1 else "failure"
    occasions = (failure if each == "failure" else each for each in found.on)
    return "\n".join((*(receivers or ("your default receivers",)), f"on {words.words(occasions)}"))


def _next_in_words(run: NextRun, now: datetime) -> str:
    """Return the weekday and the time on the clock of the schedule's zone, and how far it is away."""
    return f"{run.local_at:%a %Y-%m-%d %H:%M:%S %z}, {words.relative(run.at, now)}"


def _run(each: NextRun) -> str:
    note = f"  {each.dst_note}" if each.dst_note else ""
    return f"{each.local_at.strftime('%a %Y-%m-%d %H:%M:%S %z')}{'' if each.at else '  skipped'}{note}"


def task_jobs(
    cli: Cli,
    id: Id = None,
    key: options.Key = None,
    upcoming: Annotated[
        bool, Option("--upcoming", help="The runs ahead, the soonest first. Default: past runs, the latest first.")
    ] = False,
    status: options.Statuses = None,
    since: options.Since = None,
    until: options.Until = None,
    limit: options.Limit = 20,
) -> None:
    """List the runs of a task."""
    now = cli.now()
    filter = options.present(
        upcoming=upcoming,
        status=status,
        from_=options.instant("--since", since, now),
        to=options.instant("--until", until, now),
        limit=limit,
    )
    ask = partial(cli.client.tasks.jobs, _id(cli, id, key), **filter)
    _owners.show(cli, jobs.listing(cli, ask, "There are no such runs.", upcoming), False, limit)


def run(
    cli: Cli,
    id: Id = None,
    key: options.Key = None,
    group: options.GroupId = None,
    follow: Annotated[bool, Option("--watch", "-w", help="Wait for its end, as `jobs watch` does.")] = False,
) -> int | None:
    """Run a task now, outside its schedule."""
    job = cli.client.tasks.run(_id(cli, id, key), group=group)
    if follow:
        return jobs.until_ended(cli, [job], None)
    cli.out.result(job.raw, f"Job {job.id} runs.{jobs.waits(job)}", quiet=job.id)
    return None


def preview(
    cli: Cli,
    expression: Annotated[str | None, Argument(metavar="[EXPRESSION]", help="A cron expression, between quotes.")] = None,
    cron: Annotated[list[str] | None, Option("--cron", metavar="EXPRESSION", help="The same as EXPRESSION; repeat it for several.")] = None,
    every: Period = None,
    times: Times = None,
    weekdays: Weekdays = None,
    rate: Every = None,
    time_zone: Zone = None,
    id: Annotated[str | None, Option("--id", metavar="ID", help="The next runs of this task.")] = None,
    key: Annotated[str | None, Option("--key", metavar="KEY", help="The next runs of the task with this key.")] = None,
    count: Count = 10,
) -> None:
    """Show the next runs of a schedule or of a task. Nothing is saved."""
    if sum(each is not None for each in (expression, cron or None, every, rate, id, key)) != 1:
        raise Refused("give a cron expression, --every, --rate, --id or --key, one of them", field="EXPRESSION")
    if id is not None or key is not None:
        found = cli.client.tasks.next(_id(cli, id, key), count)
    else:
        parts = _scheduled([expression] if expression else cron, _every(every, times, weekdays), rate, None, time_zone, None)
        found = cli.client.schedules.preview(**parts, count=count)
    cli.out.entries(
        found,
        (
            Column("local", lambda each: each.local_at.strftime("%a %Y-%m-%d %H:%M:%S %z"), essential=True),
            Column("UTC", lambda each: each.at.strftime("%Y-%m-%d %H:%M:%S") if each.at else "skipped", essential=True),
            Column("note", lambda each: each.dst_note or ""),
        ),
        raw=lambda each: each.raw,
        none="It has no next run.",
        id=lambda each: words.wire(each.local_at),
    )


def pause(
    cli: Cli,
    ids: Ids = None,
    key: options.Key = None,
    tag: options.Tags = None,
    type: options.Type = None,
    name: Name = None,
    all: options.All = False,
    reason: options.Reason = None,
    rate: options.Rate = None,
    limit: options.AtMost = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    detach: options.Detach = False,
) -> int | None:
    """Pause tasks, by id, by key, or all that a filter finds: none of their runs starts until they are resumed."""
    client = cli.client.tasks
    request = many.BulkRequest(
        "pause",
        "task",
        client.pause_many,
        partial(client.estimate, "pause"),
        options.present(tag=tag, type=type, name=name, all=all),
        rate,
        limit,
    )
    return _each(cli, ids, key, partial(client.pause, reason=reason), request, dry_run, yes, detach, **options.present(reason=reason))


def resume(
    cli: Cli,
    ids: Ids = None,
    key: options.Key = None,
    tag: options.Tags = None,
    type: options.Type = None,
    name: Name = None,
    all: options.All = False,
    rate: options.Rate = None,
    limit: options.AtMost = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    detach: options.Detach = False,
) -> int | None:
    """Resume paused tasks, by id, by key, or all that a filter finds, each from now on."""
    client = cli.client.tasks
    request = many.BulkRequest(
        "resume",
        "task",
        client.resume_many,
        partial(client.estimate, "resume"),
        options.present(tag=tag, type=type, name=name, all=all),
        rate,
        limit,
    )
    return _each(cli, ids, key, client.resume, request, dry_run, yes, detach)


def delete(
    cli: Cli,
    ids: Ids = None,
    key: options.Key = None,
    tag: options.Tags = None,
    type: options.Type = None,
    name: Name = None,
    status: options.Statuses = None,
    all: options.All = False,
    rate: options.Rate = None,
    limit: options.AtMost = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    detach: options.Detach = False,
) -> int | None:
    """Delete tasks with their future runs, by id, by key, or all that a filter finds. Their history stays. Asks first."""
    client = cli.client.tasks
    request = many.BulkRequest(
        "delete",
        "task",
        client.delete_many,
        partial(client.estimate, "delete"),
        options.present(tag=tag, type=type, name=name, status=status, all=all),
        rate,
        limit,
    )

    def remove(id: str) -> None:
        cli.confirm(f"Delete task {id}?", yes)
        client.delete(id)

    return _each(cli, ids, key, remove, request, dry_run, yes, detach)


def _each(
    cli: Cli,
    ids: Sequence[str] | None,
    key: str | None,
    change: Callable[..., Task | None],
    request: many.BulkRequest,
    dry_run: bool,
    yes: bool,
    detach: bool,
    **more: Any,
) -> int | None:
    """Change the tasks of these ids and this key one by one, or all of the filter by an operation."""
    if request.filter:
        if ids or key:
            raise Refused("give ids, --key or a filter, not several of them", field="ID")
        return many.carry_out(cli, request, dry_run=dry_run, yes=yes, detach=detach, **more)
    if not ids and key is None:
        raise Refused("give an id, --key or a filter", field="ID", hint=f"To {request.verb} all tasks: --all")
    if dry_run:
        raise Refused("is for a filter", field="--dry-run")
    for id in (*(ids or ()), *([one(cli, None, key).id] if key is not None else ())):
        task = change(id)
        data = task.raw if task is not None else {"id": id}
        if cli.out.as_json:
            cli.out.line(data)
        else:
            cli.out.result(data, f"Task {id} is {many.PAST[request.verb]}.", quiet=id)
    return None
