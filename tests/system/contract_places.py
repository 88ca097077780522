"""Where the contract suite of the client runs: on a stage in memory, or on the deployed stack."""

import asyncio
import inspect
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import httpx
from punctual import AsyncPunctual, Punctual, Worker
from punctual.testing import Call, Memory

from local import receiver
from local.stack import BUSY_S
from tests.system.conftest import System, until

Use = Callable[[Any], Any]


class Place:
    """A stage, and a client of one kind (`sync` or `async`) for each user. `name` makes names that only this place has."""

    def __init__(self, flavor: str) -> None:
        self.flavor, self.closing = flavor, ExitStack()
        self.loop = self.closing.enter_context(asyncio.Runner())
        self._mark = secrets.token_hex(4)

    def name(self, text: str) -> str:
        return f"{text}-{self._mark}"

    def do(self, use: Use) -> Any:
        """Use the client of an administrator. Returns the result; of an iterator, all its entries."""
        return self.run(self._client(), use)

    def run(self, client: Any, use: Use) -> Any:
        return self.loop.run(_awaited(client, use)) if isinstance(client, AsyncPunctual) else _listed(use(client))

    def _client(self) -> Any:
        raise NotImplementedError

    def signed_in(self, username: str, password: str) -> Any:
        """Return a client that signs in with a password."""
        raise NotImplementedError

    def with_key(self, key: str) -> Any:
        """Return a client with an API key."""
        raise NotImplementedError

    def url(self, path: str) -> str:
        raise NotImplementedError

    def called(self, path: str) -> Mapping[str, str]:
        """Wait for the first call of this path. Returns its headers."""
        raise NotImplementedError

    def until(self, look: Callable[[], Any]) -> Any:
        """Let time pass until `look` returns a true value, and return that."""
        raise NotImplementedError

    def worker(self, headers: Mapping[str, str]) -> Worker:
        raise NotImplementedError


class InMemory(Place):
    def __init__(self, flavor: str) -> None:
        super().__init__(flavor)
        self.memory = self.closing.enter_context(Memory(answer=self._answer))
        self.requests: list[tuple[str, str]] = []
        request = self.memory._stage.request

        def noted(method: str, path: str, *rest: Any) -> Any:
            self.requests.append((method, path))
            return request(method, path, *rest)

        self.memory._stage.request = noted  # type: ignore[method-assign, assignment]

    def _answer(self, call: Call) -> int:
        return receiver.answer(call.path, len(self.memory.calls_to(call.path)) - 1)

    def _client(self) -> Any:
        return self.memory.client if self.flavor == "sync" else self.memory.async_client

    def signed_in(self, username: str, password: str) -> Any:
        made = Punctual if self.flavor == "sync" else AsyncPunctual
        return made(self.memory.url, username=username, password=password, transport=self.memory.transport)

    def with_key(self, key: str) -> Any:
        made = Punctual if self.flavor == "sync" else AsyncPunctual
        return made(self.memory.url, key=key, transport=self.memory.transport)

    def url(self, path: str) -> str:
        return f"https://receiver.example.com{path}"

    def called(self, path: str) -> Mapping[str, str]:
        self.until(lambda: self.memory.calls_to(path))
        return self.memory.calls_to(path)[0].headers

    def until(self, look: Callable[[], Any]) -> Any:
        for _ in range(600):
            if found := look():
                return found
            self.memory.clock.advance("1s")
        raise AssertionError("not within ten minutes")

    def worker(self, headers: Mapping[str, str]) -> Worker:
        return self.memory.worker(headers)


class OnStack(Place):
    """As an administrator of its own: other tests have jobs and dead letters of theirs."""

    def __init__(self, flavor: str, system: System) -> None:
        super().__init__(flavor)
        self.system = system
        name, password = self.name("contract"), f"{secrets.token_urlsafe(15)}-aA1"
        with system.client() as first:
            first.users.create(name, password, role="administrator")
        self.own = self.signed_in(name, password)

    def _client(self) -> Any:
        return self.own

    def signed_in(self, username: str, password: str) -> Any:
        if self.flavor == "sync":
            return self.closing.enter_context(Punctual(self.system.address, username=username, password=password, timeout=BUSY_S))
        client = AsyncPunctual(self.system.address, username=username, password=password, timeout=BUSY_S)
        self.closing.callback(lambda: self.loop.run(client.close()))
        return client

    def with_key(self, key: str) -> Any:
        if self.flavor == "sync":
            return self.closing.enter_context(Punctual(self.system.address, key=key, timeout=BUSY_S))
        client = AsyncPunctual(self.system.address, key=key, timeout=BUSY_S)
        self.closing.callback(lambda: self.loop.run(client.close()))
        return client

    def url(self, path: str) -> str:
        return self.system.receiver.url(path)

    def called(self, path: str) -> Mapping[str, str]:
        until(60, lambda: self.system.receiver.calls(path))
        return self.system.receiver.calls(path)[0].headers

    def until(self, look: Callable[[], Any]) -> Any:
        end = time.monotonic() + 120
        while not (found := look()):
            assert time.monotonic() < end, "not within two minutes"
            time.sleep(0.5)
        return found

    def worker(self, headers: Mapping[str, str]) -> Worker:
        return Worker.from_headers(headers)


def operation_of(method: str, path: str, operations: Mapping[str, Any]) -> str | None:
    """Return the name of the operation that a request is; a path without parameters first."""
    found = [name for name, (verb, template, _) in operations.items() if verb == method and _is(template, path)]
    return min(found, key=lambda name: operations[name][1].count("{"), default=None)


def _is(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), httpx.URL(path).path) is not None


def _listed(result: Any) -> Any:
    return list(result) if isinstance(result, Iterator) else result


async def _awaited(client: Any, use: Use) -> Any:
    result = use(client)
    if inspect.isawaitable(result):
        return await result
    return [one async for one in result] if isinstance(result, AsyncIterator) else result
