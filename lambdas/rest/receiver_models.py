"""Shapes of named receivers. Their addresses follow the rules for jobs of types `email` and `http`."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from pydantic import Field

from lambdas.rest import notification_models as places
from lambdas.rest.request import Request
from lambdas.rest.resolution import Broken, Stage
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime
from scheduler.model.errors import Invalid
from scheduler.model.receiver import NAME, NamedReceiver, PagerDuty, ReceiverKind, Region
from scheduler.notify.receivers import CUT, NewReceiver
from scheduler.targets import credentials
from scheduler.targets.types import email, http

ROUTING_KEY = r"[A-Za-z0-9]{32}"


class ReceiverRequest(Request):
    """A receiver. An absent field gets its default, except `address`, which then stays."""

    kind: Annotated[ReceiverKind, Field(strict=False)]
    """`webhook`: all fields as JSON, signed. `slack`, `teams`: a message. `pagerduty`: incidents that open and resolve."""
    address: Annotated[str, Field(min_length=1, max_length=4_096)] | None = None
    """An e-mail address, a URL, or the routing key of a PagerDuty service. No answer shows it. Absent: the stored one stays."""
    signing_secret: Annotated[str, Field(max_length=200)] | None = None
    """The name of the secret that signs the calls, by Standard Webhooks. Required for kind webhook."""
    region: Annotated[Region, Field(strict=False)] = Region.US
    """The region of the PagerDuty account."""
    default: bool = False
    """True: it gets the notices of all tasks and jobs whose notifications name no receiver."""

    def broken(self, stage: Stage) -> Iterator[Broken]:
        if self.address is not None and CUT not in self.address:
            yield from ((("address",), rule) for rule in _broken_address(self, self.address, stage))
        signs = self.kind in (ReceiverKind.WEBHOOK, ReceiverKind.SLACK, ReceiverKind.TEAMS)
        if self.signing_secret is None:
            if self.kind is ReceiverKind.WEBHOOK:
                yield ("signing_secret",), "is required for kind webhook"
        elif not signs:
            yield ("signing_secret",), f"must be absent for kind {self.kind}"
        else:
            yield from ((("signing_secret",), rule) for rule in _broken_by(credentials.is_name, self.signing_secret))
        if self.region is not Region.US and self.kind is not ReceiverKind.PAGERDUTY:
            yield ("region",), "is for kind pagerduty only"

    def new(self, owner: str, name: str) -> NewReceiver:
        """The receiver that is requested. Raises Invalid for a bad name."""
        if re.fullmatch(NAME, name) is None:
            raise Invalid.field(
                "receiver", "must be 1 to 63 lower-case letters, digits, dots, dashes or underscores, and not begin with a sign"
            )
        return NewReceiver(owner, name, self.kind, self.address, self.signing_secret, self.region, self.default)


def _broken_address(receiver: ReceiverRequest, address: str, stage: Stage) -> Iterator[str]:
    """The rules that an address breaks: those of its kind or, if it breaks none, those of the stage."""
    if receiver.kind is ReceiverKind.EMAIL:
        yield from list(_broken_by(email.is_address, address)) or places.unmailable(address, stage)
    elif receiver.kind is not ReceiverKind.PAGERDUTY:
        yield from list(_broken_by(http.is_url, address)) or places.unreachable(address, stage)
    elif re.fullmatch(ROUTING_KEY, address) is None:
        yield "must be the routing key of a service: 32 letters and digits"
    else:
        yield from places.unreachable(PagerDuty(address, receiver.region).url, stage)


def _broken_by(check: Callable[[str], object], text: str) -> Iterator[str]:
    """The rule that a text breaks by a check, which raises ValueError."""
    try:
        check(text)
    except ValueError as error:
        yield str(error)


class ReceiverShape(Shape):
    """A receiver, without its address."""

    name: str
    kind: ReceiverKind
    address: str
    """The address as far as it is no secret: of a URL the host and its last characters."""
    signing_secret: str | None
    region: Region
    default: bool
    created_at: WrittenTime
    updated_at: WrittenTime
    off: bool
    """True: it has refused ten notices in a row, and gets no more until a test reaches it or you replace it."""
    error: str | None
    """The reason why the last notice was given up. Null: the receiver has accepted one since."""
    failed_at: WrittenTime | None
    tested_at: WrittenTime | None
    """The last time at which a test reached it."""

    @classmethod
    def of(cls, receiver: NamedReceiver) -> Json:
        health = receiver.health
        lately = {"error": health.error, "failed_at": health.failed_at, "tested_at": health.tested_at}
        return cls.from_record(receiver, address=receiver.shown_address, off=receiver.is_off, **lately)


class ReceiversShape(ListShape):
    items: list[ReceiverShape]

    @classmethod
    def of(cls, receivers: Iterable[NamedReceiver]) -> Json:
        return cls.page([ReceiverShape.of(each) for each in receivers], None)


class DeletedReceiverShape(Shape):
    """The receiver that was deleted."""

    name: str


class RequestedTestShape(Shape):
    """A test that was sent. The receiver then shows its result, in `tested_at` or in `failed_at` and `error`."""

    name: str
    requested_at: WrittenTime
