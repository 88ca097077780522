"""The messages of the notices queue and the stored records of notifications as text: compact JSON, written and read only here."""

import json
from collections.abc import Mapping
from dataclasses import asdict, astuple
from typing import Any

from scheduler.model.alerts import Alert
from scheduler.model.errors import Invalid
from scheduler.model.job import Status, TaskKey
from scheduler.model.notice import (
    Incident,
    News,
    Notice,
    NoticeMessage,
    NotificationState,
    Outbox,
    Sending,
    WatchedRun,
    Window,
    WindowEnd,
)
from scheduler.model.notifications import Named, Notifications, Occasion, Webhook, WebhookFormat

VERSION = 1
INCIDENTS = "incidents"
# The defaults of the fields of alerts, which are left out: see `_without`.
_OF_ALERTS: Mapping[str, Any] = {"alert": None, "watched": False, "opening": "", "former": ""}
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_KINDS: Mapping[type, str] = {News: "news", WindowEnd: "end", Sending: "sending"}


def encode(message: NoticeMessage) -> str:
    content = (
        {"notice": _notice(message.notice), "to": _receiver(message.receiver), "id": message.id}
        if isinstance(message, Sending)
        else _news(message)
        if isinstance(message, News)
        else asdict(message)
    )
    return _json({"v": VERSION, "kind": _KINDS[type(message)], **content})


def decode(text: str) -> NoticeMessage:
    """Decode a message. Raises Invalid for a text that `encode` does not write."""
    try:
        fields = json.loads(text)
        version, kind = fields.pop("v"), fields.pop("kind")
        if type(version) is not int or version != VERSION:  # in Python, True and 1.0 equal 1
            raise Invalid(f"message of version {version}, this program reads {VERSION}")
        if kind == "news":
            return _read_news(fields)
        if kind == "end":
            return _read_end(fields)
        if kind == "sending":
            return Sending(_read_notice(fields["notice"]), _read_receiver(fields["to"]), str(fields["id"]))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise Invalid(f"not a message: {error!r}") from None
    raise Invalid(f"a message of an unknown kind: {kind!r}")


def encode_outbox(outbox: Outbox) -> str:
    return _json([list(map(_notice, outbox.notices)), list(map(asdict, outbox.ends)), list(map(_receiver, outbox.receivers))])


def decode_outbox(text: str) -> Outbox:
    notices, ends, receivers = json.loads(text)
    return Outbox(tuple(map(_read_notice, notices)), tuple(map(_read_end, ends)), tuple(map(_read_receiver, receivers)))


def encode_state(state: NotificationState) -> str:
    """Encode all fields except the task, the version and the decisions, which are stored beside this text."""
    windows = {occasion: asdict(window) for occasion, window in state.windows.items()}
    for occasion, window in windows.items():
        del window["decision"]
        last = state.windows[occasion].last
        window["last"] = None if last is None else _news(last)
    rest = {name: value for name, value in asdict(state).items() if name not in ("task", "version", "windows", "incidents")}
    return _json(rest | {"windows": windows})


def encode_decisions(state: NotificationState) -> str:
    """Encode the decision of each window, and the incidents of alerts.

    They are no part of the state's text: a version that lacks them refuses unknown fields there.
    """
    decisions: dict[str, Any] = {occasion: window.decision for occasion, window in state.windows.items()}
    incidents = {alert: list(astuple(each)) for alert, each in state.incidents.items()}
    return _json(decisions | ({INCIDENTS: incidents} if incidents else {}))


def decode_state(task: TaskKey, version: int, text: str, decisions: str = "{}") -> NotificationState:
    fields, decided = json.loads(text), json.loads(decisions)
    windows = {
        Occasion(name): Window(**{**window, "last": window["last"] and _read_news(window["last"])}, decision=decided.get(name, ""))
        for name, window in fields.pop("windows").items()
    }
    incidents = {Alert(name): _read_incident(*values) for name, values in decided.get(INCIDENTS, {}).items()}
    return NotificationState(task, windows=windows, incidents=incidents, version=version, **fields)


def _read_incident(opened_at: int, decision: str, runs: list[list[Any]], *rest: Any) -> Incident:
    return Incident(opened_at, decision, tuple(WatchedRun(*run) for run in runs), *rest)


def encode_notifications(notifications: Notifications) -> str:
    return _json(
        [
            notifications.emails,
            [asdict(hook) for hook in notifications.webhooks],
            notifications.on,
            notifications.after_failures,
            notifications.digest_ms,
            notifications.named,
        ]
    )


def decode_notifications(text: str) -> Notifications:
    emails, webhooks, on, after_failures, digest_ms, named = json.loads(text)
    hooks = tuple(map(_read_hook, webhooks))
    return Notifications(tuple(emails), hooks, tuple(map(Occasion, on)), after_failures, digest_ms, tuple(named))


def _news(news: News) -> dict[str, Any]:
    return _without(asdict(news))


def _notice(notice: Notice) -> dict[str, Any]:
    return _without(asdict(notice) | {"news": _news(notice.news)})


def _without(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields without those of alerts, unless they have a value: a version that knows no alerts refuses unknown fields."""
    return {name: value for name, value in fields.items() if name not in _OF_ALERTS or value != _OF_ALERTS[name]}


def _read_hook(fields: Mapping[str, Any]) -> Webhook:
    return Webhook(**{**fields, "format": WebhookFormat(fields["format"])})


def _receiver(receiver: str | Webhook | Named) -> Any:
    return receiver if isinstance(receiver, str) else asdict(receiver)


def _read_receiver(value: Any) -> str | Webhook | Named:
    if isinstance(value, str):
        return value
    return Named(**value) if "name" in value else _read_hook(value)


def _read_news(fields: Mapping[str, Any]) -> News:
    ended, alert = fields["ended"], fields.get("alert")
    known = {"task": TaskKey(*fields["task"]), "ended": None if ended is None else Status(ended)}
    return News(**{**fields, **known, "alert": None if alert is None else Alert(alert)})


def _read_end(fields: Mapping[str, Any]) -> WindowEnd:
    return WindowEnd(**{**fields, "task": TaskKey(*fields["task"]), "occasion": Occasion(fields["occasion"])})


def _read_notice(fields: Mapping[str, Any]) -> Notice:
    alert = fields.get("alert")
    known = {"occasion": Occasion(fields["occasion"]), "news": _read_news(fields["news"])}
    return Notice(**{**fields, **known, "alert": None if alert is None else Alert(alert)})
