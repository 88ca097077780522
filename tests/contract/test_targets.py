"""The port `Calls` on boto3: what arrives (on moto), and how refusals are sorted (answered in process)."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ConnectionClosedError, NoCredentialsError, ParamValidationError, ReadTimeoutError

from scheduler.storage.aws.calls import READ_TIMEOUTS, AwsCalls
from scheduler.targets.calls import Invoked, Mail, Message, Refused
from tests.contract.wire import Wire

ACCOUNT = "us-east-1:123456789012"
FUNCTION = f"arn:aws:lambda:{ACCOUNT}:function:orders"
QUEUE = f"arn:aws:sqs:{ACCOUNT}:orders"
TOPIC = f"arn:aws:sns:{ACCOUNT}:orders"
BUS = f"arn:aws:events:{ACCOUNT}:event-bus/orders"
MACHINE = f"arn:aws:states:{ACCOUNT}:stateMachine:orders"
EXECUTION = f"arn:aws:states:{ACCOUNT}:execution:orders:01JOB"
MESSAGE = Message("body", {"color": "red"})
MAIL = Mail(("ann@example.com",), "Hi", "text", "<p>html</p>", {"Punctual-Job-Id": "01JOB"})


def left() -> float:
    return 3.0


@pytest.fixture
def calls() -> AwsCalls:
    return AwsCalls("punctual@example.com")


@pytest.fixture
def arrived(moto: None) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The messages that a queue named `orders` has got."""
    sqs: Any = boto3.client("sqs")
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    yield lambda: sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]).get(
        "Messages", []
    )


def test_a_message_arrives_in_its_queue(calls: AwsCalls, arrived: Callable[[], list[dict[str, Any]]]) -> None:
    sent = calls.send(QUEUE, MESSAGE, left=left)
    (message,) = arrived()
    assert (message["MessageId"], message["Body"]) == (sent, "body")
    assert message["MessageAttributes"]["color"]["StringValue"] == "red"


def test_a_fifo_queue_drops_the_second_of_the_same(calls: AwsCalls, moto: None) -> None:
    sqs: Any = boto3.client("sqs")
    url = sqs.create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    for _ in range(2):
        calls.send(f"{QUEUE}.fifo", Message("body", {"a": "b"}, group="g", unique="01JOB"), left=left)
    assert len(sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]) == 1


def test_a_topic_tells_its_subscribers(calls: AwsCalls, arrived: Callable[[], list[dict[str, Any]]]) -> None:
    sns: Any = boto3.client("sns")
    sns.create_topic(Name="orders")
    sns.subscribe(TopicArn=TOPIC, Protocol="sqs", Endpoint=QUEUE)
    assert calls.publish(TOPIC, Message("body", {"color": "red"}, subject="news"), left=left)
    (message,) = arrived()
    told = json.loads(message["Body"])
    assert (told["Message"], told["Subject"], told["MessageAttributes"]["color"]["Value"]) == ("body", "news", "red")


def test_a_bus_gets_the_event(calls: AwsCalls) -> None:
    wire = spy(calls, "events")
    wire.answer("PutEvents", {"FailedEntryCount": 0, "Entries": [{"EventId": "e1"}]})
    assert calls.put_event(BUS, "shop", "Paid", '{"order": 7}', left=left) == "e1"
    entry = {"EventBusName": BUS, "Source": "shop", "DetailType": "Paid", "Detail": '{"order": 7}'}
    assert wire.sent("PutEvents") == [{"Entries": [entry]}]


@pytest.fixture
def machine(moto: None) -> Any:
    states: Any = boto3.client("stepfunctions")
    definition = json.dumps({"StartAt": "End", "States": {"End": {"Type": "Pass", "End": True}}})
    states.create_state_machine(name="orders", definition=definition, roleArn="arn:aws:iam::123456789012:role/any")
    return states


def test_an_execution_starts_once_however_often_it_is_asked_for(calls: AwsCalls, machine: Any) -> None:
    assert [calls.start(MACHINE, "01JOB", '{"order":7}', left=left) for _ in range(2)] == [EXECUTION] * 2
    assert len(machine.list_executions(stateMachineArn=MACHINE)["executions"]) == 1
    found = calls.look(EXECUTION, left=left)
    assert (found.status, found.input) == ("RUNNING", '{"order":7}')
    with pytest.raises(Refused, match="ExecutionAlreadyExists: there is an execution 01JOB with another input") as refused:
        calls.start(MACHINE, "01JOB", '{"order":8}', left=left)
    assert not refused.value.retryable


def test_an_e_mail_goes_to_ses_from_the_sender(calls: AwsCalls) -> None:
    wire = spy(calls, "sesv2", None)
    wire.answer("SendEmail", {"MessageId": "s1"})
    assert calls.mail(MAIL, left=left) == "s1"
    (sent,) = wire.sent("SendEmail")
    assert sent["FromEmailAddress"] == "punctual@example.com"
    assert sent["Destination"] == {"ToAddresses": ["ann@example.com"]}
    simple = sent["Content"]["Simple"]
    assert (simple["Subject"]["Data"], simple["Body"]["Text"]["Data"], simple["Body"]["Html"]["Data"]) == ("Hi", "text", "<p>html</p>")
    assert simple["Headers"] == [{"Name": "Punctual-Job-Id", "Value": "01JOB"}]


def spy(calls: AwsCalls, service: str, region: str | None = "us-east-1", seconds: float = 3.0) -> Wire:
    return Wire(calls._client(service, region, seconds))


class Body:
    """A streamed answer."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def read(self) -> bytes:
        return self.text


@pytest.mark.parametrize(("wait", "kind"), [(True, "RequestResponse"), (False, "Event")])
def test_a_function_is_called_and_its_answer_read(calls: AwsCalls, wait: bool, kind: str) -> None:
    wire = spy(calls, "lambda")
    wire.answer("Invoke", {"StatusCode": 200, "Payload": Body(b'{"a": 1}')})
    assert calls.invoke(FUNCTION, '{"b": 2}', wait=wait, left=left) == Invoked('{"a": 1}')
    (sent,) = wire.sent("Invoke")
    assert (sent["FunctionName"], sent["InvocationType"], sent["Payload"]) == (FUNCTION, kind, b'{"b": 2}')
    wire.answer("Invoke", {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": Body(b"\xff")})
    assert calls.invoke(FUNCTION, "{}", wait=wait, left=left) == Invoked("\N{REPLACEMENT CHARACTER}", error=True)


ASKED: dict[str, tuple[str, str | None, Callable[[AwsCalls], Any]]] = {
    "Invoke": ("lambda", "us-east-1", lambda calls: calls.invoke(FUNCTION, "{}", wait=True, left=left)),
    "SendMessage": ("sqs", "us-east-1", lambda calls: calls.send(QUEUE, MESSAGE, left=left)),
    "Publish": ("sns", "us-east-1", lambda calls: calls.publish(TOPIC, MESSAGE, left=left)),
    "PutEvents": ("events", "us-east-1", lambda calls: calls.put_event(BUS, "shop", "Paid", "{}", left=left)),
    "StartExecution": ("stepfunctions", "us-east-1", lambda calls: calls.start(MACHINE, "01JOB", "{}", left=left)),
    "DescribeExecution": ("stepfunctions", "us-east-1", lambda calls: calls.look(EXECUTION, left=left)),
    "SendEmail": ("sesv2", None, lambda calls: calls.mail(MAIL, left=left)),
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
def test_refusals_that_pass_are_told_from_those_that_stay(calls: AwsCalls, operation: str, code: str, status: int, retryable: bool) -> None:
    service, region, call = ASKED[operation]
    wire = spy(calls, service, region)
    wire.refuse(operation, code, status)
    with pytest.raises(Refused) as refused:
        call(calls)
    assert (str(refused.value), refused.value.retryable) == (f"{code}: so", retryable)
    assert len(wire.sent(operation)) == 1, "the job's own retries are the only ones"


@pytest.mark.parametrize("operation", ASKED)
def test_a_closed_connection_is_tried_once_more_but_not_under_a_function(calls: AwsCalls, operation: str) -> None:
    service, region, call = ASKED[operation]
    wire = spy(calls, service, region)
    wire.cut(operation)
    with pytest.raises(Refused, match="EndpointConnectionError: ") as refused:
        call(calls)
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
def test_what_botocore_raises_is_sorted_too(calls: AwsCalls, error: Exception, retryable: bool, sent: int) -> None:
    wire = spy(calls, "sqs")
    raised(wire, "SendMessage", error)
    with pytest.raises(Refused) as refused:
        calls.send(QUEUE, MESSAGE, left=left)
    assert (refused.value.retryable, refused.value.code) == (retryable, type(error).__name__)
    assert len(wire.sent("SendMessage")) == sent


@pytest.mark.parametrize(("code", "retryable"), [("ThrottlingException", True), ("InternalFailure", True), ("NotAuthorized", False)])
def test_an_event_that_the_bus_refuses_in_its_answer_is_refused(calls: AwsCalls, code: str, retryable: bool) -> None:
    spy(calls, "events").answer("PutEvents", {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": "so"}]})
    with pytest.raises(Refused, match=f"^{code}: so$") as refused:
        calls.put_event(BUS, "shop", "Paid", "{}", left=left)
    assert refused.value.retryable is retryable


def test_what_aws_says_is_bounded_and_never_what_was_signed(calls: AwsCalls) -> None:
    wire = spy(calls, "sqs")
    wire.answer("SendMessage", {"Error": {"Code": "InvalidMessageContents", "Message": "x" * 9_000}}, 400)
    with pytest.raises(Refused) as long:
        calls.send(QUEUE, MESSAGE, left=left)
    assert len(str(long.value)) == 500
    for code in ("SignatureDoesNotMatch", "ExpiredTokenException", "InvalidClientTokenId"):
        wire.answer("SendMessage", {"Error": {"Code": code, "Message": "x-amz-security-token:secret"}}, 403)
        with pytest.raises(Refused) as signed:
            calls.send(QUEUE, MESSAGE, left=left)
        assert str(signed.value) == code


def test_nothing_is_sent_once_no_time_is_left(calls: AwsCalls) -> None:
    wire = spy(calls, "sqs")
    with pytest.raises(Refused):
        calls.send(QUEUE, MESSAGE, left=lambda: 0.0)
    assert wire.calls == []


def test_nothing_is_sent_again_once_no_time_is_left(calls: AwsCalls) -> None:
    wire, times = spy(calls, "sqs"), iter((3.0, 0.0))
    wire.cut("SendMessage")
    with pytest.raises(Refused, match="EndpointConnectionError"):
        calls.send(QUEUE, MESSAGE, left=lambda: next(times))
    assert len(wire.sent("SendMessage")) == 1


@pytest.mark.parametrize(
    ("seconds", "wait", "timeout"), [(0.4, True, 1), (3, True, 5), (60, True, 120), (840, True, 900), (840, False, 5), (0.4, False, 1)]
)
def test_a_client_gives_up_soon_after_the_time_that_is_left(calls: AwsCalls, seconds: float, wait: bool, timeout: float) -> None:
    wires = {each: spy(calls, "lambda", seconds=each) for each in READ_TIMEOUTS}
    for wire in wires.values():
        wire.answer("Invoke", {"Payload": Body(b"")})
    calls.invoke(FUNCTION, "{}", wait=wait, left=lambda: seconds)
    assert [each for each, wire in wires.items() if wire.calls] == [timeout]
    assert calls._client("lambda", "us-east-1", timeout).meta.config.read_timeout == timeout


def test_a_client_speaks_to_the_region_of_the_arn(calls: AwsCalls) -> None:
    wire = spy(calls, "sqs", "ap-south-1")
    wire.answer("SendMessage", {"MessageId": "m1"})
    assert calls.send("arn:aws:sqs:ap-south-1:123456789012:orders", MESSAGE, left=left) == "m1"
    assert wire.sent("SendMessage")[0]["QueueUrl"] == "https://sqs.ap-south-1.amazonaws.com/123456789012/orders"
