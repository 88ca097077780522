"""Runs an executor's jobs in parallel: a thread with a deadline for each, and a child process for jobs that compute in the executor."""

import heapq
import itertools
import logging
import math
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter

from lambdas._children import Children
from lambdas._clock import seconds_until
from scheduler.admission.target_cache import TargetCache
from scheduler.model import callback_lease, lifecycle
from scheduler.model.errors import SchedulerError
from scheduler.model.job import Awaited, Failure, FailureKind, Finished, Job, JobKey, Result, TaskHead
from scheduler.model.named_target import NamedTarget
from scheduler.pipeline.output_store import keep
from scheduler.storage.ports import Clock, Outputs
from scheduler.targets import named_target, registry
from scheduler.targets.base import CallBackAddress, Context, NotBegun, Reach, any_mail, no_calls, no_secrets
from scheduler.targets.call_limit import ALL_BUSY, CallLimit, Waiting, patience
from scheduler.targets.calls import Calls
from scheduler.targets.job_context import JobContext
from scheduler.targets.target_type import Fields, TargetType

THREADS = 256  # jobs that an executor runs in parallel: each waits in a thread of its own for the answer of its target ...
CHILDREN = 10  # ... and jobs that compute in the executor itself, each in a process of its own
AHEAD_MS, EACH_MS, MOST_AHEAD_MS = 25, 0.1, 200  # how long before its instant a thread gets a job: see `ahead`
PREPARE_EACH_MS, MOST_PREPARE_MS = 5, 400  # the same of jobs that prepare a call, such as to open its connection
AWS_CALL_MS = 60_000  # to start work in AWS whose end is awaited, or to check it: it takes a second
LATE_MS = 2_000  # a job that came ahead and would begin this late was frozen: its executor may have lost the lease meanwhile
NOT_BEGUN = Result(failure=Failure(FailureKind.REFUSED, "the executor was stopped or frozen before the job began"), unstarted=True)
UNANSWERED_MS = 250  # the most that a job waits, after its call began, for other calls: while threads read answers, these begin late
GATHER_S, GATHER_EACH_S, MOST_GATHER_S = 0.004, 0.0001, 0.05  # after a first result, the most to wait for those of the other running jobs
# Python lets a thread compute for 5 ms while others wait, so a job could start 5 ms late while the main thread prepares a call. If few jobs
# run, turns are shorter. With many threads short turns cost more than they save: 256 calls then had a p99 of 0.87 instead of 0.22 s.
FEW, FEW_SWITCH_S, SWITCH_S = 8, 0.0005, 0.005

log = logging.getLogger(__name__)


def ahead(jobs: int, *, prepares: bool = False) -> int:
    """Return how long before its instant (ms) the pool should get a job, by the number of jobs in its batch.

    Its thread then only has to wake up: what the executor does meanwhile, such as starting the rest of the batch, does not delay it.
    """
    each, most = (PREPARE_EACH_MS, MOST_PREPARE_MS) if prepares else (EACH_MS, MOST_AHEAD_MS)
    return min(round(AHEAD_MS + each * jobs), most)


class InOrder:
    """A single thread that calls short functions in the order of their instants, none before its instant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._answers: list[Callable[[], None]] = []  # these two are used by the thread alone
        self._answer_by = 0

    def submit(self, at: int, call: Callable[[], object]) -> None:
        """Call it at the instant `at` (UTC ms), or now if that has passed."""
        with self._changed:
            heapq.heappush(self._waiting, (at, next(self._numbers), call))
            if self._waiting[0][2] is call:
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="quick", daemon=True)
                self._thread.start()

    def call(self, at: int, function: Callable[[], None]) -> None:
        """Call it at the instant, and wait for that. Raises what it raises.

        The caller goes on once no function is due, or after `UNANSWERED_MS`: before, it would compete with them for the processor.
        """
        called: Future[None] = Future()

        def call() -> None:
            try:
                function()
                answer: Callable[[], None] = partial(called.set_result, None)
            except BaseException as error:
                answer = partial(called.set_exception, error)
            if not self._answers:
                self._answer_by = self._clock.now() + UNANSWERED_MS
            self._answers.append(answer)

        self.submit(at, call)
        called.result()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (is_due := self._is_due()) and not self._answers:
                    self._changed.wait(seconds_until(self._waiting[0][0]) if self._waiting else None)
                is_time = bool(self._answers) and (not is_due or self._clock.now() >= self._answer_by)
                call = self._answer if is_time else heapq.heappop(self._waiting)[2]
            try:
                call()
            except Exception:
                log.exception("a quick job raised")

    def _is_due(self) -> bool:
        return bool(self._waiting) and self._clock.now() >= self._waiting[0][0]

    def _answer(self) -> None:
        answers, self._answers = self._answers, []
        for each in answers:
            each()


@dataclass(frozen=True, slots=True)
class _Start:
    """The start of one job. `latest`: a later one must not be (UTC ms); None: it may be at any time."""

    clock: Clock
    in_order: InOrder | None
    due_at: int
    latest: int | None
    stop: threading.Event

    def wait(self) -> None:
        """Wait for the instant, or a stop."""
        while self.clock.now() < self.due_at and not self.stop.is_set():
            self.stop.wait(seconds_until(self.due_at))

    def is_over(self) -> bool:
        """Whether the job must not begin any more."""
        return self.stop.is_set() or (self.latest is not None and self.clock.now() > self.latest)

    def begin(self, first: Callable[[], None], *, is_quick: bool = False) -> None:
        """As `targets.base.Begin`."""
        if is_quick and self.in_order is not None:
            return self.in_order.call(self.due_at, lambda: self._call(first))
        self.wait()
        self._call(first)

    def _call(self, first: Callable[[], None]) -> None:
        if self.is_over():
            raise NotBegun
        first()


class _Results:
    """The results of running jobs, on their way to the executor's main thread."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Finished | None] = queue.SimpleQueue()
        self._awaited = 0
        self._enough = threading.Event()

    def put(self, done: Finished) -> None:
        self._queue.put(done)
        if self._queue.qsize() >= self._awaited:
            self._enough.set()

    def wake(self) -> None:
        """Let `first` return without a result."""
        self._queue.put(None)

    def first(self, until: int) -> Finished | None:
        """Wait for a result until this instant (UTC ms), or `wake`."""
        while (left := seconds_until(until)) > 0:
            try:
                return self._queue.get(timeout=left)
            except queue.Empty:
                continue
        return None if self._queue.empty() else self._queue.get_nowait()

    def rest(self, count: int, seconds: float) -> list[Finished]:
        """Wait for this number of results, but no longer than `seconds`; return those that are there."""
        self._awaited = count
        self._enough.clear()
        if self._queue.qsize() < count:
            self._enough.wait(seconds)  # a single wake-up, whatever the number: each one takes turns from jobs that run
        return [done for _ in range(self._queue.qsize()) if (done := self._queue.get_nowait()) is not None]


@dataclass(slots=True)
class Resources:
    """The resources that all pools of an executor's process share, and the means of its jobs."""

    threads: ThreadPoolExecutor
    clock: Clock
    children: Children
    outputs: Callable[[], Outputs]
    in_order: InOrder | None = None  # for quick jobs
    allow_private: bool = False
    reach: Reach = field(default_factory=Reach)
    calls: Callable[[], Calls] = no_calls
    callbacks: Callable[[Job, int], CallBackAddress] | None = None
    named: TargetCache | None = None
    fetcher: str = ""
    private_fetcher: str = ""  # the ARN of the function that calls private targets; empty: the stage has no private network
    limit: CallLimit = field(default_factory=CallLimit)
    secrets: Callable[[Job, str], Sequence[str]] = lambda job, name: no_secrets(name)
    admits_mail: Callable[[Job, int], bool] = lambda job, recipients: any_mail(recipients)
    trace_ratio: float | None = None  # `Rules.traced`

    def function_of(self, job: Job) -> str:
        """The ARN of the function that calls the URL of a job, as far as is known before the job runs; empty: the executor itself."""
        target = None if self.named is None or not self.private_fetcher else self.named.peek(job.spec.target)
        return self.private_fetcher if target is not None and target.allow else self.fetcher


class ThreadPool:
    """The port `Pool`. All targets end by their deadline; a thread that does not end is abandoned until the invocation ends."""

    def __init__(self, resources: Resources) -> None:
        self._resources, self._clock, self._limit = resources, resources.clock, resources.limit
        self._finished = _Results()
        self._stops: dict[JobKey, threading.Event] = {}
        self._forces: dict[JobKey, threading.Event] = {}
        self._running = 0
        self._computing: set[JobKey] = set()
        self._calling: dict[JobKey, Waiting] = {}  # the jobs that `fetch` runs

    def has_room(self, job: Job) -> bool:
        """A job that `fetch` runs has room: it waits for its place without a thread."""
        if _is(job, QUICK) or self._is_called(job):
            return True
        return self._running + self._limit.calls < THREADS and not (len(self._computing) >= CHILDREN and _is(job, WORK))

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        if self._is_called(job):
            return self._start_call(job, not_after, task)
        self._count(1)
        if _is(job, WORK):
            self._computing.add(job.key)
        stop = self._stops[job.key] = threading.Event()
        force = self._forces[job.key] = threading.Event()
        latest = job.due_at + LATE_MS if self._clock.now() < job.due_at else None
        run = partial(self._run, self._finished, job, not_after, latest, task, stop, force)
        if self._resources.in_order is not None and _is(job, QUICK):
            self._resources.in_order.submit(job.due_at, run)
        else:
            self._resources.threads.submit(run)

    def _start_call(self, job: Job, not_after: int | None, task: TaskHead | None) -> None:
        """Let `fetch` run a job once it has a place. One that Lambda refuses waits again; one that found no place has not begun."""
        stop = self._stops[job.key] = threading.Event()
        force = self._forces[job.key] = threading.Event()
        finished, now = self._finished, self._clock.now()
        wait = patience(job.fence - 1, job.spec.attempt_ms)
        wait = wait if not_after is None else min(wait, not_after - now)

        def give_up() -> None:
            at = self._clock.now()
            finished.put(Finished(job, at, at, Result(failure=Failure(FailureKind.THROTTLED, ALL_BUSY), unstarted=True)))

        def call() -> None:
            latest = self._clock.now() + LATE_MS
            run = partial(self._run, finished, job, not_after, latest, task, stop, force)
            self._resources.threads.submit(self._call, finished, waiting, run)

        waiting = self._calling[job.key] = Waiting(call, give_up, self._limit.now() + wait)
        self._count(0)
        self._limit.add(waiting)

    def _call(self, finished: _Results, waiting: Waiting, run: Callable[[], bool]) -> None:
        is_busy = False
        try:
            is_busy = not run()
        finally:
            (self._limit.refused if is_busy else self._limit.answered)()
        if is_busy:
            self._limit.add(waiting, again=True)
            finished.wake()  # the main thread looks when the pause is over

    def _is_called(self, job: Job) -> bool:
        """Whether `fetch` or `fetch-private` runs the job, each in a place of the same limit: both take executions of the same account."""
        return bool(self._resources.function_of(job)) and _is(job, _sent_ahead)

    def wait(self, until: int) -> list[Finished]:
        first = self._first(until)
        if first is None:
            return []
        busy = self._running + self._limit.calls
        seconds = min(GATHER_S + GATHER_EACH_S * busy, MOST_GATHER_S)
        finished = [first, *self._finished.rest(busy - 1, seconds)]  # one write settles them all
        called = [done for done in finished if self._calling.pop(done.job.key, None) is not None]
        self._count(len(called) - len(finished))
        self._computing.difference_update(done.job.key for done in finished)
        return finished

    def _first(self, until: int) -> Finished | None:
        """Wait for a result until this instant (UTC ms). Meanwhile the calls that wait for a place get one."""
        while True:
            self._limit.check()
            check_at = self._limit.next_check()
            wake = until if check_at is None else min(until, self._clock.now() + max(math.ceil(check_at - self._limit.now()), 1))
            first = self._finished.first(wake)
            if first is not None or self._clock.now() >= until:
                return first

    def cancel(self, job: Job) -> None:
        self._stops[job.key].set()
        if waiting := self._calling.get(job.key):
            self._limit.drop(waiting)

    def kill(self, job: Job) -> None:
        self._forces[job.key].set()

    def stop(self) -> None:
        for event in (*self._stops.values(), *self._forces.values()):
            event.set()
        self._limit.clear()
        self._stops, self._forces, self._finished, self._running = {}, {}, _Results(), 0
        self._computing, self._calling = set(), {}

    def _count(self, change: int) -> None:
        self._running += change
        sys.setswitchinterval(FEW_SWITCH_S if self._running + len(self._calling) <= FEW else SWITCH_S)

    def _run(
        self,
        finished: _Results,
        job: Job,
        not_after: int | None,
        latest: int | None,
        task: TaskHead | None,
        stop: threading.Event,
        force: threading.Event,
    ) -> bool:
        """Run one job, and put its result. False: `fetch` was busy, and there is no result."""
        start = _Start(self._clock, self._resources.in_order, job.due_at, latest, stop)
        if not _is(job, _prepares):
            start.wait()
        started_at = self._clock.now()
        if start.is_over():
            finished.put(Finished(job, started_at, started_at, NOT_BEGUN))
            return True
        try:
            sign = self._resources.callbacks
            callback = sign(job, started_at) if sign is not None and job.spec.callback is not None else None
        except SchedulerError as error:
            failure = Failure(FailureKind.RETRYABLE, f"the call-back address could not be signed: {error}")
            finished.put(Finished(job, started_at, self._clock.now(), Result(failure=failure)))
            return True
        longest = job.spec.attempt_ms if job.awaited is None else min(job.spec.attempt_ms, AWS_CALL_MS)
        context = Context(
            JobContext.of(job, task, self._resources.trace_ratio),
            # The executor may start the job before its instant.
            deadline=time.monotonic() + (max(job.due_at - started_at, 0) + longest) / 1000,
            stop=stop,
            allow_private=self._resources.allow_private,
            reach=self._resources.reach.of(job.owner),
            calls=self._resources.calls,
            callback=callback,
            fetcher=self._resources.fetcher,
            not_before=job.due_at,
            not_after=not_after,
            begin=start.begin,
            secrets=partial(self._resources.secrets, job),
            admits_mail=partial(self._resources.admits_mail, job),
            timeout_seconds=longest / 1000,
            owner=job.owner,
            now=self._clock.now,
            awaited=job.awaited,
            must_stop=callback_lease.must_stop(job, started_at) if lifecycle.waits(job) else None,
        )
        result = self._result(job, context, force)
        if result.unstarted and result.failure is not None and result.failure.message == ALL_BUSY and job.key in self._calling:
            return False  # a job that has no place to give back is deferred instead
        start.wait()  # it may have failed while it was prepared
        ended_at = self._clock.now()
        began_at = started_at if result.began_at is None else result.began_at
        began_at = max(began_at, min(job.due_at, ended_at))  # the clock of another function may differ
        finished.put(Finished(job, began_at, max(ended_at, began_at), self._stored(job, result)))
        return True

    def _result(self, job: Job, context: Context, force: threading.Event) -> Result:
        """Run the target. An exception is a bug of the target: the job may be retried, and the other jobs of the batch go on."""
        try:
            target = registry.load(job.spec.type)
            if lifecycle.waits(job):
                return target.check_end(job, context, self._clock.now())
            named = self._named(job)
            payload = named_target.work_of(job, named, context.job)
            if isinstance(payload, Failure):
                return Result(failure=payload)
            if named is not None and named.allow:
                if not self._resources.private_fetcher:
                    return Result(failure=Failure(FailureKind.PERMANENT, f"target {named.name} is private: {named_target.NO_NETWORK}"))
                reach = named_target.reach_of(named, context.reach)
                context = replace(context, fetcher=self._resources.private_fetcher, reach=reach)
            if target.is_work(payload):
                return self._resources.children.run(replace(job, spec=replace(job.spec, payload=payload)), context, force)
            return target.attempt(payload, context)
        except NotBegun:
            return NOT_BEGUN
        except registry.UnknownType as error:  # another version stored the job; an executor of that version runs it
            return Result(failure=Failure(FailureKind.REFUSED, str(error)))
        except BaseException as error:  # SystemExit too: a missing result would block the batch
            log.exception("target raised", extra=job.log_context())
            return Result(failure=Failure(FailureKind.RETRYABLE, f"{type(error).__name__}: {error}"))

    def _named(self, job: Job) -> NamedTarget | None:
        targets = self._resources.named
        return targets.find(job.spec.target) if targets is not None and job.spec.target is not None else None

    def intent(self, job: Job, task: TaskHead | None) -> Awaited | None:
        try:
            target = registry.load(job.spec.type)
            if target.ends is None:
                return None
            of_job = JobContext.of(job, task, self._resources.trace_ratio)
            payload = named_target.work_of(job, self._named(job), of_job)
            return None if isinstance(payload, Failure) else target.intent(payload, job, of_job)
        except Exception:  # `start` reports what is wrong with the job
            log.info("the work of a job in AWS could not be prepared", extra=job.log_context(), exc_info=True)
            return None

    def _stored(self, job: Job, result: Result) -> Result:
        try:
            return keep(job, result, self._resources.outputs)
        except BaseException as error:  # as above
            log.exception("output not stored", extra=job.log_context())
            return Result(failure=result.failure or Failure(FailureKind.RETRYABLE, f"{type(error).__name__}: {error}"))


WORK: Callable[[TargetType], Callable[[Fields], bool]] = attrgetter("is_work")
QUICK: Callable[[TargetType], Callable[[Fields], bool]] = attrgetter("is_quick")


def _prepares(target: TargetType) -> Callable[[Fields], bool]:
    return lambda payload: target.prepares


def _sent_ahead(target: TargetType) -> Callable[[Fields], bool]:
    return lambda payload: target.ahead_ms > 0


def _is(job: Job, kind: Callable[[TargetType], Callable[[Fields], bool]]) -> bool:
    """Whether a job is of this kind by its own payload. The defaults of a named target, and placeholders, apply when it runs."""
    if kind is QUICK and (job.spec.target is not None or job.spec.placeholders):
        return False
    try:
        return kind(registry.load(job.spec.type))(job.spec.payload)
    except registry.UnknownType:
        return False
