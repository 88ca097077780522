"""The programs of docs/guides/templates.md: the stack in Python is built, the one in TypeScript is compiled, the template is read."""

import json
import re
import subprocess
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

from lambdas._declaring import fields
from lambdas.rest.calendar_models import CalendarRequest
from lambdas.rest.monitor_models import MonitorRequest
from lambdas.rest.task_models import TaskRequest
from scheduler.declarations.declare import KINDS, OF_CLOUDFORMATION
from scheduler.model.declaration import ObjectKind

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/guides/templates.md").read_text()
REQUESTS = {ObjectKind.TASK: TaskRequest, ObjectKind.CALENDAR: CalendarRequest, ObjectKind.MONITOR: MonitorRequest}
WRONG = """
// @ts-expect-error an unknown property of the construct
export const wrong = (stack: Stack) => new CustomResource(stack, "Wrong", { serviceTokn: "" });
"""
TRIES = {"function": "arn:aws:lambda:eu-central-1:123456789012:function:report"}


def code(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def resolved(value: Any) -> Any:
    """The value as CloudFormation would send it."""
    match value:
        case {"Fn::Join": [separator, parts]}:
            return separator.join(part if isinstance(part, str) else TRIES["function"] for part in parts)
        case {"Fn::GetAtt": [_, "Key"]} | {"Fn::GetAtt": "Closed.Key"}:
            return "closed"
        case {"Fn::GetAtt": _} | {"Fn::ImportValue": _}:
            return TRIES["function"]
        case {"Fn::Sub": text}:
            return text.replace("${Report.Arn}", TRIES["function"])
        case dict():
            return {name: resolved(each) for name, each in value.items()}
        case list():
            return [resolved(each) for each in value]
        case bool() | int() | float():
            return json.dumps(value)
    return value


def check(template: Any) -> list[ObjectKind]:
    """Each declared object is a valid request. Returns the kinds."""
    found = []
    for each in template["Resources"].values():
        if each["Type"] in KINDS:
            kind, properties = KINDS[each["Type"]], resolved(each["Properties"])
            assert "punctual-prod-templates-shop" in json.dumps(each["Properties"]["ServiceToken"])
            assert properties["ServiceTimeout"] == "60"
            own = {name: value for name, value in properties.items() if name not in OF_CLOUDFORMATION}
            body = {name: value for name, value in fields(kind, own).items() if kind is ObjectKind.TASK or name != kind.key_field}
            REQUESTS[kind].model_validate(body | ({"name": "x"} if kind is ObjectKind.MONITOR else {}))
            found.append(kind)
    return found


def test_the_stack_in_python_declares_valid_objects() -> None:
    names: dict[str, Any] = {}
    exec(code("python"), names)
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    names["Shop"](app, "shop")
    template = app.synth().get_stack_by_name("shop").template
    assert sorted(check(template)) == [ObjectKind.CALENDAR, ObjectKind.MONITOR, ObjectKind.TASK]


class Loader(yaml.SafeLoader):
    """Reads the short forms of CloudFormation's functions."""


Loader.add_multi_constructor("!", lambda loader, name, node: {"Fn::" + name: loader.construct_scalar(node)})


def test_the_template_declares_valid_objects() -> None:
    template = yaml.load(code("yaml"), Loader)
    assert sorted(check(template)) == [ObjectKind.CALENDAR, ObjectKind.TASK]
    task = next(each for each in template["Resources"].values() if each["Type"] == "Custom::PunctualTask")
    assert fields(ObjectKind.TASK, resolved(task["Properties"]))["payload"]["event"] == {"days": 1}


@pytest.mark.long
def test_the_stack_in_typescript_compiles(tmp_path: Path) -> None:
    """The Python packages of the CDK carry those of npm, with their types."""
    modules = tmp_path / "node_modules"
    for package, name in (("aws_cdk", "aws-cdk-lib"), ("constructs", "constructs")):
        spec = find_spec(package)
        assert spec is not None and spec.origin is not None
        (packed,) = Path(spec.origin).parent.glob("*/*.tgz")
        with tarfile.open(packed) as archive:
            types = [each for each in archive if each.name.endswith((".d.ts", "package.json"))]
            archive.extractall(tmp_path, types)
        (modules / name).parent.mkdir(exist_ok=True)
        (tmp_path / "package").rename(modules / name)
    (tmp_path / "stack.ts").write_text(code("ts") + WRONG)
    options = ["--strict", "--noEmit", "--skipLibCheck", "--module", "nodenext", "--target", "es2022"]
    command = [str(ROOT / "console/node_modules/.bin/tsc"), *options, "stack.ts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
