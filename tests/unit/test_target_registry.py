"""The registry of task types."""

import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from scheduler.targets import registry

ROOT = Path(__file__).resolve().parents[2]
FILES = Path(registry.types.__path__[0]).glob("[!_]*.py")


def test_every_module_of_the_package_is_a_type() -> None:
    assert registry.names() == sorted(file.stem.removesuffix("_") for file in FILES)
    assert {"email", "eventbridge", "http", "lambda", "log", "sns", "sqs", "stepfunctions"} <= {*registry.names()}


@pytest.mark.parametrize("name", registry.names())
def test_every_type_has_a_payload_schema_that_refuses_unknown_fields(name: str) -> None:
    assert TypeAdapter(registry.load(name).payload).json_schema()["additionalProperties"] is False


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(registry.UnknownType, match=f"known types: {', '.join(registry.names())}"):
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
def test_every_module_begins_with_a_description_of_its_type(name: str) -> None:
    assert (inspect.getdoc(inspect.getmodule(registry.load(name).run)) or "").startswith(f"`{name}`: ")
    assert len(registry.description(name)) > 20


@pytest.mark.parametrize("name", registry.names())
def test_a_declaration_names_only_fields_of_its_payload(name: str) -> None:
    declared = registry.load(name)
    resource = () if declared.resource is None else (declared.resource.field,)
    destination = (declared.destination,) if declared.destination else ()
    named = {*declared.content, *declared.secrets, *resource, *destination}
    assert named <= {field.name for field in fields(declared.payload)}


def test_only_type_modules_name_aws_services_of_jobs() -> None:
    """Everything that a type needs from AWS is in its own module, so a new type needs only a new file."""
    words = [word for resource in registry.resources() for word in (*(each.action for each in resource.permissions), resource.form)]
    product = [path for folder in ("scheduler", "lambdas") for path in (ROOT / folder).rglob("*.py") if path.parent.name != "types"]
    product.append(ROOT / "infra" / "targets.py")
    assert [(path.name, word) for path in product for word in words if word in path.read_text()] == []
