"""`punctual import`: tasks from schedules of EventBridge Scheduler, crontabs and calendars, as a file for `punctual tasks apply`."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from punctual import plan
from punctual.cli._app import FAILED, Cli, Refused, command, group
from punctual.plan import Entry, crontab, eventbridge, icalendar
from punctual.plan.export import visible
from punctual.plan.read import label_rule
from punctual.plan.stage_options import StageOptions

Label = Annotated[str | None, Option("--label", metavar="NAME", help="Write this label into the file, for apply --prune.")]
NEEDED = "# The stage needs these options, in stages/STAGE.toml, before the tasks are applied:"


def build() -> typer.Typer:
    app = group("import", "Turn other schedules into a tasks.yaml. Nothing is created: see punctual tasks apply.")
    command(
        app,
        "eventbridge",
        "punctual import eventbridge --group default > tasks.yaml",
        "punctual import eventbridge --aws-profile prod --region eu-central-1 --target legacy",
    )(from_eventbridge)
    command(app, "crontab", "crontab -l | punctual import crontab - --target commands --time-zone Europe/Berlin > tasks.yaml")(from_crontab)
    command(app, "rrule", "punctual import rrule events.ics --http https://example.com/run --time-zone Europe/Berlin > tasks.yaml")(
        from_rrule
    )
    return app


def from_eventbridge(
    cli: Cli,
    schedule_group: Annotated[str | None, Option("--group", metavar="NAME", help="Only the schedules of this group.")] = None,
    aws_profile: Annotated[str | None, Option("--aws-profile", metavar="NAME", help="The profile of the AWS credentials.")] = None,
    region: Annotated[str | None, Option("--region", help="The AWS region.")] = None,
    endpoint_url: Annotated[str | None, Option("--endpoint-url", metavar="URL", help="Another address of EventBridge Scheduler.")] = None,
    target: Annotated[
        str | None, Option("--target", metavar="NAME", help="The named target for schedules whose target has no equal here.")
    ] = None,
    label: Label = None,
) -> int | None:
    """Write the schedules of EventBridge Scheduler as tasks. It reads them with your own AWS credentials.

    Schedules without an equal are listed with the reason, and the exit code is 1. The options that the stage needs for the
    tasks are listed, too.
    """
    entries: list[Entry] = []
    options = StageOptions()
    refused: list[str] = []
    taken: set[str] = set()
    _check_label(label)
    for name, schedule in _schedules(schedule_group, aws_profile, region, endpoint_url):
        with _listed(name, refused):
            if isinstance(schedule, str):
                raise eventbridge.NoEqual(schedule)
            entries.append(eventbridge.entry(schedule, taken, now=cli.now(), target=target))
            options.add(entries[-1].body, schedule)
    return _written(cli, entries, refused, label, "EventBridge Scheduler", options.lines())


@contextmanager
def _listed(name: str, refused: list[str]) -> Iterator[None]:
    """Add the reason to `refused` if the schedule has no equal."""
    try:
        yield
    except eventbridge.NoEqual as reason:
        refused.append(f"{name} {reason}")


def _schedules(
    group_name: str | None, profile: str | None, region: str | None, endpoint_url: str | None
) -> Iterator[tuple[str, Mapping[str, Any] | str]]:
    """Yield the name of each schedule, with group, and what `GetSchedule` answers, or why it does not. Raises Refused."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise Refused("needs boto3", hint="Install it: pip install 'punctual-client[cli,aws]'") from None
    try:
        client = boto3.Session(profile_name=profile, region_name=region).client("scheduler", endpoint_url=endpoint_url)
        for page in client.get_paginator("list_schedules").paginate(**({"GroupName": group_name} if group_name else {})):
            for each in page["Schedules"]:
                try:
                    found: Mapping[str, Any] | str = client.get_schedule(Name=each["Name"], GroupName=each["GroupName"])
                except ClientError as error:  # deleted in between, or a policy for this one
                    found = f"cannot be read: {error}"
                yield f"{each['GroupName']}/{each['Name']}", found
    except (BotoCoreError, ClientError) as error:
        hint = "Check --aws-profile and --region; it needs scheduler:ListSchedules and scheduler:GetSchedule."
        raise Refused(f"AWS: {error}", hint=hint, code=FAILED) from error


def from_crontab(
    cli: Cli,
    file: Annotated[str, Argument(help="A crontab, or - for the standard input.")],
    target: Annotated[str | None, Option("--target", metavar="NAME", help="The named target that gets the commands.")] = None,
    http: Annotated[str | None, Option("--http", metavar="URL", help="The URL that gets the commands, by POST.")] = None,
    into: Annotated[
        str, Option("--field", metavar="NAME", help="The field of the target's payload that gets the command: body, event, message, input.")
    ] = "body",
    time_zone: Annotated[
        str | None, Option("--time-zone", "--tz", metavar="ZONE", help="The zone of the machine; needed unless the crontab sets CRON_TZ.")
    ] = None,
    user: Annotated[bool, Option("--user", help="The lines have a user before the command, as in /etc/crontab.")] = False,
    label: Label = None,
) -> int | None:
    """Write the lines of a crontab as tasks.

    Punctual runs no shell commands: a target of yours gets each command and runs it. Lines without an equal are listed with the reason,
    and the exit code is 1.
    """
    content = _content(target, http, into, 'It gets the commands as {"command": "…"} and runs them.')
    _check_label(label)
    data = _bytes(file)
    try:
        # A line that is not UTF-8 is left out by itself.
        found = crontab.read(data.decode("utf-8-sig", "surrogateescape"), content, time_zone=time_zone, with_user=user)
    except ValueError as error:
        raise Refused(str(error), field="--time-zone") from error
    refused = [f"{file}:{number}: {reason}: {line}" for number, line, reason in found.refused]
    return _written(cli, found.entries, refused, label, f"the crontab {file}")


def from_rrule(
    cli: Cli,
    file: Annotated[str, Argument(help="An iCalendar file, or lines with DTSTART and RRULE; - is the standard input.")],
    target: Annotated[str | None, Option("--target", metavar="NAME", help="The named target that gets the events.")] = None,
    http: Annotated[str | None, Option("--http", metavar="URL", help="The URL that gets the events, by POST.")] = None,
    into: Annotated[
        str, Option("--field", metavar="NAME", help="The field of the target's payload that gets the event: body, event, message, input.")
    ] = "body",
    time_zone: Annotated[str | None, Option("--time-zone", "--tz", metavar="ZONE", help="The zone of times without one.")] = None,
    label: Label = None,
) -> int | None:
    """Write the recurring events of an iCalendar file as tasks.

    A target of yours gets the summary of each event. Recurrence rules without an equal are listed with the reason, and the exit code is 1.
    """
    content = _content(target, http, into, 'It gets the summary of each event as {"event": "…"}.')
    _check_label(label)
    try:
        found = icalendar.read(_bytes(file).decode("utf-8-sig"), content, time_zone=time_zone, now=cli.now())
    except UnicodeDecodeError as error:
        raise Refused("is not UTF-8 text", field=file) from error
    except ValueError as error:
        raise Refused(str(error), field="--time-zone") from error
    refused = [f"{file}:{line}: {name} {reason}" for line, name, reason in found.refused]
    return _written(cli, found.entries, refused, label, f"the calendar {file}")


def _content(target: str | None, http: str | None, into: str, hint: str) -> crontab.Content:
    """Return what makes the fields of a task that say what it runs. Raises Refused."""
    if (target is None) == (http is None):
        raise Refused("give --target or --http, one of both", field="--target", hint=hint)
    return crontab.to_url(http) if http else crontab.to_target(str(target), into)


def _bytes(file: str) -> bytes:
    """Return what a file has; `-` is the standard input. Raises Refused."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror or error}", field=file) from error


def _check_label(label: str | None) -> None:
    """Raises Refused for a label that no file may have."""
    if label is not None and (rule := label_rule(label)):
        raise Refused(rule, field="--label")


def _written(cli: Cli, entries: list[Entry], refused: list[str], label: str | None, source: str, options: Sequence[str] = ()) -> int | None:
    head = [f"Imported from {source}. Check it, then: punctual tasks apply -f FILE --dry-run", *(f"Left out: {each}" for each in refused)]
    head += [NEEDED, *options] if options else []
    cli.out.raw(plan.to_json(entries, label=label) if cli.out.as_json else plan.to_yaml(entries, label=label, head=head))
    for each in refused:
        cli.out.err.print(f"left out: {visible(each)}", markup=False)
    for each in [NEEDED, *options] if options else []:
        cli.out.err.print(visible(each), markup=False)
    cli.out.remark(f"{len(entries)} tasks are written, {len(refused)} schedules are left out.")
    return FAILED if refused else None
