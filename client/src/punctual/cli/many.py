"""One action on many jobs or tasks: count, ask, start, and show how far it is; and `punctual operations`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from typer import Argument

from punctual.cli import _options as options
from punctual.cli import _owners
from punctual.cli import _words as words
from punctual.cli._app import FAILED, Cli, command, group, stoppable
from punctual.cli._output import Column, instants
from punctual.records import Estimate, Operation, Redrive

EVERY = 1.0  # seconds between two reads of an operation
PAST = {"cancel": "cancelled", "replay": "replayed", "pause": "paused", "resume": "resumed", "delete": "deleted"}


@dataclass(frozen=True)
class BulkRequest:
    """An action on all things of the owner that a filter finds. `call` starts it, `count` only counts."""

    verb: str
    noun: str
    call: Callable[..., Operation]
    count: Callable[..., Estimate]
    filter: Mapping[str, Any]
    rate: int | None = None
    limit: int | None = None

    def things(self, count: int) -> str:
        return f"{count} {self.noun}{'' if count == 1 else 's'}"


def carry_out(cli: Cli, request: BulkRequest, *, dry_run: bool, yes: bool, detach: bool, **more: Any) -> int | None:
    """Count what the filter finds, ask, start the operation and wait for its end. Returns the exit code."""
    counted = request.count(**request.filter, **options.present(limit=request.limit))
    least = "" if counted.complete else "at least "
    if dry_run:
        cli.out.result(
            counted.raw, f"{least}{request.things(counted.matched)} would be {PAST[request.verb]}.".capitalize(), quiet=str(counted.matched)
        )
        return None
    if counted.matched:
        cli.confirm(f"{request.verb.capitalize()} {least}{request.things(counted.matched)}?", yes)
    made = request.call(**request.filter, **options.present(rate=request.rate, limit=request.limit, **more))
    if detach:
        follow = f"punctual operations watch {made.id}{cli.again}"
        cli.out.result(made.raw, f"Operation {made.id} runs. To follow it: {follow}", quiet=made.id)
        return None
    return wait(cli, made, counted.matched if counted.complete else None)


def wait(cli: Cli, made: Operation, total: int | None) -> int | None:
    """Show the progress of an operation until its end, and print the result. Returns the exit code."""
    with (
        stoppable(cli, f"The operation continues. To stop it: punctual operations abort {made.id}{cli.again}"),
        progress(cli, made.action.replace("_", " "), total) as show,
    ):
        while not made.ended:
            show(made.matched)
            cli.sleep(EVERY)
            made = cli.client.operations.get(made.id)
        show(made.matched)
    cli.out.result(made.raw, f"Operation {made.id} is {made.status}: {summary(made)}.", quiet=made.id)
    return FAILED if made.failed or made.status == "aborted" else None


def summary(made: Operation) -> str:
    return words.words(
        f"{count} {name}"
        for name, count in (("done", made.done), ("skipped", made.skipped), ("failed", made.failed), ("conflicts", made.conflicts))
        if count or name == "done"
    )


@contextmanager
def progress(cli: Cli, what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar at a terminal; yields what takes the count so far. Without a `total` the bar only moves."""
    if not cli.out.live:
        yield lambda count: None
        return
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=cli.out.out, transient=True) as bars:
        bar = bars.add_task(what, total=total)
        yield lambda count: bars.update(bar, completed=count, total=None if total is None else max(total, count))


def build() -> typer.Typer:
    app = group("operations", "Follow and abort what runs on many jobs or tasks.")
    command(app, "list", "punctual operations list", "punctual operations list --everyone")(list_operations)
    command(app, "show", "punctual operations show 01JD4Q8XKZ38W2M5R7T9V1C4FH")(show)
    command(app, "watch", "punctual operations watch 01JD4Q8XKZ38W2M5R7T9V1C4FH")(watch)
    command(app, "abort", "punctual operations abort 01JD4Q8XKZ38W2M5R7T9V1C4FH")(abort)
    return app


Id = Annotated[str, Argument(help="The id of the operation.")]


def list_operations(cli: Cli, everyone: options.Everyone = False, limit: options.Limit = 20) -> None:
    """List operations and redrives: first the running ones, then the latest ended ones."""
    now = cli.now()
    listing = _owners.Listing[Operation](
        partial(cli.client.operations.list, **options.present(limit=limit)),
        (
            Column("id", lambda each: each.id, essential=True),
            Column("action", lambda each: each.action.replace("_", " ")),
            Column("status", lambda each: each.status, essential=True),
            instants("started", lambda each: each.started_at, now, essential=True),
            Column("result", summary),
            Column("filter", _filter),
        ),
        id=lambda each: each.id,
        none="There are no operations.",
        order=lambda each: (not each.ended, each.started_at),
    )
    _owners.show(cli, listing, everyone, limit)


def _filter(made: Operation) -> str:
    chosen = {name: value for name, value in (made.raw.get("filter") or {}).items() if value not in (None, [], "")}
    return words.words(f"{name}={words.words(value) if isinstance(value, list) else value}" for name, value in chosen.items()) or "all"


def show(cli: Cli, id: Id) -> None:
    """Show how far an operation is."""
    made, now = cli.client.operations.get(id), cli.now()
    _show(
        cli,
        made,
        (("action", made.action.replace("_", " ")), ("filter", _filter(made)), ("rate", f"{made.rate} a second")),
        now,
        summary(made),
    )


def _show(cli: Cli, made: Operation | Redrive, more: Sequence[tuple[str, object]], now: Any, result: str) -> None:
    cli.out.details(
        made.raw,
        (
            ("id", made.id),
            ("status", made.status),
            *more,
            ("matched", made.matched),
            ("result", result),
            ("started", words.clock(made.started_at, now)),
            ("ended", words.clock(made.ended_at, now)),
        ),
        quiet=made.id,
    )


def watch(cli: Cli, id: Id) -> int | None:
    """Wait for the end of an operation. The exit code is 1 if it was aborted, or a job or task of it failed."""
    return wait(cli, cli.client.operations.get(id), None)


def abort(cli: Cli, id: Id) -> None:
    """Abort an operation. Its changes so far stay."""
    made = cli.client.operations.abort(id)
    cli.out.result(made.raw, f"Operation {made.id} is {made.status}: {summary(made)}.", quiet=made.id)
