"""The registry of task types."""

import subprocess
import sys

import pytest
from pydantic import TypeAdapter

from scheduler import targets


def test_every_module_of_the_package_is_a_type() -> None:
    assert targets.names() == ["email", "eventbridge", "http", "lambda", "log", "sns", "sqs", "stepfunctions"]


@pytest.mark.parametrize("name", targets.names())
def test_every_type_has_a_payload_schema_that_refuses_unknown_fields(name: str) -> None:
    assert TypeAdapter(targets.load(name).Payload).json_schema()["additionalProperties"] is False


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(targets.UnknownType, match="known types: email, eventbridge, http, lambda, log, sns, sqs, stepfunctions"):
        targets.load("lamda")


@pytest.mark.parametrize("name", ["__init__", "os", "../log", "log.Payload", "", "lambda_", "_aws"])
def test_only_modules_of_the_package_can_be_loaded(name: str) -> None:
    with pytest.raises(targets.UnknownType):
        targets.load(name)


@pytest.mark.parametrize("name", sorted({*targets.names()} - {"http", "log"}))
def test_no_type_imports_an_aws_client(name: str) -> None:
    program = (
        f"import sys; from scheduler import targets; targets.load({name!r}); print(*{{'pydantic', 'boto3', 'botocore'}} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


def test_a_log_job_imports_neither_the_http_client_nor_pydantic() -> None:
    program = "import sys; from scheduler import targets; targets.load('log'); print(*{'urllib3', 'pydantic', 'boto3'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize("name", targets.names())
def test_every_module_says_first_what_its_type_does(name: str) -> None:
    assert (targets.load(name).__doc__ or "").startswith(f"`{name}`: ")
    assert len(targets.description(name)) > 20
