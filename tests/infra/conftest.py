"""The stack of each stage, synthesized once for all assertions."""

import infra  # noqa: F401  # isort: skip  # before aws_cdk, whose warnings it silences

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from infra.console import ConsoleStack
from infra.options import Options, OptionsError, read
from infra.settings import STAGES, Settings, settings_for
from infra.stack import PunctualStack

ROOT = Path(__file__).resolve().parents[2]
FLAGS = json.loads((ROOT / "cdk.json").read_text())["context"]

Resource = dict[str, Any]


@dataclass(frozen=True)
class Synthesized:
    """The template of one stage, or of its console."""

    settings: Settings
    stack: cdk.Stack
    template: dict[str, Any]
    console: "Synthesized | None" = None

    def all(self, kind: str) -> dict[str, Resource]:
        """The properties of every resource of a type, such as `SQS::Queue`, by logical id."""
        return {
            id: resource.get("Properties", {}) for id, resource in self.template["Resources"].items() if resource["Type"] == f"AWS::{kind}"
        }

    def one(self, kind: str, prefix: str) -> Resource:
        """The properties of the only resource of a type whose logical id is the prefix and a hash."""
        found = [properties for id, properties in self.all(kind).items() if id[:-8] == prefix]
        assert len(found) == 1, f"{len(found)} resources {kind} are called {prefix}; there are {sorted(self.all(kind))}"
        return found[0]

    def id(self, kind: str, prefix: str) -> str:
        self.one(kind, prefix)
        return next(id for id in self.all(kind) if id[:-8] == prefix)

    def functions(self, *, inline: bool = False) -> dict[str, Resource]:
        """The functions of the bundle by verb; executors also by lane: `Tick`, `ExecuteRetry`. `inline`: those of the template."""
        found = self.all("Lambda::Function").items()
        return {id[:-8].removesuffix("Function"): function for id, function in found if ("ZipFile" in function["Code"]) is inline}

    def called(self, value: Any) -> str:
        """The function, as in `functions`, that a caller reaches by this ARN or name: always by its alias."""
        match value:
            case {"Fn::Join": ["", [{"Fn::Select": [6, {"Fn::Split": [":", {"Ref": id}]}]}, ":live"]]} | {"Ref": id}:
                assert id in self.all("Lambda::Alias"), f"{value} names no alias"
                return str(id)[:-8].removesuffix("Live")
        raise AssertionError(f"{value} names no alias")

    def grants(self, name: str) -> list[tuple[str, str]]:
        """Every (action, resource) that the role of a function allows."""
        every = self.functions() | self.functions(inline=True)
        role = self.all("IAM::Role")[every[name]["Role"]["Fn::GetAtt"][0]]
        return [grant for policy in role["Policies"] for grant in allowed(policy["PolicyDocument"])]


def allowed(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The (action, resource) pairs that a policy document allows; a resource as readable text."""
    for statement in document["Statement"]:
        if statement["Effect"] == "Allow":
            for action in as_list(statement["Action"]):
                for resource in as_list(statement["Resource"]):
                    yield action, name_of(resource)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def name_of(value: Any) -> str:
    """An ARN as a readable name: the logical id without its hash, then the appended text, such as `StorageJobs/index/due`.

    >>> name_of({"Fn::Join": ["", [{"Fn::GetAtt": ["StorageJobs4C7573CB", "Arn"]}, "/index/due"]]})
    'StorageJobs/index/due'
    """
    match value:
        case {"Fn::GetAtt": [id, _]} | {"Ref": id}:
            return str(id)[:-8]
        case {"Fn::Join": [_, parts]}:
            return "".join(name_of(part) for part in parts)
    return str(value)


def app(**options: Any) -> cdk.App:
    """An app whose synth takes the templates as they are: CloudFormation's rules for them cost three times the synth, see test_stack.py.

    Nothing is bundled: the asset is the bare sources.
    """
    return cdk.App(**{"builtin_cloud_formation_validation": False, "context": {**FLAGS, "aws:cdk:bundling-stacks": []}} | options)


@cache
def synthesized(stage: str, **options: Any) -> Synthesized:
    if "intake" in options:  # pairs, since a key of the cache is hashable
        options["intake"] = dict(options["intake"])
    settings = settings_for(stage, Options(**options))
    stack = PunctualStack(made := app(), settings)
    console = ConsoleStack(made, settings)
    templates = made.synth()
    beside = Synthesized(settings, console, templates.get_stack_by_name(console.stack_name).template)
    return Synthesized(settings, stack, templates.get_stack_by_name(stack.stack_name).template, beside)


@pytest.fixture(scope="session")
def synth() -> Callable[[str], Synthesized]:
    return synthesized


DEV = pytest.param("dev", marks=pytest.mark.long)  # each stage takes two seconds, and `dev` is `prod` with smaller figures


@pytest.fixture(params=[stage if stage != "dev" else DEV for stage in STAGES])
def any_stage(request: pytest.FixtureRequest) -> Synthesized:
    return synthesized(request.param)


@pytest.fixture(params=[DEV, "prod"])
def on_aws(request: pytest.FixtureRequest) -> Synthesized:
    return synthesized(request.param)


@pytest.fixture
def prod() -> Synthesized:
    return synthesized("prod")


@pytest.fixture
def local() -> Synthesized:
    return synthesized("local")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file of options, which is not there yet."""
    return tmp_path / "dev.toml"


def refusal(path: Path, text: str) -> str:
    """The message with which a file of options with this text is refused, without its path."""
    path.write_text(text)
    with pytest.raises(OptionsError) as refused:
        read(path)
    return str(refused.value).removeprefix(f"{path}")
