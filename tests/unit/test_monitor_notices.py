"""The notices of monitors, as their receivers read them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.errors import Invalid
from scheduler.model.monitor import Monitor, NoticeKind, PendingNotice
from scheduler.model.notice import Sending
from scheduler.model.notifications import Notifications, Webhook
from scheduler.monitors import rules
from scheduler.monitors.notices import sendings
from scheduler.notify import messages, text
from scheduler.notify.text import Links

NOW = 1_800_000_000_000
LINKS = Links(api="https://api.example.com")


def sent(kind: NoticeKind = NoticeKind.DOWN, cause: str = "the expected ping has not come", **fields: Any) -> list[Sending]:
    pulse = replace(rules.created(NOW), pending=(PendingNotice(3, kind, NOW, cause),))
    receivers = Notifications(("ann@example.com",), (Webhook("https://example.com", "secret"),))
    values: dict[str, Any] = {"name": "Backup", "key": "nightly backup", "notifications": receivers} | fields
    return sendings(
        Monitor(
            "ann", id="id", token_hash="h", salt=1, grace_ms=1, max_duration_ms=1, created_at=NOW, updated_at=NOW, pulse=pulse, **values
        )
    )


def test_each_receiver_gets_a_message_whose_id_a_repeat_has_too() -> None:
    assert [each.id for each in sent()] == ["notice_id.3.0", "notice_id.3.1"] and sent() == sent()
    assert sent(notifications=None) == []


def test_the_messages_are_read_back_from_the_queue() -> None:
    for each in sent():
        assert messages.decode(messages.encode(each)) == each


@pytest.mark.parametrize("version", [0, 2, "1", True, 1.0, None])
def test_a_message_of_another_version_is_refused(version: Any) -> None:
    for each in sent():
        with pytest.raises(Invalid, match="version"):
            messages.decode(json.dumps(json.loads(messages.encode(each)) | {"v": version}))


@pytest.mark.parametrize(
    "kind, words",
    [
        (NoticeKind.DOWN, "is down"),
        (NoticeKind.LONG, "runs too long"),
        (NoticeKind.FAILED, "has failed"),
        (NoticeKind.UP, "is up again"),
        (NoticeKind.FLAPPING, "changes again and again"),
    ],
)
def test_a_mail_and_a_text_say_what_has_happened(kind: NoticeKind, words: str) -> None:
    notice = sent(kind)[0].notice
    mail = text.mail(notice, LINKS)
    assert mail["subject"].startswith(f"[Punctual] Monitor Backup {words}") and "nightly backup" in mail["text"]
    assert "https://api.example.com/api/v1/monitors/nightly%20backup" in mail["text"] and "receiver of this monitor" in mail["text"]
    assert f"Monitor Backup {words}" in text.slack(notice, LINKS)["text"]


def test_a_webhook_has_the_monitor_and_the_cause() -> None:
    body = text.webhook(sent()[0].notice, LINKS)
    monitor = {"key": "nightly backup", "name": "Backup", "event": "down", "cause": "the expected ping has not come"}
    assert body["type"] == "monitor.down" and body["data"]["monitor"] == monitor


def test_the_text_of_a_ping_is_escaped() -> None:
    notice = sent(NoticeKind.FAILED, "<script>alert(1)</script> <!channel>", name="<b>x</b>")[0].notice
    assert "<script>" not in text.mail(notice, LINKS)["html"] and "<b>x</b>" not in text.mail(notice, LINKS)["html"]
    assert "<!channel>" not in text.slack(notice, LINKS)["text"]
