"""Django: views that Punctual calls.

    @require_POST
    @receives(receiver)
    def expire(request: HttpRequest, call: Call, order_id: str) -> HttpResponse: ...

It needs `pip install django`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.views.decorators.csrf import csrf_exempt

from punctual.receivers import Answer, Call, CallReceiver

__all__ = ["receives"]

P = ParamSpec("P")
T = TypeVar("T")


class Decorator(Protocol):
    """Takes a view or an asynchronous view, and returns one that Punctual calls."""

    @overload
    def __call__(
        self, view: Callable[Concatenate[HttpRequest, Call, P], Awaitable[HttpResponseBase]]
    ) -> Callable[Concatenate[HttpRequest, P], Awaitable[HttpResponseBase]]: ...

    @overload
    def __call__(
        self, view: Callable[Concatenate[HttpRequest, Call, P], HttpResponseBase]
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]: ...


def receives(receiver: CallReceiver) -> Decorator:
    """Return a decorator of views that are called by Punctual alone. They need no CSRF token. It belongs below other decorators.

    The view takes the request, the call, and the values of its URL; it may be asynchronous. It runs unless it has answered the call
    before. With ATOMIC_REQUESTS its transaction is committed before the answer is remembered.
    """

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(view):
            return csrf_exempt(_received_async(receiver, view))
        received: Callable[..., Any] = _received(receiver, view)
        for alias in connections:  # the transaction of ATOMIC_REQUESTS is begun inside
            received = transaction.non_atomic_requests(using=alias)(received)
        return csrf_exempt(received)

    return cast(Decorator, decorate)


def _received(receiver: CallReceiver, view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    @functools.wraps(view)
    def received(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        def run(call: Call) -> HttpResponseBase:
            atomic = view
            for alias in connections:
                if connections.settings[alias]["ATOMIC_REQUESTS"]:
                    atomic = transaction.atomic(using=alias)(atomic)
            return _rendered(atomic(request, call, *args, **kwargs))

        call = receiver.verify(_headers(request), request.body)
        return _response(call) if isinstance(call, Answer) else receiver.once.run(call, run, _answer, _response)

    return received


def _received_async(receiver: CallReceiver, view: Callable[..., Awaitable[HttpResponseBase]]) -> Callable[..., Awaitable[HttpResponseBase]]:
    @functools.wraps(view)
    async def received(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        async def run(call: Call) -> HttpResponseBase:
            return _rendered(await view(request, call, *args, **kwargs))

        call = await _in_thread(lambda: receiver.verify(_headers(request), request.body))
        return _response(call) if isinstance(call, Answer) else await receiver.once.run_async(call, run, _answer, _response, _in_thread)

    return received


def _headers(request: HttpRequest) -> Mapping[str, str]:
    return dict(request.headers.items())


def _rendered(response: HttpResponseBase) -> HttpResponseBase:
    return response.render() if isinstance(response, SimpleTemplateResponse) and not response.is_rendered else response


def _answer(response: HttpResponseBase) -> Answer:
    body = response.content if isinstance(response, HttpResponse) else b""  # a response that streams has no content
    return Answer(response.status_code, body, response.headers.get("Content-Type", ""))


def _response(answer: Answer) -> HttpResponseBase:
    return HttpResponse(answer.body, status=answer.status, headers=answer.all_headers())


async def _in_thread(function: Callable[[], T]) -> T:
    return await sync_to_async(function)()
