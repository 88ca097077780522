"""A notice as its receivers read it: an e-mail with text and HTML, the body of a webhook, or a text for Slack. Pure.

People read its times in the time zone of the task, programs in UTC.
"""

import html
import re
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote as quote_path

from scheduler.model.alerts import Alert
from scheduler.model.instants import render as instant
from scheduler.model.job import Status
from scheduler.model.monitor import NoticeKind
from scheduler.model.notice import News, Notice
from scheduler.model.notifications import Occasion
from scheduler.model.texts import as_line, as_lines
from scheduler.tasks.schedule import local_time

LONGEST_NAME = 120  # characters of a task's name in a subject
SLACK_TEXT = 4_000  # characters; Slack splits longer texts: https://api.slack.com/changelog/2018-04-truncating-really-long-messages
LONGEST_ESCAPE = 5  # characters of one that is escaped: `&amp;`, and a grave accent with its blank
TEST_TYPE = "receiver.test"
_ONE = {
    Occasion.FAILURE: "failed",
    Occasion.RECOVERY: "has recovered",
    Occasion.SUCCESS: "succeeded",
    Occasion.LATE: "started late",
    Occasion.KILLED: "was killed: its time-out passed",
}
_MANY = {
    Occasion.FAILURE: "failed {} times",
    Occasion.RECOVERY: "has recovered {} times",
    Occasion.SUCCESS: "succeeded {} times",
    Occasion.LATE: "started late {} times",
    Occasion.KILLED: "was killed {} times: its time-out passed",
}

_OPENED = {
    Alert.LATE: "is late: a run has not started in time",
    Alert.LONG: "runs too long",
    Alert.NOT_DONE: "is not done in time",
    Alert.MISSED: "has missed a run",
}
_CLOSED = {
    Alert.LATE: "is late no longer",
    Alert.LONG: "runs too long no longer",
    Alert.NOT_DONE: "is done, or need not be done any more",
    Alert.MISSED: "has succeeded again after a missed run",
}
_OF_MONITOR = {
    NoticeKind.UP: "is up again",
    NoticeKind.DOWN: "is down",
    NoticeKind.LONG: "runs too long",
    NoticeKind.FAILED: "has failed",
    NoticeKind.FLAPPING: "changes again and again: the next notice comes when it stays the same",
}


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses of the console and of the API, for the links of a notice; an empty one gives no link."""

    console: str = ""
    api: str = ""

    def of(self, notice: Notice) -> dict[str, str]:
        if notice.test:
            return {}
        job = notice.news.job
        if notice.news.monitor is not None:
            return {"api": f"{self.api}/api/v1/monitors/{quote_path(job)}"} if self.api else {}
        of_task = {} if notice.news.alone else {"task": f"{self.console}/tasks/{notice.task.id}"}
        pages = of_task | {"job": f"{self.console}/jobs/{job}"} if self.console else {}
        return pages | ({"api": f"{self.api}/api/v1/jobs/{job}"} if self.api else {})


def mail(notice: Notice, links: Links) -> dict[str, Any]:
    """The subject and both bodies of an e-mail."""
    said, rows, addresses = lead(notice), facts(notice), links.of(notice)
    quoted = quotes(notice)
    text = [said, "", *(f"{name}: {value}" for name, value in rows)]
    for name, quote in quoted:
        text += ["", f"{name}:", *(f"    {line}" for line in quote.splitlines())]
    what = "monitor" if notice.news.monitor is not None else "job" if notice.news.alone else "task"
    foot = _TEST_FOOT if notice.test else _FOOT.format(what)
    text += ["", *(f"{name}: {link}" for name, link in addresses.items()), "", foot]
    table = "".join(f"<tr><th align='left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
    shown = "".join(f"<p>{html.escape(name)}:</p><pre>{html.escape(quote)}</pre>" for name, quote in quoted)
    linked = " ".join(f'<a href="{html.escape(link)}">{html.escape(name)}</a>' for name, link in addresses.items())
    page = f"<p><b>{html.escape(said)}</b></p><table>{table}</table>{shown}<p>{linked}</p><p><small>{html.escape(foot)}</small></p>"
    return {"subject": f"[Punctual] {as_line(said)}"[:300], "text": "\n".join(text), "html": page}


def webhook(notice: Notice, links: Links) -> dict[str, Any]:
    """The body of a webhook: type, timestamp and data, as Standard Webhooks specifies. Every field is always present."""
    news = notice.news
    if news.monitor is not None:
        return _webhook_of_monitor(notice, links)
    return {
        "type": _type(notice),
        "timestamp": instant(news.at),
        "data": {
            "task": None if news.alone or notice.test else {"id": notice.task.id, "name": notice.name},
            "job": {
                "id": news.job,
                "type": news.type,
                "status": None if news.ended is None else str(news.ended),
                "scheduled_at": instant(news.scheduled_at),
                "started_at": None if news.started_at is None else instant(news.started_at),
                "start_delay_ms": news.delay_ms,
                "attempts": news.attempts,
                "max_attempts": news.max_attempts,
                "error": news.error,
                "response": news.response,
            },
            "alert": notice.alert,
            "count": notice.count,
            "first_at": instant(_first_at(notice)),
            "failures": notice.failures,
            "failing_since": None if notice.since is None else instant(notice.since),
            "next_run": None if notice.next_run is None else instant(notice.next_run),
            "links": links.of(notice),
        },
    }


def _type(notice: Notice) -> str:
    if notice.test:
        return TEST_TYPE
    if notice.alert is not None:
        return "task.alert_over" if notice.occasion is Occasion.RECOVERY else "task.alert"
    return f"{'job' if notice.news.alone else 'task'}.{notice.occasion}"


def _webhook_of_monitor(notice: Notice, links: Links) -> dict[str, Any]:
    news = notice.news
    monitor = {"key": news.job, "name": notice.name, "event": news.monitor, "cause": news.error}
    return {"type": f"monitor.{news.monitor}", "timestamp": instant(news.at), "data": {"monitor": monitor, "links": links.of(notice)}}


def slack(notice: Notice, links: Links) -> dict[str, Any]:
    """The body for an incoming webhook of Slack or a compatible service: one text, without blocks, which few others support.

    It has at most `SLACK_TEXT` characters: quotes are cut, the marks around them are not.
    """
    lines = [f"*{_escaped(as_line(lead(notice)))}*", *(f"{name}: {_escaped(as_line(value))}" for name, value in facts(notice))]
    addresses = " · ".join(f"<{link}|{name}>" for name, link in links.of(notice).items())
    quoted = quotes(notice)
    marks = sum(len(f"{name}:\n``````\n") for name, _ in quoted)
    room = SLACK_TEXT - len("\n".join([*lines, addresses])) - marks - 1
    for name, quote in quoted:
        shown = _within(quote, room)
        lines.append(f"{name}:\n```{shown}```")
        room -= len(shown)
    return {"text": "\n".join([*lines, *([addresses] if addresses else [])])}


def _within(text: str, most: int) -> str:
    """The escaped text, or that of its beginning and an ellipsis: at most `most` characters, or the ellipsis alone."""
    if len(whole := _escaped(text)) <= most:
        return whole
    while text and len(shown := f"{_escaped(text)}…") > most:
        text = text[: -max((len(shown) - most) // LONGEST_ESCAPE, 1)]
    return f"{_escaped(text)}…"


def _escaped(text: str) -> str:
    """The text without Slack's control characters: a name or an error must mention no user and no channel.

    https://docs.slack.dev/messaging/formatting-message-text#escaping
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("```", "` ` `")


_KIND = re.compile("^(retryable|permanent): ")  # this says whether the job is retried, not what happened
_TEST_FOOT = "This is a test of the receiver, which its owner has requested. Nothing has failed."
_FOOT = "You receive this because you are a receiver of this {}. Its owner can remove you."


def lead(notice: Notice) -> str:
    """The event in one sentence."""
    if notice.test:
        return f"Test of the receiver {notice.name}: notices arrive here"
    if notice.news.monitor is not None:
        return f"Monitor {notice.name[:LONGEST_NAME]} {_OF_MONITOR[NoticeKind(notice.news.monitor)]}"
    if notice.alert is not None:
        event = _CLOSED if notice.occasion is Occasion.RECOVERY else _OPENED
        return f"{notice.name[:LONGEST_NAME] or notice.task.id} {event[notice.alert]}"
    what = _ONE[notice.occasion] if notice.count == 1 else _MANY[notice.occasion].format(notice.count)
    name = notice.name[:LONGEST_NAME] or notice.task.id
    return f"{f'Job {name}' if notice.news.alone else name} {what}"


def facts(notice: Notice) -> list[tuple[str, str]]:
    """The facts about it, each with its name."""
    news, when = notice.news, partial(_time, notice.zone)
    if notice.test:
        return [("Requested", when(news.at))]
    if news.monitor is not None:
        return [("Monitor", f"{notice.name} ({news.job})"), ("At", f"{when(news.at)} ({notice.zone})")]
    found = [] if news.alone else [("Task", f"{notice.name} ({notice.task.id})")]
    if notice.alert is not None:
        found += _of_alert(notice)
    elif notice.count > 1:
        found.append(("Since the last notice", f"{notice.count} times, first at {when(_first_at(notice))}, last at {when(news.at)}"))
    if notice.failures and notice.since is not None:
        found.append(("Failures in a row", f"{notice.failures}, since {when(notice.since)}"))
    found += [("Job", f"{news.job} ({news.type})"), ("Scheduled", f"{when(news.scheduled_at)} ({notice.zone})")]
    if news.started_at is not None:
        found.append(("Started", f"{when(news.started_at)}{_delay(news, news.started_at)}"))
    if news.ended is not None and (notice.alert is None or notice.occasion is Occasion.RECOVERY):
        found.append(("Succeeded" if news.ended is Status.SUCCEEDED else "Ended", when(news.at)))
    if news.max_attempts and news.attempts:
        found.append(("Attempts", f"{news.attempts} of {news.max_attempts}"))
    if not news.alone:
        found.append(("Next run", "none" if notice.next_run is None else when(notice.next_run)))
    return found


def _of_alert(notice: Notice) -> list[tuple[str, str]]:
    """The deadline of an alert; at its end, the number of runs that broke the rule."""
    if notice.occasion is not Occasion.RECOVERY:
        return [("Skipped" if notice.alert is Alert.MISSED else "Deadline", f"{_time(notice.zone, notice.news.at)} ({notice.zone})")]
    return [("Runs of the incident", str(notice.count))]


def _delay(news: News, started_at: int) -> str:
    """The start delay, which is that of the first attempt: `started_at` may be of a later one."""
    if not news.delay_ms:
        return ""
    which = "" if started_at - news.scheduled_at == news.delay_ms else "first start "
    return f" ({which}{news.delay_ms / 1_000:g} s after its time)"


def quotes(notice: Notice) -> list[tuple[str, str]]:
    """The error and the beginning of the response, which the target has written. They have no characters that may not be shown."""
    error = _KIND.sub("", notice.news.error or "")
    name = "Error" if notice.news.monitor is None and notice.alert is not Alert.MISSED else "Cause"
    quoted = ((name, error), ("Beginning of the response", notice.news.response))
    return [(name, as_lines(text)) for name, text in quoted if text]


def _first_at(notice: Notice) -> int:
    return notice.news.at if notice.first_at is None else notice.first_at


def _time(zone: str, at: int) -> str:
    """The instant as people read it: local time of the zone, with its offset."""
    return local_time(at, zone).replace("T", " ")
