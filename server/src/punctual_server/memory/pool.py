"""The pool of an executor in memory: it calls a job's target at the job's instant, and the call takes the virtual time that it is given."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lab.world.hub import Hub
from scheduler.callbacks.reports import Addresses
from scheduler.model.job import Awaited, Failure, FailureKind, Finished, Job, Result, TaskHead
from scheduler.pipeline.output_store import keep
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.targets import named_target, registry
from scheduler.targets.base import Context, Reach
from scheduler.targets.calls import Calls, Left, Refused
from scheduler.targets.calls import Request as AwsRequest
from scheduler.targets.http_answer import READ_LIMIT, Answer, Broken
from scheduler.targets.job_context import JobContext
from urllib3 import HTTPHeaderDict

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Call:
    """A request of an `http` job, sent at the instant `at` (UTC ms)."""

    at: int
    job_id: str
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """The answer to a call, and the virtual time (ms) after which it arrives."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    takes: int = 0


class Raised(Exception):
    """The program that was called raised an error instead of an answer."""


Answering = Callable[[Call], Reply]  # raises Raised


class NoAws(Calls):
    """There is no AWS here: a job that needs it fails."""

    def send(self, request: AwsRequest, *, left: Left) -> Mapping[str, object]:
        raise Refused("NotInMemory", f"punctual.testing calls no AWS ({request.service} {request.operation})", retryable=False)


@dataclass(eq=False)
class _Running:
    job: Job
    task: TaskHead | None
    begins_at: int
    ends_at: int | None = None  # None: it has not begun
    result: Result = field(default_factory=Result)


@dataclass
class MemoryPool:
    """The port `Pool`."""

    hub: Hub
    ports: MemoryPorts
    addresses: Addresses
    reach: Reach
    answering: Answering
    _running: list[_Running] = field(default_factory=list)

    def has_room(self, job: Job) -> bool:
        return True

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        self._running.append(_Running(job, task, max(job.due_at, self.hub.time)))

    def wait(self, until: int) -> list[Finished]:
        hub = self.hub
        while True:
            following = min([each.begins_at if each.ends_at is None else each.ends_at for each in self._running], default=until)
            hub.sleep_until(max(min(following, until), hub.time))
            now = hub.time
            for each in [each for each in self._running if each.ends_at is None and each.begins_at <= now]:
                self._begin(each)
            done = [each for each in self._running if each.ends_at is not None and each.ends_at <= now]
            if done or now >= until:
                self._running = [each for each in self._running if each not in done]
                return [Finished(each.job, each.begins_at, now, each.result) for each in done]

    def cancel(self, job: Job) -> None:
        for each in self._of(job):
            each.ends_at, each.result = self.hub.time, Result(failure=Failure(FailureKind.TIMEOUT, "stopped before the answer came"))

    def kill(self, job: Job) -> None:
        self._running = [each for each in self._running if each.job.key != job.key]

    def stop(self) -> None:
        self._running.clear()

    def intent(self, job: Job, task: TaskHead | None) -> Awaited | None:
        try:
            return registry.load(job.spec.type).intent(job.spec.payload, job, JobContext.of(job, task))
        except Exception:  # `start` reports what is wrong with the job
            return None

    def _of(self, job: Job) -> list[_Running]:
        return [each for each in self._running if each.job.key == job.key]

    def _begin(self, each: _Running) -> None:
        each.begins_at = self.hub.time
        result, takes = self._result(each.job, each.task)
        each.result, each.ends_at = keep(each.job, result, lambda: self.ports.outputs), each.begins_at + takes

    def _result(self, job: Job, task: TaskHead | None) -> tuple[Result, int]:
        """Run the target. Returns its result, and the virtual time (ms) that it takes."""
        now, takes = self.hub.time, 0

        def exchange(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
            nonlocal takes
            try:
                reply = self.answering(Call(now, job.id, method, url, dict(headers), body or b""))
            except Raised as error:
                raise Broken(str(error)) from error
            takes = reply.takes
            content = b"" if method == "HEAD" else reply.body
            return Answer(reply.status, HTTPHeaderDict(reply.headers), content[:READ_LIMIT], is_longer=len(content) > READ_LIMIT)

        try:
            context = Context(
                of_job := JobContext.of(job, task),
                deadline=time.monotonic() + job.spec.timeout_ms / 1000,
                stop=threading.Event(),
                allow_private=True,
                reach=self.reach,
                calls=NoAws,
                callback=None if job.spec.callback is None else self.addresses.of(job, now),
                secrets=lambda name: self.ports.secrets.values(job.key.owner, name.rpartition("/")[2], now),
                timeout_seconds=job.spec.timeout_ms / 1000,
                exchange=exchange,
            )
            target = None if job.spec.target is None else self.ports.targets.targets([job.spec.target]).get(job.spec.target)
            payload = named_target.work_of(job, target, of_job)
            if isinstance(payload, Failure):
                return Result(failure=payload), 0
            declared = registry.load(job.spec.type)
            if payload.get("sleep_seconds") and job.spec.type == "log":
                takes = round(float(payload["sleep_seconds"]) * 1000)
                payload = {**payload, "sleep_seconds": 0}
            result = declared.attempt(payload, context)
        except registry.UnknownType as error:
            return Result(failure=Failure(FailureKind.REFUSED, str(error))), 0
        except Exception as error:
            log.exception("the target raised", extra=job.log_context())
            return Result(failure=Failure(FailureKind.RETRYABLE, f"{type(error).__name__}: {error}")), 0
        own = declared.time_limit_ms(payload)
        if takes >= job.spec.timeout_ms:
            return Result(failure=Failure(FailureKind.TIMEOUT, context.cut())), job.spec.timeout_ms
        if own is not None and takes >= own:
            failure = Failure(FailureKind.RETRYABLE, f"no answer within {own / 1000:g} s, the timeout_seconds of its payload")
            return Result(failure=failure), own
        return replace(result, began_at=None), takes
