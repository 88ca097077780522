"""A bound for the time of a whole call: that of httpx bounds each read, and a server that drips never lets one expire."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, TimeoutError
from typing import TypeVar

import httpx

T = TypeVar("T")


async def async_within(seconds: float, call: Callable[[], Awaitable[T]]) -> T:
    """Return what the call returns. Raises httpx.ReadTimeout after `seconds`, and what the call raises."""
    try:
        return await asyncio.wait_for(call(), seconds)
    except asyncio.TimeoutError:
        raise _too_long(seconds) from None


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return what the call returns. Raises httpx.ReadTimeout after `seconds`, and what the call raises.

    The call runs in a thread of its own, with the caller's context variables. A thread that is given up ends when its connection does,
    and no process waits for it.
    """
    found: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            found.set_result(context.run(call))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, name="punctual-request", daemon=True).start()
    try:
        return found.result(seconds)
    except TimeoutError:
        if found.done():  # the call raised it
            raise
        raise _too_long(seconds) from None


def _too_long(seconds: float) -> httpx.ReadTimeout:
    return httpx.ReadTimeout(f"the answer was not complete after {seconds:.0f} s")
