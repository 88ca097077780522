"""`make deploy`: deploy a stage with the options of its file, and report the effects before and after.

All refusals come first: a bad file, an account without rights, options that would be reverted without a confirmation.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from infra import names, options
from infra.options import Options
from infra.settings import bare, settings_for
from infra.waf import REGION as WAF_REGION
from local.aws import Deployed
from local.deploy import drop_unfinished, find_cdk
from local.failure import Trouble, exit_code
from local.home import REPOSITORY
from ops import bootstrap, concurrency, origin_secret, taken_back
from ops.cloud import Stage, remedy, reported, stage_of
from ops.confirm import confirm
from ops.publish import publish
from ops.versions import announce, prune, published

ASSEMBLY = REPOSITORY / "cdk.out"  # the CDK's default
COMPLETE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
AT_REST = {"dev": "6.06", "prod": "7.11"}  # USD a month, by the base of the stage, from docs/concepts/cost.md


def main() -> int:
    parser = argparse.ArgumentParser(prog="ops.rollout", description="Deploy a stage with the options in stages/<stage>.toml.")
    parser.add_argument("--stage", required=True)
    parser.add_argument("--bytecode-optional", action="store_true", help="deploy even if nothing can compile for AWS")
    parser.add_argument("--rotate", action="store_true", help="replace the origin secret, by which the API recognizes CloudFront")
    parser.add_argument("--options", type=Path, help="another file of options")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # the CDK prints in between
    path = (arguments.options or options_file(arguments.stage)).resolve()
    if arguments.options and not path.exists():
        raise Trouble(f"There is no file {arguments.options}.")
    chosen = read_options(arguments.stage, path)
    stage = stage_of(arguments.stage, settings=bare(arguments.stage, chosen.base))
    with reported():
        before = prepare(stage, chosen, path)
        versions = published(stage) if before and before.usable else []
        announce(stage, versions, time.time_ns() // 1_000_000)
        cdk_deploy(stage, chosen, path, bytecode_optional=arguments.bytecode_optional, rotate=arguments.rotate)
        prune(stage, versions)
        for line in summary(stage, chosen, before):
            print(line)
    return 0


def options_file(name: str) -> Path:
    """Return the file of the stage's options. Raises Trouble for a name that no stage can have."""
    try:
        names.check(name)
    except ValueError as error:
        raise Trouble(f"{error}. Nothing was deployed.") from error
    return options.file_of(name)


def read_options(name: str, path: Path) -> Options:
    """Return the options in the stage's file. Raises Trouble for a wrong name or base, or with every error in the file."""
    try:
        chosen = options.read(path)
        bare(name, chosen.base)
    except ValueError as error:
        raise Trouble(f"{error}\nNothing was deployed.") from error
    print(f"Options     {options.shown(path)}: {', '.join(chosen.chosen) or 'none are set'}")
    return chosen


def prepare(stage: Stage, chosen: Options, path: Path) -> Deployed | None:
    """Check the account and ask for confirmations; returns the present stack. Raises Trouble before anything is deployed."""
    caller = stage.client("sts").get_caller_identity()
    print(f"Account     {caller['Account']}, as {caller['Arn']}")
    print(f"Region      {stage.region}")
    check_region(stage, chosen, path)
    if any(each.id == caller["Account"] for each in chosen.accounts):
        raise Trouble(f"{options.shown(path)}: accounts: {caller['Account']} is the account of the stage. Jobs need no role in it.")
    bootstrap.check(stage.client("ssm"), f"aws://{caller['Account']}/{stage.region}", bootstrap.qualifier())
    found = states(stage, chosen)
    if blocked := [each for each in found if not each.deployable]:
        raise Trouble("\n".join(described(each, stage) for each in blocked))
    before = next((each for each in found if each.name == stage.stack and not each.unmade), None)
    verdict = concurrency.read(stage.client("lambda"), settings_for(stage.name, chosen), before.outputs if before else {})
    if chosen.account_concurrency and not verdict.enough:
        raise Trouble(" ".join(verdict.sentences))
    for sentence in verdict.sentences:
        print(f"Concurrency {sentence}")
    recorded = taken_back.recorded(stage.client("ssm"), stage.name)
    if refused := taken_back.forbidden(recorded, chosen):
        place, anew = options.shown(path), f"A stage without it begins empty: make destroy STAGE={stage.name}, then deploy."
        raise Trouble("\n".join([f"{place}: {each}" for each in refused] + [anew, "Nothing was deployed."]))
    gone = taken_back.taken_back(recorded, chosen.chosen)
    if before:
        gone += taken_back.unprotected(stage.name, recorded, chosen)
    if gone:
        print(f"\nThis deployment reverts what {stage.stack} has:")
        print("\n".join(f"  - {sentence}" for sentence in gone))
        print(f"To keep it, write it to {options.shown(path)}; stages/example.toml shows how.")
        confirm("Revert them?")
    return before


def check_region(stage: Stage, chosen: Options, path: Path) -> None:
    """Raise Trouble if AWS lacks a service that the stage needs in its region."""
    partition = stage.session.get_partition_for_region(stage.region)
    if partition == "aws-cn":
        raise Trouble(f"Cognito has no user pools in {stage.region}, and users sign in by one: Punctual cannot be deployed in China.")
    if partition == "aws-us-gov" and chosen.console:
        raise Trouble(f"CloudFront, which serves the console, is not in GovCloud. Write console = false to {options.shown(path)}.")
    if chosen.waf and stage.region != WAF_REGION:
        raise Trouble(f"waf needs the stage in {WAF_REGION}, where CloudFront looks for web ACLs; the region is {stage.region}.")


def states(stage: Stage, chosen: Options) -> list[Deployed]:
    """Return those of the stacks to deploy that exist."""
    return [found for name in (stage.stack, *([stage.console] if chosen.console else [])) if (found := stage.state(name))]


def described(found: Deployed, stage: Stage) -> str:
    return f"The stack {found.name} is {found.status}{found.because}. {remedy(found, stage.name)}"


def cdk_deploy(stage: Stage, chosen: Options, path: Path, *, bytecode_optional: bool, rotate: bool = False) -> None:
    """Deploy the stacks with the CDK, in this region. Raises Trouble if it fails; its output has the reason."""
    stacks = [stage.stack, *([stage.console] if chosen.console else [])]
    context = ["-c", f"stage={stage.name}", *_local_context(stage)]
    context += ["-c", f"options={path}"] if path.exists() else []
    context += ["-c", "bytecode_optional=true"] if bytecode_optional else []
    if chosen.console:
        version = (origin_secret.rotate if rotate else origin_secret.ensure)(stage.client("ssm"), stage.name)
        context += ["-c", f"origin_secret_version={version}"]
    drop_unfinished(ASSEMBLY, ours=False)
    command = [*find_cdk(), "deploy", *stacks, *context, "--require-approval", approval(), "--no-notices"]
    try:
        if not subprocess.run(command, cwd=REPOSITORY, env=environment(stage)).returncode:
            return
        ending = "`cdk deploy` failed; its output is above."
    except KeyboardInterrupt:
        ending = "Interrupted. AWS completes an update that has begun."
    broken = [described(each, stage) for each in states(stage, chosen) if each.status not in COMPLETE]
    again = f"Fix the cause, then: make deploy STAGE={stage.name}"
    raise Trouble("\n".join((ending, *(broken or [f"No stack is in an incomplete state. {again}"]))))


def approval() -> str:
    """The changes of rights that the CDK asks about: `APPROVAL`, else new ones; none without a terminal."""
    return os.environ.get("APPROVAL") or ("broadening" if sys.stdin.isatty() else "never")


def environment(stage: Stage) -> dict[str, str]:
    """The environment of the CDK, which reads the region from another variable than boto."""
    own = stage.local.environment() if stage.local else dict(os.environ)
    return own | {"AWS_REGION": stage.region, "AWS_DEFAULT_REGION": stage.region}


def _local_context(stage: Stage) -> Sequence[str]:
    return ("-c", f"endpoint_port={stage.local.port}") if stage.local else ()


def summary(stage: Stage, chosen: Options, before: Deployed | None) -> Iterator[str]:
    """Yield the lines of the report: the stacks, their cost at rest, the next commands. Uploads the console first."""
    outputs = stage.outputs()
    address = stage.local.api_address(outputs) if stage.local else outputs["ApiUrl"]
    if chosen.console:
        count = publish(stage.client("s3"), outputs["ConsoleBucket"])
        yield f"\nUploaded {count} files of the console."
    yield f"\n{'Updated' if before else 'Created'} {stage.stack}{f' and {stage.console}' if chosen.console else ''} in {stage.region}."
    yield f"  API      {address}/api/v1"
    yield f"  console  {outputs['ConsoleUrl'] if chosen.console else 'none (console = false)'}"
    if stage.settings.base in AT_REST:
        yield f"  costs    {AT_REST[stage.settings.base]} USD a month at rest, before free tiers; docs/concepts/cost.md has the details"
    if not chosen.console and stage.state(stage.console):
        yield f"\n{stage.console} is still there. Delete it: make destroy STAGE={stage.name} ONLY=console"
    yield "\nNext:"
    yield f"  make admin STAGE={stage.name} USERNAME=admin    # the first administrator"
    yield f"  make doctor STAGE={stage.name}                  # check the stage"
    yield f"  make prove STAGE={stage.name}                   # how late jobs start here, measured"


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
