"""The refresh token of a browser: in a cookie that no script can read. The browser sends it only to the sign-in routes."""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from aws_lambda_powertools.shared.cookies import Cookie, SameSite

NAME, PATH = "punctual-refresh", "/api/v1/auth"
LIFETIME_S = 30 * 86_400  # as long as a refresh token is valid


def holding(token: str) -> Cookie:
    """The cookie with a token. An empty one deletes the cookie."""
    max_age = LIFETIME_S if token else 0
    return Cookie(NAME, token, path=PATH, secure=True, http_only=True, max_age=max_age, same_site=SameSite.STRICT_MODE)


def read(event: Mapping[str, Any]) -> str | None:
    """The token in the request's cookie, None without one."""
    sent = [*event.get("cookies", ()), *(value for name, value in event.get("headers", {}).items() if name.lower() == "cookie")]
    try:
        return next((found[NAME].value for found in map(SimpleCookie, sent) if NAME in found), None) or None
    except CookieError:
        return None
