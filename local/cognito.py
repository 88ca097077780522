"""Cognito of the local AWS: five points in which MiniStack is more tolerant than AWS, or forgets what it was sent.

- It does not check PKCE for the code of a single sign-on: a wrong verifier gets tokens. Here the challenge follows the code.
- It drops arrays among the claims of an identity provider, such as groups. Here they become a text, `[a, b]`.
- It takes any session for a code of the second factor, so that no password is needed. Here only the session that it issued.
- It passes no metadata of GetTokensFromRefreshToken on to the trigger of tokens.
- It takes refresh tokens of a confidential app client without the client's secret.
"""

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ministack.core.responses import error_response_json
from ministack.services import cognito

LASTS_S = 180  # of the session of a challenge, by default: AuthSessionValidity
CHALLENGE = ("code_challenge", "code_challenge_method")

_sessions: dict[str, tuple[str, float]] = {}  # the user and the end of each challenge's session
_metadata: ContextVar[Mapping[str, str] | None] = ContextVar("metadata", default=None)


def be_strict() -> None:
    """Change MiniStack's functions. Call once, before it starts."""
    cognito._oauth2_authorize_federation = remembering_pkce(cognito._oauth2_authorize_federation)
    cognito._oauth2_idp_response = carrying_pkce(cognito._oauth2_idp_response, lambda method, body, query: sent(query, body, "state"))
    cognito._saml2_idp_response = carrying_pkce(cognito._saml2_idp_response, lambda body, query: sent(query, body, "RelayState"))
    cognito._oauth2_token = checking_pkce(cognito._oauth2_token)
    cognito._decode_id_token_unverified = with_texts(cognito._decode_id_token_unverified)
    cognito._mfa_challenge_for_user = remembering_sessions(cognito._mfa_challenge_for_user)
    cognito._admin_respond_to_auth_challenge = checking_sessions(cognito._admin_respond_to_auth_challenge)
    cognito._apply_pretoken_trigger = with_metadata(cognito._apply_pretoken_trigger)
    cognito._get_tokens_from_refresh_token = confidential(noting_metadata(cognito._get_tokens_from_refresh_token))
    cognito._revoke_token = confidential(cognito._revoke_token)


def sent(query: Any, body: bytes, name: str) -> str:
    """A parameter of a request: of its query, else of its form."""
    return str(cognito._qp(query, name) or (parse_qs((body or b"").decode(errors="replace")).get(name) or [""])[0])


def _place(answer: Any) -> dict[str, list[str]]:
    """The query of the address to which an answer redirects; empty if it does not."""
    return parse_qs(urlsplit(answer[1].get("Location", "")).query) if answer[0] == 302 else {}


def remembering_pkce(authorize: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the beginning of a single sign-on: its relay remembers the challenge."""

    def wrapped(query: Any) -> Any:
        challenge = {name: cognito._qp(query, name) for name in CHALLENGE}
        refused = cognito._pkce_error_redirect(cognito._qp(query, "redirect_uri"), *challenge.values(), cognito._qp(query, "state"))
        if refused:
            return refused
        answer = authorize(query)
        found = _place(answer)
        relay = cognito._auth_codes.get((found.get("state") or found.get("RelayState") or [""])[0])
        if relay is not None:
            relay.update(challenge)
        return answer

    return wrapped


def carrying_pkce(respond: Callable[..., Any], relay_of: Callable[..., str]) -> Callable[..., Any]:
    """Wrap the answer of the identity provider: the code gets the challenge of the relay."""

    def wrapped(*arguments: Any) -> Any:
        relay = dict(cognito._auth_codes.get(relay_of(*arguments)) or {})
        answer = respond(*arguments)
        code = cognito._auth_codes.get((_place(answer).get("code") or [""])[0])
        if code is not None:
            code.update({name: relay.get(name, "") for name in CHALLENGE})
        return answer

    return wrapped


def checking_pkce(exchange: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the exchange of a code: refuse a wrong verifier, and a client without its secret."""

    def wrapped(data: Any, query: Any, raw: bytes = b"", headers: Any = None) -> Any:
        form = {name: values[0] for name, values in parse_qs(raw.decode(errors="replace")).items()}
        code = cognito._auth_codes.get(form.get("code", "")) if form.get("grant_type") == "authorization_code" else None
        if code is not None:
            id, secret = cognito._authenticate_client(headers or {}, form)
            _, _, client = cognito._find_pool_by_client_id(id)
            if client and client.get("ClientSecret") and secret != client["ClientSecret"]:
                return cognito._oauth2_error("invalid_client", "Invalid client credentials.")
            challenge, method = (code.get(name, "") for name in CHALLENGE)
            if challenge and not cognito._verify_pkce(form.get("code_verifier", ""), challenge, method):
                return cognito._oauth2_error("invalid_grant", "PKCE verification failed.")
        return exchange(data, query, raw, headers)

    return wrapped


def with_texts(decode: Callable[[str], Any]) -> Callable[[str], Any]:
    """Wrap the claims of an identity provider: arrays of texts as one text. AWS does not document its form."""

    def wrapped(token: str) -> Any:
        claims = decode(token)
        if not isinstance(claims, dict):
            return claims
        return {name: f"[{', '.join(map(str, value))}]" if isinstance(value, list) else value for name, value in claims.items()}

    return wrapped


def remembering_sessions(challenge: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the making of a challenge: remember whose it is."""

    def wrapped(pool: Any, user: Any, *rest: Any) -> Any:
        made = challenge(pool, user, *rest)
        if made is not None:
            made["ChallengeParameters"]["USER_ID_FOR_SRP"] = user["Username"]
            _sessions[made["Session"]] = (user["Username"], time.time() + LASTS_S)
        return made

    return wrapped


def checking_sessions(respond: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the answer to a challenge: refuse a session that is unknown, over, or another user's. A session is used once."""

    def wrapped(data: Any) -> Any:
        if data.get("ChallengeName") != "SOFTWARE_TOKEN_MFA":
            return respond(data)
        user, ends = _sessions.get(data.get("Session", ""), ("", 0.0))
        named = str(data.get("ChallengeResponses", {}).get("USERNAME", ""))
        if not user or user.casefold() != named.casefold() or time.time() >= ends:
            return error_response_json("NotAuthorizedException", "Invalid session for the user.", 400)
        answer = respond(data)
        if answer[0] == 200:
            del _sessions[data["Session"]]
        return answer

    return wrapped


def noting_metadata(refresh: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a refresh: `with_metadata` finds its metadata."""

    def wrapped(data: Any) -> Any:
        token = _metadata.set(data.get("ClientMetadata"))
        try:
            return refresh(data)
        finally:
            _metadata.reset(token)

    return wrapped


def with_metadata(apply: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the call of the trigger of tokens."""

    def wrapped(**arguments: Any) -> Any:
        return apply(**arguments | {"client_metadata": arguments.get("client_metadata") or _metadata.get()})

    return wrapped


def confidential(act: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a call with a refresh token: refuse it without the secret of an app client that has one."""

    def wrapped(data: Any) -> Any:
        _, _, client = cognito._find_pool_by_client_id(data.get("ClientId", ""))
        if client and client.get("ClientSecret") and data.get("ClientSecret") != client["ClientSecret"]:
            return error_response_json("NotAuthorizedException", "Invalid client secret.", 400)
        return act(data)

    return wrapped
