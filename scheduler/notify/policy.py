"""The notices to the receivers of a task or a one-time job, and their times. Pure: `scheduler.notify.notify` carries it out.

    run ends or starts late ─► News ─► decide ─┬─► Notice, sent at once     ─► one Sending for each receiver
                                               └─► held back in a window ─┐
                                    window ends ─► digest ────────────────┴─► Notice, with the number of events

In one window there is at most one notice of a task and occasion. Further news are counted, and reported when the window ends or by an
earlier recovery. A one-time job with receivers of its own is handled like a task with this one run: its id takes the place of the
task's. News arrive in any order and more than once: their own times order them, and `News.id` identifies each.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.model import lifecycle
from scheduler.model.alerts import Alert
from scheduler.model.job import Job, Status, TaskKey
from scheduler.model.notice import News, Notice, NotificationState, Outbox, Window, WindowEnd
from scheduler.model.notifications import Notifications, Occasion
from scheduler.notify import alerting

LONGEST_ERROR = 1_000  # characters of an error ...
LONGEST_RESPONSE = 500  # ... and of a response that a notice quotes
AWAITED_MS = 6 * 3_600_000  # after its decision: a sending that has no place is given up then
INCIDENT = (Occasion.FAILURE, Occasion.KILLED)  # the notices whose incident a recovery ends


@dataclass(frozen=True, slots=True)
class Decision:
    """A new state and its outbox. `outbox` None: deciding again would change nothing, so the decision itself is not stored."""

    state: NotificationState
    outbox: Outbox | None


def of_change(before: Job | None, after: Job | None) -> Iterator[News]:
    """The news in one write of a job. There are none unless it has receivers: its own, or the task's when the run was planned."""
    if after is None or not (after.notifications is not None if after.origin is None else after.origin.notify):
        return
    if after.claim is not None and (before is None or before.claim is None) and after.delay_ms is None and not after.after:
        started = lifecycle.started_at(after)
        if started - after.scheduled_at >= lifecycle.LATE_MS:
            late = _news(after, f"{after.id}.late", None, started)
            yield replace(late, started_at=started, delay_ms=started - after.scheduled_at)
    if after.origin is not None and after.origin.watched:
        for id, ended, at, alert in alerting.of_change(before, after):
            yield replace(_news(after, id, ended, at), alert=alert, watched=alert is None, error=after.reason if alert else None)
    if lifecycle.is_open(after) or (before is not None and not lifecycle.is_open(before)):
        return
    status = lifecycle.state(after)
    if status in (Status.SUCCEEDED, *lifecycle.DEAD):
        yield _news(after, f"{after.id}.{after.redrives}", status, getattr(after, lifecycle.FINAL_TIMES[status]))


def decide(state: NotificationState, news: News, notifications: Notifications, now: int, *, edited_at: int = 0) -> Decision:
    """The new state and the notices that follow from the news; windows are measured by `now`.

    `edited_at`: when the task was last edited. Notices of alerts are in no window, and for all receivers.
    """
    if news.alert is not None:
        after, notices = alerting.opened(state, news, now, edited_at)
        return Decision(after, Outbox(tuple(notices), (), notifications.receivers))
    state, closings = alerting.closed(before := state, news, now)
    if news.watched:
        return Decision(state, Outbox(tuple(closings), (), notifications.receivers) if state != before else None)
    after, notices = _happened(state, news, notifications)
    due, ends = list[Notice](), list[WindowEnd]()
    for notice in notices:
        if notice.occasion in notifications.on:
            after = _passed(after, notice, notifications, now, due, ends)
    if any(notice.occasion is Occasion.RECOVERY for notice in due):  # it reports the number of failures
        after = _emptied(after, INCIDENT)
    quiet = not due and after.windows == before.windows and (after.streak, after.failing) == (before.streak, before.failing)
    quiet = quiet and after.incidents == before.incidents
    return Decision(after, None if quiet else Outbox((*due, *closings), tuple(ends), notifications.receivers))


def broke(job: Job, alert: Alert, at: int) -> News:
    """The news that a run broke a rule by the deadline `at`."""
    ended = None if lifecycle.is_open(job) else lifecycle.state(job)
    return replace(_news(job, alerting.news_id(job, alert), ended, at), alert=alert)


def over(job: Job, alert: Alert, now: int) -> News | None:
    """The news that a run breaks a rule no longer; None: it still does."""
    found = alerting.over(job, alert, now)
    return None if found is None else replace(_news(job, f"{alerting.news_id(job, alert)}.over", *found), watched=True)


def digest(state: NotificationState, end: WindowEnd, notifications: Notifications, now: int) -> Decision | None:
    """The notice that is due at the end of a window. None: the window held no event back, or another window has replaced it.

    The failures that a recovery ends go before it, also if their own window has not ended.
    """
    window = state.windows.get(end.occasion)
    if window is None or window.opened_at != end.opened_at or window.last is None:
        return None
    occasions = [end.occasion]
    if end.occasion is Occasion.RECOVERY:
        collected = {occasion: state.windows[occasion].last for occasion in INCIDENT if occasion in state.windows}
        occasions = [*(occasion for occasion, last in collected.items() if last is not None and last.at < window.last.at), end.occasion]
    opened = {**state.windows, **{occasion: Window(now, now + notifications.digest_ms, decision=end.id) for occasion in occasions}}
    if end.occasion not in notifications.on:
        return Decision(replace(state, windows=opened), Outbox())
    notices = [_digest(state, occasion, end) for occasion in occasions if occasion in notifications.on]
    return Decision(replace(state, windows=opened), Outbox(tuple(notices), (), notifications.receivers))


def _digest(state: NotificationState, occasion: Occasion, end: WindowEnd) -> Notice:
    """The notice of the news that the window of an occasion holds back."""
    window = state.windows[occasion]
    assert window.last is not None
    row = (state.streak, state.since) if occasion is Occasion.FAILURE else (0, None)
    id = end.id if occasion is end.occasion else f"{end.id}.{occasion}"
    return Notice(id, occasion, window.last, window.count, window.first_at, *row)


def is_over(notice: Notice, state: NotificationState | None) -> bool:
    """Whether a notice of failure tells of an incident whose recovery was notified: a receiver must not see it begin after its end.

    The window of recoveries opens when such a notice is decided.
    """
    if notice.occasion not in INCIDENT:
        return False
    if notice.alert is not None:
        return alerting.is_over(notice, state)
    if state is None:
        return False
    window = state.windows.get(Occasion.RECOVERY)
    return window is not None and window.opened_at >= notice.news.at and state.succeeded_at >= notice.news.at


def awaited(state: NotificationState | None, now: int) -> dict[Occasion, Window]:
    """The windows whose notices of failure a recovery waits for: the last of each occasion, until its sendings are given up."""
    windows = {} if state is None else state.windows
    return {occasion: window for occasion, window in windows.items() if occasion in INCIDENT and now - window.opened_at < AWAITED_MS}


def is_awaited(notice: Notice, state: NotificationState | None, now: int) -> bool:
    """Whether a recovery waits for the first try of this notice of failure."""
    if notice.alert is not None:
        return True
    window = awaited(state, now).get(notice.occasion)
    return window is not None and notice.id in (window.decision, f"{window.decision}.{notice.occasion}")


def _happened(state: NotificationState, news: News, notifications: Notifications) -> tuple[NotificationState, list[Notice]]:
    """The state after the news, without its windows, and the notices that are due unless they are held back."""
    if news.ended is None:
        return state, [_notice(Occasion.LATE, news)]
    if news.ended is Status.SUCCEEDED:
        return _succeeded(state, news)
    return _failed(state, news, notifications)


def _succeeded(state: NotificationState, news: News) -> tuple[NotificationState, list[Notice]]:
    """A success ends the streak of failures, unless one of the failures happened after it."""
    notices = [_notice(Occasion.SUCCESS, news)]
    after = state
    if news.at > state.succeeded_at:
        after = replace(state, succeeded_at=news.at, succeeded=news.job)
    if news.at < state.failed_at:
        return after, notices
    if state.failing:
        notices.insert(0, _notice(Occasion.RECOVERY, news, state.streak, state.since))
    return replace(after, streak=0, since=None, failing=False), notices


def _failed(state: NotificationState, news: News, notifications: Notifications) -> tuple[NotificationState, list[Notice]]:
    killed = news.ended is Status.KILLED and Occasion.KILLED in notifications.on
    if news.at < state.succeeded_at:  # a later run has succeeded: this failure is a streak of its own, which has ended already
        if notifications.after_failures > 1 and not killed:
            return state, []
        failure = _notice(Occasion.KILLED if killed else Occasion.FAILURE, news, 1, news.at)
        over = replace(news, job=state.succeeded, ended=Status.SUCCEEDED, at=state.succeeded_at, error=None, response=None)
        return state, [failure, _notice(Occasion.RECOVERY, over, 1, news.at)]
    streak, since = state.streak + 1, news.at if state.since is None else min(state.since, news.at)
    enough = streak >= notifications.after_failures
    after = replace(state, streak=streak, since=since, failed_at=max(state.failed_at, news.at))
    after = replace(after, failing=state.failing or enough or killed)
    if killed:
        return after, [_notice(Occasion.KILLED, news, streak, since)]
    return after, [_notice(Occasion.FAILURE, news, streak, since)] if enough else []


def _passed(
    state: NotificationState, notice: Notice, notifications: Notifications, now: int, due: list[Notice], ends: list[WindowEnd]
) -> NotificationState:
    """Add the notice to those due, with the news held back in a window that has ended; or hold it back in the open window."""
    window = state.windows.get(notice.occasion)
    if window is None or now >= window.ends_at:
        collected = 0 if window is None else window.count
        first = notice.news.at if window is None or window.first_at is None else window.first_at
        due.append(replace(notice, count=collected + 1, first_at=first if collected else None))
        made = Window(now, now + notifications.digest_ms, decision=notice.news.id)
    else:
        if not window.count:
            ends.append(WindowEnd(notice.task, notice.occasion, window.opened_at, window.ends_at, notice.news.alone))
        first = notice.news.at if window.first_at is None else min(window.first_at, notice.news.at)
        made = replace(window, count=window.count + 1, first_at=first, last=notice.news)
    return replace(state, windows={**state.windows, notice.occasion: made})


def _emptied(state: NotificationState, occasions: tuple[Occasion, ...]) -> NotificationState:
    windows = {
        occasion: replace(window, count=0, first_at=None, last=None) if occasion in occasions else window
        for occasion, window in state.windows.items()
    }
    return replace(state, windows=windows)


def _notice(occasion: Occasion, news: News, failures: int = 0, since: int | None = None) -> Notice:
    return Notice(f"{news.id}.{occasion}", occasion, news, failures=failures, since=since)


def _news(job: Job, id: str, ended: Status | None, at: int) -> News:
    return News(
        task=TaskKey(job.owner, job.id if job.origin is None else job.origin.task),
        id=id,
        job=job.id,
        type=job.spec.type,
        ended=ended,
        at=at,
        scheduled_at=job.scheduled_at,
        started_at=job.started_at,
        delay_ms=job.delay_ms,
        attempts=job.charged,
        max_attempts=job.spec.max_attempts,
        error=error_of(job) if ended in lifecycle.DEAD else None,
        response=_response(job) if ended is not None else None,
        alone=job.origin is None,
    )


def error_of(job: Job) -> str | None:
    """The error of the last attempt, or the reason why the job had no attempt."""
    failure = job.attempts[-1].failure if job.attempts else None
    error = f"{failure.kind}: {failure.message}" if failure else job.reason
    return None if error is None else error[:LONGEST_ERROR]


def _response(job: Job) -> str | None:
    """The beginning of the target's response: status and body of an HTTP response, else the job's output."""
    if job.response is None:
        return None if job.output is None else job.output[:LONGEST_RESPONSE]
    response: Mapping[str, Any] = job.response
    status, body = response.get("status"), str(response.get("body") or "")
    return f"HTTP {status}\n{body}"[:LONGEST_RESPONSE] if status is not None else body[:LONGEST_RESPONSE]
