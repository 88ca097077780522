"""The event bus: the port, and the adapter's calls of EventBridge."""

import json

import boto3
import pytest

from scheduler.model.errors import SchedulerError
from scheduler.model.event import Event
from scheduler.storage.aws import clients
from scheduler.storage.aws.event_bus import EventBridgeBus
from scheduler.storage.memory.event_bus import MemoryEvents
from scheduler.storage.ports import EventBus
from tests.contract.make import NOW
from tests.contract.wire import Wire

BUS = "arn:aws:events:us-east-1:123456789012:event-bus/punctual-test"


def event(id: str) -> Event:
    return Event("Punctual Job Succeeded", NOW, {"id": id, "größe": 1})


@pytest.fixture(params=["memory", "eventbridge"])
def bus(request: pytest.FixtureRequest) -> EventBus:
    if request.param == "memory":
        return MemoryEvents()
    request.getfixturevalue("moto")
    boto3.client("events").create_event_bus(Name="punctual-test")
    return EventBridgeBus(clients.events(), BUS)


@pytest.mark.parametrize("count", [0, 1, 10, 25])
def test_each_event_is_put(bus: EventBus, count: int) -> None:
    assert bus.put([event(f"j{number}.0") for number in range(count)]) == [True] * count


@pytest.fixture
def wired() -> tuple[EventBridgeBus, Wire]:
    client = clients.events(region_name="us-east-1")
    wire = Wire(client)
    return EventBridgeBus(client, BUS), wire


def test_an_event_is_sent_with_its_source_its_type_and_its_instant(wired: tuple[EventBridgeBus, Wire]) -> None:
    bus, wire = wired
    wire.answer("PutEvents", {"FailedEntryCount": 0, "Entries": [{"EventId": "e1"}]})
    bus.put([event("j1.0")])
    ((sent,),) = [params["Entries"] for params in wire.sent("PutEvents")]
    assert (sent["EventBusName"], sent["Source"], sent["DetailType"]) == (BUS, "punctual", "Punctual Job Succeeded")
    assert json.loads(sent["Detail"]) == {"id": "j1.0", "größe": 1} and sent["Time"] == NOW / 1_000


def test_of_a_partly_refused_call_only_the_refused_events_are_reported(wired: tuple[EventBridgeBus, Wire]) -> None:
    bus, wire = wired
    refused = {"ErrorCode": "ThrottlingException", "ErrorMessage": "so"}
    wire.answer("PutEvents", {"FailedEntryCount": 1, "Entries": [{"EventId": "e1"}, refused, {"EventId": "e3"}]})
    assert bus.put([event(f"j{number}.0") for number in range(3)]) == [True, False, True]


def test_calls_have_at_most_ten_events_and_fail_each_for_itself(wired: tuple[EventBridgeBus, Wire]) -> None:
    bus, wire = wired
    wire.refuse("PutEvents", "ThrottlingException")
    assert bus.put([event(f"j{number}.0") for number in range(12)]) == [False] * 12
    assert {len(params["Entries"]) for params in wire.sent("PutEvents")} == {10, 2}


def test_a_lasting_refusal_is_an_error(wired: tuple[EventBridgeBus, Wire]) -> None:
    bus, wire = wired
    wire.refuse("PutEvents", "AccessDeniedException")
    with pytest.raises(SchedulerError, match="AccessDenied"):
        bus.put([event("j1.0")])
