"""The page on notifications: its example verifies a real webhook, and its figures match the code."""

import re
import time
from pathlib import Path
from typing import Any

from scheduler.model.lifecycle import LATE_MS
from scheduler.model.notifications import Notifications, Occasion
from scheduler.model.receiver import MOST, MOST_REFUSALS, ReceiverKind
from scheduler.notify.notify import CALL_S, FIRST_WAIT_S, LONGEST_WAIT_S, MOST_TRIES, wait_s
from scheduler.notify.policy import LONGEST_RESPONSE
from scheduler.notify.receivers import SEARCHED, TEST_MS
from scheduler.notify.text import SLACK_TEXT, TEST_TYPE, Links, webhook
from scheduler.targets import webhooks
from tests.unit.test_notice_text import NOTICE

GUIDES = Path(__file__).resolve().parents[2] / "docs/guides"
PAGE, GUIDE = (GUIDES / "notifications.md").read_text(), (GUIDES / "signed-webhooks.md").read_text()
SECRET = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"


def test_the_example_verifies_only_unchanged_webhooks() -> None:
    code = next(code for code in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "hmac" in code)
    names: dict[str, Any] = {}
    exec(code, names)
    body = b'{"type": "task.failure"}'
    headers = webhooks.headers("notice_1", round(time.time() * 1_000), body, ["another secret of 24 bytes", SECRET])
    assert names["is_valid"](headers, body, SECRET)
    assert not names["is_valid"](headers, body + b" ", SECRET)
    assert not names["is_valid"](headers | {"webhook-timestamp": str(round(time.time()) - 301)}, body, SECRET)


def test_every_occasion_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## Occasions")[2].partition("\n## ")[0], re.MULTILINE)
    assert rows == list(Occasion)


def test_the_figures_match_the_code() -> None:
    assert (Notifications().digest_ms, Notifications().after_failures, LATE_MS, CALL_S) == (900_000, 1, 10_000, 10)
    assert (MOST_TRIES, FIRST_WAIT_S, LONGEST_WAIT_S, LONGEST_RESPONSE) == (10, 10, 3_600, 500)
    assert round(sum(wait_s(tries) for tries in range(1, MOST_TRIES)) / 3_600, 1) == 4.0


def test_the_figures_of_named_receivers_match_the_code() -> None:
    section = " ".join(PAGE.partition("## Named receivers")[2].partition("\n## ")[0].split())
    assert f"has up to {MOST} receivers" in section and f"newest {SEARCHED:,} tasks" in section
    assert (MOST_REFUSALS, TEST_MS) == (10, 10_000) and "ten final refusals" in section and "one test in ten seconds" in section
    assert re.findall(r"^\| `kind` \| (.*) \|$", PAGE, re.MULTILINE) == [
        ", ".join(f"`{kind}`" for kind in [*ReceiverKind][:-1]) + f" or `{ReceiverKind.PAGERDUTY}`"
    ]
    assert f"at most {SLACK_TEXT:,} characters" in PAGE and f"type` of a test is `{TEST_TYPE}`" in section


def test_a_webhook_has_the_fields_of_the_page() -> None:
    shown = set(re.findall(r'"(\w+)":', PAGE.partition("## Content of a notice")[2].partition("### ")[0]))
    told = webhook(NOTICE, Links("c", "a"))
    data = told["data"]
    assert shown == {*told, *data, *data["task"], *data["job"], *data["links"]}
