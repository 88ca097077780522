"""The sessions of roles in other accounts that a process has open, each with the object that calls AWS by its credentials.

A session is opened with the first call that needs it, once for all calls that wait for it, and again before it ends.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from typing import Generic, NamedTuple, TypeVar

from scheduler.storage.ports import Clock
from scheduler.targets.calls import Left, Refused, Role

# A session of a role that a function opens lasts an hour at most, since the function's role is itself assumed.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles.html#iam-term-role-chaining
SESSION_S = 3_600
RENEW_MS = 900_000  # before the end of a session: the longest time that a job may run
MOST_SESSIONS = 100  # each has clients of 0.1 to 0.3 MB

T = TypeVar("T")


class Opened(NamedTuple, Generic[T]):
    """The object that calls AWS in a session, and the end of the session (UTC ms)."""

    caller: T
    ends_at: int


class Sessions(Generic[T]):
    """The sessions of a process: those used last. `opened` assumes a role; it raises Refused."""

    def __init__(self, clock: Clock, opened: Callable[[Role], Opened[T]]) -> None:
        self._clock, self._opened = clock, opened
        self._sessions: OrderedDict[Role, Future[Opened[T]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, role: Role, *, left: Left) -> T:
        """Return the caller of a role's session. Raises Refused, also if no time is `left` before another thread has opened it."""
        with self._lock:
            session = self._sessions.get(role)
            is_missing = session is None or (session.done() and self._clock.now() > session.result().ends_at - RENEW_MS)
            if session is None or is_missing:
                session = self._sessions[role] = Future()
            self._sessions.move_to_end(role)
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        if is_missing:
            self._open(role, session)
        try:
            return session.result(timeout=left()).caller
        except TimeoutError:
            raise Refused("Stopped", "no time is left", retryable=True) from None

    def _open(self, role: Role, session: "Future[Opened[T]]") -> None:
        try:
            session.set_result(self._opened(role))
        except BaseException as error:  # all calls that wait for it fail; the next one tries again
            self._remove(role, session)
            session.set_exception(error)

    def _remove(self, role: Role, session: "Future[Opened[T]]") -> None:
        with self._lock:
            if self._sessions.get(role) is session:
                del self._sessions[role]

    def end(self, role: Role, caller: T) -> None:
        """Forget the session of this caller: AWS no longer accepts its credentials."""
        with self._lock:
            session = self._sessions.get(role)
            if session is not None and session.done() and session.result().caller is caller:
                del self._sessions[role]
