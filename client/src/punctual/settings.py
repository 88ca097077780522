"""The sources of a client's address and credentials: its arguments, then the environment, then a profile of `punctual login`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace

import httpx

from punctual import profiles
from punctual.errors import NotConfigured
from punctual.profiles import Profile
from punctual.texts import API_KEY, without_keys

TOKEN = re.compile("[!-~]+")  # of a token: printable ASCII
OWNER = re.compile("[A-Za-z0-9-]{1,64}")  # an id of one
HOW = "run `punctual login <url>`, set PUNCTUAL_URL and PUNCTUAL_KEY, or use Punctual(url, key=...)"
KEY_FORM = "an API key has the form punctual_ID_SECRET_CHECKSUM, with 16, 43 and 8 characters"


@dataclass(frozen=True)
class Settings:
    """An address, at most one kind of credentials, and the default owner.

    The credentials are an API key, a token, a name and its password, or the AWS role of the program.
    """

    url: str = ""
    key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    auth: str | None = None  # "aws": the role of this program
    owner: str | None = None
    profile: Profile | None = None  # its tokens are used, and stored when they are refreshed

    @property
    def has_credentials(self) -> bool:
        return bool(self.key or self.token or self.username or self.auth or self.profile)


def settings(explicit: Settings, profile: str | None = None) -> Settings:
    """Return complete settings.

    Credentials come from one source as a whole: the arguments, or the environment, or the profile. Credentials of a profile are sent
    to the address of that profile only. The owner of a profile goes with its credentials. Raises NotConfigured.
    """
    if profile is not None:
        found = _of_profile(explicit, profiles.find(profile))
    else:
        found = _of_environment(explicit)
        if not found.url or not found.has_credentials:
            found = _of_profile(found, profiles.find())
    if not found.url:
        raise NotConfigured(f"there is no address: {HOW}")
    if found.auth not in (None, "aws"):
        raise NotConfigured(f"auth is 'aws' or nothing, not {without_keys(found.auth)[:100]!a}")
    if found.auth and (found.key or found.token or found.username):
        raise NotConfigured("auth='aws' is all that the sign-in needs: leave out key, token and username")
    if found.key and not API_KEY.fullmatch(found.key):
        raise NotConfigured(f"the key (PUNCTUAL_KEY) is none: {KEY_FORM}")
    if found.owner and not OWNER.fullmatch(found.owner):
        raise NotConfigured(f"the owner {without_keys(found.owner)[:100]!a} is no id: it has 1 to 64 letters, digits and -")
    if found.username and found.password is None and found.profile is None and not found.token:
        raise NotConfigured("username needs password (PUNCTUAL_PASSWORD)")
    for token in (found.token, found.profile and found.profile.token):
        if token and not TOKEN.fullmatch(token):
            raise NotConfigured("the token has a blank, a line break or a character that is not ASCII: no token of this API has one")
        if token and API_KEY.fullmatch(token):
            raise NotConfigured("the token is an API key: give it as key (PUNCTUAL_KEY)")
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
    names = ("key", "token", "username", "password", "auth", "owner")
    read = {name: os.environ.get(f"PUNCTUAL_{name.upper()}") or None for name in names}
    found = replace(explicit, url=explicit.url or os.environ.get("PUNCTUAL_URL", ""), owner=explicit.owner or read["owner"])
    if found.has_credentials:
        is_complete = not found.username or found.password is not None
        return found if is_complete else replace(found, password=read["password"])
    if read["key"]:
        return replace(found, key=read["key"])
    if read["token"]:
        return replace(found, token=read["token"])
    if read["auth"]:
        return replace(found, auth=read["auth"])
    return replace(found, username=read["username"], password=read["password"])


def _of_profile(explicit: Settings, profile: Profile | None) -> Settings:
    if profile is None:
        return explicit
    if explicit.url and base(explicit.url) != base(profile.url):
        return explicit
    if explicit.has_credentials:
        return replace(explicit, url=profile.url)
    if profile.auth:
        return replace(explicit, url=profile.url, auth=profile.auth, owner=explicit.owner or profile.owner)
    return replace(explicit, url=profile.url, key=profile.key, owner=explicit.owner or profile.owner, profile=profile)
