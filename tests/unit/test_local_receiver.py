"""The HTTP receiver that sample jobs and drills call."""

import socket
import time
import urllib.error
import urllib.request

import pytest

from local import process
from local.receiver import Receiver, answer

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def test_the_receiver_records_calls_and_their_times() -> None:
    before = time.time_ns() // 1_000_000
    with Receiver() as receiver:
        request = urllib.request.Request(receiver.url("/ok/a"), data=b"body", headers={"X-Job": "7"})
        with DIRECT.open(request) as response:
            assert response.status == 200
        [call] = receiver.calls("/ok/a")
    assert (call.method, call.body, call.headers["X-Job"]) == ("POST", b"body", "7")
    assert before <= call.at <= time.time_ns() // 1_000_000


def test_the_receiver_fails_only_the_first_call_of_a_path() -> None:
    with Receiver() as receiver:
        with pytest.raises(urllib.error.HTTPError) as refused:
            DIRECT.open(receiver.url("/fail-once/a"))
        refused.value.close()
        assert refused.value.code == 500
        DIRECT.open(receiver.url("/fail-once/a")).close()
        assert receiver.counts() == {"/fail-once/a": 2}


def test_the_receiver_answers_the_status_in_the_path() -> None:
    assert answer("/status/429/a", 0) == 429


def test_the_receiver_fails_the_number_of_calls_in_the_path() -> None:
    assert [answer("/fail-twice/a", earlier) for earlier in range(4)] == [500, 500, 200, 200]
    assert [answer("/ok/a", earlier) for earlier in range(2)] == [200, 200]


def test_the_receiver_throttles_the_first_call() -> None:
    with Receiver() as receiver:
        with pytest.raises(urllib.error.HTTPError) as refused:
            DIRECT.open(receiver.url("/throttled/7/a"))
        refused.value.close()
        assert (refused.value.code, refused.value.headers["Retry-After"]) == (429, "7")
        with DIRECT.open(receiver.url("/throttled/7/a")) as response:
            assert (response.status, response.headers["Retry-After"]) == (200, None)


def test_the_receiver_streams_until_it_closes_the_connection() -> None:
    with Receiver() as receiver, DIRECT.open(receiver.url("/stream/0.05/a")) as response:
        assert (response.status, response.headers["Content-Length"]) == (200, None)
        assert set(response.read().splitlines()) == {b"working"}


def test_the_receiver_releases_its_port_at_the_end() -> None:
    with Receiver() as receiver:
        url = receiver.url("/ok/a")
    with pytest.raises(urllib.error.URLError):
        DIRECT.open(url)


def test_the_receiver_reports_each_call_and_its_port_before_it_answers() -> None:
    seen = []
    with Receiver() as receiver, socket.create_connection(("127.0.0.1", receiver.port)) as caller:
        receiver.watch = lambda call: seen.append((call.path, call.port, len(receiver.open_calls())))
        caller.sendall(b"GET /ok/a HTTP/1.1\r\nHost: h\r\n\r\n")
        assert caller.recv(100).startswith(b"HTTP/1.1 200")
        assert seen == [("/ok/a", caller.getsockname()[1], 1)]
        assert process.connected([process.this()], caller.getsockname()[1], receiver.port) == process.this()
        assert process.connected([], caller.getsockname()[1], receiver.port) is None


def test_a_connection_is_identified_by_both_of_its_ports() -> None:
    with Receiver() as one, Receiver() as other, socket.socket() as caller, socket.socket() as namesake:
        for each, receiver in ((caller, one), (namesake, other)):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("127.0.0.1", caller.getsockname()[1]))
            each.connect(("127.0.0.1", receiver.port))
        port, me = caller.getsockname()[1], process.this()
        assert namesake.getsockname()[1] == port
        assert process.connected([me], port, one.port) == process.connected([me], port, other.port) == me
        namesake.close()
        assert process.connected([me], port, other.port) is None


def test_the_receiver_answers_a_slow_call_after_its_delay() -> None:
    began = time.monotonic()
    with Receiver() as receiver, DIRECT.open(receiver.url("/slow/0.1/a")) as response:
        assert response.status == 200 and time.monotonic() - began >= 0.1


def test_a_call_is_closed_before_its_answer_is_sent() -> None:
    with Receiver() as receiver, receiver.answering("POST", "/ok/1", 0, {}, b"", 1) as status:
        assert status == 200 and receiver.calls() and not receiver.open_calls()
