"""The registry of task types."""

import subprocess
import sys

import pytest
from pydantic import TypeAdapter

from scheduler.targets import registry


def test_every_module_of_the_package_is_a_type() -> None:
    assert registry.names() == ["email", "eventbridge", "http", "lambda", "log", "sns", "sqs", "stepfunctions"]


@pytest.mark.parametrize("name", registry.names())
def test_every_type_has_a_payload_schema_that_refuses_unknown_fields(name: str) -> None:
    assert TypeAdapter(registry.load(name).Payload).json_schema()["additionalProperties"] is False


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(registry.UnknownType, match="known types: email, eventbridge, http, lambda, log, sns, sqs, stepfunctions"):
        registry.load("lamda")


@pytest.mark.parametrize("name", ["__init__", "os", "../log", "log.Payload", "", "lambda_", "_aws"])
def test_only_modules_of_the_package_can_be_loaded(name: str) -> None:
    with pytest.raises(registry.UnknownType):
        registry.load(name)


@pytest.mark.parametrize("name", sorted({*registry.names()} - {"http", "log"}))
def test_no_type_imports_an_aws_client(name: str) -> None:
    load = f"from scheduler.targets import registry; registry.load({name!r})"
    program = f"import sys; {load}; print(*{{'pydantic', 'boto3', 'botocore'}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


def test_a_log_job_imports_neither_the_http_client_nor_pydantic() -> None:
    load = "from scheduler.targets import registry; registry.load('log')"
    program = f"import sys; {load}; print(*{{'urllib3', 'pydantic', 'boto3'}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize("name", registry.names())
def test_every_module_says_first_what_its_type_does(name: str) -> None:
    assert (registry.load(name).__doc__ or "").startswith(f"`{name}`: ")
    assert len(registry.description(name)) > 20
