"""The archive: Firehose collects lines and writes them to S3, compressed and grouped by day."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.model.errors import Unavailable
from scheduler.storage.aws import errors

MOST_RECORDS, MOST_BYTES = 500, 4_000_000  # of one call
LARGEST = 1_000_000  # bytes of one record


class FirehoseArchive:
    """The archive of the port `Outputs`."""

    def __init__(self, client: Any, stream: str) -> None:
        self._client = client
        self._stream = stream

    def put(self, records: Sequence[Mapping[str, Any]]) -> None:
        for call in _calls([_line(record) for record in records]):
            with errors.translated():
                answer = self._client.put_record_batch(DeliveryStreamName=self._stream, Records=[{"Data": line} for line in call])
            if answer.get("FailedPutCount"):
                raise Unavailable()


def _line(record: Mapping[str, Any]) -> bytes:
    """The line of a record. A job that a long output makes larger than `LARGEST` is archived without its details."""
    line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
    return line if len(line) <= LARGEST else json.dumps({**record, "details": None}, ensure_ascii=False).encode() + b"\n"


def _calls(lines: list[bytes]) -> list[list[bytes]]:
    calls: list[list[bytes]] = []
    size = 0
    for line in lines:
        if not calls or len(calls[-1]) == MOST_RECORDS or size + len(line) > MOST_BYTES:
            calls.append([])
            size = 0
        calls[-1].append(line)
        size += len(line)
    return calls
