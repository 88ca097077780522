"""CloudFormation's own rules as cfn-lint ships them: what it finds in templates, and which resources an update replaces."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

REGIONS = ("us-east-1", "eu-central-1", "ap-southeast-1")
GOVCLOUD = "us-gov-west-1"  # without the console: it has no CloudFront
_TOOL = (sys.executable, "-m", "uv", "tool", "run", "--from", "cfn-lint==1.58.0")
_FOLDER = "import cfnlint, pathlib; print(pathlib.Path(cfnlint.__file__).parent / 'data/schemas')"

Template = Mapping[str, Any]


def lint(templates: Iterable[Path], regions: Iterable[str]) -> str:
    """The findings of cfn-lint in these templates; empty if there are none."""
    done = subprocess.run([*_TOOL, "cfn-lint", "--regions", *regions, "--", *map(str, templates)], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def replaced(before: Template, after: Template) -> set[str]:
    """The logical ids of the resources that CloudFormation replaces in an update.

    It replaces those of which a property changes that can only be set at creation, also if that refers to a replaced resource. Such
    properties are read as paths without `*`, which are those of the resources here.
    """
    old, new, found = before["Resources"], after["Resources"], set[str]()
    while True:
        more = {id for id in old.keys() & new.keys() - found if _differs(old[id], new[id], found)}
        if not more:
            return found
        found |= more


def _differs(old: Mapping[str, Any], new: Mapping[str, Any], replaced: set[str]) -> bool:
    if old["Type"] != new["Type"]:
        return True
    for path in create_only(old["Type"]):
        was, becomes = (_at(each.get("Properties", {}), path) for each in (old, new))
        if was != becomes or replaced & set(references(becomes)):
            return True
    return False


def _at(value: Any, path: str) -> Any:
    for part in path.removeprefix("/properties/").split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def references(value: Any) -> Iterator[str]:
    """The logical ids to which a part of a template refers."""
    if isinstance(value, list):
        for each in value:
            yield from references(each)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            if name == "Ref":
                yield each
            elif name == "Fn::GetAtt":
                yield each[0]
            else:
                yield from references(each)


@cache
def create_only(kind: str) -> tuple[str, ...]:
    """The properties of a type of resource that can only be set when it is created, always or under a condition."""
    schemas = _schemas()
    names: dict[str, str] = json.loads((schemas / f"providers/{REGIONS[0]}.json").read_text())
    schema = json.loads((schemas / f"resources/{names[kind]}.json").read_text())
    return (*schema.get("createOnlyProperties", ()), *schema.get("conditionalCreateOnlyProperties", ()))


@cache
def _schemas() -> Path:
    return Path(subprocess.run([*_TOOL, "python", "-c", _FOLDER], capture_output=True, text=True, check=True).stdout.strip())
