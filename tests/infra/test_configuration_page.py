"""docs/reference/configuration.md has every option, and the values of settings and rules in the code."""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest
from aws_cdk.aws_logs import RetentionDays

from infra.options import Options, lasting
from infra.settings import DEV, PROD, Settings
from scheduler.model.rules import Rules
from tests.infra.conftest import ROOT

PAGE = (ROOT / "docs/reference/configuration.md").read_text()
NOT_LISTED = {  # of the local stage, of the options, or derived from other settings
    *("calls", "calls_at_once", "trace_ratio"),
    *("stage", "options", "rules", "reach", "reserved", "sample_targets", "api_at_endpoint", "endpoint_port", "host_packages"),
    *("bytecode_optional", "origin_secret_version", "deployment", "tls_only", "nag", "renamed_actions"),
    *(
        "windows",
        "crowds",
        "operating",
        "executors",
        "concurrency",
        "events",
        "all_events",
        "raw_http",
        "allow_private_http",
        "one_shard",
        "units",
    ),
}
NAMES = {RetentionDays.ONE_WEEK: "one week", RetentionDays.THREE_MONTHS: "three months"}
MEMORY = ("execute", "worker", "project", "plan", "conclude")


def rows(title: str) -> list[list[str]]:
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if line.startswith("| `")]


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(each)}" for name, each in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else NAMES.get(value, str(value))


def memory(settings: Settings) -> str:
    others = [megabytes for name, megabytes in settings.memory_mb.items() if name not in MEMORY]
    chosen = ", ".join(f"{name} {settings.memory_mb[name]:,}" for name in MEMORY)
    return f"{chosen}, others {min(others)} to {max(others)}"


def value(record: Any, name: str) -> str:
    for part in name.split("."):
        record = getattr(record, part)
    return shown(record)


def test_every_option_has_a_row_with_its_default() -> None:
    listed = {row[0].strip("` "): row[1] for row in rows("Options")}
    missing, gone = Options.model_fields.keys() - listed.keys(), listed.keys() - Options.model_fields.keys()
    assert not missing and not gone, f"docs/reference/configuration.md lacks {missing or None}, and has {gone or None} too many"
    for name, field in Options.model_fields.items():
        if isinstance(field.default, bool):
            assert listed[name] == shown(field.default)


def test_the_options_that_cannot_be_changed_back_say_so_and_why() -> None:
    later = {row[0].strip("` "): row[-1] for row in rows("Options")}
    assert {name for name, text in later.items() if text.startswith("it cannot be changed back: ")} == set(lasting())
    assert all(stays.because in later[name] for name, stays in lasting().items())


@pytest.mark.parametrize(("title", "dev", "prod"), [("Settings", DEV, PROD), ("Rules", DEV.rules, PROD.rules)])
def test_the_values_are_those_of_the_code(title: str, dev: Any, prod: Any) -> None:
    for first, shown_dev, shown_prod, _ in rows(title):
        names = re.findall(r"`([\w.]+)`", first)
        if names == ["memory_mb"]:
            assert (shown_dev, shown_prod) == (memory(DEV), memory(PROD))
        else:
            assert shown_dev == ", ".join(value(dev, name) for name in names), names
            assert shown_prod == ", ".join(value(prod, name) for name in names), names


def test_every_setting_and_rule_is_listed() -> None:
    listed = {
        name.partition(".")[0]
        for title in ("Options", "Settings", "Rules")
        for row in rows(title)
        for name in re.findall(r"`([\w.]+)`", row[0])
    }
    known = {field.name for record in (Settings, Rules) for field in fields(record)}
    assert known - listed == NOT_LISTED - {"concurrency", "events", "raw_http"}
