"""The number of calls that an executor sends to the function `fetch` at once.

All executors share the executions of `fetch`, and none knows how many others are at work. So each finds its own share: it sends more
calls while none is refused, and only as many as were accepted once some are. A call waits for its place before it is sent, and its own
time-out begins when it has one.

Lambda refuses at once and never later, so the calls that are in flight after a refusal are the share that there is.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from random import random

MOST = 256  # calls in flight of an executor, which has as many threads (`lambdas/_pool.py`)
START = 32  # calls at once before anything is known: five executors, the first of a lane, send 160
PROBE_MS = 30  # while none was refused, a full window doubles after this time: a refusal comes sooner
GROW_MS, GROW = (
    500,
    0.1,
)  # after a refusal a full window grows by this share in this time, by one call at least; the share doubles each time
SHRINK = 0.8  # the share of a window that a refusal leaves, so that executors with few calls get some of the others'
PAUSE_MS = (50, 2_000)  # how long nothing is sent after a refusal: it doubles up to the second while nothing else comes back
RESTED_MS = 30_000  # a window that was not used for this time is forgotten: other executors were at work then
CHECK_MS = 500  # between two looks of the main thread while calls wait
FROZEN_MS = 2_000  # after this time without a look nothing is sent
ALL_BUSY = "all functions that call URLs are busy"
WAITS_MS = (45_000, 90_000, 300_000)  # how long a job waits for a place before it is deferred, by how often it came back ...
MOST_MS = 840_000  # ... but with its call no longer than this, since an executor has 900 s for all that it does
LEAST_WAIT_MS = 10_000  # ... and at least this time, also with the longest time-out


def patience(returns: int, timeout_ms: int) -> int:
    """Return how long (ms) a job with this time-out waits for a place, by how often it came back to its lane.

    A wait costs an executor less than a deferral costs writes, so the first one covers a crowd of tens of thousands.
    """
    wait = WAITS_MS[min(returns, len(WAITS_MS) - 1)]
    return min(wait, max(MOST_MS - timeout_ms, LEAST_WAIT_MS))


class CallWindow:
    """The rule: the calls in flight and the number that may be. Pure; instants are in ms, of any clock that never goes back."""

    def __init__(self, most: int = MOST) -> None:
        self.most = max(most, 1)
        self.calls = 0
        self._used_at = float("-inf")
        self._forget()

    def _forget(self) -> None:
        self.size = float(min(START, self.most))
        self._growth = 1.0  # the share by which it grows next
        self._is_new = True  # nothing was refused yet
        self._pauses = 0  # in a row
        self._resume_at = self._grow_at = 0.0

    def take(self, now: float) -> bool:
        """Return whether a call may be sent now; it is in flight then."""
        if not self.calls and now - self._used_at > RESTED_MS:
            self._forget()
        if now < self._resume_at or (self.calls >= int(self.size) and not self._grown(now)):
            return False
        self.calls += 1
        self._used_at = now
        return True

    def answered(self, now: float) -> None:
        """A call has ended that Lambda accepted."""
        self.calls -= 1
        self._used_at, self._pauses = now, 0

    def refused(self, now: float, jitter: float) -> None:
        """Lambda has refused a call: all executions are busy. `jitter`: a random number from 0 to 1."""
        self.calls -= 1
        self._used_at = now
        if now >= self._resume_at:  # the first of those that were sent together
            least, most = PAUSE_MS
            self._resume_at = now + min(least << min(self._pauses, 10), most) * (1 + jitter) / 2
            self._pauses += 1
            self.size *= SHRINK
        self.size = max(min(self.size, self.calls), 1.0)
        self._is_new, self._growth, self._grow_at = False, GROW, now + GROW_MS

    def again_at(self, now: float) -> float:
        """When a call that may not be sent now may be, if none comes back before."""
        return self._resume_at if now < self._resume_at else self._grow_at if self.size < self.most else float("inf")

    def _grown(self, now: float) -> bool:
        if now < self._grow_at or self.size >= self.most:
            return False
        self.size = min(self.size + max(self.size * self._growth, 1.0), float(self.most))
        self._growth = min(2 * self._growth, 1.0)
        self._grow_at = now + (PROBE_MS if self._is_new else GROW_MS)
        return True


@dataclass(slots=True, eq=False)
class Waiting:
    """A call that waits for its place. `send` and `give_up` must not block; one of them is called, once. `until`: ms, as of the window."""

    send: Callable[[], None]
    give_up: Callable[[], None]
    until: float
    is_over: bool = False


class CallLimit:
    """The window of one executor, and the calls that wait for a place in it: in order, and without a thread.

    A call with a place gives it back by `answered` or `refused`, from any thread, and the next one is sent. The executor's main thread
    looks regularly. If it does not, the executor was frozen or no longer renews its leases, and nothing is sent.
    """

    def __init__(
        self, most: int = MOST, now: Callable[[], float] = lambda: time.monotonic() * 1_000, jitter: Callable[[], float] = random
    ) -> None:
        self._window, self._now, self._jitter = CallWindow(most), now, jitter
        self._waiting: deque[Waiting] = deque()
        self._ends: list[tuple[float, int, Waiting]] = []  # a heap: when each of them gives up
        self._numbers = count()
        self._checked_at = now()
        self._lock = threading.RLock()

    @property
    def calls(self) -> int:
        """The calls in flight."""
        return self._window.calls

    def now(self) -> float:
        """The clock of `Waiting.until` (ms)."""
        return self._now()

    def add(self, waiting: Waiting, *, again: bool = False) -> None:
        """Send the call when it has a place. `again`: it was refused, and goes before those that were never sent.

        Only the main thread adds a new one, which is as good as a look.
        """
        with self._lock:
            waiting.is_over = False
            self._checked_at = self._checked_at if again else self._now()
            (self._waiting.appendleft if again else self._waiting.append)(waiting)
            heappush(self._ends, (waiting.until, next(self._numbers), waiting))
            self._give()

    def take(self) -> bool:
        """Take a place that is free, for a call for which nobody waits; return whether there is one."""
        with self._lock:
            return not self._waiting and self._window.take(self._now())

    def answered(self) -> None:
        """Give back the place of a call that Lambda accepted, or that was not sent."""
        with self._lock:
            self._window.answered(self._now())
            self._give()

    def refused(self) -> None:
        """Give back the place of a call that Lambda refused since all executions are busy."""
        with self._lock:
            self._window.refused(self._now(), self._jitter())

    def check(self) -> None:
        """Send the calls that may be sent by now, and give up those whose time is over. For the executor's main thread."""
        with self._lock:
            self._checked_at = now = self._now()
            while self._ends and (self._ends[0][2].is_over or self._ends[0][0] <= now):
                self.drop(heappop(self._ends)[2])
            self._give()

    def drop(self, waiting: Waiting) -> None:
        """Give up a call that still waits."""
        with self._lock:
            if not waiting.is_over:
                waiting.is_over = True
                self._waiting.remove(waiting)
                waiting.give_up()

    def clear(self) -> None:
        """Forget all that wait: their executor has lost them."""
        with self._lock:
            self._waiting.clear()
            self._ends.clear()

    def next_check(self) -> float | None:
        """When (ms) `check` has something to do at the latest; None: there is nothing that waits."""
        with self._lock:
            if not self._waiting:
                return None
            now = self._now()
            return min(self._window.again_at(now), self._ends[0][0], now + CHECK_MS)

    def _give(self) -> None:
        now = self._now()
        while self._waiting and now - self._checked_at <= FROZEN_MS and self._window.take(now):
            waiting = self._waiting.popleft()
            waiting.is_over = True
            waiting.send()
