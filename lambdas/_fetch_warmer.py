"""Starts the function that calls URLs while an executor waits with its first such jobs, so that no job waits for a cold start."""

import threading
from collections.abc import Callable

from scheduler.storage.ports import Clock

RESTED_MS = 30_000  # Lambda keeps an unused environment for minutes, but a connection may close sooner while an executor is frozen
TOGETHER_MS = 500  # jobs that an executor takes within this time run together, each in an environment of its own
MOST = 10  # environments that are started for them


class FetchWarmer:
    """The function, as one executor uses it. `call` invokes it once, for a job with this time-out in seconds."""

    def __init__(self, call: Callable[[float], None], clock: Clock) -> None:
        self._call, self._clock = call, clock
        self._used_at: int | None = None  # by the clock, as a monotonic one may stop while the executor is frozen
        self._began = 0
        self._started = 0

    def use(self, due_at: int, seconds: float) -> None:
        """Note a job that the executor has just taken. If it waits for its instant and the function was not used lately, start it now."""
        now = self._clock.now()
        if self._used_at is None or now - self._used_at > RESTED_MS:
            self._began, self._started = now, 0
        self._used_at = now
        if due_at > now and now - self._began <= TOGETHER_MS and self._started < MOST:
            self._started += 1
            threading.Thread(target=self._call, args=(seconds,), name="fetch-warmer", daemon=True).start()
