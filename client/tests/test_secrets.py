"""`punctual secrets` against a mock of Secrets Manager: what is stored where, and that no value is shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws
from test_cli import ME, Terminal, api, done

from punctual import profiles
from punctual.profiles import Profile

LOCAL = "http://127.0.0.1:4566/_aws/execute-api/abc/$default"
KEY = "sk_live_4eC39HqLyjWD"


class Session:
    """The mock in place of the local AWS; `endpoints` has the addresses that were called."""

    endpoints: ClassVar[list[str]] = []

    def __init__(self, **given: str) -> None:
        self.session = boto3.session.Session(**given)

    def client(self, service: str, endpoint_url: str) -> Any:
        self.endpoints.append(endpoint_url)
        return self.session.client(service)


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    profiles.save(Profile("default", LOCAL, username="ann", token="t0"))
    with mock_aws():
        monkeypatch.setattr(Session, "endpoints", [])
        client = boto3.client("secretsmanager", region_name="us-east-1")
        monkeypatch.setattr("boto3.Session", Session)
        yield client


@pytest.fixture
def cli() -> Terminal:
    return api({"GET /_aws/execute-api/abc/$default/api/v1/me": ME})


def value(manager: Any, name: str) -> str:
    return str(manager.get_secret_value(SecretId=name)["SecretString"])


def test_a_secret_of_standard_input_is_stored_under_the_user(cli: Terminal, manager: Any) -> None:
    result = cli("secrets", "put", "stripe", "--value-stdin", input=f"{KEY}\n")
    assert done(result) == "Secret stripe is stored.\n" and KEY not in result.output
    assert value(manager, "punctual/local/u1/stripe") == KEY
    assert Session.endpoints == ["http://127.0.0.1:4566"]


def test_a_value_may_have_several_lines(cli: Terminal, manager: Any) -> None:
    done(cli("secrets", "put", "key", "--value-stdin", input="-----BEGIN-----\nabc\n-----END-----\n"))
    assert value(manager, "punctual/local/u1/key") == "-----BEGIN-----\nabc\n-----END-----"


def test_a_value_comes_from_the_environment_too(cli: Terminal, manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCTUAL_NEW_SECRET", KEY)
    assert KEY not in done(cli("secrets", "put", "stripe"))
    assert value(manager, "punctual/local/u1/stripe") == KEY


def test_the_same_name_gets_a_new_value(cli: Terminal, manager: Any) -> None:
    for each in ("first-value", "second-value"):
        said = done(cli("secrets", "put", "stripe", input=each))
    assert said == "Secret stripe has a new value, which jobs use within a minute.\n"
    assert value(manager, "punctual/local/u1/stripe") == "second-value"


def test_a_secret_of_a_target_is_stored_under_it(cli: Terminal, manager: Any) -> None:
    done(cli("secrets", "put", "door", "--target", "vault", input=KEY))
    assert value(manager, "punctual/local/targets/vault/door") == KEY
    assert done(cli("secrets", "list", "--target", "vault", "--quiet")) == "door\n" and done(cli("secrets", "list", "--quiet")) == ""


def test_a_list_has_names_and_no_values(cli: Terminal, manager: Any) -> None:
    for owner, name in (("u1", "b"), ("u1", "a"), ("u12", "c"), ("u2", "d")):
        manager.create_secret(Name=f"punctual/local/{owner}/{name}", SecretString=KEY)
    shown = done(cli("secrets", "list", "--json"))
    assert [json.loads(line)["name"] for line in shown.splitlines()] == ["a", "b"] and KEY not in shown


def test_a_secret_is_deleted_at_once_and_can_be_stored_again(cli: Terminal, manager: Any) -> None:
    done(cli("secrets", "put", "stripe", input=KEY))
    assert cli("secrets", "delete", "stripe").exit_code == 2, "nobody confirms it"
    assert done(cli("secrets", "delete", "stripe", "--yes")) == "Secret stripe is deleted.\n"
    result = cli("secrets", "delete", "stripe", "--yes")
    assert result.exit_code == 4 and "there is no secret 'stripe'" in result.stderr
    assert done(cli("secrets", "put", "stripe", input=KEY)) == "Secret stripe is stored.\n"


@pytest.mark.parametrize("name", ["", "a/b", "stripe#key", "a b", "x" * 201])
def test_a_name_that_no_job_can_use_is_refused(cli: Terminal, manager: Any, name: str) -> None:
    result = cli("secrets", "put", name, input=KEY)
    assert result.exit_code == 2 and "NAME: has 1 to 200 letters, digits and _+=.@-" in result.stderr
    assert Session.endpoints == []


@pytest.mark.parametrize("given", ["", "\n", "short\n"])
def test_a_value_that_could_not_be_hidden_is_refused(cli: Terminal, manager: Any, given: str) -> None:
    result = cli("secrets", "put", "stripe", "--value-stdin", input=given)
    assert result.exit_code == 2 and "the value: has at least 6 characters" in result.stderr
    assert manager.list_secrets()["SecretList"] == []


@pytest.mark.parametrize(
    "url", ["https://abc.execute-api.eu-central-1.amazonaws.com", "http://127.0.0.1.example.com", "http://10.0.0.1:4566"]
)
@pytest.mark.parametrize("words", [("put", "stripe"), ("list",), ("delete", "stripe", "--yes")])
def test_a_stage_that_is_not_local_is_refused_without_a_call(manager: Any, url: str, words: tuple[str, ...]) -> None:
    profiles.save(Profile("default", url, username="ann", token="t0"))
    cli = api({})
    result = cli("secrets", *words, input=KEY)
    assert result.exit_code == 2 and "works on a local stack only" in result.stderr and "aws secretsmanager create-secret" in result.stderr
    assert Session.endpoints == [] and cli.api.sent == [] and KEY not in result.output


@pytest.mark.usefixtures("manager")
def test_without_boto3_the_extra_is_named(cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    result = cli("secrets", "list")
    assert result.exit_code == 2 and "pip install 'punctual-client[cli,aws]'" in result.stderr


@pytest.mark.usefixtures("manager")
def test_a_stack_that_does_not_run_is_named(cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:4566")

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", refuse)
    result = cli("secrets", "put", "stripe", input=KEY)
    assert result.exit_code == 5 and "the local AWS gave no answer" in result.stderr and "make run" in result.stderr
