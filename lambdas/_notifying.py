"""The composition root of notify. It calls receivers by the code, and under the rules, of jobs of the types `email` and `http`."""

import os
import threading
from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from lambdas import _runtime
from lambdas._settings import Settings
from scheduler.model.job import Result
from scheduler.notify.calls import AT_ONCE
from scheduler.notify.notify import CALL_S, Post
from scheduler.notify.text import Links
from scheduler.storage.aws import clients, parameters
from scheduler.storage.aws.calls import AwsCalls
from scheduler.targets import mail_budget
from scheduler.targets.base import Context
from scheduler.targets.job_context import JobContext
from scheduler.targets.types import email, http

GRACE_S = 5  # added to a receiver's time-out: to connect and to read secrets


class Notifier(_runtime.AwsPorts):
    """The ports of notify, and the state that its process keeps from one batch to the next."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        sender = Sender(self)
        console = parameters.read(clients.parameters(), settings.console_address)
        self.post = Post(sender.mail, sender.call, links(console, settings.api_url, os.environ.get("AWS_ENDPOINT_URL", "")))
        self.threads: Executor = ThreadPoolExecutor(AT_ONCE, "notice")


def links(console: str | None, api: str, endpoint: str) -> Links:
    """The addresses of the stage. Those of the local AWS have a place for its address or its port."""
    port = str(urlsplit(endpoint).port or "")
    return Links((console or "").replace("{port}", port), api.replace("{endpoint}", endpoint))


@cache
def notify() -> Notifier:
    return Notifier(Settings.parse(os.environ))


class Sender:
    """Sends one notification to one receiver, once. The result is that of the target; the caller decides about retries."""

    def __init__(self, ports: _runtime.AwsPorts) -> None:
        self._ports = ports
        self._calls = AwsCalls(ports.clock)

    def mail(self, owner: str, payload: Mapping[str, Any], id: str) -> Result:
        return email.run(payload, self._context(id, owner))

    def call(self, owner: str, payload: Mapping[str, Any], id: str) -> Result:
        return http.run(payload, self._context(id, owner))

    def _context(self, id: str, owner: str) -> Context:
        at = self._ports
        return Context(
            JobContext(id),
            deadline=self._ports.clock.monotonic() / 1_000 + CALL_S + GRACE_S,
            stop=threading.Event(),
            allow_private=self._ports.rules.allow_private_http,
            fetcher=self._ports.settings.fetch_function,
            reach=self._ports.reach,
            calls=lambda: self._calls,
            secrets=lambda name: at.secrets.values(owner, name, at.clock.now()),
            admits_mail=lambda recipients: mail_budget.admit(owner, recipients, at.rules.mails_per_day, at.users, at.clock.now()),
        )
