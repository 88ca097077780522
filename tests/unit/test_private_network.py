"""Private targets: which addresses the lists of the stage and of a target reach, and that no other function calls them."""

import json
import threading
import time
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from lambdas import _fetching, fetch
from lambdas._clock import SystemClock
from scheduler.model.job import FailureKind
from scheduler.targets import fetch_call
from scheduler.targets.base import Context, Reach
from scheduler.targets.calls import Refused
from scheduler.targets.job_context import JobContext
from scheduler.targets.private_network import check_entry, is_reachable, is_within, may_name
from scheduler.targets.types import http
from tests.unit import test_hostile_urls
from tests.unit.fake_calls import FUNCTION, FakeCalls, raising
from tests.unit.test_hostile_urls import CORPUS, NO_URL
from tests.unit.test_target_http import Receiver, serving

ANY = ("0.0.0.0/0", "::/0", "*.internal.example.com")
dialled = test_hostile_urls.dialled


@pytest.mark.parametrize(
    ("address", "allow", "reached"),
    [
        ("10.0.1.7", ["10.0.0.0/16"], True),
        ("10.1.0.0", ["10.0.0.0/16"], False),
        ("10.0.1.7", ["10.0.1.7"], True),
        ("::ffff:10.0.1.7", ["10.0.0.0/16"], True),
        ("::ffff:a00:107", ["10.0.0.0/16"], True),
        ("::ffff:10.1.0.0", ["10.0.0.0/16"], False),
        ("fd12::1", ["fd12::/16"], True),
        ("fd13::1", ["fd12::/16"], False),
        ("100.64.0.1", ["100.64.0.0/10"], True),
        ("8.8.8.8", ["8.8.8.0/24"], True),
        # a host alone reaches private addresses only
        ("10.0.1.7", ["*.internal.example.com"], True),
        ("::ffff:10.0.1.7", ["*.internal.example.com"], True),
        ("fd12::1", ["*.internal.example.com"], True),
        ("8.8.8.8", ["*.internal.example.com"], False),
        ("100.64.0.1", ["*.internal.example.com"], False),
        ("2606:4700::1", ["*.internal.example.com"], False),
        ("10.0.1.7", ["*.other.example.com"], False),
        ("10.0.1.7", [], False),
        # texts that are no address: only a resolver knows what they mean
        ("167772423", ["10.0.0.0/16"], False),
        ("0x0a000107", ["10.0.0.0/16"], False),
        ("10.0.263", ["10.0.0.0/16"], False),
    ],
)
def test_an_address_is_reached_if_a_range_or_a_host_of_the_list_has_it(address: str, allow: list[str], reached: bool) -> None:
    assert is_reachable("DB.internal.example.com.", address, allow) is reached


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.8.8.8", "169.254.169.254", "169.254.170.2", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1", "fd00:ec2::254", "fd00:ec2::23", "::127.0.0.1", "::10.0.0.1"),
        *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:0:a00:1::1"),
    ],
)
def test_some_addresses_are_never_reached(address: str) -> None:
    assert not is_reachable("db.internal.example.com", address, ANY)
    assert is_reachable("db.internal.example.com", address, ANY, loopback=True) is (address in LOOPBACK)


LOOPBACK = {"127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"}


@pytest.mark.parametrize(
    ("entry", "within"),
    [
        *(("10.0.0.0/16", True), ("10.0.1.0/24", True), ("10.0.1.7", True), ("10.0.0.0/15", False), ("0.0.0.0/0", False)),
        *(("fd12::/32", True), ("fd12::/8", False), ("::/0", False), ("::ffff:10.0.0.0/112", False)),
        *(
            ("db.internal.example.com", True),
            ("*.db.Internal.example.com", True),
            ("*.example.com", False),
            ("internal.example.com", False),
        ),
    ],
)
def test_an_entry_of_a_target_lies_within_the_option(entry: str, within: bool) -> None:
    assert is_within(entry, ["10.0.0.0/16", "fd12::/16", "*.internal.example.com"]) is within


@pytest.mark.parametrize(
    "entry", ["*", "db", "10.0.*", "10.0.0", "*.*", "a.*", "10.0.0.1/16", "10.0.0.0/33", "https://a.example.com", "a.example.com:80", ""]
)
def test_a_text_that_is_neither_host_nor_range_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"is neither a host nor a range|is no range"):
        check_entry(entry)


@pytest.mark.parametrize("entry", ["169.254.169.254", "169.254.0.0/16", "224.0.0.0/8", "fe80::/64", "fd00:ec2::254"])
def test_a_range_that_no_job_may_call_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="which no job may call"):
        check_entry(entry)


@pytest.mark.parametrize(
    ("host", "allow", "named"),
    [
        *(("10.0.1.7", ["10.0.0.0/16"], True), ("10.1.0.0", ["10.0.0.0/16"], False), ("[fd12::1]", ["fd12::/16"], True)),
        *(("db.example.com", ["10.0.0.0/16"], True), ("db.example.com", ["*.internal.example.com"], False)),
        *(("db.internal.example.com", ["*.internal.example.com"], True), ("10.0.1.7", ["*.internal.example.com"], False)),
    ],
)
def test_a_url_is_refused_early_if_its_text_shows_it(host: str, allow: list[str], named: bool) -> None:
    assert may_name(host, allow) is named


# The function.


def called(url: str, allow: tuple[str, ...], reach: Reach, **at: Any) -> Any:
    """What `fetch-private` answers, with this reach of its own; the event is that of an executor."""
    sent = Context(JobContext("01JOB"), time.monotonic() + 60, threading.Event(), reach=Reach(plain_http=True).within(allow))
    _fetching.fetch.cache_clear()
    event = json.loads(fetch_call.encode_event({"url": url}, {}, sent))
    with pytest.MonkeyPatch.context() as patched:
        made = _fetching.Fetch(SystemClock(), reach, **{"allow_private": False} | at)
        patched.setattr(_fetching, "fetch", lambda: made)
        return fetch_call.decode_answer(fetch.handler(event, None))


@pytest.mark.parametrize("url", [url for url, why in CORPUS if why != NO_URL])
def test_no_hostile_url_is_called_in_the_private_network(url: str, dialled: list[Any]) -> None:
    """The corpus of the public function: the lists here reach one range alone, of which it has no address."""
    failure = called(url, ("10.77.0.0/16", "*.internal.example.com"), Reach(plain_http=True, network=ANY)).failure
    assert failure is not None and dialled == []


@pytest.mark.parametrize("url", [url for url, why in CORPUS if why != NO_URL])
def test_no_service_of_a_host_is_called_even_if_everything_is_listed(url: str, dialled: list[Any]) -> None:
    called(url, ANY, Reach(plain_http=True, network=ANY))
    for address in map(ip_address, dialled):
        assert not (address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified), url
        assert address not in ip_network("fd00:ec2::/32"), url


@pytest.mark.real_clock
def test_only_the_function_of_the_private_network_calls_it() -> None:
    """The server listens on loopback, which the list may have on the local stage."""
    listed, local = ("127.0.0.0/30",), Reach(plain_http=True, network=("127.0.0.0/8",))
    with serving() as port:
        url = f"http://127.0.0.1:{port}/echo"
        assert called(url, listed, local, allow_private=True).response["status"] == 200
        Receiver.seen.clear()
        for allow, reach, at in (
            (listed, Reach(plain_http=True), {}),  # the public function
            ((), local, {"allow_private": True}),  # a job without a private target
            (("127.0.0.2",), local, {"allow_private": True}),  # not in the list of the target
            (listed, Reach(plain_http=True, network=("10.0.0.0/8",)), {"allow_private": True}),  # not in that of the stage
            (listed, local, {}),  # loopback elsewhere
            (listed, local, {"allow_private": True, "own": "127.0.0.1"}),  # the scheduler's own API
        ):
            failure = called(url, allow, reach, **at).failure
            assert failure is not None and failure.kind is FailureKind.PERMANENT, (allow, reach, at)
        assert not Receiver.seen


def test_a_connection_that_is_never_made_names_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def dial(line: Any, family: int, address: Any) -> Any:
        line.end = 0.0  # its time is up
        raise TimeoutError

    monkeypatch.setattr(http._Line, "_dial", dial)
    failure = called("http://10.0.0.7/", ("10.0.0.0/16",), Reach(plain_http=True, network=("10.0.0.0/8",))).failure
    assert failure is not None and failure.kind is FailureKind.RETRYABLE
    assert failure.message == "no connection (check routes and security groups) within 30 s, the timeout_seconds of its payload"


def test_a_function_that_lambda_connects_again_is_awaited_without_a_charge() -> None:
    calls = FakeCalls(invoke=raising(Refused(fetch_call.INACTIVE, "The function is inactive", retryable=True)))
    context = Context(JobContext("01JOB"), time.monotonic() + 60, threading.Event(), calls=lambda: calls, fetcher=FUNCTION)
    result = http.run({"url": "https://example.com"}, context)
    assert result.unstarted and result.failure is not None and result.failure.kind is FailureKind.THROTTLED
