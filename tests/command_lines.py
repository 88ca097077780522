"""Command lines that a text or an answer names."""

from typing import Any

import typer
from punctual import cli


def is_command_line(words: list[str]) -> None:
    """Raise an error of usage unless `punctual` takes these words."""
    command: Any = typer.main.get_command(cli.build())
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    command.make_context(command.name, words)
