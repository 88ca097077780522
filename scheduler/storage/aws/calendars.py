"""Calendars in the tasks table: those of an owner in one partition, and the tasks that use one in a partition of their own."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.calendar import Calendar
from scheduler.model.job import TaskKey
from scheduler.model.task import Task
from scheduler.storage.aws import keys, readable
from scheduler.storage.aws.table import Table
from scheduler.storage.aws.updates import as_put
from scheduler.tasks import calendar_form

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_NUMBERS = ("updated_at", "covers_until", "version")


class DynamoCalendars:
    """The port `Calendars`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def named(self, owner: str, names: Sequence[str]) -> dict[str, Calendar]:
        stored = self._table.get_many([keys.calendar(owner, name) for name in dict.fromkeys(names)])
        return {found.name: found for found in readable.each(_decode, stored)}

    def all(self, owner: str) -> list[Calendar]:
        query = keys.all_of(keys.calendars(owner)) | {"ConsistentRead": True}
        return list(readable.each(_decode, self._table.all(query)))

    def put(self, before: Calendar | None, after: Calendar) -> bool:
        condition = keys.IF_NEW if before is None else keys.if_version(before.version)
        if self._table.put(_encode(after), condition):
            return True
        return self.named(after.owner, [after.name]).get(after.name) == after  # an earlier answer was lost

    def delete(self, calendar: Calendar) -> bool:
        return self._table.delete(keys.calendar(calendar.owner, calendar.name), keys.if_version(calendar.version))

    def tasks(self, owner: str, name: str, *, after: str | None, limit: int) -> tuple[list[TaskKey], str | None]:
        query = keys.beyond(keys.calendar_tasks(owner, name), after or "0") | {"Limit": limit, "ConsistentRead": True}
        page = self._table.query(query)
        found = [TaskKey(owner, item["sk"]["S"]) for item in page["Items"]]
        return found, found[-1].id if "LastEvaluatedKey" in page and found else None


def actions(before: Task | None, after: Task, table: str) -> Iterator[dict[str, Any]]:
    """The actions of a transaction that stores a task: checks of the versions of its calendars, and the notes that it uses them."""
    former = {} if before is None else before.calendars
    for name, version in after.calendars.items():
        condition = keys.if_version(version) if name in former else keys.if_offered(version)
        yield {"ConditionCheck": {"TableName": table, "Key": keys.calendar(after.owner, name), **condition}}
    for name in after.calendars.keys() - former.keys():
        yield as_put(keys.calendar_task(after.key, name), {}, table)
    for name in former.keys() - after.calendars.keys():
        yield {"Delete": {"TableName": table, "Key": keys.calendar_task(after.key, name)}}


def _encode(calendar: Calendar) -> dict[str, Any]:
    item: dict[str, Any] = {**keys.calendar(calendar.owner, calendar.name), "v": {"N": keys.FORMAT}}
    item |= {"days": {"S": calendar_form.packed(calendar.days)}}
    item |= {name: {"N": str(value)} for name in _NUMBERS if (value := getattr(calendar, name)) is not None}
    item |= {"source": {"S": calendar.source}} if calendar.source is not None else {}
    return item | ({"withdrawn": {"BOOL": True}} if calendar.withdrawn else {})


def _decode(item: Mapping[str, Any]) -> Calendar:
    keys.check_format(item)
    numbers: dict[str, Any] = {name: int(item[name]["N"]) for name in _NUMBERS if name in item}
    return Calendar(
        owner=keys.calendar_owner(item),
        name=item["sk"]["S"],
        days=calendar_form.unpacked(item["days"]["S"]),
        source=item["source"]["S"] if "source" in item else None,
        withdrawn="withdrawn" in item,
        **numbers,
    )
