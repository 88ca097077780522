"""Named receivers: what an owner does with them. Notices name them; `scheduler.notify.notify` reads each when it sends."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.job import TaskKey
from scheduler.model.notice import News, Notice, Sending
from scheduler.model.notifications import Named, Notifications, Occasion
from scheduler.model.receiver import MOST, NAME, NamedReceiver, ReceiverKind, Region
from scheduler.storage.ports import Ports

TRIES = 5  # how often a change that collides with another one is tried
SEARCHED, PAGE = 5_000, 100  # tasks that a deletion reads, and how many at once
SHOWN = 5  # tasks that a refusal names
TEST_MS = 10_000  # a receiver gets at most one test in each of these periods
CUT = "…"  # stands for the part of an address that answers do not show
TEST_JOB = "test"  # the id and the type of the job that the notice of a test names


@dataclass(frozen=True, slots=True)
class NewReceiver:
    """A valid request for a receiver. `address` None, or as answers show it: the stored one stays."""

    owner: str
    name: str
    kind: ReceiverKind
    address: str | None
    signing_secret: str | None = None
    region: Region = Region.US
    default: bool = False


def find(owner: str, name: str, ports: Ports) -> NamedReceiver:
    """One receiver. Raises NotFound, also for a text that is no name of a receiver."""
    found = ports.receivers.find(owner, name) if re.fullmatch(NAME, name) else None
    if found is None:
        raise NotFound("there is no such receiver")
    return found


def with_default(notifications: Notifications, owner: str, ports: Ports) -> Notifications:
    """The notifications; if they name no receiver, with the default receivers of the owner. Raises Unavailable."""
    if notifications.receivers:
        return notifications
    return replace(notifications, named=tuple(each.name for each in ports.receivers.all(owner) if each.default))


def put(new: NewReceiver, ports: Ports) -> tuple[NamedReceiver, bool]:
    """Create or replace a receiver, whose health begins from scratch; return it, and whether it is new.

    Raises Invalid without an address that could be kept, and Conflict if the owner has `MOST` receivers.
    """
    now = ports.clock.now()
    for _ in range(TRIES):
        before = ports.receivers.find(new.owner, new.name)
        if before is None and len(ports.receivers.all(new.owner)) >= MOST:
            raise Conflict(f"an owner has at most {MOST} receivers: delete one first")
        after = NamedReceiver(
            *(new.owner, new.name, new.kind, _address(new, before)),
            created_at=now if before is None else before.created_at,
            updated_at=now,
            signing_secret=new.signing_secret,
            region=new.region,
            default=new.default,
            version=1 if before is None else before.version + 1,
        )
        if ports.receivers.put(before, after):
            return after, before is None
    raise Unavailable("the receiver keeps changing; try again")


def _address(new: NewReceiver, before: NamedReceiver | None) -> str:
    if new.address is not None and CUT not in new.address:
        return new.address
    if before is None or before.kind is not new.kind:
        raise Invalid.field("address", f"is required: there is no receiver of kind {new.kind} with this name")
    if new.address not in (None, before.shown_address):
        raise Invalid.field("address", f"must be a whole address: the stored one is {before.shown_address}")
    return before.address


def delete(owner: str, name: str, ports: Ports) -> NamedReceiver:
    """Delete a receiver. Raises NotFound, and Conflict while a monitor or one of the newest `SEARCHED` tasks of the owner names it."""
    for _ in range(TRIES):
        found = find(owner, name, ports)
        if using := tasks_with(owner, name, ports):
            raise Conflict(f"tasks notify this receiver: {', '.join(using)}; change or delete them first")
        if using := monitors_with(owner, name, ports):
            raise Conflict(f"monitors notify this receiver: {', '.join(using)}; change or delete them first")
        if ports.receivers.delete(found):
            return found
    raise Unavailable("the receiver keeps changing; try again")


def tasks_with(owner: str, name: str, ports: Ports) -> Sequence[str]:
    """The ids of the first `SHOWN` tasks that name a receiver, the newest first."""
    found, after = list[str](), None
    for _ in range(SEARCHED // PAGE):
        page = ports.tasks.page(owner, after=after, limit=PAGE)
        found += [task.id for task in page.tasks if task.notifications is not None and name in task.notifications.named]
        after = page.cursor
        if after is None or len(found) >= SHOWN:
            break
    return found[:SHOWN]


def monitors_with(owner: str, name: str, ports: Ports) -> Sequence[str]:
    """The keys of the first `SHOWN` monitors that name a receiver."""
    found, after = list[str](), None
    for _ in range(SEARCHED // PAGE):
        page, after = ports.monitors.listing(owner, after=after, limit=PAGE)
        found += [each.key for each in page if each.notifications is not None and name in each.notifications.named]
        if after is None or len(found) >= SHOWN:
            break
    return found[:SHOWN]


def delete_all(owner: str, ports: Ports) -> None:
    """Delete the receivers of an owner who is deleted. Idempotent."""
    for each in ports.receivers.all(owner):
        ports.receivers.delete(each)


def send_test(owner: str, name: str, ports: Ports) -> int:
    """Send a test by the way of all notices; return its instant. The receiver's health then has the result. Raises NotFound.

    Two tests within `TEST_MS` are one sending. It opens no incident that stays: see `formats.pagerduty`.
    """
    receiver, now = find(owner, name, ports), ports.clock.now()
    about = TaskKey(owner, f"test.{name}")
    period = f"{receiver.version}.{now // TEST_MS}"
    news = News(about, period, TEST_JOB, TEST_JOB, None, now, now)
    notice = Notice(period, Occasion.FAILURE, news, name=name, test=True)
    ports.notices.send([Sending(notice, Named(name), f"notice_{about.id}.{period}")], now)
    return now
