"""The command `punctual`: what people and scripts do with a stage of Punctual, from a terminal."""

import sys
from typing import Annotated

import typer

import punctual
from punctual.cli import (
    alerts,
    audit,
    aws_actions,
    calendars,
    dead_letters,
    dev,
    groups,
    importing,
    intake,
    jobs,
    keys,
    many,
    monitors,
    principals,
    receivers,
    secrets,
    signin,
    state,
    status,
    system,
    targets,
    tasks,
    teams,
    users,
)
from punctual.cli._app import FAILED, HELP, NO_ANSWER, NOT_FOUND, NOT_SIGNED_IN, PROBLEMS, USAGE, Auth, Group, OwnerName
from punctual.cli.apply import CHANGES_AHEAD

EXIT_CODES = (
    (0, "done"),
    (FAILED, "it failed: the API refused it, or a watched job did not succeed"),
    (USAGE, "a command, an option or a field is wrong"),
    (NOT_SIGNED_IN, "not signed in, or the sign-in has ended"),
    (NOT_FOUND, "there is no such job, task or other object"),
    (NO_ANSWER, "no answer, or none of Punctual"),
    (PROBLEMS, "`status --check` found a problem"),
    (CHANGES_AHEAD, "`tasks apply --dry-run` found something to do"),
)


def build() -> typer.Typer:
    """Return the whole command."""
    codes = "\n".join(f"  {code}  {meaning}" for code, meaning in EXIT_CODES)
    examples = (
        "  punctual login https://…\n  punctual jobs create --in 10s --watch log hello\n  punctual tasks apply -f tasks.yaml --dry-run"
    )
    app = typer.Typer(
        name="punctual",
        cls=Group,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP,
        epilog=f"\b\nExamples:\n{examples}\n\n\b\nExit codes:\n{codes}",
    )

    @app.callback(help="Schedule jobs with Punctual. Begin with: punctual login URL")
    def everything(
        profile: Annotated[
            str | None, typer.Option("--profile", metavar="NAME", help="Use this profile instead of the current one.")
        ] = None,
        auth: Auth = None,
        owner: OwnerName = None,
        version: Annotated[
            bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version of this program.")
        ] = False,
    ) -> None:
        pass

    @app.command("help", hidden=True)
    def help_of(context: typer.Context, words: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]...")] = None) -> None:
        """Show the help of a command; the same as its option --help."""
        root = context.find_root()
        root.command.main([*(words or ()), "--help"], prog_name=root.info_name)

    signin.register(app)
    status.register(app)
    for part in (
        jobs,
        groups,
        tasks,
        monitors,
        calendars,
        dead_letters,
        many,
        targets,
        receivers,
        alerts,
        aws_actions,
        secrets,
        teams,
        keys,
        users,
        principals,
        system,
        intake,
        importing,
    ):
        app.add_typer(part.build())
    app.add_typer(monitors.build_run())
    audit.register(app)
    state.register(app)
    dev.register(app)
    return app


def _print_version(requested: bool) -> None:
    if requested:
        sys.stdout.write(f"punctual {punctual.__version__}\n")
        raise typer.Exit


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a pipe on Windows may lack the characters of tables
            stream.reconfigure(errors="replace")
    build()()
