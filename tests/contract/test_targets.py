"""The port `Calls` on boto3: requests of the target types arrive (on moto), and refusals are classified (answered in process)."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest
import urllib3.util.connection
from botocore.exceptions import ConnectionClosedError, NoCredentialsError, ParamValidationError, ReadTimeoutError

from scheduler.model.job import Result
from scheduler.storage.aws import clients
from scheduler.storage.aws.calls import READ_TIMEOUTS, RESTED_MS, AwsCalls
from scheduler.targets import registry
from scheduler.targets.aws_call import Invoked, invoke
from scheduler.targets.base import Reach
from scheduler.targets.calls import Refused, Request
from tests.conftest import FixedClock
from tests.contract.wire import Wire
from tests.unit.fake_calls import FakeCalls, context

ACCOUNT = "us-east-1:123456789012"
FUNCTION = f"arn:aws:lambda:{ACCOUNT}:function:orders"
QUEUE = f"arn:aws:sqs:{ACCOUNT}:orders"
TOPIC = f"arn:aws:sns:{ACCOUNT}:orders"
BUS = f"arn:aws:events:{ACCOUNT}:event-bus/orders"
MACHINE = f"arn:aws:states:{ACCOUNT}:stateMachine:orders"
EXECUTION = f"arn:aws:states:{ACCOUNT}:execution:orders:01JOB"
REACH = Reach((FUNCTION, f"{QUEUE}*", "arn:aws:sqs:ap-south-1:*:*", TOPIC, BUS, MACHINE), "punctual@example.com")
EVENT = {"bus": BUS, "source": "shop", "detail_type": "Paid", "detail": {"order": 7}}
MAIL = {"to": ["ann@example.com"], "subject": "Hi", "text": "text", "html": "<p>html</p>"}


def left() -> float:
    return 3.0


@pytest.fixture
def calls() -> AwsCalls:
    return AwsCalls(FixedClock())


def run(calls: AwsCalls, name: str, payload: dict[str, Any]) -> Result:
    """An attempt of the type, on AWS."""
    return registry.load(name).run(payload, context(calls, seconds=3.0, reach=REACH))


def output(calls: AwsCalls, name: str, payload: dict[str, Any]) -> str | None:
    result = run(calls, name, payload)
    assert result.failure is None
    return result.output


def asked(name: str, payload: dict[str, Any]) -> Request:
    """The last request that an attempt of the type makes."""
    fake = FakeCalls()
    registry.load(name).run(payload, context(fake, reach=REACH))
    return fake.asked[-1]


SEND = asked("sqs", {"queue": QUEUE, "body": "body", "attributes": {"color": "red"}})


@pytest.fixture
def arrived(moto: None) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The messages that a queue named `orders` has received."""
    sqs: Any = boto3.client("sqs")
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    yield lambda: sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]).get(
        "Messages", []
    )


def test_a_message_arrives_in_its_queue(calls: AwsCalls, arrived: Callable[[], list[dict[str, Any]]]) -> None:
    sent = calls.send(SEND, left=left)["MessageId"]
    (message,) = arrived()
    assert (message["MessageId"], message["Body"]) == (sent, "body")
    assert message["MessageAttributes"]["color"]["StringValue"] == "red"


def test_a_fifo_queue_drops_a_duplicate(calls: AwsCalls, moto: None) -> None:
    sqs: Any = boto3.client("sqs")
    url = sqs.create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    for _ in range(2):
        assert output(calls, "sqs", {"queue": f"{QUEUE}.fifo", "body": "body", "group": "g"})
    assert len(sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]) == 1


def test_a_topic_delivers_to_its_subscribers(calls: AwsCalls, arrived: Callable[[], list[dict[str, Any]]]) -> None:
    sns: Any = boto3.client("sns")
    sns.create_topic(Name="orders")
    sns.subscribe(TopicArn=TOPIC, Protocol="sqs", Endpoint=QUEUE)
    assert output(calls, "sns", {"topic": TOPIC, "message": "body", "attributes": {"color": "red"}, "subject": "news"})
    (message,) = arrived()
    told = json.loads(message["Body"])
    assert (told["Message"], told["Subject"], told["MessageAttributes"]["color"]["Value"]) == ("body", "news", "red")


def test_a_bus_receives_the_event(calls: AwsCalls) -> None:
    wire = spy(calls, "events")
    wire.answer("PutEvents", {"FailedEntryCount": 0, "Entries": [{"EventId": "e1"}]})
    assert output(calls, "eventbridge", EVENT) == "e1"
    ((entry,),) = [sent["Entries"] for sent in wire.sent("PutEvents")]
    assert (entry["EventBusName"], entry["Source"], entry["DetailType"]) == (BUS, "shop", "Paid")
    assert json.loads(entry["Detail"])["order"] == 7


@pytest.fixture
def machine(moto: None) -> Any:
    states: Any = boto3.client("stepfunctions")
    definition = json.dumps({"StartAt": "End", "States": {"End": {"Type": "Pass", "End": True}}})
    states.create_state_machine(name="orders", definition=definition, roleArn="arn:aws:iam::123456789012:role/any")
    return states


def test_an_execution_starts_once(calls: AwsCalls, machine: Any) -> None:
    asked_for = {"state_machine": MACHINE, "input": {"order": 7}}
    assert [output(calls, "stepfunctions", asked_for) for _ in range(2)] == [EXECUTION] * 2
    assert len(machine.list_executions(stateMachineArn=MACHINE)["executions"]) == 1
    found = machine.describe_execution(executionArn=EXECUTION)
    assert (found["status"], json.loads(found["input"])["order"]) == ("RUNNING", 7)
    failure = run(calls, "stepfunctions", {"state_machine": MACHINE, "input": {"order": 8}}).failure
    assert failure is not None and failure.kind == "permanent"
    assert failure.message == "ExecutionAlreadyExists: there is an execution 01JOB with another input"


def test_an_e_mail_goes_to_ses_from_the_sender(calls: AwsCalls) -> None:
    wire = spy(calls, "sesv2", None)
    wire.answer("SendEmail", {"MessageId": "s1"})
    assert output(calls, "email", MAIL) == "s1"
    (sent,) = wire.sent("SendEmail")
    assert sent["FromEmailAddress"] == "punctual@example.com"
    assert sent["Destination"] == {"ToAddresses": ["ann@example.com"]}
    simple = sent["Content"]["Simple"]
    assert (simple["Subject"]["Data"], simple["Body"]["Text"]["Data"], simple["Body"]["Html"]["Data"]) == ("Hi", "text", "<p>html</p>")
    assert {"Name": "Punctual-Job-Id", "Value": "01JOB"} in simple["Headers"]


class Once(BaseHTTPRequestHandler):
    """Lambda behind connections that answer one request each: a further one on the same connection is lost."""

    protocol_version = "HTTP/1.1"
    answered = False

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.answered:
            self.close_connection = True
            return
        self.answered = True
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"null")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def once() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Once)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_after_a_rest_an_invocation_gets_a_new_connection(once: str) -> None:
    """It must not be repeated, so it would be lost with a connection that was closed in between."""
    calls = AwsCalls(clock := FixedClock(), endpoint_url=once)
    assert invoke(calls, FUNCTION, "{}", wait=True, left=left) == Invoked("null")
    clock.advance(RESTED_MS + 1)
    assert invoke(calls, FUNCTION, "{}", wait=True, left=left) == Invoked("null")
    clock.advance(RESTED_MS)  # without a rest the connection is used again
    with pytest.raises(Refused, match="ConnectionClosedError"):
        invoke(calls, FUNCTION, "{}", wait=True, left=left)


def test_connections_probe_long_before_the_network_forgets_them(once: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, made = AwsCalls(FixedClock(), endpoint_url=once), list[socket.socket]()
    connect = urllib3.util.connection.create_connection
    monkeypatch.setattr(urllib3.util.connection, "create_connection", lambda *a, **k: made.append(connect(*a, **k)) or made[-1])
    assert invoke(calls, FUNCTION, "{}", wait=True, left=left) == Invoked("null")
    (connection,) = made
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert [connection.getsockopt(*option[:2]) for option in clients.KEEP_ALIVE] == [45, 15, 4]


@pytest.mark.parametrize("head", ["Content-Length: 60", "Transfer-Encoding: chunked"])
def test_an_answer_of_a_function_that_breaks_off_is_retryable(head: str) -> None:
    text = '{"began_at": 1, "failure": null'
    body = text if head.startswith("Content") else f"{len(text):x}\r\n{text}\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}".encode())

        threading.Thread(target=serve, daemon=True).start()
        calls = AwsCalls(FixedClock(), endpoint_url=f"http://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(Refused) as refused:
            invoke(calls, FUNCTION, "{}", wait=True, left=left)
    assert refused.value.retryable


def spy(calls: AwsCalls, service: str, region: str | None = "us-east-1", seconds: float = 3.0) -> Wire:
    return Wire(calls._client(service, region, seconds))


class Body:
    """A streamed answer."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def read(self) -> bytes:
        return self.text


@pytest.mark.parametrize(("wait", "kind"), [(True, "RequestResponse"), (False, "Event")])
def test_a_function_is_called_and_its_response_read(calls: AwsCalls, wait: bool, kind: str) -> None:
    wire = spy(calls, "lambda")
    wire.answer("Invoke", {"StatusCode": 200, "Payload": Body(b'{"a": 1}')})
    assert invoke(calls, FUNCTION, '{"b": 2}', wait=wait, left=left) == Invoked('{"a": 1}')
    (sent,) = wire.sent("Invoke")
    assert (sent["FunctionName"], sent["InvocationType"], sent["Payload"]) == (FUNCTION, kind, b'{"b": 2}')
    wire.answer("Invoke", {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": Body(b"\xff")})
    assert invoke(calls, FUNCTION, "{}", wait=wait, left=left) == Invoked("\N{REPLACEMENT CHARACTER}", error=True)


ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "Invoke": ("lambda", {"function": FUNCTION}),
    "SendMessage": ("sqs", {"queue": QUEUE, "body": "body"}),
    "Publish": ("sns", {"topic": TOPIC, "message": "body"}),
    "PutEvents": ("eventbridge", EVENT),
    "StartExecution": ("stepfunctions", {"state_machine": MACHINE}),
    "SendEmail": ("email", MAIL),
}


@pytest.mark.parametrize("operation", ASKED)
@pytest.mark.parametrize(
    ("code", "status", "retryable"),
    [
        ("ThrottlingException", 400, True),
        ("TooManyRequestsException", 429, True),
        ("ServiceException", 500, True),
        ("ExecutionLimitExceeded", 400, True),
        ("AccessDeniedException", 403, False),
        ("ResourceNotFoundException", 404, False),
        ("ValidationException", 400, False),
    ],
)
def test_retryable_refusals_are_distinguished_from_permanent_ones(
    calls: AwsCalls, operation: str, code: str, status: int, retryable: bool
) -> None:
    request = asked(*ASKED[operation])
    wire = spy(calls, request.service, request.region)
    wire.refuse(operation, code, status)
    with pytest.raises(Refused) as refused:
        calls.send(request, left=left)
    assert (str(refused.value), refused.value.retryable) == (f"{code}: so", retryable)
    assert len(wire.sent(operation)) == 1, "there are no retries besides the job's own"


@pytest.mark.parametrize("operation", ASKED)
def test_a_closed_connection_is_retried_once_except_for_functions(calls: AwsCalls, operation: str) -> None:
    request = asked(*ASKED[operation])
    wire = spy(calls, request.service, request.region)
    wire.cut(operation)
    with pytest.raises(Refused, match="EndpointConnectionError: ") as refused:
        calls.send(request, left=left)
    assert refused.value.retryable
    assert len(wire.sent(operation)) == (1 if operation == "Invoke" else 2)


def raised(wire: Wire, operation: str, error: Exception) -> None:
    def answer(params: dict[str, Any]) -> Any:
        raise error

    wire.answers[operation] = answer


@pytest.mark.parametrize(
    ("error", "retryable", "sent"),
    [
        (ReadTimeoutError(endpoint_url="http://nowhere"), True, 1),
        (ConnectionClosedError(endpoint_url="http://nowhere"), True, 2),
        (NoCredentialsError(), False, 1),
        (ParamValidationError(report="bad"), False, 1),
    ],
    ids=lambda each: type(each).__name__,
)
def test_errors_of_botocore_are_classified_too(calls: AwsCalls, error: Exception, retryable: bool, sent: int) -> None:
    wire = spy(calls, "sqs")
    raised(wire, "SendMessage", error)
    with pytest.raises(Refused) as refused:
        calls.send(SEND, left=left)
    assert (refused.value.retryable, refused.value.code) == (retryable, type(error).__name__)
    assert len(wire.sent("SendMessage")) == sent


@pytest.mark.parametrize(("code", "retryable"), [("ThrottlingException", True), ("InternalFailure", True), ("NotAuthorized", False)])
def test_an_event_that_the_bus_refuses_in_its_answer_is_refused(calls: AwsCalls, code: str, retryable: bool) -> None:
    spy(calls, "events").answer("PutEvents", {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": "so"}]})
    with pytest.raises(Refused, match=f"^{code}: so$") as refused:
        calls.send(asked("eventbridge", EVENT), left=left)
    assert refused.value.retryable is retryable


def test_messages_of_aws_are_bounded_and_without_signatures(calls: AwsCalls) -> None:
    wire = spy(calls, "sqs")
    wire.answer("SendMessage", {"Error": {"Code": "InvalidMessageContents", "Message": "x" * 9_000}}, 400)
    with pytest.raises(Refused) as long:
        calls.send(SEND, left=left)
    assert len(str(long.value)) == 500
    for code in ("SignatureDoesNotMatch", "ExpiredTokenException", "InvalidClientTokenId"):
        wire.answer("SendMessage", {"Error": {"Code": code, "Message": "x-amz-security-token:secret"}}, 403)
        with pytest.raises(Refused) as signed:
            calls.send(SEND, left=left)
        assert str(signed.value) == code


def test_nothing_is_sent_once_no_time_is_left(calls: AwsCalls) -> None:
    wire = spy(calls, "sqs")
    with pytest.raises(Refused):
        calls.send(SEND, left=lambda: 0.0)
    assert wire.calls == []


def test_nothing_is_sent_again_once_no_time_is_left(calls: AwsCalls) -> None:
    wire, times = spy(calls, "sqs"), iter((3.0, 0.0))
    wire.cut("SendMessage")
    with pytest.raises(Refused, match="EndpointConnectionError"):
        calls.send(SEND, left=lambda: next(times))
    assert len(wire.sent("SendMessage")) == 1


@pytest.mark.parametrize(
    ("seconds", "wait", "timeout"), [(0.4, True, 1), (3, True, 5), (60, True, 120), (840, True, 900), (840, False, 5), (0.4, False, 1)]
)
def test_a_client_times_out_soon_after_the_remaining_time(calls: AwsCalls, seconds: float, wait: bool, timeout: float) -> None:
    wires = {each: spy(calls, "lambda", seconds=each) for each in READ_TIMEOUTS}
    for wire in wires.values():
        wire.answer("Invoke", {"Payload": Body(b"")})
    invoke(calls, FUNCTION, "{}", wait=wait, left=lambda: seconds)
    assert [each for each, wire in wires.items() if wire.calls] == [timeout]
    assert calls._client("lambda", "us-east-1", timeout).meta.config.read_timeout == timeout


def test_a_client_calls_the_region_of_the_arn(calls: AwsCalls) -> None:
    wire = spy(calls, "sqs", "ap-south-1")
    wire.answer("SendMessage", {"MessageId": "m1"})
    assert output(calls, "sqs", {"queue": "arn:aws:sqs:ap-south-1:123456789012:orders", "body": "body"}) == "m1"
    assert wire.sent("SendMessage")[0]["QueueUrl"] == "https://sqs.ap-south-1.amazonaws.com/123456789012/orders"
