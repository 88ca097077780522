"""Questions before a command deletes or reverts something."""

import os
import sys

from local.failure import Trouble


def confirm(question: str) -> None:
    """Return if the answer is yes: typed, or given by `YES=1`. Raises Trouble otherwise, also without a terminal."""
    if os.environ.get("YES") == "1":
        return
    if not sys.stdin.isatty():
        raise Trouble("Nothing was changed. There is no terminal for the question: repeat with YES=1 to confirm.")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise Trouble("Nothing was changed.")
