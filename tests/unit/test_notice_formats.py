"""The bodies for Slack, Teams and PagerDuty: each has its service's form, within its limits.

The schemas have what the services document: https://learn.microsoft.com/en-us/adaptive-cards/schema-explorer/rich-text-block,
https://developer.pagerduty.com/docs/events-api-v2-overview
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from scheduler.model.job import Status, TaskKey
from scheduler.model.notice import Notice
from scheduler.model.notifications import Occasion, Webhook, WebhookFormat
from scheduler.model.receiver import PagerDuty, Region
from scheduler.notify.formats import PAGERDUTY_KEY, PAGERDUTY_SUMMARY, TEAMS_BYTES, bodies, pagerduty, teams
from scheduler.notify.policy import LONGEST_ERROR, LONGEST_RESPONSE
from scheduler.notify.text import SLACK_TEXT, Links, mail, slack
from tests.unit.test_notice_text import ALONE, LINKS, NEWS, NOTICE

TEXT = {"type": "string", "minLength": 1}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


RUN = closed(
    ["type", "text"],
    type={"const": "TextRun"},
    text=TEXT,
    weight={"enum": ["Default", "Lighter", "Bolder"]},
    size={"enum": ["Default", "Small", "Medium", "Large", "ExtraLarge"]},
    color={"enum": ["Default", "Dark", "Light", "Accent", "Good", "Warning", "Attention"]},
    fontType={"enum": ["Default", "Monospace"]},
)
BLOCK = closed(["type", "inlines"], type={"const": "RichTextBlock"}, inlines={"type": "array", "minItems": 1, "items": RUN})
ACTION = closed(["type", "url"], type={"const": "Action.OpenUrl"}, title=TEXT, url=TEXT | {"pattern": "^https?://"})
CARD = closed(
    ["type", "version"],
    **{"$schema": {"const": "http://adaptivecards.io/schemas/adaptive-card.json"}},
    type={"const": "AdaptiveCard"},
    version={"enum": ["1.2", "1.3", "1.4", "1.5"]},
    body={"type": "array", "items": BLOCK},
    actions={"type": "array", "maxItems": 6, "items": ACTION},
)
CONTENT_TYPE = {"const": "application/vnd.microsoft.card.adaptive"}
ATTACHMENT = closed(["contentType", "content"], contentType=CONTENT_TYPE, content=CARD)
TEAMS = closed(
    ["type", "attachments"], type={"const": "message"}, attachments={"type": "array", "minItems": 1, "maxItems": 10, "items": ATTACHMENT}
)
PAYLOAD = closed(
    ["summary", "source", "severity"],
    summary=TEXT | {"maxLength": 1_024},
    source=TEXT,
    severity={"enum": ["critical", "error", "warning", "info"]},
    timestamp=TEXT | {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"},
    component=TEXT,
    group=TEXT,
    **{"class": TEXT},
    custom_details={"type": "object"},
)
LINK = closed(["href"], href=TEXT | {"pattern": "^https?://"}, text=TEXT)
EVENT = closed(
    ["routing_key", "event_action"],
    routing_key={"type": "string", "minLength": 32, "maxLength": 32},
    event_action={"enum": ["trigger", "acknowledge", "resolve"]},
    dedup_key=TEXT | {"maxLength": 255},
    payload=PAYLOAD,
    client=TEXT,
    client_url=TEXT,
    links={"type": "array", "items": LINK},
) | {
    "if": {"properties": {"event_action": {"const": "trigger"}}},
    "then": {"required": ["payload"]},
    "else": {"required": ["dedup_key"]},
}
KEY = "0123456789abcdef0123456789abcdef"
TO = PagerDuty(KEY)
OVER = replace(NOTICE, occasion=Occasion.RECOVERY, news=replace(NEWS, ended=Status.SUCCEEDED, error=None, response=None))
TEST = replace(NOTICE, test=True, name="ops", news=replace(NEWS, error=None, response=None, ended=None))
# The longest that a notice may have: each text has its bound, each character the most bytes in JSON, and is escaped if possible.
LONGEST = replace(
    NOTICE,
    name="&" * 200,
    count=1_000_000,
    first_at=NOTICE.news.at - 1,
    failures=1_000_000,
    news=replace(NEWS, error="&\U0001f600" * (LONGEST_ERROR // 2), response="`" * LONGEST_RESPONSE),
)
EVERY = [NOTICE, OVER, ALONE, TEST, LONGEST, *(replace(NOTICE, occasion=occasion) for occasion in Occasion)]


@pytest.mark.parametrize("notice", EVERY, ids=lambda each: f"{each.occasion}-{each.count}")
@pytest.mark.parametrize("links", [LINKS, Links()], ids=["links", "bare"])
def test_bodies_are_valid_for_their_services(notice: Notice, links: Links) -> None:
    Draft202012Validator(TEAMS).validate(teams(notice, links))
    for event in pagerduty(notice, KEY, links):
        Draft202012Validator(EVENT).validate(event)


LIMITS = {  # of each service, and what this project sends at most
    "a Slack text that is not split": (4_000, SLACK_TEXT),
    "a message of Teams": (28 * 1_024, TEAMS_BYTES),
    "a PagerDuty summary": (1_024, PAGERDUTY_SUMMARY),
    "a PagerDuty key": (255, PAGERDUTY_KEY),
}


@pytest.mark.parametrize("what", LIMITS)
def test_the_limits_are_those_of_the_services(what: str) -> None:
    limit, ours = LIMITS[what]
    assert ours <= limit


@pytest.mark.parametrize("notice", EVERY, ids=lambda each: f"{each.occasion}-{each.count}")
def test_bodies_are_within_the_limits(notice: Notice) -> None:
    assert len(slack(notice, LINKS)["text"]) <= SLACK_TEXT
    assert len(json.dumps(teams(notice, LINKS))) <= TEAMS_BYTES
    assert all(len(json.dumps(event)) <= 512 * 1_024 for event in pagerduty(notice, KEY, LINKS))


def test_a_slack_text_that_is_cut_closes_its_quotes_and_breaks_no_escape() -> None:
    text = slack(LONGEST, LINKS)["text"]
    assert text.count("```") == 4 and "…```" in text and text.endswith("|api>")
    assert text.replace("&amp;", "").replace("<", "").count("&") == 0


def test_teams_and_slack_read_no_text_of_a_user_as_mark_up() -> None:
    sly = replace(NOTICE, name="**x** [a](https://evil.example)", news=replace(NEWS, error="<at>everyone</at> \u202etxet\u202c"))
    card = teams(sly, LINKS)["attachments"][0]["content"]
    assert {row["type"] for row in card["body"]} == {"RichTextBlock"}, "TextBlocks and fact sets read Markdown"
    for text in (json.dumps(card, ensure_ascii=False), slack(sly, LINKS)["text"], mail(sly, LINKS)["text"]):
        assert "\u202e" not in text and "txet" in text


def test_open_and_resolve_have_one_key_and_each_task_its_own() -> None:
    def keys(*notices: Notice) -> list[tuple[str, str]]:
        return [(event["event_action"], event["dedup_key"]) for each in notices for event in pagerduty(each, KEY, LINKS)]

    other = replace(OVER, news=replace(OVER.news, task=TaskKey("ada", "t2")))
    killed = replace(NOTICE, occasion=Occasion.KILLED)
    renamed = replace(NOTICE, name="another", news=replace(NEWS, id="j2.0", job="j2", error="another"))
    assert keys(NOTICE, renamed, killed, OVER) == [*([("trigger", "ada/t1/failure")] * 3), ("resolve", "ada/t1/failure")]
    assert keys(other) == [("resolve", "ada/t2/failure")]


def test_only_failures_and_kills_open_incidents() -> None:
    assert {occasion for occasion in Occasion if pagerduty(replace(NOTICE, occasion=occasion), KEY, LINKS)} == {
        *(Occasion.FAILURE, Occasion.KILLED, Occasion.RECOVERY),
    }


def test_a_test_resolves_itself_under_a_key_of_its_own() -> None:
    told = pagerduty(TEST, KEY, LINKS)
    assert [(event["event_action"], event["dedup_key"]) for event in told] == [("trigger", "ada/t1/test"), ("resolve", "ada/t1/test")]
    assert told[0]["payload"]["severity"] == "info" and told[0]["payload"]["summary"] == "Test of the receiver ops: notices arrive here"


def test_each_format_has_its_body() -> None:
    def form(to: Webhook | PagerDuty) -> set[str]:
        return set(bodies(NOTICE, to, LINKS)[0])

    hooks = {format: Webhook("https://example.com", None, format) for format in WebhookFormat}
    assert {format: form(hook) for format, hook in hooks.items()} == {
        WebhookFormat.STANDARD: {"type", "timestamp", "data"},
        WebhookFormat.SLACK: {"text"},
        WebhookFormat.TEAMS: {"type", "attachments"},
    }
    assert form(TO) == {"routing_key", "dedup_key", "event_action", "payload", "client", "links"}


def test_the_regions_of_pagerduty_have_addresses_of_their_own() -> None:
    assert [PagerDuty(KEY, region).url for region in Region] == [
        "https://events.pagerduty.com/v2/enqueue",
        "https://events.eu.pagerduty.com/v2/enqueue",
    ]
