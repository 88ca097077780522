"""Values that one process reads from a service and uses for a while."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from scheduler.model.errors import NotFound, Unavailable

RETRY_MS, LONGEST_RETRY_MS = 100, 2_000  # the pause after a refused read: it doubles up to the second while the service goes on refusing
MOST_UNREAD = 1_000  # noted refusals of values that were never read

Key = TypeVar("Key")
Value = TypeVar("Value")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry(Generic[Value]):
    value: Value
    read_at: int  # when its read began
    is_former: bool = False  # this process has changed it since


class _Try(NamedTuple):
    at: int  # when the last read began
    refusals: int  # in a row


class _Read(Generic[Key, Value]):
    """A read in progress. `changes`: the changes that this process had noted when it began."""

    def __init__(self, changes: int) -> None:
        self.changes, self.thread = changes, threading.get_ident()
        self.answer: Future[Mapping[Key, Value]] = Future()


class Cache(Generic[Key, Value]):
    """Values by key.

    - A value that is `fresh_ms` old is read again by the next caller. Meanwhile, other callers get the former value. Without a former value
      they wait for the first one's.
    - While the service refuses, the former value stays in use. After a refused read, no caller tries again for a pause, without `backs_off`
      for as long as a value is fresh.
    - A read that lies ahead of the clock does not count: the clock was set back.

    `read` gets keys and the instant, and returns their values. A key that it omits was refused; so are all keys if it raises Unavailable.
    If it raises NotFound, the values are dropped. `most`: values in memory; the one that was read first leaves.
    """

    def __init__(
        self,
        what: str,
        read: Callable[[Sequence[Key], int], Mapping[Key, Value]],
        fresh_ms: int,
        *,
        backs_off: bool = True,
        most: int | None = None,
    ) -> None:
        self._what, self._read, self._fresh_ms, self._backs_off, self._most = what, read, fresh_ms, backs_off, most
        self._entries: dict[Key, _Entry[Value]] = {}
        self._tries: dict[Key, _Try] = {}
        self._reads: dict[Key, _Read[Key, Value]] = {}  # in progress, the last one of each key
        self._changes = 0  # calls of `forget`
        self._lock = threading.Lock()  # never held during a read

    def get(self, key: Key, now: int, age_ms: float | None = None) -> Value:
        """Return one value; see `get_all`."""
        return self.get_all([key], now, age_ms)[key]

    def get_all(self, keys: Iterable[Key], now: int, age_ms: float | None = None) -> dict[Key, Value]:
        """Return the values of these keys, and read again those that are `age_ms` old (0: all). The default is `fresh_ms`.

        Raises Unavailable if a value was never read and cannot be read now; and what `read` raises.
        """
        distinct = list(dict.fromkeys(keys))
        mine: list[Key] = []
        others: list[_Read[Key, Value]] = []
        with self._lock:
            found = {key: self._entries[key].value for key in distinct if key in self._entries}
            for key in distinct:
                if self._is_due(key, now, age_ms):
                    read = self._reads.get(key)
                    if read is None or age_ms == 0 or read.thread == threading.get_ident():  # no thread waits for itself
                        mine.append(key)
                    elif key not in found:
                        others.append(read)
            own = _Read[Key, Value](self._changes) if mine else None
            if own is not None:
                self._reads |= dict.fromkeys(mine, own)
        if own is not None:
            found |= self._read_now(mine, now, own)
        for other in others:
            found = {**other.answer.result(), **found}
        if any(key not in found for key in distinct):
            raise Unavailable(f"could not read {self._what}")
        return {key: found[key] for key in distinct}

    def peek(self, key: Key) -> Value | None:
        """Return the value in memory, however old; None: it was never read."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def known(self) -> dict[Key, Value]:
        """Return all values in memory, however old."""
        with self._lock:
            return {key: entry.value for key, entry in self._entries.items()}

    def is_due(self, key: Key, now: int, age_ms: float | None = None) -> bool:
        """Whether the value is so old that a caller would read it."""
        with self._lock:
            return self._is_due(key, now, age_ms)

    def read_at(self, key: Key) -> int | None:
        """When the read of the value in memory began; None: it was never read."""
        entry = self._entries.get(key)
        return None if entry is None else entry.read_at

    def tried_at(self, key: Key) -> int | None:
        """When the last read of the value began, also of a refused one."""
        last = self._tries.get(key)
        return None if last is None else last.at

    def forget(self, key: Key) -> None:
        """Note that this process changed the value: the next caller reads it again. Reads in progress are not kept."""
        with self._lock:
            self._changes += 1
            self._tries.pop(key, None)
            self._reads.clear()
            if key in self._entries:
                self._entries[key].is_former = True

    def _is_due(self, key: Key, now: int, age_ms: float | None) -> bool:
        last, entry = self._tries.get(key), self._entries.get(key)
        most = self._fresh_ms if age_ms is None else age_ms
        if last is None:
            return True
        is_fresh = entry is not None and not entry.is_former and 0 <= now - entry.read_at < most
        backs_off = self._backs_off and last.refusals > 0
        pause = min(RETRY_MS << min(last.refusals - 1, 10), LONGEST_RETRY_MS) if backs_off and most else most
        return not is_fresh and not 0 <= now - last.at < pause

    def _read_now(self, keys: Sequence[Key], now: int, own: _Read[Key, Value]) -> Mapping[Key, Value]:
        """Read these keys, for this caller and for those that wait for it. Raises what `read` raises, except Unavailable."""
        found: Mapping[Key, Value] = {}
        try:
            found = self._read(keys, now)
        except Unavailable as error:
            log.warning("could not read %s", self._what, extra={"error": str(error)})
        except BaseException as error:
            self._end(own, self._drop, keys if isinstance(error, NotFound) else ())
            own.answer.set_exception(error)
            raise
        self._end(own, lambda key: self._note(key, found, now), keys)
        own.answer.set_result(found)
        return found

    def _end(self, own: _Read[Key, Value], note: Callable[[Key], None], keys: Sequence[Key]) -> None:
        """End a read, and note its answer unless this process has changed a value since."""
        with self._lock:
            self._reads = {key: read for key, read in self._reads.items() if read is not own}
            if own.changes == self._changes:
                for key in keys:
                    note(key)

    def _note(self, key: Key, found: Mapping[Key, Value], now: int) -> None:
        if key in found:
            self._drop(key)  # a value that was read again is the last to leave
            self._entries[key], self._tries[key] = _Entry(found[key], now), _Try(now, 0)
            if self._most is not None and len(self._entries) > self._most:
                self._drop(next(iter(self._entries)))
        else:
            self._tries[key] = _Try(now, self._tries.get(key, _Try(now, 0)).refusals + 1)
            if len(self._tries) > len(self._entries) + MOST_UNREAD:
                self._tries = {each: last for each, last in self._tries.items() if each in self._entries}

    def _drop(self, key: Key) -> None:
        self._entries.pop(key, None)
        self._tries.pop(key, None)
