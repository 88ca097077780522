"""The jobs table on DynamoDB."""

import itertools
import json
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from scheduler.model import item_limit
from scheduler.model.errors import Unavailable, Unreadable
from scheduler.model.job import Claim, DeadLetter, DueEntry, Job, JobKey, KeyEntry, Lane, OwnKey, Page, TaskKey, UnitKey
from scheduler.model.notifications import Notifications
from scheduler.model.spec import JobSpec
from scheduler.storage.aws import items, keys, readable, spec_items
from scheduler.storage.aws.keys import Term
from scheduler.storage.aws.lists import JobLists, Span
from scheduler.storage.aws.table import Answer, Statement, Table
from scheduler.storage.aws.updates import Update, as_call, as_delete, as_put, as_update
from scheduler.storage.ports import KEY_RETENTION_MS, Change, ClaimRequest, ClaimResult, EndNote, Found, KeyTaking, Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


class DynamoJobs:
    """The port `Jobs`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)
        self._lists = JobLists(self._table)

    def check(self, spec: JobSpec, notifications: Notifications | None = None) -> None:
        item = spec_items.encode(spec) | ({} if notifications is None else items.receivers(notifications))
        item_limit.check("the job", items.size(item) + item_limit.NEW_JOB)

    def put(self, job: Job) -> bool:
        return self._table.put(items.encode(job), keys.IF_NEW)

    def put_many(self, jobs: Sequence[Job]) -> list[Written]:
        return self._table.insert([items.encode(job) for job in jobs])

    def key_entries(self, own_keys: Sequence[OwnKey]) -> dict[OwnKey, KeyEntry]:
        by_partition = {keys.own_key(own)["pk"]["S"]: own for own in own_keys}
        if len(by_partition) == 1:
            item = self._table.get(keys.own_key(own_keys[0]))
            stored = [item] if item else []
        else:
            stored = list(self._table.get_many([keys.own_key(own) for own in by_partition.values()]))
        return {(own := by_partition[item["pk"]["S"]]): items.key_entry(own, item) for item in stored}

    def take_keys(self, takings: Sequence[KeyTaking]) -> list[Written]:
        return list(self._table.pool.map(self._take, takings) if len(takings) > 1 else map(self._take, takings))

    def prolong_key(self, job: Job) -> Written:
        if job.own_key is None:
            return Written.NO
        update = Update(keys.own_key(job.own_key), {"expires": _expires(job)}, (), [keys.names(job.id)])
        (answer,) = self._table.update([update])
        return answer.done

    def _take(self, taking: KeyTaking) -> Written:
        own, job, dead = taking.job.own_key, taking.job, taking.dead
        assert own is not None
        entry = keys.own_key(own) | {"id": {"S": job.id}, "expires": _expires(job)}
        if job.redrives:
            entry["life"] = {"N": str(job.redrives)}
        if dead is None:
            stored = as_put(items.encode(job), keys.IF_NEW, self._table.name)
        else:
            stored = as_update(_changing(Change(dead, job)), self._table.name)
        try:
            if self._table.transact([as_put(entry, keys.if_entry(taking.before), self._table.name), stored]):
                return Written.YES
            return Written.of(self._has_taken(taking))  # an earlier answer may have been lost
        except Unavailable:
            return Written.REFUSED

    def _has_taken(self, taking: KeyTaking) -> bool:
        own, job, dead = taking.job.own_key, taking.job, taking.dead
        assert own is not None
        if dead is not None:
            stored = self.get(job.key)
            return stored is not None and Change(dead, job).made(stored)
        entry = self.key_entries([own]).get(own)
        return entry is not None and entry.job == job.id

    def get(self, key: JobKey) -> Job | None:
        item = self._table.get(keys.job(key))
        return readable.read(items.decode, item) if item else None

    def get_many(self, job_keys: Sequence[JobKey]) -> Found[JobKey, Job]:
        return readable.found(items.decode, keys.job_key, self._table.get_many([keys.job(key) for key in dict.fromkeys(job_keys)]))

    def glance(self, jobs: Sequence[Job]) -> Found[JobKey, Job]:
        known = {job.key: job for job in jobs}
        stored = self._table.get_many([keys.job(key) for key in known], items.GLANCE, consistent=False)
        return readable.found(lambda item: items.glance(item, known[keys.job_key(item)]), keys.job_key, stored)

    def outlines(self, job_keys: Sequence[JobKey]) -> Found[JobKey, Job]:
        stored = self._table.get_many([keys.job(key) for key in dict.fromkeys(job_keys)], items.OUTLINE)
        return readable.found(items.outline, keys.job_key, stored)

    def set_aside(self, moves: Sequence[tuple[JobKey, str, str]]) -> list[Written]:
        slots_then = [{"S": slot} for _, _, slot in moves]
        updates = [
            Update(keys.job(key), {"slot": then}, (), [Term(("slot",), "=", {"S": now})])
            for (key, now, _), then in zip(moves, slots_then, strict=True)
        ]
        answers = self._table.update(updates)
        return [
            Written.of((answer.item or {}).get("slot") == then) if answer.done is Written.NO else answer.done  # an earlier answer was lost
            for answer, then in zip(answers, slots_then, strict=True)
        ]

    def claim(self, requests: Sequence[ClaimRequest]) -> list[ClaimResult | None]:
        answers = self._table.update([_claiming(request) for request in requests])
        done = [(request.key, answer.item) for request, answer in zip(requests, answers, strict=True) if answer.done is Written.YES]
        missing = [key for key, item in done if item is None]
        stored = self.get_many(missing)  # AWS does not guarantee that a batched statement returns the new item
        results = [_claimed(request, answer, stored) for request, answer in zip(requests, answers, strict=True)]
        unread = [
            _unclaiming(request)
            for request, answer, result in zip(requests, answers, results, strict=True)
            if answer.done is Written.YES and result is None and (answer.item or request.key in stored.unreadable)
        ]
        self._table.update(unread)
        return results

    def change(self, changes: Sequence[Change]) -> list[Written]:
        answers = self._table.update([_changing(change) for change in changes])
        return [_changed(change, answer) for change, answer in zip(changes, answers, strict=True)]

    def follow(self, followed: Sequence[tuple[JobKey, int]]) -> list[Written]:
        updates = [Update(keys.job(key), {"followed": {"N": str(until)}}, (), keys.still_open()) for key, until in followed]
        return [answer.done for answer in self._table.update(updates)]

    def note_ends(self, notes: Sequence[EndNote]) -> list[tuple[Written, Job | None]]:
        return list(self._table.pool.map(self._note, notes) if len(notes) > 1 else map(self._note, notes))

    def _note(self, note: EndNote) -> tuple[Written, Job | None]:
        sets: dict[tuple[str, ...], AttributeValueTypeDef] = {("ends", str(note.place)): items.end(note.end)}
        update = Update(keys.job(note.key), sets, (), keys.end_unknown(note.place), returning=True)
        answer = self._table.call(as_call(update, self._table.name))
        return answer.done, next(readable.each(items.decode, [answer.item] if answer.item else []), None)

    def withdraw(self, job_keys: Sequence[JobKey]) -> list[Written]:
        item_keys = {key: keys.job(key) for key in job_keys}
        statements = [Statement(key, as_delete(key, keys.withdrawable(), self._table.name)) for key in item_keys.values()]
        answers = dict(zip(item_keys, self._table.run_many(statements), strict=True))
        stored = self.get_many([key for key, answer in answers.items() if answer.done is Written.NO])
        return [Written.YES if answers[key].done is Written.NO and stored.is_absent(key) else answers[key].done for key in job_keys]

    def due(self, slot: str, *, since: int = 0, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        start = {"ExclusiveStartKey": json.loads(after)} if after else {}
        page = self._table.query(keys.in_slot(slot, since) | start)
        entries = readable.each(items.due_entry, (item for item in page["Items"] if not keys.is_canary(item["pk"]["S"])))
        return list(entries), json.dumps(page["LastEvaluatedKey"]) if "LastEvaluatedKey" in page else None

    def due_in(self, slots: Sequence[str], *, since: int = 0) -> list[tuple[list[DueEntry], str | None]]:
        return list(self._table.pool.map(lambda slot: self.due(slot, since=since), slots))

    def waiting(self, slots: Sequence[str], *, limit: int) -> list[DueEntry]:
        def first(slot: str) -> list[DueEntry]:
            page = self._table.query(keys.in_slot(slot, 0) | {"Limit": limit})
            return list(readable.each(items.due_entry, page["Items"]))

        return sorted(itertools.chain.from_iterable(self._table.pool.map(first, slots)), key=attrgetter("due_at", "key.id"))[:limit]

    def overdue(self, slots: Sequence[str], until: int, *, limit: int) -> list[tuple[list[DueEntry], bool]]:
        def first(slot: str) -> tuple[list[DueEntry], bool]:
            found = self._table.query(keys.overdue_in_slot(slot, until) | {"Limit": limit + 1})["Items"]
            return list(readable.each(items.due_entry, found[:limit])), len(found) > limit

        return list(self._table.pool.map(first, slots))

    def count(self, slots: Sequence[str], lane: Lane, *, since: int, until: int) -> int:
        queries = [keys.in_slot_of_lane(slot, lane, since, until) for slot in slots]
        return sum(self._table.pool.map(self._table.count, queries) if len(queries) > 1 else map(self._table.count, queries))

    def tally(self, slots: Sequence[str], most: int) -> list[int]:
        return list(self._table.pool.map(lambda slot: self._table.count(keys.in_slot(slot, 0), most), slots))

    def put_canary(self, unit: UnitKey, slot: str, at: int) -> None:
        item = keys.canary(unit) | {"slot": {"S": slot}, "due_at": {"N": "0"}, "created_at": {"N": str(at)}}
        self._table.put(item, {})

    def canary_visible(self, unit: UnitKey, slot: str) -> bool:
        page = self._table.query(keys.canaries_in_slot(slot))
        return any(item["pk"] == keys.canary(unit)["pk"] for item in page["Items"])

    def drop_canary(self, unit: UnitKey) -> None:
        self._table.delete(keys.canary(unit))

    def sweep(self, *, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        start = {"ExclusiveStartKey": json.loads(after)} if after else {}
        page = self._table.scan(keys.DUE_INDEX | start)
        entries = readable.each(items.due_entry, (item for item in page["Items"] if not keys.is_canary(item["pk"]["S"])))
        return list(entries), json.dumps(page["LastEvaluatedKey"]) if "LastEvaluatedKey" in page else None

    def mark(self) -> int:
        item = self._table.get(keys.MARK)
        return int(item["number"]["N"]) if item else 0

    def set_mark(self, number: int) -> None:
        self._table.put(keys.MARK | {"number": {"N": str(number)}}, keys.if_marked_before(number))

    def history(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool) -> Page:
        return self._lists.history(owner, Span(since, until, after, limit, newest_first))

    def of_task(self, task: TaskKey, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool) -> Page:
        return self._lists.of_task(task, Span(since, until, after, limit, newest_first))

    def failures(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int) -> Page:
        return self._lists.failures(owner, Span(since, until, after, limit))

    def count_ahead(self, owner: str, now: int) -> int:
        return self._lists.count_ahead(owner, now)

    def letters(
        self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool
    ) -> tuple[list[DeadLetter], str | None]:
        return self._lists.letters(owner, Span(since, until, after, limit, newest_first))


def _expires(job: Job) -> "AttributeValueTypeDef":
    """When the entry of the job's key expires, in epoch seconds."""
    return {"N": str((max(job.scheduled_at, job.created_at, job.redriven_at or 0) + KEY_RETENTION_MS) // 1000)}


def _claiming(request: ClaimRequest) -> Update:
    claim = Claim(request.message_id, request.nonce, request.at, request.alone, revocable=request.revocable)
    return Update(keys.job(request.key), {"claim": items.claim(claim)}, (), keys.claimable(request), returning=True)


def _unclaiming(request: ClaimRequest) -> Update:
    """Take back a claim on a job that cannot be read: the job must not look as if an executor had died with it."""
    return Update(keys.job(request.key), {}, ["claim"], [Term(("claim", "nonce"), "=", {"S": request.nonce})])


def _claimed(request: ClaimRequest, answer: Answer, stored: Mapping[JobKey, Job]) -> ClaimResult | None:
    if answer.done is Written.REFUSED:
        return None
    try:
        won, job = answer.done is Written.YES, readable.read(items.decode, answer.item) if answer.item else None
    except Unreadable:
        return None
    if won and job is None:
        job = stored.get(request.key)
        if job is None or job.claim is None or job.claim.nonce != request.nonce:
            return None  # the job changed between the two calls: its state after the claim is unknown
    return ClaimResult(won, job)


def _changing(change: Change) -> Update:
    sets, removes = items.differences(change.before, change.after)
    return Update(keys.job(change.before.key), sets or {"v": {"N": keys.FORMAT}}, removes, keys.unchanged(change))


def _changed(change: Change, answer: Answer) -> Written:
    if answer.done is Written.NO and answer.item:
        stored = list(readable.each(items.decode, [answer.item]))
        return Written.of(any(change.made(job) for job in stored))
    return answer.done
