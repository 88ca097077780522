"""Flask: views that Punctual calls.

    @app.post("/orders/<order_id>/expire")
    @receives(receiver)
    def expire(call: Call, order_id: str) -> dict[str, str]: ...

It needs `pip install flask`.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec

from flask import Response, current_app, request
from flask.typing import ResponseReturnValue

from punctual.receivers import Answer, Call, CallReceiver

__all__ = ["receives"]

P = ParamSpec("P")
Returned = ResponseReturnValue | Awaitable[ResponseReturnValue]


def receives(receiver: CallReceiver) -> Callable[[Callable[Concatenate[Call, P], Returned]], Callable[P, Response]]:
    """Return a decorator of views that are called by Punctual alone. It belongs below that of the route.

    The view takes the call and then the values of its URL, and returns what any view returns; it may be a coroutine function. It runs
    unless it has answered the call before. Functions of `teardown_request` run after the answer is remembered: commit in the view.
    """

    def decorate(view: Callable[Concatenate[Call, P], Returned]) -> Callable[P, Response]:
        @functools.wraps(view)
        def received(*args: P.args, **kwargs: P.kwargs) -> Response:
            def run(call: Call) -> Response:
                return current_app.make_response(current_app.ensure_sync(view)(call, *args, **kwargs))

            verified = receiver.verify(dict(request.headers), request.get_data())
            return _response(verified) if isinstance(verified, Answer) else receiver.once.run(verified, run, _answer, _response)

        return received

    return decorate


def _answer(response: Response) -> Answer:
    body = b"" if response.is_streamed else response.get_data()
    return Answer(response.status_code, body, response.headers.get("Content-Type", ""))


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, answer.all_headers())
