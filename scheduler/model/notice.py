"""The notices of runs: news, windows, the stored state and outbox, and the messages of the notices queue."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.model.alerts import Alert
from scheduler.model.job import Status, TaskKey
from scheduler.model.notifications import Named, Occasion, Webhook


@dataclass(frozen=True, slots=True)
class News:
    """The end or the late start of a run, or a rule about time that it broke, with all facts that a notice quotes.

    The job may change before the notice is sent.
    """

    task: TaskKey  # of a one-time job: its owner and its own id
    id: str  # the same for each report of this event
    job: str
    type: str
    ended: Status | None  # None: the run started late
    at: int  # the instant of the end or the start
    scheduled_at: int
    started_at: int | None = None
    delay_ms: int | None = None
    attempts: int = 0  # attempts used
    max_attempts: int = 0
    error: str | None = None
    response: str | None = None
    alone: bool = False  # of a one-time job, whose receivers are its own
    alert: Alert | None = None  # the rule that the run broke, by the deadline `at`
    watched: bool = False  # it ends incidents of alerts, and has no other effect; `ended` None: the run has started
    monitor: str | None = None  # of a monitor: a `NoticeKind`; `task` has the id of the monitor then, and `job` its key


@dataclass(frozen=True, slots=True)
class Window:
    """A period after a notice in which further news of its occasion are held back."""

    opened_at: int
    ends_at: int
    count: int = 0  # number of news held back ...
    first_at: int | None = None  # ... the instant of the first ...
    last: News | None = None  # ... and the last of them
    decision: str = ""  # the message whose outbox has the notice that opened it


class WatchedRun(NamedTuple):
    """A run that broke a rule."""

    job: str
    scheduled_at: int


@dataclass(frozen=True, slots=True)
class Incident:
    """The last incident of an alert: the runs of a task that break one rule at the same time. Its last run closes it."""

    opened_at: int
    decision: str  # the message whose outbox has the notice that opened it
    runs: tuple[WatchedRun, ...]  # the last `MOST_RUNS` runs that still break the rule; empty: it is over
    count: int = 1  # the number of runs so far
    closing: str = ""  # the message whose outbox has the notice that closed it
    closed_at: int = 0


@dataclass(frozen=True, slots=True)
class NotificationState:
    """The notification state of a task, stored for each task with news; every change is conditional on `version`."""

    task: TaskKey
    streak: int = 0  # failures since the last success
    since: int | None = None  # the instant of the first of them
    failed_at: int = 0  # the last failure and the last success, by their own times
    succeeded_at: int = 0
    succeeded: str = ""  # the job that succeeded last
    failing: bool = False  # the streak is long enough to be reported: its end is a recovery
    windows: Mapping[Occasion, Window] = field(default_factory=dict)
    version: int = 0  # 0: nothing is stored yet
    incidents: Mapping[Alert, Incident] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notice:
    """The content of a notification. If it reports `count` events together, `news` is the last of them."""

    id: str
    occasion: Occasion
    news: News
    count: int = 1
    first_at: int | None = None  # the instant of the first of several events
    failures: int = 0  # of a failure and a recovery: failures in a row
    since: int | None = None  # the instant of the first of these
    name: str = ""  # the task's
    next_run: int | None = None
    zone: str = "UTC"  # of the task's schedule: people read the times of the notice in it
    alert: Alert | None = None  # of an incident of an alert; the occasion `FAILURE` opens it, `RECOVERY` closes it
    opening: str = ""  # of such an incident: the message whose outbox has the notice that opened it
    former: str = ""  # of such an incident: the message whose outbox has the notice that goes before this one at each receiver
    test: bool = False  # it tests a named receiver: nothing has happened

    @property
    def task(self) -> TaskKey:
        return self.news.task


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """The end of a window: a delayed message, upon which notify reports the events that the window held back."""

    task: TaskKey
    occasion: Occasion
    opened_at: int  # identifies the window
    at: int
    alone: bool = False  # as of `News`

    @property
    def id(self) -> str:
        return f"digest.{self.occasion}.{self.opened_at}"


@dataclass(frozen=True, slots=True)
class Sending:
    """One notice to one receiver: an e-mail address, a webhook or a named receiver."""

    notice: Notice
    receiver: str | Webhook | Named
    id: str


@dataclass(frozen=True, slots=True)
class Outbox:
    """The messages that follow from one decision. It is stored with the decision, so that they are sent even if notify ends in between."""

    notices: tuple[Notice, ...] = ()
    ends: tuple[WindowEnd, ...] = ()
    receivers: tuple[str | Webhook | Named, ...] = ()

    def sendings(self) -> Iterator[Sending]:
        for notice in self.notices:
            for number, receiver in enumerate(self.receivers):
                yield Sending(notice, receiver, f"notice_{notice.news.task.id}.{notice.id}.{number}")


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """The progress of one sending. Every change is conditional on `version`; 0: nothing is stored yet."""

    task: TaskKey
    id: str
    lease_until: int = 0  # until then the process that took the lease may be sending
    tries: int = 0
    done_at: int | None = None
    error: str | None = None  # of the last try; with `done_at`: notify gave up
    version: int = 0


NoticeMessage = News | WindowEnd | Sending


class ReceivedNotice(NamedTuple):
    """One received message. `receipt`: for its deletion or its next delivery."""

    message_id: str
    receipt: str
    message: NoticeMessage
    sent_at: int | None = None
