"""`punctual system`."""

from collections.abc import Sequence
from typing import Annotated

import typer
from typer import Argument

from punctual.cli import _options as options
from punctual.cli._app import Cli, Refused, command, group
from punctual.cli._output import Column, instants
from punctual.records import LaneState

Lane = Annotated[str | None, Argument(metavar="[LANE]", help="one-time, recurring or retry.")]


def build() -> typer.Typer:
    app = group("system", "Lanes and breakers of the whole stage. Operators see them, administrators change them.")
    command(app, "status", "punctual system status")(status)
    command(app, "pause", "punctual system pause retry --reason 'incident 17'", "punctual system pause --all --yes")(pause)
    command(app, "resume", "punctual system resume retry", "punctual system resume --all")(resume)
    command(app, "breakers", "punctual system breakers")(breakers)
    command(
        app,
        "close-breaker",
        "punctual system close-breaker 'host api.example.com'",
        "punctual system close-breaker --owner shop 'host api.example.com'",
    )(close_breaker)
    return app


def status(cli: Cli) -> None:
    """Show whether each lane runs or is paused, since when and why."""
    _lanes(cli, cli.client.system.status())


def _lanes(cli: Cli, lanes: Sequence[LaneState]) -> None:
    now = cli.now()
    cli.out.entries(
        lanes,
        (
            Column("lane", lambda each: each.lane, essential=True),
            Column("state", lambda each: "paused" if each.paused else "active", essential=True),
            instants("since", lambda each: each.paused_at if each.paused else each.resumed_at, now),
            Column("by", lambda each: each.paused_by_name or each.paused_by or ""),
            Column("reason", lambda each: each.reason or ""),
        ),
        raw=lambda each: each.raw,
        none="There are no lanes.",
        id=lambda each: each.lane,
    )


def pause(cli: Cli, lane: Lane = None, all: options.All = False, reason: options.Reason = None, yes: options.Yes = False) -> None:
    """Pause one lane, or all. Jobs are accepted and wait; running ones go on."""
    if (lane is None) != all:
        raise Refused("give a lane or --all, and not both", field="LANE")
    cli.confirm(f"Pause {lane or 'all lanes'} for all users?", yes)
    _lanes(cli, cli.client.system.pause(**options.present(lane=lane, all=all, reason=reason)))


def resume(cli: Cli, lane: Lane = None, all: options.All = False, reason: options.Reason = None) -> None:
    """Resume one lane, or all."""
    if (lane is None) != all:
        raise Refused("give a lane or --all, and not both", field="LANE")
    _lanes(cli, cli.client.system.resume(**options.present(lane=lane, reason=reason)))


def breakers(cli: Cli) -> None:
    """List the breakers that are not closed. Jobs of theirs wait."""
    now = cli.now()
    cli.out.entries(
        cli.client.system.breakers(),
        (
            Column("circuit", lambda each: each.circuit, essential=True),
            Column("state", lambda each: each.state, essential=True),
            instants("since", lambda each: each.opened_at, now),
            instants("until", lambda each: each.until, now),
            Column("owner", lambda each: each.owner_name or each.owner or "all users"),
        ),
        raw=lambda each: each.raw,
        none="All breakers are closed.",
        id=lambda each: each.circuit,
    )


def close_breaker(
    cli: Cli,
    circuit: Annotated[str, Argument(help="The circuit, as `breakers` shows it.")],
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="OWNER", help="The name or id of its owner, if several owners have one.")
    ] = None,
    reason: options.Reason = None,
) -> None:
    """Close a breaker that is open: its jobs start again. If none was closed, the exit code is 4."""
    closed = cli.client.system.close_breaker(circuit, owner=owner, reason=reason)
    whose = closed.owner_name or closed.owner
    others = {0: "All others are closed, too.", 1: "1 other is not."}.get(len(closed.others), f"{len(closed.others)} others are not.")
    sentence = f"The breaker of {closed.circuit} is closed, {f'of {whose}' if whose else 'for all users'}. {others}"
    cli.out.result({**closed.raw, "open": [each.raw for each in closed.others]}, sentence, quiet=closed.circuit)
