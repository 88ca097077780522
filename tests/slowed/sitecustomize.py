"""Slows the executors of a stack whose functions have this folder in PYTHONPATH: each start of a job burns SLOWED_MS of processor time.

Python imports a module of this name by itself. It shows that `python -m bench.ratios` notices slower code.
"""

import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

SLOWED_S = float(os.environ.get("SLOWED_MS", "0")) / 1_000
MODULE = "lambdas._pool"


class Finder:
    """Finds the module of the pool as usual, and wraps its method once it is loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            slow(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def slow(module: Any) -> None:
    start = module.ThreadPool.start

    def slowed(self: Any, *arguments: Any) -> Any:
        end = time.thread_time() + SLOWED_S
        while time.thread_time() < end:
            pass
        return start(self, *arguments)

    module.ThreadPool.start = slowed


if SLOWED_S:
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
