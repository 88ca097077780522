"""Job ids: ULIDs whose time is the scheduled time, so that lists by time are key ranges. Task ids: the same, of the time of creation.

01JD4Q8XKZ 3 8W2M5R7T9V1C4FH
─────┬──── ┬ ───────┬───────
  48 bits  │     75 random bits
  of time  └ log2 of the partitions its owner's jobs are spread over
"""

import hashlib
import zlib

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford base 32: sorts as it counts
_PAIRS = [high + low for high in ALPHABET for low in ALPHABET]
LENGTH = 26
RANDOM_BITS = 75
PARTITIONS = 8
_TIME = 10


def new(at: int, random: int, *, partitions: int = PARTITIONS) -> str:
    """The id of a job scheduled at `at` (ms); `random` fills `RANDOM_BITS` bits."""
    return first(at) + ALPHABET[partitions.bit_length() - 1] + _encode(random % (1 << RANDOM_BITS), LENGTH - _TIME - 1)


def run(at: int, task: str, generation: int) -> str:
    """The id of the run of a task that is scheduled at `at` (ms): always the same, so that no planner can double it."""
    digest = hashlib.blake2b(f"{task}#{generation}".encode(), digest_size=16).digest()
    return new(at, int.from_bytes(digest))


def position(job_id: str, scheduled_at: int) -> str:
    """Where a job stands in lists by time: its id, or one of its present time if it was rescheduled.

    No two jobs have the same, though runs of one task differ in nothing but their time, and one may be moved to that of another.
    """
    if job_id.startswith(first(scheduled_at)):
        return job_id
    return new(scheduled_at, int.from_bytes(hashlib.blake2b(job_id.encode(), digest_size=16).digest()))


def first(at: int) -> str:
    """The smallest string that no id of an earlier time reaches: the bound of a key range."""
    return _encode(max(at, 0), _TIME)


def time(job_id: str) -> int:
    """The scheduled time in the id (ms)."""
    value = 0
    for letter in job_id[:_TIME]:
        value = value * 32 + ALPHABET.index(letter)
    return value


def is_made_with(random: int, some_id: str) -> bool:
    """Whether these bits are the random part of the id."""
    return some_id[_TIME + 1 :] == new(0, random)[_TIME + 1 :]


def partition(job_id: str) -> int:
    """Which of its owner's partitions the job lives in: written into the id, so that more partitions never move a job."""
    return zlib.crc32(job_id.encode()) % (1 << ALPHABET.index(job_id[_TIME]))


def is_job_id(text: str) -> bool:
    return len(text) == LENGTH and all(letter in ALPHABET for letter in text) and text[0] <= "7" and text[_TIME] <= "8"


def _encode(value: int, length: int) -> str:
    letters = []
    for _ in range(length // 2):
        value, rest = divmod(value, 1024)
        letters.append(_PAIRS[rest])
    if length % 2:
        letters.append(ALPHABET[value % 32])
    return "".join(reversed(letters))
