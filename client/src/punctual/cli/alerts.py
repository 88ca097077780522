"""`punctual alerts`: the default alerts, for all tasks without alerts of their own."""

from datetime import timedelta
from typing import Annotated

import typer
from typer import Option

from punctual.cli import _words as words
from punctual.cli import tasks
from punctual.cli._app import Cli, Refused, command, group
from punctual.records import DefaultAlerts


def build() -> typer.Typer:
    app = group("alerts", "The default alerts: rules about time for all tasks without alerts of their own.")
    command(app, "show", "punctual alerts show")(show)
    command(app, "put", "punctual alerts put --late-after 5m --max-duration 1h --missed", "punctual alerts put --none")(put)
    return app


def show(cli: Cli) -> None:
    """Show the default alerts."""
    found = cli.client.receivers.default_alerts()
    rows = (*_rules(found), ("changed", words.clock(found.updated_at, cli.now())))
    cli.out.details(found.raw, rows, quiet="")


def put(
    cli: Cli,
    late_after: tasks.LateAfter = None,
    max_duration: tasks.MaxDuration = None,
    missed: tasks.Missed = False,
    none: Annotated[bool, Option("--none", help="No default alerts.")] = False,
) -> None:
    """Replace the default alerts. The future runs of the tasks with notifications, and without alerts, follow."""
    rules = tasks.alerts_of(late_after, max_duration, None, missed)
    if bool(rules) == none:
        raise Refused("give rules, or --none, and not both", field="--late-after")
    made = cli.client.receivers.put_default_alerts(**rules)
    text = f"The default alerts are {made.outcome}."
    if made.operation is not None:
        text += f" The future runs of the tasks are replaced: punctual operations watch {made.operation.id}{cli.again}"
    cli.out.result(made.raw, text, quiet="")


def _rules(alerts: DefaultAlerts) -> tuple[tuple[str, str], ...]:
    late, longest = alerts.late_after_seconds, alerts.max_duration_seconds
    return (
        ("late after", "no rule" if late is None else words.span(timedelta(seconds=late))),
        ("max duration", "no rule" if longest is None else words.span(timedelta(seconds=longest))),
        ("missed", "yes" if alerts.missed else "no"),
    )
