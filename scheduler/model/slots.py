"""Slots: the minute and shard in which the scheduler next finds a job, and whether its writer enqueues it before.

A job keeps a slot until it is settled. A slot is never written into a minute whose dispatch may have begun. Ticks open minutes
`OPEN_AHEAD` before they start; clocks may differ and writers may be slow, so `HORIZON` stays well above it. The writer of a job that
is due sooner enqueues it at once, and gives it the first safe minute as its safety slot.
"""

import zlib
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

MINUTE = 60_000
HORIZON = 300_000  # ms; a new slot never starts sooner than this
OPEN_AHEAD = 195_000  # ms; ticks open minutes up to here: after two missed ticks in a row a minute is still opened 15 s before its start
SLOW_PUT = 10_000  # ms; a writer whose put took longer reads the clock again
OVERFLOW = "intake"  # names the overflow slots, which are always open: for jobs due too soon for a minute, of owners above their share
DIRECT_LEAD = 1_700  # ms; a job enqueued directly reaches its lane this long, plus at most a second, before its instant: a cold start


class Placement(NamedTuple):
    """The slot of a job, and whether its writer must enqueue the job at once."""

    slot: str
    direct: bool


def minute_of(at: int) -> str:
    """The name of the minute that contains the instant (ms), such as 2026-11-20T10:01, in UTC."""
    return _name(at // MINUTE)


@lru_cache(maxsize=1_000)  # nearly all calls are for the same few minutes around now
def _name(number: int) -> str:
    return datetime.fromtimestamp(number * MINUTE // 1000, UTC).strftime("%Y-%m-%dT%H:%M")


@lru_cache(maxsize=1_000)
def start_of(minute: str) -> int:
    """The instant (ms) at which the minute starts."""
    return int(datetime.strptime(minute, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC).timestamp()) * 1000


def following(minute: str) -> str:
    """The next minute."""
    return minute_of(start_of(minute) + MINUTE)


def minute(slot: str) -> str:
    """The minute of a slot, `OVERFLOW` for an overflow slot."""
    return slot.partition("#")[0]


def first_safe_minute(now: int) -> str:
    """The first minute that starts no sooner than `HORIZON` from now."""
    return minute_of(now + HORIZON + MINUTE - 1)


def is_safe(slot: str, now: int) -> bool:
    """Whether dispatch of the slot's minute cannot have begun yet; half of the slack between `HORIZON` and `OPEN_AHEAD` is left."""
    return is_overflow(slot) or start_of(minute(slot)) - now >= (HORIZON + OPEN_AHEAD) // 2


def slot(minute: str, shard_key: str, shards: int) -> str:
    """The slot of a minute for this key: the minute and, by a hash of the key, the shard, as in 2026-11-20T10:01#07."""
    return f"{minute}#{zlib.crc32(shard_key.encode()) % shards:02d}"


def overflow(shard_key: str, shards: int) -> str:
    """The overflow slot for this key."""
    return slot(OVERFLOW, shard_key, shards)


def is_overflow(slot: str) -> bool:
    """Whether it is an overflow slot."""
    return minute(slot) == OVERFLOW


def is_safety_slot(slot: str | None, due_at: int) -> bool:
    """Whether it is the safety slot of a job placed just now: the job was due too soon for its own minute, so its writer enqueues it."""
    return slot is not None and not is_overflow(slot) and minute(slot) != minute_of(due_at)


def is_direct(due_at: int, now: int) -> bool:
    """Whether the writer of a job due at `due_at` (ms) must enqueue the job at once: see `place`."""
    return minute_of(due_at) < first_safe_minute(now)


def place(due_at: int, now: int, shard_key: str, shards: int) -> Placement:
    """The slot of a job due at `due_at` (ms), and whether its writer must enqueue the job at once."""
    own, safe = minute_of(due_at), first_safe_minute(now)
    return Placement(slot(max(own, safe), shard_key, shards), direct=own < safe)


def not_before(due_at: int) -> int:
    """The earliest arrival (ms) of a message that a writer enqueues: a little ahead, so that its executor is ready at the instant."""
    return due_at - DIRECT_LEAD
