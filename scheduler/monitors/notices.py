"""The notices of a monitor, as messages for notify. Pure."""

from scheduler.model.job import Status, TaskKey
from scheduler.model.monitor import Monitor, NoticeKind, PendingNotice
from scheduler.model.notice import News, Notice, Sending
from scheduler.model.notifications import Occasion


def sendings(monitor: Monitor) -> list[Sending]:
    """One message for each pending notice and each receiver. The id of a message names the number of its notice."""
    receivers = () if monitor.notifications is None else monitor.notifications.receivers
    return [
        Sending(_notice(monitor, pending), receiver, f"notice_{monitor.id}.{pending.number}.{place}")
        for pending in monitor.pulse.pending
        for place, receiver in enumerate(receivers)
    ]


def _notice(monitor: Monitor, pending: PendingNotice) -> Notice:
    up = pending.kind is NoticeKind.UP
    news = News(
        task=TaskKey(monitor.owner, monitor.id),
        id=str(pending.number),
        job=monitor.key,
        type="monitor",
        ended=Status.SUCCEEDED if up else Status.FAILED,
        at=pending.at,
        scheduled_at=pending.at,
        error=pending.cause or None,
        monitor=pending.kind.value,
    )
    zone = "UTC" if monitor.schedule is None else monitor.schedule.spec.zone
    return Notice(str(pending.number), Occasion.RECOVERY if up else Occasion.FAILURE, news, name=monitor.name, zone=zone)
