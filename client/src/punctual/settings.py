"""The sources of a client's address and credentials: its arguments, then the environment, then a profile of `punctual login`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from punctual import profiles
from punctual.errors import NotConfigured
from punctual.profiles import Profile

TOKEN = re.compile("[!-~]+")  # of a token: printable ASCII
HOW = "run `punctual login <url>`, set PUNCTUAL_URL and PUNCTUAL_TOKEN, or use Punctual(url, token=...)"


@dataclass(frozen=True)
class Settings:
    """An address and at most one kind of credentials: a token, machine-client credentials, a name and its password, or the AWS role."""

    url: str = ""
    token: str | None = field(default=None, repr=False)
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    token_url: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    auth: str | None = None  # "aws": the role of this program
    profile: Profile | None = None  # its tokens are used, and stored when they are refreshed

    @property
    def has_credentials(self) -> bool:
        return bool(self.token or self.client_id or self.username or self.auth or self.profile)


def settings(explicit: Settings, profile: str | None = None) -> Settings:
    """Return complete settings.

    Credentials come from one source as a whole: the arguments, or the environment, or the profile. Credentials of a profile are sent
    to the address of that profile only. Raises NotConfigured.
    """
    if profile is not None:
        found = _of_profile(explicit, profiles.find(profile))
    else:
        found = _of_environment(explicit)
        if not found.url or not found.has_credentials:
            found = _of_profile(found, profiles.find())
    if not found.url:
        raise NotConfigured(f"there is no address: {HOW}")
    if found.client_id and not (found.client_secret and found.token_url):
        raise NotConfigured(
            "client_id needs client_secret (PUNCTUAL_CLIENT_SECRET) and token_url (PUNCTUAL_TOKEN_URL, the stack's output TokenUrl)"
        )
    if found.username and found.password is None and found.profile is None and not found.token:
        raise NotConfigured("username needs password (PUNCTUAL_PASSWORD)")
    if found.auth not in (None, "aws"):
        raise NotConfigured(f"auth is 'aws' or nothing, not {found.auth!a}")
    if found.auth and (found.token or found.client_id or found.username):
        raise NotConfigured("auth='aws' is all that the sign-in needs: leave out token, client_id and username")
    if found.token_url and not _is_address(found.token_url):
        raise NotConfigured(f"token_url {found.token_url!a} is no address: it is the output TokenUrl of the stack")
    for token in (found.token, found.profile and found.profile.token):
        if token and not TOKEN.fullmatch(token):
            raise NotConfigured("the token has a blank, a line break or a character that is not ASCII: no token of this API has one")
    return replace(found, url=base(found.url))


def base(url: str) -> str:
    """Return the address without `/api/v1` and slashes at its end. Raises NotConfigured if it is no HTTP address."""
    if not _is_address(url):
        shown = repr(url) if url.isprintable() else ascii(url)
        raise NotConfigured(f"{shown} is no address: it begins with https://, such as https://abc.execute-api.eu-central-1.amazonaws.com")
    return url.strip().rstrip("/").removesuffix("/api/v1").rstrip("/")


def _is_address(url: str) -> bool:
    """Whether a text is an HTTP address with a host that can be looked up."""
    try:
        parts = httpx.URL(url.strip())
        parts.raw_host.decode().encode("idna")  # refuses an empty or a too long label, as the look-up does
    except (httpx.InvalidURL, ValueError):
        return False
    return parts.scheme in ("http", "https") and bool(parts.host) and (parts.port or 0) <= 65_535


def _of_environment(explicit: Settings) -> Settings:
    names = ("token", "client_id", "client_secret", "token_url", "username", "password", "auth")
    read = {name: os.environ.get(f"PUNCTUAL_{name.upper()}") or None for name in names}
    url = explicit.url or os.environ.get("PUNCTUAL_URL", "")
    if explicit.has_credentials:
        missing: dict[str, Any] = {name: read[name] for name in _partners(explicit) if getattr(explicit, name) is None}
        return replace(explicit, url=url, **missing)
    if read["token"]:
        return replace(explicit, url=url, token=read["token"])
    if read["auth"]:
        return replace(explicit, url=url, auth=read["auth"])
    if read["client_id"]:
        return replace(explicit, url=url, client_id=read["client_id"], client_secret=read["client_secret"], token_url=read["token_url"])
    return replace(explicit, url=url, username=read["username"], password=read["password"])


def _partners(explicit: Settings) -> tuple[str, ...]:
    """The settings without which the given ones are not complete."""
    return ("client_secret", "token_url") if explicit.client_id else ("password",) if explicit.username else ()


def _of_profile(explicit: Settings, profile: Profile | None) -> Settings:
    if profile is None:
        return explicit
    if explicit.url and base(explicit.url) != base(profile.url):
        return explicit
    if explicit.has_credentials:
        return replace(explicit, url=profile.url)
    if profile.auth:
        return replace(explicit, url=profile.url, auth=profile.auth)
    if profile.client_id:
        client: dict[str, Any] = {name: getattr(profile, name) for name in ("client_id", "client_secret", "token_url")}
        return replace(explicit, url=profile.url, profile=profile, **client)
    return replace(explicit, url=profile.url, profile=profile)
