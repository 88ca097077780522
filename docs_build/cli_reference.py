"""Write the reference page of the command line, from the commands themselves: python -m docs_build.cli_reference"""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from punctual.cli import EXIT_CODES, build

PAGE = Path(__file__).parent.parent / "docs/reference/cli.md"
WIDTH = 98  # characters of a line
COMMON = ("--json", "-o", "--quiet", "--profile", "--help")
NOT_RUN = "<!-- not run: tests/system/test_cli.py runs commands like these, a unit test parses them -->"
HEAD = """\
# The command line

`pip install 'punctual-client[cli]'` installs the command `punctual`, with the Python client.
[Your first job](../get-started/first-job.md) shows it at work. This page is generated from the help
of the commands.

## Options of every command

| option | meaning |
|---|---|
| `--json`, `-o json` | print JSON: one document, or one line for each entry of a list; nothing else is printed |
| `--quiet`, `-q` | print ids only |
| `--profile NAME` | use this profile; before or after the command |
| `--help`, `-h` | show the help with examples; `punctual help COMMAND` does the same |

`punctual --version` prints the version. In each group `get` is another name of `show`, and `ls` of
`list`.

A command that lists `--owner` is about your own objects, or with `--owner NAME` about those of a
team of yours. Operators may see the objects of any user or team, administrators may change them.
The option may stand before the command, too. `punctual teams use` stores a team in the profile, so
that the option is not necessary. A terminal then shows whose objects they are.
`--everyone` lists those of up to 300 users and teams, one by one, and says so if there are more.

At a terminal a list is a table. On a pipe it is one line for each entry, with tabs between the
fields and without headings. Texts are whole there, and times have date and offset (ISO 8601).
Colours need a terminal, and `NO_COLOR` turns them off.

Errors go to the standard error: a line for each field with its rule, and what to do next. With
`--json` an error is one JSON line there.

## Exit codes

| code | meaning |
|---|---|
"""
SETTINGS = """
## Profiles and the environment

`punctual login` stores tokens or an API key in a profile, and never a password. The file is
`profiles.json` in the folder `punctual` of your platform's configuration folder, such as
`~/.config/punctual`. Only you can read it.

| variable | meaning |
|---|---|
| `PUNCTUAL_PROFILE` | the profile to use, as `--profile` |
| `PUNCTUAL_URL` | the address of the API, instead of a profile |
| `PUNCTUAL_KEY` | an API key, as in CI |
| `PUNCTUAL_TOKEN` | an access token |
| `PUNCTUAL_AUTH` | `aws`: the [AWS role](../guides/aws-identity.md) of the program, as `--auth aws` |
| `PUNCTUAL_USERNAME`, `PUNCTUAL_PASSWORD` | a user; `login` reads the password, too |
| `PUNCTUAL_OWNER` | the id of the team, or other owner, instead of that of the profile |
| `PUNCTUAL_CONFIG` | another file for the profiles |
| `PUNCTUAL_DEBUG` | show the traceback of an unexpected error |

`punctual --install-completion` adds completion to your shell.
"""


def text() -> str:
    """Return the page as it is stored: the same for the same commands."""
    whole = typer.main.get_command(build())
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES)
    return "\n".join([HEAD + codes, SETTINGS, *_group(whole, ())]).rstrip() + "\n"


def _group(group: Any, path: tuple[str, ...]) -> Iterator[str]:
    """The commands of a group; those without a group are one of their own."""
    alone = {name: each for name, each in group.commands.items() if not hasattr(each, "commands") and not each.hidden}
    yield f"## {' '.join(path).capitalize().replace('-', ' ') or 'Sign-in and state'}"
    yield ""
    if path:
        yield from (group.help, "")
    for name, each in alone.items():
        yield from _command(each, (*path, name))
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from _group(each, (*path, name))


def _command(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and each.opts[0] not in COMMON]
    yield from (f"### {' '.join(path)}", "", *_wrapped(command.help))
    yield from ("```text", " ".join(("punctual", *path, *map(_argument, arguments), *(["[OPTIONS]"] if options else []))), "```", "")
    if arguments or options:
        yield from ("| argument or option | meaning |", "|---|---|")
        yield from (f"| `{_argument(each)}` | {_help(each)} |" for each in arguments)
        yield from (f"| {_option(each)} | {_help(each)} |" for each in options)
        yield ""
    yield from (NOT_RUN, "```sh", *(line.removeprefix("  ") for line in (command.epilog or "").splitlines()[2:]), "```", "")


def _wrapped(help: str) -> Iterator[str]:
    """The paragraphs of a help text, in lines that fit the page."""
    for paragraph in help.split("\n\n"):
        yield from (*textwrap.wrap(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False), "")


def _argument(each: Any) -> str:
    name = (each.metavar or each.name.upper()).strip("[]")
    return name if each.required else f"[{name}]"


def _option(each: Any) -> str:
    value = "" if each.is_flag else f" {each.metavar or each.opts[0].lstrip('-').upper()}"
    return ", ".join(f"`{name}{value}`" for name in each.opts)


def _help(each: Any) -> str:
    found: str = each.help or ""
    return found.replace("|", "\\|")


def main() -> int:
    PAGE.write_text(text())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
