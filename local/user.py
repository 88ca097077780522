"""Creates users through Cognito's administration API: the first one of a local AWS, and with `ops/user.py` that of a stage on AWS."""

import secrets
from collections.abc import Mapping
from typing import Any

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
