"""Shapes of the receivers of notices, and of the occasions. Receivers follow the rules for jobs of types `email` and `http`."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from lambdas.rest.request import Request
from lambdas.rest.resolution import Broken, Stage
from scheduler.model.notifications import USUAL, Notifications, Occasion, Webhook, WebhookFormat
from scheduler.model.receiver import NamedReceiver, ReceiverKind
from scheduler.targets import credentials
from scheduler.targets.base import NotAllowed
from scheduler.targets.types import email, http

_Occasion = Annotated[Occasion, Field(strict=False)]  # an enum has no form of its own in JSON
_USUAL = Notifications()


def _address(text: str) -> str:
    email.is_address(text)
    return text


def _url(text: str) -> str:
    http.is_url(text)
    return text


def _secret(text: str) -> str:
    credentials.is_name(text)
    return text


Address = Annotated[str, Field(max_length=254), AfterValidator(_address)]


class WebhookRequest(Request):
    """A URL that receives every notice."""

    url: Annotated[str, Field(max_length=4_096), AfterValidator(_url)]
    """The URL, by the rules for jobs of type http."""
    format: Annotated[WebhookFormat, Field(strict=False)] = WebhookFormat.STANDARD
    """`standard`: all fields as JSON, signed. `slack`: one text, for incoming webhooks of Slack, Mattermost and others.
    `teams`: an Adaptive Card, for webhooks of Workflows in Teams."""
    signing_secret: Annotated[str, Field(max_length=200), AfterValidator(_secret)] | None = Field(None, validate_default=True)
    """The name of the secret that signs the calls, by Standard Webhooks. Optional for slack and teams, which check none."""

    @field_validator("signing_secret")
    @classmethod
    def _signed(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Runs after the format was validated; an invalid one is reported already."""
        if value is None and info.data.get("format") is WebhookFormat.STANDARD:
            raise ValueError("is required, unless format is slack or teams")
        return value


class NotificationsRequest(Request):
    """The receivers of notices about the job or the task's runs, and the occasions. Without any receiver: your default receivers."""

    emails: Annotated[list[Address], Field(max_length=10)] = Field(default_factory=list)
    """E-mail addresses. Each receives a mail of its own."""
    webhooks: Annotated[list[WebhookRequest], Field(max_length=5)] = Field(default_factory=list)
    receivers: Annotated[list[str], Field(max_length=10)] = Field(default_factory=list)
    """The names of receivers of yours: see `PUT /receivers/{receiver}`."""
    on: Annotated[list[_Occasion], Field(min_length=1, max_length=10)] = Field(default_factory=lambda: list(USUAL))
    """The occasions. Default: failure, and recovery (the first success after it). A killed run is a failure unless `killed` is listed."""
    after_failures: Annotated[int, Field(ge=1, le=1_000)] = _USUAL.after_failures
    """The number of consecutive failed runs before a notice of failure."""
    digest_seconds: Annotated[int, Field(ge=60, le=900)] = _USUAL.digest_ms // 1_000
    """At most one notice per occasion in this time. One digest reports the further events."""

    def broken(self, stage: Stage) -> Iterator[Broken]:
        for number, address in enumerate(self.emails):
            yield from ((("emails", number), rule) for rule in unmailable(address, stage))
        for number, hook in enumerate(self.webhooks):
            yield from ((("webhooks", number, "url"), rule) for rule in unreachable(hook.url, stage))
        if self.receivers or not (self.emails or self.webhooks):
            yield from self._broken_receivers({each.name: each for each in stage.receivers()})

    def _broken_receivers(self, known: Mapping[str, NamedReceiver]) -> Iterator[Broken]:
        for number, name in enumerate(self.receivers):
            if name not in known:
                yield ("receivers", number), "there is no such receiver; GET /receivers lists yours"
        if not (self.emails or self.webhooks or self.receivers or any(each.default for each in known.values())):
            yield (), "give emails, webhooks or receivers: you have no default receiver (punctual receivers put NAME KIND --default)"
        incidents = [name for name in self.receivers if name in known and known[name].kind is ReceiverKind.PAGERDUTY]
        if incidents and Occasion.RECOVERY not in self.on:
            yield ("on",), f"must have recovery: without it no incident of the receiver {incidents[0]} is resolved"

    @property
    def record(self) -> Notifications:
        """A receiver that is named twice is stored once."""
        return Notifications(
            emails=tuple(dict.fromkeys(self.emails)),
            webhooks=tuple(dict.fromkeys(Webhook(hook.url, hook.signing_secret, hook.format) for hook in self.webhooks)),
            on=tuple(dict.fromkeys(self.on)),
            after_failures=self.after_failures,
            digest_ms=self.digest_seconds * 1_000,
            named=tuple(dict.fromkeys(self.receivers)),
        )


def unmailable(address: str, stage: Stage) -> Iterator[str]:
    """The rule of the stage that forbids mail to an address."""
    if not stage.reach.sender:
        yield "this stage cannot send e-mail: its operators deploy a sender with the option email_sender"
    elif (rule := email.refusal(address, stage.reach)) is not None:
        yield rule


def unreachable(url: str, stage: Stage) -> Iterator[str]:
    """The rule of the stage that forbids calls of a URL."""
    if not stage.raw_http:
        yield "type http is disabled in this stage: give e-mail addresses"
        return
    try:
        http.check({"url": url}, stage.reach)
    except NotAllowed as error:
        yield str(error)
