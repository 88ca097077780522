"""One stage in an AWS account: its region, the names of its stacks, and AWS's errors in plain words.

boto reads the region from `AWS_DEFAULT_REGION` or a profile, the CDK from `AWS_REGION` as well. Here all three apply, to both.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

from infra import names, options
from infra.options import OptionsError
from infra.settings import STAGES, Settings, bare
from local.aws import Deployed, LocalAws, deployed
from local.failure import Trouble
from local.home import LOCAL, Home
from scheduler.model.errors import SchedulerError

RIGHTS = "docs/get-started/aws.md lists the required rights."
_SIGN_IN = "Sign in again (aws sso login, or new keys), then repeat."
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired")
_DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "AuthorizationErrorException")
_UNKNOWN = ("InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId", "AuthFailure")
_UNSIGNED = ("SignatureDoesNotMatch", "InvalidSignatureException", "RequestTimeTooSkewed")
_BUSY = ("Throttling", "ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded", "SlowDown")


@dataclass(frozen=True)
class Stage:
    """A stage in the account and the region of the credentials at hand."""

    settings: Settings
    session: boto3.Session
    local: LocalAws | None = None  # the local AWS that it is deployed to

    @property
    def name(self) -> str:
        return self.settings.stage

    @property
    def stack(self) -> str:
        return self.settings.stack

    @property
    def console(self) -> str:
        return self.settings.console_stack

    @property
    def region(self) -> str:
        return str(self.session.region_name)

    def client(self, service: Any) -> Any:
        return self.session.client(service, endpoint_url=self.local.endpoint if self.local else None)

    def state(self, stack: str) -> Deployed | None:
        return deployed(self.client("cloudformation"), stack)

    def outputs(self) -> dict[str, str]:
        """Return the outputs of the stage's stacks. Raises Trouble if the stage is not deployed, or its stack cannot be used."""
        found = self.state(self.stack)
        if found is None:
            raise Trouble(f"There is no stack {self.stack} in {self.region}. Deploy it: make deploy STAGE={self.name}")
        if not found.usable:
            raise Trouble(f"The stack {self.stack} is {found.status}{found.because}. {remedy(found, self.name)}")
        console = self.state(self.console)
        return {**found.outputs, **(console.outputs if console and console.usable else {})}


def remedy(found: Deployed, stage: str) -> str:
    """Return the next step for a stack that cannot be used or deployed, or whose last update was rolled back."""
    deploy, of_stack = f"make deploy STAGE={stage}", f"--stack-name {found.name}"
    cause = f"Its events have the cause: aws cloudformation describe-stack-events {of_stack}."
    if found.busy:
        return "Wait until it has ended, then repeat."
    if found.status == "REVIEW_IN_PROGRESS":
        return f"Its first deployment did not begin. Repeat it: {deploy}"
    if found.status == "UPDATE_FAILED":
        return f"{cause} Roll it back: aws cloudformation rollback-stack {of_stack}. Then: {deploy}"
    if found.status == "UPDATE_ROLLBACK_FAILED":
        return f"{cause} Continue its rollback: aws cloudformation continue-update-rollback {of_stack}. Then: {deploy}"
    if found.usable or found.deployable:
        return f"{cause} Then: {deploy}"
    console = " ONLY=console" if found.name == f"punctual-{stage}-console" else ""
    steps = [
        *([unprotect(found.name)] if found.protected else []),
        f"make destroy STAGE={stage}{console}",
        *([deploy] if found.unmade else []),
    ]
    return "\n  ".join((f"{cause} Delete what is left of it:", *steps))


def unprotect(stack: str) -> str:
    """Return the command that lets a protected stack be deleted."""
    return f"aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name {stack}"


def settings_of(name: str) -> Settings:
    """Return the settings of a stage without options, by the base in its file. Raises Trouble for a wrong name, or without a base."""
    try:
        names.check(name)  # before it is part of a path
        return bare(name, _base(name))
    except ValueError as error:
        raise Trouble(str(error)) from error


def _base(name: str) -> str | None:
    try:
        return options.read(options.file_of(name)).base
    except OptionsError:
        if name not in STAGES:
            raise
        return None  # the commands that need options report the errors in them


def stage_of(name: str, environ: Mapping[str, str] = os.environ, settings: Settings | None = None) -> Stage:
    """Return the stage; `local` is that of a running `make run`. Raises Trouble for a wrong name, without a base or without a region.

    `settings`: those of another file than the stage's.
    """
    settings = settings or settings_of(name)
    if name == "local":
        aws = running(Home(LOCAL), environ)
        return Stage(settings, aws.session, aws)
    try:
        session = boto3.Session(region_name=environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION"))
    except BotoCoreError as error:
        raise trouble(error) from error
    if not session.region_name:
        raise Trouble("There is no region. Set AWS_REGION, such as AWS_REGION=eu-central-1, or choose a profile that has one.")
    return Stage(settings, session)


def running(home: Home, environ: Mapping[str, str] = os.environ) -> LocalAws:
    """Return the local AWS of a run: that of `AWS_ENDPOINT_URL` if it is set, else that of `home`. Raises Trouble if none runs."""
    if address := environ.get("AWS_ENDPOINT_URL"):
        if (port := urlsplit(address).port) is None:
            raise Trouble(f"AWS_ENDPOINT_URL is the address of a local AWS with its port, such as http://127.0.0.1:4566, not {address}")
        return LocalAws(port)
    note = home.running.read()
    if not note:
        raise Trouble("No stack is running here. Start one in another terminal: make run")
    return LocalAws(int(note["port"]))


@contextmanager
def reported() -> Iterator[None]:
    """Raise the errors of AWS in the block as Trouble, with the remedy."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise trouble(error) from error
    except SchedulerError as error:  # from an adapter
        raise Trouble(str(error)) from error


def trouble(error: Exception) -> Trouble:
    """Return the error for people: the refused call, the reason, and the remedy."""
    if isinstance(error, ClientError):
        return Trouble(_refusal(error))
    return Trouble(next((tell(error) for kind, tell in _NO_ANSWER if isinstance(error, kind)), f"AWS could not be called: {error}"))


def _refusal(error: ClientError) -> str:
    code, message = str(error.response["Error"].get("Code", "")), str(error.response["Error"].get("Message", ""))
    if code in _EXPIRED:
        return f"Your credentials have expired. {_SIGN_IN}"
    if code in _DENIED:
        return f"Your credentials do not allow {error.operation_name}: {message}\n{RIGHTS}"
    if code in _UNKNOWN:
        return f"AWS does not recognize your credentials ({message}). Check AWS_PROFILE and the keys, and that the region is enabled."
    if code in _UNSIGNED:
        return f"AWS refuses the signature of your requests ({message}). Check the secret key, and the clock of this machine."
    if code in _BUSY:
        return f"AWS refuses {error.operation_name} for now: there are too many requests. Repeat in a minute."
    return f"AWS refused {error.operation_name}: {code}: {message}"


# Errors before a request is answered, most specific first.
_NO_ANSWER: tuple[tuple[type[Exception], Callable[[Exception], str]], ...] = (
    (exceptions.NoCredentialsError, lambda _: "There are no credentials. Set AWS_PROFILE, or sign in (aws sso login), then repeat."),
    (exceptions.PartialCredentialsError, lambda error: f"The credentials are incomplete: {error}"),
    (exceptions.ProfileNotFound, lambda error: f"{error}. `aws configure list-profiles` lists your profiles."),
    (exceptions.SSOError, lambda error: f"The single sign-on has expired ({error}). {_SIGN_IN}"),
    (exceptions.TokenRetrievalError, lambda error: f"The token cannot be renewed ({error}). {_SIGN_IN}"),
    (exceptions.CredentialRetrievalError, lambda error: f"The credentials cannot be read: {error}"),
    (exceptions.EndpointConnectionError, lambda error: f"{error}. Check the network, and the name of the region."),
    (exceptions.ConnectionError, lambda error: f"AWS does not answer: {error}. Check the network, then repeat."),
    (exceptions.HTTPClientError, lambda error: f"AWS does not answer: {error}. Check the network, then repeat."),
)
