"""The timers of watched runs in the ledger table. A timer is one small item, in no index."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.job import JobKey
from scheduler.model.run_timer import RunTimer
from scheduler.storage.aws import keys, readable
from scheduler.storage.aws.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoRunTimers:
    """The port `RunTimers`."""

    def __init__(self, client: "DynamoDBClient", ledger: str) -> None:
        self._table = Table(client, ledger)

    def arm(self, timers: Sequence[RunTimer]) -> None:
        if len(timers) == 1:
            self._put(timers[0])
        elif timers:
            list(self._table.pool.map(self._put, timers))

    def move(self, before: RunTimer, after: RunTimer) -> bool:
        return self._table.put(_encode(after), keys.if_armed_at(before.armed_at))

    def drop(self, timer: RunTimer) -> bool:
        return self._table.delete(keys.run_timer(timer.at, timer.run), keys.if_gone_or_armed_at(timer.armed_at))

    def timers(self, part: int, after: tuple[int, str], until: int, limit: int) -> list[RunTimer]:
        page = self._table.query(keys.run_timers(part, *after, until) | {"Limit": limit})
        return list(readable.each(_decode, page["Items"]))

    def _put(self, timer: RunTimer) -> None:
        self._table.put(_encode(timer), {})


def _encode(timer: RunTimer) -> dict[str, Any]:
    """The item. The instant at which it is due is stored if it has been moved, and until when it is judged if it has been."""
    item: dict[str, Any] = {"v": {"N": keys.FORMAT}, "armed_at": {"N": str(timer.armed_at)}}
    item |= {"next_at": {"N": str(timer.next_at)}} if timer.next_at != timer.at else {}
    item |= {"judged_until": {"N": str(timer.judged_until)}} if timer.judged_until else {}
    return keys.run_timer(timer.at, timer.run) | item


def _decode(item: Mapping[str, Any]) -> RunTimer:
    keys.check_format(item)
    at, owner, run = item["sk"]["S"].split("#")
    next_at = int(item["next_at"]["N"]) if "next_at" in item else int(at)
    judged_until = int(item["judged_until"]["N"]) if "judged_until" in item else 0
    return RunTimer(int(at), JobKey(owner, run), int(item["armed_at"]["N"]), next_at, judged_until)
