"""Causes of late jobs on the local stack: a machine with too much to do, or a pause. The local run says so, and goes on."""

import os
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from punctual import NoAnswer, Unavailable
from punctual.records import Problem

from local.steps import console

PATIENCE = 30.0  # seconds without an answer until the reason is printed
Result = TypeVar("Result")


class Patience:
    """A wait that prints its reason after `PATIENCE`, then after twice as long, and so on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began, self._next = clock(), PATIENCE

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    def tell(self, what: str) -> None:
        """Print what is awaited, if it is time to."""
        if self.seconds >= self._next:
            self._next *= 2
            console.print(f"  [yellow]![/] {what} for {self.seconds:.0f} s: this machine is busy ({load()}). Waiting; Ctrl-C stops.")


def load() -> str:
    """Return the load of this machine for people: processes that run or wait, beside the processors."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def until_answered(
    act: Callable[[], Result], alive: Callable[[], bool], pause: Callable[[float], None] = time.sleep, patience: Patience | None = None
) -> Result:
    """Call the API until it answers. Raises the error of a call if the local AWS has ended, or the error is another one than silence."""
    patience = patience or Patience()
    while True:
        try:
            return act()
        except (NoAnswer, Unavailable):
            if not alive():
                raise
            patience.tell("The API has not answered")
            pause(1.0)


def pauses(problems: Iterable[Problem], client: str = ".venv/bin/punctual") -> list[str]:
    """Return a sentence for each paused lane, with its author, its reason and the command to resume it. A stack keeps pauses.

    `client` is what people type for the command `punctual`.
    """
    return [
        f"{each.title}. By {each.by_name or each.by or 'the scheduler'}: {each.reason or 'no reason was given'}. "
        + (f"{each.remedy.label}: {client}{each.remedy.command.removeprefix('punctual')}" if each.remedy else "")
        for each in problems
        if each.kind == "lane_paused"
    ]
