"""Default alerts of owners: the same in memory and on DynamoDB."""

from dataclasses import replace

import pytest

from scheduler.model.alerts import Alerts, DefaultAlerts
from scheduler.storage.aws.owner_alerts import DynamoOwnerAlerts
from scheduler.storage.memory.owner_alerts import MemoryOwnerAlerts
from scheduler.storage.ports import OwnerAlerts
from tests.contract import tables
from tests.contract.make import NOW

WHOLE = DefaultAlerts("ada", Alerts(60_000, 3_600_000, missed=True), NOW, "op", version=3)
EMPTY = DefaultAlerts("ada#b", Alerts(), NOW, "op")


@pytest.fixture(params=["memory", "dynamodb"])
def owner_alerts(request: pytest.FixtureRequest) -> OwnerAlerts:
    if request.param == "memory":
        return MemoryOwnerAlerts()
    return DynamoOwnerAlerts(tables.on_moto(request, "users", tables.USERS), "users")


def test_the_alerts_of_several_owners_are_read_back(owner_alerts: OwnerAlerts) -> None:
    assert owner_alerts.put(None, WHOLE) and owner_alerts.put(None, EMPTY)
    assert owner_alerts.of(["ada", "ada#b", "bob", "ada"]) == {"ada": WHOLE, "ada#b": EMPTY}
    assert owner_alerts.of([]) == {}


def test_alerts_change_only_from_their_current_version(owner_alerts: OwnerAlerts) -> None:
    second = replace(WHOLE, alerts=Alerts(), version=4)
    assert owner_alerts.put(None, WHOLE) and owner_alerts.put(None, WHOLE), "a repeated call succeeds: its answer may have been lost"
    assert not owner_alerts.put(None, second)
    assert owner_alerts.put(WHOLE, second) and owner_alerts.put(WHOLE, second)
    assert not owner_alerts.put(WHOLE, replace(second, updated_at=NOW + 1))
    assert owner_alerts.of(["ada"]) == {"ada": second}


def test_deleted_alerts_are_gone(owner_alerts: OwnerAlerts) -> None:
    owner_alerts.put(None, WHOLE)
    owner_alerts.delete("ada")
    owner_alerts.delete("ada")
    assert owner_alerts.of(["ada"]) == {}
