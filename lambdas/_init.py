"""INIT: the phase of a function before its first invocation, with its imports and first clients.

Python would search its new objects for cycles of garbage again and again, which takes a seventh of the phase: 43 of 307 ms of execute. So
importing this module stops the collector: the sooner, the more is saved. Each handler module that imports it calls `end`.
"""

import gc
import os
from collections.abc import Callable

IS_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def end(create: Callable[[], object], *names: str) -> None:
    """On Lambda, create the ports of these names and collect garbage again. The objects of the phase are left out of later searches.

    Before its first invocation, a function has a whole core, whatever its memory.
    """
    if IS_LAMBDA:
        created = create()
        for name in names:
            getattr(created, name)
        gc.freeze()
        gc.enable()


if IS_LAMBDA:
    gc.disable()
