"""`punctual monitors` and `punctual monitor run`: work that runs elsewhere and pings."""

import subprocess
import sys
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import httpx
import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _owners
from punctual.cli import _words as words
from punctual.cli._app import Cli, Refused, command, group
from punctual.cli._output import Column, instants
from punctual.records import Monitor

PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # seconds between the tries of the last ping
PING_SECONDS = 5.0
TEXT_BYTES = 10_240  # of the output that goes with the last ping
NOT_STARTED = 127  # the exit code of a shell for a command that it does not find

Key = Annotated[str, Argument(metavar="KEY", help="The key of the monitor.")]
Period = Annotated[str | None, Option("--period", metavar="DURATION", help="The longest time from one ping to the next, such as 5m.")]
Cron = Annotated[str | None, Option("--cron", metavar="EXPRESSION", help="The times of the work, such as '30 2 * * *'.")]
Zone = Annotated[str | None, Option("--time-zone", metavar="ZONE", help="The time zone of --cron, such as Europe/Berlin.")]
Grace = Annotated[str | None, Option("--grace", metavar="DURATION", help="The time by which a ping may be late (default 5m).")]
Longest = Annotated[str | None, Option("--max-duration", metavar="DURATION", help="The longest time of a run (default 1h).")]
Mails = Annotated[list[str] | None, Option("--email", metavar="ADDRESS", help="A receiver of notices; repeat it for several.")]
Receivers = Annotated[list[str] | None, Option("--receiver", metavar="NAME", help="A named receiver of notices; repeat it for several.")]
Default = Annotated[bool, Option("--default-receivers", help="Notify your default receivers.")]
Url = Annotated[str, Option("--url", metavar="URL", envvar="PUNCTUAL_PING_URL", help="The ping URL of the monitor.")]
Words = Annotated[list[str], Argument(metavar="-- COMMAND...", help="The command, behind two dashes.")]


def build() -> typer.Typer:
    app = group("monitors", "Work that runs elsewhere and pings: silence is reported.")
    command(app, "list", "punctual monitors list")(list_monitors)
    command(app, "show", "punctual monitors show backup")(show)
    command(
        app,
        "put",
        "punctual monitors put sync 'Sync' --period 5m --grace 1m --email ops@example.com",
        "punctual monitors put backup 'Backup' --cron '30 2 * * *' --time-zone Europe/Berlin --max-duration 2h --default-receivers",
    )(put)
    command(app, "history", "punctual monitors history backup")(history)
    command(app, "pause", "punctual monitors pause backup")(pause)
    command(app, "resume", "punctual monitors resume backup")(resume)
    command(app, "renew-token", "punctual monitors renew-token backup")(renew_token)
    command(app, "delete", "punctual monitors delete backup --yes")(delete)
    return app


def build_run() -> typer.Typer:
    app = group("monitor", "Run a command that a monitor watches.")
    command(app, "run", "punctual monitor run --url https://… -- /usr/local/bin/backup --full", owned=False)(run)
    return app


def list_monitors(cli: Cli, everyone: options.Everyone = False, limit: options.Limit = 20) -> None:
    """List monitors by key."""
    now = cli.now()
    listing = _owners.Listing[Monitor](
        partial(cli.client.monitors.list, **options.present(limit=limit)),
        (
            Column("key", lambda each: each.key, essential=True),
            Column("state", lambda each: each.state, essential=True),
            instants("since", lambda each: each.since, now, essential=True),
            instants("last ping", lambda each: each.pinged_at, now),
            instants("next expected", lambda each: each.expected_at, now),
            Column("name", lambda each: each.name),
        ),
        id=lambda each: each.key,
        none="There are no monitors.",
        order=lambda each: (each.key,),
    )
    _owners.show(cli, listing, everyone, limit)


def show(cli: Cli, key: Key) -> None:
    """Show a monitor: its state, its ping URL, and when the next ping is expected."""
    _show(cli, cli.client.monitors.get(key))


def put(
    cli: Cli,
    key: Key,
    name: Annotated[str, Argument(metavar="NAME", help="The name for people.")],
    period: Period = None,
    cron: Cron = None,
    time_zone: Zone = None,
    grace: Grace = None,
    max_duration: Longest = None,
    email: Mails = None,
    receiver: Receivers = None,
    default_receivers: Default = False,
) -> None:
    """Create a monitor, or replace the one with this key. Its ping URL stays."""
    if (period is None) is (cron is None):
        raise Refused("give --period or --cron, and not both", field="--period")
    if default_receivers and (email or receiver):
        raise Refused("goes without --email and --receiver", field="--default-receivers")
    if time_zone is not None and cron is None:
        raise Refused("goes with --cron only", field="--time-zone")
    schedule: Any = None if cron is None else {"cron": cron, **options.present(time_zone=time_zone)}
    receivers: Any = options.present(emails=email, receivers=receiver)
    found = cli.client.monitors.put(
        key,
        name,
        schedule=schedule,
        period_seconds=_seconds("--period", period),
        grace_seconds=_seconds("--grace", grace),
        max_duration_seconds=_seconds("--max-duration", max_duration),
        notifications=receivers if receivers or default_receivers else None,
    )
    _show(cli, found)
    if found.warning:
        cli.out.remark(found.warning)


def history(cli: Cli, key: Key) -> None:
    """List the last pings and changes of a monitor, the newest first."""
    now = cli.now()
    cli.out.entries(
        cli.client.monitors.history(key),
        (
            instants("at", lambda each: each.at, now, essential=True),
            Column("event", lambda each: each.kind, essential=True),
            Column("exit code", lambda each: "" if each.exit_code is None else str(each.exit_code)),
            Column("duration", lambda each: "" if each.duration_seconds is None else f"{each.duration_seconds:g} s"),
            Column("text", lambda each: each.body.partition("\n")[0]),
        ),
        raw=lambda each: each.raw,
        none="It has no history.",
        id=lambda each: str(each.raw["at"]),
    )


def pause(cli: Cli, key: Key) -> None:
    """Stop watching: pings are recorded, and nothing else happens."""
    _say(cli, cli.client.monitors.pause(key))


def resume(cli: Cli, key: Key) -> None:
    """Begin a new period."""
    _say(cli, cli.client.monitors.resume(key))


def renew_token(cli: Cli, key: Key) -> None:
    """Give a monitor a new ping URL. The former one is invalid from then on."""
    _show(cli, cli.client.monitors.renew_token(key))


def delete(cli: Cli, key: Key, yes: options.Yes = False) -> None:
    """Delete a monitor. Its ping URL is invalid from then on."""
    cli.confirm(f"Delete the monitor {key}?", yes)
    cli.client.monitors.delete(key)
    cli.out.result({"key": key}, f"Monitor {key} is deleted.", quiet=key)


def run(
    cli: Cli,
    command: Words,
    url: Url,
    send_output: Annotated[bool, Option("--send-output", help="Send the end of its output, up to 10 kB, with the last ping.")] = False,
) -> int:
    """Run a command, and ping when it starts and when it ends, with its exit code. Needs no sign-in.
    The command runs whether the pings arrive or not. The exit code is that of the command."""
    number, address = uuid.uuid4().hex, url.rstrip("/")
    with httpx.Client(transport=cli.setup.transport, timeout=PING_SECONDS) as http:
        if not _ping(http, f"{address}/start", number, b""):
            cli.out.remark("The ping of the start has not arrived.")
        code, text = _run(command, send_output)
        for pause_s in (*PAUSES, None):
            if _ping(http, f"{address}/{code}", number, text):
                break
            if pause_s is None:
                cli.out.remark("The ping of the end has not arrived.")
            else:
                cli.sleep(pause_s)
    return code


def _run(command: Sequence[str], keep: bool) -> tuple[int, bytes]:
    """Run the command. Returns its exit code from 0 to 255, and the end of its output if it is kept; the output is shown in any case."""
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE if keep else None, stderr=subprocess.STDOUT if keep else None) as process:
            text = b""
            for line in process.stdout or ():
                sys.stdout.write(line.decode(errors="replace"))
                sys.stdout.flush()
                text = (text + line)[-TEXT_BYTES:]
            code = process.wait()
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_STARTED, f"{command[0]}: {error.strerror}".encode()
    return (code if code >= 0 else 128 - code) & 255, text


def _ping(http: httpx.Client, url: str, run: str, text: bytes) -> bool:
    """Send a ping. False if another try may succeed."""
    try:
        answered = http.post(url, params={"run": run}, content=text)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        return _not_a_monitor()
    except httpx.HTTPError:
        return False
    return _not_a_monitor() if answered.status_code in (400, 404) else answered.is_success


def _not_a_monitor() -> bool:
    sys.stderr.write("The ping URL is not that of a monitor.\n")
    return True


def _seconds(name: str, text: str | None) -> int | None:
    return None if text is None else int(options.checked(name, words.duration, text).total_seconds())


def _say(cli: Cli, found: Monitor) -> None:
    cli.out.result(found.raw, f"Monitor {found.key} is {found.state}.", quiet=found.key)


def _show(cli: Cli, found: Monitor) -> None:
    now = cli.now()
    cli.out.details(
        found.raw,
        (
            ("key", found.key),
            ("name", found.name),
            ("state", found.state),
            ("since", words.clock(found.since, now)),
            ("ping URL", "" if found.ping_path is None else cli.client.url + found.ping_path),
            ("last ping", words.clock(found.pinged_at, now)),
            ("next expected", words.clock(found.expected_at, now)),
            ("down at", words.clock(found.down_at, now)),
            ("running since", words.clock(found.running_since, now)),
        ),
        quiet=found.key,
    )
