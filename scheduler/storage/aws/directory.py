"""The accounts in a Cognito user pool, by its administration calls. No other module creates or changes an account."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from scheduler.model.errors import Conflict, Invalid, NotFound
from scheduler.storage.aws import errors

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient

_PASSWORD = frozenset({"InvalidPasswordException", "PasswordHistoryPolicyViolationException"})


class CognitoDirectory:
    """The administrators' side. An account's subject is the `sub`, which Cognito takes for a user name as well.

    `provider`: the name of the provider of single sign-on, with which the names of its accounts begin.
    """

    def __init__(self, client: "CognitoIdentityProviderClient", pool: str, provider: str | None = None) -> None:
        self._client = client
        self._pool = pool
        self._provider = provider

    def create(self, username: str, password: str) -> str:
        """The password is set last: an account that a failure leaves incomplete cannot sign in."""
        if self._provider is not None and username.casefold().startswith(f"{self._provider.casefold()}_"):
            raise Conflict(f"user names that begin with {self._provider}_ belong to single sign-on")
        with _refusing():
            made = self._client.admin_create_user(
                UserPoolId=self._pool,
                Username=username,
                TemporaryPassword=_unguessable(),
                MessageAction="SUPPRESS",
            )["User"]
            subject = next(attribute["Value"] for attribute in made["Attributes"] if attribute["Name"] == "sub")
            try:
                self._client.admin_set_user_password(UserPoolId=self._pool, Username=subject, Password=password, Permanent=True)
            except ClientError:
                with suppress(ClientError):  # a refused account does not use up the user name
                    self._client.admin_delete_user(UserPoolId=self._pool, Username=subject)
                raise
        return subject

    def set_enabled(self, subject: str, enabled: bool) -> None:
        with _refusing():
            if enabled:
                self._client.admin_enable_user(UserPoolId=self._pool, Username=subject)
            else:
                self._client.admin_disable_user(UserPoolId=self._pool, Username=subject)
                self._client.admin_user_global_sign_out(UserPoolId=self._pool, Username=subject)

    def delete(self, subject: str) -> None:
        with errors.translated():
            try:
                self._client.admin_delete_user(UserPoolId=self._pool, Username=subject)
            except ClientError as error:
                if errors.code(error) != "UserNotFoundException":
                    raise

    def set_password(self, subject: str, password: str) -> None:
        with _refusing():
            self._client.admin_set_user_password(UserPoolId=self._pool, Username=subject, Password=password, Permanent=True)

    def sign_out(self, subject: str) -> None:
        with _refusing():
            self._client.admin_user_global_sign_out(UserPoolId=self._pool, Username=subject)

    def remove_totp(self, subject: str) -> None:
        with _refusing():
            self._client.admin_set_user_mfa_preference(
                UserPoolId=self._pool, Username=subject, SoftwareTokenMfaSettings={"Enabled": False, "PreferredMfa": False}
            )


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


def _unguessable() -> str:
    return f"{secrets.token_urlsafe(32)}-aA1"
