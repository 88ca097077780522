"""Errors of local commands for people: the problem and the remedy, without a traceback."""

import sys
from collections.abc import Callable

from punctual import PunctualError


class Trouble(Exception):
    """An error to print. The message has the problem, then the remedy."""


def exit_code(main: Callable[[], int]) -> int:
    """Run a command and return its exit code. Trouble and errors of the API are printed, not raised."""
    try:
        return main()
    except (Trouble, PunctualError) as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
