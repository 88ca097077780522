"""The rows of the counters, and what is added to them. `scheduler/insight/counting.py` lists all rows."""

from collections.abc import Mapping
from typing import NamedTuple


class Row(NamedTuple):
    """The key of a row of counters; rows of one partition sort by name."""

    partition: str
    name: str
    expires: int | None = None  # epoch seconds
    about: str | None = None  # the text behind a digest in the name


class CounterEntry(NamedTuple):
    """The amounts that one change adds to one row; `sequence` orders the changes of a stream shard as text."""

    row: Row
    sequence: str
    amounts: Mapping[str, int]


class Counted(NamedTuple):
    """A row of counters as it is read."""

    name: str
    amounts: Mapping[str, int]
    about: str | None = None
