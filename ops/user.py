"""Creates the first administrator through Cognito's administration API: on the local AWS, and with `make admin` on AWS."""

import argparse
import getpass
import re
import secrets
import sys
from collections.abc import Mapping
from typing import Any

from local.failure import Trouble, exit_code
from ops.cloud import reported, stage_of
from scheduler.model.account import PASSWORD
from scheduler.storage.aws.users import DynamoUsers

ADMINISTRATORS = "administrators"  # the group of that name in infra/accounts.py


def password() -> str:
    """Return a new password that satisfies any reasonable policy: letters of both cases, digits, a symbol."""
    return f"{secrets.token_urlsafe(15)}-aA1"


def ensure(cognito: Any, pool: str, username: str, secret: str, *, administrator: bool = True) -> bool:
    """Create the user if missing, and set this password. Returns True if the user is new. Idempotent."""
    new = _create(cognito, pool, username)
    cognito.admin_set_user_password(UserPoolId=pool, Username=username, Password=secret, Permanent=True)
    if administrator:
        cognito.admin_add_user_to_group(UserPoolId=pool, Username=username, GroupName=ADMINISTRATORS)
    return new


def weigh(cognito: Any, dynamodb: Any, outputs: Mapping[str, str], username: str, weight: float = 1.0) -> str:
    """Set the user's fair-share weight; returns the user's id. Idempotent."""
    attributes = cognito.admin_get_user(UserPoolId=outputs["UserPoolId"], Username=username)["UserAttributes"]
    user_id = next(str(attribute["Value"]) for attribute in attributes if attribute["Name"] == "sub")
    DynamoUsers(dynamodb, outputs["UsersTable"]).set_weight(user_id, weight)
    return user_id


def _create(cognito: Any, pool: str, username: str) -> bool:
    try:
        cognito.admin_create_user(UserPoolId=pool, Username=username, MessageAction="SUPPRESS")
    except cognito.exceptions.UsernameExistsException:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="ops.user", description="Create the first administrator of a stage on AWS.")
    parser.add_argument("--stage", required=True)
    parser.add_argument("--username", default="admin")
    options = parser.parse_args()
    secret, chosen = _ask()
    stage = stage_of(options.stage)
    with reported():
        outputs = stage.outputs()
        cognito = stage.client("cognito-idp")
        new = ensure(cognito, outputs["UserPoolId"], options.username, secret)
        if new:
            weigh(cognito, stage.client("dynamodb"), outputs, options.username)
    print(f"{'Created' if new else 'Updated'} the administrator {options.username} of {stage.stack}.")
    print(f"API       {outputs['ApiUrl']}")
    print(f"password  {'(the password that you typed)' if chosen else secret}")
    return 0


def _ask() -> tuple[str, bool]:
    """Return the password and whether a person typed it. Without a terminal it is generated."""
    typed = getpass.getpass("Password (leave empty to generate one): ") if sys.stdin.isatty() else ""
    if typed and re.fullmatch(PASSWORD, typed) is None:
        raise Trouble("A password has at most 256 characters, none of them a blank.")
    return typed or password(), bool(typed)


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
