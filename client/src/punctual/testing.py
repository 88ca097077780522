"""The real API and engine in memory, for tests of programs that use Punctual: no network, no AWS, and a clock that the test moves.

    with Memory(app, now="2026-11-20T10:00:00Z") as memory:
        memory.client.jobs.create(http="https://shop.example.com/expire/17", delay="30m")
        memory.clock.advance("30m")
        assert [call.url for call in memory.calls] == ["https://shop.example.com/expire/17"]

It needs `pip install 'punctual-client[testing]'`. An import of this module loads nothing of that; the first request loads the API.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from importlib import resources
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import httpx

from punctual._async.client import AsyncPunctual
from punctual._async.transport import AsyncClock
from punctual._sync.client import Punctual
from punctual._sync.transport import Clock as ClientClock
from punctual.worker import Worker

if TYPE_CHECKING:
    from punctual_server.memory.pool import Call as Sent
    from punctual_server.memory.pool import Reply
    from punctual_server.memory.stage import MemoryStage
    from typing_extensions import Self

URL = "https://punctual.memory"  # the address of the API in memory; only its own clients reach it
FIRST_USER = "tester"  # an administrator
Duration = str | float | timedelta
Instant = str | datetime
Role = Literal["user", "operator", "administrator"]
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_DURATION_RULE = "a duration is seconds, a timedelta, or a text such as 45s, 30m, 1h30m, 2d"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """The answer to a call. `body` is bytes, text, or anything else as JSON. `takes`: the time after which it arrives."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    takes: Duration = 0


@dataclass
class Call:
    """A request of an `http` job, sent at the instant `at` of the memory's clock, and how it was answered.

    `status` and `answer` are those of the answer. `error` is what the app raised instead: the attempt fails then, and may be retried.
    """

    at: datetime
    job_id: str
    method: str
    url: str
    headers: httpx.Headers
    body: bytes
    status: int | None = None
    answer: bytes = b""
    error: BaseException | None = field(default=None, repr=False)

    @property
    def path(self) -> str:
        """The path of the URL."""
        return urlsplit(self.url).path

    def json(self) -> Any:
        """Return the body, read as JSON. Raises ValueError."""
        return json.loads(self.body)


Answering = Callable[[Call], Answer | int | None]


class Clock:
    """The time of a memory, in UTC. It stands still until a test moves it, and then runs all that is due, in order."""

    def __init__(self, stage: MemoryStage) -> None:
        self._stage = stage

    @property
    def now(self) -> datetime:
        """The instant."""
        return EPOCH + timedelta(milliseconds=self._stage.now)

    def advance(self, by: Duration = 0) -> None:
        """Move the clock by a duration: seconds, a timedelta, or a text such as `30m` or `1h30m`. Without one, run what is due now.

        Raises ValueError for a negative duration, RuntimeError if a job's call moves it, or another thread.
        """
        ms = milliseconds(by)
        if ms < 0:
            raise ValueError(f"the clock cannot go back: advance needs a duration of 0 or more, not {by!r}")
        self._stage.run(self._stage.now + ms)

    def move_to(self, instant: Instant) -> None:
        """Move the clock to an instant with a time zone. Raises ValueError for one before `now`, otherwise as `advance`."""
        at = _epoch_ms(instant)
        if at < self._stage.now:
            raise ValueError(f"the clock cannot go back: it is {self.now.isoformat()}, and {instant} is before that")
        self._stage.run(at)


class Memory:
    """A stage of Punctual in memory. A context manager; everything in it is gone at its end.

    `app` is the program that `http` jobs call, whatever the host of their URL: a WSGI or ASGI application; `interface` says which, if it
    cannot be recognized. It is called in this process. An ASGI application runs in an event loop of its own, without its lifespan.
    `use` sets it later. Without an app, each call gets the answer that `answer` returns: an `Answer`, a status, or None for 200. All calls
    are in `calls`.

    `now` is the first instant of `clock`; without one, the present. `takes` is the time that calls take on that clock, or a function of the
    call: without it they take none, so jobs never overlap. `users` are further users with their roles; the first one is an administrator.
    `secrets` are values that each user's jobs may name, such as `signing_secret`. Signatures have the time of the machine, as your program
    checks it.

    `client` and `async_client` are signed in as the first user; `jobs.wait` moves the clock. `skips`: leave out minutes in which nothing
    is due, which has no effect but on the duration of a test.

    Raises ImportError if the extra `testing` or the time zones are not installed, ValueError for an instant without a time zone.
    """

    def __init__(
        self,
        app: Any = None,
        *,
        now: Instant | None = None,
        interface: Literal["wsgi", "asgi"] | None = None,
        answer: Answering | None = None,
        takes: Duration | Callable[[Call], Duration] = 0,
        users: Mapping[str, Role] | None = None,
        secrets: Mapping[str, str] | None = None,
        skips: bool = True,
    ) -> None:
        if app is not None and answer is not None:
            raise ValueError("give an app or an answer, not both")
        made = _stage_type()
        at = _epoch_ms(datetime.now(timezone.utc) if now is None else now)
        self.calls: list[Call] = []
        self._called: _App | None = None
        self._answer, self._takes = answer, takes
        self.use(app, interface=interface)
        everyone = {FIRST_USER: "administrator", **(users or {})}
        self._stage: MemoryStage = made(self._reply, at, url=URL, users=everyone, secrets=secrets or {}, skips=skips)
        self.clock = Clock(self._stage)
        self.transport = MemoryTransport(self._stage)
        self._times = _ClientTimes(self.clock)
        self.client = self.sign_in(FIRST_USER)
        self.async_client = AsyncPunctual(
            URL, token=self._stage.accounts.token_of(FIRST_USER), transport=self.transport, clock=_AsyncClientTimes(self.clock)
        )

    def use(self, app: Any, *, interface: Literal["wsgi", "asgi"] | None = None) -> None:
        """Let `http` jobs call this program from now on: one that needs a client of this memory, say. None: each call gets 200."""
        if self._called is not None:
            self._called.close()
        self._called = None if app is None else _App(app, interface or recognized(app))

    @property
    def url(self) -> str:
        """The address of the API, for further clients with `transport`."""
        return URL

    def sign_in(self, user: str) -> Punctual:
        """Return a client of a user. Raises LookupError if there is none of this name."""
        return Punctual(URL, token=self._stage.accounts.token_of(user), transport=self.transport, clock=self._times)

    def worker(self, headers: Mapping[str, str]) -> Worker:
        """Return the worker of a job with a call-back, by the headers of its call, such as those of an entry of `calls`."""
        return Worker.from_headers(headers, transport=self.transport)

    def calls_to(self, path: str) -> list[Call]:
        """Return the calls of this path."""
        return [call for call in self.calls if call.path == path]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the event loop of the app."""
        self.client.close()
        self.use(None)

    def _reply(self, sent: Sent) -> Reply:
        from punctual_server.memory.pool import Raised, Reply

        at = EPOCH + timedelta(milliseconds=sent.at)
        call = Call(at, sent.job_id, sent.method, sent.url, httpx.Headers(dict(sent.headers)), sent.body)
        self.calls.append(call)
        try:
            answer = self._answered(call)
            call.status, call.answer = answer.status, _content(answer.body)
            takes = milliseconds(answer.takes) or milliseconds(self._takes(call) if callable(self._takes) else self._takes)
        except Exception as error:
            call.error = error
            log.exception("the app raised at %s %s, called by the job %s", call.method, call.url, call.job_id)
            raise Raised(f"the app raised {type(error).__name__}: {error}") from error
        return Reply(answer.status, answer.headers, call.answer, takes)

    def _answered(self, call: Call) -> Answer:
        if self._called is not None:
            return self._called.call(call)
        found = None if self._answer is None else self._answer(call)
        if found is None:
            return Answer()
        return found if isinstance(found, Answer) else Answer(found)


class MemoryTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends the requests of clients and workers to the API in memory."""

    def __init__(self, stage: MemoryStage) -> None:
        self._stage = stage

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = request.url.query.decode()
        status, answered, content = self._stage.request(request.method, request.url.path, query, headers, request.content)
        return httpx.Response(status, headers=answered, content=content, request=request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self.handle_request(request)


class _App:
    """The program under test. An ASGI application runs in the event loop of a thread."""

    def __init__(self, app: Any, interface: Literal["wsgi", "asgi"]) -> None:
        self._wsgi = httpx.WSGITransport(app) if interface == "wsgi" else None
        self._asgi = httpx.ASGITransport(app) if interface == "asgi" else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def call(self, call: Call) -> Answer:
        request = httpx.Request(call.method, call.url, headers=call.headers, content=call.body or None)
        if self._wsgi is not None:
            response = self._wsgi.handle_request(request)
            return Answer(response.status_code, response.read(), dict(response.headers))
        return asyncio.run_coroutine_threadsafe(self._called(request), self._running()).result()

    async def _called(self, request: httpx.Request) -> Answer:
        assert self._asgi is not None
        response = await self._asgi.handle_async_request(request)
        return Answer(response.status_code, await response.aread(), dict(response.headers))

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="punctual-memory-app", daemon=True)
            self._thread.start()
        return self._loop

    def close(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None


class _MemoryTime:
    """The time of a client in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now.timestamp()

    monotonic = now


class _ClientTimes(_MemoryTime, ClientClock):
    """A wait of the client moves the clock of its memory."""

    def sleep(self, seconds: float) -> None:
        self._clock.advance(seconds)


class _AsyncClientTimes(_MemoryTime, AsyncClock):
    """The same for asynchronous clients."""

    async def sleep(self, seconds: float) -> None:
        self._clock.advance(seconds)


def recognized(app: Any) -> Literal["wsgi", "asgi"]:
    """Return the interface of an application: ASGI if it is a coroutine function, or takes three arguments; else WSGI."""
    if inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(type(app).__call__):
        return "asgi"
    try:
        inspect.signature(app).bind(None, None, None)
    except (TypeError, ValueError):
        return "wsgi"
    return "asgi"


def milliseconds(duration: Duration) -> int:
    """Return a duration in milliseconds. Raises ValueError with the rule for anything else.

    >>> milliseconds("1h30m"), milliseconds(0.25), milliseconds(timedelta(days=1))
    (5400000, 250, 86400000)
    """
    if isinstance(duration, timedelta):
        return round(duration / timedelta(milliseconds=1))
    if isinstance(duration, (int, float)) and not isinstance(duration, bool):
        return round(duration * 1_000)
    if not isinstance(duration, str):
        raise ValueError(f"{_DURATION_RULE}; not {duration!r}")
    text, sign = (duration[1:], -1) if duration.startswith("-") else (duration, 1)
    parts: Iterable[tuple[str, str]] = _PART.findall(text)
    if not text or _PART.sub("", text):
        raise ValueError(f"{_DURATION_RULE}; not {duration!r}")
    return sign * round(sum(float(number) * _UNITS[unit] for number, unit in parts))


def _epoch_ms(instant: Instant) -> int:
    at = datetime.fromisoformat(instant.replace("Z", "+00:00")) if isinstance(instant, str) else instant
    if at.tzinfo is None:
        raise ValueError(f"{instant} has no time zone: write 2026-11-20T10:00:00Z, or a datetime with a tzinfo")
    return (at - EPOCH) // timedelta(milliseconds=1)


def _content(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def _stage_type() -> type[MemoryStage]:
    """Return the engine. Raises ImportError with the command that installs what is missing."""
    try:
        resources.files("tzdata")
    except ImportError as error:
        raise ImportError("this Python has no time zones: pip install tzdata") from error
    try:
        from punctual_server.memory.stage import MemoryStage
    except ModuleNotFoundError as error:
        raise ImportError(f"punctual.testing needs {error.name}: pip install 'punctual-client[testing]'") from error
    return MemoryStage
