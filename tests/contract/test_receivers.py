"""Named receivers: the same in memory and on DynamoDB."""

from dataclasses import replace

import pytest

from scheduler.model.receiver import Health, NamedReceiver, ReceiverKind, Region
from scheduler.storage.aws.receivers import DynamoReceivers
from scheduler.storage.memory.receivers import MemoryReceivers
from scheduler.storage.ports import Receivers
from tests.contract import tables
from tests.contract.make import NOW

SLACK = NamedReceiver("ada", "ops", ReceiverKind.SLACK, "https://hooks.slack.com/services/T/B/secret", NOW, NOW)
WHOLE = NamedReceiver(
    *("ada", "all.of-it_1", ReceiverKind.PAGERDUTY, "k" * 32, NOW, NOW + 1, "hook", Region.EU),
    default=True,
    version=3,
    health=Health(2, "HTTP 410: töt", NOW + 2, NOW + 3),
)


@pytest.fixture(params=["memory", "dynamodb"])
def receivers(request: pytest.FixtureRequest) -> Receivers:
    if request.param == "memory":
        return MemoryReceivers()
    return DynamoReceivers(tables.on_moto(request, "users", tables.USERS), "users")


@pytest.mark.parametrize("wanted", [SLACK, WHOLE], ids=["default", "whole"])
def test_a_receiver_round_trips(receivers: Receivers, wanted: NamedReceiver) -> None:
    assert receivers.find("ada", wanted.name) is None and receivers.all("ada") == []
    assert receivers.put(None, wanted)
    assert receivers.find("ada", wanted.name) == wanted and receivers.all("ada") == [wanted]


def test_an_owner_has_receivers_by_name(receivers: Receivers) -> None:
    for owner, name in (("ada", "b"), ("ada", "a"), ("ada#b", "c"), ("bob", "a")):
        assert receivers.put(None, replace(SLACK, owner=owner, name=name))
    assert [(each.owner, each.name) for each in receivers.all("ada")] == [("ada", "a"), ("ada", "b")]


def test_a_receiver_changes_only_from_its_current_version(receivers: Receivers) -> None:
    second = replace(SLACK, version=2, default=True)
    assert receivers.put(None, SLACK) and receivers.put(None, SLACK), "a repeated call succeeds: its answer may have been lost"
    assert not receivers.put(None, replace(SLACK, default=True))
    assert receivers.put(SLACK, second) and receivers.put(SLACK, second)
    assert not receivers.put(SLACK, replace(second, address="https://example.com"))
    assert not receivers.delete(SLACK)
    assert receivers.delete(second) and not receivers.delete(second)
    assert not receivers.put(second, replace(second, version=3)) and receivers.all("ada") == []


def test_health_is_noted_of_the_version_that_was_called(receivers: Receivers) -> None:
    ill = Health(1, "HTTP 410", NOW)
    receivers.note(SLACK, ill)
    assert receivers.all("ada") == [], "a note creates nothing"
    receivers.put(None, SLACK)
    receivers.note(SLACK, ill)
    assert receivers.find("ada", "ops") == replace(SLACK, health=ill)
    second = replace(SLACK, version=2)
    receivers.put(SLACK, second)
    receivers.note(SLACK, ill)
    assert receivers.find("ada", "ops") == second
