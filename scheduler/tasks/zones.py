"""Time zones as stretches of constant offset. The rules come from the pinned `tzdata` package, so that they are equal on every host.

Times here are whole minutes since the epoch, of UTC or of local time: no zone has used a finer offset since 1972.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

RULE = "must be an IANA time zone, such as Europe/Berlin or UTC"

DAY = 1440
SPAN = 365 * DAY  # stretches are computed and cached per span; the bounds of spans have no other meaning
REACH = 2 * DAY  # more than any clock has ever jumped


class Stretch(NamedTuple):
    """The UTC minutes from `start` (inclusive) to `end` (exclusive), in which local time = UTC + `offset`.

    The clock jumped over the local times from `seen` up to the first of this stretch. Local times before `seen` have occurred
    before; local times at or after `again` will occur again.
    """

    start: int
    end: int
    offset: int
    seen: int
    again: int


@lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """The names of all zones that a schedule may have."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split()) - {"Factory"}


@cache  # at most one entry per zone
def zone(name: str) -> ZoneInfo:
    """The zone of this name. Raises ValueError with the rule for a name that IANA does not list."""
    if name not in names():
        meant = [known for known in names() if known.casefold() == name.strip().casefold()]
        raise ValueError(f"{RULE}; did you mean {meant[0]}?" if meant else RULE)
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@lru_cache(maxsize=4096)
def of_span(name: str, span: int) -> tuple[Stretch, ...]:
    """The stretches of the UTC minutes from span * SPAN to (span + 1) * SPAN. They are also cut at these bounds, without any change."""
    first, last = span * SPAN, (span + 1) * SPAN
    pieces = list(_pieces(zone(name), [first - REACH, first, last, last + REACH]))
    return tuple(
        Stretch(
            start,
            end,
            offset,
            seen=max(end_ + offset_ for _, end_, offset_ in pieces[:number]),
            again=min(start_ + offset_ for start_, _, offset_ in pieces[number + 1 :]),
        )
        for number, (start, end, offset) in enumerate(pieces)
        if first <= start < last
    )


def _pieces(zone: ZoneInfo, cuts: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, offset) of each piece between the first and the last cut, in order."""
    start = cuts[0]
    ends = sorted({*cuts[1:], *_changes(zone, cuts[0], cuts[-1])})
    for end in ends:
        yield start, end, offset_at(zone, start)
        start = end


def _changes(zone: ZoneInfo, start: int, end: int) -> Iterator[int]:
    """Yield the UTC minutes at which the offset changes.

    Two changes within a day that cancel each other out would not be found; no zone has any.
    """
    for day in range(start, end, DAY):
        yield from _changes_within(zone, day, day + DAY)


def _changes_within(zone: ZoneInfo, low: int, high: int) -> Iterator[int]:
    if offset_at(zone, low) == offset_at(zone, high):
        return
    if high - low == 1:
        yield high
        return
    middle = (low + high) // 2
    yield from _changes_within(zone, low, middle)
    yield from _changes_within(zone, middle, high)


def offset_at(zone: ZoneInfo, minute: int) -> int:
    """Local time minus UTC at the UTC minute, in minutes."""
    offset = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds()) // 60
