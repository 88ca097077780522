"""Creates users with Cognito and the users table: the first one of a local AWS, and with `ops/user.py` that of a stage on AWS."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from scheduler.accounts.people import new_id
from scheduler.model.account import COGNITO, Profile, Role, Subject
from scheduler.storage.aws.owners import DynamoOwners
from scheduler.storage.aws.users import DynamoUsers


def password() -> str:
    """Return a new password that satisfies any reasonable policy: letters of both cases, digits, a symbol."""
    return f"{secrets.token_urlsafe(15)}-aA1"


def ensure(
    cognito: Any, dynamodb: Any, outputs: Mapping[str, str], username: str, secret: str, *, administrator: bool = True, weight: float = 1.0
) -> bool:
    """Create the user if missing, with this fair-share weight, and set this password. Returns True if the user is new. Idempotent."""
    pool, role = outputs["UserPoolId"], Role.ADMINISTRATOR if administrator else Role.USER
    new = _create(cognito, pool, username)
    cognito.admin_set_user_password(UserPoolId=pool, Username=username, Password=secret, Permanent=True)
    attributes = cognito.admin_get_user(UserPoolId=pool, Username=username)["UserAttributes"]
    account = next(str(attribute["Value"]) for attribute in attributes if attribute["Name"] == "sub")
    owners, subject = DynamoOwners(dynamodb, outputs["UsersTable"]), Subject(COGNITO, account)
    person = owners.person_of(subject)
    if person is None:
        now = int(datetime.now(UTC).timestamp() * 1000)
        owners.add_person(Profile(new_id(), weight=weight, name=username, role=role, account=account, created_at=now), subject)
    else:
        DynamoUsers(dynamodb, outputs["UsersTable"]).set_weight(person, weight)
        if administrator:
            owners.set_role(person, role)
    return new


def remove(cognito: Any, dynamodb: Any, outputs: Mapping[str, str], username: str) -> None:
    """Delete the user's account and all that the users table has of the person but the state. Idempotent."""
    pool, owners = outputs["UserPoolId"], DynamoOwners(dynamodb, outputs["UsersTable"])
    try:
        attributes = cognito.admin_get_user(UserPoolId=pool, Username=username)["UserAttributes"]
    except cognito.exceptions.UserNotFoundException:
        return
    account = next(str(attribute["Value"]) for attribute in attributes if attribute["Name"] == "sub")
    person = owners.person_of(Subject(COGNITO, account))
    if person is not None:
        owners.erase_person(person, [])
    cognito.admin_delete_user(UserPoolId=pool, Username=username)


def _create(cognito: Any, pool: str, username: str) -> bool:
    try:
        cognito.admin_create_user(UserPoolId=pool, Username=username, MessageAction="SUPPRESS")
    except cognito.exceptions.UsernameExistsException:
        return False
    return True
