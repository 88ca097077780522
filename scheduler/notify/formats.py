"""The bodies of notices for webhooks, in the form of each service, within its limits. Pure.

No text of a user is read as mark-up: an error or a name must mention nobody and link to nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

from scheduler.model.instants import render as instant
from scheduler.model.notice import Notice
from scheduler.model.notifications import Occasion, Webhook, WebhookFormat
from scheduler.model.receiver import PagerDuty
from scheduler.model.texts import as_line
from scheduler.notify.policy import INCIDENT
from scheduler.notify.text import Links, facts, lead, quotes, slack, webhook

# https://learn.microsoft.com/en-us/connectors/teams/ (a message of a flow has 28 KB)
TEAMS_BYTES = 28 * 1_024
# https://developer.pagerduty.com/docs/events-api-v2-overview
PAGERDUTY_SUMMARY, PAGERDUTY_KEY = 1_024, 255
CARD_VERSION = "1.4"  # of Adaptive Cards: the newest that Workflows in Teams show everywhere


def bodies(notice: Notice, to: Webhook | PagerDuty, links: Links) -> list[dict[str, Any]]:
    """The bodies that a receiver gets of a notice, in their order. None: the notice is not for this kind of receiver."""
    if isinstance(to, PagerDuty):
        return pagerduty(notice, to.routing_key, links)
    return [_OF_WEBHOOKS[to.format](notice, links)]


def teams(notice: Notice, links: Links) -> dict[str, Any]:
    """The body for a webhook of Workflows in Teams: a message with one Adaptive Card.

    Its texts are runs, since a TextBlock reads Markdown: https://adaptivecards.io/explorer/TextRun.html
    """
    good = notice.occasion in (Occasion.RECOVERY, Occasion.SUCCESS)
    colour = "Default" if notice.test else "Good" if good else "Attention"
    rows = [_paragraph(_run(as_line(lead(notice)), weight="Bolder", size="Medium", color=colour))]
    rows += [_paragraph(_run(f"{name}: ", weight="Bolder"), _run(as_line(value))) for name, value in facts(notice)]
    for name, quote in quotes(notice):
        rows += [_paragraph(_run(name, weight="Bolder")), _paragraph(_run(quote, fontType="Monospace"))]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": CARD_VERSION,
        "body": rows,
        "actions": [{"type": "Action.OpenUrl", "title": name, "url": link} for name, link in links.of(notice).items()],
    }
    return {"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}]}


def _paragraph(*runs: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": list(runs)}


def _run(text: str, **style: str) -> dict[str, str]:
    return {"type": "TextRun", "text": text, **style}


def pagerduty(notice: Notice, routing_key: str, links: Links) -> list[dict[str, Any]]:
    """The events for PagerDuty: a failure opens the incident of its task, a recovery resolves it. Other occasions are no incidents.

    Each kind of alert has an incident of its own.

    A test opens an incident of its own and resolves it at once.
    """
    opens, resolves = notice.occasion in INCIDENT, notice.occasion is Occasion.RECOVERY
    event = {"routing_key": routing_key, "dedup_key": incident_key(notice)}
    resolved = event | {"event_action": "resolve"}
    if opens:
        return [event | {"event_action": "trigger"} | _triggered(notice, links), *([resolved] if notice.test else [])]
    return [resolved] if resolves else []


def incident_key(notice: Notice) -> str:
    """The key of the incident that a notice opens or resolves: the same for both, another one for each task and each kind of alert."""
    what = "test" if notice.test else "failure" if notice.alert is None else notice.alert
    return f"{notice.task.owner}/{notice.task.id}/{what}"[:PAGERDUTY_KEY]


def _triggered(notice: Notice, links: Links) -> dict[str, Any]:
    news, found = notice.news, dict(quotes(notice))
    linked = [{"href": link, "text": name} for name, link in links.of(notice).items()]
    about = {name: as_line(value) for name, value in facts(notice)} | found
    payload = {
        "summary": as_line(lead(notice))[:PAGERDUTY_SUMMARY],
        "source": f"punctual/{notice.task.id}",
        "severity": "info" if notice.test else "error",
        "timestamp": instant(news.at),
        "component": news.type,
        "group": as_line(notice.name) or notice.task.id,
        "class": str(notice.alert or notice.occasion),
        "custom_details": about,
    }
    return {"payload": payload, "client": "Punctual", "links": linked}


_OF_WEBHOOKS: Mapping[WebhookFormat, Callable[[Notice, Links], dict[str, Any]]] = {
    WebhookFormat.STANDARD: webhook,
    WebhookFormat.SLACK: slack,
    WebhookFormat.TEAMS: teams,
}
