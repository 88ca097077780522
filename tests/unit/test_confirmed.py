"""The shards that writers may use: the shards that the ledger has confirmed."""

from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor
from scheduler.model.rules import Rules
from scheduler.storage.confirmed import AGAIN_MS, ConfirmedRules
from scheduler.storage.memory.stores import MemoryLedger
from tests.conftest import FixedClock


class Asked(MemoryLedger):
    """A ledger that counts the requests for shards, and refuses while `refuses`."""

    def __init__(self, shards: int | None, *, refuses: bool = False) -> None:
        super().__init__()
        self.refuses, self.times = refuses, 0
        if shards is not None:
            self.advance(None, Cursor("2026-11-20T10:01", shards))

    def require_shards(self, shards: int) -> int:
        self.times += 1
        if self.refuses:
            raise Unavailable
        return super().require_shards(shards)


def confirmed(ledger: Asked, clock: FixedClock) -> ConfirmedRules:
    return ConfirmedRules(Rules(shards=16, units=3), lambda: ledger, clock)


def test_a_process_raises_the_shards_of_the_ledger_once(clock: FixedClock) -> None:
    ledger = Asked(4)
    rules = confirmed(ledger, clock)
    for _ in range(5):
        assert rules.get() == Rules(shards=16, units=3)
        clock.advance(3_600_000)
    assert ledger.times == 1 and ledger.cursor() == Cursor("2026-11-20T10:01", 16, 1)


def test_a_process_with_fewer_shards_lowers_nothing(clock: FixedClock) -> None:
    ledger = Asked(32)
    assert confirmed(ledger, clock).get().shards == 16
    assert ledger.cursor() == Cursor("2026-11-20T10:01", 32, 0)


def test_while_the_ledger_refuses_only_shard_0_is_used(clock: FixedClock) -> None:
    ledger = Asked(16, refuses=True)
    rules = confirmed(ledger, clock)
    assert rules.get() == Rules(shards=1, units=3)
    clock.advance(AGAIN_MS - 1)
    assert rules.get().shards == 1 and ledger.times == 1
    ledger.refuses = False
    clock.advance(1)
    assert rules.get().shards == 16 and ledger.times == 2


def test_a_clock_that_was_set_back_delays_no_request(clock: FixedClock) -> None:
    ledger = Asked(16, refuses=True)
    rules = confirmed(ledger, clock)
    rules.get()
    ledger.refuses = False
    clock.at -= 3_600_000
    assert rules.get().shards == 16


def test_a_ledger_without_a_cursor_is_read_again(clock: FixedClock) -> None:
    ledger = Asked(None)
    rules = confirmed(ledger, clock)
    assert rules.get().shards == 16  # the first tick opens the shards of the settings
    ledger.advance(None, Cursor("2026-11-20T10:01", 4))
    clock.advance(AGAIN_MS)
    assert rules.get().shards == 16
    cursor = ledger.cursor()
    assert cursor is not None and cursor.shards == 16
    clock.advance(AGAIN_MS)
    assert rules.get().shards == 16 and ledger.times == 2
