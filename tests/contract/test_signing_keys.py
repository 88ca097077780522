"""The keys that sign call-back tokens, in Secrets Manager."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.model.errors import SchedulerError, Unavailable
from scheduler.storage.aws import clients
from scheduler.storage.aws.signing_keys import AGAIN_MS, CACHED_MS, SecretKeys
from tests.contract.make import NOW
from tests.unit.stage import Wrapped, refuse


@pytest.fixture
def manager(moto: None) -> Iterator[Any]:
    client = clients.secrets()
    client.create_secret(Name="key", SecretString="one", ClientRequestToken=secrets.token_hex(16))
    yield client


def rotate(manager: Any, value: str) -> None:
    manager.put_secret_value(SecretId="key", SecretString=value, ClientRequestToken=secrets.token_hex(16))


def test_there_is_one_key_before_the_first_rotation(manager: Any) -> None:
    assert list(SecretKeys(manager, "key").keys(NOW)) == [b"one"]


def test_after_a_rotation_the_new_key_is_first(manager: Any) -> None:
    rotate(manager, "two")
    assert list(SecretKeys(manager, "key").keys(NOW)) == [b"two", b"one"]
    rotate(manager, "three")
    assert list(SecretKeys(manager, "key").keys(NOW)) == [b"three", b"two"]


def test_keys_are_read_again_after_minutes_or_for_an_unknown_key(manager: Any) -> None:
    keys = SecretKeys(manager, "key")
    keys.keys(NOW)
    rotate(manager, "two")
    assert list(keys.keys(NOW + CACHED_MS - 1)) == [b"one"]
    assert list(keys.keys(NOW + AGAIN_MS - 1, newest=True)) == [b"one"]
    assert list(keys.keys(NOW + AGAIN_MS, newest=True)) == [b"two", b"one"]
    rotate(manager, "three")
    assert list(keys.keys(NOW + AGAIN_MS + CACHED_MS)) == [b"three", b"two"]


def test_cached_keys_stay_valid_during_an_outage(manager: Any) -> None:
    refusing = Wrapped(manager)
    keys = SecretKeys(refusing, "key")
    keys.keys(NOW)
    refusing._verbs["get_secret_value"] = refuse
    assert list(keys.keys(NOW + CACHED_MS)) == [b"one"]
    with pytest.raises(Unavailable):
        SecretKeys(refusing, "key").keys(NOW)


def test_a_missing_secret_is_an_error_of_the_deployment(manager: Any) -> None:
    with pytest.raises(SchedulerError):
        SecretKeys(manager, "other").keys(NOW)
