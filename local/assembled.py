"""Deploy an assembly to a local AWS without the CDK and without Node: the templates, functions and console that a wheel carries.

`server/hatch_build.py` writes the folder: `assembly.json`, a template for each stack, archives of the functions, the console.
"""

import io
import json
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from infra import bytecode
from local.aftercare import aftercare
from local.aws import Deployed, LocalAws, deployed
from local.deploy import MARK, marked
from local.failure import Trouble
from local.home import Home
from local.steps import step
from ops import origin_secret
from ops.publish import publish

MANIFEST = "assembly.json"
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
BOOTSTRAP, VERSION = "/cdk-bootstrap/hnb659fds/version", "30"  # the templates ask for this parameter of the CDK
PATIENCE = 300.0  # seconds for a stack


@dataclass(frozen=True)
class Assembly:
    """The folder of an assembly. Calling it deploys what has changed, as `local.stack.up` expects."""

    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Raises Trouble if there is no assembly."""
        try:
            return dict(json.loads((self.folder / MANIFEST).read_text()))
        except OSError as error:
            raise Trouble(f"There is no assembly in {self.folder}. In a clone of Punctual, use: make run") from error

    def __call__(self, home: Home, aws: LocalAws) -> dict[str, str]:
        """Deploy unless it is deployed; returns the outputs. An older stack is updated in place, with its jobs."""
        current = f"{self.manifest['fingerprint']} {aws.port}"  # the port is part of the API's address in the console
        outputs, ssm = aws.outputs(), aws.client("ssm")
        if outputs and marked(ssm) == current:
            return outputs
        with step("Updating the stack" if outputs else "Deploying the stack"):
            if origin_secret.ensure(ssm, "local") != self.manifest["origin_secret"]:
                raise Trouble(f"The stack in {home.root} was deployed with another secret. {_afresh(home)}")
            ssm.put_parameter(Name=BOOTSTRAP, Value=VERSION, Type="String", Overwrite=True)
            self._upload(aws)
            for stack in self.manifest["stacks"]:
                self._make(home, aws, stack)
            outputs = aws.outputs()
            aftercare(aws, outputs)
        with step("Uploading the web console"):
            publish(aws.client("s3"), outputs["ConsoleBucket"], self.folder / "console")
        ssm.put_parameter(Name=MARK, Value=current, Type="String", Overwrite=True)
        return outputs

    def _upload(self, aws: LocalAws) -> None:
        """Put templates and archives into the bucket in which the templates expect them."""
        s3 = aws.client("s3")
        s3.create_bucket(Bucket=self.manifest["bucket"])
        for key in self.manifest["archives"]:
            s3.put_object(Bucket=self.manifest["bucket"], Key=key, Body=compiled((self.folder / key).read_bytes()))
        for stack in self.manifest["stacks"]:
            template = (self.folder / f"{stack}.json").read_text().replace(str(self.manifest["port"]), str(aws.port))
            s3.put_object(Bucket=self.manifest["bucket"], Key=f"{stack}.json", Body=template.encode())

    def _make(self, home: Home, aws: LocalAws, stack: str) -> None:
        """Create or update a stack, and wait for it. Raises Trouble if that fails."""
        cloudformation = aws.client("cloudformation")
        before = deployed(cloudformation, stack)
        if before is not None and before.unmade:
            cloudformation.delete_stack(StackName=stack)
            before = None
        change = cloudformation.create_stack if before is None else cloudformation.update_stack
        url = f"{aws.endpoint}/{self.manifest['bucket']}/{stack}.json"
        try:
            change(StackName=stack, TemplateURL=url, Capabilities=CAPABILITIES)
        except ClientError as error:
            if "No updates are to be performed" in str(error):
                return
            raise Trouble(f"The stack {stack} could not be deployed: {error}\n{_afresh(home)}") from error
        after = _settled(cloudformation, stack)
        if not after.usable or "ROLLBACK" in after.status:
            raise Trouble(f"The stack {stack} is {after.status}: {_failure(cloudformation, stack) or after.reason}\n{_afresh(home)}")


def compiled(archive: bytes) -> bytes:
    """Return the archive of a function with bytecode for this Python, without which each process of a function compiles what it imports."""
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        zipfile.ZipFile(io.BytesIO(archive)).extractall(folder)
        bytecode.compile_all(folder, sys.executable)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as whole:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    whole.write(path, path.relative_to(folder).as_posix())
    return packed.getvalue()


def _settled(cloudformation: Any, stack: str) -> Deployed:
    deadline = time.monotonic() + PATIENCE
    while (found := deployed(cloudformation, stack)) is None or found.busy:
        if time.monotonic() > deadline:
            raise Trouble(f"The stack {stack} was not deployed within {PATIENCE:.0f} s.")
        time.sleep(0.05)
    return found


def _failure(cloudformation: Any, stack: str) -> str:
    """Return the first resource that failed, with the reason; empty if there is none."""
    events = cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
    failed = [event for event in events if event["ResourceStatus"].endswith("FAILED")]
    return f"{failed[-1]['LogicalResourceId']}: {failed[-1].get('ResourceStatusReason', '')}" if failed else ""


def _afresh(home: Home) -> str:
    return f"Nothing is deleted. To begin with an empty stack, without the jobs of this one: {home.commands.reset}"
