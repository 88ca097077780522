"""Lists of jobs by time, from the jobs table and its indexes.

A job is listed at its position: its id, whose first half is its time, or its new time if it was rescheduled. An owner's
partitions are sorted by id, so their rescheduled jobs are left out; the sparse index `moved` adds them at their new position.
"""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from scheduler.model import ids, lifecycle
from scheduler.model.job import DeadLetter, Job, JobKey, Page, TaskKey
from scheduler.storage.aws import items, keys, readable
from scheduler.storage.aws.table import Item, Table
from scheduler.storage.aws.updates import address


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
        share = 2 * span.limit // ids.PARTITIONS + 1  # about twice the share of one partition in a page
        queries = [query for pk in keys.partitions(owner) if (query := span.query(keys.IN_PARTITION, pk, share))]
        first_pages = self._table.pool.map(self._table.query, queries)  # in parallel: a page takes the time of one query
        moved = self._moved(owner, span)
        partitions = [self._table.all(query, page) for query, page in zip(queries, first_pages, strict=True)]
        return _page(_merged([*map(_unmoved, partitions), moved], span), span)

    def of_task(self, task: TaskKey, span: Span) -> Page:
        name = keys.task(*task)
        query = span.query(keys.OF_TASK, name, span.limit + 1)
        runs = self._whole(self._table.all(query), span.limit + 1) if query else iter(())
        moved = (item for item in self._moved(task.owner, span) if item.get("task") == {"S": name})
        return _page(_merged([_unmoved(runs), moved], span), span)

    def failures(self, owner: str, span: Span) -> Page:
        query = span.query(keys.FAILED, owner, span.limit + 1)
        if query is None:
            return Page()
        indexed = list(itertools.islice(self._table.all(query), span.limit + 1))
        stored = self._whole(iter(indexed[: span.limit]), span.limit)
        dead = [job for job in readable.each(items.decode, stored) if _is_dead(job)]  # the index lags behind a redrive
        return Page(dead, _position(indexed[span.limit - 1]) if len(indexed) > span.limit else None)

    def letters(self, owner: str, span: Span) -> tuple[list[DeadLetter], str | None]:
        query = span.query(keys.FAILED, owner, span.limit + 1)
        indexed = list(itertools.islice(self._table.all(query), span.limit + 1)) if query else []
        cursor = _position(indexed[span.limit - 1]) if len(indexed) > span.limit else None
        return list(readable.each(items.letter, indexed[: span.limit])), cursor

    def count_ahead(self, owner: str, since: int) -> int:
        return sum(self._table.pool.map(lambda pk: self._table.count(keys.open_in(pk, since)), keys.partitions(owner)))

    def _moved(self, owner: str, span: Span) -> Iterator[Item]:
        query = span.query(keys.MOVED_BETWEEN, owner, span.limit + 1)
        return self._table.all(query, self._table.query(query)) if query else iter(())

    def _whole(self, entries: Iterator[Item], at_once: int) -> Iterator[Item]:
        """The items of an index's entries, read (strongly consistent) when they are reached, `at_once` in one call."""
        while chunk := list(itertools.islice(entries, at_once)):
            wanted: list[keys.Value] = [keys.job(JobKey(keys.owner(entry["pk"]["S"]), entry["sk"]["S"])) for entry in chunk]
            stored = {address({"pk": item["pk"], "sk": item["sk"]}): item for item in self._table.get_many(wanted)}
            yield from (stored[address(key)] for key in wanted if address(key) in stored)


def _unmoved(items: Iterable[Item]) -> Iterator[Item]:
    return (item for item in items if "moved_owner" not in item)


def _merged(streams: Sequence[Iterator[Item]], span: Span) -> Iterator[Item]:
    return heapq.merge(*streams, key=_position, reverse=span.newest_first)


def _page(found: Iterator[Item], span: Span) -> Page:
    listed = list(itertools.islice(found, span.limit + 1))
    cursor = _position(listed[span.limit - 1]) if len(listed) > span.limit else None
    return Page(list(readable.each(items.decode, listed[: span.limit])), cursor)


def _position(item: Item) -> str:
    return str(item.get("position", item["sk"])["S"])


def _is_dead(job: Job) -> bool:
    return not lifecycle.is_open(job) and lifecycle.state(job) in lifecycle.DEAD
