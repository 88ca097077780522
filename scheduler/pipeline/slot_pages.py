"""The slots of a unit, read page by page, with a bound on the entries of one step."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import NamedTuple

from scheduler.model.job import DueEntry, Unit
from scheduler.storage.ports import Jobs

MOST = 120_000  # entries that one step holds: about 100 MB
AT_ONCE = 8  # slots read in parallel: a page of each has up to 36,000 entries together

Beat = Callable[[], None]
Page = tuple[list[DueEntry], bool]  # with whether another page of its slot follows


class Entries(NamedTuple):
    """Entries in order of due time. `through`: not all entries due later than this instant (ms) were read, and none of them is here.

    None: all entries are here.
    """

    entries: list[DueEntry]
    through: int | None = None


def pages(unit: Unit, jobs: Jobs, beat: Beat) -> Iterator[list[DueEntry]]:
    """Yield the entries that the due index shows in the slots of a unit, slot by slot; call `beat` before each page."""
    for slot in _slots(unit, jobs, beat, 0):
        for page, _ in slot:
            yield page


def read(unit: Unit, jobs: Jobs, beat: Beat = lambda: None, *, since: int = 0, most: int | None = None) -> Entries:
    """Return the first entries of a unit with `due_at >= since`: about `most` (default `MOST`), and of each slot the ones due first."""
    entries: list[DueEntry] = []
    cuts: list[int] = []
    each = max((most or MOST) // len(unit.slots), 1)
    for slot in _slots(unit, jobs, beat, since):
        found = 0
        for page, goes_on in slot:
            entries += page
            found += len(page)
            if goes_on and page and found >= each:
                cuts.append(page[-1].due_at)
                break
    entries.sort(key=attrgetter("due_at"))
    if not cuts:
        return Entries(entries)
    return Entries(entries[: bisect_right(entries, min(cuts), key=attrgetter("due_at"))], min(cuts))


def _slots(unit: Unit, jobs: Jobs, beat: Beat, since: int) -> Iterator[Iterator[Page]]:
    """Yield the pages of each slot. First pages of several slots are read in parallel: most slots have no second one."""
    for first in range(0, len(unit.slots), AT_ONCE):
        together = unit.slots[first : first + AT_ONCE]
        beat()
        for slot, (page, cursor) in zip(together, jobs.due_in(together, since=since), strict=True):
            yield _of_slot(slot, page, cursor, jobs, beat, since)


def _of_slot(slot: str, page: list[DueEntry], cursor: str | None, jobs: Jobs, beat: Beat, since: int) -> Iterator[Page]:
    yield page, cursor is not None
    while cursor is not None:
        beat()
        page, cursor = jobs.due(slot, since=since, after=cursor)
        yield page, cursor is not None
