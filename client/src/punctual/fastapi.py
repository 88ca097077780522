"""FastAPI: routes that Punctual calls.

    router = APIRouter(route_class=route_class(receiver))

    @router.post("/orders/expire")
    def expire(order: Order, call: PunctualCall) -> dict[str, str]: ...

It needs `pip install fastapi`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

import anyio
from anyio.to_thread import run_sync
from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from punctual.receivers import Answer, Call, CallReceiver, Permanent, Retry
from punctual.receivers.answers import error_answer
from punctual.receivers.once import Claim

__all__ = ["PunctualCall", "route_class"]

T = TypeVar("T")


async def _current(request: Request) -> Call:
    call = getattr(request.state, "punctual_call", None)
    if not isinstance(call, Call):
        raise RuntimeError("a route with a PunctualCall needs APIRouter(route_class=route_class(receiver))")
    return call


PunctualCall = Annotated[Call, Depends(_current)]
"""The type of a parameter that gets the call."""


def route_class(receiver: CallReceiver) -> type[APIRoute]:
    """Return the class of routes that are called by Punctual alone: `APIRouter(route_class=route_class(receiver))`.

    The route verifies the body as it arrived, before FastAPI reads it. It then runs with its parameters and dependencies as usual, unless
    it has answered the call before. A dependency with `yield` ends before the success is remembered if it has `scope="function"`; any
    other ends after the answer is sent, so commit in the route.
    """

    class PunctualRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()

            async def received(request: Request) -> Response:
                body = await request.body()
                call = await _in_thread(lambda: receiver.verify(request.headers, body))
                if isinstance(call, Answer):
                    return _response(call)
                claim = receiver.once.claim(call)
                if (known := await _in_thread(claim.take)) is not None:
                    return _response(known)
                request.state.punctual_call, request.state.punctual_claim = call, claim
                try:
                    return _Finishing(await handler(request), claim)
                except BaseException:
                    await _in_thread(claim.release)
                    raise

            return received

        async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await super().handle(scope, receive, send)
            except (Retry, Permanent) as error:
                await _response(error_answer(error))(scope, receive, send)
            finally:  # a dependency failed after the route had returned
                if (claim := getattr(Request(scope).state, "punctual_claim", None)) is not None:
                    await _in_thread(claim.release)

    return PunctualRoute


class _Finishing(Response):
    """The response of a route. FastAPI sends it after the dependencies of the route have ended; it is remembered just before."""

    def __init__(self, response: Response, claim: Claim) -> None:
        self._response, self._claim = response, claim

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = getattr(self._response, "body", b"")  # a response that streams has none
        answer = Answer(self._response.status_code, bytes(body), self._response.headers.get("content-type", ""))
        await _in_thread(lambda: self._claim.finish(answer))
        await self._response(scope, receive, send)


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, answer.all_headers())


async def _in_thread(function: Callable[[], T]) -> T:
    """Run what may wait in a thread. Its end is awaited also if the task is cancelled."""
    found: list[T] = []
    with anyio.CancelScope(shield=True):
        found.append(await run_sync(function))
    return found[0]
