"""The misbehaving proxy in front of a receiver, and the figures of the table of faults."""

import threading
from collections import Counter
from collections.abc import Iterator
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import pytest
import urllib3

from lab.scenarios import faults
from lab.scenarios.faulty import Fault, Faulty, called, refusal
from local.receiver import Receiver

SIGNED = "AWS4-HMAC-SHA256 Credential=test/20261120/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


@pytest.fixture
def proxy(receiver: Receiver) -> Iterator[Faulty]:
    with Faulty(behind=int(receiver.url("").rpartition(":")[2])) as opened:
        yield opened


def call(proxy: Faulty, service: str = "sqs", operation: str = "SendMessage", pool: Any = None) -> int:
    headers = {"Authorization": SIGNED.format(service), "X-Amz-Target": f"Amazon.{operation}"}
    connections = pool or urllib3.PoolManager(retries=False, timeout=60)
    answer = connections.request("POST", f"{proxy.endpoint}/ok/{service}", body=b"{}", headers=headers)
    if pool is None:
        connections.clear()
    return int(answer.status)


def test_the_proxy_passes_calls_on_over_one_connection(proxy: Faulty, receiver: Receiver) -> None:
    pool = urllib3.PoolManager(retries=False, timeout=60)
    assert [call(proxy, pool=pool) for _ in range(3)] == [200] * 3
    assert [(made.path, made.body) for made in receiver.calls()] == [("/ok/sqs", b"{}")] * 3
    assert pool.connection_from_url(proxy.endpoint).num_connections == 1  # type: ignore[attr-defined]
    pool.clear()


@pytest.mark.parametrize(("kind", "status"), [("throttle", 400), ("error", 500)])
def test_the_proxy_refuses_calls_of_the_given_service_and_operation(proxy: Faulty, receiver: Receiver, kind: Any, status: int) -> None:
    with proxy.misbehaving(Fault(kind, "sqs", operations=("SendMessage",))):
        assert call(proxy) == status
        assert (call(proxy, "dynamodb"), call(proxy, operation="DeleteMessage")) == (200, 200)
    assert call(proxy) == 200
    assert len(receiver.calls("/ok/sqs")) == 2 and proxy.dealt == {f"{kind} sqs": 1}


@pytest.mark.parametrize(("kind", "arrives"), [("lose_call", 0), ("lose_answer", 1)])
def test_the_proxy_loses_a_call_or_its_answer(proxy: Faulty, receiver: Receiver, kind: Any, arrives: int) -> None:
    with proxy.misbehaving(Fault(kind)), pytest.raises(urllib3.exceptions.HTTPError):
        call(proxy)
    assert len(receiver.calls()) == arrives


def test_a_fault_affects_its_share_of_the_calls(proxy: Faulty) -> None:
    with proxy.misbehaving(Fault("error", share=0.3)):
        statuses = Counter(call(proxy) for _ in range(60))
    assert 6 <= statuses[500] <= 30


def test_a_closed_connection_behind_the_proxy_is_opened_again(proxy: Faulty) -> None:
    """The server closes the idle connection behind the proxy; the caller's own connection stays open."""
    closed = threading.Semaphore(0)

    class Once(StreamRequestHandler):
        def handle(self) -> None:
            self.request.recv(65_536)
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        def finish(self) -> None:
            super().finish()
            self.request.close()
            closed.release()

    with ThreadingTCPServer(("127.0.0.1", 0), Once) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        proxy.behind = server.server_address[1]
        pool = urllib3.PoolManager(retries=False, timeout=60)
        statuses = []
        for _ in range(3):
            statuses.append(call(proxy, pool=pool))
            assert closed.acquire(timeout=60)
        server.shutdown()
    assert statuses == [200] * 3
    pool.clear()


def test_a_call_fails_if_no_server_is_behind_the_proxy(proxy: Faulty) -> None:
    proxy.behind = 1
    with pytest.raises(urllib3.exceptions.HTTPError):
        call(proxy)


def test_the_proxy_reads_service_and_operation_of_a_call() -> None:
    head = "POST / HTTP/1.1\r\nAuthorization: {}\r\n{}\r\n\r\n"
    assert called(head.format(SIGNED.format("dynamodb"), "X-Amz-Target: DynamoDB_20120810.GetItem").encode(), b"") == (
        "dynamodb",
        "GetItem",
    )
    assert called(head.format(SIGNED.format("sns"), "Accept: */*").encode(), b"Action=PublishBatch&A=b") == ("sns", "PublishBatch")
    assert called(b"GET / HTTP/1.1\r\n\r\n", b"") == ("", "")


def test_a_throttled_call_gets_the_error_of_its_service() -> None:
    assert b"429" in refusal("throttle", "lambda").splitlines()[0]
    assert b"<Code>Throttling</Code>" in refusal("throttle", "sns")
    assert b"ProvisionedThroughputExceededException" in refusal("throttle", "dynamodb")


def a_job(name: str, **fields: Any) -> Any:
    job = {"status": "succeeded", "payload": {"url": f"http://127.0.0.1:1/ok/{name}"}, "attempts": [{"outcome": "succeeded"}]}
    return job | {"start_delay_ms": 7} | fields


def test_the_table_counts_ended_doubled_and_repeated_jobs() -> None:
    crashed, done = {"outcome": "crashed"}, {"outcome": "succeeded"}
    jobs = [
        a_job("a"),
        a_job("b", attempts=[crashed, done], start_delay_ms=31_000),
        a_job("c", attempts=[done, done]),
        a_job("d", status="queued", attempts=[], start_delay_ms=None),
        a_job("e", status="failed", attempts=[crashed], start_delay_ms=-1),
    ]
    line = faults.figures(jobs, Counter({"/ok/a": 1, "/ok/b": 2, "/ok/c": 2, "/ok/e": 1}))
    assert (line["final"], line["succeeded"], line["finished twice"], line["early"]) == (4, 3, 1, 1)
    assert (line["work done again"], line["worst delay ms"]) == (2, 31_000)


def test_the_short_table_names_existing_faults() -> None:
    assert set(faults.SHORT) < set(faults.MOST) == set(faults.rows()) - set(faults.AWAY)
