"""The secrets of owners, which their jobs may use, in memory and in Secrets Manager."""

import secrets as random
from typing import Any

import pytest

from scheduler.model.errors import NotFound, Unavailable
from scheduler.storage.aws import clients
from scheduler.storage.aws.secret_values import CACHED_MS, StoredSecrets
from scheduler.storage.aws.secrets import AwsSecrets
from scheduler.storage.memory.stores import MemorySecrets
from scheduler.storage.ports import Secrets
from tests.contract.make import NOW
from tests.unit.stage import Wrapped, refuse


@pytest.fixture
def manager(moto: None) -> Any:
    client = clients.secrets()
    for name in ("stage/ann/token", "stage/bob/other", "other/ann/secret"):
        client.create_secret(Name=name, SecretString=f"value of {name}", ClientRequestToken=random.token_hex(16))
    return client


@pytest.fixture(params=["memory", "secrets manager"])
def held(request: pytest.FixtureRequest) -> Secrets:
    if request.param == "memory":
        return MemorySecrets({("ann", "token"): ["value of stage/ann/token"], ("bob", "other"): ["value of stage/bob/other"]})
    request.getfixturevalue("manager")
    return AwsSecrets("", "stage/")


def change(manager: Any, value: str) -> None:
    manager.put_secret_value(SecretId="stage/ann/token", SecretString=value, ClientRequestToken=random.token_hex(16))


def test_a_secret_is_read_by_owner_and_name(held: Secrets) -> None:
    assert list(held.values("ann", "token", NOW)) == ["value of stage/ann/token"]


@pytest.mark.parametrize("name", ["other", "secret", "none"])
def test_a_secret_of_another_owner_is_not_found(held: Secrets, name: str) -> None:
    with pytest.raises(NotFound, match=f"there is no secret '{name}'"):
        held.values("ann", name, NOW)


def test_a_changed_secret_is_read_a_minute_later_with_the_former_one(manager: Any) -> None:
    held = StoredSecrets(manager, "stage/")
    held.values("ann", "token", NOW)
    change(manager, "two")
    assert list(held.values("ann", "token", NOW + CACHED_MS - 1)) == ["value of stage/ann/token"]
    assert list(held.values("ann", "token", NOW + CACHED_MS)) == ["two", "value of stage/ann/token"]


def test_cached_secrets_outlive_an_outage_but_not_their_deletion(manager: Any) -> None:
    refusing = Wrapped(manager)
    held = StoredSecrets(refusing, "stage/")
    held.values("ann", "token", NOW)
    refusing._verbs["get_secret_value"] = refuse
    assert list(held.values("ann", "token", NOW + CACHED_MS)) == ["value of stage/ann/token"]
    with pytest.raises(Unavailable):
        held.values("bob", "other", NOW)
    del refusing._verbs["get_secret_value"]
    manager.delete_secret(SecretId="stage/ann/token")
    with pytest.raises(NotFound):
        held.values("ann", "token", NOW + 2 * CACHED_MS)
