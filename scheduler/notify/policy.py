"""What of a task's runs its receivers are told, and when. Pure: `scheduler.notify.notify` carries it out.

    run ends or starts late ─► News ─► decide ─┬─► Notice, told at once       ─► one Sending for each receiver
                                               └─► held back in a window ─┐
                                       its end ─► digest ─────────────────┴─► Notice, with how many they were

Of one task and occasion there is at most one notice in a window; what comes meanwhile is counted and told when the window ends, or by a
recovery before that. News come in any order and more than once: what happened last is what its own time says, and `News.id` is what
tells one from another.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.model import lifecycle
from scheduler.model.job import Job, Status, TaskKey
from scheduler.model.notifications import Notifications, Occasion, Webhook

KEPT_ERROR = 1_000  # characters of an error ...
KEPT_RESPONSE = 500  # ... and of an answer that a notice quotes


@dataclass(frozen=True, slots=True)
class News:
    """That a run ended, or started late: all that a notice says of it, for by the time it is told the job may have another life."""

    task: TaskKey
    id: str  # the same however often it is told
    job: str
    type: str
    ended: Status | None  # None: it started late
    at: int  # when
    scheduled_at: int
    started_at: int | None = None
    delay_ms: int | None = None
    attempts: int = 0  # that were charged
    max_attempts: int = 0
    error: str | None = None
    response: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Opened by a notice; what comes within it is held back."""

    opened_at: int
    ends_at: int
    count: int = 0  # how many are held back ...
    first_at: int | None = None  # ... since when ...
    last: News | None = None  # ... and the last of them


@dataclass(frozen=True, slots=True)
class Standing:
    """How a task stands with its receivers. There is one per task that has any; `version` is what every change is conditional on."""

    task: TaskKey
    streak: int = 0  # failures since the last success
    since: int | None = None  # the first of them
    failed_at: int = 0  # the last failure and the last success, by their own times
    succeeded_at: int = 0
    succeeded: str = ""  # the job that succeeded last
    failing: bool = False  # the streak is long enough to be told: its end is a recovery
    windows: Mapping[Occasion, Window] = field(default_factory=dict)
    version: int = 0  # 0: nothing is stored yet


@dataclass(frozen=True, slots=True)
class Notice:
    """What receivers are told; `news` is of the last one where `count` are told together."""

    id: str
    occasion: Occasion
    news: News
    count: int = 1
    first_at: int | None = None  # of several: the first one
    failures: int = 0  # of a failure and a recovery: how many were in the row
    since: int | None = None  # the first of these
    name: str = ""  # the task's
    next_run: int | None = None

    @property
    def task(self) -> TaskKey:
        return self.news.task


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """When to look whether a window has held anything back."""

    task: TaskKey
    occasion: Occasion
    opened_at: int  # names the window
    at: int

    @property
    def id(self) -> str:
        return f"digest.{self.occasion}.{self.opened_at}"


@dataclass(frozen=True, slots=True)
class Sending:
    """One notice to one receiver: an address, or a webhook."""

    notice: Notice
    receiver: str | Webhook
    id: str


@dataclass(frozen=True, slots=True)
class Outbox:
    """What has to be sent on because of one decision. Stored with it, so that whoever dies in between can be made good for."""

    notices: tuple[Notice, ...] = ()
    ends: tuple[WindowEnd, ...] = ()
    receivers: tuple[str | Webhook, ...] = ()

    def sendings(self) -> Iterator[Sending]:
        for notice in self.notices:
            for number, receiver in enumerate(self.receivers):
                yield Sending(notice, receiver, f"notice_{notice.news.task.id}.{notice.id}.{number}")


@dataclass(frozen=True, slots=True)
class Decision:
    """`outbox` None: nothing that could count twice has changed, so it need not be remembered that this was decided."""

    standing: Standing
    outbox: Outbox | None


@dataclass(frozen=True, slots=True)
class Mark:
    """How far one sending is. `version` is what every change is conditional on; 0: nothing is stored yet."""

    task: TaskKey
    id: str
    lease_until: int = 0  # until then whoever took it may be at it
    tries: int = 0
    done_at: int | None = None
    error: str | None = None  # of the last try; with `done_at`: it was given up
    version: int = 0


def of_change(before: Job | None, after: Job | None) -> Iterator[News]:
    """The news in one write of a job: none unless it is a run whose task had receivers when it was planned."""
    if after is None or after.origin is None or not after.origin.notify:
        return
    if after.claim is not None and (before is None or before.claim is None) and after.delay_ms is None:
        started = lifecycle.started_at(after)
        if started - after.scheduled_at >= lifecycle.LATE_MS:
            late = _news(after, f"{after.id}.late", None, started)
            yield replace(late, started_at=started, delay_ms=started - after.scheduled_at)
    if lifecycle.is_open(after) or (before is not None and not lifecycle.is_open(before)):
        return
    status = lifecycle.state(after)
    if status in (Status.SUCCEEDED, *lifecycle.DEAD):
        yield _news(after, f"{after.id}.{after.redrives}", status, getattr(after, lifecycle.FINAL_TIMES[status]))


def decide(standing: Standing, news: News, wanted: Notifications, now: int) -> Decision:
    """What the news change and whom they are told; `now` is what windows go by."""
    after, notices = _happened(standing, news, wanted)
    told, ends = list[Notice](), list[WindowEnd]()
    for notice in notices:
        if notice.occasion in wanted.on:
            after = _passed(after, notice, wanted, now, told, ends)
    if any(notice.occasion is Occasion.RECOVERY for notice in told):  # it tells how many failures there were
        after = _emptied(after, (Occasion.FAILURE, Occasion.KILLED))
    quiet = not told and after.windows == standing.windows and (after.streak, after.failing) == (standing.streak, standing.failing)
    return Decision(after, None if quiet else Outbox(tuple(told), tuple(ends), wanted.receivers))


def digest(standing: Standing, end: WindowEnd, wanted: Notifications, now: int) -> Decision | None:
    """What is told because the window ended. None: it held nothing back, or another one has taken its place."""
    window = standing.windows.get(end.occasion)
    if window is None or window.opened_at != end.opened_at or window.last is None:
        return None
    opened = {**standing.windows, end.occasion: Window(now, now + wanted.digest_ms)}
    if end.occasion not in wanted.on:
        return Decision(replace(standing, windows=opened), Outbox())
    row = (standing.streak, standing.since) if end.occasion is Occasion.FAILURE else (0, None)
    notice = Notice(end.id, end.occasion, window.last, window.count, window.first_at, *row)
    return Decision(replace(standing, windows=opened), Outbox((notice,), (), wanted.receivers))


def _happened(standing: Standing, news: News, wanted: Notifications) -> tuple[Standing, list[Notice]]:
    """The standing after the news, windows aside, and the notices that are due if nothing is held back."""
    if news.ended is None:
        return standing, [_notice(Occasion.LATE, news)]
    if news.ended is Status.SUCCEEDED:
        return _succeeded(standing, news)
    return _failed(standing, news, wanted)


def _succeeded(standing: Standing, news: News) -> tuple[Standing, list[Notice]]:
    """It ends the row of failures, unless one of them came after it."""
    notices = [_notice(Occasion.SUCCESS, news)]
    after = standing
    if news.at > standing.succeeded_at:
        after = replace(standing, succeeded_at=news.at, succeeded=news.job)
    if news.at < standing.failed_at:
        return after, notices
    if standing.failing:
        notices.insert(0, _notice(Occasion.RECOVERY, news, standing.streak, standing.since))
    return replace(after, streak=0, since=None, failing=False), notices


def _failed(standing: Standing, news: News, wanted: Notifications) -> tuple[Standing, list[Notice]]:
    killed = news.ended is Status.KILLED and Occasion.KILLED in wanted.on
    if news.at < standing.succeeded_at:  # a later run has succeeded: this is a row by itself, which has ended
        if wanted.after_failures > 1 and not killed:
            return standing, []
        failure = _notice(Occasion.KILLED if killed else Occasion.FAILURE, news, 1, news.at)
        over = replace(news, job=standing.succeeded, ended=Status.SUCCEEDED, at=standing.succeeded_at, error=None, response=None)
        return standing, [failure, _notice(Occasion.RECOVERY, over, 1, news.at)]
    streak, since = standing.streak + 1, news.at if standing.since is None else min(standing.since, news.at)
    enough = streak >= wanted.after_failures
    after = replace(standing, streak=streak, since=since, failed_at=max(standing.failed_at, news.at))
    after = replace(after, failing=standing.failing or enough or killed)
    if killed:
        return after, [_notice(Occasion.KILLED, news, streak, since)]
    return after, [_notice(Occasion.FAILURE, news, streak, since)] if enough else []


def _passed(standing: Standing, notice: Notice, wanted: Notifications, now: int, told: list[Notice], ends: list[WindowEnd]) -> Standing:
    """Tell it, with what was held back in a window that is over; or hold it back."""
    window = standing.windows.get(notice.occasion)
    if window is None or now >= window.ends_at:
        held = 0 if window is None else window.count
        first = notice.news.at if window is None or window.first_at is None else window.first_at
        told.append(replace(notice, count=held + 1, first_at=first if held else None))
        made = Window(now, now + wanted.digest_ms)
    else:
        if not window.count:
            ends.append(WindowEnd(notice.task, notice.occasion, window.opened_at, window.ends_at))
        first = notice.news.at if window.first_at is None else min(window.first_at, notice.news.at)
        made = replace(window, count=window.count + 1, first_at=first, last=notice.news)
    return replace(standing, windows={**standing.windows, notice.occasion: made})


def _emptied(standing: Standing, occasions: tuple[Occasion, ...]) -> Standing:
    windows = {
        occasion: replace(window, count=0, first_at=None, last=None) if occasion in occasions else window
        for occasion, window in standing.windows.items()
    }
    return replace(standing, windows=windows)


def _notice(occasion: Occasion, news: News, failures: int = 0, since: int | None = None) -> Notice:
    return Notice(f"{news.id}.{occasion}", occasion, news, failures=failures, since=since)


def _news(job: Job, id: str, ended: Status | None, at: int) -> News:
    assert job.origin is not None
    return News(
        task=TaskKey(job.owner, job.origin.task),
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
        error=_error(job) if ended in lifecycle.DEAD else None,
        response=_response(job) if ended is not None else None,
    )


def _error(job: Job) -> str | None:
    """Why its last attempt failed, or why it never got one."""
    failure = job.attempts[-1].failure if job.attempts else None
    told = f"{failure.kind}: {failure.message}" if failure else job.reason
    return None if told is None else told[:KEPT_ERROR]


def _response(job: Job) -> str | None:
    """The beginning of what its target answered: status and body of an answer by HTTP, else its output."""
    if job.response is None:
        return None if job.output is None else job.output[:KEPT_RESPONSE]
    answer: Mapping[str, Any] = job.response
    status, body = answer.get("status"), str(answer.get("body") or "")
    return f"HTTP {status}\n{body}"[:KEPT_RESPONSE] if status is not None else body[:KEPT_RESPONSE]
