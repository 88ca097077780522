"""Threads whose calls run one after the other, so that a seed always gives the same run."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class InTurn(Executor):
    """Carries out each call when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future
