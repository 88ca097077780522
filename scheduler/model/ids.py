"""Job ids: ULIDs of the scheduled time, so that lists by time are key ranges. A task id has the same form, with its time of creation.

01JD4Q8XKZ 3 8W2M5R7T9V1C4FH
─────┬──── ┬ ───────┬───────
  48 bits  │     75 random bits
  of time  └ log2 of the number of partitions of its owner's jobs
"""

import hashlib
import zlib

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford base 32: the order of the letters is that of their values
_PAIRS = [high + low for high in ALPHABET for low in ALPHABET]
LENGTH = 26
RANDOM_BITS = 75
PARTITIONS = 32  # each takes 1,000 write units a second from AWS, and one more query from each list
_TIME = 10
PATTERN = f"^[0-7][{ALPHABET}]{{{LENGTH - 1}}}$"  # of texts among which all ids are


def new(at: int, random: int, *, partitions: int = PARTITIONS) -> str:
    """The id of a job scheduled at `at` (ms); `random` fills `RANDOM_BITS` bits."""
    return first(at) + ALPHABET[partitions.bit_length() - 1] + _encode(random % (1 << RANDOM_BITS), LENGTH - _TIME - 1)


def run(at: int, task: str, generation: int) -> str:
    """The id of a task's run scheduled at `at` (ms). It is deterministic, so that two planners cannot store the run twice."""
    return derived(at, f"{task}#{generation}")


def derived(at: int, name: str) -> str:
    """The id of the job that is scheduled at `at` (ms) for what `name` names. It is the same for each writer of that job."""
    return new(at, random_of(name))


def random_of(name: str) -> int:
    """The random part that the name stands for."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest())


def position(job_id: str, scheduled_at: int) -> str:
    """The sort key of a job in lists by time: its id, or after a change of its time a derived id of the present time.

    No two jobs share a position. Runs of one task differ in their time only, and one run may be moved to the time of another;
    the derived id therefore comes from a hash of the job's whole id.
    """
    if job_id.startswith(first(scheduled_at)):
        return job_id
    return derived(scheduled_at, job_id)


def queue_position(job_id: str, scheduled_at: int, created_at: int) -> str:
    """The sort key of a job in the order of its ordering queue: by scheduled time, then by creation, then by id."""
    return first(scheduled_at) + first(created_at) + job_id


def is_position(text: str) -> bool:
    """Whether the text has the form of a position, of `position` or of `queue_position`."""
    times, job_id = text[:-LENGTH], text[-LENGTH:]
    return is_job_id(job_id) and len(times) in (0, 2 * _TIME) and all(letter in ALPHABET for letter in times)


def first(at: int) -> str:
    """The lower bound of a key range: the ids of `at` (ms) and later are not less, all earlier ones are."""
    return _encode(max(at, 0), _TIME)


def time(job_id: str) -> int:
    """The scheduled time in the id (ms)."""
    value = 0
    for letter in job_id[:_TIME]:
        value = value * 32 + ALPHABET.index(letter)
    return value


def is_made_with(random: int, some_id: str) -> bool:
    """Whether `new` made this id from `random`, for any time."""
    return some_id[_TIME + 1 :] == new(0, random)[_TIME + 1 :]


def partition(job_id: str) -> int:
    """The number of the partition, among its owner's, that stores the job.

    The id itself contains the number of partitions, so that a later increase moves no job.
    """
    return zlib.crc32(job_id.encode()) % (1 << ALPHABET.index(job_id[_TIME]))


def is_job_id(text: str) -> bool:
    """Whether the text has the form of an id of a job or a task."""
    return len(text) == LENGTH and all(letter in ALPHABET for letter in text) and text[0] <= "7" and text[_TIME] <= "8"


def _encode(value: int, length: int) -> str:
    pairs = "".join([_PAIRS[value >> shift & 1023] for shift in range(10 * (length // 2 - 1), -1, -10)])
    return pairs if length % 2 == 0 else ALPHABET[value >> 5 * (length - 1) & 31] + pairs
