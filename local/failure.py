"""What a person is told when something local cannot go on: what happened and the way out, without a traceback."""

import sys
from collections.abc import Callable


class Trouble(Exception):
    """The message is complete: what is wrong, then what to do."""


def tell(main: Callable[[], int]) -> int:
    """Run a verb; its trouble is printed, not raised."""
    try:
        return main()
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
