"""The receivers of notices as the API shows them. The archive keeps the same fields, so this module loads no HTTP resolver."""

from lambdas.rest.shapes import Json, Shape
from scheduler.model.notifications import Notifications, Occasion, WebhookFormat


class WebhookShape(Shape):
    url: str
    signing_secret: str | None
    """The name of the secret that signs the calls. Null: the calls are not signed."""
    format: WebhookFormat


class NotificationsShape(Shape):
    """The receivers, in the form that requests take."""

    emails: list[str]
    webhooks: list[WebhookShape]
    receivers: list[str]
    on: list[Occasion]
    after_failures: int
    digest_seconds: int

    @classmethod
    def of(cls, notifications: Notifications) -> Json:
        hooks = [WebhookShape.from_record(hook) for hook in notifications.webhooks]
        seconds = notifications.digest_ms // 1000
        return cls.from_record(notifications, webhooks=hooks, receivers=notifications.named, digest_seconds=seconds)
