"""The jobs table on DynamoDB."""

import heapq
import itertools
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.exceptions import ClientError

from scheduler import ids, lifecycle
from scheduler.aws import errors, items, keys
from scheduler.aws.batches import chunks
from scheduler.aws.updates import Update, as_call, as_insert, as_statement
from scheduler.errors import Unavailable
from scheduler.model import Claim, DueEntry, Job, JobKey, Page, UnitKey
from scheduler.ports import Change, ClaimRequest, ClaimResult

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

STATEMENTS = 25  # of one BatchExecuteStatement
KEYS = 100  # of one BatchGetItem
_OWN_FAULT = frozenset({"ValidationError", "ItemCollectionSizeLimitExceeded"})  # this statement's, not its batch mates'
_DUPLICATE = "DuplicateItem"  # the condition of an INSERT did not hold

log = logging.getLogger(__name__)


class _Answer(NamedTuple):
    """`done`: True applied, False its condition did not hold, None refused for now. `item`: the new one, or the one in the way."""

    done: bool | None
    item: Mapping[str, Any] | None = None


_REFUSED = _Answer(None)


class DynamoJobs:
    """The port `Jobs`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table
        self._pool = ThreadPoolExecutor(ids.PARTITIONS, "jobs")  # starts no thread before it is used

    def put(self, job: Job) -> bool:
        with errors.translated():
            try:
                self._client.put_item(TableName=self._table, Item=items.encode(job), ConditionExpression=keys.NEW)
            except ClientError as error:
                if errors.condition_failed(error):
                    return False
                raise
        return True

    def put_many(self, jobs: Sequence[Job]) -> list[bool | None]:
        refusing = Event()  # one call was refused whole: the others would each take as long to find out, and the caller waits

        def insert(chunk: Sequence[Job]) -> list[bool | None]:
            if refusing.is_set():
                return [None] * len(chunk)
            statements = [as_insert(items.encode(job), self._table) for job in chunk]
            inserted = [answer.done for answer in self._run(statements, [job.key for job in chunk])]
            if all(done is None for done in inserted):
                refusing.set()
            return inserted

        calls = chunks(jobs, STATEMENTS)
        return list(itertools.chain.from_iterable(self._pool.map(insert, calls) if len(calls) > 1 else map(insert, calls)))

    def get(self, key: JobKey) -> Job | None:
        with errors.translated():
            answer = self._client.get_item(TableName=self._table, Key=keys.job(key), ConsistentRead=True)
        return items.decode(answer["Item"]) if "Item" in answer else None

    def get_many(self, wanted: Sequence[JobKey]) -> dict[JobKey, Job]:
        found: dict[JobKey, Job] = {}
        for chunk in chunks(list(dict.fromkeys(wanted)), KEYS):
            for item in self._read(chunk):
                job = items.decode(item)
                found[job.key] = job
        return found

    def claim(self, requests: Sequence[ClaimRequest]) -> list[ClaimResult | None]:
        answers = self._update([_claiming(request) for request in requests])
        missing = [request.key for request, answer in zip(requests, answers, strict=True) if answer.done and answer.item is None]
        stored = self.get_many(missing)  # AWS does not promise the new item of a batched statement
        return [_claimed(request, answer, stored) for request, answer in zip(requests, answers, strict=True)]

    def change(self, changes: Sequence[Change]) -> list[bool | None]:
        answers = self._update([_changing(change) for change in changes])
        return [_changed(change, answer) for change, answer in zip(changes, answers, strict=True)]

    def due(self, slot: str, *, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        start = {"ExclusiveStartKey": json.loads(after)} if after else {}
        query = {"KeyConditionExpression": keys.IN_SLOT, "ExpressionAttributeNames": {"#slot": "slot"}} | start
        page = self._query({"IndexName": keys.DUE, "ExpressionAttributeValues": {":slot": {"S": slot}}} | query)
        entries = [items.due_entry(item) for item in page["Items"] if not keys.is_canary(item["pk"]["S"])]
        return entries, json.dumps(page["LastEvaluatedKey"]) if "LastEvaluatedKey" in page else None

    def put_canary(self, unit: UnitKey, slot: str, at: int) -> None:
        item = keys.canary(unit) | {"slot": {"S": slot}, "due_at": {"N": "0"}, "created_at": {"N": str(at)}}
        with errors.translated():
            self._client.put_item(TableName=self._table, Item=item)

    def canary_visible(self, unit: UnitKey, slot: str) -> bool:
        query = {"KeyConditionExpression": keys.CANARY_IN_SLOT, "ExpressionAttributeNames": {"#slot": "slot"}}
        values = {":slot": {"S": slot}, ":zero": {"N": "0"}}
        page = self._query({"IndexName": keys.DUE, "ExpressionAttributeValues": values} | query)
        return any(item["pk"] == keys.canary(unit)["pk"] for item in page["Items"])

    def drop_canary(self, unit: UnitKey) -> None:
        with errors.translated():
            self._client.delete_item(TableName=self._table, Key=keys.canary(unit))

    def oldest_slot(self) -> str | None:
        scan: dict[str, Any] = {"TableName": self._table, "IndexName": keys.DUE}
        scan |= {"ProjectionExpression": "pk, #slot", "ExpressionAttributeNames": {"#slot": "slot"}}
        slots: list[str] = []
        while True:
            with errors.translated():
                page = self._client.scan(**scan)
            slots += [item["slot"]["S"] for item in page["Items"] if not keys.is_canary(item["pk"]["S"])]
            slots = [min(slots)] if slots else []
            if "LastEvaluatedKey" not in page:
                return slots[0] if slots else None
            scan["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def history(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool) -> Page:
        low, high = keys.id_bounds(since, until, after, newest_first)
        if low > high:
            return Page()
        share = 2 * limit // ids.PARTITIONS + 1  # about twice what one partition will give of a page
        queries = [_range_query(keys.IN_PARTITION, pk, low, high, share, newest_first) for pk in keys.partitions(owner)]
        first_pages = self._pool.map(self._query, queries)  # at once: a page takes the time of one query
        streams = [self._all(query, page) for query, page in zip(queries, first_pages, strict=True)]
        merged = heapq.merge(*streams, key=_id, reverse=newest_first)
        return _page([items.decode(item) for item in itertools.islice(merged, limit + 1)], limit)

    def failures(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int) -> Page:
        low, high = keys.id_bounds(since, until, after, True)
        if low > high:
            return Page()
        query = {"IndexName": keys.FAILURES} | _range_query(keys.FAILED, owner, low, high, limit + 1, True)
        indexed = [JobKey(owner, _id(item)) for item in itertools.islice(self._all(query, self._query(query)), limit + 1)]
        stored = self.get_many(indexed[:limit])
        dead = [stored[key] for key in indexed[:limit] if key in stored and _is_dead(stored[key])]  # the index lags behind a redrive
        return Page(dead, indexed[limit - 1].id if len(indexed) > limit else None)

    def _read(self, wanted: Sequence[JobKey]) -> list[Mapping[str, Any]]:
        """One consistent BatchGetItem; what DynamoDB leaves over is asked for again while that brings anything."""
        rest: Any = {self._table: {"Keys": [keys.job(key) for key in wanted], "ConsistentRead": True}} if wanted else {}
        found: list[Mapping[str, Any]] = []
        while rest:
            with errors.translated():
                answer = self._client.batch_get_item(RequestItems=rest)
            page = answer["Responses"].get(self._table, [])
            found += page
            rest = answer.get("UnprocessedKeys")
            if rest and not page:
                raise Unavailable()
        return found

    def _query(self, query: Mapping[str, Any]) -> Any:
        with errors.translated():
            return self._client.query(TableName=self._table, **query)

    def _all(self, query: Mapping[str, Any], page: Any) -> Iterator[Mapping[str, Any]]:
        """The items of a query from its first page on; further pages are read when they are reached."""
        while True:
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            page = self._query({**query, "ExclusiveStartKey": page["LastEvaluatedKey"]})

    def _update(self, updates: Sequence[Update]) -> list[_Answer]:
        """Each update on its own, in order. One alone goes as UpdateItem, which costs less than a batch of one."""
        answers: list[_Answer] = []
        for chunk in _without_repeats(updates):
            answers += self._update_many(chunk) if len(chunk) > 1 else [self._update_one(chunk[0])]
        return answers

    def _update_one(self, update: Update) -> _Answer:
        try:
            with errors.translated():
                try:
                    return _Answer(True, self._client.update_item(**as_call(update, self._table)).get("Attributes"))
                except ClientError as error:
                    if errors.condition_failed(error):
                        old: Any = error.response
                        return _Answer(False, old.get("Item"))
                    raise
        except Unavailable:
            return _REFUSED

    def _update_many(self, updates: Sequence[Update]) -> list[_Answer]:
        return self._run([as_statement(update, self._table) for update in updates], [update.address for update in updates])

    def _run(self, statements: Any, addresses: Sequence[tuple[str, str]]) -> list[_Answer]:
        """One BatchExecuteStatement; `addresses` name the items for the log."""
        try:
            with errors.translated():
                answers = self._client.batch_execute_statement(Statements=statements)["Responses"]
        except Unavailable:
            return [_REFUSED] * len(addresses)
        return [_read_answer(answer, address) for answer, address in zip(answers, addresses, strict=True)]


def _claiming(request: ClaimRequest) -> Update:
    claim = Claim(request.message_id, request.nonce, request.at, request.alone)
    return Update(keys.job(request.key), {"claim": items.claim(claim)}, (), keys.claimable(request), returning=True)


def _claimed(request: ClaimRequest, answer: _Answer, stored: Mapping[JobKey, Job]) -> ClaimResult | None:
    if answer.done is None:
        return None
    job = items.decode(answer.item) if answer.item else None
    if answer.done and job is None:
        job = stored.get(request.key)
        if job is None or job.claim is None or job.claim.nonce != request.nonce:
            return None  # it moved on between the two calls; nobody can say how
    return ClaimResult(answer.done, job)


def _changing(change: Change) -> Update:
    sets, removes = items.differences(change.before, change.after)
    return Update(keys.job(change.before.key), sets or {"v": {"N": keys.FORMAT}}, removes, keys.unchanged(change))


def _changed(change: Change, answer: _Answer) -> bool | None:
    if answer.done is False and answer.item:
        return lifecycle.marks(items.decode(answer.item)) == lifecycle.marks(change.after)  # an earlier answer was lost
    return answer.done


def _read_answer(answer: Any, address: tuple[str, str]) -> _Answer:
    """The answer to one statement. Raises what would fail the other statements as well (a missing grant, say)."""
    error = answer.get("Error")
    if error is None:
        return _Answer(True, answer.get("Item"))
    code, message = error.get("Code", ""), error.get("Message", "")
    if code in errors.CONDITION_FAILED or code == _DUPLICATE:
        return _Answer(False, error.get("Item"))
    if code in _OWN_FAULT:
        log.error("DynamoDB refuses the write of %s: %s: %s", address, code, message)
        return _REFUSED
    refusal = errors.refusal(code, message)
    if isinstance(refusal, Unavailable):
        return _REFUSED
    raise refusal


def _without_repeats(updates: Sequence[Update]) -> list[list[Update]]:
    """In order, in calls of at most `STATEMENTS`, none of which names an item twice: DynamoDB refuses that."""
    chunks: list[list[Update]] = []
    seen: set[tuple[str, str]] = set()
    for update in updates:
        if not chunks or len(chunks[-1]) == STATEMENTS or update.address in seen:
            chunks.append([])
            seen = set()
        chunks[-1].append(update)
        seen.add(update.address)
    return chunks


def _range_query(condition: str, pk: str, low: str, high: str, limit: int, newest_first: bool) -> dict[str, Any]:
    values = {":pk": {"S": pk}, ":low": {"S": low}, ":high": {"S": high}}
    return {"KeyConditionExpression": condition, "ExpressionAttributeValues": values, "Limit": limit, "ScanIndexForward": not newest_first}


def _page(jobs: list[Job], limit: int) -> Page:
    return Page(jobs[:limit], jobs[limit - 1].id if len(jobs) > limit else None)


def _id(item: Mapping[str, Any]) -> str:
    return str(item["sk"]["S"])


def _is_dead(job: Job) -> bool:
    return not lifecycle.is_open(job) and lifecycle.state(job) in lifecycle.DEAD
