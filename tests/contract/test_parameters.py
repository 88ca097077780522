"""Parameters of Systems Manager."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from scheduler.model.errors import SchedulerError
from scheduler.storage.aws import clients, parameters
from tests.unit.stage import Wrapped

NAME = "/punctual/test/console-url"


def test_a_parameter_is_its_value_or_none(moto: None) -> None:
    assert parameters.read(clients.parameters(), NAME) is None
    clients.parameters().put_parameter(Name=NAME, Value="https://console.example.com", Type="String")
    assert parameters.read(clients.parameters(), NAME) == "https://console.example.com"


def test_a_refused_read_is_no_missing_parameter(moto: None) -> None:
    def denied(verb: Any, **_: str) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetParameter")

    refusing = Wrapped(clients.parameters())
    refusing._verbs["get_parameter"] = denied
    with pytest.raises(SchedulerError, match="AccessDeniedException"):
        parameters.read(refusing, NAME)
