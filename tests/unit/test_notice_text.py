"""The texts of notices."""

import re
from dataclasses import replace

from scheduler.model.instants import parse
from scheduler.model.job import Status, TaskKey
from scheduler.model.notice import News, Notice
from scheduler.model.notifications import Occasion
from scheduler.notify.text import Links, mail, slack, webhook
from scheduler.targets.types import email

AT = parse("2026-11-20T10:00:00Z")
NEWS = News(
    TaskKey("ada", "t1"),
    "j1.0",
    "j1",
    "http",
    Status.FAILED,
    AT + 900,
    AT,
    AT + 12,
    12,
    3,
    3,
    "retryable: HTTP 503",
    "HTTP 503\n<b>busy</b>",
)
NOTICE = Notice("n1", Occasion.FAILURE, NEWS, 1, None, 2, AT - 60_000, "Nightly <report>", AT + 60_000)
LINKS = Links("https://console.example.com", "https://api.example.com")


def test_a_mail_states_the_event_the_error_and_the_next_run() -> None:
    told = mail(NOTICE, LINKS)
    assert told["subject"] == "[Punctual] Nightly <report> failed"
    for part in (
        "j1 (http)",
        "Scheduled: 2026-11-20 10:00+00:00 (UTC)",
        "Error:\n    HTTP 503\n",
        "<b>busy</b>",
        "3 of 3",
        "2, since 2026-11-20 09:59+00:00",
    ):
        assert part in told["text"]
    for part in ("Next run: 2026-11-20 10:01+00:00", "https://console.example.com/jobs/j1", "https://console.example.com/tasks/t1"):
        assert part in told["text"]
    assert "https://api.example.com/api/v1/jobs/j1" in told["text"]


def test_people_read_times_in_the_task_s_time_zone() -> None:
    """The last run before the clocks of Lisbon go back, and the next one after that: each has the offset of its own time."""
    at, following = parse("2026-10-24T07:00:00Z"), parse("2026-10-25T08:00:00Z")
    news = replace(NEWS, at=at + 1_500, scheduled_at=at, started_at=at + 12)
    notice = replace(NOTICE, news=news, count=2, first_at=at - 86_400_000, since=at - 86_400_000, next_run=following, zone="Europe/Lisbon")
    for text in (mail(notice, LINKS)["text"], slack(notice, LINKS)["text"]):
        for line in (
            "Since the last notice: 2 times, first at 2026-10-23 08:00+01:00, last at 2026-10-24 08:00:01.500+01:00",
            "Failures in a row: 2, since 2026-10-23 08:00+01:00",
            "Scheduled: 2026-10-24 08:00+01:00 (Europe/Lisbon)",
            "Started: 2026-10-24 08:00:00.012+01:00 (0.012 s after its time)",
            "Ended: 2026-10-24 08:00:01.500+01:00",
            "Next run: 2026-10-25 08:00+00:00",
        ):
            assert line in text.splitlines()
        assert "Z" not in re.sub("Europe/Lisbon", "", text), "no instant is left in UTC"
    assert "2026-10-24 08:00+01:00 (Europe/Lisbon)" in mail(notice, LINKS)["html"]
    hook = webhook(notice, LINKS)
    assert (hook["timestamp"], hook["data"]["next_run"]) == ("2026-10-24T07:00:01.500Z", "2026-10-25T08:00:00.000Z"), "for programs"


def test_people_read_what_happened_and_not_what_a_retry_may_do() -> None:
    for text in (mail(NOTICE, LINKS)["text"], mail(NOTICE, LINKS)["html"], slack(NOTICE, LINKS)["text"]):
        assert "HTTP 503" in text and "retryable" not in text
    crashed = replace(NOTICE, news=replace(NEWS, error="crashed: its process ended"))
    assert "crashed: its process ended" in mail(crashed, LINKS)["text"], "that is what happened"
    assert webhook(NOTICE, LINKS)["data"]["job"]["error"] == "retryable: HTTP 503", "for programs"


def test_the_delay_of_the_first_start_is_not_that_of_a_retry() -> None:
    """`started_at` is of the last attempt, `delay_ms` of the first."""
    retried = replace(NOTICE, news=replace(NEWS, started_at=AT + 2_095, delay_ms=207))
    first = replace(NOTICE, news=replace(NEWS, started_at=AT + 207, delay_ms=207))
    for write in (lambda notice: mail(notice, LINKS)["text"], lambda notice: slack(notice, LINKS)["text"]):
        assert "Started: 2026-11-20 10:00:02.095+00:00 (first start 0.207 s after its time)" in write(retried).splitlines()
        assert "Started: 2026-11-20 10:00:00.207+00:00 (0.207 s after its time)" in write(first).splitlines()


def test_html_escapes_the_target_s_response() -> None:
    page = mail(NOTICE, LINKS)["html"]
    assert "<b>busy</b>" not in page and "&lt;b&gt;busy&lt;/b&gt;" in page and "Nightly &lt;report&gt;" in page


def test_a_digest_states_the_number_and_the_period() -> None:
    told = mail(replace(NOTICE, count=312, first_at=AT - 900_000), LINKS)
    assert told["subject"] == "[Punctual] Nightly <report> failed 312 times"
    assert "312 times, first at 2026-11-20 09:45+00:00, last at 2026-11-20 10:00:00.900+00:00" in told["text"]


def test_a_recovery_states_the_number_of_failures() -> None:
    over = replace(NOTICE, occasion=Occasion.RECOVERY, news=replace(NEWS, ended=Status.SUCCEEDED, error=None, response=None), failures=7)
    told = mail(over, Links())
    assert told["subject"] == "[Punctual] Nightly <report> has recovered"
    assert "Failures in a row: 7" in told["text"] and "Error" not in told["text"] and "http" not in told["text"].replace("(http)", "")


def test_every_occasion_has_a_subject_that_can_be_sent() -> None:
    for occasion in Occasion:
        for count in (1, 5):
            told = mail(replace(NOTICE, occasion=occasion, count=count, name="two\nlines\u202e" * 40), LINKS)
            email.Payload(["ann@example.com"], **told)
            assert told["subject"].isprintable() and len(told["subject"]) <= 300


def test_a_webhook_has_every_field_always() -> None:
    told = webhook(NOTICE, LINKS)
    assert (told["type"], told["timestamp"]) == ("task.failure", "2026-11-20T10:00:00.900Z")
    assert told["data"]["task"] == {"id": "t1", "name": "Nightly <report>"}
    assert told["data"]["job"]["error"] == "retryable: HTTP 503" and told["data"]["next_run"] == "2026-11-20T10:01:00.000Z"
    bare = webhook(Notice("n2", Occasion.LATE, replace(NEWS, ended=None, started_at=None, error=None, response=None)), Links())
    assert bare.keys() == told.keys() and bare["data"].keys() == told["data"].keys()
    assert bare["data"]["job"].keys() == told["data"]["job"].keys() and bare["data"]["job"]["status"] is None


ALONE = replace(NOTICE, news=replace(NEWS, task=TaskKey("ada", "j1"), alone=True), name="", next_run=None)


def test_a_notice_of_a_one_time_job_names_no_task() -> None:
    told = mail(ALONE, LINKS)
    assert told["subject"] == "[Punctual] Job j1 failed" and "a receiver of this job" in told["text"]
    assert "Task:" not in told["text"] and "Next run" not in told["text"] and "/tasks/" not in told["text"]
    hook = webhook(ALONE, LINKS)
    assert (hook["type"], hook["data"]["task"], hook["data"]["next_run"]) == ("job.failure", None, None)
    assert hook["data"].keys() == webhook(NOTICE, LINKS)["data"].keys() and set(hook["data"]["links"]) == {"job", "api"}


def test_a_slack_text_has_the_facts_the_quotes_and_the_links() -> None:
    (text,) = slack(NOTICE, LINKS).values()
    assert text.startswith("*Nightly &lt;report&gt; failed*\n")
    assert "Attempts: 3 of 3" in text and "```HTTP 503```" in text and "&lt;b&gt;busy&lt;/b&gt;" in text
    assert text.endswith("<https://console.example.com/jobs/j1|job> · <https://api.example.com/api/v1/jobs/j1|api>")
    assert slack(NOTICE, Links())["text"].endswith("```"), "no links without addresses"


def test_a_slack_text_has_no_mention_and_ends_no_quote_early() -> None:
    (text,) = slack(replace(NOTICE, name="<!channel> &", news=replace(NEWS, error="<@U1> ``` *x*", response=None)), Links()).values()
    assert "<" not in text and "&lt;!channel&gt; &amp;" in text and text.count("```") == 2
