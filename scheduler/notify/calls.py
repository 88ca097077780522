"""The calls of receivers that are in progress in one process, and whether another one may begin. Calls no receiver itself.

A call takes one of `AT_ONCE` places until its receiver answers. So that a receiver that hangs delays nobody else's notices:

- An owner begins a call only while its calls are fewer than a quarter of the free places. Whatever one owner does, places stay free.
- A receiver is new until it has answered within `SLOW_MS`. An owner calls one new receiver at a time.
- A receiver is slow while a call of it takes longer than `SLOW_MS`, and for `SLOW_FOR_MS` after that; then it is new again. Calls of slow
  receivers share `SLOW_PLACES` places by the first rule. An owner's new receivers are slow while another one of that owner is.

- A receiver that answers 429 is paced: it gets one call at a time, each a gap after the one before. The gap is the delay that it requested;
  each further 429 doubles it, and each success takes a quarter of it away. So its notices wait without using up their tries.

A sending without a place is not called. Its message returns after a delay (`retry_in_s`), which costs a receive and no try.
"""

import threading
from collections import deque
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from scheduler.model.notice import Sending
from scheduler.model.notifications import Named

AT_ONCE = 40  # calls in progress in one process; each is a thread
SLOW_PLACES = 8
PART = 4  # an owner's calls are fewer than a quarter of the free places when another one begins
SLOW_MS = 1_000
SLOW_FOR_MS = 60_000
LEAST_GAP_MS, MOST_GAP_MS = 1_000, 60_000  # between two calls of a paced receiver; a smaller gap ends the pace
MOST_KNOWN = 10_000  # receivers in memory
GAP_MS, SLOW_GAP_MS = 100, 5_000  # between the returns of two messages of one owner that had no place
LONGEST_RETRY_MS = 300_000


class Receiver(NamedTuple):
    """A host of one owner, a named receiver, or the mails of one owner. Each owner chooses its receivers, so two owners share none."""

    owner: str
    host: str


class Answer(NamedTuple):
    """The result of one message: the batch's counter to raise, and the seconds until its next delivery (None: never)."""

    what: str
    again: int | None = None


@dataclass(slots=True)
class Pace:
    """Of a receiver that has answered 429. `since`: when the gap was set. `returns_at`: when the last sending that waits for it returns."""

    since: int
    next_at: int
    gap: int
    returns_at: int = 0


@dataclass(slots=True, eq=False)
class Call:
    """A sending in progress. `called_at`: when its receiver was called (monotonic), None before that."""

    name: str  # of its message
    receiver: Receiver
    called_at: int | None = None
    tries: int = 1
    is_over: bool = False
    is_left: bool = False  # its batch ended before it


def receiver_of(sending: Sending) -> Receiver:
    to, owner = sending.receiver, sending.notice.task.owner
    if isinstance(to, Named):
        return Receiver(owner, f"receiver {to.name}")
    return Receiver(owner, "" if isinstance(to, str) else urlsplit(to.url).netloc.lower())


@dataclass(slots=True)
class Calls:
    """The state of one process. Every `now` is monotonic."""

    takes_slow: bool = True  # False: no call of a slow receiver begins, because the invocation is about to end
    _running: set[Call] = field(default_factory=set)
    _slow_until: dict[Receiver, int] = field(default_factory=dict)  # 0: it answers in time
    _owners: dict[str, int] = field(default_factory=dict)  # until when their new receivers are slow
    _retry_at: dict[str, int] = field(default_factory=dict)
    _paces: dict[Receiver, Pace] = field(default_factory=dict)
    _late: deque[tuple[str, Answer]] = field(default_factory=deque)  # of calls that ended after their batch
    _lock: threading.Lock = field(default_factory=threading.Lock)  # sendings run in threads

    @property
    def is_idle(self) -> bool:
        """Whether no call is in progress, and no answer is left to take."""
        with self._lock:
            return not self._running and not self._late

    def begin(self, name: str, receiver: Receiver, now: int) -> Call | None:
        """Take a place; None if there is none for this receiver."""
        with self._lock:
            if not self._has_place(receiver, now):
                return None
            call = Call(name, receiver)
            self._running.add(call)
            return call

    def is_slow(self, receiver: Receiver, now: int) -> bool:
        with self._lock:
            return self._is_slow(receiver, now, self._overdue(now))

    def is_paced(self, receiver: Receiver) -> bool:
        with self._lock:
            return receiver in self._paces

    def answered(self, call: Call, now: int, throttled_ms: int | None = None) -> None:
        """Learn from the time that the receiver took, and from the pause that it requests with a 429 (None: it answered no 429)."""
        with self._lock:
            self._pace(call, now, throttled_ms)
            if len(self._slow_until) >= MOST_KNOWN:
                self._slow_until.clear()
                self._owners.clear()
                self._paces.clear()
            is_slow = call.called_at is not None and now - call.called_at >= SLOW_MS
            if is_slow:
                self._slow_until[call.receiver] = self._owners[call.receiver.owner] = now + SLOW_FOR_MS
            elif self._slow_until.get(call.receiver, 0) <= now:
                self._slow_until[call.receiver] = 0

    def end(self, call: Call, answer: Answer) -> None:
        """Give the place back. The answer of a call that was left behind is kept for `take_late`."""
        with self._lock:
            self._running.discard(call)
            call.is_over = True
            if call.is_left:
                self._late.append((call.name, answer))

    def leave(self, call: Call) -> bool:
        """Leave the call behind, because its batch ends. False if the call is over."""
        with self._lock:
            call.is_left = not call.is_over
            return call.is_left

    def take_late(self) -> Iterator[tuple[str, Answer]]:
        """Remove and return the answers of calls that were left behind, each with the name of its message."""
        while self._late:
            yield self._late.popleft()

    def retry_in_s(self, receiver: Receiver, now: int) -> int:
        """Return in how many seconds a sending without a place is tried again. The messages of one owner return one after the other.

        Those to a paced receiver return at its pace.
        """
        with self._lock:
            if (pace := self._paces.get(receiver)) is not None:
                pace.returns_at = max(pace.returns_at + pace.gap, pace.next_at, now)
                if pace.returns_at > now + LONGEST_RETRY_MS:
                    pace.returns_at = max(pace.next_at, now)
                return min(-(-(pace.returns_at - now) // 1_000), LONGEST_RETRY_MS // 1_000) or 1
        gap = SLOW_GAP_MS if self.is_slow(receiver, now) else GAP_MS
        with self._lock:
            if len(self._retry_at) >= MOST_KNOWN:
                self._retry_at.clear()
            at = max(self._retry_at.get(receiver.owner, 0), now) + gap
            if at > now + LONGEST_RETRY_MS:
                at = now + gap
            self._retry_at[receiver.owner] = at
        return -(-(at - now) // 1_000)

    def _pace(self, call: Call, now: int, throttled_ms: int | None) -> None:
        """Set the pace after an answer. Calls that began before the last change say nothing about it."""
        pace = self._paces.get(call.receiver)
        if pace is None:
            if throttled_ms is not None:
                gap = min(max(throttled_ms, LEAST_GAP_MS), MOST_GAP_MS)
                self._paces[call.receiver] = Pace(now, now + max(gap, throttled_ms), gap)
        elif call.called_at is not None and call.called_at >= pace.since:
            gap = pace.gap * 3 // 4 if throttled_ms is None else min(max(throttled_ms, 2 * pace.gap), MOST_GAP_MS)
            if gap < LEAST_GAP_MS:
                del self._paces[call.receiver]
            else:
                pace.since, pace.next_at, pace.gap = now, now + max(gap, throttled_ms or 0), gap

    def _has_place(self, receiver: Receiver, now: int) -> bool:
        pace = self._paces.get(receiver)
        if pace is not None and (now < pace.next_at or any(call.receiver == receiver for call in self._running)):
            return False
        if not _is_within(receiver.owner, self._running, AT_ONCE):
            return False
        overdue = self._overdue(now)
        if not self._is_slow(receiver, now, overdue):
            return not self._is_new(receiver, now) or not any(
                call.receiver.owner == receiver.owner and self._is_new(call.receiver, now) for call in self._running
            )
        slow = {call for call in self._running if self._is_slow(call.receiver, now, overdue)}
        return self.takes_slow and _is_within(receiver.owner, slow, SLOW_PLACES)

    def _overdue(self, now: int) -> set[Receiver]:
        return {call.receiver for call in self._running if call.called_at is not None and now - call.called_at >= SLOW_MS}

    def _is_new(self, receiver: Receiver, now: int) -> bool:
        until = self._slow_until.get(receiver)
        return until is None or 0 < until <= now

    def _is_slow(self, receiver: Receiver, now: int, overdue: Set[Receiver]) -> bool:
        if not self._is_new(receiver, now):
            return self._slow_until[receiver] > now or receiver in overdue
        return self._owners.get(receiver.owner, 0) > now or any(other.owner == receiver.owner for other in overdue)


def _is_within(owner: str, running: Set[Call], places: int) -> bool:
    return PART * sum(call.receiver.owner == owner for call in running) < places - len(running)
