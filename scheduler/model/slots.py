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
ROOM = "paused-"  # begins the names of waiting rooms, which are always open too: for jobs that fell due while their lane was paused, ...
USER_ROOM = f"{ROOM}user/"  # ... or while their owner was disabled
QUEUE = "target/"  # begins the slots of jobs that wait for a limited target: they belong to no minute, and release steps read them
QUEUE_SHARDS = 4  # slots of one user's jobs in a target queue: a slot takes 1,000 index writes a second
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
    """The minute of a slot; `OVERFLOW` for an overflow slot, the name of the waiting room for a slot of one.

    A slot of a target queue has none.
    """
    return slot.partition("#")[0]


def first_safe_minute(now: int) -> str:
    """The first minute that starts no sooner than `HORIZON` from now."""
    return minute_of(now + HORIZON + MINUTE - 1)


def is_safe(slot: str, now: int) -> bool:
    """Whether dispatch of the slot's minute cannot have begun yet; half of the slack between `HORIZON` and `OPEN_AHEAD` is left."""
    return is_always_open(slot) or is_queued(slot) or start_of(minute(slot)) - now >= (HORIZON + OPEN_AHEAD) // 2


def slot(minute: str, job_id: str, shards: int) -> str:
    """The slot of a minute for this key: the minute and, by a hash of the key, the shard, as in 2026-11-20T10:01#07."""
    return f"{minute}#{zlib.crc32(job_id.encode()) % shards:02d}"


def overflow(job_id: str, shards: int) -> str:
    """The overflow slot for this key."""
    return slot(OVERFLOW, job_id, shards)


def queued(target: str, owner: str, job_id: str) -> str:
    """The slot of a job that waits for this limited target."""
    return queue(target, owner)[zlib.crc32(job_id.encode()) % QUEUE_SHARDS]


def queue(target: str, owner: str) -> list[str]:
    """The slots of the jobs of one user that wait for this limited target."""
    return [f"{QUEUE}{target}/{owner}#{shard:02d}" for shard in range(QUEUE_SHARDS)]


def is_queued(slot: str) -> bool:
    """Whether it is a slot of a target queue."""
    return slot.startswith(QUEUE)


def queue_of(slot: str) -> tuple[str, str]:
    """The target and the user of a slot of a target queue."""
    target, _, owner = slot.removeprefix(QUEUE).rpartition("#")[0].partition("/")
    return target, owner


def is_overflow(slot: str) -> bool:
    """Whether it is an overflow slot."""
    return minute(slot) == OVERFLOW


def room_of(lane: str) -> str:
    """The name of the lane's waiting room, which stands for a minute in its slots and units."""
    return ROOM + lane


def waiting(lane: str, job_id: str, shards: int) -> str:
    """The slot for this job in the lane's waiting room."""
    return slot(room_of(lane), job_id, shards)


def lane_of_room(minute: str) -> str | None:
    """The lane of the waiting room with this name; None for a minute or the overflow."""
    return minute.removeprefix(ROOM) if minute.startswith(ROOM) and not minute.startswith(USER_ROOM) else None


def room_of_owner(owner: str) -> str:
    """The name of the waiting room for the jobs of a disabled user, in all lanes."""
    return USER_ROOM + owner


def owner_of_room(minute: str) -> str | None:
    """The user of the waiting room with this name; None for a minute, the overflow, or the room of a lane."""
    return minute.removeprefix(USER_ROOM) if minute.startswith(USER_ROOM) else None


def is_always_open(slot: str) -> bool:
    """Whether it is a slot, or the name, of the overflow or of a waiting room: they have no time, and are never closed."""
    return minute(slot) == OVERFLOW or slot.startswith(ROOM)


def is_safety_slot(slot: str | None, due_at: int) -> bool:
    """Whether it is the safety slot of a job placed just now: the job was due too soon for its own minute, so its writer enqueues it."""
    return slot is not None and not is_always_open(slot) and minute(slot) != minute_of(due_at)


def is_direct(due_at: int, now: int) -> bool:
    """Whether the writer of a job due at `due_at` (ms) must enqueue the job at once: see `place`."""
    return minute_of(due_at) < first_safe_minute(now)


def place(due_at: int, now: int, job_id: str, shards: int) -> Placement:
    """The slot of a job due at `due_at` (ms), and whether its writer must enqueue the job at once."""
    own, safe = minute_of(due_at), first_safe_minute(now)
    return Placement(slot(max(own, safe), job_id, shards), direct=own < safe)


def not_before(due_at: int) -> int:
    """The earliest arrival (ms) of a message that a writer enqueues: a little ahead, so that its executor is ready at the instant."""
    return due_at - DIRECT_LEAD
