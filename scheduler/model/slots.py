"""Slots: which minute and shard the scheduler must look at a job in, and who hands it over until then.

A job keeps a slot until it is settled. No slot is ever written into a minute whose dispatch may have begun: minutes
are opened `OPEN_AHEAD` before they start, by clocks that may differ and writers that may be slow, so `HORIZON` stays
well above it. A job due sooner goes to its lane at once and takes the first safe minute as its net.
"""

import zlib
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

MINUTE = 60_000
HORIZON = 240_000  # a slot is never nearer than this, in ms
OPEN_AHEAD = 135_000  # ticks open minutes up to here: two missed ticks in a row cost nothing (measured in simulation: 75 s is late)
SLOW_PUT = 10_000  # a writer whose put took longer looks at the clock again
INTAKE = "intake"  # the slots that are always open: for jobs due too soon for any minute whose owner is above their share
DIRECT_LEAD = 1_500  # a directly handed job reaches its lane this long, plus at most a second, before its instant


class Placement(NamedTuple):
    """Where a job goes: its slot, and whether its writer must hand it to the lane at once."""

    slot: str
    direct: bool


def minute_of(at: int) -> str:
    return _name(at // MINUTE)


@lru_cache(maxsize=1_000)  # nearly all that is asked for is the same few minutes around now
def _name(number: int) -> str:
    return datetime.fromtimestamp(number * MINUTE // 1000, UTC).strftime("%Y-%m-%dT%H:%M")


@lru_cache(maxsize=1_000)
def start_of(minute: str) -> int:
    return int(datetime.strptime(minute, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC).timestamp()) * 1000


def following(minute: str) -> str:
    return minute_of(start_of(minute) + MINUTE)


def minute(slot: str) -> str:
    return slot.partition("#")[0]


def first_safe_minute(now: int) -> str:
    """The first minute that starts no sooner than `HORIZON` from now."""
    return minute_of(now + HORIZON + MINUTE - 1)


def is_safe(slot: str, now: int) -> bool:
    """Whether dispatch of the slot's minute cannot have begun yet, with half the horizon's slack to spare."""
    return is_intake(slot) or start_of(minute(slot)) - now >= (HORIZON + OPEN_AHEAD) // 2


def slot(minute: str, shard_key: str, shards: int) -> str:
    return f"{minute}#{zlib.crc32(shard_key.encode()) % shards:02d}"


def intake(shard_key: str, shards: int) -> str:
    return slot(INTAKE, shard_key, shards)


def is_intake(slot: str) -> bool:
    return minute(slot) == INTAKE


def is_net(slot: str | None, due_at: int) -> bool:
    """Whether the slot of a job just placed is only its net, since it was due too soon for its own minute: its writer hands it over."""
    return slot is not None and not is_intake(slot) and minute(slot) != minute_of(due_at)


def place(due_at: int, now: int, shard_key: str, shards: int) -> Placement:
    """The slot of a job due at `due_at`, and whether it must be handed over directly."""
    own, safe = minute_of(due_at), first_safe_minute(now)
    return Placement(slot(max(own, safe), shard_key, shards), direct=own < safe)


def not_before(due_at: int) -> int:
    """When a message sent directly may arrive: a little ahead, so that its executor is ready at the instant."""
    return due_at - DIRECT_LEAD
