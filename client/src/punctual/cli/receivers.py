"""`punctual receivers`: the named places to which notices are sent."""

from datetime import timedelta
from typing import Annotated, cast

import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli import signin
from punctual.cli._app import FAILED, Cli, Refused, command, group
from punctual.cli._output import Column, instants
from punctual.records import Receiver, ReceiverKind

ADDRESS = "PUNCTUAL_RECEIVER_ADDRESS"
KINDS = ("email", "webhook", "slack", "teams", "pagerduty")
WAIT, POLL_SECONDS = timedelta(seconds=30), 1.0  # for the result of a test

Name = Annotated[str, Argument(help="The name of the receiver.")]


def build() -> typer.Typer:
    app = group("receivers", "Named receivers of notices: e-mail, webhooks, Slack, Teams and PagerDuty.")
    command(app, "list", "punctual receivers list")(list_receivers)
    command(app, "show", "punctual receivers show ops --json")(show)
    command(
        app,
        "put",
        "punctual receivers put ops slack",
        'printf %s "$ROUTING_KEY" | punctual receivers put oncall pagerduty --region eu --default',
    )(put)
    command(app, "test", "punctual receivers test ops")(test)
    command(app, "delete", "punctual receivers delete ops --yes")(delete)
    return app


def list_receivers(cli: Cli) -> None:
    """List the receivers, without their addresses."""
    now = cli.now()
    cli.out.entries(
        cli.client.receivers.list(),
        (
            Column("name", lambda each: each.name, essential=True),
            Column("kind", lambda each: each.kind, essential=True),
            Column("address", lambda each: each.address),
            Column("default", lambda each: "yes" if each.default else "no"),
            Column("state", _state, essential=True),
            instants("tested", lambda each: each.tested_at, now),
        ),
        raw=lambda each: each.raw,
        none="There are no receivers. Create one: punctual receivers put --help",
        id=lambda each: each.name,
    )


def show(cli: Cli, name: Name) -> None:
    """Show a receiver, and how it answered lately."""
    found, now = cli.client.receivers.get(name), cli.now()
    cli.out.details(
        found.raw,
        (
            ("name", found.name),
            ("kind", found.kind),
            ("address", found.address),
            ("secret", found.signing_secret),
            ("default", "yes" if found.default else "no"),
            ("state", _state(found)),
            ("error", found.error),
            ("failed", words.clock(found.failed_at, now)),
            ("tested", words.clock(found.tested_at, now)),
            ("changed", words.clock(found.updated_at, now)),
        ),
        quiet=found.name,
    )


def put(
    cli: Cli,
    name: Name,
    kind: Annotated[str, Argument(help="Its kind: email, webhook, slack, teams or pagerduty.")],
    keep_address: Annotated[bool, Option("--keep-address", help="Keep the address of the stored receiver.")] = False,
    signing_secret: Annotated[
        str | None, Option("--signing-secret", metavar="NAME", help="The name of the secret that signs the calls; a webhook needs one.")
    ] = None,
    region: Annotated[str | None, Option("--region", metavar="REGION", help="The region of the PagerDuty account: us or eu.")] = None,
    default: Annotated[bool, Option("--default", help="It gets the notices of tasks that name no receiver.")] = False,
) -> None:
    """Create or replace a receiver.

    Its address is asked for, or read from PUNCTUAL_RECEIVER_ADDRESS or the standard input; it is no argument, which others could read.
    """
    if kind not in KINDS:
        raise Refused(f"is none of {', '.join(KINDS)}", field="KIND")
    address = None if keep_address else signin.secret(ADDRESS, f"Address of {name}")
    fields = options.present(address=address, signing_secret=signing_secret, region=region)
    made = cli.client.receivers.put(name, cast(ReceiverKind, kind), default=default, **fields)
    cli.out.result(made.raw, f"Receiver {made.name} is stored. Test it: punctual receivers test {made.name}", quiet=made.name)


def test(cli: Cli, name: Name) -> int | None:
    """Send a notice that is marked as a test, and wait for the result, for half a minute."""
    sent, until = cli.client.receivers.test(name), cli.now() + WAIT
    while True:
        found = cli.client.receivers.get(name)
        if found.tested_at is not None and found.tested_at >= sent.requested_at:
            cli.out.result(found.raw, f"The test has reached {name}.", quiet=name)
            return None
        if found.failed_at is not None and found.failed_at >= sent.requested_at:
            cli.out.result(found.raw, f"The test has not reached {name}: {found.error}", quiet=name)
            return FAILED
        if cli.now() >= until:
            cli.out.result(found.raw, f"The test was sent, and has no result yet: punctual receivers show {name}", quiet=name)
            return FAILED
        cli.sleep(POLL_SECONDS)


def delete(cli: Cli, name: Name, yes: options.Yes = False) -> None:
    """Delete a receiver. Refused while a task names it."""
    cli.confirm(f"Delete receiver {name}?", yes)
    cli.client.receivers.delete(name)
    cli.out.result({"name": name}, f"Receiver {name} is deleted.", quiet=name)


def _state(receiver: Receiver) -> str:
    return "off" if receiver.off else "failing" if receiver.error else "ok"
