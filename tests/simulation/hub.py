"""Virtual time: a heap of events and a greenlet per invocation, so that the real, blocking services run unchanged."""

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent
from greenlet import greenlet as Invocation

NEVER = 1 << 62


class Killed(BaseException):
    """The invocation dies here: nothing of it runs any more. Not an Exception, so that no service can catch it."""


class Hub:
    """Runs everything that is due, in order of virtual time and then of arrival. Deterministic."""

    def __init__(self, start: int) -> None:
        self.time = start
        self._until = start
        self._events: list[tuple[int, int, Callable[[], Any] | Invocation]] = []  # who sleeps, or what is to be called
        self._numbers = itertools.count()
        self._main = getcurrent()
        self._called: Callable[[], Any] | None = None  # what comes next, taken off by somebody who went to sleep

    def at(self, when: int, call: Callable[[], Any]) -> None:
        """Call `call` at the instant `when`, or now if that has passed."""
        heapq.heappush(self._events, (when if when > self.time else self.time, next(self._numbers), call))

    def spawn(self, work: Callable[[], Any], when: int | None = None) -> None:
        """Run `work` as an invocation of its own, which may sleep and may be killed."""

        def body() -> None:
            try:
                work()
            except Killed:
                pass

        self.at(self.time if when is None else when, Invocation(body, self._main))

    def sleep_until(self, when: int) -> None:
        """Let everything else run until `when`. For invocations only. Where nothing else is due by then, time passes and no more."""
        if when <= self._until and (not self._events or self._events[0][0] > when):
            self.time = max(when, self.time)
            return
        # Most often another invocation comes next: it is switched to from here, not by way of `run`.
        mine = (when if when > self.time else self.time, next(self._numbers), getcurrent())
        if not self._events or self._events[0][0] > self._until:
            heapq.heappush(self._events, mine)
            self._main.switch()
            return
        self.time, _, following = heapq.heappushpop(self._events, mine)
        if type(following) is Invocation:
            following.switch()
        else:
            self._called = following
            self._main.switch()

    def run(self, until: int) -> None:
        """Work off the events up to the instant `until`."""
        events, self._until = self._events, until
        while events and events[0][0] <= until:
            self.time, _, following = heapq.heappop(events)
            self._called = following.switch if type(following) is Invocation else following
            while self._called is not None:
                call, self._called = self._called, None
                call()
        self.time = until
