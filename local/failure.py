"""What a person is told when something local cannot go on: what happened and the way out, without a traceback."""

import sys
from collections.abc import Callable

from local.client import ApiError


class Trouble(Exception):
    """The message is complete: what is wrong, then what to do."""


def tell(main: Callable[[], int]) -> int:
    """Run a verb; its trouble, and the API's, is printed, not raised."""
    try:
        return main()
    except (Trouble, ApiError) as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
