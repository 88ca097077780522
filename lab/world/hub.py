"""Virtual time: a heap of events, and a greenlet for each running invocation, so that the real, blocking services run unchanged."""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from greenlet import getcurrent, greenlet

NEVER = 1 << 62
FIRST = -2  # the number of an event that goes before all others of its time
Chain = dict[str, int]  # how often each function was invoked in a chain of invocations (`tests/simulation/lineage.py`)
_NONE: Chain = {}  # the chain of an invocation that no other one caused
SPAN = 8_192  # ms: the heap contains the events of this time span only; thousands of later events would slow each push and pop


class Killed(BaseException):
    """The invocation dies here, and none of its code runs after this. Not an Exception, so that no service can catch it."""


@dataclass(slots=True)
class _Work:
    """A function to run as a separate invocation."""

    begin: Callable[[], Any]


Event = Any  # a sleeping invocation (`greenlet`), one that begins (`_Work`), or a plain call


class Hub:
    """Runs all due events, in order of virtual time and then of arrival. Deterministic.

    An invocation that goes to sleep or ends starts the next event itself, and a greenlet runs one invocation after the other: switching
    through `run` and creating a greenlet for each would cost more than many invocations.
    """

    def __init__(self, start: int) -> None:
        self.time = start
        self._until = start
        self._events: list[tuple[int, int, Event]] = []  # a heap: the events before `_edge`, and the call of `_next_span`
        self._edge = start - start % SPAN
        self._later: dict[int, list[tuple[int, int, Event]]] = defaultdict(list)  # by span
        self._numbers = itertools.count()
        self._main = getcurrent()
        self._idle: list[greenlet] = []
        self._next_span()

    @property
    def chain(self) -> Chain:
        """The chain that led to the current invocation."""
        return getattr(getcurrent(), "chain", _NONE)

    @chain.setter
    def chain(self, chain: Chain) -> None:
        current: Any = getcurrent()
        current.chain = chain

    def stand_still(self, ms: int) -> None:
        """Let the monotonic clock of the current invocation's machine miss this time (`stood_still_ms`)."""
        me: Any = getcurrent()
        me.stood_still_ms = getattr(me, "stood_still_ms", 0) + ms

    def at(self, when: int, call: Event) -> None:
        """Call `call`, which must not sleep, at the instant `when`, or now if that has passed."""
        self._push(when if when > self.time else self.time, call)

    def _push(self, when: int, event: Event) -> None:
        if when < self._edge:
            heapq.heappush(self._events, (when, next(self._numbers), event))
        else:
            self._later[when // SPAN].append((when, next(self._numbers), event))

    def _next_span(self) -> None:
        """Move the events of the next span into the heap, past empty ones. Runs before all events that are due at the edge."""
        span = self._edge // SPAN
        if not self._events and self._later and span not in self._later:
            span = min(self._later)
        self._events += self._later.pop(span, ())
        self._edge = (span + 1) * SPAN
        self._events.append((self._edge, -1, self._next_span))
        heapq.heapify(self._events)

    def spawn(self, work: Callable[[], Any], when: int | None = None) -> None:
        """Run `work` as a separate invocation, which may sleep and may be killed."""
        self.at(self.time if when is None else when, _Work(work))

    def sleep_until(self, when: int) -> None:
        """Let all other events run until `when`. Only invocations may call it. If nothing else is due by then, only time advances."""
        events, until = self._events, self._until
        if when <= until and (not events or events[0][0] > when):
            if when > self.time:
                self.time = when
            return
        me = getcurrent()
        following: Event = me
        if self.time < when < self._edge and events[0][0] <= until:
            self.time, _, following = heapq.heapreplace(events, (when, next(self._numbers), me))  # in half the time of a push and a pop
        else:
            self._push(when if when > self.time else self.time, me)
            following = self._next()
        while following is not me:
            if type(following) is greenlet:
                following.switch()
                return
            if type(following) is _Work:
                if self._idle:
                    self._idle.pop().switch(following)
                    return
                # Only `run` makes greenlets: one that another one makes inherits its depth, and a hundred in a row reach the limit.
                heapq.heappush(events, (self.time, FIRST, following))
                self._main.switch()
                return
            following()
            following = self._next()

    def _next(self) -> Event:
        """Return the next event to run, and advance the time to it: `run` itself if none is due by the end."""
        if self._events[0][0] > self._until:
            return self._main
        self.time, _, following = heapq.heappop(self._events)
        return following

    def run(self, until: int) -> None:
        """Run the events up to the instant `until`."""
        events, self._until = self._events, until
        while events and events[0][0] <= until:
            self.time, _, following = heapq.heappop(events)
            if type(following) is greenlet:
                following.switch()
            elif type(following) is _Work:
                (self._idle.pop() if self._idle else greenlet(self._serve, self._main)).switch(following)
            else:
                following()
        self.time = until
        while self._idle:
            self._idle.pop().throw()  # an idle greenlet would keep this world in memory

    def _serve(self, work: _Work) -> None:
        """Run one invocation after the other."""
        me: Any = getcurrent()
        while True:
            me.chain = _NONE
            try:
                work.begin()
            except Killed:
                pass
            work = self._follow()

    def _follow(self) -> _Work:
        """Return the next invocation for a greenlet whose own has ended; until there is one, the greenlet is idle."""
        events, until = self._events, self._until
        following: Event = self._main
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
