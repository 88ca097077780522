"""The stage that is measured: the local one, fresh and of the run's own, or one that is deployed on AWS."""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from punctual import Punctual

from local import previous, user
from local.aws import REGION
from local.receiver import Receiver
from local.stack import interruptible, up
from local.steps import step
from local.stop import PROVE
from local.warmup import READY, warm_up
from ops.cloud import stage_of
from prove.cleanup import Cleanup

LOCAL = "local"
CALLED = "/ok/prove"  # the path that the http job calls at the receiver


@dataclass(frozen=True)
class Place:
    """A stage, and clients with the caller's rights. `receiver`: of the local stage; on AWS the http job calls the stage's own API."""

    stage: str
    region: str
    outputs: dict[str, str]
    address: str
    make_client: Callable[..., Any]  # (service, **options of botocore) -> a boto3 client
    receiver: Receiver | None = None

    @property
    def local(self) -> bool:
        return self.stage == LOCAL

    @property
    def called(self) -> str:
        """The URL that the http job calls."""
        return self.receiver.url(CALLED) if self.receiver else f"{self.address}/api/v1/health"

    def calls(self) -> list[int] | None:
        """Return when the receiver was called, in UTC milliseconds; None if the stage has no receiver."""
        return [call.at for call in self.receiver.calls(CALLED)] if self.receiver else None

    def client(self, service: str, **options: Any) -> Any:
        return self.make_client(service, **options)


@contextmanager
def opened(stage: str, *, short: bool) -> Iterator[Place]:
    """Yield the stage. Raises Trouble if there is no such stage, no region, or no stack that can be used."""
    with _local(short) if stage == LOCAL else _deployed(stage) as place:
        yield place


@contextmanager
def _local(short: bool) -> Iterator[Place]:
    """Start a fresh stack on a free port, beside those of `make run` and others; stop it at the end."""
    previous.clear(PROVE)
    shutil.rmtree(PROVE.root, ignore_errors=True)
    with up(PROVE, port=os.environ.get("PORT"), enforce_iam=True) as stack, Receiver() as receiver:
        with step("Warming up the functions, as `make run` does"):
            warm_up(stack.aws, stack.outputs, OneTime=3 if short else READY, Recurring=1)
        yield Place(LOCAL, REGION, stack.outputs, stack.address, stack.aws.client, receiver)


@contextmanager
def _deployed(stage: str) -> Iterator[Place]:
    found = stage_of(stage)
    outputs = found.outputs()

    def client(service: str, **options: Any) -> Any:
        return found.session.client(service, config=Config(**options))

    with interruptible():
        yield Place(stage, found.region, outputs, outputs["ApiUrl"].rstrip("/"), client)


def signed_in(place: Place, name: str, cleanup: Cleanup) -> Punctual:
    """Create a user of this name without special rights; returns a client of the API, signed in as that user."""
    cognito, dynamodb, secret = place.client("cognito-idp"), place.client("dynamodb"), user.password()
    cleanup.later(f"the user {name}", lambda: user.remove(cognito, dynamodb, place.outputs, name))
    user.ensure(cognito, dynamodb, place.outputs, name, secret, administrator=False)
    return Punctual(place.address, username=name, password=secret, timeout=300, max_retries=30)  # a stage may throttle for long


def new_name() -> str:
    """Return a new name for the user, queues, role and schedule group of a run."""
    return f"punctual-prove-{secrets.token_hex(4)}"
