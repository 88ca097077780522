# Generated from _async/transport.py by client/generate_sync.py: change that file.
"""Requests to the API: with a token, repeated when that is safe, and errors as exceptions."""

from __future__ import annotations

import json
import random
import re
import time
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import httpx

from punctual import aws_identity, bodies, instants, retrying, tracing
from punctual._sync.session import Session
from punctual.errors import InvalidArgument, NoAnswer, Unavailable, UnexpectedAnswer, WaitTimeout, from_answer, parsed
from punctual.records import Record, part
from punctual.settings import Settings
from punctual.texts import halves
from punctual.within import within

LONGEST_TRY = 35.0  # seconds: API Gateway gives up after 30
PAGE = 100  # entries: the most of a page
OPEN = ("/health", "/keys/revoke", "/openapi.json")  # routes that need no credential, and that take neither an API key nor an AWS role
HEADER = re.compile("(?:[!-~](?:[ -~]*[!-~])?)?")  # a value of a header that every server takes
R = TypeVar("R", bound=Record)


class Transport:
    """Sends the requests of one client. Threads may share it."""

    def __init__(
        self,
        settings: Settings,
        *,
        timeout: float,
        max_retries: int,
        transport: httpx.BaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.base = settings.url
        self.owner = settings.owner
        self._has_key = settings.key is not None
        self._has_door = self._has_key or settings.auth is not None
        self._timeout = timeout
        self._retries = max_retries
        self._clock = clock or Clock()
        self._http = httpx.Client(
            transport=transport,
            trust_env=httpx.URL(settings.url).host not in ("127.0.0.1", "localhost", "::1"),  # no proxy is between this machine and itself
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            headers={"User-Agent": "punctual-python"},
        )
        self._session = Session(settings, self._sign_in, self._clock.now)
        weakref.finalize(self, self._http.close)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def token(self) -> str | None:
        """Return a token that has not expired; None without credentials, and with an API key, which is no token."""
        return None if self._has_key else self._session.token()

    def _door(self, path: str) -> tuple[str, str | None]:
        """Return the address of a path and the credential for it: API keys and AWS roles have addresses of their own."""
        if self._has_door and path in OPEN:
            return f"{self.base}/api/v1{path}", None
        token = self._session.token()
        return f"{self.base}/api/v1{self._session.door}{path}", token

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        idempotent: bool | None = None,
    ) -> Any:
        """Return the `data` of a successful answer.

        Raises an ApiError for an error, NoAnswer without an answer, InvalidArgument for what cannot be sent.

        `idempotent` says whether the request may be repeated after a lost answer; by default GET, PUT and DELETE, and what has an
        `Idempotency-Key`. An `owner` of None in the query stands for the owner of the client.
        """
        sent = _headers(headers)
        if tracing.PARENT not in sent:
            sent = {**tracing.active(), **sent}
        if idempotent is None:
            idempotent = method in ("GET", "HEAD", "PUT", "DELETE") or "Idempotency-Key" in sent
        content = None if body is None else encode(body)
        deadline = self._clock.monotonic() + self._timeout
        url, token = self._door(path)
        parameters = self._parameters(query)
        renewed = False
        while True:
            signed = sent if token is None else {**sent, "Authorization": f"Bearer {token}"}
            answer = self._exchange(method, url, deadline, idempotent, content=content, headers=signed, params=parameters)
            if answer.status_code != 401 or token is None or renewed or not self._session.renew(token):
                return self._data(answer)
            renewed, refused = True, token
            url, token = self._door(path)
            if token == refused:
                return self._data(answer)

    def send(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request once, as it is, and return the answer, also of an error. Raises NoAnswer, InvalidArgument."""
        sent, parameters = _headers(headers), self._parameters(query)
        url, token = self._door(path)
        signed = sent if token is None else {"Authorization": f"Bearer {token}", **sent}
        try:
            return within(
                self._timeout,
                lambda: self._http.request(
                    method, url, content=content, params=parameters, headers=signed, timeout=min(self._timeout, LONGEST_TRY)
                ),
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _no_answer(method, url, error, 1) from error
        except UnicodeError as error:
            raise _not_sent(method, url, error) from error

    def _parameters(self, present: Mapping[str, Any] | None) -> dict[str, str]:
        """Return the parameters of a query. Raises InvalidArgument for a text that is no UTF-8 or has an API key."""
        found = dict(present or {})
        if "owner" in found and found["owner"] is None:
            found["owner"] = self.owner
        parameters = bodies.query(found)
        for field, rule in halves(parameters):
            raise InvalidArgument(f"{field} {rule}")
        return parameters

    def logout(self, everywhere: bool) -> None:
        """End all sessions of the signed-in user, or only the one of this client, and forget its tokens."""
        body = {"everywhere": everywhere}
        refresh = self._session.refresh_token
        self.request("POST", "/auth/logout", body if everywhere or refresh is None else {**body, "refresh_token": refresh}, idempotent=True)
        self._session.forget()

    def changed_password(self, data: Mapping[str, Any], password: str) -> None:
        """Use the tokens that the answer to a change of the password has, and the new password from now on."""
        self._session.changed_password(data, password)

    def pages(self, path: str, query: Mapping[str, Any], record: type[R], limit: int | None) -> Iterator[R]:
        """Yield the entries of a list, page by page, at most `limit` of them."""
        left = limit
        cursor: str | None = None
        seen: set[object] = set()
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = self.request("GET", path, query={**query, "limit": size, "cursor": cursor})
            if not isinstance(page, Mapping) or not isinstance(page.get("items"), list):
                raise UnexpectedAnswer(f"GET {path} answered no list")
            for item in page["items"]:
                yield record.from_json(item)
            left = None if left is None else left - len(page["items"])
            cursor = page.get("cursor")
            if cursor is None:
                return
            if not isinstance(cursor, str) or cursor in seen:
                raise UnexpectedAnswer(f"GET {path} answered the same cursor twice: the list would never end")
            seen.add(cursor)

    def whole(self, path: str, query: Mapping[str, Any], record: type[R]) -> Iterator[R]:
        """Yield the entries of a list that has no pages."""
        for item in part(self.request("GET", path, query=query), "items", list):
            yield record.from_json(item)

    def wait(self, path: str, record: type[R], name: str, timeout: float | None, poll: float, owner: str | None) -> R:
        """Read a record until its `ended` is true, and return it. Raises WaitTimeout with its `name` after `timeout` seconds.

        Raises what the first read raises. An outage after it is waited through.
        """
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        found: R | None = None
        while True:
            try:
                found = record.from_json(self.request("GET", path, query={"owner": owner}))
            except (NoAnswer, Unavailable):
                if found is None:
                    raise
            if getattr(found, "ended", True):
                return found
            left = poll if deadline is None else min(poll, deadline - self._clock.monotonic())
            if left <= 0:
                raise WaitTimeout(f"{name} has not ended within {timeout} s")
            self._clock.sleep(left)

    def _exchange(self, method: str, url: str, deadline: float, idempotent: bool, **sent: Any) -> httpx.Response:
        """Send a request until there is an answer that is not worth a repeat, or the retries or the time are used up."""
        attempt = 0
        while True:
            attempt += 1
            left = max(0.1, deadline - self._clock.monotonic())
            answer: httpx.Response | httpx.HTTPError
            try:
                answer = self._try(left, method, url, **sent)
                requested = retrying.retry_after(answer, self._clock.now())
            except httpx.HTTPError as error:
                answer, requested = error, None
            except httpx.InvalidURL as error:
                raise _no_answer(method, url, error, attempt) from error
            except UnicodeError as error:
                raise _not_sent(method, url, error) from error
            pause = retrying.pause(attempt, random.random(), requested)
            worth = attempt <= self._retries and self._clock.monotonic() + pause < deadline
            if not worth or not retrying.is_repeated(answer, idempotent):
                if isinstance(answer, httpx.Response):
                    if method == "DELETE" and attempt > 1 and answer.status_code == 404:  # an earlier try has deleted it
                        return httpx.Response(200, json={"success": True, "data": None})
                    return answer
                raise _no_answer(method, url, answer, attempt) from answer
            self._clock.sleep(pause)

    def _try(self, left: float, method: str, url: str, **sent: Any) -> httpx.Response:
        """Send a request once, and return its answer. The time of httpx bounds each read, this one the whole answer."""
        return within(left, lambda: self._http.request(method, url, timeout=min(left, LONGEST_TRY), **sent))

    def _sign_in(self, method: str, url: str, **sent: Any) -> Any:
        deadline = self._clock.monotonic() + self._timeout
        answer = self._exchange(method, url, deadline, True, **sent)
        body = parsed(answer)
        if answer.is_error or not isinstance(body, dict):
            raise from_answer(answer.status_code, body, retrying.retry_after(answer, self._clock.now()))
        return body

    def _data(self, answer: httpx.Response) -> Any:
        body = parsed(answer)
        if answer.is_success and isinstance(body, dict) and body.get("success") is True:
            return body.get("data")
        if answer.status_code == 401 and self._session.role and not (isinstance(body, dict) and "error" in body):
            raise aws_identity.refused(self._session.role, self.base)
        if answer.is_error:
            raise from_answer(answer.status_code, body, retrying.retry_after(answer, self._clock.now()))
        raise UnexpectedAnswer(f"{answer.request.url} answered {answer.status_code} without data of this API: is the address right?")


class Clock:
    """The time that a client goes by; tests give it another one."""

    def now(self) -> float:
        """Return the time in epoch seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that no change of the clock affects."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def encode(body: Any) -> bytes:
    """Return the body as JSON. Instants become RFC 3339.

    Raises TypeError for what JSON lacks; InvalidArgument for NaN, infinity, and text that is no UTF-8.
    """
    try:
        return json.dumps(body, default=instants.jsonable, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise _no_utf8(body, error) from error
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, InvalidArgument) else InvalidArgument(f"the body has no JSON form: {error}") from error


def _headers(present: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers of a request. Raises InvalidArgument for a value that no header can have."""
    for name, value in (present or {}).items():
        if not name.isascii() or not HEADER.fullmatch(str(value)):
            raise InvalidArgument(f"{ascii(name)[1:-1]} must be printable ASCII without blanks at its ends, not {ascii(value)[:100]}")
    return {"Content-Type": "application/json", **(present or {})}


def _no_utf8(body: Any, error: UnicodeError) -> InvalidArgument:
    return InvalidArgument("; ".join(f"{field or 'the body'} {rule}" for field, rule in halves(body)) or f"the body is no UTF-8: {error}")


def _not_sent(method: str, url: str, error: UnicodeError) -> InvalidArgument:
    return InvalidArgument(f"{ascii(f'{method} {url}')[1:-1]} cannot be sent: {error}")


def _no_answer(method: str, url: str, error: Exception, attempts: int) -> NoAnswer:
    tries = "" if attempts == 1 else f" after {attempts} tries"
    return NoAnswer(f"{method} {url}: no answer{tries}: {str(error) or type(error).__name__}")
