"""The users in a Cognito user pool, by its administration calls. No other module creates or changes a user."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from scheduler.model.account import Account, Role
from scheduler.model.errors import Conflict, Invalid, NotFound
from scheduler.storage.aws import errors

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient

GROUPS: Mapping[Role, str] = {Role.OPERATOR: "operators", Role.ADMINISTRATOR: "administrators"}  # as `infra` creates them
_PASSWORD = frozenset({"InvalidPasswordException", "PasswordHistoryPolicyViolationException"})


class CognitoDirectory:
    """The administrators' side. A user's id is the `sub`, which Cognito takes for a user name as well."""

    def __init__(self, client: "CognitoIdentityProviderClient", pool: str) -> None:
        self._client = client
        self._pool = pool

    def create(self, username: str, password: str, role: Role) -> Account:
        """The password is set last: an account that a failure leaves incomplete cannot sign in."""
        with _refusing():
            made = self._client.admin_create_user(
                UserPoolId=self._pool,
                Username=username,
                TemporaryPassword=_unguessable(),
                MessageAction="SUPPRESS",
            )["User"]
            account = _account(made, "Attributes", role)
            try:
                self._settle(account, password, role)
            except ClientError:
                with suppress(ClientError):  # a refused account does not use up the user name
                    self._client.admin_delete_user(UserPoolId=self._pool, Username=account.id)
                raise
        return account

    def _settle(self, account: Account, password: str, role: Role) -> None:
        if role in GROUPS:
            self._client.admin_add_user_to_group(UserPoolId=self._pool, Username=account.id, GroupName=GROUPS[role])
        self._client.admin_set_user_password(UserPoolId=self._pool, Username=account.id, Password=password, Permanent=True)

    def get(self, id: str) -> Account | None:
        with errors.translated():
            try:
                found = self._client.admin_get_user(UserPoolId=self._pool, Username=id)
            except ClientError as error:
                if errors.code(error) == "UserNotFoundException":
                    return None
                raise
            groups = self._client.admin_list_groups_for_user(UserPoolId=self._pool, Username=id)["Groups"]
        account = _account(found, "UserAttributes", _role({group["GroupName"] for group in groups}))
        return account if account.id == id else None  # Cognito also finds an account by its user name

    def page(self, cursor: str | None, limit: int) -> tuple[list[Account], str | None]:
        options: dict[str, Any] = {} if cursor is None else {"PaginationToken": cursor}
        with errors.translated():
            try:
                found = self._client.list_users(UserPoolId=self._pool, Limit=limit, **options)
            except ClientError as error:
                if cursor is not None and errors.code(error) == "InvalidParameterException":
                    raise Invalid.field("cursor", "must be the cursor of an earlier answer, unchanged") from None
                raise
        roles = self._roles() if found["Users"] else {}
        accounts = [_account(each, "Attributes", Role.USER) for each in found["Users"]]
        listed = [Account(a.id, a.username, roles.get(a.username, Role.USER), a.enabled, a.job_weight, a.created_at) for a in accounts]
        return listed, found.get("PaginationToken")

    def set_role(self, id: str, role: Role) -> None:
        with _refusing():
            for other, group in GROUPS.items():
                call = self._client.admin_add_user_to_group if other is role else self._client.admin_remove_user_from_group
                call(UserPoolId=self._pool, Username=id, GroupName=group)

    def set_enabled(self, id: str, enabled: bool) -> None:
        with _refusing():
            if enabled:
                self._client.admin_enable_user(UserPoolId=self._pool, Username=id)
            else:
                self._client.admin_disable_user(UserPoolId=self._pool, Username=id)
                self._client.admin_user_global_sign_out(UserPoolId=self._pool, Username=id)

    def delete(self, id: str) -> None:
        with errors.translated():
            try:
                self._client.admin_delete_user(UserPoolId=self._pool, Username=id)
            except ClientError as error:
                if errors.code(error) != "UserNotFoundException":
                    raise

    def set_password(self, id: str, password: str) -> None:
        with _refusing():
            self._client.admin_set_user_password(UserPoolId=self._pool, Username=id, Password=password, Permanent=True)

    def sign_out(self, id: str) -> None:
        with _refusing():
            self._client.admin_user_global_sign_out(UserPoolId=self._pool, Username=id)

    def _roles(self) -> dict[str, Role]:
        """The roles of all users in a group, by user name. They are few, so every page reads them again."""
        roles: dict[str, Role] = {}
        for role, group in GROUPS.items():
            token: dict[str, Any] = {}
            while True:
                with errors.translated():
                    found = self._client.list_users_in_group(UserPoolId=self._pool, GroupName=group, Limit=60, **token)
                roles |= {user["Username"]: role for user in found["Users"]}
                if not found.get("NextToken"):
                    break
                token = {"NextToken": found["NextToken"]}
        return roles


@contextmanager
def _refusing() -> Iterator[None]:
    """Translate Cognito's refusals of a caller's mistakes; other errors become those of `errors.translated`."""
    with errors.translated():
        try:
            yield
        except ClientError as error:
            code, message = errors.code(error), str(error.response.get("Error", {}).get("Message", ""))
            if code == "UsernameExistsException":
                raise Conflict("this user name is taken") from None
            if code == "UserNotFoundException":
                raise NotFound("there is no such user") from None
            if code in _PASSWORD:
                raise Invalid.field("password", f"breaks the password policy: {message}") from None
            raise


def _account(found: Any, attributes: str, role: Role) -> Account:
    values = {attribute["Name"]: attribute["Value"] for attribute in found[attributes]}
    created = int(found["UserCreateDate"].timestamp() * 1000)
    return Account(values["sub"], found["Username"], role, found["Enabled"], created_at=created)


def _role(groups: set[str]) -> Role:
    return next((role for role in (Role.ADMINISTRATOR, Role.OPERATOR) if GROUPS[role] in groups), Role.USER)


def _unguessable() -> str:
    return f"{secrets.token_urlsafe(32)}-aA1"
