"""The worker of a job with a call-back: heartbeats in the background, and a report at the end."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx

from punctual import instants, retrying
from punctual.errors import CallbackEnded, NoAnswer, PunctualError, Unavailable, UnexpectedAnswer, from_answer, parsed
from punctual.records import Heartbeat, Reported
from punctual.settings import TOKEN as TOKEN_FORM
from punctual.settings import base
from punctual.within import within

if TYPE_CHECKING:
    from typing_extensions import Self

URL, TOKEN = "Punctual-Callback-Url", "Punctual-Callback-Token"
FIRST_HEARTBEAT_SECONDS = 3.0  # the shortest lease is 10 s; the answer to the first heartbeat says how long this one is
LEAST_PAUSE_SECONDS = 1.0
REPORT_SECONDS = 900.0  # for the report at the end, with all its repeats: finished work outlives an outage of the API
LONGEST_TRY = 30.0
LONGEST_PAUSE_SECONDS = 3600.0  # an earlier heartbeat than a third of the lease does no harm


def _field(of: Any, name: str) -> Any:
    """Return the field of an object from outside; None if it is none."""
    return of.get(name) if isinstance(of, Mapping) else None


class Worker:
    """Sends heartbeats during the work, and reports the result. A context manager:

        with Worker.from_headers(request.headers) as work:
            for page in pages:
                work.progress(page.number / len(pages), page.title)
                ...
            work.complete({"pages": len(pages)})

    Without `complete` or `fail`, the end of the block reports success, and an exception reports a failure, which is then raised again.
    A report is repeated for a quarter of an hour while the API does not answer. The heartbeats continue in that time.
    Heartbeats follow one another after a third of the lease. `cancel_requested` is set when the job is to stop, `ended` when the attempt
    is over; `check()` raises CallbackEnded then. `url` and `token` are the address and the token of the attempt.

    A request that anybody can send may name any address: check its signature first, or specify `api`, the address of your API. Then
    every call-back address of another host is refused with UnexpectedAnswer.
    """

    def __init__(self, url: str, token: str, *, api: str | None = None, transport: httpx.BaseTransport | None = None) -> None:
        if api is not None and _origin(url) != _origin(base(api)):
            raise UnexpectedAnswer(f"the call-back address {url!r} is not one of {api}: the request is not from this API")
        if not TOKEN_FORM.fullmatch(token):
            raise UnexpectedAnswer("the call-back token has a blank or a character that is not ASCII: it is none of this API")
        self.url = url.rstrip("/")
        self.cancel_requested = threading.Event()
        self.ended = threading.Event()
        self._token = token
        self._http = httpx.Client(transport=transport, timeout=LONGEST_TRY)
        self._lock = threading.Lock()  # of the progress
        self._progress: dict[str, Any] = {}
        self._is_decided = False  # the result is reported, or could not be: no other report follows
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send_heartbeats, name="punctual-heartbeat", daemon=True)

    @classmethod
    def from_headers(cls, headers: Mapping[str, str], **options: Any) -> Self:
        """Return the worker of an `http` job, by the headers of its request. Raises UnexpectedAnswer if it asks for no call-back."""
        found = {name.lower(): value for name, value in headers.items()}
        return cls._of(found.get(URL.lower()), found.get(TOKEN.lower()), **options)

    @classmethod
    def from_event(cls, event: Mapping[str, Any], **options: Any) -> Self:
        """Return the worker of a `lambda`, `stepfunctions` or `eventbridge` job, by its event, input or `detail`."""
        content = event if "punctual" in event else event.get("detail", event)
        callback = _field(_field(content, "punctual"), "callback")
        return cls._of(_field(callback, "url"), _field(callback, "token"), **options)

    @classmethod
    def from_message(cls, message: Mapping[str, Any], **options: Any) -> Self:
        """Return the worker of an `sqs` or `sns` job, by the message: of `receive_message`, of a Lambda event, or from SNS as JSON."""
        found = message.get("MessageAttributes") or message.get("messageAttributes")
        if not found and (body := message.get("Body") or message.get("body")):
            with contextlib.suppress(ValueError, RecursionError, TypeError):  # an SNS message in an SQS queue
                found = _field(json.loads(body), "MessageAttributes")
        url, token = (_field(found, name) for name in (URL, TOKEN))
        return cls._of(
            *(_field(one, "StringValue") or _field(one, "stringValue") or _field(one, "Value") for one in (url, token)), **options
        )

    @classmethod
    def _of(cls, url: Any, token: Any, **options: Any) -> Self:
        if not (isinstance(url, str) and isinstance(token, str) and url and token):
            raise UnexpectedAnswer(f"there is no {URL} and {TOKEN}: has the job a `callback`?")
        return cls(url, token, **options)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if self._is_decided or isinstance(error, CallbackEnded):
                return
            if error is None:
                self.complete()
            else:
                with contextlib.suppress(PunctualError):  # the exception of the work is the one to raise
                    self.fail(f"{type(error).__name__}: {error}")
        finally:
            self._stop.set()
            self._thread.join()
            self._http.close()

    def progress(self, fraction: float | None = None, message: str | None = None) -> None:
        """Show how far the work is, with the next heartbeat: a fraction from 0 to 1, and a text. Raises CallbackEnded."""
        self.check()
        with self._lock:
            report = {"progress": fraction, "message": None if message is None else message[:200]}
            self._progress = {name: value for name, value in report.items() if value is not None}

    def check(self) -> None:
        """Raise CallbackEnded if the attempt is over."""
        if self.ended.is_set():
            raise CallbackEnded("this attempt is over: stop the work")

    def heartbeat(self) -> Heartbeat:
        """Send a heartbeat now. Raises CallbackEnded, NoAnswer, ApiError."""
        with self._lock:
            body = dict(self._progress)
        answer = Heartbeat.from_json(self._send("heartbeat", body, time.monotonic() + LONGEST_TRY))
        if answer.cancel_requested:
            self.cancel_requested.set()
        return answer

    def complete(self, output: Any = None, *, response: Mapping[str, Any] | None = None) -> Reported:
        """Report success with an output: a text or anything that JSON can hold. Raises CallbackEnded, NoAnswer, ApiError."""
        return self._report("complete", {"output": output, "response": response})

    def fail(self, message: str, *, permanent: bool = False, retry_after: float | None = None) -> Reported:
        """Report a failure. Another attempt follows by the job's policy, not sooner than after `retry_after` seconds, unless `permanent`.

        Raises CallbackEnded, NoAnswer, ApiError.
        """
        kind = "permanent" if permanent else "retryable"
        return self._report("fail", {"message": message[:1000], "kind": kind, "retry_after_seconds": retry_after})

    def _report(self, verb: str, body: Mapping[str, Any]) -> Reported:
        sent = {name: value for name, value in body.items() if value is not None}
        try:
            reported = Reported.from_json(self._send(verb, sent, time.monotonic() + REPORT_SECONDS))
        except (NoAnswer, Unavailable):
            self._is_decided = True
            raise
        self._is_decided = True
        self._stop.set()
        return reported

    def _send_heartbeats(self) -> None:
        pause = FIRST_HEARTBEAT_SECONDS
        while not self._stop.wait(pause):
            try:
                lease = (self.heartbeat().lease_until.timestamp() - time.time()) / 3
            except CallbackEnded:
                return
            except Exception:  # whatever was answered: without heartbeats the lease ends, and the work is done twice
                continue
            pause = min(LONGEST_PAUSE_SECONDS, max(LEAST_PAUSE_SECONDS, lease))

    def _send(self, verb: str, body: Mapping[str, Any], until: float) -> Any:
        """Send a report; all of them may be repeated. Raises CallbackEnded if the attempt is over."""
        attempt = 0
        while True:
            attempt += 1
            answer = self._try(verb, body)
            if isinstance(answer, httpx.Response) and answer.is_success:
                found = parsed(answer)
                if isinstance(found, dict) and isinstance(found.get("data"), dict):
                    return found["data"]
                answer = httpx.RemoteProtocolError("the answer was cut, or is not one of this API")
            if isinstance(answer, httpx.Response) and answer.status_code in (401, 409):
                self.ended.set()
                raise CallbackEnded(f"this attempt is over ({answer.status_code}): stop the work")
            requested = retrying.retry_after(answer, time.time()) if isinstance(answer, httpx.Response) else None
            pause = retrying.pause(attempt, random.random(), requested)
            if not retrying.is_repeated(answer, True) or time.monotonic() + pause > until or self._stop.wait(pause):
                if isinstance(answer, httpx.Response):
                    raise from_answer(answer.status_code, parsed(answer))
                raise NoAnswer(f"POST {self.url}/{verb}: no answer after {attempt} tries: {answer}") from answer

    def _try(self, verb: str, body: Mapping[str, Any]) -> httpx.Response | httpx.HTTPError:
        content = json.dumps(body, default=instants.jsonable).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            return within(LONGEST_TRY, lambda: self._http.post(f"{self.url}/{verb}", content=content, headers=headers))
        except httpx.HTTPError as error:
            return error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise NoAnswer(f"{self.url!a} is no address: {error}") from error


def _origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port. Raises UnexpectedAnswer for a text that is no address, or has a user in it."""
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise UnexpectedAnswer(f"{url!r} is no address: {error}") from error
    if found.userinfo or found.scheme not in ("http", "https"):
        raise UnexpectedAnswer(f"{url!r} is no call-back address")
    return found.scheme, found.host, found.port
