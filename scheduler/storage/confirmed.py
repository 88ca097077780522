"""Writers use only shards that the ledger has confirmed.

A writer that put a job into a shard that the tick does not open would lose it, and during a deployment or a rollback the functions have
different settings. So each process requests as many shards as its own settings have, once; the ledger then opens as many in
all minutes that are not open yet, and writers place jobs in no other minutes (`slots.HORIZON`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.model.errors import SchedulerError
from scheduler.model.rules import Rules
from scheduler.storage.ports import Clock, Ledger

AGAIN_MS = 10_000  # the interval of requests to a ledger that refuses or has no cursor yet: each call may block for seconds


@dataclass(slots=True)
class ConfirmedRules:
    """The rules of one process. Shard 0 exists always: a process uses no other while the ledger refuses."""

    configured: Rules
    ledger: Callable[[], Ledger]
    clock: Clock
    _rules: Rules | None = None
    _read_at: int | None = None
    _is_confirmed: bool = False

    def get(self) -> Rules:
        """Return the rules with the number of shards that this process may use."""
        if not self._is_confirmed and (self._read_at is None or not 0 <= self.clock.now() - self._read_at < AGAIN_MS):
            self._ask()
        return self._rules or self.configured

    def _ask(self) -> None:
        self._read_at = self.clock.now()
        try:
            known = self.ledger().require_shards(self.configured.shards)
        except SchedulerError:
            self._rules = self._rules or replace(self.configured, shards=1)
            return
        self._rules = self.configured  # a ledger without a cursor: the first tick opens the shards of the settings
        self._is_confirmed = bool(known)
