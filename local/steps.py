"""Progress that a person can follow: every step with its time, on a terminal also what it is doing right now."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

Say = Callable[[str], None]

console = Console(highlight=False, soft_wrap=True)
if not console.is_terminal:
    console.width = 120  # a log file has no width; 80 columns would cut the table


@contextmanager
def step(title: str) -> Iterator[Say]:
    """Announce a step, pass on what it says, and end with its seconds."""
    begin = time.monotonic()
    if console.is_terminal:
        with console.status(f"{title} …") as status:
            yield lambda detail: status.update(f"{title} … {detail} ({time.monotonic() - begin:.0f} s)")
    else:
        console.print(f"  … {title}")
        yield _sparsely(begin)
    console.print(f"  [green]✓[/] {title} [dim]({time.monotonic() - begin:.1f} s)[/]")


def _sparsely(last: float, gap: float = 3.0) -> Say:
    """Into a file or a pipe, a line every few seconds is enough."""

    def say(detail: str) -> None:
        nonlocal last
        if time.monotonic() - last >= gap:
            last = time.monotonic()
            console.print(f"      {detail}", markup=False)

    return say


def silent(_detail: str) -> None:
    """For callers that want no progress."""
