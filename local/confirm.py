"""Questions before something is taken away."""

import os
import sys

from local.failure import Trouble


def confirm(question: str) -> None:
    """Return if the answer is yes: typed, or given by `YES=1`. Raises Trouble otherwise, also without a terminal."""
    if os.environ.get("YES") == "1":
        return
    if not sys.stdin.isatty():
        raise Trouble("Nothing was changed. There is no terminal to ask on: repeat with YES=1 if this is what you want.")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise Trouble("Nothing was changed.")
