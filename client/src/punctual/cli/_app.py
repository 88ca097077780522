"""The parts that all commands share: options such as `--json` and `--owner`, examples in the help, and errors with a next step."""

import functools
import inspect
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.text import Text
from typer.core import TyperGroup

import punctual
from punctual import errors, profiles
from punctual.cli import _whose
from punctual.cli._output import Output
from punctual.texts import in_json, visible

FAILED, USAGE, NOT_SIGNED_IN, NOT_FOUND, NO_ANSWER, PROBLEMS, INTERRUPTED = 1, 2, 3, 4, 5, 6, 130
DEBUG = "PUNCTUAL_DEBUG"  # an environment variable: show the traceback of an unexpected error
ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}", re.IGNORECASE)  # an id that the API gives: a ULID
HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Refused(Exception):
    """A command cannot do as requested. `field` is the option or argument, `hint` what to do instead, `code` the exit code."""

    def __init__(self, message: str, *, field: str = "", hint: str = "", code: int = USAGE) -> None:
        super().__init__(message)
        self.message, self.field, self.hint, self.code = message, field, hint, code


def only(found: Sequence[_whose.Named], text: str, noun: str, field: str) -> _whose.Named:
    """Return the only owner of a name or an id. Raises Refused if there is none, or more than one."""
    if not found:
        raise Refused(f"there is no {noun} {text!r} among yours", field=field, hint="Your teams: punctual teams list", code=NOT_FOUND)
    if len(found) > 1:
        raise Refused(f"{len(found)} teams have the name {text!r}: give an id", field=field, hint=", ".join(each.id for each in found))
    return found[0]


def _now() -> datetime:
    return datetime.now(timezone.utc)


@dataclass(frozen=True)
class Setup:
    """The surroundings of a command: tests bring their own server, clock and pauses."""

    transport: httpx.BaseTransport | None = None
    now: Callable[[], datetime] = _now
    sleep: Callable[[float], None] = time.sleep
    terminal: bool | None = None  # whether the output is one; None: look


@dataclass
class Cli:
    """The first argument of each command: the API, the output and the clock.

    `owner` is the owner that the command line names, by name or id. `named` is the first id that it names, of a `noun` such as job that
    may be named by its key instead.
    """

    setup: Setup
    out: Output
    profile: str | None = None
    auth: str | None = None
    owner: str | None = None
    is_owned: bool = False  # whether the command is about the objects of one owner
    noun: str = ""
    named: str | None = None
    _client: list[punctual.Punctual] = field(default_factory=list)
    _whose: str = ""

    @property
    def client(self) -> punctual.Punctual:
        """The client of the profile, of the environment or of the current profile, in this order. Its calls are about the chosen owner.

        Raises NotConfigured, and Refused for an owner that is none.
        """
        if not self._client:
            auth: Any = self.auth
            client = punctual.Punctual(auth=auth, profile=self.profile, transport=self.setup.transport)
            self._client.append(client)
            if self.is_owned:
                self._choose(client)
        return self._client[0]

    def _choose(self, client: punctual.Punctual) -> None:
        """Let the calls be about the chosen owner, and tell a person at a terminal whose objects they are about."""
        if self.owner is not None:
            found = only(_whose.matches(client, self.owner), self.owner, "owner", "--owner")
            client.owner, self._whose = found.id, str(found)
            self.out.remark(f"Objects of {self._whose}")
        elif client.owner is not None:
            profile = profiles.find(self.profile)
            if profile is not None and profile.owner == client.owner:
                self._whose = str(_whose.Named(client.owner, profile.owner_name or client.owner))
                source = f"the profile {profile.name}. Your own: punctual teams use --mine"
            else:
                self._whose, source = client.owner, "PUNCTUAL_OWNER."
            self.out.remark(f"Objects of {self._whose}, as in {source}")

    @property
    def whose(self) -> str:
        """Name and id of the owner of the objects; nothing if they are one's own."""
        return self._whose if self.client.owner else ""

    @property
    def again(self) -> str:
        """`--owner` as it belongs to a next command."""
        return "" if self.owner is None else f" --owner {shlex.quote(self.owner)}"

    def now(self) -> datetime:
        return self.setup.now()

    def sleep(self, seconds: float) -> None:
        self.setup.sleep(seconds)

    def close(self) -> None:
        for client in self._client:
            client.close()

    def confirm(self, question: str, yes: bool) -> None:
        """Ask before something that cannot be undone. Raises Refused without `--yes` if nobody can answer, and if the answer is no."""
        if yes:
            return
        if not sys.stdin.isatty():
            raise Refused("needs a confirmation, and nobody can give it here", hint="To do it without a question: --yes")
        if not typer.confirm(visible(question), err=True):
            raise Refused("nothing was changed", code=FAILED)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON: one document, or a line for each entry of a list.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only, and no sentences.")]
ProfileName = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Use this profile instead of the current one.")]
Auth = Annotated[str | None, typer.Option("--auth", metavar="aws", help="Sign in as the AWS role of this machine.")]
Format = Annotated[str | None, typer.Option("-o", metavar="json", help="The same as --json, as other tools write it.")]
OwnerName = Annotated[
    str | None,
    typer.Option("--owner", metavar="OWNER", help="Of this owner: a team of yours by its name or id; for operators, any user or team."),
]
COMMON = (
    ("as_json", AsJson, False),
    ("output_format", Format, None),
    ("quiet", Quiet, False),
    ("profile", ProfileName, None),
    ("auth", Auth, None),
)
# Groups of commands about the objects of one owner.
OWNED = ("jobs", "tasks", "calendars", "monitors", "dead-letters", "operations", "keys", "secrets", "intake")
KEYED = {"jobs": "job", "tasks": "task"}  # groups whose objects have an id, and may have a key
ALIASES = {"get": "show", "ls": "list"}  # names that other tools have
ELSEWHERE = {
    "jobs delete": "a job is cancelled, and its history stays: punctual jobs cancel",
    "jobs rm": "a job is cancelled, and its history stays: punctual jobs cancel",
    "jobs pause": "tasks and lanes are paused: punctual tasks pause, punctual system pause",
    "health": "see punctual doctor for this machine, punctual status for the scheduler",
    "logs": "see punctual jobs log ID",
    "config": "see punctual profiles",
    "open": "the console is at the address that `make deploy`, `make run` or `punctual dev` prints",
}
MEANT = {  # words that people use for commands with another name
    "create": ("jobs create", "tasks create"),
    "add": ("jobs create", "tasks create"),
    "schedule": ("jobs create", "tasks create"),
    "cancel": ("jobs cancel",),
    "watch": ("jobs watch",),
    "pause": ("tasks pause", "system pause"),
    "resume": ("tasks resume", "system resume"),
    "tasks next": ("tasks preview",),
    "tasks year": ("tasks calendar",),
}
VERBS = {"set": ("put", "create", "update"), "create": ("put",), "add": ("create", "put"), "rm": ("delete",), "remove": ("delete",)}


class Group(TyperGroup):
    """A group of commands that also knows them by the names of other tools, or says what there is instead."""

    def get_command(self, context: Any, name: str) -> Any:
        found = super().get_command(context, name)
        return found if found is not None or name not in ALIASES else super().get_command(context, ALIASES[name])

    def resolve_command(self, context: Any, words: list[str]) -> Any:
        path = f"{'' if context.parent is None else f'{self.name} '}{words[0]}"
        if path in ELSEWHERE and self.get_command(context, words[0]) is None:
            context.fail(f"There is no command '{path}': {ELSEWHERE[path]}")
        if self.get_command(context, words[0]) is None and (meant := self._meant(context, path, words[0])):
            context.fail(f"There is no command '{path}'. Did you mean {' or '.join(map(repr, meant))}?")
        return super().resolve_command(context, words)

    def _meant(self, context: Any, path: str, word: str) -> Sequence[str]:
        """Return the commands that a word of other tools stands for: those of the table, else the first one that this group has."""
        verbs = [verb for verb in VERBS.get(word, ()) if context.parent is not None and self.get_command(context, verb) is not None]
        return MEANT.get(path) or [f"{self.name} {verb}" for verb in verbs[:1]]


def group(name: str, help: str) -> typer.Typer:
    """Return an empty group of commands."""
    settings: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None, "context_settings": HELP, "add_completion": False}
    return typer.Typer(name=name, cls=Group, help=help, **settings)


Function = Callable[..., int | None]


def command(app: typer.Typer, name: str, *examples: str, hidden: bool = False, owned: bool | None = None) -> Callable[[Function], Function]:
    """Register a function as the command `name`. A command that is `owned` has the option `--owner`; those of some groups are.

    Its first parameter is a `Cli`, the others are options and arguments of typer. The function returns the exit code. Its
    docstring is the help, in which each line begins a paragraph; `examples` are command lines, shown below the options.
    """

    def register(function: Function) -> Function:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        is_owned = app.info.name in OWNED if owned is None else owned
        common = (*COMMON, *((("owner", OwnerName, None),) if is_owned else ()))

        @functools.wraps(function)
        def run(
            context: typer.Context,
            as_json: bool,
            output_format: str | None,
            quiet: bool,
            profile: str | None,
            auth: str | None,
            **arguments: Any,
        ) -> None:
            setup = context.obj if isinstance(context.obj, Setup) else Setup()
            root = context.find_root().params
            owner = (arguments.pop("owner") if is_owned else None) or root.get("owner")
            everyone = bool(arguments.get("everyone"))
            out = Output(as_json or output_format == "json", quiet, setup.terminal)
            cli = Cli(setup, out, profile or root.get("profile"), auth or root.get("auth"), owner, is_owned and not everyone)
            if app.info.name in KEYED and "key" in arguments:
                cli.noun, cli.named = KEYED[app.info.name], arguments.get("id") or next(iter(arguments.get("ids") or ()), None)

            def work() -> int | None:
                _check_format(output_format)
                if owner and not is_owned:
                    raise Refused("this command is not about the objects of an owner", field="--owner")
                if owner and everyone:
                    raise Refused("give --owner or --everyone, not both", field="--everyone")
                return function(cli, **arguments)

            try:
                code = carry_out(cli, work)
            finally:
                cli.close()
            raise typer.Exit(code)

        parameters = [
            inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
            *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own),
            *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind) for name, kind, default in common),
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        del run.__wrapped__
        app.command(name, help=inspect.getdoc(function), epilog=_epilog(examples), hidden=hidden, context_settings=HELP)(run)
        return function

    return register


def _check_format(output_format: str | None) -> None:
    """Raise Refused for a format that there is not."""
    if output_format not in (None, "json"):
        hint = "Without it: a table at a terminal, lines with tabs on a pipe. Ids only: --quiet"
        raise Refused(f"must be json, not {output_format!r}", field="-o", hint=hint)


def _epilog(examples: Sequence[str]) -> str:
    """Return the examples as a paragraph that is not wrapped."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for each in examples for line in each.splitlines()) if examples else ""


def carry_out(cli: Cli, work: Callable[[], int | None]) -> int:
    """Return the exit code of the work; its errors are printed as a sentence and a next step, never as a traceback."""
    try:
        return work() or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has ended, as `head` does
        sys.stdout = Path(os.devnull).open("w")  # Python flushes it again at its end
        return 0
    except Refused as refused:
        message = f"{refused.field}: {refused.message}" if refused.field else refused.message
        return _report(cli, "refused", (message,), refused.hint, refused.code)
    except errors.ApiError as error:
        lines = tuple(str(detail) for detail in error.details) or (error.message,)
        if _is_no_id(cli, error):
            lines = (f"there is no {cli.noun} with the id {cli.named!r}",)
        return _report(cli, error.code, lines, _hint(cli, error), _exit_code(error), error)
    except errors.InvalidArgument as error:
        return _report(cli, "refused", (visible(str(error)),), "", USAGE)
    except errors.NoRoleToken as error:
        return _report(cli, "no_role_token", (str(error),), "", NOT_SIGNED_IN)
    except errors.NotConfigured as error:
        return _report(
            cli,
            "not_configured",
            (str(error),),
            "Sign in with: punctual login URL" if "punctual login" not in str(error) else "",
            NOT_SIGNED_IN,
        )
    except errors.NoAnswer as error:
        return _report(cli, "no_answer", (str(error),), f"Check the network and the address: {address(cli)}", NO_ANSWER)
    except errors.UnexpectedAnswer as error:
        hint = f"Check the address: {address(cli)}. It is what `make deploy` or `make run` prints as the API."
        return _report(cli, "unexpected_answer", (str(error),), hint, NO_ANSWER)
    except (errors.PunctualError, httpx.HTTPError, OSError) as error:
        return _report(cli, "failed", (str(error) or type(error).__name__,), "", FAILED)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        hint = f"This is a defect of the command. Please report it with what the command prints with {DEBUG}=1."
        return _report(cli, "defect", (f"{type(error).__name__}: {error}",), hint, FAILED)


def address(cli: Cli) -> str:
    """Return the address that the command uses, with the profile that has it; for messages."""
    if not cli.profile and (url := os.environ.get("PUNCTUAL_URL")):
        return f"{url} (from PUNCTUAL_URL)"
    try:
        found = profiles.find(cli.profile)
    except errors.NotConfigured:
        found = None
    return f"{found.url} (profile {found.name})" if found else "none is configured"


def _report(cli: Cli, code: str, lines: Sequence[str], hint: str, exit_code: int, error: errors.ApiError | None = None) -> int:
    """Print an error to the standard error: a line for each field, and what to do next; with `--json` as one JSON line."""
    stream = cli.out.err.file
    if cli.out.as_json:
        details = [{"field": each.field, "rule": each.rule} for each in error.details] if error else []
        found = {"code": code, "message": error.message if error else lines[0], "details": details, "hint": hint or None}
        stream.write(in_json({"error": found | ({"request_id": error.request_id} if error else {})}) + "\n")
    else:
        for line in lines:
            cli.out.err.print(Text.assemble(("error: ", "bold red"), line))
        if hint:
            cli.out.err.print(Text(hint))
    stream.flush()
    return exit_code


def _exit_code(error: errors.ApiError) -> int:
    if isinstance(error, errors.NotAuthenticated):
        return NOT_SIGNED_IN
    if isinstance(error, errors.NotFound):
        return NOT_FOUND
    return USAGE if isinstance(error, errors.InvalidRequest) else FAILED


def _hint(cli: Cli, error: errors.ApiError) -> str:
    """Return what to do about an error of the API; nothing if its message says it all."""
    if isinstance(error, errors.NotAuthenticated):
        if error.code == "role_refused":
            return ""
        name = cli.profile or os.environ.get(profiles_variable) or profiles.load().current
        if not cli.profile and any(os.environ.get(f"PUNCTUAL_{each}") for each in ("KEY", "TOKEN", "PASSWORD")):
            return "The credentials come from the environment (PUNCTUAL_KEY, PUNCTUAL_TOKEN or PUNCTUAL_USERNAME): renew them there."
        return (
            f"The login has expired or was ended. Sign in again: punctual login{f' --profile {name}' if name and name != 'default' else ''}"
        )
    if isinstance(error, errors.NotAllowed):
        return f"You are signed in at {address(cli)}. Your role: punctual whoami"
    if isinstance(error, errors.NotFound):
        key = f"For a key of your own: --key {shlex.quote(cli.named or '')}\n" if _is_no_id(cli, error) else ""
        return f"{key}Looked for at {address(cli)}. Another owner's objects: --owner NAME"
    if isinstance(error, errors.Throttled) and error.retry_after:
        return f"Try again in {error.retry_after:.0f} s."
    if error.status >= 500 and error.request_id:
        return f"The request id for the operators: {error.request_id}"
    return ""


def _is_no_id(cli: Cli, error: errors.ApiError) -> bool:
    """Whether nothing was found since the given id has not the form of one: it may be a key."""
    return isinstance(error, errors.NotFound) and cli.named is not None and ID.fullmatch(cli.named) is None


profiles_variable = "PUNCTUAL_PROFILE"


@contextmanager
def stoppable(cli: Cli, note: str) -> Iterator[None]:
    """Say on Ctrl-C that the work continues without this command, and how to stop it."""
    try:
        yield
    except KeyboardInterrupt:
        cli.out.remark(f"\n{note}")
        raise
