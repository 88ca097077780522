"""Deploy the stack to a local AWS with the same CDK command line that deploys it to AWS. Unchanged sources are not deployed again."""

import contextlib
import hashlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from local import process
from local.aftercare import aftercare
from local.aws import ACCOUNT, REGION, LocalAws
from local.failure import Trouble
from local.home import LOCAL, REPOSITORY, Home
from local.steps import Say, step
from ops import origin_secret

SOURCES = ("app.py", "cdk.json", "package-lock.json", "requirements.txt", "infra", "lambdas", "scheduler", "stages")
ASSEMBLIES = LOCAL / "assemblies"  # of the present sources, by port: each home of this folder would synthesize the same for ten seconds
MARK = "/punctual/deployed"  # stored in the local AWS itself: if its state is lost, the mark is lost with it
NODE, OLDEST_NODE = 22, 20  # the version to install, and the oldest with which the CDK still works
EVENT = re.compile(r"\|\s*(\d+)/(\d+)\s*\|.*\|\s*(\w+)\s*\|\s*(AWS::\S+)")


def deploy(home: Home, aws: LocalAws, options: Path | None = None) -> dict[str, str]:
    """Return the outputs of the deployed stacks. Deploys first if the sources changed since the last deploy to this local AWS.

    `options`: the file of options, instead of `stages/local.toml`.
    """
    current = f"{fingerprint(REPOSITORY)} {aws.port}"  # the port is part of the API's address in the console
    current += f" {options.read_text()}" if options else ""
    outputs = aws.outputs()
    if outputs and marked(aws.client("ssm")) == current:
        return outputs
    cdk = Cdk(home, aws, find_cdk(), options)
    home.deploy_log.unlink(missing_ok=True)
    with step("Synthesizing the stack") as say:
        cdk.synth(say)
    if not aws.outputs("CDKToolkit"):
        with step("Bootstrapping the local AWS for the CDK") as say:
            cdk.bootstrap(say)
    with step("Deploying the stack") as say:
        cdk.deploy(say)
    outputs = aws.outputs()
    aftercare(aws, outputs)
    aws.client("ssm").put_parameter(Name=MARK, Value=current, Type="String", Overwrite=True)
    return outputs


def end_abandoned(home: Home) -> bool:
    """End the CDK of a run that was killed: it would go on with the local AWS of the next run. Returns whether there was one."""
    assembly = str(home.assembly)
    left = [*process.of_command("--no-version-reporting", assembly), *process.of_command("app.py", assembly)]
    process.end(left, patience=2)
    return bool(left)


def drop_unfinished(assembly: Path, *, ours: bool) -> None:
    """Delete an assembly whose synthesis was killed: the CDK would take the folder of a half-built bundle for a complete one.

    The CDK keeps a lock with its number while it synthesizes. `ours`: nobody else uses the folder, so each lock is left over, and its
    number may be that of another process by now.
    """
    lock = assembly / "synth.lock"
    if lock.exists() and (ours or not _runs(lock.read_text())):
        shutil.rmtree(assembly)
    if ours:
        for left in assembly.glob("read.*.lock"):
            left.unlink()


def _runs(number: str) -> bool:
    return number.isdecimal() and process.started(int(number)) is not None


def marked(ssm: Any) -> str | None:
    """Return the mark of what was deployed to this local AWS; None if there is none."""
    try:
        return str(ssm.get_parameter(Name=MARK)["Parameter"]["Value"])
    except ClientError:
        return None


def fingerprint(repository: Path) -> str:
    """Return a hash of the deployed sources and of the Python version (the bundle contains wheels for it)."""
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(_source_files(repository)):
        digest.update(f"\0{path.relative_to(repository)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _source_files(repository: Path) -> Iterator[Path]:
    for name in SOURCES:
        source = repository / name
        paths = source.rglob("*") if source.is_dir() else [source]
        yield from (path for path in paths if path.is_file() and "__pycache__" not in path.parts)


def keep(assembly: Path, cached: Path) -> None:
    """Copy an assembly to `cached`, whole or not at all, unless another run was faster; delete those of other sources."""
    cached.parent.mkdir(parents=True, exist_ok=True)
    for old in cached.parent.iterdir():
        if old.name.partition("-")[0] != cached.name.partition("-")[0]:
            shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=cached.name.partition("-")[0] + "-new-", dir=cached.parent) as place:
        fresh = shutil.copytree(assembly, Path(place) / "assembly")
        with contextlib.suppress(OSError):
            fresh.rename(cached)


def find_cdk() -> list[str]:
    """Return the command that runs the pinned CDK. Raises Trouble, with a remedy, if Node.js or the CDK is missing."""
    node = shutil.which("node")
    if not node:
        raise Trouble(f"Node.js is missing: the CDK command line needs it. Install Node {NODE} or newer (https://nodejs.org), then repeat.")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    if not version.startswith("v") or int(version[1:].split(".")[0]) < OLDEST_NODE:
        raise Trouble(f"Node.js {version or '(unknown version)'} at {node} is too old: the CDK command line needs {NODE} or newer.")
    script = REPOSITORY / "node_modules/aws-cdk/bin/cdk"
    if not script.exists():
        raise Trouble("The CDK command line is not installed. Install it: make setup")
    return [node, str(script)]


class Cdk:
    """The CDK command line, run against one local AWS."""

    def __init__(self, home: Home, aws: LocalAws, command: list[str], options: Path | None = None) -> None:
        self._home, self._options = home, options
        self._command = command
        self._port = aws.port
        self._origin_secret = origin_secret.ensure(aws.client("ssm"), "local")
        self._environment = {
            **aws.environment(),
            "CDK_DEFAULT_ACCOUNT": ACCOUNT,
            "CDK_DEFAULT_REGION": REGION,
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "CI": "true",  # progress to standard output, no colours
        }

    def synth(self, say: Say) -> None:
        """Synthesize into the home's assembly, or copy the one that an earlier run made of the same sources for the same port."""
        cached = ASSEMBLIES / f"{fingerprint(REPOSITORY)}-{self._port}-{self._origin_secret}"
        if cached.is_dir() and self._options is None:
            say("unchanged")
            shutil.rmtree(self._home.assembly, ignore_errors=True)
            shutil.copytree(cached, self._home.assembly)
            return
        context = ("-c", "stage=local", "-c", f"endpoint_port={self._port}", "-c", f"origin_secret_version={self._origin_secret}")
        options = () if self._options is None else ("-c", f"options={self._options}")
        drop_unfinished(self._home.assembly, ours=True)
        # The argument of the app has no meaning but for `end_abandoned`.
        app = f"{sys.executable} app.py {shlex.quote(str(self._home.assembly))}"
        self._run(say, "synth", "--quiet", "--app", app, "--output", str(self._home.assembly), *context, *options)
        if self._options is None:
            keep(self._home.assembly, cached)

    def bootstrap(self, say: Say) -> None:
        self._run(say, "bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", str(self._home.assembly))

    def deploy(self, say: Say) -> None:
        self._run(say, "deploy", "--all", "--app", str(self._home.assembly), "--require-approval", "never", "--progress", "events")

    def _run(self, say: Say, *arguments: str) -> None:
        output = []
        with (
            self._home.deploy_log.open("a") as log,
            subprocess.Popen(
                [*self._command, *arguments, "--no-notices", "--no-version-reporting"],
                cwd=REPOSITORY,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as child,
        ):
            try:
                for line in child.stdout or ():
                    log.write(line)
                    output.append(line.rstrip())
                    if event := EVENT.search(line):
                        done, total, status, kind = event.groups()
                        say(f"{done} of {total} resources, {kind} {status.lower().replace('_', ' ')}")
            except BaseException:
                end_abandoned(self._home)
                raise
        if child.returncode:
            ending = "\n".join(f"    {line}" for line in output[-25:])
            raise Trouble(
                f"`cdk {arguments[0]}` failed. Its full output is in {self._home.deploy_log}. The last lines:\n{ending}\n"
                "Repeat it. If it fails again, begin with an empty stack: make clean deletes this one and its jobs."
            )
