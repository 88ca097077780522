"""The process of an executor: its caches, threads and child processes, from one batch to the next, and the means of its jobs."""

import os
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lambdas import _pool
from lambdas._children import Children
from lambdas._fetch_warmer import FetchWarmer
from lambdas._logger import logger
from lambdas._pool import THREADS, InOrder, Resources, ThreadPool
from lambdas._settings import Settings
from scheduler.callbacks.reports import Addresses
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, Lane
from scheduler.pipeline.latency import REPORTERS
from scheduler.pipeline.process import Process
from scheduler.storage.ports import Ports
from scheduler.targets import registry
from scheduler.targets.call_limit import CallLimit

if TYPE_CHECKING:
    from scheduler.targets.calls import Calls


class Executor:
    """The process of an executor, over its ports."""

    def __init__(self, ports: Ports, settings: Settings) -> None:
        self.ports = ports
        self.lane = Lane(settings.lane)
        self.process = Process.of(self.lane, str(secrets.randbelow(REPORTERS)), ports, self.ahead)
        self.resources = Resources(
            ThreadPoolExecutor(THREADS, "job"),
            ports.clock,
            Children(),
            lambda: ports.outputs,
            in_order=InOrder(ports.clock),
            reach=settings.reach,
            calls=lambda: self.calls,
            callbacks=Addresses(settings.api_url.replace("{endpoint}", os.environ.get("AWS_ENDPOINT_URL", "")), ports.secrets).of,
            named=self.process.named,
            fetcher=settings.fetch_function,
            private_fetcher=settings.fetch_private_function,
            limit=CallLimit(settings.rules.calls_at_once),
            secrets=self._secrets_of,
            admits_mail=self._admits_mail,
            trace_ratio=settings.rules.traced,
        )
        self._warmers = {
            function: FetchWarmer(partial(self._start_fetch, function), ports.clock)
            for function in (settings.fetch_function, settings.fetch_private_function)
        }

    def pool(self) -> ThreadPool:
        """Return a pool for the jobs of one batch."""
        return ThreadPool(replace(self.resources, allow_private=self.ports.rules.allow_private_http))

    def ahead(self, job: Job, jobs: int) -> int:
        """Return how long before its instant (ms) the pool gets a job that the executor has just taken; `jobs`: those of its batch."""
        try:
            target = registry.load(job.spec.type)  # also imports the type, before the instant
        except registry.UnknownType:  # the pool reports it, for this job alone
            return 0
        if target.ahead_ms and self.resources.private_fetcher and job.spec.target is not None:
            with suppress(Unavailable):  # the job's gate reads it again
                self.process.named.find(job.spec.target)  # whether it is private
        function = self.resources.function_of(job) if target.ahead_ms else ""
        if not function:
            return _pool.ahead(jobs, prepares=target.prepares)
        self._warmers[function].use(job.due_at, (job.spec.attempt_ms + target.ahead_ms) / 1000)
        return target.ahead_ms

    @cached_property
    def calls(self) -> "Calls":
        """The means by which the executor calls AWS for its jobs. It is loaded with the first job that needs it."""
        from scheduler.storage.aws.calls import AwsCalls

        return AwsCalls(self.ports.clock)

    def _start_fetch(self, function: str, seconds: float) -> None:
        """Start a function that calls URLs, for a job with this time-out."""
        from scheduler.targets import aws_call, fetch_call
        from scheduler.targets.calls import Refused

        limit, is_busy = self.resources.limit, False
        if not limit.take():
            return
        try:
            aws_call.invoke(self.calls, function, "{}", wait=True, left=lambda: seconds)
        except Exception as error:  # the job itself reports a lasting error
            is_busy = isinstance(error, Refused) and error.code in fetch_call.BUSY
            logger.info("could not start the function that calls URLs ahead of its first job")
        finally:
            (limit.refused if is_busy else limit.answered)()

    def _admits_mail(self, job: Job, recipients: int) -> bool:
        from scheduler.targets import mail_budget  # with the first e-mail

        return mail_budget.admit(job.owner, recipients, self.ports.rules.mails_per_day, self.ports.users, self.ports.clock.now())

    def _secrets_of(self, job: Job, name: str) -> Sequence[str]:
        """Return the values of a secret of the job's owner, or of its named target if `named_target.secret_of` composed the name."""
        target, _, own = name.rpartition("/")
        return self.ports.secrets.values(f"targets/{target}" if target else job.key.owner, own, self.ports.clock.now())
