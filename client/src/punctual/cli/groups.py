"""`punctual groups`: jobs with common call-backs."""

from functools import partial
from typing import Annotated, get_args

import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _owners, jobs, many
from punctual.cli import _words as words
from punctual.cli._app import FAILED, Cli, Refused, command, group, stoppable
from punctual.cli._output import Column, instants
from punctual.records import CallKind, Group, GroupCallback

CALLS = get_args(CallKind)

Id = Annotated[str, Argument(metavar="ID", help="The id of the group.")]
File = Annotated[str, Argument(metavar="FILE", help="A file with the group as JSON: the body of POST /groups; - reads the standard input.")]
Statuses = Annotated[
    list[str] | None, Option("--status", "-s", metavar="STATUS", help="Only jobs that ended like this; repeat it for several.")
]


def build() -> typer.Typer:
    app = group("groups", "Groups of jobs, and the jobs that start when all jobs of a group have ended.")
    id = "01JD4Q8XKZ38W2M5R7T9V1C4FH"
    command(app, "create", "punctual groups create group.json", "punctual groups create group.json --watch")(create)
    command(app, "list", "punctual groups list", "punctual groups list --everyone --limit 100")(list_groups)
    command(app, "show", f"punctual groups show {id}", f"punctual groups show {id} --json | jq .counts.failed")(show)
    command(app, "jobs", f"punctual groups jobs {id}", f"punctual groups jobs {id} --status failed --status killed")(list_jobs)
    command(app, "watch", f"punctual groups watch {id} && echo done", f"punctual groups watch {id} --timeout 5m")(watch)
    command(app, "seal", f"punctual groups seal {id}")(seal)
    command(app, "cancel", f"punctual groups cancel {id} --yes")(cancel)
    return app


def progress(found: Group) -> str:
    """Return how far a group is, such as `37 of 50 ended, 2 failed`."""
    if found.counts is None:
        return f"{found.jobs} jobs"
    parts = [f"{found.jobs - found.counts.unfinished} of {found.jobs} ended"]
    parts += [f"{count} {name}" for name in ("failed", "killed", "cancelled", "skipped") if (count := getattr(found.counts, name))]
    return words.words(parts)


def _say(cli: Cli, found: Group) -> None:
    cli.out.result(found.raw, f"Group {found.id} is {found.state}: {progress(found)}.", quiet=found.id)


def create(
    cli: Cli,
    file: File,
    idempotency_key: Annotated[
        str | None, Option("--idempotency-key", metavar="KEY", help="A second create with this key makes no second group.")
    ] = None,
    follow: Annotated[bool, Option("--watch", "-w", help="Wait for its end, as `groups watch` does.")] = False,
) -> int | None:
    """Create a group with the jobs and call-backs of a file: either all jobs are accepted, or none."""
    body = options.object_of("FILE", f"@{file}")
    if unknown := body.keys() - {"name", *CALLS, "jobs", "seal", "seal_within"}:
        raise Refused(f"has the unknown field {min(unknown)!r}", field="FILE")
    members = body.pop("jobs", [])
    calls = [body[kind] for kind in CALLS if kind in body]
    if not isinstance(members, list) or not all(isinstance(each, dict) for each in [*members, *calls]):
        raise Refused("must have `jobs` as a list of objects, and each call-back as an object", field="FILE")
    made = cli.client.groups.create(members, idempotency_key=idempotency_key, **body)
    if follow:
        return until_ended(cli, made.group, None)
    found = made.group
    more = " Jobs may join: punctual jobs create --group …" if found.state == "open" else ""
    cli.out.result(made.raw, f"Group {found.id} is {found.state}: {progress(found)}.{more}", quiet=found.id)
    cli.out.remark(f"Watch it: punctual groups watch {found.id}{cli.again}")
    return None


def list_groups(cli: Cli, everyone: options.Everyone = False, limit: options.Limit = 20) -> None:
    """List groups, the newest first. Groups of more than 16 jobs show their progress in `show` only."""
    now = cli.now()
    listing = _owners.Listing[Group](
        partial(cli.client.groups.list, **options.present(limit=limit)),
        (
            Column("id", lambda each: each.id, essential=True),
            Column("state", lambda each: each.state, essential=True),
            instants("created", lambda each: each.created_at, now, essential=True),
            Column("progress", progress),
            Column("name", lambda each: each.name or ""),
        ),
        id=lambda each: each.id,
        none="There are no groups.",
        order=lambda each: (each.created_at, each.id),
    )
    _owners.show(cli, listing, everyone, limit)


def show(cli: Cli, id: Id) -> None:
    """Show a group: how many of its jobs have ended, and its call-backs."""
    found, now = cli.client.groups.get(id), cli.now()
    cli.out.details(
        found.raw,
        (
            ("id", found.id),
            ("state", found.state),
            ("name", found.name),
            ("progress", progress(found)),
            ("call-backs", "\n".join(map(_call, found.callbacks))),
            ("created", words.clock(found.created_at, now)),
            ("seal by", words.clock(found.seal_by, now) if found.state == "open" else ""),
            ("sealed", words.clock(found.sealed_at, now)),
            ("cancelled", words.clock(found.cancelled_at, now)),
            ("abandoned", words.clock(found.abandoned_at, now)),
            ("ended", words.clock(found.ended_at, now)),
            ("succeeded", words.clock(found.succeeded_at, now)),
        ),
        quiet=found.id,
    )


def _call(call: GroupCallback) -> str:
    return f"{call.kind}  {call.type}  {call.job_id or 'has not started'}"


def list_jobs(cli: Cli, id: Id, status: Statuses = None, limit: options.Limit = 20) -> None:
    """List the jobs of a group, in the order in which they joined."""
    ask = partial(cli.client.groups.jobs, id, **options.present(status=status, limit=limit))
    _owners.show(cli, jobs.listing(cli, ask, "The group has no such job."), False, limit)


def watch(
    cli: Cli,
    id: Id,
    timeout: Annotated[str | None, Option("--timeout", metavar="DURATION", help="Give up after this long; the exit code is 1.")] = None,
) -> int | None:
    """Wait until all jobs of a group have ended. The exit code is 1 unless all of them succeeded."""
    return until_ended(cli, cli.client.groups.get(id), timeout)


def until_ended(cli: Cli, found: Group, timeout: str | None) -> int | None:
    """Show the progress of a group until its end, or raise Refused after the time. Returns the exit code."""
    limit = None if timeout is None else options.checked("--timeout", words.duration, timeout)
    begin = cli.now()
    with (
        stoppable(cli, f"The group continues. To cancel it: punctual groups cancel {found.id}{cli.again}"),
        many.progress(cli, found.name or found.id, found.jobs) as show,
    ):
        while not found.ended:
            show(found.jobs - found.counts.unfinished if found.counts is not None else 0)
            if limit is not None and cli.now() - begin >= limit:
                raise Refused(f"not ended within {words.span(limit)}: {progress(found)}", code=FAILED)
            cli.sleep(many.EVERY)
            found = cli.client.groups.get(found.id)
    _say(cli, found)
    return None if found.succeeded else FAILED


def seal(cli: Cli, id: Id) -> None:
    """Let no other job join. The call-backs start once all jobs have ended."""
    _say(cli, cli.client.groups.seal(id))


def cancel(cli: Cli, id: Id, yes: options.Yes = False) -> None:
    """Seal a group and cancel its jobs that have not started. Running jobs continue."""
    found = cli.client.groups.get(id)
    cli.confirm(f"Cancel the jobs of the group {found.name or found.id}, {progress(found)}?", yes)
    _say(cli, cli.client.groups.cancel(id))
