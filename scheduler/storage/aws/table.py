"""One DynamoDB table: consistent reads by key, queries, and conditional writes, alone or 25 a call."""

import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from botocore.exceptions import ClientError

from scheduler.model.errors import Unavailable
from scheduler.storage.aws import errors, keys
from scheduler.storage.aws.batches import chunks
from scheduler.storage.aws.updates import Update, address, as_call, as_insert, as_statement
from scheduler.storage.ports import Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

STATEMENTS = 25  # of one BatchExecuteStatement
KEYS = 100  # of one BatchGetItem
PAUSES_S = (0.05, 0.1, 0.2, 0.4)  # before keys are requested again that a BatchGetItem left unprocessed without reading any
CONFLICT_PAUSES_S = (0.01, 0.02, 0.05, 0.1, 0.2)  # before a write is repeated that met a transaction in progress
CONNECTIONS = 8  # parallel calls: more would wait for the processor
_INVALID = frozenset({"ValidationError", "ValidationException"})  # batches report the errors of a write without "Exception"
# The fault of one write, not of its whole batch.
_OWN_FAULT = _INVALID | {"ItemCollectionSizeLimitExceeded", "ItemCollectionSizeLimitExceededException"}
_DUPLICATE = "DuplicateItem"  # the item of an INSERT exists already

Item = Mapping[str, Any]

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """`item`: the new item or, if the condition was false, the stored one."""

    done: Written
    item: Item | None = None


REFUSED = Answer(Written.REFUSED)


class Statement(NamedTuple):
    """One statement of a batch, the key of the item that it writes, and the update that it stands for if it is an UPDATE."""

    key: keys.Value
    content: dict[str, Any]
    update: Update | None = None


T = TypeVar("T")
Write = TypeVar("Write", Update, Statement)


class Table:
    """A table by its name. Its threads start on first use."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client = client
        self.name = name
        self.pool = ThreadPoolExecutor(CONNECTIONS, name)
        self.pause: Callable[[float], None] = time.sleep

    def get(self, key: keys.Value) -> Item | None:
        with errors.translated():
            return self._client.get_item(TableName=self.name, Key=key, ConsistentRead=True).get("Item")

    def get_many(self, item_keys: Sequence[keys.Value], names: Sequence[str] = (), *, consistent: bool = True) -> Iterator[Item]:
        """The items that exist, in no order, with only the attributes `names` if any are given. No key may be given twice."""
        calls = chunks(item_keys, KEYS)
        if len(calls) == 1:
            yield from self._read(calls[0], names, consistent)
        elif calls:
            yield from itertools.chain.from_iterable(self.pool.map(lambda chunk: self._read(chunk, names, consistent), calls))

    def put(self, item: Item, condition: Mapping[str, Any]) -> bool:
        """Store the item. False if the condition (arguments of PutItem) is false."""
        return self._applied(lambda: self._client.put_item(TableName=self.name, Item=item, **condition))

    def delete(self, key: keys.Value, condition: Mapping[str, Any] | None = None) -> bool:
        return self._applied(lambda: self._client.delete_item(TableName=self.name, Key=key, **condition or {}))

    def transact(self, actions: Sequence[Mapping[str, Any]]) -> bool:
        """Apply all actions or, if a condition is false, none. Returns whether they were applied."""
        items: Any = actions
        return self._applied(lambda: self._client.transact_write_items(TransactItems=items))

    def query(self, query: Mapping[str, Any]) -> Any:
        """One page."""
        with errors.translated():
            return self._client.query(TableName=self.name, **query)

    def scan(self, scan: Mapping[str, Any]) -> Any:
        """One page."""
        with errors.translated():
            return self._client.scan(TableName=self.name, **scan)

    def all(self, query: Mapping[str, Any], page: Any = None) -> Iterator[Item]:
        """The items of a query, beginning with its first page if the caller has read it. Further pages are read when they are reached."""
        page = self.query(query) if page is None else page
        while True:
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            page = self.query({**query, "ExclusiveStartKey": page["LastEvaluatedKey"]})

    def count(self, query: Mapping[str, Any], most: float = inf, *, while_found: bool = False) -> int:
        """The number of items that a query finds, over all pages or until there are `most`; no item is transferred.

        With `while_found`, it ends after the first page in which the filter finds nothing.
        """
        total = 0
        start: dict[str, Any] = {}
        while True:
            page = self.query({**query, "Select": "COUNT", **start})
            total += int(page["Count"])
            if "LastEvaluatedKey" not in page or total >= most or (while_found and not page["Count"]):
                return total
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def insert(self, items: Sequence[Item]) -> list[Written]:
        """Store each new item on its own, in order; nothing is overwritten."""
        statements = [Statement({"pk": item["pk"], "sk": item["sk"]}, as_insert(item, self.name)) for item in items]
        return [answer.done for answer in self.run_many(statements)]

    def run_many(self, statements: Sequence[Statement]) -> list[Answer]:
        """Run statements in parallel batches. No two of them may write the same item."""
        calls, run = chunks(statements, STATEMENTS), _unless_refusing(self.run)
        return list(itertools.chain.from_iterable(self.pool.map(run, calls) if len(calls) > 1 else map(run, calls)))

    def run(self, statements: Sequence[Statement]) -> list[Answer]:
        """One BatchExecuteStatement: each statement on its own, in order."""
        contents: Any = [statement.content for statement in statements]
        try:
            with errors.translated():
                answers = self._client.batch_execute_statement(Statements=contents)["Responses"]
        except Unavailable:
            return [REFUSED] * len(statements)
        return self._with_items(statements, [self._read_answer(*pair) for pair in zip(statements, answers, strict=True)])

    def run_each(self, statements: Sequence[Statement]) -> list[Answer]:
        """Run any number of statements in order. Several may write the same item."""
        return [answer for call in _without_repeats(statements) for answer in self.run(call)]

    def update(self, updates: Sequence[Update]) -> list[Answer]:
        """Apply each update on its own: on parallel connections, unless several write the same item; those are applied in order.

        A single one is sent as UpdateItem, which costs less than a batch of one.
        """
        calls = _without_repeats(updates)
        if len(calls) == 1 or len({address(update.key) for update in updates}) < len(updates):
            return [answer for chunk in calls for answer in self._update(chunk)]
        return list(itertools.chain.from_iterable(self.pool.map(_unless_refusing(self._update), calls)))

    def _update(self, chunk: Sequence[Update]) -> list[Answer]:
        """Apply the updates of one call."""
        if len(chunk) == 1:
            return [self.call(as_call(chunk[0], self.name))]
        return self.run([self.statement(update) for update in chunk])

    def statement(self, update: Update) -> Statement:
        return Statement(update.key, as_statement(update, self.name), update)

    def call(self, arguments: Mapping[str, Any]) -> Answer:
        """One UpdateItem by its arguments, which must request the stored item for a false condition. A batch of one answers alike."""
        return self._answer(lambda: self._client.update_item(**arguments), arguments["Key"])

    def put_or_find(self, item: Item, condition: Mapping[str, Any]) -> Answer:
        """Store the item. If the condition (arguments of PutItem) is false, the answer has the stored one."""
        parameters: Any = {"Item": item, "ReturnValuesOnConditionCheckFailure": "ALL_OLD", **condition}
        return self._answer(lambda: self._client.put_item(TableName=self.name, **parameters), item)

    def _answer(self, write: Callable[[], Any], key: Mapping[str, Any]) -> Answer:
        """Write one item. `key`: the attributes of its key, and perhaps others."""
        try:
            with errors.translated():
                try:
                    return Answer(Written.YES, self._unhindered(write).get("Attributes"))
                except ClientError as error:
                    if errors.condition_failed(error):
                        old: Any = error.response
                        return Answer(Written.NO, old.get("Item"))
                    if errors.code(error) in _OWN_FAULT:
                        return _own_fault(key, error.response.get("Error", {}))
                    raise
        except Unavailable:
            return REFUSED

    def _read_answer(self, statement: Statement, answer: Any) -> Answer:
        """The answer to one statement. Raises an error that would fail the other statements as well (a missing grant, say).

        An UPDATE that DynamoDB calls invalid is sent again as UpdateItem, whose language AWS documents with more examples.
        """
        error = answer.get("Error")
        if error is None:
            return Answer(Written.YES, answer.get("Item"))
        code, message = error.get("Code", ""), error.get("Message", "")
        if code in errors.CONDITION_FAILED or code == _DUPLICATE:
            return Answer(Written.NO, error.get("Item"))
        if code in _INVALID and statement.update is not None:
            log.warning("DynamoDB refuses a statement, which is sent as UpdateItem: %s: %s", statement.content["Statement"], message)
            return self.call(as_call(statement.update, self.name))
        if code in _OWN_FAULT:
            return _own_fault(statement.key, error)
        refusal = errors.refusal(code, message)
        if isinstance(refusal, Unavailable):
            return REFUSED
        raise refusal

    def _with_items(self, statements: Sequence[Statement], answers: list[Answer]) -> list[Answer]:
        """Read the items of the updates whose conditions were false and whose answers carry no item.

        AWS documents the item (BatchStatementError), but DynamoDB was measured to leave it out, unlike UpdateItem:
        https://github.com/nubo-db/dynoxide/issues/184. Without it, an own write whose answer was lost looks like another's.
        """
        unseen = [
            statement.key
            for statement, answer in zip(statements, answers, strict=True)
            if answer.done is Written.NO and answer.item is None and statement.update is not None
        ]
        if not unseen:
            return answers
        try:
            stored = {address(item): item for item in self._read(unseen, (), True)}
        except Unavailable:
            read = dict.fromkeys(map(address, unseen), REFUSED)
        else:
            read = {address(key): Answer(Written.NO, stored.get(address(key))) for key in unseen}
        return [read.get(address(statement.key), answer) for statement, answer in zip(statements, answers, strict=True)]

    def _read(self, item_keys: Sequence[keys.Value], names: Sequence[str], consistent: bool) -> list[Item]:
        """One BatchGetItem. Unprocessed keys are requested again, after a pause if an answer has no items.

        Raises Unavailable after `PAUSES_S` in a row without an item.
        """
        request: dict[str, Any] = {"Keys": item_keys, "ConsistentRead": consistent}
        if names:
            aliases = {f"#{number}": name for number, name in enumerate(names)}  # some are reserved words
            request |= {"ProjectionExpression": ", ".join(aliases), "ExpressionAttributeNames": aliases}
        rest: Any = {self.name: request}
        found: list[Item] = []
        pauses = iter(PAUSES_S)
        while rest:
            with errors.translated():
                answer = self._client.batch_get_item(RequestItems=rest)
            page = answer["Responses"].get(self.name, [])
            found += page
            rest = answer.get("UnprocessedKeys")
            if page:
                pauses = iter(PAUSES_S)
            elif rest and (pause := next(pauses, None)) is not None:
                self.pause(pause)
            elif rest:
                raise Unavailable()
        return found

    def _applied(self, write: Callable[[], Any]) -> bool:
        """Write, and return False if the condition is false."""
        with errors.translated():
            try:
                self._unhindered(write)
            except ClientError as error:
                if errors.condition_failed(error):
                    return False
                raise
        return True

    def _unhindered(self, write: Callable[[], T]) -> T:
        """Write, and again after a pause while a transaction in progress has the item: it ends within milliseconds."""
        for pause in CONFLICT_PAUSES_S:
            try:
                return write()
            except ClientError as error:
                if not errors.is_conflict(error):
                    raise
            self.pause(pause)
        return write()


def _unless_refusing(run: Callable[[Sequence[Write]], list[Answer]]) -> Callable[[Sequence[Write]], list[Answer]]:
    """Return `run`, which refuses its calls once one of them was refused whole: each of the others would wait as long for its refusal."""
    refusing = Event()

    def guarded(call: Sequence[Write]) -> list[Answer]:
        if refusing.is_set():
            return [REFUSED] * len(call)
        answers = run(call)
        if all(answer.done is Written.REFUSED for answer in answers):
            refusing.set()
        return answers

    return guarded


def _own_fault(key: Mapping[str, Any], error: Any) -> Answer:
    log.error("DynamoDB refuses the write of %s: %s: %s", address(key), error.get("Code", ""), error.get("Message", ""))
    return REFUSED


def _without_repeats(writes: Sequence[Write]) -> list[list[Write]]:
    """The writes in order, in calls of at most `STATEMENTS`. No call names an item twice: DynamoDB refuses that."""
    calls: list[list[Write]] = []
    seen: set[tuple[str, str]] = set()
    for write in writes:
        if not calls or len(calls[-1]) == STATEMENTS or address(write.key) in seen:
            calls.append([])
            seen = set()
        calls[-1].append(write)
        seen.add(address(write.key))
    return calls
