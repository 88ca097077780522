"""The published versions of a stage's functions: announce the next ones, keep two, and return to those before (`make rollback`)."""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from infra.parameters import LIVE
from lambdas._settings import Settings
from local.failure import Trouble, exit_code
from ops.cloud import Stage, reported, stage_of
from ops.confirm import confirm
from scheduler.pipeline.latency import expect_cold
from scheduler.storage.aws.ledger import DynamoLedger

FUNCTION = "AWS::Lambda::Function"
DISPATCH = "Dispatch"  # its alias moves first: it publishes jobs as early as the executors of its own deployment need
ANNOUNCED_MS = 20 * 60_000  # a deployment takes ten minutes at most without its console
RUNS_S = 15 * 60  # an invocation ends by then


@dataclass(frozen=True)
class Published:
    """The published versions of a function, oldest first. `live`: the one that its alias `live` names, and all its other aliases."""

    function: str
    id: str  # in the template
    live: str
    environments: Mapping[str, Mapping[str, str]]  # by version
    ages_s: Mapping[str, float]  # seconds since each was published
    aliases: Sequence[str] = (LIVE,)

    @property
    def deployments(self) -> dict[str, str]:
        """The name of the deployment of each version."""
        return {version: Settings.parse(environment).rules.deployment for version, environment in self.environments.items()}

    @property
    def other(self) -> str | None:
        """The newest version that is not live: the one before it or, after a roll-back, the one after it."""
        return next((version for version in reversed(list(self.environments)) if version != self.live), None)


def published(stage: Stage) -> list[Published]:
    """Return the versions of all functions of a deployed stage that have an alias."""
    pages = stage.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stage.stack)
    made = [each for page in pages for each in page["StackResourceSummaries"] if each["ResourceType"] == FUNCTION]
    names = {each["PhysicalResourceId"]: each["LogicalResourceId"] for each in made if each.get("PhysicalResourceId")}
    return list(_published(stage.client("lambda"), names))


def _published(functions: Any, names: Mapping[str, str]) -> Iterator[Published]:
    for name, id in names.items():
        pages = functions.get_paginator("list_versions_by_function").paginate(FunctionName=name)
        found = {each["Version"]: each for page in pages for each in page["Versions"] if each["Version"] != "$LATEST"}
        aliases = functions.list_aliases(FunctionName=name)["Aliases"]  # at most 21: one page
        live = next((each for each in aliases if each["Name"] == LIVE), None)
        if live is None:  # deployed before functions had versions
            continue
        ordered = sorted(found, key=int)
        environments = {version: found[version].get("Environment", {}).get("Variables", {}) for version in ordered}
        ages = {version: time.time() - datetime.fromisoformat(found[version]["LastModified"]).timestamp() for version in ordered}
        yield Published(name, id, live["FunctionVersion"], environments, ages, [each["Name"] for each in aliases])


def announce(stage: Stage, before: Sequence[Published], now: int) -> None:
    """Let dispatch publish jobs early enough for cold executors while a deployment goes on. Does nothing for a stage without versions."""
    for each in before:
        if each.id.startswith(DISPATCH):
            rules = Settings.parse(each.environments[each.live]).rules
            expect_cold(DynamoLedger(stage.client("dynamodb"), stage.outputs()["LedgerTable"]), rules, now + ANNOUNCED_MS)


def prune(stage: Stage, before: Sequence[Published]) -> int:
    """Delete all versions but the live one and the one that was live before. Returns how many were deleted.

    None is deleted that an invocation may still run: a version ends with the alias's move to the next one, and 15 minutes later.
    """
    functions, was, count = stage.client("lambda"), {each.function: each.live for each in before}, 0
    for each in published(stage):
        earlier = was.get(each.function, each.live)
        needed = {each.live, each.other if earlier == each.live else earlier}
        if all(each.ages_s[version] > RUNS_S for version in needed if version != each.live and version is not None):
            for version in each.environments.keys() - needed:
                functions.delete_function(FunctionName=each.function, Qualifier=version)
                count += 1
    return count


def roll_back(stage: Stage) -> str:
    """Move all aliases to the other version that is kept. Returns the name of its deployment. Raises Trouble before anything is changed."""
    found = published(stage)
    if not found or any(each.other is None for each in found):
        raise Trouble(f"There is no version of {stage.stack} to return to. Deploy the code that you want: make deploy STAGE={stage.name}")
    deployments = {each.deployments[each.other] for each in found if each.other is not None}
    if len(deployments) > 1:
        raise Trouble(
            f"The versions before the live ones belong to different deployments: {', '.join(sorted(deployments))}.\n"
            f"Deploy the code that you want: make deploy STAGE={stage.name}"
        )
    (deployment,) = deployments
    print(f"{stage.stack} returns to the deployment {deployment}: the code, environment and memory of {len(found)} functions.")
    confirm("Return to it?")
    announce(stage, found, time.time_ns() // 1_000_000)
    functions = stage.client("lambda")
    for each in sorted(found, key=lambda each: not each.id.startswith(DISPATCH)):
        for alias in each.aliases:
            functions.update_alias(FunctionName=each.function, Name=alias, FunctionVersion=each.other)
    return deployment


def main() -> int:
    parser = argparse.ArgumentParser(prog="ops.versions", description="Let all functions of a stage run the version before.")
    parser.add_argument("--stage", required=True)
    stage = stage_of(parser.parse_args().stage)
    with reported():
        stage.outputs()
        deployment = roll_back(stage)
    print(f"{stage.stack} runs the deployment {deployment}. To return to the later one, repeat this.")
    print("CloudFormation does not know of it: the next deployment of changed code moves on from here.")
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
