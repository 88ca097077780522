"""The page on AWS lists the resources of the templates, and its links and commands exist."""

import re

import pytest

from infra.account import CALLS
from infra.settings import STAGES
from ops import concurrency, rollout
from tests.infra.conftest import DEV, ROOT, Synthesized, synthesized

PAGE = (ROOT / "docs/get-started/aws.md").read_text()
CREATED = PAGE.partition("## Created resources\n")[2].partition("\n## ")[0]
COUNTED = {
    "functions, each with a role and a log group": "Lambda::Function",
    "DynamoDB tables": "DynamoDB::GlobalTable",
    "queues": "SQS::Queue",
    "topics": "SNS::Topic",
    "buckets": "S3::Bucket",
    "schedules of a minute": "Scheduler::Schedule",
    "alarms": "CloudWatch::Alarm",
}


def row(what: str, stage: str) -> str:
    dev, prod = re.findall(rf"^\| {re.escape(what)} \| ([^|]*) \| ([^|]*) \|$", CREATED, re.MULTILINE)[0]
    return {"dev": dev, "prod": prod}[stage]


@pytest.mark.parametrize("stage", [DEV, "prod"])
def test_the_page_counts_what_is_created(stage: str) -> None:
    made = synthesized(stage)
    assert isinstance(made.console, Synthesized)
    both = (made, made.console)
    for what, kind in COUNTED.items():
        assert int(row(what, stage)) == sum(len(stack.all(kind)) for stack in both), what
    assert row("resources in them", stage) == " and ".join(str(len(stack.template["Resources"])) for stack in both)
    assert row("stacks", stage) == ", ".join(f"`{stack.stack.stack_name}`" for stack in both)
    assert row("at rest, USD a month", stage) == rollout.AT_REST[stage]


def test_the_page_explains_the_concurrency_of_an_account() -> None:
    prod = STAGES["prod"]
    assert concurrency.judge(11_910, 11_910, prod).enough and not concurrency.judge(11_909, 11_909, prod).enough
    assert "| 11,910 and more | enough for `prod` |" in PAGE and "with more than 141 at work" in PAGE
    assert "With more than 141 executors" in concurrency.judge(1_000, 1_000, prod).sentences[1]
    assert f"may take {sum(prod.concurrency.values()):,}" in PAGE
    assert f"enough for `dev` ({sum(STAGES['dev'].concurrency.values())} executors, with six calls of URLs each)" in PAGE
    assert CALLS == 6


def test_every_target_of_make_on_the_page_exists() -> None:
    """`make prove` comes with a package of its own."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", PAGE)) - {"prove"} <= targets


def test_every_file_that_the_page_links_exists() -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE):
        assert (ROOT / "docs/get-started" / link).resolve().exists(), link
