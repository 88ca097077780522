"""The credential of a client: an API key, or a token that is fetched, cached and renewed. Concurrent requests share one renewal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from punctual import aws_identity, profiles
from punctual.aws_identity import RoleTokens
from punctual.errors import NotAuthenticated, UnexpectedAnswer
from punctual.settings import TOKEN, Settings

SAFETY_SECONDS = 60.0  # a token is renewed this long before it expires; a short one after nine tenths of its life


@dataclass(frozen=True)
class Tokens:
    """An access token, the instant from which it is renewed (epoch seconds; None: unknown), and what renews it."""

    access: str = field(repr=False)
    renew_at: float | None = None
    refresh: str | None = field(default=None, repr=False)
    role: aws_identity.RoleToken | None = None  # its text is the access token


class AsyncSession:
    """The API key or the tokens of one account or AWS role. `call` sends a request without a token and returns the parsed answer."""

    def __init__(self, settings: Settings, call: Callable[..., Awaitable[Any]], now: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._call = call
        self._now = now
        self._lock = asyncio.Lock()
        self._roles = RoleTokens(settings.url) if settings.auth else None
        self._tokens = self._first()

    async def token(self) -> str | None:
        """Return a token that has not expired; None if the client has no credentials. Raises NotAuthenticated, NoAnswer."""
        tokens = self._tokens
        if tokens is not None and (tokens.renew_at is None or self._now() < tokens.renew_at or not self._can_renew(tokens)):
            return tokens.access
        if tokens is None and not self._can_renew(tokens):
            return None
        async with self._lock:
            if self._tokens is tokens:  # no other task has renewed it in that time
                self._tokens = await self._renewed(tokens)
            return self._tokens.access if self._tokens else None

    async def renew(self, refused: str | None) -> bool:
        """Renew the token that the API has refused. Return whether there is another one now. Raises NotAuthenticated, NoAnswer."""
        async with self._lock:
            tokens = self._tokens
            if tokens is not None and tokens.access != refused:
                return True
            if not self._can_renew(tokens):
                return False
            self._tokens = await self._renewed(tokens)
            return True

    @property
    def role(self) -> aws_identity.RoleToken | None:
        """The token of the AWS role; None if the client signs in otherwise, and before the first sign-in."""
        return self._tokens.role if self._tokens else None

    @property
    def door(self) -> str:
        """The beginning of the paths that take this credential, once there is one: API keys and AWS roles have paths of their own."""
        return "/key" if self._settings.key else f"/aws/{self.role.account}" if self.role else ""

    @property
    def refresh_token(self) -> str | None:
        """The refresh token; None if there is none."""
        return self._tokens.refresh if self._tokens else None

    def changed_password(self, answer: object, password: str) -> None:
        """Use the tokens of the answer to a change of the password, and the new password from now on."""
        if self._settings.password is not None:
            self._settings = replace(self._settings, password=password)
        if isinstance(answer, dict) and answer.get("token"):
            self._tokens = self._read(answer)
            self._store(self._tokens)

    def forget(self) -> None:
        """Forget the tokens, also those of the profile."""
        self._tokens = None
        self._settings = replace(self._settings, token=None)
        self._store(Tokens(""))

    def _first(self) -> Tokens | None:
        profile = self._settings.profile
        if credential := self._settings.key or self._settings.token:
            return Tokens(credential)
        if profile is not None and profile.token:
            renew_at = None if profile.expires_at is None else profile.expires_at - SAFETY_SECONDS
            return Tokens(profile.token, renew_at, profile.refresh_token)
        return None if profile is None or not profile.refresh_token else Tokens("", 0.0, profile.refresh_token)

    def _can_renew(self, tokens: Tokens | None) -> bool:
        settings = self._settings
        if settings.auth:
            return True
        return bool(not settings.key and ((settings.username and settings.password is not None) or (tokens and tokens.refresh)))

    async def _renewed(self, tokens: Tokens | None) -> Tokens:
        if self._roles is not None:
            return self._of_role(await asyncio.to_thread(self._roles.fetch))
        if tokens is not None and tokens.refresh:
            found = await self._refreshed(tokens)
        else:
            found = await self._signed_in()
        self._store(found)
        return found

    def _of_role(self, token: aws_identity.RoleToken) -> Tokens:
        return Tokens(token.text, self._renewal(token.expires_at - self._now()), role=token)

    def _renewal(self, lasts: float) -> float:
        """Return the instant from which a token that lasts for some seconds is renewed."""
        return self._now() + max(lasts - SAFETY_SECONDS, lasts * 0.9 if lasts < 2 * SAFETY_SECONDS else 0)

    async def _refreshed(self, tokens: Tokens) -> Tokens:
        """Use the refresh token; if the API refuses it, sign in with the password, if there is one."""
        try:
            answer = await self._call("POST", f"{self._settings.url}/api/v1/auth/refresh", json={"refresh_token": tokens.refresh})
            return self._read(answer, tokens.refresh)
        except NotAuthenticated as error:
            if self._settings.username and self._settings.password is not None:
                return await self._signed_in()
            raise NotAuthenticated(401, "session_ended", "the session has ended: sign in again with `punctual login`") from error

    async def _signed_in(self) -> Tokens:
        body = {"username": self._settings.username, "password": self._settings.password}
        return self._read(await self._call("POST", f"{self._settings.url}/api/v1/auth/login", json=body))

    def _read(self, answer: object, refresh: str | None = None) -> Tokens:
        """Return the tokens of an answer."""
        data = answer.get("data", answer) if isinstance(answer, dict) else None
        if not isinstance(data, dict) or not data.get("token"):
            raise UnexpectedAnswer("the answer to the sign-in has no token: is the address right?")
        try:
            lasts = float(data.get("expires_in") or 0) or None
        except (TypeError, ValueError, OverflowError) as error:
            raise UnexpectedAnswer("the answer to the sign-in has an `expires_in` that is no number") from error
        renew_at = None if lasts is None else self._renewal(lasts)
        access = str(data["token"])
        if not TOKEN.fullmatch(access):
            raise UnexpectedAnswer("the answer to the sign-in has a token that no header can have: is the address right?")
        return Tokens(access, renew_at, data.get("refresh_token") or refresh)

    def _store(self, tokens: Tokens) -> None:
        """Write renewed tokens into the profile that they come from."""
        profile = self._settings.profile
        if profile is None:
            return
        expires_at = None if tokens.renew_at is None else tokens.renew_at + SAFETY_SECONDS
        profiles.renew(replace(profile, token=tokens.access or None, refresh_token=tokens.refresh, expires_at=expires_at))
