"""Monitors in the ledger table, which has no index and no stream: a ping is one write of one item.

The list of an owner has an entry with the hash of each token. A partition by that hash has the settings of a monitor, and its pulse.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.monitor import (
    EventKind,
    Monitor,
    MonitorEvent,
    MonitorState,
    MonitorTimer,
    NoticeKind,
    PendingNotice,
    PingIntake,
    PingKind,
    Pulse,
    RecentPing,
)
from scheduler.notify import messages
from scheduler.storage.aws import keys, readable
from scheduler.storage.aws.table import Table
from scheduler.storage.aws.updates import as_put
from scheduler.tasks import schedule_form

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

HISTORY_S = 90 * 86_400  # how long an entry of a history is kept
_TEXTS = ("owner", "key", "id", "name", "token_hash")
_NUMBERS = ("salt", "grace_ms", "max_duration_ms", "created_at", "updated_at", "period_ms")
_PULSE_NUMBERS = ("since", "basis", "pinged_at", "started_at", "pings", "notices", "version")
_INTAKE = ("seen_at", "away_since", "back_at")
_LETTERS = {PingKind.START: "s", PingKind.SUCCESS: "o", PingKind.FAIL: "f"}
_KINDS = {letter: kind for kind, letter in _LETTERS.items()}
_FORMAT = {"v": {"N": keys.FORMAT}}

Item = Mapping[str, Any]


class DynamoMonitors:
    """The port `Monitors`."""

    def __init__(self, client: "DynamoDBClient", ledger: str) -> None:
        self._table = Table(client, ledger)

    def get(self, owner: str, key: str) -> Monitor | None:
        entry = self._table.get(keys.monitor_entry(owner, key))
        return None if entry is None else self.of_tokens([entry["hash"]["S"]]).get(entry["hash"]["S"])

    def of_tokens(self, hashes: Sequence[str]) -> dict[str, Monitor]:
        found = self._table.get_many([key for each in dict.fromkeys(hashes) for key in (keys.monitor(each), keys.pulse(each))])
        items = {(item["pk"]["S"], item["sk"]["S"]): item for item in found}
        pairs = []
        for partition, kind in items:
            if kind == "monitor" and (partition, "pulse") in items:
                pairs.append({**items[partition, "monitor"], "pulse": {"M": items[partition, "pulse"]}})
        return {each.token_hash: each for each in readable.each(_decode, pairs)}

    def listing(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Monitor], str | None]:
        query = keys.all_of(keys.monitors(owner)) if after is None else keys.beyond(keys.monitors(owner), after)
        entries = list(itertools.islice(self._table.all(query | {"Limit": limit + 1, "ConsistentRead": True}), limit + 1))
        page = entries[:limit]
        monitors = self.of_tokens([entry["hash"]["S"] for entry in page]) if page else {}
        found = [monitors[entry["hash"]["S"]] for entry in page if entry["hash"]["S"] in monitors]
        return found, page[-1]["sk"]["S"] if len(entries) > limit else None

    def put(self, before: Monitor | None, after: Monitor) -> bool:
        entry = keys.monitor_entry(after.owner, after.key) | {"hash": {"S": after.token_hash}}
        version = 1 if before is None else before.pulse.version + 1
        settings, pulse = _encode(after), _encode_pulse(after.token_hash, after.pulse, version)
        if before is not None and before.token_hash == after.token_hash:
            unchanged = keys.if_version(before.pulse.version)
            return self._table.transact([as_put(settings, {}, self._table.name), as_put(pulse, unchanged, self._table.name)])
        puts = [
            as_put(entry, keys.IF_NEW if before is None else {}, self._table.name),
            as_put(settings, keys.IF_NEW, self._table.name),
            as_put(pulse, keys.IF_NEW, self._table.name),
        ]
        if before is None:
            return self._table.transact(puts)
        gone = [
            {"Delete": {"TableName": self._table.name, "Key": keys.monitor(before.token_hash)}},
            {"Delete": {"TableName": self._table.name, "Key": keys.pulse(before.token_hash), **keys.if_version(before.pulse.version)}},
        ]
        return self._table.transact([*puts, *gone])

    def delete(self, monitor: Monitor) -> None:
        for key in (keys.pulse(monitor.token_hash), keys.monitor_entry(monitor.owner, monitor.key), keys.monitor(monitor.token_hash)):
            self._table.delete(key)

    def write_pulse(self, before: Monitor, after: Monitor) -> bool:
        item = _encode_pulse(before.token_hash, after.pulse, before.pulse.version + 1)
        return self._table.put(item, keys.if_version(before.pulse.version))

    def note(self, monitor: Monitor, events: Sequence[MonitorEvent]) -> None:
        for event in events:
            self._table.put(_encode_event(monitor, event), {})

    def history(self, monitor: Monitor, limit: int) -> list[MonitorEvent]:
        query = keys.all_of(keys.monitor_history(monitor.owner, monitor.id))
        found = self._table.all(query | {"Limit": limit, "ScanIndexForward": False, "ConsistentRead": True})
        return list(readable.each(_decode_event, itertools.islice(found, limit)))

    def arm(self, timer: MonitorTimer) -> None:
        self._table.put(keys.monitor_timer(timer.at, timer.token_hash) | {"armed_at": {"N": str(timer.armed_at)}}, {})

    def drop(self, timer: MonitorTimer) -> None:
        self._table.delete(keys.monitor_timer(timer.at, timer.token_hash))

    def timers(self, part: int, after: tuple[int, str], until: int, limit: int) -> list[MonitorTimer]:
        page = self._table.query(keys.monitor_timers(part, *after, until) | {"Limit": limit, "ConsistentRead": True})
        return list(readable.each(_timer, page["Items"]))

    def intake(self) -> PingIntake | None:
        item = self._table.get(keys.PING_INTAKE)
        return None if item is None else PingIntake(**_numbers(item, _INTAKE))

    def set_intake(self, intake: PingIntake) -> None:
        self._table.put(keys.PING_INTAKE | _written(intake, _INTAKE), {})


def _encode(monitor: Monitor) -> dict[str, Any]:
    """The settings. An item without a schedule has a period."""
    item: dict[str, Any] = {name: {"S": getattr(monitor, name)} for name in _TEXTS} | _written(monitor, _NUMBERS)
    if monitor.schedule is not None:
        item["schedule"] = {"S": json.dumps(schedule_form.write(monitor.schedule))}
    if monitor.notifications is not None:
        item["notifications"] = {"S": messages.encode_notifications(monitor.notifications)}
    return {**keys.monitor(monitor.token_hash), **_FORMAT, **item}


def _encode_pulse(token_hash: str, pulse: Pulse, version: int) -> dict[str, Any]:
    item: dict[str, Any] = _written(pulse, _PULSE_NUMBERS) | {"version": {"N": str(version)}, "state": {"S": pulse.state.value}}
    item |= {"run": {"S": pulse.run}} if pulse.run is not None else {}
    item |= {"flips": {"S": " ".join(map(str, pulse.flips))}} if pulse.flips else {}
    item |= {"flapping": {"BOOL": True}} if pulse.flapping else {}
    item |= {"pending": {"S": json.dumps(pulse.pending, ensure_ascii=False)}} if pulse.pending else {}
    item |= {"recent": {"S": _encode_recent(pulse.recent)}} if pulse.recent else {}
    return {**keys.pulse(token_hash), **_FORMAT, **item}


def _encode_recent(recent: Sequence[RecentPing]) -> str:
    """The first instant, then the distances of the others: ten bytes a ping, and its duration."""
    words, last = [], 0
    for each in recent:
        duration = "" if each.duration_ms is None else str(each.duration_ms)
        words.append(f"{each.at - last}{_LETTERS[each.kind]}{duration}")
        last = each.at
    return " ".join(words)


def _decode_recent(text: str) -> tuple[RecentPing, ...]:
    recent, last = [], 0
    for word in text.split():
        place = next(place for place, letter in enumerate(word) if letter in _KINDS)
        last += int(word[:place])
        recent.append(RecentPing(_KINDS[word[place]], last, int(word[place + 1 :]) if word[place + 1 :] else None))
    return tuple(recent)


def _decode(item: Item) -> Monitor:
    keys.check_format(item)
    texts: dict[str, Any] = {name: item[name]["S"] for name in _TEXTS}
    schedule = schedule_form.restore(json.loads(item["schedule"]["S"])) if "schedule" in item else None
    notifications = messages.decode_notifications(item["notifications"]["S"]) if "notifications" in item else None
    pulse = _decode_pulse(item["pulse"]["M"])
    return Monitor(**texts, **_numbers(item, _NUMBERS), pulse=pulse, schedule=schedule, notifications=notifications)


def _decode_pulse(item: Item) -> Pulse:
    keys.check_format(item)
    pending = json.loads(item["pending"]["S"]) if "pending" in item else ()
    return Pulse(
        MonitorState(item["state"]["S"]),
        run=item["run"]["S"] if "run" in item else None,
        flips=tuple(map(int, item["flips"]["S"].split())) if "flips" in item else (),
        flapping="flapping" in item,
        pending=tuple(PendingNotice(number, NoticeKind(kind), at, cause) for number, kind, at, cause in pending),
        recent=_decode_recent(item["recent"]["S"]) if "recent" in item else (),
        **_numbers(item, _PULSE_NUMBERS),
    )


def _encode_event(monitor: Monitor, event: MonitorEvent) -> dict[str, Any]:
    item: dict[str, Any] = {"kind": {"S": event.kind.value}, "expires": {"N": str(event.at // 1_000 + HISTORY_S)}}
    item |= _written(event, ("at", "number", "exit_code", "duration_ms"))
    item |= {"body": {"S": event.body}} if event.body else {}
    return keys.monitor_event(monitor.owner, monitor.id, event.at, event.number) | _FORMAT | item


def _decode_event(item: Item) -> MonitorEvent:
    keys.check_format(item)
    body = item["body"]["S"] if "body" in item else ""
    return MonitorEvent(kind=EventKind(item["kind"]["S"]), body=body, **_numbers(item, ("at", "number", "exit_code", "duration_ms")))


def _timer(item: Item) -> MonitorTimer:
    at, _, token_hash = item["sk"]["S"].partition("#")
    return MonitorTimer(int(at), token_hash, int(item["armed_at"]["N"]))


def _written(record: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: {"N": str(value)} for name in names if (value := getattr(record, name)) is not None}


def _numbers(item: Item, names: Sequence[str]) -> dict[str, Any]:
    return {name: int(item[name]["N"]) for name in names if name in item}
