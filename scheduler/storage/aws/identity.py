"""People, in Cognito: accounts with a password, and single sign-on through its sign-in pages."""

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from scheduler.accounts.sso import REFUSED, Sso, groups_of, subject_at
from scheduler.model.errors import NotFound, Unauthorized, Unavailable
from scheduler.storage.aws.accounts import SSO, AppClient, CognitoAccounts, fetched
from scheduler.storage.aws.directory import CognitoDirectory
from scheduler.storage.aws.tokens import claims, end
from scheduler.storage.ports import IdpClaims, Session, User

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient

GROUPS = "custom:groups"  # `infra/accounts.py` maps the provider's claim to it


class CognitoIdentity(CognitoAccounts, CognitoDirectory):
    """The port `Identity`: a pool, the app client through which people sign in, and the single sign-on of the stage."""

    def __init__(self, client: "CognitoIdentityProviderClient", pool: str, app: AppClient, sso: Sso | None = None) -> None:
        CognitoAccounts.__init__(self, client, pool, app, None if sso is None else AppClient(sso.client_id, sso.client_secret))
        CognitoDirectory.__init__(self, client, pool, None if sso is None else sso.provider)
        self._option = sso

    def exchange(self, code: str, verifier: str, redirect_uri: str) -> tuple[Session, IdpClaims]:
        option = self._option
        if option is None:
            raise NotFound("this stage has no single sign-on")
        form = {
            "grant_type": "authorization_code",
            "client_id": option.client_id,
            "client_secret": option.client_secret,
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect_uri,
        }
        tokens = _tokens(option.url.replace("{endpoint}", self._client.meta.endpoint_url) + "/oauth2/token", form)
        # Cognito's own answer over TLS: its signatures need no check (OpenID Connect Core, section 3.1.3.7).
        about, access = claims(tokens["id_token"]), claims(tokens["access_token"])
        username = str(access["username"])
        subject = subject_at(username, option.provider)
        if subject is None or about["sub"] != access["sub"]:
            raise Unauthorized(REFUSED)
        session = Session(tokens["access_token"], end(access), SSO + tokens["refresh_token"], User(access["sub"], username))
        stated = IdpClaims(
            option.provider,
            subject,
            groups_of(about.get(GROUPS)),
            str(about.get("name", "")),
            str(about.get("email", "")),
            str(about.get("email_verified", "")).lower() == "true",
        )
        return session, stated


def _tokens(url: str, form: dict[str, str]) -> Any:
    """The answer of the token endpoint. Raises Unauthorized for a refused code."""
    body = urlencode(form).encode()
    try:
        found = json.loads(fetched(urllib.request.Request(url, body, {"content-type": "application/x-www-form-urlencoded"})))
    except urllib.error.HTTPError as error:
        raise Unauthorized(REFUSED) from error
    except ValueError as error:
        raise Unavailable() from error
    if not isinstance(found, dict) or not {"access_token", "id_token", "refresh_token"} <= found.keys():
        raise Unauthorized(REFUSED)
    return found
