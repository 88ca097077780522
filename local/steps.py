"""Progress for people: prints every step with its time, and on a terminal also its current detail."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

Say = Callable[[str], None]

console = Console(highlight=False, soft_wrap=True)
if not console.is_terminal:
    console.width = 120  # a log file has no width; the default of 80 columns would cut the table


@contextmanager
def step(title: str) -> Iterator[Say]:
    """Print a step, the details that the block reports, and in the end its seconds."""
    begin = time.monotonic()
    if console.is_terminal:
        with console.status(f"{title} …") as status:
            yield lambda detail: status.update(f"{title} … {detail} ({time.monotonic() - begin:.0f} s)")
    else:
        console.print(f"  … {title}")
        yield _sparsely(begin)
    console.print(f"  [green]✓[/] {title} [dim]({time.monotonic() - begin:.1f} s)[/]")


def _sparsely(last: float, gap: float = 3.0) -> Say:
    """Return a function that prints details at most every `gap` seconds, for a file or a pipe."""

    def say(detail: str) -> None:
        nonlocal last
        if time.monotonic() - last >= gap:
            last = time.monotonic()
            console.print(f"      {detail}", markup=False)

    return say


def silent(_detail: str) -> None:
    """Print nothing, for callers without progress output."""
