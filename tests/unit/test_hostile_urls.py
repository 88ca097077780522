"""URLs that would reach internal addresses: each is refused with its class, and no connection is opened.

Each URL of the corpus passes through all checks of an `http` job: the payload's own rules, the reach of the stage, and the addresses from
the real resolver at the time of the connection. For a lying name server, a stand-in resolver queries a real server on loopback.
"""

import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from pydantic import TypeAdapter, ValidationError

from scheduler.model.job import FailureKind, Result
from scheduler.targets import registry
from scheduler.targets.base import Context, NotAllowed, Reach
from scheduler.targets.job_context import JobContext
from scheduler.targets.types import http

NOT_PUBLIC = "http jobs may call public addresses only, and this host has none."
NO_URL, TERMS = "payload", "terms"  # refused before the run: by the payload's rules, or by the reach of the stage


def literal(*hosts: str) -> list[tuple[str, str]]:
    return [(f"https://{host}/latest/meta-data/", NOT_PUBLIC) for host in hosts]


CORPUS: list[tuple[str, str]] = [
    # loopback, in every spelling that resolvers accept
    *literal("127.0.0.1", "127.0.0.1:9001", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001"),
    *literal("0x7f.1", "127.255.255.254", "localhost", "LOCALHOST", "localhost.", "0", "0.0.0.0", "0x0"),
    # metadata services and the Lambda runtime
    *literal("169.254.169.254", "2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "169.254.43518"),
    *literal("169.254.170.2", "169.254.100.1", "[fd00:ec2::254]", "[fe80::1]"),
    # private and shared networks
    *literal("10.0.0.1", "10.1", "167772161", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.257", "0xc0a80001", "100.64.0.1"),
    *literal("192.0.0.1", "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1"),
    # multicast, broadcast, reserved
    *literal("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    # IPv6: loopback, unspecified, unique local, link local, documentation, multicast
    *literal(
        "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[fc00::1]", "[fd12:3456::1]", "[fe80::1%25lo]", "[fec0::1]", "[2001:db8::1]", "[ff02::1]"
    ),
    *literal("[3fff::1]", "[3fff:fff:ffff::1]", "[2001:20::1]", "[2001:2f:ffff::1]"),
    # IPv4 inside IPv6: mapped, compatible, translated, 6to4, Teredo
    *literal(
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::ffff:10.0.0.1]", "[::127.0.0.1]"
    ),
    *literal("[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::]", "[2001:0:7f00:1::1]", "[::ffff:0:127.0.0.1]"),
    # texts that look like another host than the one that is called
    ("https://example.com@127.0.0.1/", NO_URL),
    ("https://127.0.0.1@example.com/", NO_URL),
    ("https://user:secret@169.254.169.254/", NO_URL),
    ("https://example.com:443@10.0.0.1/", NO_URL),
    ("https://127.0.0.1#@example.com/", NOT_PUBLIC),
    ("https://127.0.0.1?@example.com/", NOT_PUBLIC),
    ("https://127.0.0.1\\@example.com/", NO_URL),
    ("https:127.0.0.1", NO_URL),
    ("https:///127.0.0.1/", NO_URL),
    ("//127.0.0.1/", NO_URL),
    ("https://127.0.0.1%00.example.com/", NO_URL),
    ("https://127。0。0。1/", NO_URL),
    ("https://①②⑦.0.0.1/", NO_URL),
    ("https://127.0.0.1\r\nHost: example.com/", NO_URL),
    ("https://127.0.0.1 .example.com/", NO_URL),
    ("https://127.0.0.1\t/", NO_URL),
    # other schemes
    *((f"{scheme}:///etc/passwd", NO_URL) for scheme in ("file", "jar", "netdoc")),
    *((f"{scheme}://127.0.0.1:6379/_INFO", NO_URL) for scheme in ("gopher", "dict", "ftp", "ldap", "tftp", "sftp", "ws", "unix")),
    ("data:text/html,x", NO_URL),
    ("javascript:alert(1)", NO_URL),
    # no TLS
    ("http://example.com/", TERMS),
    ("HTTP://example.com/", TERMS),
    ("http://169.254.169.254/", TERMS),
]


def context(**reach: Any) -> Context:
    return Context(JobContext("01JOB"), time.monotonic() + 60, threading.Event(), reach=Reach(**reach))


def call(url: str, **reach: Any) -> Result:
    return http.run({"url": url}, context(**reach))


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records every address that would be connected to; no connection is made."""
    found: list[Any] = []

    def dial(line: Any, family: int, address: Any) -> socket.socket:
        found.append(address[0])
        raise ConnectionRefusedError("not in this test")

    monkeypatch.setattr(http._Line, "_dial", dial)
    return found


def test_the_corpus_is_large_and_has_no_duplicates() -> None:
    assert len({url for url, _ in CORPUS}) == len(CORPUS) >= 60


@pytest.mark.parametrize(("url", "why"), CORPUS, ids=[ascii(url) for url, _ in CORPUS])
def test_a_hostile_url_is_refused_with_its_class_and_not_called(url: str, why: str, dialled: list[Any]) -> None:
    try:
        TypeAdapter(http.Payload).validate_python({"url": url})
    except ValidationError as refused:
        assert why == NO_URL and [error["loc"] for error in refused.errors()] == [("url",)]
        return
    assert why != NO_URL
    if why == TERMS:
        with pytest.raises(NotAllowed, match="must be an https:// URL") as said:
            registry.check_reach("http", {"url": url}, Reach())
        assert said.value.field == "url"
    failure = call(url).failure
    assert dialled == []
    assert failure is not None
    if failure.kind is FailureKind.RETRYABLE:  # this resolver does not accept the spelling
        assert "NameResolutionError" in failure.message
    else:
        assert failure.kind is FailureKind.PERMANENT and (failure.message == NOT_PUBLIC or why == TERMS)


def test_most_of_the_corpus_is_refused_for_its_address(dialled: list[Any]) -> None:
    asked = [url for url, why in CORPUS if why == NOT_PUBLIC]
    unknown = [url for url in asked if (failure := call(url).failure) is None or failure.kind != "permanent"]
    assert len(asked) >= 60 and len(unknown) <= 3, unknown


@pytest.mark.parametrize(
    "url", ["https://8.8.8.8/", "https://[2606:4700:4700::1111]/", "https://134744072/", "https://1.1.1.1:8443/a?b=c#d"]
)
def test_public_urls_are_called(url: str, dialled: list[Any]) -> None:
    call(url)
    assert len(dialled) == 1 and http.is_public(dialled[0])


HOSTS = ("*.example.com", "hooks.example.org")


@pytest.mark.parametrize("url", ["https://a.example.com/", "https://A.B.EXAMPLE.com:8443/", "https://hooks.example.org./"])
def test_a_stage_may_restrict_the_hosts(url: str) -> None:
    registry.check_reach("http", {"url": url}, Reach(hosts=HOSTS))


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/",
        "https://a.example.com.evil.net/",
        "https://evil.net/a.example.com",
        "https://8.8.8.8/",
        "https://aexample.com/",
        "https://hooks.example.org.evil.net/",
        "https://evil.net#.example.com",
        "https://evil.net?.example.com",
        "https://hooksXexample.org/",
    ],
)
def test_other_hosts_are_refused_at_creation_and_at_the_run(url: str, dialled: list[Any]) -> None:
    with pytest.raises(NotAllowed, match=r"allowed: \*\.example\.com, hooks\.example\.org"):
        registry.check_reach("http", {"url": url}, Reach(hosts=HOSTS))
    failure = call(url, hosts=HOSTS).failure
    assert failure is not None and failure.kind is FailureKind.PERMANENT and dialled == []


# A lying name server


class Names:
    """A name server on loopback: answers questions for A records of a name with the next of its addresses each time."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.asked = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while question := self._socket.recvfrom(512):
            query, who = question
            if not query:
                return
            address = self.addresses[min(self.asked, len(self.addresses) - 1)]
            self.asked += 1
            record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(address)  # with a time to live of 0
            self._socket.sendto(query[:2] + b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" + query[12:] + record, who)

    def getaddrinfo(self, host: str, port: int, **options: Any) -> Sequence[Any]:
        """Resolves like the system's resolver: one query for each call."""
        labels = b"".join(bytes([len(label)]) + label.encode() for label in host.split(".")) + b"\0"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(5)
            asking.sendto(b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00\x01\x00\x01", self._socket.getsockname())
            answer = asking.recv(512)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (socket.inet_ntoa(answer[-4:]), port))]


@pytest.fixture
def lying(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    names = Names(*request.param)
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    yield names
    names.close()


@pytest.mark.parametrize("lying", [("8.8.8.8", "127.0.0.1"), ("8.8.8.8", "169.254.169.254")], indirect=True)
def test_a_rebound_name_is_called_at_the_checked_address(lying: Names, dialled: list[Any]) -> None:
    call("https://rebind.example/")
    assert dialled == ["8.8.8.8"] and lying.asked == 1


@pytest.mark.parametrize("lying", [("127.0.0.1",), ("169.254.169.254", "8.8.8.8"), ("10.0.0.1",)], indirect=True)
def test_a_name_of_a_private_address_is_refused(lying: Names, dialled: list[Any]) -> None:
    failure = call("https://inside.example/").failure
    assert failure is not None and (failure.kind, failure.message) == ("permanent", NOT_PUBLIC)
    assert dialled == []


@pytest.mark.parametrize("lying", [("8.8.8.8", "127.0.0.1")], indirect=True)
def test_the_next_attempt_resolves_again_and_refuses_a_private_address(lying: Names, dialled: list[Any]) -> None:
    kinds = [failure.kind for _ in range(2) if (failure := call("https://moving.example/").failure)]
    assert (kinds, dialled) == (["retryable", "permanent"], ["8.8.8.8"])


# Redirects


class Chain(BaseHTTPRequestHandler):
    """Redirects: once to itself, then to an internal address."""

    seen: ClassVar[list[str]] = []
    status: ClassVar[int] = 302

    def do_GET(self) -> None:
        self.seen.append(self.path)
        onward = {"/1": "/2", "/2": "/3"}.get(self.path, "http://169.254.169.254/latest/meta-data/")
        self.send_response(self.status)
        self.send_header("Location", onward)
        self.send_header("Refresh", f"0; url={onward}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("path", ["/1", "/inside"])
def test_redirects_end_at_their_first_answer(status: int, path: str) -> None:
    Chain.seen.clear()
    Chain.status = status
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chain)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        given = Context(JobContext("01JOB"), time.monotonic() + 60, threading.Event(), allow_private=True, reach=Reach(plain_http=True))
        failure = http.run({"url": f"http://127.0.0.1:{server.server_address[1]}{path}"}, given).failure
    finally:
        server.shutdown()
        server.server_close()
    assert failure is not None and (failure.kind, failure.message) == ("permanent", f"HTTP {status}")
    assert Chain.seen == [path]
