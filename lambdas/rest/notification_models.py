"""Shapes of the receivers of notices, and of the occasions. Receivers follow the rules for jobs of types `email` and `http`."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from lambdas.rest.request import Request
from lambdas.rest.resolution import Broken, Stage
from scheduler.model.notifications import USUAL, Notifications, Occasion, Webhook, WebhookFormat
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
    """`standard`: all fields as JSON, signed. `slack`: one text, for incoming webhooks of Slack, Mattermost and others."""
    signing_secret: Annotated[str, Field(max_length=200), AfterValidator(_secret)] | None = Field(None, validate_default=True)
    """The name of the secret that signs the calls, by Standard Webhooks. Optional with format slack: Slack checks no signature."""

    @field_validator("signing_secret")
    @classmethod
    def _signed(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Runs after the format was validated; an invalid one is reported already."""
        if value is None and info.data.get("format") is WebhookFormat.STANDARD:
            raise ValueError("is required, unless format is slack")
        return value


class NotificationsRequest(Request):
    """The receivers of notices about the job or the task's runs, and the occasions."""

    emails: Annotated[list[Address], Field(max_length=10)] = Field(default_factory=list)
    """E-mail addresses. Each receives a mail of its own."""
    webhooks: Annotated[list[WebhookRequest], Field(max_length=5)] = Field(default_factory=list)
    on: Annotated[list[_Occasion], Field(min_length=1, max_length=10)] = Field(default_factory=lambda: list(USUAL))
    """The occasions. Default: failure, and recovery (the first success after it). A killed run is a failure unless `killed` is listed."""
    after_failures: Annotated[int, Field(ge=1, le=1_000)] = _USUAL.after_failures
    """The number of consecutive failed runs before a notice of failure."""
    digest_seconds: Annotated[int, Field(ge=60, le=900)] = _USUAL.digest_ms // 1_000
    """At most one notice per occasion in this time. One digest reports the further events."""

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if not self.emails and not self.webhooks:
            raise ValueError("give emails, webhooks or both")
        return self

    def broken(self, stage: Stage) -> Iterator[Broken]:
        if not stage.reach.sender:
            rule = "this stage cannot send e-mail: its operators deploy a sender with the option email_sender"
            yield from ((("emails", number), rule) for number in range(len(self.emails)))
        else:
            found = ((number, email.refusal(address, stage.reach)) for number, address in enumerate(self.emails))
            yield from ((("emails", number), rule) for number, rule in found if rule is not None)
        for number, hook in enumerate(self.webhooks):
            yield from ((("webhooks", number, "url"), rule) for rule in _unreachable(hook.url, stage))

    @property
    def record(self) -> Notifications:
        """A receiver that is named twice is stored once."""
        return Notifications(
            emails=tuple(dict.fromkeys(self.emails)),
            webhooks=tuple(dict.fromkeys(Webhook(hook.url, hook.signing_secret, hook.format) for hook in self.webhooks)),
            on=tuple(dict.fromkeys(self.on)),
            after_failures=self.after_failures,
            digest_ms=self.digest_seconds * 1_000,
        )


def _unreachable(url: str, stage: Stage) -> Iterator[str]:
    if not stage.raw_http:
        yield "type http is disabled in this stage: give e-mail addresses"
        return
    try:
        http.check({"url": url}, stage.reach)
    except NotAllowed as error:
        yield str(error)
