"""`punctual tasks apply`, `export` and `schema`: schedules as code."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.text import Text
from typer import Option

from punctual import plan
from punctual.cli import _words as words
from punctual.cli import many
from punctual.cli._app import FAILED, Cli, Refused, command
from punctual.plan import Action, Change, FieldChange, Plan, Problem, Result, schema

CHANGES_AHEAD = 10  # the exit code of --dry-run if there is something to do
MOST_PROBLEMS = 50  # shown
SIGNS = {Action.CREATE: ("+", "green"), Action.CHANGE: ("~", "yellow"), Action.DELETE: ("-", "red")}
DONE = {Action.CREATE: "created", Action.CHANGE: "changed", Action.DELETE: "deleted", Action.KEEP: "unchanged"}
Label = Annotated[str | None, Option("--label", metavar="NAME", help="The label of files that name none; tasks get the tag managed:NAME.")]


def register(app: typer.Typer) -> None:
    command(
        app,
        "apply",
        "punctual tasks apply -f tasks.yaml --dry-run",
        "punctual tasks apply -f tasks.yaml --prune",
        "punctual tasks apply -f schedules/ --prune --yes        # in CI",
    )(apply)
    command(app, "export", "punctual tasks export > tasks.yaml", "punctual tasks export --label billing --format json")(export)
    command(app, "schema", "punctual tasks schema > tasks.schema.json")(print_schema)


def apply(
    cli: Cli,
    files: Annotated[
        list[str], Option("--file", "-f", metavar="FILE", help="A YAML or JSON file, a folder of them, or - for the standard input.")
    ],
    dry_run: Annotated[
        bool, Option("--dry-run", help="Show what would be done, and do nothing. The exit code is 10 if there is something.")
    ] = False,
    prune: Annotated[bool, Option("--prune", help="Delete tasks that carry a label of the files and are in none of them.")] = False,
    prune_most: Annotated[bool, Option("--prune-most", help="With --prune: delete even more than half of the tasks of a label.")] = False,
    label: Label = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
) -> int | None:
    """Create and change tasks so that they are as files say. Tasks are found again by their `key`.

    It shows what it would do and asks, then does it. A second run changes nothing, and a run that stopped halfway can be repeated.
    """
    try:
        document = plan.read(files, label=label)
        if prune and not document.labels:
            raise Refused("needs a label: write `label: NAME` at the top of the file, or give --label", field="--prune")
        if prune_most and not prune:
            raise Refused("goes with --prune", field="--prune-most")
        with many.progress(cli, "plan", len(document.items)) as show:
            todo = plan.plan(cli.client, document, prune=prune, progress=show)
    except plan.BadFile as bad:
        return _problems(cli, bad.problems)
    if not cli.out.as_json:
        _show(cli, todo)
    refused = "" if prune_most else " and ".join(str(each) for each in todo.excess)
    if refused and dry_run:
        cli.out.say(f"Without --prune-most this is refused: it would delete {refused}.")
    elif refused:
        raise Refused(f"would delete {refused}: nothing was changed", field="--prune", hint="If the files are complete: --prune-most")
    if dry_run or not todo.to_do:
        if cli.out.as_json:
            cli.out.document(_document(todo, None))
        return CHANGES_AHEAD if todo.to_do and dry_run else None
    cli.confirm("Apply?", yes)
    with many.progress(cli, "apply", len(todo.to_do)) as show:
        count = 0

        def progress(change: Change) -> None:
            nonlocal count
            count += 1
            show(count)

        result = plan.apply(cli.client, todo, progress=progress)
    return _report(cli, todo, result)


def _problems(cli: Cli, problems: tuple[Problem, ...]) -> int:
    """Print all rules that the files break, each with its file and line. Nothing was changed."""
    if cli.out.as_json:
        found = [{"file": each.file, "line": each.line, "field": each.field, "rule": each.rule} for each in problems]
        cli.out.err.file.write(json.dumps({"error": {"code": "bad_file", "message": "nothing was changed", "problems": found}}) + "\n")
    else:
        for each in problems[:MOST_PROBLEMS]:
            cli.out.err.print(Text.assemble(("error: ", "bold red"), str(each)))
        more = len(problems) - MOST_PROBLEMS
        cli.out.err.print(Text(f"Nothing was changed.{f' {more} more errors are not shown.' if more > 0 else ''}"))
    return 2


def _show(cli: Cli, todo: Plan) -> None:
    """Show a plan: a line for each task that changes, with the fields below it, and the numbers."""
    if not cli.out.quiet:
        for change in todo.to_do:
            sign, style = SIGNS[change.action]
            paused = " (it stays paused)" if change.is_paused and change.action is Action.CHANGE else ""
            run = f"  first run {change.next_run}" if change.next_run else ""
            cli.out.say(f"{sign} {change.key or change.name}  {words.short(change.name, 50)}{run}{paused}", style)
            for each in change.fields:
                cli.out.say(_field(each))
    counted = ", ".join(f"{todo.count(action)} to {verb}" for action, verb in zip(SIGNS, ("create", "change", "delete"), strict=True))
    cli.out.say(f"Plan: {counted}, {todo.count(Action.KEEP)} unchanged.")


def _field(each: FieldChange) -> str:
    return f"    {each.field}: {_value(each.before)} → {_value(each.after)}"


def _value(value: Any) -> str:
    return "(none)" if value is None else words.short(json.dumps(value, ensure_ascii=False))


def _report(cli: Cli, todo: Plan, result: Result) -> int | None:
    for failed in result.failed:
        if not cli.out.as_json:
            cli.out.err.print(Text.assemble(("error: ", "bold red"), str(failed)))
    if cli.out.as_json:
        cli.out.document(_document(todo, result))
    else:
        counted = ", ".join(f"{result.count(action)} {DONE[action]}" for action in SIGNS)
        cli.out.say(f"Done: {counted}.")
        if result.left:
            reason = result.reason or "stopped"
            cli.out.err.print(
                Text(f"{len(result.left)} of {len(todo.to_do)} changes were not begun: {reason}. Repeat the command to go on.")
            )
    return FAILED if result.failed or result.left else None


def _document(todo: Plan, result: Result | None) -> Mapping[str, Any]:
    """The plan for programs, and what came of each change if it was applied."""
    done = {id(change) for change in result.done} if result else set()
    failed = {id(each.change): str(each) for each in result.failed} if result else {}
    changes = [
        {
            "key": change.key,
            "name": change.name,
            "action": change.action.value,
            "fields": [{"field": each.field, "old": each.before, "new": each.after} for each in change.fields],
            **({"outcome": "done" if id(change) in done else "failed" if id(change) in failed else "not begun"} if result else {}),
            **({"error": failed[id(change)]} if id(change) in failed else {}),
        }
        for change in todo.to_do
    ]
    excess = [{"label": each.label, "deleted": each.deleted, "of": each.of} for each in todo.excess]
    return {"changes": changes, "unchanged": todo.count(Action.KEEP), "excess": excess, "applied": result is not None}


def export(
    cli: Cli,
    label: Annotated[str | None, Option("--label", metavar="NAME", help="Only the tasks that files with this label manage.")] = None,
    format: Annotated[str, Option("--format", help="yaml or json.")] = "yaml",
) -> None:
    """Write your tasks as a file that `apply` reads."""
    if format not in ("yaml", "json"):
        raise Refused(f"must be yaml or json, not {format!r}", field="--format")
    found = plan.entries(plan.tasks(cli.client, label), label)
    head = [f"Exported from {cli.client.url} at {cli.now().isoformat(timespec='seconds')}."]
    as_json = cli.out.as_json or format == "json"
    text = plan.to_json(found, label=label) if as_json else plan.to_yaml(found, label=label, head=head)
    cli.out.raw(text)


def print_schema(cli: Cli) -> None:
    """Print the JSON Schema of files of tasks: an editor completes and checks a file that names it in its first line."""
    cli.out.raw(schema.text())
