"""The client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import httpx

from punctual._async.resources import (
    AsyncCalendars,
    AsyncDeadLetters,
    AsyncGroups,
    AsyncIntake,
    AsyncJobs,
    AsyncKeys,
    AsyncMonitors,
    AsyncOperations,
    AsyncOrderingKeys,
    AsyncPrincipals,
    AsyncReceivers,
    AsyncSchedules,
    AsyncSystem,
    AsyncTargets,
    AsyncTasks,
    AsyncTeams,
    AsyncUsers,
)
from punctual._async.session import Tokens
from punctual._async.transport import AsyncClock, AsyncTransport
from punctual.bodies import segment
from punctual.records import (
    AuditEntry,
    AwsAction,
    DescribedAwsAction,
    Forecast,
    Health,
    Me,
    Scope,
    Statistics,
    StatusReport,
    TaskType,
    Version,
)
from punctual.settings import Settings, settings

if TYPE_CHECKING:
    from typing_extensions import Self

TIMEOUT_SECONDS = 60.0
MAX_RETRIES = 5


class AsyncPunctual:
    """A client of one stage. Tasks of one event loop may share it; close it, or use it as a context manager.

    `url` is the address of the API, with or without `/api/v1`. Credentials are an API key (`key`), or a `token`, or `username` and
    `password`, or with `auth="aws"` the AWS role of this program, which has no secret and needs the extra `aws`. Omitted ones come from
    the environment (`PUNCTUAL_URL`, `PUNCTUAL_KEY`, `PUNCTUAL_TOKEN`, `PUNCTUAL_USERNAME`, `PUNCTUAL_PASSWORD`, `PUNCTUAL_AUTH`), then
    from the current profile of `punctual login`; `profile` names another one.

    `owner` is the id of a team, or of another owner, whose objects the calls are about; a call names another one with its own `owner`.
    Without it, it comes from `PUNCTUAL_OWNER` or the profile. None: the person who is signed in, or the owner of the API key.

    `timeout` is the time in seconds that a call may take with all its repeats, however slowly the answer arrives; a sign-in that it
    needs has the same time. `max_retries` is the most repeats. A call is repeated after
    429, 502, 503, 504 and broken connections if a repeat is safe. `transport` replaces the network, such as `httpx.MockTransport`.

    Raises NotConfigured without an address, and for an API key that can be none. Calls raise NotAuthenticated without valid credentials.
    """

    def __init__(
        self,
        url: str = "",
        *,
        key: str | None = None,
        token: str | None = None,
        username: str | None = None,
        password: str | None = None,
        auth: Literal["aws"] | None = None,
        owner: str | None = None,
        profile: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        max_retries: int = MAX_RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: AsyncClock | None = None,
    ) -> None:
        explicit = Settings(url, key, token, username, password, auth, owner)
        self._api = AsyncTransport(settings(explicit, profile), timeout=timeout, max_retries=max_retries, transport=transport, clock=clock)
        self.jobs = AsyncJobs(self._api)
        self.groups = AsyncGroups(self._api)
        self.tasks = AsyncTasks(self._api)
        self.monitors = AsyncMonitors(self._api)
        self.schedules = AsyncSchedules(self._api)
        self.calendars = AsyncCalendars(self._api)
        self.dead_letters = AsyncDeadLetters(self._api)
        self.operations = AsyncOperations(self._api)
        self.targets = AsyncTargets(self._api)
        self.receivers = AsyncReceivers(self._api)
        self.users = AsyncUsers(self._api)
        self.teams = AsyncTeams(self._api)
        self.keys = AsyncKeys(self._api)
        self.principals = AsyncPrincipals(self._api)
        self.intake = AsyncIntake(self._api)
        self.ordering_keys = AsyncOrderingKeys(self._api)
        self.system = AsyncSystem(self._api)

    @property
    def url(self) -> str:
        """The address of the API, without `/api/v1`."""
        return self._api.base

    @property
    def owner(self) -> str | None:
        """The id of the owner whose objects the calls are about that name none; None: the account itself."""
        return self._api.owner

    @owner.setter
    def owner(self, id: str | None) -> None:
        self._api.owner = id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def me(self) -> Me:
        """Return the caller: a person, an API key or an AWS role."""
        return Me.from_json(await self._api.request("GET", "/me"))

    async def health(self) -> Health:
        """Return the state of the API and, with credentials, the lag of the scheduler."""
        return Health.from_json(await self._api.request("GET", "/health"))

    async def status(self, *, scope: Scope | None = None, owner: str | None = None) -> StatusReport:
        """Return what is wrong now, each problem with what mends it: of one owner (`own`), or of all (`all`, for operators).

        Raises NotAllowed.
        """
        return StatusReport.from_json(await self._api.request("GET", "/status", query=_scoped(scope, owner)))

    async def version(self) -> Version:
        """Return the versions of the scheduler and of its API."""
        return Version.from_json(await self._api.request("GET", "/version"))

    def types(self) -> AsyncIterator[TaskType]:
        """Yield the types of jobs and the named targets, each with the JSON Schema of its payload."""
        return self._api.pages("/types", {}, TaskType, None)

    def aws_actions(self, *, scope: Scope | None = None, owner: str | None = None) -> AsyncIterator[AwsAction]:
        """Yield the operations of AWS that jobs of the type `aws` may call: of one owner (`own`), or of any (`all`, for operators)."""
        return self._api.pages("/types/aws/actions", _scoped(scope, owner), AwsAction, None)

    async def aws_action(self, service: str, action: str, *, scope: Scope | None = None, owner: str | None = None) -> DescribedAwsAction:
        """Return an operation of AWS with its parameters, such as `aws_action("s3", "CopyObject")`.

        Raises NotFound if jobs may not call it.
        """
        path = f"/types/aws/actions/{segment(service)}/{segment(action)}"
        return DescribedAwsAction.from_json(await self._api.request("GET", path, query=_scoped(scope, owner)))

    async def forecast(self, *, scope: Scope | None = None, owner: str | None = None) -> Forecast:
        """Return what starts in each minute of the next three hours. `scope` is `own` or, for administrators, `all`."""
        return Forecast.from_json(await self._api.request("GET", "/forecast", query=_scoped(scope, owner)))

    async def statistics(self, *, scope: Scope | None = None, days: int | None = None, owner: str | None = None) -> Statistics:
        """Return how jobs of each type ended and how long they took. With `days` (up to 90), day by day; else of a year."""
        return Statistics.from_json(await self._api.request("GET", "/statistics", query={**_scoped(scope, owner), "days": days}))

    def audit(
        self,
        *,
        everyone: bool = False,
        action: str | None = None,
        object: str | None = None,
        actor: str | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        owner: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[AuditEntry]:
        """Yield what was changed of one's own, or with `everyone` (operators) of all users. `action` may be a beginning: `task`."""
        query = {"action": action, "object": object, "actor": actor, "from": from_, "to": to, **({} if everyone else {"owner": owner})}
        return self._api.pages("/audit" if everyone else "/me/audit", query, AuditEntry, limit)

    async def change_password(self, current: str, new: str) -> None:
        """Change the password of the signed-in user. All other sessions end within 30 seconds; this client continues."""
        data = await self._api.request("POST", "/auth/password", {"current_password": current, "new_password": new})
        self._api.changed_password(data, new)

    async def logout(self, *, everywhere: bool = True) -> None:
        """End all sessions of the signed-in user, or with `everywhere=False` only the one of this client."""
        await self._api.logout(everywhere)

    async def token(self) -> str | None:
        """Sign in if that is necessary, and return a valid access token, such as for curl; None without one, also with an API key.

        Raises NotAuthenticated if the sign-in fails, NoAnswer.
        """
        return await self._api.token()

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        idempotent: bool | None = None,
    ) -> Any:
        """Send any request and return the `data` of the answer. `path` is without `/api/v1`, such as `/jobs`.

        `idempotent` says whether it may be repeated after a lost answer. By default GET, PUT and DELETE may, and requests with an
        `Idempotency-Key` among their headers. An `owner` of None in the query stands for the owner of this client; without `owner` it is
        the account itself. Raises the errors of this package.
        """
        return await self._api.request(method, path, body, query, headers=headers, idempotent=idempotent)

    async def send(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send bytes as they are, once, and return the answer, also of an error. Raises NoAnswer only."""
        return await self._api.send(method, path, content, query, headers)


def _scoped(scope: Scope | None, owner: str | None) -> dict[str, Any]:
    """Return the query for a scope. That of all owners is not about the owner of the client."""
    return {"scope": scope} if scope == "all" and owner is None else {"scope": scope, "owner": owner}


__all__ = ["AsyncPunctual", "Tokens"]
