"""Access to a local AWS: its address, credentials that only it accepts, boto3 clients, the outputs of the stack."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from infra.parameters import LIVE

HOST = "127.0.0.1"
REGION = "us-east-1"
ACCOUNT = "000000000000"
STACK = "punctual-local"
CONSOLE = f"{STACK}-console"
GRANTS_LOG = "GRANTS_LOG"  # environment variable: a file to which the local AWS writes each call that a role was allowed
ADMIN = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}  # the emulator's root user


@dataclass(frozen=True)
class LocalAws:
    """One running local AWS, used with its administrator's credentials."""

    port: int
    _clients: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _making: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    @cached_property
    def session(self) -> boto3.Session:
        return boto3.Session(ADMIN["AWS_ACCESS_KEY_ID"], ADMIN["AWS_SECRET_ACCESS_KEY"], region_name=REGION)

    def client(self, service: str, **options: Any) -> Any:
        """Return a boto3 client with the administrator's credentials. Without options, all threads share one client per service."""
        with self._making:  # a session must not create two clients at the same time
            if options:
                return self._make(service, **options)
            if service not in self._clients:
                self._clients[service] = self._make(service)
            return self._clients[service]

    def _make(self, service: str, **options: Any) -> Any:
        return self.session.client(service, endpoint_url=self.endpoint, config=Config(proxies={}, **options))

    def variables(self, function: str) -> dict[str, str]:
        """Return the environment of the live version of a function."""
        found = self.client("lambda").get_function_configuration(FunctionName=function, Qualifier=LIVE)
        return dict(found["Environment"]["Variables"])

    def set_variables(self, function: str, **variables: str) -> None:
        """Add these to the environment of a function, in a new version, and let it be the live one, as a deployment does."""
        functions, known = self.client("lambda"), self.variables(function)
        functions.update_function_configuration(FunctionName=function, Environment={"Variables": known | variables})
        version = functions.publish_version(FunctionName=function)["Version"]
        functions.update_alias(FunctionName=function, Name=LIVE, FunctionVersion=version)

    def environment(self) -> dict[str, str]:
        """Return this process's environment for a child that must reach this AWS and can never reach a real account."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        bypass = ",".join(filter(None, [variables.get("NO_PROXY", variables.get("no_proxy", "")), HOST, "localhost", ".localhost"]))
        return {
            **variables,
            **ADMIN,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": bypass,
            "no_proxy": bypass,
        }

    def outputs(self, *stacks: str) -> dict[str, str]:
        """Return the outputs of the stacks, by default those of the stage; of a missing or incomplete stack there are none."""
        found = [deployed(self.client("cloudformation"), stack) for stack in stacks or (STACK, CONSOLE)]
        return {name: value for each in found if each and each.usable for name, value in each.outputs.items()}

    def console_address(self, outputs: Mapping[str, str]) -> str:
        """Return the console's URL; empty if there is none. Browsers find its host name on this machine, even if the system does not."""
        if "ConsoleUrl" not in outputs:
            return ""
        distribution = outputs["ConsoleUrl"].split("://", 1)[-1].split(".", 1)[0]
        return f"http://{distribution}.cloudfront.localhost:{self.port}"

    def api_address(self, outputs: Mapping[str, str]) -> str:
        """Return the API's URL below `endpoint`: its own host name (<id>.execute-api.localhost) resolves on few machines."""
        api_id = outputs["ApiUrl"].split("://", 1)[-1].split(".", 1)[0]
        return f"{self.endpoint}/_aws/execute-api/{api_id}/$default"


ROLLED_BACK = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")  # the creation of a stack
UNMADE = (*ROLLED_BACK, "REVIEW_IN_PROGRESS", "CREATE_FAILED")
USABLE = (
    *("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"),
    *("IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"),
)


@dataclass(frozen=True)
class Deployed:
    """A stack that CloudFormation knows."""

    name: str
    status: str
    reason: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    protected: bool = False  # against deletion

    @property
    def usable(self) -> bool:
        """Whether its resources are complete. After an update that was rolled back, they are those of the version before."""
        return self.status in USABLE

    @property
    def unmade(self) -> bool:
        """Whether no deployment of it ever succeeded."""
        return self.status in UNMADE

    @property
    def busy(self) -> bool:
        """Whether CloudFormation works on it. A stack in review only has a change set that was not executed."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def deployable(self) -> bool:
        """Whether the CDK can deploy it. It deletes a stack whose creation was rolled back first, which AWS refuses if it is protected."""
        if self.status in ROLLED_BACK:
            return not self.protected
        return not self.busy and (self.usable or self.status == "REVIEW_IN_PROGRESS")

    @property
    def because(self) -> str:
        return f" ({self.reason})" if self.reason else ""


def deployed(cloudformation: Any, stack: str) -> Deployed | None:
    """Return the stack; None if there is none. Raises ClientError if AWS refuses the call."""
    try:
        found = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    except ClientError as error:
        if error.response["Error"].get("Code") == "ValidationError" and "does not exist" in error.response["Error"].get("Message", ""):
            return None
        raise
    outputs = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
    return Deployed(
        stack, found["StackStatus"], found.get("StackStatusReason", ""), outputs, bool(found.get("EnableTerminationProtection"))
    )
