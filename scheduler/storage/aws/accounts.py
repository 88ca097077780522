"""Sign-in and identity of users, in Cognito."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from scheduler.model.errors import Invalid, Unauthorized
from scheduler.storage.aws import errors
from scheduler.storage.ports import Session, User

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient

_INVALID = "The token is invalid or has expired."
_WRONG = frozenset(  # all of them get the same answer: a caller must not learn which users exist
    {
        "InvalidParameterException",
        "NotAuthorizedException",
        "PasswordResetRequiredException",
        "RefreshTokenReuseException",
        "UnsupportedTokenTypeException",
        "UserNotConfirmedException",
        "UserNotFoundException",
    }
)


class CognitoAccounts:
    """Sign-in: the app client allows USER_PASSWORD_AUTH, rotates refresh tokens and has no secret."""

    def __init__(self, client: "CognitoIdentityProviderClient", client_id: str) -> None:
        self._client = client
        self._client_id = client_id

    def login(self, username: str, password: str) -> Session:
        with _refusing("The user name or the password is wrong."):
            answer = self._client.initiate_auth(
                ClientId=self._client_id,
                AuthFlow="USER_PASSWORD_AUTH",
                AuthParameters={"USERNAME": username, "PASSWORD": password},
            )
            tokens = answer.get("AuthenticationResult", {})
            if "AccessToken" not in tokens:
                raise Unauthorized(f"This account must complete another sign-in step first: {answer.get('ChallengeName', 'unknown')}.")
        # The claims name the user: GetUser would take another call, of a quota that all sign-ins of the account share.
        claims = _claims(tokens["AccessToken"])
        user = User(claims["sub"], claims["username"])
        return Session(tokens["AccessToken"], _end(claims), tokens.get("RefreshToken"), user)

    def refresh(self, refresh_token: str) -> Session:
        with _refusing("The refresh token has expired."):
            # The only call that rotates the token: with rotation on, Cognito refuses REFRESH_TOKEN_AUTH.
            answer = self._client.get_tokens_from_refresh_token(ClientId=self._client_id, RefreshToken=refresh_token)
        tokens = answer["AuthenticationResult"]
        return Session(tokens["AccessToken"], _end(_claims(tokens["AccessToken"])), tokens.get("RefreshToken"))

    def revoke(self, refresh_token: str) -> None:
        with _refusing("The refresh token is not valid."):
            self._client.revoke_token(ClientId=self._client_id, Token=refresh_token)

    def change_password(self, token: str, current: str, new: str) -> None:
        with errors.translated():
            try:
                self._client.change_password(AccessToken=token, PreviousPassword=current, ProposedPassword=new)
            except ClientError as error:
                raise _password_error(error) from None

    def user(self, token: str, now: int) -> User:
        if not self._may_be_ours(token, now):
            raise Unauthorized(_INVALID)
        with _refusing(_INVALID):
            found = self._client.get_user(AccessToken=token)
        attributes = {attribute["Name"]: attribute["Value"] for attribute in found["UserAttributes"]}
        return User(attributes["sub"], found["Username"])

    def _may_be_ours(self, token: str, now: int) -> bool:
        """Whether the token claims to be an access token of our client that has not expired. Its signature is not checked."""
        try:
            claims = _claims(token)
            return (claims["token_use"], claims["client_id"]) == ("access", self._client_id) and _end(claims) > now
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
            return False


def _password_error(error: ClientError) -> Exception:
    code, message = errors.code(error), str(error.response.get("Error", {}).get("Message", ""))
    if code in ("InvalidPasswordException", "PasswordHistoryPolicyViolationException"):
        return Invalid.field("new_password", f"breaks the password policy: {message}")
    if code == "NotAuthorizedException" and "token" in message.lower():
        return Unauthorized(_INVALID)
    return Invalid.field("current_password", "is wrong") if code == "NotAuthorizedException" else error


@contextmanager
def _refusing(message: str) -> Iterator[None]:
    with errors.translated():
        try:
            yield
        except ClientError as error:
            if errors.code(error) in _WRONG:
                raise Unauthorized(message) from None
            raise


def _claims(token: str) -> Any:
    """The claims of a token, whose signature is not checked. Raises IndexError or ValueError for other texts."""
    claims = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))


def _end(claims: Any) -> int:
    """The expiry of a token (ms)."""
    return int(claims["exp"]) * 1000
