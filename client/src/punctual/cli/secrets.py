"""`punctual secrets`: the secrets of jobs on a local stack. Those of a stage on AWS are stored with the tools of AWS."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import signin
from punctual.cli._app import FAILED, NO_ANSWER, NOT_FOUND, Cli, Refused, address, command, group
from punctual.cli._output import Column

VALUE = "PUNCTUAL_NEW_SECRET"
SHORTEST = 6  # characters: a shorter value could not be hidden reliably in outputs
LOOPBACK = ("localhost", "127.0.0.1", "::1")
NAME = re.compile(r"[A-Za-z0-9_+=.@-]{1,200}")  # as the API takes it in a payload

Name = Annotated[str, Argument(help="The name by which jobs refer to it, such as stripe.")]
Target = Annotated[str | None, Option("--target", metavar="NAME", help="Of this named target, instead of you: its defaults may use it.")]


def build() -> typer.Typer:
    app = group("secrets", "Secrets of jobs on a local stack. They are stored in the local AWS, which the extra `aws` can call.")
    command(app, "put", "punctual secrets put stripe", 'printf %s "$STRIPE_KEY" | punctual secrets put stripe --value-stdin')(put)
    command(app, "list", "punctual secrets list")(list_secrets)
    command(app, "delete", "punctual secrets delete stripe --yes")(delete)
    return app


def put(
    cli: Cli,
    name: Name,
    target: Target = None,
    value_stdin: Annotated[bool, Option("--value-stdin", help="Read the value from the standard input, to its end.")] = False,
) -> None:
    """Store a secret, or a new value of it.

    The value is asked for, or read from PUNCTUAL_NEW_SECRET or the standard input; it is no argument, which others could read.
    """
    if NAME.fullmatch(name) is None:
        raise Refused("has 1 to 200 letters, digits and _+=.@-", field="NAME")
    manager, prefix = _manager(cli), _prefix(cli, target)
    value = sys.stdin.read().rstrip("\r\n") if value_stdin else signin.secret(VALUE, f"Value of {name}")
    if len(value) < SHORTEST:
        raise Refused(f"has at least {SHORTEST} characters, so that it can be hidden in outputs", field="the value")
    with _reported():
        try:
            manager.create_secret(Name=prefix + name, SecretString=value)
            done = "is stored"
        except manager.exceptions.ResourceExistsException:
            manager.put_secret_value(SecretId=prefix + name, SecretString=value)
            done = "has a new value, which jobs use within a minute"
    cli.out.result({"name": name, "target": target}, f"Secret {name} {done}.", quiet=name)


def list_secrets(cli: Cli, target: Target = None) -> None:
    """List the names of your secrets, never their values."""
    manager, prefix = _manager(cli), _prefix(cli, target)
    with _reported():
        pages = manager.get_paginator("list_secrets").paginate(Filters=[{"Key": "name", "Values": [prefix]}])
        found = [each["Name"] for page in pages for each in page["SecretList"] if each["Name"].startswith(prefix)]
    cli.out.entries(
        (name.removeprefix(prefix) for name in sorted(found)),
        (Column("name", lambda each: each, essential=True),),
        raw=lambda each: {"name": each, "target": target},
        none="There are no secrets.",
        id=lambda each: each,
    )


def delete(cli: Cli, name: Name, target: Target = None, yes: options.Yes = False) -> None:
    """Delete a secret. Jobs that use it fail."""
    manager, prefix = _manager(cli), _prefix(cli, target)
    cli.confirm(f"Delete the secret {name}?", yes)
    with _reported():
        try:
            manager.describe_secret(SecretId=prefix + name)
        except manager.exceptions.ResourceNotFoundException:
            raise Refused(f"there is no secret {name!r}", field="NAME", hint="All: punctual secrets list", code=NOT_FOUND) from None
        manager.delete_secret(SecretId=prefix + name, ForceDeleteWithoutRecovery=True)
    cli.out.result({"name": name, "target": target}, f"Secret {name} is deleted.", quiet=name)


def _prefix(cli: Cli, target: str | None) -> str:
    return f"punctual/local/{f'targets/{target}' if target else _owner(cli)}/"


def _owner(cli: Cli) -> str:
    if cli.client.owner is not None:
        return cli.client.owner
    me = cli.client.me()
    return me.owner or me.id


def _manager(cli: Cli) -> Any:
    """Return a client of the local AWS that serves the API. Raises Refused for a stage that is not local, and without boto3."""
    place = urlsplit(cli.client.url)
    if (place.hostname or "") not in LOOPBACK:
        raise Refused(
            f"works on a local stack only, and you use {address(cli)}",
            hint="On AWS: aws secretsmanager create-secret --name punctual/STAGE/OWNER_ID/NAME. Your id: punctual whoami --json",
        )
    try:
        import boto3
    except ImportError:
        raise Refused("needs boto3", hint="Install it: pip install 'punctual-client[cli,aws]'") from None
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    return session.client("secretsmanager", endpoint_url=f"{place.scheme}://{place.netloc}")


@contextmanager
def _reported() -> Iterator[None]:
    """Raise the errors of the local AWS in the block as Refused."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except BotoCoreError as error:
        raise Refused(f"the local AWS gave no answer: {error}", hint="Is `make run` or `punctual dev` running?", code=NO_ANSWER) from error
    except ClientError as error:
        raise Refused(f"the local AWS: {error}", code=FAILED) from error
