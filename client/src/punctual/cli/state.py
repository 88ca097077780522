"""`punctual forecast`, `stats`, `types`, `doctor` and `version`: the state of the scheduler and of this client."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime

import typer

import punctual
from punctual import errors
from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli._app import FAILED, Cli, address, command
from punctual.cli._output import Column
from punctual.cli.signin import KINDS
from punctual.records import Forecast, ForecastMinute

HEIGHT = 8  # lines of the chart
LEAST_WIDTH = 30
MUCH_LAG_S, MUCH_SKEW_S = 180.0, 5.0


def register(app: typer.Typer) -> None:
    command(
        app,
        "forecast",
        "punctual forecast",
        "punctual forecast --everyone",
        "punctual forecast --json | jq .available_instances",
        owned=True,
    )(forecast)
    command(app, "stats", "punctual stats", "punctual stats --everyone --json", owned=True)(stats)
    command(app, "types", "punctual types", "punctual types --json | jq -r 'select(.type == \"http\").payload_schema'")(types)
    command(app, "doctor", "punctual doctor", "punctual doctor --profile prod --json")(doctor)
    command(app, "version", "punctual version")(version)


def forecast(cli: Cli, everyone: options.Everyone = False) -> None:
    """Show what starts in the next three hours, and how many executors it takes."""
    found = cli.client.forecast(scope="all" if everyone else None)
    if cli.out.as_json:
        cli.out.document(found.raw)
        return
    busy = [each for each in found.minutes if each.jobs]
    if not cli.out.live:
        for each in busy:
            cli.out.raw(f"{words.wire(each.scheduled_at)}\t{each.jobs}\t{each.compute_ms}\t{each.required_instances}")
        return
    if not busy:
        cli.out.say("Nothing starts in the next three hours.")
        return
    _chart(cli, found)
    peak = max(busy, key=lambda each: each.required_instances)
    total = sum(each.jobs for each in busy)
    when = words.clock(peak.scheduled_at, cli.now())
    need = f"{peak.required_instances} executor{'' if peak.required_instances == 1 else 's'}"
    cli.out.say(f"{total} jobs. The fullest minute is {when}: {peak.jobs} jobs, {need} of {found.available_instances} available.")
    if peak.required_instances > found.available_instances:
        cli.out.say("Jobs will start late: ask an administrator for more executors.", "bold red")


def _chart(cli: Cli, found: Forecast) -> None:
    """Draw the jobs of each minute, several minutes to a column if the terminal is narrow."""
    width = max(LEAST_WIDTH, cli.out.out.width - 10)
    step = -(-len(found.minutes) // width)
    groups = [found.minutes[at : at + step] for at in range(0, len(found.minutes), step)]
    heights = [sum(each.jobs for each in group) for group in groups]
    top = max(heights)
    for number, line in enumerate(words.columns(heights, HEIGHT)):
        cli.out.say(f"{top if number == 0 else '':>7} {line}", "cyan")
    cli.out.say(f"{0:>7} {_axis(groups)}", "dim")


def _axis(groups: list[tuple[ForecastMinute, ...]]) -> str:
    """Return the line below the chart: the time of day at every half hour."""
    line = [" "] * (len(groups) + 5)
    for index, group in enumerate(groups):
        mark = next((each for each in group if each.scheduled_at.minute % 30 == 0), None)
        if mark is not None and all(one == " " for one in line[index : index + 6]):
            line[index : index + 5] = mark.scheduled_at.astimezone().strftime("%H:%M")
    return "".join(line).rstrip()


def stats(cli: Cli, everyone: options.Everyone = False) -> None:
    """Show how jobs ended and how long they took, by type, over the past year."""
    found = cli.client.statistics(scope="all" if everyone else None)
    if cli.out.as_json:
        cli.out.document(found.raw)
        return
    cli.out.entries(
        found.types,
        (
            Column("type", lambda each: each.type, essential=True),
            *(
                Column(name, lambda each, name=name: getattr(each, name) or "", right=True)  # type: ignore[misc]
                for name in ("runs", "succeeded", "failed", "killed", "cancelled", "skipped", "late")
            ),
            Column("p50", lambda each: words.milliseconds(each.p50_ms), right=True),
            Column("p95", lambda each: words.milliseconds(each.p95_ms), right=True),
        ),
        raw=lambda each: each.raw,
        none="No job has ended yet.",
        id=lambda each: each.type,
    )


def types(cli: Cli) -> None:
    """List the types of jobs and the named targets. `--json` has the JSON Schema of each payload."""
    cli.out.entries(
        cli.client.types(),
        (
            Column("type", lambda each: each.type, essential=True),
            Column("target", lambda each: each.target or "", essential=True),
            Column("description", lambda each: each.description),
        ),
        raw=lambda each: each.raw,
        none="There are no types.",
        id=lambda each: each.target or each.type,
    )


def version(cli: Cli) -> None:
    """Show the versions of this program and of the server, if you are signed in."""
    data: dict[str, str | None] = {"client": punctual.__version__, "server": None, "api": None}
    try:
        found = cli.client.version()
        data |= {"server": found.version, "api": found.api}
    except errors.PunctualError:
        pass
    server = f"server {data['server']} (API {data['api']})" if data["server"] else "server unknown: see punctual doctor"
    cli.out.result(data, f"punctual {data['client']}, {server}", quiet=data["client"])


@dataclass(frozen=True)
class Check:
    """One line of the doctor: `state` is ok, warn or fail; `remedy` is what to do."""

    name: str
    state: str
    text: str
    remedy: str = ""


def doctor(cli: Cli) -> int | None:
    """Check the address, the sign-in, the clock, the lag of the scheduler and your quotas. The exit code is 1 if a check fails."""
    found = list(checks(cli))
    cli.out.entries(
        found,
        (
            Column("check", lambda each: each.name, essential=True),
            Column("state", lambda each: each.state, essential=True),
            Column("result", lambda each: each.text),
        ),
        raw=lambda each: {"check": each.name, "state": each.state, "result": each.text, "remedy": each.remedy or None},
        none="",
        id=lambda each: f"{each.name} {each.state}",
    )
    for each in found:
        if each.remedy and not cli.out.as_json:
            cli.out.say(f"{each.name}: {each.remedy}")
    return FAILED if any(each.state == "fail" for each in found) else None


def checks(cli: Cli) -> Iterator[Check]:
    """Check one thing after the other, until one fails on which the next ones depend."""
    try:
        client = cli.client
    except errors.NotConfigured as error:
        yield Check("address", "fail", str(error), "Sign in with: punctual login URL")
        return
    try:
        response = client.send("GET", "/health")
    except errors.PunctualError as error:
        text = str(error)
        if isinstance(error, errors.NotAuthenticated):
            yield Check("sign-in", "fail", text, "Sign in again: punctual login")
        else:
            yield Check("address", "fail", text, f"Check the network and the address: {address(cli)}")
        return
    if response.status_code == 401:
        yield Check("address", "ok", address(cli))
        yield Check("sign-in", "fail", "the API does not accept the token", "Sign in again: punctual login")
        return
    if response.is_error or "success" not in response.text:
        yield Check("address", "fail", f"{address(cli)} answered {response.status_code}, not as Punctual does", "Check the address.")
        return
    yield Check("address", "ok", address(cli))
    yield _clock(cli, response.headers.get("Date"))
    try:
        me = client.me()
    except errors.PunctualError as error:
        yield Check("sign-in", "fail", str(error), "Sign in again: punctual login")
        return
    yield Check("sign-in", "ok", f"{me.username}, {me.role or f'{KINDS.get(me.kind, me.kind)} with {words.words(me.scopes)}'}")
    yield from _scheduler(cli)
    quotas = me.effective_quotas
    most = "no limit of jobs" if quotas.max_jobs is None else f"at most {quotas.max_jobs} jobs that have not ended"
    rate = "no limit of creates" if quotas.creates_per_second is None else f"{quotas.creates_per_second:g} creates a second"
    yield Check("quotas", "ok", f"{most}, {rate}")


def _clock(cli: Cli, date: str | None) -> Check:
    if date is None:
        return Check("clock", "warn", "the answer has no date")
    off = (cli.now() - parsedate_to_datetime(date)).total_seconds() - 0.5  # the header has whole seconds
    if abs(off) <= MUCH_SKEW_S:
        return Check("clock", "ok", "agrees with the server's")
    ahead = f"{words.span(timedelta(seconds=off))} {'ahead of' if off > 0 else 'behind'} the server's"
    return Check("clock", "warn", ahead, "Set the clock of this machine (NTP): --at and --in are read by it or by the server.")


def _scheduler(cli: Cli) -> Iterator[Check]:
    health = cli.client.health()
    lag = health.lag_seconds
    if lag is None:
        yield Check("scheduler", "warn", "its lag is unknown")
    elif lag > MUCH_LAG_S:
        yield Check("scheduler", "fail", f"{lag:.0f} s behind", "Jobs start late. Operators: see the alarm Lag and its runbook.")
    else:
        yield Check("scheduler", "ok", f"{lag:.0f} s behind")
    if health.paused_lanes:
        yield Check("lanes", "warn", f"paused: {words.words(health.paused_lanes)}", "Jobs wait. See: punctual system status")
