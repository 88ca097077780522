"""Lists of jobs by time, from the jobs table and its indexes.

A job is listed at its position: its id, whose first half is its time, or its new time if it was rescheduled. Dead letters are listed in
the order of ordering queues. An owner's
partitions are sorted by id, so their rescheduled jobs are left out; the sparse index `moved` adds them at their new position.
Its entries have no content: the items of those on a page are read once the page is known.

The first pages of all partitions are read side by side. Each is large enough that a list rarely needs a second page of one.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from scheduler.model import lifecycle
from scheduler.model.job import DeadLetter, Job, Page, TaskKey
from scheduler.storage.aws import items, keys, readable
from scheduler.storage.aws.table import Item, Table
from scheduler.storage.aws.updates import address

Position = Callable[[Item], str]  # the place of an item in a list
CHECKED = 2_000  # moved jobs that a count reads to find those that have ended; of the others it counts the entries
SEARCHED = 4_000  # entries of the index of moved jobs that are read at once for the few of one task: a hundred fit into 20 KB


class Span(NamedTuple):
    """The requested part of a list: the port's arguments of these names."""

    since: int | None
    until: int | None
    after: str | None
    limit: int
    newest_first: bool = True

    def query(self, keyed: keys.Range, pk: str, limit: int) -> dict[str, Any] | None:
        """The query of this part of one partition; None if the part is empty."""
        low, high = keys.bounds(self.since, self.until, self.after, self.newest_first)
        if low > high:
            return None
        return keyed.query(pk, low, high) | {"Limit": limit, "ScanIndexForward": not self.newest_first}


class JobLists:
    """The lists of the port `Jobs`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def history(self, owner: str, span: Span) -> Page:
        jobs, moved = self._streams(span, (keys.IN_PARTITION, keys.partitions(owner)), (keys.MOVED_BETWEEN, keys.moved_partitions(owner)))
        return self._page(_merged([*map(_unmoved, jobs), *moved], span), span)

    def of_task(self, task: TaskKey, span: Span) -> Page:
        name = keys.task(*task)
        query = span.query(keys.OF_TASK, name, span.limit + 1)
        runs = self._whole(self._table.all(query), span.limit + 1) if query else iter(())
        (moved,) = self._streams(span._replace(limit=SEARCHED), (keys.MOVED_BETWEEN, keys.moved_partitions(task.owner)))
        of_it = (item for item in _merged(moved, span) if item.get("task") == {"S": name})
        return self._page(_merged([_unmoved(runs), of_it], span), span)

    def failures(self, owner: str, span: Span) -> Page:
        indexed, cursor = self._indexed(owner, span)
        stored = self._whole(iter(indexed), span.limit)
        dead = [job for job in readable.each(items.decode, stored) if _is_dead(job)]  # the index lags behind a redrive
        return Page(dead, cursor)

    def letters(self, owner: str, span: Span) -> tuple[list[DeadLetter], str | None]:
        indexed, cursor = self._indexed(owner, span)
        return list(readable.each(items.letter, indexed)), cursor

    def count_ahead(self, owner: str, now: int) -> int:
        count, partitions = self._table.count, keys.partitions(owner)
        ahead = self._table.pool.map(lambda pk: count(keys.open_from(pk, now)), partitions)
        late = self._table.pool.map(lambda pk: count(keys.open_before(pk, now), while_found=True), partitions)
        moved = list(self._table.pool.map(lambda pk: self._moved_ahead(pk, now), keys.moved_partitions(owner)))
        entries = {address(entry): entry for first, _ in moved for entry in first}  # an index may have two of one item
        read = list(itertools.islice(entries.values(), CHECKED))
        stored = self._table.get_many([keys.job(keys.job_key(entry)) for entry in read], ["pk", "sk", "slot"]) if read else ()
        unread = len(entries) - len(read) + sum(more for _, more in moved)
        return sum(ahead) + sum(late) + unread + sum("slot" in item for item in stored)

    def _moved_ahead(self, pk: str, now: int) -> tuple[list[Item], int]:
        """Entries of a partition's jobs that were moved ahead, at most `CHECKED`, and the number of the others: a million is not held."""
        found = self._table.all(keys.moved_ahead(pk, now))
        return list(itertools.islice(found, CHECKED)), sum(1 for _ in found)

    def _indexed(self, owner: str, span: Span) -> tuple[list[Item], str | None]:
        """The entries of a page of the index of failures, and the cursor of the next page."""
        (failed,) = self._streams(span, (keys.FAILED, keys.partitions(owner)))
        return _cut(_merged(failed, span, _failed_position), span, _failed_position)

    def _streams(self, span: Span, *ranges: tuple[keys.Range, Sequence[str]]) -> list[list[Iterator[Item]]]:
        """The items of this part of the partitions of each range. All first pages are read at once, further ones when they are reached."""
        queries = [
            [query for pk in partitions if (query := span.query(keyed, pk, _share(span, len(partitions))))] for keyed, partitions in ranges
        ]
        first_pages = self._table.pool.map(self._table.query, itertools.chain.from_iterable(queries))
        return [[self._table.all(query, next(first_pages)) for query in of_range] for of_range in queries]

    def _page(self, found: Iterator[Item], span: Span) -> Page:
        listed, cursor = _cut(found, span)
        moved = [item for item in listed if _is_entry(item)]
        stored = {address(item): item for item in self._whole(iter(moved), len(moved))} if moved else {}
        present = [stored.get(address(item)) if _is_entry(item) else item for item in listed]
        still = [item for item, entry in zip(present, listed, strict=True) if item and _position(item) == _position(entry)]
        return Page(list(readable.each(items.decode, still)), cursor)  # a job whose entry is outdated is listed at its present time

    def _whole(self, entries: Iterator[Item], at_once: int) -> Iterator[Item]:
        """The items of an index's entries, read (strongly consistent) when they are reached, `at_once` in one call.

        An index that is behind may have two entries of one item.
        """
        while chunk := list(itertools.islice(entries, at_once)):
            by_address = {address(entry): keys.job(keys.job_key(entry)) for entry in chunk}
            stored = {address(item): item for item in self._table.get_many(list(by_address.values()))}
            yield from (stored[each] for each in by_address if each in stored)


def _share(span: Span, partitions: int) -> int:
    """The most items to read at once of each partition: those on a page vary around the mean, and a second page is one more round trip."""
    return min(2 * span.limit // partitions + 3, span.limit + 1)


def _unmoved(items: Iterable[Item]) -> Iterator[Item]:
    return (item for item in items if "moved_partition" not in item)


def _is_entry(item: Item) -> bool:
    """Whether this is an entry of the index of moved jobs; other items of a list by time are not moved."""
    return "moved_partition" in item


def _position(item: Item) -> str:
    return str((item.get("moved_position") or item["sk"])["S"])


def _failed_position(item: Item) -> str:
    return str(item["failed_position"]["S"])


def _merged(streams: Sequence[Iterator[Item]], span: Span, position: Position = _position) -> Iterator[Item]:
    return heapq.merge(*streams, key=position, reverse=span.newest_first)


def _cut(found: Iterator[Item], span: Span, position: Position = _position) -> tuple[list[Item], str | None]:
    """The items of a page, and the cursor of the next one."""
    listed = list(itertools.islice(found, span.limit + 1))
    return listed[: span.limit], position(listed[span.limit - 1]) if len(listed) > span.limit else None


def _is_dead(job: Job) -> bool:
    return not lifecycle.is_open(job) and lifecycle.state(job) in lifecycle.DEAD
