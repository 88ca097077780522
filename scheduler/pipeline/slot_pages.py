"""The slots of a unit, read page by page, with a bound on the entries of one step.

A step holds about `MOST` entries. It reads its slots in passes, in order of due time and piece by piece, so that it publishes in between.
The entries of one user in one lane are a source. While few entries are here, all are kept. Beyond that a source may have as many as there
is room left: one source fills half of the step, two a third each, and the few entries of any other source still find room. An entry that
finds none is left in its slot, and its source is `missed` from its due time on. Once half of a missed source's entries have left, the
slots are read again from there. So no source decides when the jobs of another one are read.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import attrgetter

from scheduler.model.job import DueEntry, Lane, Unit
from scheduler.pipeline.unit_lease import UnitLease
from scheduler.storage.ports import Jobs

MOST = 120_000  # entries that one step holds: about 100 MB
AT_ONCE = 8  # slots read in parallel: a page of each has up to 36,000 entries together
PIECES = 6  # a piece of a pass ends once it has read this part of `MOST`
AGAIN_MS = 1_000  # from the end of a pass to the next one for missed sources, at least ...
READ_PAUSE = 3  # ... and this number of times as long as the pass took: most of the time is for publishing

Renew = Callable[[], None]
Source = tuple[str, Lane]  # a user's jobs in one lane
Place = tuple[int, str, str | None]  # the due time (ms) up to which a slot was read, the slot, the cursor of its next page


def pages(unit: Unit, jobs: Jobs, renew: Renew) -> Iterator[list[DueEntry]]:
    """Yield the entries that the due index shows in the slots of a unit, slot by slot; call `renew` before each page."""
    for first in range(0, len(unit.slots), AT_ONCE):
        together = unit.slots[first : first + AT_ONCE]
        renew()
        for slot, (page, cursor) in zip(together, jobs.due_in(together), strict=True):
            yield page
            while cursor is not None:
                renew()
                page, cursor = jobs.due(slot, after=cursor)
                yield page


@dataclass(slots=True)
class _Room:
    """The entries that are here, how many of them each source has, and how many more fit."""

    marks: set[str]
    counts: Counter[Source]
    free: int

    @classmethod
    def of(cls, entries: Sequence[DueEntry]) -> "_Room":
        return cls({entry.mark for entry in entries}, Counter(map(_source, entries)), MOST - len(entries))


@dataclass(slots=True)
class _Pass:
    """A read of all slots, from the due time `since` on."""

    since: int
    until: int | None  # a slot is read about up to here
    only: set[Source]  # if there were any, the pass ends once it has found as many entries of these as fit
    shut: set[Source]  # sources without room, up to the end of the pass
    places: list[Place]  # a heap: the slots that are still to be read
    took: int = 0  # how long its pieces have taken so far (ms)
    found: dict[Source, Counter[int]] = field(default_factory=dict)  # entries left in the slots, by due time
    is_early: bool = field(init=False)  # it may end early

    def __post_init__(self) -> None:
        self.is_early = bool(self.only)


@dataclass(slots=True)
class SlotReader:
    """Reads the slots of the leased unit.

    `sent` has the marks of the entries that were published or wait in the flow, `waiting()` returns all entries not published.
    """

    lease: UnitLease
    sent: Set[str]
    waiting: Callable[[], Sequence[DueEntry]]
    paused: Callable[[], Collection[Lane]]
    select: Callable[[list[DueEntry]], list[DueEntry]] = field(default=list)  # sees each page, returns the entries that matter
    took: int = 0  # how long the pass that was read last has taken so far (ms)
    _passes: list[_Pass] = field(default_factory=list)  # the last one is read now, the ones before it after that
    _missed: dict[Source, Counter[int]] = field(default_factory=dict)  # entries left in the slots, by due time
    _full: dict[Source, int] = field(default_factory=dict)  # how many entries a source had when it found no room
    _again_at: int = 0
    _has_read_all: bool = False  # a pass over all entries has come to its end

    @property
    def passes(self) -> int:
        """The number of passes that are not at their end."""
        return len(self._passes)

    @property
    def goes_on(self) -> bool:
        """Whether a pass is not at its end."""
        return bool(self._passes)

    @property
    def is_behind(self) -> bool:
        """Whether slots are still to be read, for jobs that need not wait for a resume."""
        return self.goes_on or any(lane not in self.paused() for _, lane in self._missed)

    @property
    def has_missed(self) -> bool:
        """Whether entries were left in the slots."""
        return bool(self._missed)

    def begin(self, since: int = 0, *, until: int | None = None, only: Collection[Source] | None = None, is_beside: bool = False) -> None:
        """Begin a pass over the entries with `since <= due_at`, and about up to `until`.

        Missed sources get their room again: all of them, or `only` these, and then the pass ends early. It takes the place of a pass
        that goes on, which continues after it if it `is_beside`.
        """
        shut = set() if only is None else {*self._missed} - {*only}
        places: list[Place] = [(since, slot, None) for slot in self.lease.unit.slots]
        new = _Pass(since, until, {*(only or ())}, shut, places)
        self._passes = [*self._passes, new] if is_beside else [new]

    def next_at(self) -> int | None:
        """Return when to read on (ms); None: there is nothing to read."""
        return self._again_at if self.is_behind else None

    def is_due(self, now: int) -> bool:
        """Return whether to read on although jobs may have to be published: that gets at least half of the time."""
        return now >= self._again_at and self.is_behind

    def read(self) -> list[DueEntry]:
        """Read the next piece; return its entries for which there is room. Raises LeaseLost; Unavailable."""
        clock = self.lease.ports.clock
        began, read = clock.now(), 0
        if not self.goes_on and (began < self._again_at or not self.refill()):
            self._again_at = max(self._again_at, began + AGAIN_MS)
            return []
        this, waiting, entries = self._passes[-1], self.waiting(), list[DueEntry]()
        room = _Room.of(waiting) if self._missed or this.shut else None
        while this.places and read < max(MOST // PIECES, 1):
            found: list[DueEntry] = []
            for place, page, cursor in self._pages(this):
                read += len(page)
                if cursor is not None and not (this.until is not None and page and page[-1].due_at > this.until):
                    heapq.heappush(this.places, (page[-1].due_at if page else place[0], place[1], cursor))
                found += self.select(page)
            if room is None and len(waiting) + len(entries) + len(found) > MOST // 2:
                room = _Room.of([*waiting, *entries])
            entries += found if room is None else self._keep(this, sorted(found, key=attrgetter("due_at")), room)
            if this.is_early and not this.only:
                break
        ended = clock.now()
        this.took += ended - began
        self.took = this.took
        if not this.places or (this.is_early and not this.only):
            self._passes.pop()
            self._end(this)
        self._again_at = ended + (ended - began if self._passes else max(AGAIN_MS, READ_PAUSE * this.took))
        return entries

    def first_dues(self) -> list[int]:
        """Return due times (ms) of entries left in the slots, the earliest among them."""
        return [min(dues) for dues in self._missed.values()]

    def unread_from(self) -> int | None:
        """Return the due time (ms) from which on there may be entries that no pass has come across; None: one has read all slots."""
        if self._has_read_all:
            return None
        return min([due for due, _, _ in self._passes[0].places], default=0) if self._passes else 0

    def count(self, lane: Lane, since: int, until: int) -> int:
        """Return how many entries of the lane, due from `since` to `until` (ms), were left in the slots."""
        count = _count(self._missed, lane, since, until)
        for each in self._passes:
            if each.found:
                first, last = max(each.since, since), until if each.until is None else min(each.until, until)
                count += max(_count(each.found, lane, first, last) - _count(self._missed, lane, first, last), 0)
        return count

    def _pages(self, this: _Pass) -> list[tuple[Place, list[DueEntry], str | None]]:
        """Read the next page of the slot that is behind the others; the first pages of several slots in parallel."""
        jobs, places = self.lease.ports.jobs, [heapq.heappop(this.places)]
        self.lease.renew_if_due()
        if (cursor := places[0][2]) is not None:
            return [(places[0], *jobs.due(places[0][1], since=this.since, after=cursor))]
        while this.places and this.places[0][2] is None and len(places) < AT_ONCE:
            places.append(heapq.heappop(this.places))
        read = jobs.due_in([slot for _, slot, _ in places], since=this.since)
        return [(place, page, cursor) for place, (page, cursor) in zip(places, read, strict=True)]

    def _keep(self, this: _Pass, entries: Sequence[DueEntry], room: _Room) -> list[DueEntry]:
        """Return the unknown ones of these entries for which there is room, and count the others as missed."""
        sent, shut, missed, fitting = self.sent, this.shut, self._missed, list[DueEntry]()
        for entry in entries:
            if entry.mark in sent or entry.mark in room.marks:
                continue
            source = _source(entry)
            if source not in shut:
                count = room.counts[source]
                if count < room.free:
                    fitting.append(entry)
                    room.counts[source], room.free = count + 1, room.free - 1
                    if source in missed:
                        self._take(source, entry.due_at)
                    continue
                shut.add(source)
                self._full[source] = count
                this.only.discard(source)
            if this.until is None or entry.due_at <= this.until:
                this.found.setdefault(source, Counter())[entry.due_at] += 1
        return fitting

    def _take(self, source: Source, due_at: int) -> None:
        """Count an entry that was left in its slot, and is here now."""
        dues = self._missed[source]
        dues[due_at] -= 1
        if dues[due_at] <= 0:
            del dues[due_at]
        if not dues:
            del self._missed[source]

    def refill(self) -> bool:
        """Begin a pass for the missed sources of which half the entries have left. False: there are none."""
        if not self._missed:
            return False
        waiting, firsts, paused = self.waiting(), {source: min(dues) for source, dues in self._missed.items()}, self.paused()
        ahead = Counter([source for entry in waiting if entry.due_at <= firsts.get(source := _source(entry), -1)])
        free = MOST - len(waiting)
        short = [
            source
            for source in firsts
            if free > 0 and 2 * ahead[source] <= min(self._full.get(source, 0), free) and source[1] not in paused
        ]
        if short:
            self.begin(min(firsts[source] for source in short), only=short)
        return bool(short)

    def _end(self, this: _Pass) -> None:
        """Take over what a pass left in the slots. If it ended early, that is known, except for sources that missed nothing before."""
        missed, first, last = this.found, this.since, this.until
        self._has_read_all |= last is None and not this.is_early
        if this.places:
            missed = this.found | self._missed
        elif first or last is not None:
            for source, dues in self._missed.items():
                if outside := {due: jobs for due, jobs in dues.items() if due < first or (last is not None and due > last)}:
                    missed.setdefault(source, Counter()).update(outside)
        self._missed = missed
        self._full = {source: self._full.get(source, 0) for source in missed}


def _source(entry: DueEntry) -> Source:
    return entry.key.owner, entry.lane


def _count(dues: Mapping[Source, Counter[int]], lane: Lane, since: int, until: int) -> int:
    return sum([jobs for source, by_due in dues.items() if source[1] is lane for due, jobs in by_due.items() if since <= due <= until])
