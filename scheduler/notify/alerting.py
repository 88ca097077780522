"""The incidents of alerts: which news opens one, which closes it, and the notices of both. Pure.

An incident of a task and an alert opens with the first run that breaks the rule. Further runs that break it meanwhile join it. It closes
when no run breaks it any more: receivers get one notice when it opens, and one when it is over. An edit of the task ends the incident in
so far as a run that breaks the rule after it opens another one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from scheduler.model import ids, lifecycle
from scheduler.model.alerts import Alert
from scheduler.model.job import Job, Status
from scheduler.model.misfire import is_missed
from scheduler.model.notice import Incident, News, Notice, NotificationState, WatchedRun
from scheduler.model.notifications import Occasion

MOST_RUNS = 50  # in an incident
FORMER_MS = 6 * 3_600_000  # a notice that opens an incident waits for the one that closed the incident before, if that is younger
WAIVED = (Status.CANCELLED, Status.SKIPPED)  # the run is not to be done


def opened(state: NotificationState, news: News, now: int, edited_at: int) -> tuple[NotificationState, list[Notice]]:
    """The state after a run broke the rule `news.alert`, and the notice if an incident opens; if a later success is known, both notices."""
    alert, run = news.alert, WatchedRun(news.job, news.scheduled_at)
    assert alert is not None
    present = state.incidents.get(alert)
    has_succeeded = state.succeeded_at > news.at and state.succeeded >= ids.first(news.scheduled_at)  # a run not before this one
    is_over = alert in (Alert.MISSED, Alert.NOT_DONE) and has_succeeded
    if present is not None and present.runs and present.opened_at > edited_at:
        if run in present.runs or is_over:
            return state, []
        return _with(state, alert, replace(present, runs=(*present.runs, run)[-MOST_RUNS:], count=present.count + 1)), []
    former = "" if present is None or now - present.closed_at >= FORMER_MS else present.closing
    notice = Notice(f"{news.id}.opened", Occasion.FAILURE, news, since=now, alert=alert, opening=news.id, former=former)
    incident = Incident(now, news.id, (run,))
    if not is_over:
        return _with(state, alert, incident), [notice]
    success = replace(news, job=state.succeeded, ended=Status.SUCCEEDED, at=state.succeeded_at, error=None, response=None)
    return _with(state, alert, _over(incident, news, now)), [notice, _closing(alert, success, incident)]


def closed(state: NotificationState, news: News, now: int) -> tuple[NotificationState, list[Notice]]:
    """The state after an end or a start, and a notice for each incident that it closes."""
    notices = []
    for alert, incident in state.incidents.items():
        left = tuple(run for run in incident.runs if not _ends(alert, run, news))
        if left == incident.runs:
            continue
        if left:
            state = _with(state, alert, replace(incident, runs=left))
        else:
            state = _with(state, alert, _over(incident, news, now))
            notices.append(_closing(alert, news, incident))
    return state, notices


def is_over(notice: Notice, state: NotificationState | None) -> bool:
    """Whether the incident that a notice opened is over."""
    incident = None if state is None or notice.alert is None else state.incidents.get(notice.alert)
    return incident is None or not incident.runs or incident.decision != notice.opening


def of_change(before: Job | None, after: Job) -> Iterator[tuple[str, Status | None, int, Alert | None]]:
    """The news of alerts in one write of a watched run: the id, the status at its end, the instant, and the rule that it broke."""
    if after.claim is not None and (before is None or before.claim is None) and after.delay_ms is None:
        started = lifecycle.started_at(after)
        if started - after.scheduled_at >= lifecycle.LATE_MS:  # no run is late before
            yield f"{after.id}.started.{after.fence}", None, started, None
    if lifecycle.is_open(after) or (before is not None and not lifecycle.is_open(before)):
        return
    status = lifecycle.state(after)
    if status in WAIVED:
        at: int = getattr(after, lifecycle.FINAL_TIMES[status])
        yield f"{after.id}.{after.redrives}", status, at, None
        if is_missed(after):
            yield news_id(after, Alert.MISSED), status, at, Alert.MISSED


def over(job: Job, alert: Alert, now: int) -> tuple[Status | None, int] | None:
    """The status and the instant with which the job ended an incident of an alert; None: it still breaks the rule."""
    if not lifecycle.is_open(job):
        status = lifecycle.state(job)
        if alert is Alert.MISSED or (alert is Alert.NOT_DONE and status in lifecycle.DEAD):
            return None
        return status, getattr(job, lifecycle.FINAL_TIMES[status])
    if alert is Alert.LATE and (delay := lifecycle.delay(job, now)) is not None:
        return None, job.scheduled_at + delay
    return None


def news_id(job: Job, alert: Alert) -> str:
    """The id of the news that a run broke a rule."""
    return f"{job.id}.{alert}"


def _ends(alert: Alert, run: WatchedRun, news: News) -> bool:
    """Whether the news means that a run breaks the rule no longer."""
    own, succeeded = news.job == run.job, news.ended is Status.SUCCEEDED
    match alert:
        case Alert.LATE:
            return own and (news.ended is not None or news.watched)
        case Alert.LONG:
            return own and news.ended is not None
        case Alert.NOT_DONE:
            return (own and news.ended in WAIVED) or (succeeded and news.scheduled_at >= run.scheduled_at)
        case Alert.MISSED:
            return succeeded and news.scheduled_at >= run.scheduled_at


def _over(incident: Incident, news: News, now: int) -> Incident:
    return replace(incident, runs=(), closing=news.id, closed_at=now)


def _closing(alert: Alert, news: News, incident: Incident) -> Notice:
    id, opening = f"{incident.decision}.closed", incident.decision
    return Notice(id, Occasion.RECOVERY, news, incident.count, since=incident.opened_at, alert=alert, opening=opening, former=opening)


def _with(state: NotificationState, alert: Alert, incident: Incident) -> NotificationState:
    incidents: Mapping[Alert, Incident] = {**state.incidents, alert: incident}
    return replace(state, incidents=incidents)
