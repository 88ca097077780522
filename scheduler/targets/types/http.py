"""`http`: calls a URL. One connection, no redirects, no proxies, to public addresses only.

The connection is opened ahead of the job's instant, and the request is sent at the instant.

If the stage has the function `fetch` (`context.fetcher`), that function calls: a server that takes over its caller finds no rights there.
"""

import calendar
import datetime
import http.client
import ipaddress
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Literal, cast
from urllib.parse import urlsplit

from annotated_types import Ge, Le, MaxLen, Predicate
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, LocationParseError, NameResolutionError
from urllib3.util import parse_url

from scheduler.model.attempt_output import first_headers
from scheduler.model.job import Failure, FailureKind, Result
from scheduler.model.trace import PARENT
from scheduler.targets import credentials, fetch_call, http_answer, private_network, redaction
from scheduler.targets.base import Context, NotAllowed, Reach
from scheduler.targets.credentials import SecretName
from scheduler.targets.http_answer import Answer
from scheduler.targets.job_context import HEADERS, as_header, as_url_part
from scheduler.targets.target_type import TargetType

READ_LIMIT = http_answer.READ_LIMIT  # bytes of a response that are read and kept
USER_AGENT = "Punctual/1"
_IDS = ("idempotency-key", "punctual-job-id", "punctual-notice-id", "punctual-callback-url", "punctual-callback-token")
_CONTEXT = tuple(name.lower() for name in HEADERS.values())
_SIGNATURE = ("webhook-id", "webhook-timestamp", "webhook-signature")
# Of the connection, which is ours (RFC 9110, sections 7.6.1, 7.8, 10.1.1 and 10.1.4; RFC 9112, sections 6 and 9).
_CONNECTION = ("host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade")
OURS = (*_CONNECTION, "expect", *_IDS, *_CONTEXT, *_SIGNATURE)
RETRYABLE = (408, 425)  # and every 5xx
TOO_MANY, UNAVAILABLE = 429, 503  # responses of a throttling target; the second one only with a Retry-After
MOST_WAIT_S = 999_999_999  # of a Retry-After: 30 years
MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
DATES = [
    re.compile(rf"[a-z]{{3}}, (?P<day>[0-9]{{1,2}}) (?P<month>[a-z]{{3}}) (?P<year>[0-9]{{4}}) {_TIME} GMT", re.IGNORECASE),
    re.compile(rf"[a-z]{{6,9}}, (?P<day>[0-9]{{2}})-(?P<month>[a-z]{{3}})-(?P<year>[0-9]{{2}}) {_TIME} GMT", re.IGNORECASE),
    re.compile(rf"[a-z]{{3}} (?P<month>[a-z]{{3}}) (?P<day>[0-9]{{2}}| [0-9]) {_TIME} (?P<year>[0-9]{{4}})", re.IGNORECASE),
]
SHORT = 4_096  # bytes that a new connection takes without a wait, also if its server does not read
QUICK_S = 1.0  # a call with less time sends by itself: after a quick one its executor may read the answer a quarter of a second late
MOST_SLOW = 1_000  # servers that are remembered as slow
POLL = 0.2  # a set `stop` is noticed within this many seconds
ROUTABLE_V6 = ipaddress.IPv6Network("2000::/3")
# Not in Python's tables: relays of 6to4 (RFC 7526), documentation (RFC 9637), and ORCHIDv2, whose addresses are no locations (RFC 7343).
NOT_PUBLIC = [ipaddress.ip_network(network) for network in ("192.88.99.0/24", "3fff::/20", "2001:20::/28")]
HOST = r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*"


# A predicate raises an error with a text for the caller; if it returned False, the API would answer "predicate failed".
def is_url(text: str) -> bool:
    if not re.fullmatch(r"[\x21-\x5b\x5d-\x7e]*", text):
        raise ValueError("must be ASCII without spaces and backslashes: percent-encode paths, write host names in their xn-- form")
    try:
        url = parse_url(text)
    except LocationParseError:
        raise ValueError("must be a URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("must be an http:// or https:// URL with a host")
    if url.auth is not None:
        raise ValueError("must not contain a user name or password")
    if not url.host.startswith("[") and not re.fullmatch(HOST, url.host.removesuffix("."), re.IGNORECASE):
        raise ValueError("must have an IP address or a host name: labels of 1 to 63 letters, digits, - and _, at most 253 characters")
    if url.port == 0:
        raise ValueError("must have a port from 1 to 65535, or none")
    return True


def _is_header_name(text: str) -> bool:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", text):
        raise ValueError("must be a header name: letters, digits and dashes")
    if text.lower() in OURS:
        raise ValueError("is set by the scheduler and cannot be given")
    return True


def _is_open_header(text: str) -> bool:
    _is_header_name(text)
    if redaction.is_credential(text):
        raise ValueError("must not carry credentials, which would be stored: name a secret (bearer_secret, basic_secret, header_secrets)")
    return True


def _is_header_value(text: str) -> bool:
    if not re.fullmatch(r"[\t\x20-\x7e]*", text):
        raise ValueError("must be printable ASCII on one line")
    return True


def _are_different(headers: Mapping[str, str]) -> bool:
    names: set[str] = set()
    for name in headers:
        if name.lower() in names:
            raise ValueError(f"names {name} twice: upper and lower case are the same")
        names.add(name.lower())
    return True


HeaderName = Annotated[str, MaxLen(200), Predicate(_is_header_name)]
OpenHeaderName = Annotated[str, MaxLen(200), Predicate(_is_open_header)]
HeaderValue = Annotated[str, MaxLen(8_192), Predicate(_is_header_value)]


@dataclass(frozen=True, slots=True)
class Payload:
    """An HTTP request."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    url: Annotated[str, MaxLen(4_096), Predicate(is_url)]
    """The URL to call: https, or http if the stage allows it."""
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    """The HTTP method. If it is absent: POST with a body, else GET."""
    headers: Annotated[dict[OpenHeaderName, HeaderValue], MaxLen(50), Predicate(_are_different)] = field(default_factory=dict)
    """Request headers, at most 50."""
    body: Any = None
    """The request body: a string is sent as it is, anything else as JSON."""
    timeout_seconds: Annotated[float, Ge(0.1), Le(840)] = 30
    """The time limit of the whole call in seconds, from 0.1 to 840."""
    bearer_secret: SecretName | None = None
    """The secret that is sent as bearer token."""
    basic_user: Annotated[str, MaxLen(200), Predicate(credentials.is_user)] | None = None
    """The user name of basic authentication; `basic_secret` names the password."""
    basic_secret: SecretName | None = None
    """The secret that is the password of `basic_user`."""
    header_secrets: Annotated[dict[HeaderName, SecretName], MaxLen(5), Predicate(_are_different)] = field(default_factory=dict)
    """Headers whose values are secrets, such as API keys; at most 5."""
    signing_secret: SecretName | None = None
    """The secret that signs the request, by Standard Webhooks."""


class Refused(Exception):
    """http jobs may call public addresses only, and this host has none."""


class NotListed(Refused):
    """this host has no address that the private target's allow and the option network both list."""


def check(payload: Mapping[str, Any], reach: Reach) -> None:
    """Raises NotAllowed if the stage may not call the URL, or if credentials are incomplete. Without a URL only credentials are checked."""
    if "url" in payload:  # the defaults of a named target may leave it to jobs
        _check_url(payload["url"], reach)
    credentials.check(payload)


def _check_url(text: str, reach: Reach) -> None:
    url = parse_url(text)
    if url.scheme != "https" and not reach.plain_http:
        raise NotAllowed("url", "must be an https:// URL: operators allow http:// with the option plain_http")
    if reach.allow and not private_network.may_name(url.host or "", reach.allow):
        raise NotAllowed("url", "has a host that jobs of this private target may not call")  # the list is for administrators
    if reach.hosts and not any(private_network.is_host(url.host or "", pattern) for pattern in reach.hosts):
        raise NotAllowed("url", f"has a host that jobs of this stage may not call; allowed: {', '.join(reach.hosts)}")


def implied(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """POST for a request that has a body and names no method."""
    return {"method": "POST"} if payload.get("body") is not None and "method" not in payload else {}


def circuit(payload: Mapping[str, Any]) -> str | None:
    """All URLs of a host share one circuit."""
    try:
        return f"host {urlsplit(str(payload.get('url', ''))).netloc.lower()}"
    except ValueError:
        return None


def called(payload: Mapping[str, Any]) -> str | None:
    """The host and the path of the URL, without its query."""
    try:
        url = urlsplit(str(payload.get("url", "")))
    except ValueError:
        return None
    return f"{url.netloc.rpartition('@')[2]}{url.path}" or None


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Call the URL once. 2xx is a success. 408, 425, 429, 5xx, network errors and time-outs are retryable; any other status is permanent.

    429, and 503 with a Retry-After, are throttled. An answer whose end was not seen is a network error, or a time-out if it was cut here.
    The result contains no secret of the job.
    """
    try:
        check(payload, context.reach)
        secrets = credentials.read(payload, context)
    except NotAllowed as error:
        return Result(failure=Failure(FailureKind.PERMANENT, f"{error.field} {error}"[:500]))
    except credentials.Unusable as error:
        return Result(failure=error.failure)
    here = fetch_call.call if context.fetcher else fetch
    with secrets.silence():
        return secrets.redacted(here(secrets.bare(payload), secrets.headers(_body(payload.get("body"))), context))


def fetch(payload: Mapping[str, Any], secret: Mapping[str, str], context: Context) -> Result:
    """Call the URL from this process, with the headers of `secret` added. The caller has checked the reach and read the secrets.

    `began_at` of the result is when the request was sent; None if it was not. Raises NotBegun.
    """
    request, instant = Payload(**payload), time.monotonic() + _early_s(context)
    line = _Line(min(instant + request.timeout_seconds, context.deadline), context)
    result = _call(request, secret, context, line)
    return replace(result, log=_log_line(request, result, max(time.monotonic() - instant, 0.0)), began_at=line.began_at)


def _early_s(context: Context) -> float:
    """Seconds until the job's instant; 0 once it has passed."""
    return max(context.not_before / 1_000 - time.time(), 0.0)


def _call(request: Payload, secret: Mapping[str, str], context: Context, line: "_Line") -> Result:
    try:
        with WATCHER.watching(line):
            answer = _exchange(request, secret, context, line)
    except Refused as refused:
        return Result(failure=Failure(FailureKind.PERMANENT, str(refused.__doc__)))
    except (http_answer.Broken, http_answer.TooLong, HTTPError, http.client.HTTPException, OSError, ValueError) as error:
        # ValueError: what urllib3 and http.client raise on a connection cut under their hands
        return Result(failure=_broken(error, request, context, line))
    return Result(failure=_cut(request, context, line)) if line.cut else _judged(answer)


def _log_line(request: Payload, result: Result, seconds: float) -> str:
    """Describe the request and its end in two log lines, without query and headers: those can contain tokens."""
    url, response = parse_url(request.url)._replace(query=None, fragment=None), result.response
    size = "" if response is None else f", {len(response['body'].encode())} bytes"
    ended = f"HTTP {response['status']}" if response is not None else result.failure.message if result.failure else ""
    return f"{request.method} {url}\n{ended} after {round(seconds * 1000)} ms{size}"


def _broken(error: Exception, request: Payload, context: Context, line: "_Line") -> Failure:
    if line.cut or (isinstance(error, TimeoutError) and line.is_over(time.monotonic())):  # the system has time-outs of its own
        return _cut(request, context, line)
    if isinstance(error, http_answer.TooLong):
        return Failure(FailureKind.PERMANENT, str(error))
    named = "" if isinstance(error, http_answer.Broken) else f"{type(error).__name__}: "
    text = re.sub(r"^_\w+\(host='[^']*', port=\d+\): ", "", str(error))  # urllib3 begins with the connection, an object of ours
    return Failure(FailureKind.RETRYABLE, f"{named}{text}"[:500])


def _cut(request: Payload, context: Context, line: "_Line") -> Failure:
    """The failure of a call that was cut here, regardless of what had arrived: the server did not end its answer."""
    if context.stop.is_set() or line.end >= context.deadline:
        return Failure(FailureKind.TIMEOUT, context.cut())
    missing = "answer" if line.is_connected or not context.reach.allow else "connection (check routes and security groups)"
    return Failure(FailureKind.RETRYABLE, f"no {missing} within {request.timeout_seconds:g} s, the timeout_seconds of its payload")


def _judged(answer: Answer) -> Result:
    status = answer.status
    response = {"status": status, "headers": _stored_headers(answer), "body": _stored_body(answer)}
    if 200 <= status < 300:
        return Result(response=response)
    wait = _retry_after_ms(answer.headers)
    kind = FailureKind.RETRYABLE if status in RETRYABLE or status >= 500 else FailureKind.PERMANENT
    if status == TOO_MANY or (status == UNAVAILABLE and wait is not None):
        kind = FailureKind.THROTTLED
    return Result(response=response, failure=Failure(kind, f"HTTP {status}", None if kind is FailureKind.PERMANENT else wait))


def _retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """The wait that a response requests: in seconds, or from its own date to another date. None if there is none, or it is not positive."""
    text = headers.get("Retry-After", "").strip()
    if re.fullmatch("[0-9]+", text):
        digits = text.lstrip("0") or "0"
        wait = min(int(digits[:10]), MOST_WAIT_S) * 1000
    elif (until := _date_ms(text)) is not None:
        sent = _date_ms(headers.get("Date", "").strip())
        wait = until - (sent if sent is not None else time.time_ns() // 1_000_000)
    else:
        return None
    return wait if wait > 0 else None


def _date_ms(text: str) -> int | None:
    """The instant of an HTTP date in one of its three forms (RFC 9110, section 5.6.7), which is always in GMT; None for any other text."""
    found = next((match for form in DATES if (match := form.fullmatch(text))), None)
    if found is None or (month := MONTHS.find(found["month"].lower())) % 3:
        return None
    year, day, hour, minute, second = (int(found[name]) for name in ("year", "day", "hour", "minute", "second"))
    if len(found["year"]) == 2:  # the year that is less than 50 years ahead
        this = time.gmtime().tm_year
        year += this - this % 100
        year -= 100 * (year > this + 50)
    try:
        midnight = calendar.timegm(datetime.date(year, month // 3 + 1, day).timetuple())
    except ValueError:  # 31 February
        return None
    in_time = hour <= 23 and minute <= 59 and second <= 60  # a leap second
    return (midnight + hour * 3_600 + minute * 60 + second) * 1000 if in_time else None


def _exchange(request: Payload, secret: Mapping[str, str], context: Context, line: "_Line") -> Answer:
    """Send the request and read the answer."""
    url, body, headers = parse_url(request.url), _body(request.body), {**_headers(request, context), **secret}
    if context.exchange is not None:
        return context.exchange(request.method, request.url, headers, body)
    connection = line.connection(url.scheme == "https", url.host or "", url.port)
    line.open_ahead(connection, _early_s(context))
    try:
        connection.request(request.method, url.request_uri, body=body, headers=headers, preload_content=False, decode_content=False)
        with cast(socket.socket, connection.sock).makefile("rb") as file:
            return http_answer.read(file, request.method)
    finally:
        connection.close()


def _body(body: Any) -> bytes | None:
    if body is None:
        return None
    return (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()


def _headers(request: Payload, context: Context) -> dict[str, str]:
    kind = "text/plain; charset=utf-8" if isinstance(request.body, str) else "application/json"
    ours = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"} | ({} if request.body is None else {"Content-Type": kind})
    ours |= context.job.headers()
    names = {name.lower() for name in request.headers}
    if PARENT not in names:  # a tracestate belongs to one traceparent
        ours |= context.job.trace()
    return (
        {name: value for name, value in ours.items() if name.lower() not in names}
        | request.headers
        | {"Idempotency-Key": context.idempotency_key, context.id_name: context.job_id}
        | _callback(context)
    )


def _callback(context: Context) -> dict[str, str]:
    address = context.callback
    return {} if address is None else {"Punctual-Callback-Url": address.url, "Punctual-Callback-Token": address.token}


def _stored_headers(answer: Answer) -> dict[str, str]:
    return first_headers((name.lower(), redaction.header(name, value)) for name, value in answer.headers.iteritems())


def _stored_body(answer: Answer) -> str:
    text = answer.content.decode("latin-1" if "8859-1" in answer.headers.get("Content-Type", "") else "utf-8", "replace")
    return text.rstrip("\ufffd") if answer.is_longer else text  # a character cut in two


_slow: dict[str, float] = {}  # by server whose connection was not open at the instant: the time (s) from which on this is tried again


class _Line:
    """The one TCP connection of a call: opened to a checked address, cut when the time is up or a stop is requested."""

    def __init__(self, end: float, context: Context) -> None:
        self.end = self._limit = end
        self.cut = False
        self.began_at: int | None = None
        self._context = context
        self._handle: socket.socket | None = None

    def connection(self, tls: bool, host: str, port: int | None) -> "_Plain | _Secure":
        host, port = host.strip("[]"), port or (443 if tls else 80)  # without one, http.client would look for it in an IPv6 address
        connection = _Secure(host, port, ssl_context=_trust()) if tls else _Plain(host, port)
        connection.line = self
        return connection

    def open(self, connection: HTTPConnection) -> socket.socket:
        """Return a socket to the first address of the host that is allowed and accepts the connection."""
        error: OSError = TimeoutError()
        for family, address in self._addresses(connection):
            try:
                sock = self._dial(family, address)
            except OSError as refused:
                error = refused
                continue
            self.close()
            self._handle = sock.dup()  # TLS takes the socket over; a duplicate can still cut it
            if self.cut:  # meanwhile: the watcher may have seen no handle, or the one before
                sock.close()
                raise TimeoutError
            return sock
        raise error

    def open_ahead(self, connection: HTTPConnection, seconds: float) -> None:
        """Open the connection within this time, unless its server was slower before. If it fails, the first `send` opens it.

        After the instant nothing may hold up the beginning: a job that begins too late is deferred without an attempt, again and again.
        """
        server = f"{connection.host}:{connection.port}"
        if seconds <= _slow.get(server, 0.0):
            return
        self._limit = time.monotonic() + seconds
        try:
            connection.connect()
        except (Refused, HTTPError, OSError, ValueError):
            connection.close()  # the server may be up at the instant
        if time.monotonic() >= self._limit:  # also of a name that is resolved slowly, which cannot be cut
            if len(_slow) >= MOST_SLOW:
                _slow.clear()
            _slow[server] = 2 * seconds
        self._limit = self.end

    def send(self, send: Callable[[], None], *, is_quick: bool) -> None:
        """Send bytes; the first ones at the job's instant. Raises NotBegun."""

        def first() -> None:
            self.began_at = time.time_ns() // 1_000_000
            send()

        if self.began_at is None:
            self._context.begin(first, is_quick=is_quick and self.end - time.monotonic() >= QUICK_S)
        else:
            send()

    @property
    def is_connected(self) -> bool:
        return self._handle is not None

    def is_over(self, now: float) -> bool:
        return self._context.stop.is_set() or now >= self.end

    def shut(self) -> bool:
        """Cut the connection, or the one that is opened next. Return whether there was one."""
        self.cut = True
        if self._handle is None:
            return False  # still connecting
        try:
            self._handle.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the peer was faster
        return True

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()

    def _addresses(self, connection: HTTPConnection) -> Iterator[tuple[int, Any]]:
        try:
            found = socket.getaddrinfo(connection.host, connection.port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise NameResolutionError(connection.host, connection, error) from error
        allowed = [(family, address) for family, _, _, _, address in found if self._may_call(connection.host, str(address[0]))]
        if not allowed:
            raise NotListed if self._context.reach.allow else Refused
        yield from allowed

    def _may_call(self, host: str, address: str) -> bool:
        reach, loopback = self._context.reach, self._context.allow_private
        if not reach.allow:
            return loopback or is_public(address)
        return all(private_network.is_reachable(host, address, each, loopback=loopback) for each in (reach.allow, reach.network))

    def _dial(self, family: int, address: Any) -> socket.socket:
        left = self._limit - time.monotonic()
        if left <= 0 or self.cut:
            raise TimeoutError
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(left)
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            sock.close()
            raise
        return sock


class _Watcher:
    """The thread that cuts the calls whose time is up or whose job is stopped; it is started by the first call.

    With socket time-outs alone a server could send single bytes for hours. A thread for each call would double the threads of a crowd.
    Name resolution cannot be cut; it ends by the resolver's own time-outs.
    """

    def __init__(self) -> None:
        self._lines: set[_Line] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0  # by `time.monotonic()`

    @contextmanager
    def watching(self, line: _Line) -> Iterator[None]:
        with self._changed:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="watcher", daemon=True)
                self._thread.start()
            if not self._lines or line.end < self._wakes_at:
                self._changed.notify()
            self._lines.add(line)
        try:
            yield
        finally:
            with self._changed:
                self._lines.discard(line)
                line.close()

    def _work(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                self._lines -= {line for line in self._lines if line.is_over(now) and line.shut()}
                wait = min((max(line.end - now, 0) for line in self._lines if not line.cut), default=POLL)
                self._wakes_at = now + min(wait, POLL)
                self._changed.wait(self._wakes_at - now if self._lines else None)


WATCHER = _Watcher()


class _Plain(HTTPConnection):
    line: _Line

    def _new_conn(self) -> socket.socket:
        return self.line.open(self)

    def send(self, data: Any) -> None:
        self.line.send(partial(super().send, data), is_quick=self.sock is not None and len(data) <= SHORT)


class _Secure(_Plain, HTTPSConnection):
    def connect(self) -> None:
        """Connect so that an end of the connection that TLS does not announce raises an error.

        By default Python lets OpenSSL report it as an announced end, and its sockets hide it as well.
        """
        assert self.ssl_context is not None
        self.ssl_context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # OpenSSL 1.1 has no such option
        super().connect()
        cast(ssl.SSLSocket, self.sock).suppress_ragged_eofs = False  # type: ignore[attr-defined]


def ready() -> None:
    """Load in advance what the first call would load."""
    _trust()


@cache
def _trust() -> ssl.SSLContext:
    """The certificates of the system; loading them takes longer than a call."""
    return ssl.create_default_context()


def is_public(text: str) -> bool:
    """Whether an address is public: not private, loopback, link-local, multicast, reserved or a tunnel to such an address."""
    address = ipaddress.ip_address(text)
    if any(address in network for network in NOT_PUBLIC):
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(str(address.ipv4_mapped))
        return address in ROUTABLE_V6 and address.is_global and address.sixtofour is None and address.teredo is None
    return address.is_global and not address.is_multicast and not address.is_reserved


TYPE = TargetType(
    payload=Payload,
    run=run,
    check=check,
    content=("body",),
    implied=implied,
    circuit=circuit,
    called=called,
    time_limit="timeout_seconds",
    calls_back=True,
    prepares=True,
    ahead_ms=fetch_call.AHEAD_MS,
    secrets=("bearer_secret", "basic_secret", "header_secrets", "signing_secret"),
    destination="url",
    encodings={"url": as_url_part, "headers": as_header},
)
