"""A named receiver: a place to which an owner has notices sent. Its address is write-only: answers show its end."""

from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from scheduler.model.notifications import Webhook, WebhookFormat

NAME = r"[a-z0-9][a-z0-9._-]{0,62}"
MOST = 50  # receivers of an owner: each list reads them all
MOST_REFUSALS = 10  # notices in a row that a receiver has refused for good: it then gets no other one until a test reaches it
ENDING = 4  # characters of an address that answers show


class ReceiverKind(StrEnum):
    """The form in which a named receiver gets a notice."""

    EMAIL = "email"
    WEBHOOK = "webhook"  # all fields of the notice, signed by Standard Webhooks
    SLACK = "slack"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"  # incidents that open and resolve


class Region(StrEnum):
    """The region of a PagerDuty account."""

    US = "us"
    EU = "eu"


@dataclass(frozen=True, slots=True)
class PagerDuty:
    """A service of PagerDuty: its routing key, and where its account is."""

    routing_key: str
    region: Region = Region.US

    @property
    def url(self) -> str:
        """https://developer.pagerduty.com/docs/events-api-v2-overview"""
        return f"https://events{'.eu' if self.region is Region.EU else ''}.pagerduty.com/v2/enqueue"


@dataclass(frozen=True, slots=True)
class Health:
    """The last answers of a receiver, as far as they matter. It begins from scratch when its owner replaces the receiver."""

    refusals: int = 0  # notices in a row that were given up because the receiver refused them
    error: str | None = None  # of the last notice that was given up; None: the receiver has accepted one since
    failed_at: int | None = None
    tested_at: int | None = None  # when a test last reached it


@dataclass(frozen=True, slots=True)
class NamedReceiver:
    """A receiver of an owner. `version` rises with each change by its owner, and each change is conditional on it."""

    owner: str
    name: str
    kind: ReceiverKind
    address: str  # an e-mail address, a URL or a routing key of PagerDuty
    created_at: int
    updated_at: int
    signing_secret: str | None = None  # of a webhook
    region: Region = Region.US  # of PagerDuty
    default: bool = False  # it gets the notices of the owner's tasks that have notifications, but name no receiver
    version: int = 1
    health: Health = field(default_factory=Health)

    @property
    def target(self) -> str | Webhook | PagerDuty:
        """The place to call: an e-mail address, a webhook or a service of PagerDuty."""
        match self.kind:
            case ReceiverKind.EMAIL:
                return self.address
            case ReceiverKind.PAGERDUTY:
                return PagerDuty(self.address, self.region)
            case ReceiverKind.WEBHOOK:
                return Webhook(self.address, self.signing_secret)
            case ReceiverKind.SLACK | ReceiverKind.TEAMS:
                return Webhook(self.address, self.signing_secret, WebhookFormat(self.kind.value))

    @property
    def shown_address(self) -> str:
        """The address as answers show it: an e-mail address whole, of a URL the host, and the end of each secret."""
        if self.kind is ReceiverKind.EMAIL:
            return self.address
        end = f"…{self.address[-ENDING:]}"
        return end if self.kind is ReceiverKind.PAGERDUTY else f"https://{urlsplit(self.address).hostname}/{end}"

    @property
    def is_off(self) -> bool:
        """Whether it gets no notices, because it has refused `MOST_REFUSALS` in a row."""
        return self.health.refusals >= MOST_REFUSALS
