"""Virtual time: a heap of events and a greenlet per invocation at work, so that the real, blocking services run unchanged."""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from greenlet import getcurrent, greenlet

NEVER = 1 << 62
SPAN = 8_192  # ms: events of this span of time are in the heap; with thousands of later ones in it each push and pop would compare more


class Killed(BaseException):
    """The invocation dies here: nothing of it runs any more. Not an Exception, so that no service can catch it."""


@dataclass(slots=True)
class _Work:
    """What is to run as an invocation of its own."""

    begin: Callable[[], Any]


Event = greenlet | _Work | Callable[[], Any]  # who sleeps, what begins, or what is just called


class Hub:
    """Runs everything that is due, in order of virtual time and then of arrival. Deterministic.

    Whoever goes to sleep, or has ended, takes off the next event itself, and a greenlet whose invocation has ended goes on with the
    next one: to switch by way of `run`, and to make a greenlet for each, costs more than many an invocation.
    """

    def __init__(self, start: int) -> None:
        self.time = start
        self._until = start
        self._events: list[tuple[int, int, Event]] = []  # a heap: those before `_edge`, and what brings those of the next span
        self._edge = start - start % SPAN
        self._later: dict[int, list[tuple[int, int, Event]]] = defaultdict(list)  # by span
        self._numbers = itertools.count()
        self._main = getcurrent()
        self._idle: list[greenlet] = []
        self._next_span()

    def at(self, when: int, call: Callable[[], Any]) -> None:
        """Call `call`, which does not sleep, at the instant `when`, or now if that has passed."""
        self._push(when if when > self.time else self.time, call)

    def _push(self, when: int, event: Event) -> None:
        if when < self._edge:
            heapq.heappush(self._events, (when, next(self._numbers), event))
        else:
            self._later[when // SPAN].append((when, next(self._numbers), event))

    def _next_span(self) -> None:
        """Before anything else that is due at the edge."""
        for event in self._later.pop(self._edge // SPAN, ()):
            heapq.heappush(self._events, event)
        self._edge += SPAN
        heapq.heappush(self._events, (self._edge, -1, self._next_span))

    def spawn(self, work: Callable[[], Any], when: int | None = None) -> None:
        """Run `work` as an invocation of its own, which may sleep and may be killed."""
        self.at(self.time if when is None else when, _Work(work))

    def sleep_until(self, when: int) -> None:
        """Let everything else run until `when`. For invocations only. Where nothing else is due by then, time passes and no more."""
        events, until = self._events, self._until
        if when <= until and (not events or events[0][0] > when):
            if when > self.time:
                self.time = when
            return
        me = getcurrent()
        following: Event = me
        self._push(when if when > self.time else self.time, me)
        while events[0][0] <= until:
            self.time, _, following = heapq.heappop(events)
            if following is me:
                return
            if type(following) is greenlet:
                following.switch()
                return
            if type(following) is _Work:
                self._begin(following)
                return
            following()
        self._main.switch()

    def run(self, until: int) -> None:
        """Work off the events up to the instant `until`."""
        events, self._until = self._events, until
        while events and events[0][0] <= until:
            self.time, _, following = heapq.heappop(events)
            if type(following) is greenlet:
                following.switch()
            elif type(following) is _Work:
                self._begin(following)
            else:
                following()
        self.time = until
        while self._idle:
            self._idle.pop().throw()  # it would hold on to this world for ever

    def _begin(self, work: _Work) -> None:
        (self._idle.pop() if self._idle else greenlet(self._serve, self._main)).switch(work)

    def _serve(self, work: _Work) -> None:
        """One invocation after the other."""
        while True:
            try:
                work.begin()
            except Killed:
                pass
            work = self._follow()

    def _follow(self) -> _Work:
        """What a greenlet whose invocation has ended is to begin next; until there is something, it is idle."""
        events, until, following = self._events, self._until, self._main
        while events and events[0][0] <= until:
            self.time, _, following = heapq.heappop(events)
            if type(following) is _Work:
                return following
            if type(following) is greenlet:
                break
            following()
        else:
            following = self._main
        self._idle.append(getcurrent())
        work: _Work = following.switch()
        return work
