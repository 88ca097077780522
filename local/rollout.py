"""`make deploy`: deploy a stage with the options of its file, and report the effects before and after.

All refusals come first: a bad file, an account without rights, options that would be reverted without a confirmation.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from infra import options
from infra.options import Options, OptionsError
from infra.settings import STAGES, settings_for
from infra.waf import REGION as WAF_REGION
from local import concurrency, taken_back
from local.aws import Deployed
from local.cloud import Stage, remedy, reported, stage_of
from local.confirm import confirm
from local.deploy import find_cdk
from local.failure import Trouble, exit_code
from local.home import REPOSITORY
from local.publish import publish

AT_REST = {"dev": "6.06", "prod": "7.04"}  # USD a month, from docs/concepts/cost.md


def main() -> int:
    parser = argparse.ArgumentParser(prog="local.rollout", description="Deploy a stage with the options in stages/<stage>.toml.")
    parser.add_argument("--stage", required=True)
    parser.add_argument("--bytecode-optional", action="store_true", help="deploy even if nothing can compile for AWS")
    parser.add_argument("--options", type=Path, help="another file of options")
    given = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # the CDK prints in between
    path = (given.options or options.file_of(given.stage)).resolve()
    if given.options and not path.exists():
        raise Trouble(f"There is no file {given.options}.")
    chosen = read_options(given.stage, path)
    stage = stage_of(given.stage)
    with reported():
        before = prepare(stage, chosen, path)
        cdk_deploy(stage, chosen, path, bytecode_optional=given.bytecode_optional)
        for line in told(stage, chosen, before):
            print(line)
    return 0


def read_options(name: str, path: Path) -> Options:
    """Return the options in the stage's file. Raises Trouble for an unknown stage, or with every error in the file."""
    if name not in STAGES:
        raise Trouble(f"There is no stage {name!r}. The stages are {', '.join(STAGES)}.")
    try:
        chosen = options.read(path)
    except OptionsError as error:
        raise Trouble(f"{error}\nNothing was deployed.") from error
    print(f"Options     {options.shown(path)}: {', '.join(chosen.chosen) or 'none are set'}")
    return chosen


def prepare(stage: Stage, chosen: Options, path: Path) -> Deployed | None:
    """Check the account and ask for confirmations; returns the present stack. Raises Trouble before anything is deployed."""
    caller = stage.client("sts").get_caller_identity()
    print(f"Account     {caller['Account']}, as {caller['Arn']}")
    print(f"Region      {stage.region}")
    if chosen.waf and stage.region != WAF_REGION:
        raise Trouble(f"waf needs the stage in {WAF_REGION}, where CloudFront looks for web ACLs; the region is {stage.region}.")
    if stage.state("CDKToolkit") is None:
        place = f"aws://{caller['Account']}/{stage.region}"
        raise Trouble(f"The CDK is not bootstrapped here. Once per account and region: node_modules/.bin/cdk bootstrap {place}")
    before = stage.state(stage.stack)
    if before and before.status.endswith("_IN_PROGRESS"):
        raise Trouble(f"The stack {before.name} is {before.status}. {remedy(before, stage.name)}")
    verdict = concurrency.read(stage.client("lambda"), settings_for(stage.name, chosen))
    if chosen.account_concurrency and not verdict.enough:
        raise Trouble(" ".join(verdict.sentences))
    for sentence in verdict.sentences:
        print(f"Concurrency {sentence}")
    if gone := taken_back.taken_back(taken_back.recorded(stage.client("ssm"), stage.name), chosen.chosen):
        print(f"\nThis deployment reverts options of {stage.stack} has:")
        print("\n".join(f"  - {sentence}" for sentence in gone))
        print(f"To keep it, write it to {options.shown(path)}; stages/example.toml shows how.")
        confirm("Revert them?")
    return before


def cdk_deploy(stage: Stage, chosen: Options, path: Path, *, bytecode_optional: bool) -> None:
    """Deploy the stacks with the CDK, in this region. Raises Trouble if it fails; its output has the reason."""
    stacks = [stage.stack, *([stage.console] if chosen.console else [])]
    context = ["-c", f"stage={stage.name}", *_local_context(stage)]
    context += ["-c", f"options={path}"] if path.exists() else []
    context += ["-c", "bytecode_optional=true"] if bytecode_optional else []
    command = [*find_cdk(), "deploy", *stacks, *context, "--require-approval", approval(), "--no-notices"]
    if subprocess.run(command, cwd=REPOSITORY, env=environment(stage)).returncode:
        raise Trouble(f"`cdk deploy` failed; its output is above. Check the present state: make doctor STAGE={stage.name}")


def approval() -> str:
    """The changes of rights that the CDK asks about: `APPROVAL`, else new ones; none without a terminal."""
    return os.environ.get("APPROVAL") or ("broadening" if sys.stdin.isatty() else "never")


def environment(stage: Stage) -> dict[str, str]:
    """The environment of the CDK, which reads the region from another variable than boto."""
    own = stage.local.environment() if stage.local else dict(os.environ)
    return own | {"AWS_REGION": stage.region, "AWS_DEFAULT_REGION": stage.region}


def _local_context(stage: Stage) -> Sequence[str]:
    return ("-c", f"endpoint_port={stage.local.port}") if stage.local else ()


def told(stage: Stage, chosen: Options, before: Deployed | None) -> Iterator[str]:
    """Yield the lines of the report: the stacks, their cost at rest, the next commands. Uploads the console first."""
    outputs = stage.outputs()
    address = stage.local.api_address(outputs) if stage.local else outputs["ApiUrl"]
    if chosen.console:
        count = publish(stage.client("s3"), outputs["ConsoleBucket"])
        yield f"\nUploaded {count} files of the console."
    yield f"\n{'Updated' if before else 'Created'} {stage.stack}{f' and {stage.console}' if chosen.console else ''} in {stage.region}."
    yield f"  API      {address}/api/v1"
    yield f"  console  {outputs['ConsoleUrl'] if chosen.console else 'none (console = false)'}"
    if stage.name in AT_REST:
        yield f"  costs    {AT_REST[stage.name]} USD a month at rest, before free tiers; docs/concepts/cost.md has the details"
    if not chosen.console and stage.state(stage.console):
        yield f"\n{stage.console} is still there. Delete it: make destroy STAGE={stage.name} ONLY=console"
    yield "\nNext:"
    yield f"  make admin STAGE={stage.name} USERNAME=admin    # the first administrator"
    yield f"  make doctor STAGE={stage.name}                  # check the stage"
    yield f"  make prove STAGE={stage.name}                   # how late jobs start here, measured"


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
