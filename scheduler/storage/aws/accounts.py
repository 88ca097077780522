"""Sign-in and second factors, in Cognito. All of it goes through the API's role: the app clients have a secret and no public flow."""

import base64
import contextlib
import hashlib
import hmac
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from scheduler.model.errors import Conflict, Invalid, Unauthorized, Unavailable
from scheduler.storage.aws import errors
from scheduler.storage.aws.tokens import Verifier, claims, end
from scheduler.storage.ports import Challenge, Session, User

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient

TOTP = "SOFTWARE_TOKEN_MFA"
ENROLLING = {"purpose": "second-factor"}  # `infra/accounts.py`: the trigger then leaves the scope for calls on one's own account
SSO = "sso."  # begins the refresh tokens of single sign-on, which belong to another app client
TIMEOUT_S = 5
_INVALID = "The token is invalid or has expired."
_WRONG = frozenset(  # all of them get the same answer: a caller must not learn which users exist
    {
        "CodeMismatchException",
        "ExpiredCodeException",
        "InvalidParameterException",
        "NotAuthorizedException",
        "PasswordResetRequiredException",
        "RefreshTokenReuseException",
        "SoftwareTokenMFANotFoundException",
        "UnsupportedTokenTypeException",
        "UserNotConfirmedException",
        "UserNotFoundException",
    }
)
_TRIGGER = frozenset(  # the trigger of tokens could not be called, or failed: nothing about the person is known
    {"InvalidLambdaResponseException", "UnexpectedLambdaException", "UserLambdaValidationException"}
)
_WRONG_CODE = frozenset({"CodeMismatchException", "EnableSoftwareTokenMFAException", "ExpiredCodeException"})


@dataclass(frozen=True, slots=True)
class AppClient:
    """An app client of the pool. Its secret protects nothing alone: sign-in also takes the grant of the API's role."""

    id: str
    secret: str

    def hash(self, username: str) -> str:
        """SECRET_HASH: https://docs.aws.amazon.com/cognito/latest/developerguide/signing-up-users-in-your-app.html"""
        digest = hmac.new(self.secret.encode(), (username + self.id).encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()


class CognitoAccounts:
    """The people's side. `sso`: the app client of single sign-on."""

    def __init__(self, client: "CognitoIdentityProviderClient", pool: str, app: AppClient, sso: AppClient | None = None) -> None:
        self._client = client
        self._pool = pool
        self._app = app
        self._sso = sso
        self._tokens = Verifier(frozenset(each.id for each in (app, sso) if each is not None), self._public_keys)

    def login(self, username: str, password: str) -> Session | Challenge:
        with _refusing("The user name or the password is wrong."):
            return self._signed_in(username, password)

    def answer_challenge(self, challenge: Challenge, code: str) -> Session:
        responses = {"USERNAME": challenge.username, "SOFTWARE_TOKEN_MFA_CODE": code, "SECRET_HASH": self._app.hash(challenge.username)}
        with _refusing("The code is wrong, was used before, or came too late. Sign in again if this repeats."):
            answer = self._client.admin_respond_to_auth_challenge(
                UserPoolId=self._pool,
                ClientId=self._app.id,
                ChallengeName="SOFTWARE_TOKEN_MFA",
                Session=challenge.session,
                ChallengeResponses=responses,
            )
            return _session(answer)

    def refresh(self, refresh_token: str) -> Session:
        app, token, prefix = self._of(refresh_token)
        with _refusing("The refresh token has expired."):
            # The only call that rotates the token: with rotation on, Cognito refuses REFRESH_TOKEN_AUTH.
            answer = self._client.get_tokens_from_refresh_token(ClientId=app.id, ClientSecret=app.secret, RefreshToken=token)
        tokens = answer["AuthenticationResult"]
        following = tokens.get("RefreshToken")
        return Session(tokens["AccessToken"], end(claims(tokens["AccessToken"])), following and prefix + following)

    def revoke(self, refresh_token: str) -> None:
        app, token, _ = self._of(refresh_token)
        with _refusing("The refresh token is not valid."):
            self._client.revoke_token(ClientId=app.id, ClientSecret=app.secret, Token=token)

    def check_password(self, username: str, password: str) -> bool:
        try:
            session = self.login(username, password)
        except Unauthorized:
            return False
        if isinstance(session, Session):
            self._drop(session.refresh_token)
        return True

    def user(self, token: str, now: int) -> User:
        found = self._tokens.verified(token, now)
        if found is None:
            raise Unauthorized(_INVALID)
        return User(found["sub"], found["username"])

    def begin_totp(self, username: str, password: str) -> str:
        with self._enrolling(username, password) as token, errors.translated():
            return str(self._client.associate_software_token(AccessToken=token)["SecretCode"])

    def confirm_totp(self, username: str, password: str, code: str) -> None:
        with self._enrolling(username, password) as token, errors.translated():
            try:
                verified = self._client.verify_software_token(AccessToken=token, UserCode=code)["Status"] == "SUCCESS"
            except ClientError as error:
                if errors.code(error) == "SoftwareTokenMFANotFoundException":
                    raise Conflict("no second factor was begun: begin again") from None
                if errors.code(error) not in _WRONG_CODE:
                    raise
                verified = False
            if not verified:
                raise Invalid.field("code", "is not the present code of the new secret")
            self._prefer_totp(claims(token)["sub"], on=True)

    def has_totp(self, subject: str) -> bool:
        with errors.translated():
            try:
                found = self._client.admin_get_user(UserPoolId=self._pool, Username=subject)
            except ClientError as error:
                if errors.code(error) == "UserNotFoundException":
                    return False
                raise
        return TOTP in found.get("UserMFASettingList", ())

    def _prefer_totp(self, subject: str, *, on: bool) -> None:
        self._client.admin_set_user_mfa_preference(
            UserPoolId=self._pool, Username=subject, SoftwareTokenMfaSettings={"Enabled": on, "PreferredMfa": on}
        )

    @contextmanager
    def _enrolling(self, username: str, password: str) -> Iterator[str]:
        """An access token with the scope that Cognito requires for a person's own second factor. It never leaves this process.

        A token of a sign-in lacks that scope. It comes with a refresh whose metadata only the owner of the app client's secret can send.
        Raises Invalid for a wrong password, Conflict if the account has a second factor.
        """
        try:
            session = self.login(username, password)
        except Unauthorized:
            raise Invalid.field("current_password", "is wrong") from None
        if isinstance(session, Challenge):
            raise Conflict("the account has a second factor: remove it first")
        refresh = session.refresh_token
        try:
            with _refusing("The session has ended."):
                answer = self._client.get_tokens_from_refresh_token(
                    ClientId=self._app.id, ClientSecret=self._app.secret, RefreshToken=refresh or "", ClientMetadata=ENROLLING
                )
            tokens = answer["AuthenticationResult"]
            refresh = tokens.get("RefreshToken", refresh)
            yield tokens["AccessToken"]
        finally:
            self._drop(refresh)

    def _signed_in(self, username: str, password: str) -> Session | Challenge:
        answer = self._client.admin_initiate_auth(
            UserPoolId=self._pool,
            ClientId=self._app.id,
            AuthFlow="ADMIN_USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": username, "PASSWORD": password, "SECRET_HASH": self._app.hash(username)},
        )
        if answer.get("ChallengeName") == TOTP:
            return Challenge(answer["ChallengeParameters"].get("USER_ID_FOR_SRP", username), answer["Session"])
        return _session(answer)

    def _of(self, refresh_token: str) -> tuple[AppClient, str, str]:
        """The app client of a refresh token, the token as Cognito knows it, and the prefix."""
        if self._sso is not None and refresh_token.startswith(SSO):
            return self._sso, refresh_token.removeprefix(SSO), SSO
        return self._app, refresh_token, ""

    def _drop(self, refresh_token: str | None) -> None:
        """End a session of ours. If that fails, it ends by itself: nobody has its tokens."""
        if refresh_token is not None:
            with contextlib.suppress(Unauthorized, Unavailable):
                self.revoke(refresh_token)

    def _public_keys(self) -> bytes:
        """Not a call of the API: it takes no credentials, and counts in no quota."""
        return fetched(f"{self._client.meta.endpoint_url}/{self._pool}/.well-known/jwks.json")


def fetched(request: str | urllib.request.Request) -> bytes:
    """The answer of a GET or of the given request to the pool. Raises Unavailable, and HTTPError for an answer of 400 to 499."""
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        if 400 <= error.code < 500 and error.code != 429:
            raise
        raise Unavailable() from error
    except OSError as error:
        raise Unavailable() from error


def _session(answer: Any) -> Session:
    """The session in an answer. The claims name the user: GetUser would take another call, of a quota that all sign-ins share."""
    tokens = answer.get("AuthenticationResult", {})
    if "AccessToken" not in tokens:
        raise Unauthorized(f"This account must complete another sign-in step first: {answer.get('ChallengeName', 'unknown')}.")
    found = claims(tokens["AccessToken"])
    return Session(tokens["AccessToken"], end(found), tokens.get("RefreshToken"), User(found["sub"], found["username"]))


@contextmanager
def _refusing(message: str) -> Iterator[None]:
    with errors.translated():
        try:
            yield
        except ClientError as error:
            if errors.code(error) in _WRONG:
                raise Unauthorized(message) from None
            if errors.code(error) in _TRIGGER:
                raise Unavailable() from error
            raise
