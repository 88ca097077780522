"""How many calls an executor sends to the function `fetch` at once.

All executors share the executions of `fetch`, and none knows how many others are at work. So each finds its own share: it sends more
calls while none is refused, and only as many as were accepted once some are. A call waits for its place before it is sent.

Lambda refuses at once and never later, so the calls that are in flight after a refusal are the share that there is.
"""

import threading
import time
from collections import deque
from random import random

MOST = 256  # calls in flight of an executor, which has as many threads (`lambdas/_pool.py`)
START = 32  # calls at once before anything is known: five executors, the first of a lane, send 160
PROBE_MS = 100  # while none was refused, a full window doubles after this time: a refusal takes a fifth of it
GROW_MS, GROW = 1_000, 0.1  # after a refusal a full window grows by this share in this time, and by one call at least
SHRINK = 0.8  # the share of a window that a refusal leaves, so that executors with few calls get some of the others'
PAUSE_MS = (50, 2_000)  # how long nothing is sent after a refusal: it doubles up to the second while nothing else comes back
RESTED_MS = 30_000  # a window that was not used for this time is forgotten: other executors were at work then
POLL_S = 1.0  # a waiting call notices a stop within this time


class CallWindow:
    """The rule: the calls in flight and the number that may be. Pure; instants are in ms, of any clock that never goes back."""

    def __init__(self, most: int = MOST) -> None:
        self.most = max(most, 1)
        self.calls = 0
        self._used_at = float("-inf")
        self._forget()

    def _forget(self) -> None:
        self.size = float(min(START, self.most))
        self._probes = True
        self._pauses = 0  # in a row
        self._resume_at = self._grow_at = float("-inf")

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
        self._probes, self._grow_at = False, now + GROW_MS

    def again_at(self, now: float) -> float:
        """When a call that may not be sent now may be, if none comes back before."""
        return self._resume_at if now < self._resume_at else self._grow_at if self.size < self.most else float("inf")

    def _grown(self, now: float) -> bool:
        if now < self._grow_at or self.size >= self.most:
            return False
        more = self.size if self._probes else max(self.size * GROW, 1.0)
        self.size = min(self.size + more, float(self.most))
        self._grow_at = now + (PROBE_MS if self._probes else GROW_MS)
        return True


class _Turn:
    """A call that waits: its thread looks again once `look` is set."""

    __slots__ = ("has_place", "look")

    def __init__(self) -> None:
        self.look, self.has_place = threading.Event(), False


class CallLimit:
    """The window of one executor, for its threads. Places are given in the order in which they were asked for."""

    def __init__(self, most: int = MOST) -> None:
        self._window = CallWindow(most)
        self._waiting: deque[_Turn] = deque()
        self._lock = threading.Lock()

    def take(self, until: float, stop: threading.Event, *, again: bool = False) -> bool:
        """Wait for a place until the instant (`time.monotonic()`) or a stop; return whether there is one.

        `again`: the call was refused, and goes before those that were not sent yet. After True, `answered` or `refused` must follow.
        """
        turn = _Turn()
        with self._lock:
            (self._waiting.appendleft if again else self._waiting.append)(turn)
            self._give(time.monotonic())
        while True:
            now = time.monotonic()
            with self._lock:
                if not turn.has_place:
                    self._give(now)
                if turn.has_place:
                    return True
                if now >= until or stop.is_set():
                    self._waiting.remove(turn)
                    self._wake()
                    return False
                turn.look.clear()
                left = min(until - now, POLL_S)
                if self._waiting[0] is turn:
                    left = min(left, max(self._window.again_at(now * 1_000) / 1_000 - now, 0.001))
            turn.look.wait(left)

    def answered(self) -> None:
        """Give back the place of a call that Lambda accepted."""
        now = time.monotonic()
        with self._lock:
            self._window.answered(now * 1_000)
            self._give(now)

    def refused(self) -> None:
        """Give back the place of a call that Lambda refused since all executions are busy."""
        with self._lock:
            self._window.refused(time.monotonic() * 1_000, random())
            self._wake()

    def _give(self, now: float) -> None:
        given = False
        while self._waiting and self._window.take(now * 1_000):
            turn = self._waiting.popleft()
            turn.has_place = given = True
            turn.look.set()
        if given:
            self._wake()

    def _wake(self) -> None:
        """The call that is next now waits for the window, too."""
        if self._waiting:
            self._waiting[0].look.set()
