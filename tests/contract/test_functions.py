"""The pollers that lanes keep ready: the port, and the adapter's calls of Lambda."""

import io
import zipfile

import boto3
import pytest

from lambdas._runtime import AwsPorts
from lambdas._settings import Settings
from scheduler.model.errors import SchedulerError, Unavailable
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.storage.aws import clients
from scheduler.storage.aws.functions import LambdaFunctions
from scheduler.storage.memory.stores import MemoryFunctions
from scheduler.storage.ports import Functions
from tests.contract.wire import Wire

ONE_TIME, RECURRING = Lane.ONE_TIME, Lane.RECURRING


def mapped() -> LambdaFunctions:
    """The adapter over a function with two queues."""
    client, sqs, code = clients.functions(), clients.sqs(), io.BytesIO()
    with zipfile.ZipFile(code, "w") as packed:
        packed.writestr("a.py", "")
    role = boto3.client("iam").create_role(RoleName="any", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    client.create_function(FunctionName="execute", Role=role, Code={"ZipFile": code.getvalue()}, Handler="a.b", Runtime="python3.13")
    mappings = {}
    for lane in (ONE_TIME, RECURRING):
        url = sqs.create_queue(QueueName=lane)["QueueUrl"]
        queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        made = client.create_event_source_mapping(FunctionName="execute", EventSourceArn=queue, ScalingConfig={"MaximumConcurrency": 500})
        mappings[lane] = made["UUID"]
    return LambdaFunctions(client, mappings=mappings, most_pollers=dict.fromkeys(mappings, 50), concurrency=dict.fromkeys(mappings, 500))


@pytest.fixture(params=["memory", "lambda"])
def functions(request: pytest.FixtureRequest) -> Functions:
    if request.param == "memory":
        return MemoryFunctions()
    request.getfixturevalue("moto")
    return mapped()


def test_a_lane_keeps_no_pollers_ready_at_first(functions: Functions) -> None:
    assert [functions.pollers(lane) for lane in (ONE_TIME, RECURRING)] == [0, 0]


def test_a_lane_keeps_the_pollers_that_were_set_last(functions: Functions) -> None:
    for count in (7, 50, 2):
        functions.keep_pollers(ONE_TIME, count)
        assert (functions.pollers(ONE_TIME), functions.pollers(RECURRING)) == (count, 0)


def test_no_pollers_are_left_after_the_last_were_given_up(functions: Functions) -> None:
    functions.keep_pollers(ONE_TIME, 7)
    functions.keep_pollers(RECURRING, 9)
    functions.keep_pollers(ONE_TIME, 0)
    assert (functions.pollers(ONE_TIME), functions.pollers(RECURRING)) == (0, 9)


def test_a_function_sets_the_limits_of_its_stage(moto: None) -> None:
    mapped()
    client = clients.functions()
    mapping = client.list_event_source_mappings()["EventSourceMappings"][0]["UUID"]
    rules = Rules(most_pollers={ONE_TIME: 60}, concurrency={ONE_TIME: 700})
    functions = AwsPorts(Settings(one_time_mapping=mapping, rules=rules)).functions
    functions.keep_pollers(ONE_TIME, 30)
    assert client.get_event_source_mapping(UUID=mapping)["ProvisionedPollerConfig"] == {"MinimumPollers": 30, "MaximumPollers": 60}
    functions.keep_pollers(ONE_TIME, 0)
    assert client.get_event_source_mapping(UUID=mapping)["ScalingConfig"] == {"MaximumConcurrency": 700}


@pytest.fixture
def wired() -> tuple[LambdaFunctions, Wire]:
    client = clients.functions()
    limits = {ONE_TIME: 50, Lane.RETRY: 50}
    return LambdaFunctions(client, mappings={ONE_TIME: "m1"}, most_pollers=limits, concurrency={ONE_TIME: 400}), Wire(client)


def test_pollers_take_the_place_of_the_maximum_concurrency(wired: tuple[LambdaFunctions, Wire]) -> None:
    """AWS refuses both: one call sets one and removes the other."""
    functions, wire = wired
    wire.answer("UpdateEventSourceMapping", {"UUID": "m1"})
    functions.keep_pollers(ONE_TIME, 9)
    wire.answer("UpdateEventSourceMapping", {"UUID": "m1"})
    functions.keep_pollers(ONE_TIME, 0)
    kept, alone = wire.sent("UpdateEventSourceMapping")
    assert kept == {"UUID": "m1", "ProvisionedPollerConfig": {"MinimumPollers": 9, "MaximumPollers": 50}, "ScalingConfig": {}}
    assert alone == {"UUID": "m1", "ProvisionedPollerConfig": {}, "ScalingConfig": {"MaximumConcurrency": 400}}


def test_a_lane_without_a_mapping_calls_nothing(wired: tuple[LambdaFunctions, Wire]) -> None:
    functions, wire = wired
    functions.keep_pollers(Lane.RETRY, 9)
    assert functions.pollers(Lane.RETRY) == 0
    assert wire.sent("UpdateEventSourceMapping") == wire.sent("GetEventSourceMapping") == []


def test_a_mapping_whose_change_is_in_progress_is_unavailable(wired: tuple[LambdaFunctions, Wire]) -> None:
    functions, wire = wired
    for code in ("ResourceInUseException", "ResourceConflictException", "TooManyRequestsException"):
        wire.refuse("UpdateEventSourceMapping", code)
        with pytest.raises(Unavailable):
            functions.keep_pollers(ONE_TIME, 9)


def test_a_mapping_that_is_gone_is_no_passing_refusal(wired: tuple[LambdaFunctions, Wire]) -> None:
    functions, wire = wired
    wire.refuse("GetEventSourceMapping", "ResourceNotFoundException")
    with pytest.raises(SchedulerError) as raised:
        functions.pollers(ONE_TIME)
    assert not isinstance(raised.value, Unavailable)
