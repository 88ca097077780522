"""The parts of notify: it reaches receivers by the same code, and under the same rules, as jobs of types `email` and `http`."""

import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

from lambdas import _runtime
from lambdas._clock import SystemClock
from lambdas._settings import NotifySettings
from scheduler.model.job import Result
from scheduler.notify.notify import CALL_S, Post
from scheduler.notify.text import Links
from scheduler.storage.aws import clients
from scheduler.storage.aws.calls import AwsCalls
from scheduler.storage.aws.notice_queue import SqsNoticeQueue
from scheduler.storage.aws.notices import DynamoNotices
from scheduler.storage.aws.secret_values import StoredSecrets
from scheduler.storage.aws.tasks import DynamoTasks
from scheduler.storage.ports import Clock, Notices, Tasks
from scheduler.targets.base import Context, Reach, no_secrets
from scheduler.targets.types import email, http

AT_ONCE = 10  # threads: one for each message of a batch
GRACE_S = 5  # added to a receiver's time-out: to connect and to read secrets

logger = _runtime.logger


@dataclass(frozen=True)
class Notify:
    notices: Notices
    queue: SqsNoticeQueue
    tasks: Tasks
    clock: Clock
    threads: ThreadPoolExecutor
    post: Post


@cache
def notify() -> Notify:
    settings, clock = NotifySettings.parse(os.environ), SystemClock()
    client = clients.dynamodb()
    tasks = DynamoTasks(client, settings.tasks_table, jobs="", ledger="")  # it only reads
    links = Links(settings.console_url, settings.api_url.replace("{endpoint}", os.environ.get("AWS_ENDPOINT_URL", "")))
    sender = Sender(settings, clock)
    queue = SqsNoticeQueue(clients.sqs(), settings.notices_queue_url)
    threads = ThreadPoolExecutor(AT_ONCE, "notice")
    return Notify(DynamoNotices(client, settings.notices_table), queue, tasks, clock, threads, Post(sender.mail, sender.call, links))


class Sender:
    """Calls one receiver once."""

    def __init__(self, settings: NotifySettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._reach = Reach(sender=settings.email_sender, plain_http=settings.plain_http, hosts=settings.http_hosts)
        self._calls = AwsCalls()
        self._secrets = StoredSecrets(clients.secrets(), settings.secret_prefix)

    def mail(self, payload: Mapping[str, Any], id: str) -> Result:
        return email.run(payload, self._context(id))

    def call(self, owner: str, payload: Mapping[str, Any], id: str) -> Result:
        return http.run(payload, self._context(id, owner))

    def _context(self, id: str, owner: str | None = None) -> Context:
        return Context(
            job_id=id,
            attempt=1,
            deadline=self._clock.monotonic() / 1_000 + CALL_S + GRACE_S,
            stop=threading.Event(),
            allow_private=self._settings.allow_private_http,
            fetcher=self._settings.fetch_function,
            reach=self._reach,
            calls=lambda: self._calls,
            secrets=no_secrets if owner is None else lambda name: self._secrets.values(owner, name, self._clock.now()),
        )
