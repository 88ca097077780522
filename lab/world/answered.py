"""Answers AWS calls in process. Everything above the socket is real (our code, boto3's marshalling and signing), and no call waits.

The bodies of answers are prepared, so that answering adds almost nothing to the measured time.
"""

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

SLOT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d#\d\d")
READ_TABLE = re.compile(rb'"RequestItems": \{"([^"]+)"')  # the table of a BatchGetItem, as botocore writes it ...
READ_KEY = re.compile(rb'"pk": \{"S": "([^"]*)"\}, "sk": \{"S": "([^"]*)"\}')  # ... and its keys
_XML = b'<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult><Successful>%s</Successful><Failed/>'
_XML_END = b"</PublishBatchResult><ResponseMetadata><RequestId>00000000-0000-4000-8000-000000000001</RequestId></ResponseMetadata>"
_MEMBER = b"<member><Id>%d</Id><MessageId>00000000-0000-4000-8000-%012d</MessageId></member>"

PUBLISHED = [
    _XML % b"".join(_MEMBER % (number, number) for number in range(size)) + _XML_END + b"</PublishBatchResponse>" for size in range(11)
]
EXTENDED = [b'{"Successful":[%s],"Failed":[]}' % b",".join(b'{"Id":"%d"}' % number for number in range(size)) for size in range(11)]
SENT = [
    b'{"Successful":[%s],"Failed":[]}'
    % b",".join(b'{"Id":"%d","MessageId":"%d","MD5OfMessageBody":""}' % (number, number) for number in range(size))
    for size in range(11)
]
TALLY = b'{"Attributes":{"count":{"N":"1"},"total":{"N":"1"},"since":{"N":"1795000000000"}}}'
EMPTY = {
    "BatchGetItem": b'{"Responses":{},"UnprocessedKeys":{}}',  # for the API: the user has no profile ...
    "UpdateItem": TALLY,  # ... and has posted few jobs
    "GetQueueAttributes": b'{"Attributes":{"ApproximateNumberOfMessages":"0"}}',
}


@dataclass(slots=True)
class Answered:
    """Answers and counts every call of the clients created after `listen`."""

    calls: Counter[str] = field(default_factory=Counter)
    slots: dict[bytes, bytes] = field(default_factory=dict)  # answer of the due index by slot
    items: deque[bytes] = field(default_factory=deque)  # answers of GetItem, in order; then empty ones
    claims: deque[bytes] = field(default_factory=deque)  # answers of batched claims, in order
    stored: dict[bytes, dict[tuple[bytes, bytes], bytes]] = field(default_factory=dict)  # items by table and key, each for one BatchGetItem

    def listen(self, events: Any) -> None:
        events.register("before-send", self._answer)

    def _answer(self, request: AWSPreparedRequest, event_name: str, **_: Any) -> AWSResponse:
        operation = event_name.rpartition(".")[2]
        self.calls[operation] += 1
        content: Any = request.body or b""
        body = self._body(operation, content.encode() if isinstance(content, str) else content)
        headers = {"content-type": "text/xml" if operation == "PublishBatch" else "application/x-amz-json-1.0"}
        return AWSResponse(request.url, 200, headers, _Raw(body))  # type: ignore[arg-type]

    def _body(self, operation: str, content: bytes) -> bytes:
        if operation == "PublishBatch":
            return PUBLISHED[content.count(b"MessageGroupId=")]
        if operation == "ChangeMessageVisibilityBatch":
            return EXTENDED[content.count(b"ReceiptHandle")]
        if operation == "SendMessageBatch":
            return SENT[content.count(b"MessageBody")]
        if operation == "BatchExecuteStatement":
            return self.claims.popleft() if b"RETURNING" in content else _applied(content.count(b'"Statement"'))
        if operation == "Query" and b'"COUNT"' in content:
            return b'{"Count":0}'  # all released jobs have ended
        if operation == "Query":
            slot = SLOT.search(content)
            return self.slots.get(slot.group(), b'{"Items":[]}') if slot else b'{"Items":[]}'
        if operation == "BatchGetItem":
            return self._read(content)
        return self.items.popleft() if operation == "GetItem" and self.items else EMPTY.get(operation, b"{}")

    def store(self, table: str, items: Iterable[Mapping[str, Any]]) -> None:
        """Prepare items for one read by key each, in any order."""
        there = self.stored.setdefault(table.encode(), {})
        for item in items:
            there[item["pk"]["S"].encode(), item["sk"]["S"].encode()] = json.dumps(item).encode()

    def is_all_read(self) -> bool:
        """True if the services have read every prepared item."""
        return not any(self.stored.values())

    def _read(self, content: bytes) -> bytes:
        """Return the items of a BatchGetItem. A table without any prepared item is empty; any other must have every key."""
        match = READ_TABLE.search(content)
        table = match.group(1) if match else b""
        if table not in self.stored:
            return EMPTY["BatchGetItem"]
        there, keys = self.stored[table], READ_KEY.findall(content)
        if not keys or (missing := [key for key in keys if key not in there]):
            raise LookupError(f"a read of {table.decode()} without prepared items: {missing if keys else content!r}")
        return b'{"Responses":{"%s":[%s]},"UnprocessedKeys":{}}' % (table, b",".join([there.pop(key) for key in keys]))


def _applied(statements: int) -> bytes:
    return b'{"Responses":[%s]}' % b",".join([b"{}"] * statements)


class _Raw:
    """The part of urllib3's response that botocore reads."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._body
