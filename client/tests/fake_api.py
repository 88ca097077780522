"""Both clients with an API of a few lines, and a clock that tests set."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx

from punctual import AsyncPunctual, Punctual
from punctual._async.transport import AsyncClock
from punctual._sync.transport import Clock

Handler = Callable[[httpx.Request], httpx.Response]
URL = "https://api.example.com"
SECRET = "S3cret" * 7 + "x"
KEY = f"punctual_{'k2' * 8}_{SECRET}_0123abcd"
TEAM = f"team-{'b3' * 10}"


class Times:
    """A clock that only `sleep` moves; `slept` has each pause in seconds."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0
        self.slept: list[float] = []

    def pass_(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


class SyncClock(Clock):
    def __init__(self, times: Times) -> None:
        self._times = times

    def now(self) -> float:
        return self._times.at

    def monotonic(self) -> float:
        return self._times.at

    def sleep(self, seconds: float) -> None:
        self._times.pass_(seconds)


class SetClock(AsyncClock):
    def __init__(self, times: Times) -> None:
        self._times = times

    def now(self) -> float:
        return self._times.at

    def monotonic(self) -> float:
        return self._times.at

    async def sleep(self, seconds: float) -> None:
        self._times.pass_(seconds)


class Flavor:
    """One of the two clients. `run` makes a call and returns its result; of an iterator, all entries as a list."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.times = Times()

    def run(self, handler: Handler, call: Callable[[Any], Any], **options: Any) -> Any:
        if "url" not in options and "profile" not in options:
            options["url"] = URL
        if not options.keys() & {"token", "key", "username", "auth", "profile", "anonymous"}:
            options["token"] = "t0k3n"
        options.pop("anonymous", None)
        if self.kind == "sync":
            with Punctual(**options, transport=httpx.MockTransport(handler), clock=SyncClock(self.times)) as client:
                result = call(client)
                return list(result) if isinstance(result, Iterator) else result
        return asyncio.run(self._run(handler, call, options))

    async def _run(self, handler: Handler, call: Callable[[Any], Any], options: dict[str, Any]) -> Any:
        async with AsyncPunctual(**options, transport=httpx.MockTransport(handler), clock=SetClock(self.times)) as client:
            result = call(client)
            if inspect.isawaitable(result):
                return await result
            return [one async for one in result] if isinstance(result, AsyncIterator) else result


def answer(data: Any = None, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"success": True, "data": data}, headers=headers)


def refusal(
    status: int, code: str = "refused", message: str = "no", details: list[dict[str, str]] | None = None, **headers: str
) -> httpx.Response:
    error = {"code": code, "message": message, "details": details or [], "request_id": "r-1"}
    return httpx.Response(status, json={"success": False, "error": error}, headers={k.replace("_", "-"): v for k, v in headers.items()})


JOB: dict[str, Any] = {
    "id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "type": "http",
    "status": "scheduled",
    "lane": "one-time",
    "payload": {"method": "POST", "url": "https://example.com"},
    "created_at": "2026-11-20T09:00:00.000Z",
    "scheduled_at": "2026-11-20T10:00:00.000Z",
    "due_at": "2026-11-20T10:00:00.000Z",
    "max_attempts": 3,
    "timeout_seconds": 300,
    "retry": {"base_seconds": 1, "cap_seconds": 900, "jitter": "full", "on_timeout": True, "max_elapsed_seconds": None},
}
