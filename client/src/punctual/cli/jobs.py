"""`punctual jobs`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Annotated, Any

import typer
from rich.live import Live
from typer import Argument, Option

from punctual import errors
from punctual.cli import _options as options
from punctual.cli import _owners, _work, many
from punctual.cli import _words as words
from punctual.cli._app import FAILED, Cli, Refused, command, group
from punctual.cli._output import Column, instants, table
from punctual.records import Attempt, Job

Ids = Annotated[list[str] | None, Argument(metavar="ID...", help="The ids of jobs.")]
Id = Annotated[str | None, Argument(metavar="[ID]", help="The id of the job.")]
Delay = Annotated[str | None, Option("--in", "--delay", metavar="DURATION", help="Start after this long: 90s, 30m, 1h30m, 2d.")]
At = Annotated[str | None, Option("--at", "--execute-at", metavar="INSTANT", help="Start at this instant, RFC 3339 with an offset.")]
Expires = Annotated[str | None, Option("--expires", metavar="WHEN", help="Do not start at or after: an instant, or a duration from now.")]
Payload = Annotated[
    str | None, Option("--payload", metavar="JSON", help="Another payload, as a whole; @FILE reads a file, @- the standard input.")
]
SOON = timedelta(seconds=2)
OFTEN, SELDOM = 0.5, 5.0  # seconds between two reads of a watched job: about to start or running, far ahead
RECENT, UPCOMING = 15, 10  # the rows of `watch` without an id


def build() -> typer.Typer:
    app = group("jobs", "Create, find, watch, cancel, retry and replay jobs.")
    command(
        app,
        "create",
        "punctual jobs create --in 30m --key order-17 http POST https://example.com/expire -d '{\"order\": 17}'",
        "punctual jobs create --at 2030-12-24T18:00:00+01:00 log 'Merry Christmas'",
        "punctual jobs create --in 10s --watch log hello",
        "punctual jobs create --key page-4 --debounce 5s --max-wait 20s log 'index page 4'",
        "punctual jobs create --key warning --throttle 10m log 'the disk is full'",
        "punctual jobs create https://example.com/refresh",
        'punctual jobs create target invoices --payload \'{"body": {"number": 7}}\'',
        "punctual jobs create sqs --payload @message.json --tag nightly",
    )(create)
    command(
        app,
        "list",
        "punctual jobs list --upcoming",
        "punctual jobs list --status failed --since 1h --json | jq -r .reason",
        "punctual jobs list --tag campaign:7 --limit 0 --quiet | wc -l",
        "punctual jobs list --everyone --status failed --since 1h",
    )(list_jobs)
    command(app, "show", "punctual jobs show 01JD4Q8XKZ38W2M5R7T9V1C4FH", "punctual jobs show --key order-17 --json")(show)
    command(
        app, "watch", "punctual jobs watch", "punctual jobs watch --key order-17 && echo done", "punctual jobs watch ID ID --timeout 5m"
    )(watch)
    command(
        app,
        "update",
        "punctual jobs update --key order-17 --in 2h",
        "punctual jobs update 01JD4Q8XKZ38W2M5R7T9V1C4FH --at 2030-12-24T18:00:00+01:00 --max-attempts 5",
    )(update)
    command(
        app,
        "cancel",
        "punctual jobs cancel --key order-17",
        "punctual jobs cancel 01JD4Q8XKZ38W2M5R7T9V1C4FH",
        "punctual jobs cancel --tag campaign:7 --dry-run",
        "punctual jobs cancel --tag campaign:7 --rate 100 --yes",
        "punctual jobs cancel --owner shop --status queued --dry-run",
    )(cancel)
    command(
        app,
        "retry",
        "punctual jobs retry 01JD4Q8XKZ38W2M5R7T9V1C4FH",
        "punctual jobs retry --key order-17",
        "punctual jobs retry --owner shop 01JD4Q8XKZ38W2M5R7T9V1C4FH",
    )(retry)
    command(
        app,
        "replay",
        "punctual jobs replay 01JD4Q8XKZ38W2M5R7T9V1C4FH",
        "punctual jobs replay 01JD4Q8XKZ38W2M5R7T9V1C4FH --payload @message.json --in 5m",
        "punctual jobs replay --tag campaign:7 --status failed --dry-run",
        "punctual jobs replay --type http --since 1d --rate 10 --yes",
    )(replay)
    command(app, "output", "punctual jobs output 01JD4Q8XKZ38W2M5R7T9V1C4FH > answer.json")(output)
    command(app, "log", "punctual jobs log 01JD4Q8XKZ38W2M5R7T9V1C4FH --attempt 2")(log)
    return app


def create(
    cli: Cli,
    what: _work.Words,
    delay: Delay = None,
    at: At = None,
    key: Annotated[
        str | None, Option("--key", metavar="KEY", help="A name of yours for the job. One job that has not ended has it.")
    ] = None,
    on_conflict: Annotated[
        str | None, Option("--on-conflict", metavar="RULE", help="If a job has the key: replace (default), keep or extend it.")
    ] = None,
    on_started: Annotated[
        str | None, Option("--on-started", metavar="RULE", help="If that job has started: refuse (default), or follow it.")
    ] = None,
    debounce: Annotated[
        str | None, Option("--debounce", metavar="DURATION", help="With --key: it starts this time after the last create: 5s, 10m.")
    ] = None,
    max_wait: Annotated[
        str | None, Option("--max-wait", metavar="DURATION", help="Of --debounce: it starts this time after the first one at the latest.")
    ] = None,
    throttle: Annotated[
        str | None, Option("--throttle", metavar="DURATION", help="With --key: in this time only the first create makes a job.")
    ] = None,
    singleton: Annotated[bool, Option("--singleton", help="With --key: no second job until the first one has ended.")] = False,
    headers: _work.Header = None,
    data: _work.Data = None,
    payload: _work.Payload = None,
    signing_secret: _work.SigningSecret = None,
    tags: _work.JobTags = None,
    max_attempts: _work.MaxAttempts = None,
    timeout: _work.Timeout = None,
    expires: Expires = None,
    ordering_key: _work.OrderingKey = None,
    on_failure: _work.OnFailure = None,
    group: options.GroupId = None,
    after: Annotated[list[str] | None, Option("--after", metavar="ID", help="Start after this job; repeat it for several.")] = None,
    after_key: Annotated[
        list[str] | None, Option("--after-key", metavar="KEY", help="Start after the job of this key; repeat it for several.")
    ] = None,
    after_group: Annotated[
        list[str] | None, Option("--after-group", metavar="ID", help="Start after this sealed group; repeat it for several.")
    ] = None,
    after_any_end: Annotated[bool, Option("--after-any-end", help="Start even if one of them does not succeed.")] = False,
    idempotency_key: Annotated[
        str | None, Option("--idempotency-key", metavar="KEY", help="A second create with this key makes no second job.")
    ] = None,
    traceparent: Annotated[
        str | None, Option("--traceparent", metavar="VALUE", help="The trace that it belongs to, as the header of W3C Trace Context.")
    ] = None,
    fields: _work.Fields = None,
    follow: Annotated[bool, Option("--watch", "-w", help="Wait for its end, as `jobs watch` does.")] = False,
) -> int | None:
    """Create a job that starts now, after a delay (--in) or at an instant (--at)."""
    durations = {
        name: options.checked(f"--{name.replace('_', '-')}", words.duration, text)
        for name, text in options.present(debounce=debounce, max_wait=max_wait, throttle=throttle).items()
    }
    rules = options.present(on_conflict=on_conflict, on_started=on_started, **durations, singleton=singleton or None)
    if key is None and rules:
        raise Refused("needs --key", field=f"--{next(iter(rules)).replace('_', '-')}")
    body = _work.work(what, headers, data, payload, signing_secret)
    body |= _work.common(tags, max_attempts, timeout, ordering_key, on_failure, fields)
    body |= _after({"job": after, "key": after_key, "group": after_group}, after_any_end)
    body |= _time(delay, at) | options.present(
        expires_at=options.instant("--expires", expires, cli.now(), words.ahead),
        key=key,
        group=group,
        idempotency_key=idempotency_key,
        traceparent=traceparent,
    )
    job = cli.client.jobs.create(**body, **rules)
    if follow:
        return until_ended(cli, [job], None)
    when = words.clock(job.scheduled_at, cli.now())
    done = "" if job.outcome in (None, "created") else f" ({job.outcome})"
    starts = f"Job {job.id} starts at {when}, {words.relative(job.scheduled_at, cli.now())}{done}."
    if job.outcome == "throttled":
        starts = f"Throttled: job {job.id} won {words.relative(job.created_at, cli.now())}."
    if waiting := [each.job or each.group or "" for each in job.after if each.outcome is None]:
        starts = f"Job {job.id} starts after {', '.join(waiting)}, not before {when}."
    cli.out.result(job.raw, starts + waits(_read_again(cli, job)), quiet=job.id)
    cli.out.remark(f"Watch it: punctual jobs watch {f'--key {key}' if key else job.id}")
    return None


def _after(chosen: Mapping[str, Sequence[str] | None], any_end: bool) -> dict[str, Any]:
    """Return the field with the jobs and groups that must end before. Raises Refused."""
    named = [{field: each} for field, texts in chosen.items() for each in texts or ()]
    if any_end and not named:
        raise Refused("needs --after, --after-key or --after-group", field="--after-any-end")
    return {"after": [each | {"when": "ended"} if any_end else each for each in named]} if named else {}


def _time(delay: str | None, at: str | None) -> dict[str, Any]:
    """Return the time of a job that the options name, if they name one. Raises Refused."""
    if delay is not None and at is not None:
        raise Refused("not both of --in and --at", field="--at")
    return options.present(
        delay=None if delay is None else options.checked("--in", words.duration, delay),
        execute_at=None if at is None else options.checked("--at", words.instant, at),
    )


def update(
    cli: Cli,
    id: Id = None,
    key: options.Key = None,
    delay: Delay = None,
    at: At = None,
    payload: Payload = None,
    tags: _work.JobTags = None,
    max_attempts: Annotated[int | None, Option("--max-attempts", metavar="N", help="Make at most N attempts.")] = None,
    timeout: Annotated[str | None, Option("--timeout", metavar="DURATION", help="Stop an attempt after this long.")] = None,
    expires: Expires = None,
    fields: _work.Fields = None,
) -> None:
    """Change a job that has not started: move it with --in or --at, or change its content. Absent options change nothing."""
    if (id is None) == (key is None):
        raise Refused("give an id or --key, and not both", field="ID")
    changes = (
        _time(delay, at)
        | _work.common(tags, max_attempts, timeout, None, None, fields)
        | options.present(
            payload=None if payload is None else options.object_of("--payload", payload),
            expires_at=options.instant("--expires", expires, cli.now(), words.ahead),
        )
    )
    if not changes:
        raise Refused("give something to change", field="--in", hint="See: punctual jobs update --help")
    job = cli.client.jobs.update(*([] if id is None else [id]), key=key, **changes)
    when = f"{words.clock(job.scheduled_at, cli.now())}, {words.relative(job.scheduled_at, cli.now())}"
    cli.out.result(job.raw, f"Job {job.id} is changed. It starts at {when}.", quiet=job.id)


def list_jobs(
    cli: Cli,
    upcoming: Annotated[
        bool, Option("--upcoming", help="Jobs ahead, the soonest first. Default: jobs that were due, the latest first.")
    ] = False,
    status: options.Statuses = None,
    tag: options.Tags = None,
    type: options.Type = None,
    task: options.TaskId = None,
    since: options.Since = None,
    until: options.Until = None,
    everyone: options.Everyone = False,
    limit: options.Limit = 20,
) -> None:
    """List your jobs, or those of others."""
    now = cli.now()
    filter = options.present(
        upcoming=upcoming,
        status=status,
        tag=tag,
        type=type,
        task=task,
        from_=options.instant("--since", since, now),
        to=options.instant("--until", until, now),
        limit=limit,
    )
    none = "No job is ahead." if upcoming else "No job was due. Upcoming jobs: punctual jobs list --upcoming"
    _owners.show(cli, listing(cli, partial(cli.client.jobs.list, **filter), none, upcoming), everyone, limit)


def listing(cli: Cli, ask: Callable[..., Iterable[Job]], none: str, upcoming: bool = False) -> _owners.Listing[Job]:
    """Return a list of jobs, as tables show it."""
    return _owners.Listing(
        ask, columns(cli.now()), lambda job: job.id, none, order=lambda job: (job.scheduled_at, job.id), newest_first=not upcoming
    )


def columns(now: datetime) -> Sequence[Column[Job]]:
    """Return the columns of a list of jobs."""
    return (
        Column("id", lambda job: job.id, essential=True),
        Column("status", lambda job: job.status, essential=True),
        instants("scheduled", lambda job: job.scheduled_at, now, essential=True),
        Column("late by", lambda job: words.milliseconds(job.start_delay_ms), essential=True, right=True),
        Column("took", lambda job: words.milliseconds(job.duration_ms), right=True),
        Column("tries", lambda job: len(job.attempts) or "", right=True),
        Column("key", lambda job: job.key or ""),
        Column("what", what),
        Column("why", _why_in_short, piped=why),
    )


def what(job: Job) -> str:
    """Return the task's name, if the job is a run of one, and what the job calls."""
    called = job.calls if job.calls and job.type != "http" and not job.target else _work.description(job.type, job.target, job.payload)
    return f"{job.task_name}: {called}" if job.task_name else called


def why(job: Job) -> str:
    """Return why a job ended, or waits, as it does; nothing for a success."""
    found = job.reason or (job.failure.message if job.failure else "")
    return "" if job.succeeded else found


_PAUSED = re.compile(r"^its lane (\S+) is paused since \S+?(?=:? |$)")


def _why_in_short(job: Job) -> str:
    """Return the same for a table, where the author and the reason of a pause must come before the end is cut."""
    return _PAUSED.sub(r"lane \1 paused", why(job))


def waits(job: Job) -> str:
    """Return a sentence about a pause for which the job waits, to follow another one; nothing without a pause."""
    return f"\nIt waits: {job.reason}." if not job.ended and _PAUSED.match(job.reason or "") else ""


def _read_again(cli: Cli, job: Job) -> Job:
    """Return a new job with the reason for which it waits, if it is due and a person reads this. The answer that created it has none."""
    if cli.out.as_json or cli.out.quiet or job.status != "queued":
        return job
    try:
        return cli.client.jobs.get(job.id)
    except errors.PunctualError:
        return job  # it is a remark: the job is stored


def show(cli: Cli, id: Id = None, key: options.Key = None) -> None:
    """Show a job: its times, its attempts, what it runs and what came of it."""
    job, now = one(cli, id, key), cli.now()

    def when(at: datetime | None) -> str:
        return f"{words.clock(at, now)} ({words.relative(at, now)})" if at else ""

    cli.out.details(
        job.raw,
        (
            ("id", job.id),
            ("status", job.status),
            ("why", job.reason),
            ("key", job.key),
            ("replay of", job.replay_of),
            ("runs", _work.description(job.type, job.target, job.payload)),
            ("tags", words.words(job.tags)),
            ("lane", job.lane),
            ("scheduled", when(job.scheduled_at)),
            ("next attempt", when(job.due_at) if not job.ended and job.attempts else ""),
            ("started", f"{when(job.started_at)}{_late(job)}"),
            ("ended", when(job.ended_at)),
            ("took", words.milliseconds(job.duration_ms)),
            ("progress", _progress(job)),
            ("in AWS", job.awaited.url if job.awaited else ""),
            ("logs", "\n".join(f"{name}  {page}" for name, page in sorted(job.awaited.logs.items())) if job.awaited else ""),
            ("ordering key", job.ordering_key),
            ("after", "\n".join(f"{each.job or f'group {each.group}'}  {each.outcome or 'has not ended'}" for each in job.after)),
            ("limit", _limit(job)),
            ("expires", when(job.expires_at)),
            ("group", job.group_id),
            ("task", f"{job.task_name} ({job.task_id})" if job.task_name else job.task_id),
            ("attempts", "\n".join(_attempt(each, now) for each in job.attempts)),
            ("answer", f"HTTP {job.response.status}\n{job.response.body}".rstrip() if job.response else ""),
            ("output", job.output),
        ),
        quiet=job.id,
    )


def _limit(job: Job) -> str:
    """The key of its limit, and the limit."""
    limit = job.limit
    if limit is None:
        return ""
    parts = [f"{limit.concurrency} at once"] * (limit.concurrency is not None) + [f"{limit.rate} per {limit.period}"] * (
        limit.rate is not None
    )
    return f"{limit.key}: {', '.join(parts)}"


def _late(job: Job) -> str:
    """Return the start delay, which is that of the first attempt: `started_at` may be of a later one."""
    if job.started_at is None or job.start_delay_ms is None:
        return ""
    delay = words.milliseconds(job.start_delay_ms)
    is_first = job.started_at - job.scheduled_at == timedelta(milliseconds=job.start_delay_ms)
    return f", {delay} late" if is_first else f", first start {delay} late"


def _progress(job: Job) -> str:
    if job.progress is None or job.ended:
        return ""
    fraction = "" if job.progress.fraction is None else f"{job.progress.fraction:.0%} "
    return f"{fraction}{job.progress.message or ''}".strip()


def _attempt(each: Attempt, now: datetime) -> str:
    failure = f": {each.failure.kind}, {each.failure.message}" if each.failure else ""
    return f"{each.number}  {words.clock(each.started_at or each.picked_at, now)}  {each.outcome}{failure}"


def one(cli: Cli, id: str | None, key: str | None) -> Job:
    """Return the job of an id or a key. Raises Refused unless it is one of both."""
    if (id is None) == (key is None):
        raise Refused("give an id or --key, and not both", field="ID")
    return cli.client.jobs.get(id, key=key)


def watch(
    cli: Cli,
    ids: Ids = None,
    key: options.Key = None,
    timeout: Annotated[str | None, Option("--timeout", metavar="DURATION", help="Give up after this long; the exit code is 1.")] = None,
) -> int | None:
    """Watch jobs until they end. The exit code is 1 if one ends otherwise than succeeded.

    Without an id: all your jobs as they happen, until Ctrl-C. On a pipe, each change of a status is a line.
    """
    limit = None if timeout is None else options.checked("--timeout", words.duration, timeout)
    if not ids and key is None:
        return _all(cli, limit)
    jobs = [one(cli, each, None) for each in ids or ()] + ([one(cli, None, key)] if key is not None else [])
    return until_ended(cli, jobs, limit)


def until_ended(cli: Cli, jobs: Sequence[Job], limit: timedelta | None) -> int | None:
    """Watch jobs of one owner until they end, or raise Refused after `limit`. Returns the exit code."""
    begin, latest = cli.now(), list(jobs)

    def states() -> Iterator[Sequence[Job]]:
        while True:
            yield latest
            left = [index for index, job in enumerate(latest) if not job.ended]
            if not left:
                return
            if limit is not None and cli.now() - begin >= limit:
                ahead = words.words(latest[index].id for index in left)
                raise Refused(f"not ended within {words.span(limit)}: {ahead}", code=FAILED)
            cli.sleep(min(pause(latest[index], cli.now()) for index in left))
            for index in left:
                latest[index] = cli.client.jobs.get(latest[index].id)

    _follow(cli, states(), live=lambda current: columns(cli.now()))
    return 0 if all(job.succeeded for job in latest) else FAILED


def pause(job: Job, now: datetime) -> float:
    """Return how long to wait before the next read of a job, in seconds: little just before its instant and while it runs."""
    if job.status == "running" or job.due_at - now < SOON:
        return OFTEN
    return min(SELDOM, (job.due_at - now - SOON / 2).total_seconds())


def _all(cli: Cli, limit: timedelta | None) -> int | None:
    begin = cli.now()

    def states() -> Iterator[Sequence[Job]]:
        while True:
            past = list(islice(cli.client.jobs.list(limit=RECENT), RECENT))
            ahead = list(islice(cli.client.jobs.list(upcoming=True, limit=UPCOMING), UPCOMING))
            seen = {job.id: job for job in [*ahead, *past]}  # a job may fall due between the two reads
            yield sorted(seen.values(), key=lambda job: (job.scheduled_at, job.id))
            if limit is not None and cli.now() - begin >= limit:
                return
            cli.sleep(1.0)

    try:
        _follow(cli, states(), live=lambda current: columns(cli.now()))
    except KeyboardInterrupt:
        pass  # the usual end
    return None


def _follow(cli: Cli, states: Iterable[Sequence[Job]], live: Callable[[Sequence[Job]], Sequence[Column[Job]]]) -> None:
    """Show each state: as one table that changes, or as a line for each job whose status has changed."""
    if cli.out.live:
        with Live(console=cli.out.out, auto_refresh=False) as screen:
            for jobs in states:
                screen.update(table(jobs, live(jobs), cli.out.out.width), refresh=True)
        return
    before = dict[str, Any]()
    for jobs in states:
        changed = [job for job in jobs if before.get(job.id) != job.status]
        before |= {job.id: job.status for job in changed}
        for job in changed:
            if cli.out.as_json:
                cli.out.line(job.raw)
            elif not cli.out.quiet:
                cli.out.entries([job], columns(cli.now()), raw=lambda job: job.raw, none="", id=lambda job: job.id)


def cancel(
    cli: Cli,
    ids: Ids = None,
    key: options.Key = None,
    tag: options.Tags = None,
    type: options.Type = None,
    task: options.TaskId = None,
    status: options.Statuses = None,
    lane: options.Lane = None,
    since: options.Since = None,
    until: options.Until = None,
    all: options.All = False,
    rate: options.Rate = None,
    limit: options.AtMost = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    detach: options.Detach = False,
) -> int | None:
    """Cancel jobs: by id, by key, or all that a filter finds.

    With a filter it counts the jobs first and asks; then it shows the progress. Jobs that run are asked to stop only with
    `--status running`.
    """
    now = cli.now()
    filter = options.present(
        tag=tag,
        type=type,
        task=task,
        status=status,
        lane=lane,
        from_=options.instant("--since", since, now),
        to=options.instant("--until", until, now),
        all=all,
    )
    if filter and (ids or key):
        raise Refused("give ids, --key or a filter, not several of them", field="ID")
    if not filter and not ids and key is None:
        raise Refused("give an id, --key or a filter", field="ID", hint="To cancel all jobs that have not started: --all")
    client = cli.client.jobs
    if filter:
        request = many.BulkRequest("cancel", "job", client.cancel_many, client.estimate_cancel, filter, rate, limit)
        return many.carry_out(cli, request, dry_run=dry_run, yes=yes, detach=detach)
    jobs = [client.cancel(each) for each in ids or ()] + ([client.cancel(key=key)] if key is not None else [])
    _changed(cli, jobs, lambda job: f"Job {job.id} is {_cancelled(job)}.")
    return None


def _cancelled(job: Job) -> str:
    return job.status if job.status == "cancelled" else f"asked to stop, and is {job.status}"


def _changed(cli: Cli, jobs: Sequence[Job], sentence: Callable[[Job], str]) -> None:
    for job in jobs:
        if cli.out.as_json:
            cli.out.line(job.raw)
        else:
            cli.out.result(job.raw, sentence(job), quiet=job.id)


def retry(cli: Cli, ids: Ids = None, key: options.Key = None) -> None:
    """Run failed or killed jobs again, now and with all their attempts before them.

    For many at once: punctual dead-letters redrive
    """
    if not ids and key is None:
        raise Refused("give an id or --key", field="ID", hint="For many at once: punctual dead-letters redrive")
    client = cli.client.jobs
    jobs = [client.retry(each) for each in ids or ()] + ([client.retry(key=key)] if key is not None else [])
    _changed(cli, jobs, lambda job: f"Job {job.id} runs again.{waits(job)}")


def replay(
    cli: Cli,
    ids: Ids = None,
    key: options.Key = None,
    payload: Payload = None,
    delay: Delay = None,
    at: At = None,
    keep_ordering: Annotated[bool, Option("--keep-ordering", help="Wait for the earlier jobs of its ordering key.")] = False,
    tag: options.Tags = None,
    type: options.Type = None,
    task: options.TaskId = None,
    status: options.Statuses = None,
    since: options.Since = None,
    until: options.Until = None,
    all: options.All = False,
    rate: options.Rate = None,
    limit: options.AtMost = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    detach: options.Detach = False,
) -> int | None:
    """Do the work of ended jobs again, by new jobs: by id, by key, or all that a filter finds.

    The ended jobs stay as they are. A filter without `--status` finds those that succeeded, failed or were killed. It counts them first
    and asks; then it shows the progress. To run a failed job itself again: punctual jobs retry
    """
    now, client = cli.now(), cli.client.jobs
    filter = options.present(
        tag=tag,
        type=type,
        task=task,
        status=status,
        from_=options.instant("--since", since, now),
        to=options.instant("--until", until, now),
        all=all,
    )
    if filter and (ids or key):
        raise Refused("give ids, --key or a filter, not several of them", field="ID")
    if not filter and not ids and key is None:
        raise Refused("give an id, --key or a filter", field="ID")
    content = options.present(payload=None if payload is None else options.object_of("--payload", payload))
    changes = _time(delay, at) | options.present(keep_ordering=keep_ordering)
    if filter:
        if changes:
            raise Refused("is for single jobs, not for a filter", field="--keep-ordering" if keep_ordering else "--in" if delay else "--at")
        request = many.BulkRequest("replay", "job", client.replay_many, client.estimate_replay, filter | content, rate, limit)
        return many.carry_out(cli, request, dry_run=dry_run, yes=yes, detach=detach)
    changes |= content
    jobs = [client.replay(each, **changes) for each in ids or ()] + ([client.replay(key=key, **changes)] if key is not None else [])
    _changed(cli, jobs, lambda job: f"Job {job.id} replays {job.replay_of}.{waits(job)}")
    return None


Number = Annotated[int | None, Option("--attempt", metavar="N", help="The number of the attempt. Default: the last one.")]


def output(cli: Cli, id: Id = None, key: options.Key = None, attempt: Number = None) -> None:
    """Print all that an attempt put out: the output, or the body of the answer."""
    found = cli.client.jobs.output(*_attempt_of(cli, id, key, attempt))
    cli.out.document(found.raw) if cli.out.as_json else cli.out.raw(found.text)


def log(cli: Cli, id: Id = None, key: options.Key = None, attempt: Number = None) -> None:
    """Print all that was logged during an attempt."""
    found = cli.client.jobs.log(*_attempt_of(cli, id, key, attempt))
    cli.out.document(found.raw) if cli.out.as_json else cli.out.raw(found.text)


def _attempt_of(cli: Cli, id: str | None, key: str | None, attempt: int | None) -> tuple[str, int]:
    """Return the id of the job, and the number of the attempt: the last one, unless one is given."""
    if id is not None and key is None and attempt is not None:
        return id, attempt
    job = one(cli, id, key)
    if attempt is None and not job.attempts:
        raise Refused("the job has not been tried yet", field="ID", code=FAILED)
    return job.id, attempt if attempt is not None else job.attempts[-1].number
