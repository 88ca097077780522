"""The deployed stack for the system tests: on a free port, its state in a temporary folder, IAM enforced as on AWS."""

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local import user
from local.client import Client
from local.home import Home
from local.receiver import Receiver
from local.stack import Stack, up


@dataclass
class System:
    """What a system test drives: the API over HTTP as any user, the emulated AWS as its administrator."""

    stack: Stack
    receiver: Receiver

    @property
    def outputs(self) -> dict[str, str]:
        return self.stack.outputs

    @property
    def address(self) -> str:
        return self.stack.address

    def client(self, username: str | None = None) -> Client:
        """A signed-in caller: the first user (an administrator), or one of this name, made on the way."""
        if username is None:
            return self.stack.client()
        return self.sign_in(username, self.create_user(username))

    def create_user(self, username: str) -> str:
        """Make a user without any right; returns the password."""
        password = f"{secrets.token_urlsafe(15)}-aA1"
        user.ensure(self.aws("cognito-idp"), self.outputs["UserPoolId"], username, password, administrator=False)
        return password

    def sign_in(self, username: str, password: str) -> Client:
        client = Client(self.address)
        client.login(username, password)
        return client

    def anonymous(self) -> Client:
        return Client(self.address)

    def aws(self, service: str) -> Any:
        """A boto3 client with the administrator's credentials."""
        return self.stack.aws.client(service)


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One stack for the whole session; nothing it does touches `make run`."""
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("aws"))))
    with Receiver() as receiver, up(home, enforce_iam=True) as stack:
        yield System(stack, receiver)


@pytest.fixture(scope="session")
def client(system: System) -> Client:
    """The first user, signed in."""
    return system.client()
