"""AWS Lambda: functions that Punctual calls, by their URL or as the target of a job of type `lambda`.

@receives(receiver)
def by_url(call: Call, context: object) -> dict[str, str]: ...

@receives_event(store)
def by_event(call: Call, context: object) -> dict[str, str]: ...
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from punctual.receivers import Answer, Call, CallReceiver, StillRunning, Store
from punctual.receivers.answers import JSON
from punctual.receivers.once import KEEP_SECONDS, LEASE_SECONDS, Once

__all__ = ["receives", "receives_event"]

C = TypeVar("C")
MARGIN_SECONDS = 2.0  # between the end of an invocation and that of its claim: whole seconds in the store, and two clocks


def receives(receiver: CallReceiver) -> Callable[[Callable[[Call, C], Any]], Callable[[Mapping[str, Any], C], dict[str, Any]]]:
    """Return a decorator of handlers behind a function URL, API Gateway (payload 1.0 or 2.0) or a load balancer.

    The handler takes the call and the context of Lambda. It returns anything that JSON can hold for 200, an `Answer`, or a dictionary with
    `statusCode` for a whole response. It runs unless it has answered the call before. A claim ends with the invocation that took it.
    """

    def decorate(handler: Callable[[Call, C], Any]) -> Callable[[Mapping[str, Any], C], dict[str, Any]]:
        @functools.wraps(handler)
        def received(event: Mapping[str, Any], context: C) -> dict[str, Any]:
            call = receiver.verify(_headers(event), _body(event))
            if isinstance(call, Answer):
                return _response(call, event)
            once = _within(context, receiver.once)
            return _response(once.run(call, lambda each: _answer(handler(each, context)), _same, _same), event)

        return received

    return decorate


def receives_event(
    store: Store | None, *, lease: float = LEASE_SECONDS, keep: float = KEEP_SECONDS
) -> Callable[[Callable[[Call, C], Any]], Callable[[Mapping[str, Any], C], Any]]:
    """Return a decorator of handlers that jobs of type `lambda` call. IAM protects the function; the event has no signature.

    The handler returns anything that JSON can hold: the output of the job. A success is remembered for `keep` seconds, and returned for a
    repeated event. Punctual repeats the call after any exception, Permanent included. A second delivery that arrives while the first one
    runs raises StillRunning. Raises InvalidArgument for an event of another sender.
    """
    once = Once(store, lease, keep)

    def decorate(handler: Callable[[Call, C], Any]) -> Callable[[Mapping[str, Any], C], Any]:
        @functools.wraps(handler)
        def received(event: Mapping[str, Any], context: C) -> Any:
            errors: list[Exception] = []

            def run(call: Call) -> Answer:
                try:
                    return _as_json(handler(call, context))
                except Exception as error:
                    errors.append(error)
                    raise

            answer = _within(context, once).run(Call.from_event(event), run, _same, _same)
            if errors:
                raise errors[0]
            if not answer.is_success:
                raise StillRunning("an earlier delivery of this event still runs")
            return json.loads(answer.body or b"null")

        return received

    return decorate


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    several = event.get("multiValueHeaders") or {}
    return {name: ",".join(values) for name, values in several.items()} | dict(event.get("headers") or {})


def _body(event: Mapping[str, Any]) -> bytes:
    body = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else str(body).encode()


def _within(context: object, once: Once) -> Once:
    """Return the same with the lease of an invocation: nothing of it runs longer than the time that it has left."""
    left = getattr(context, "get_remaining_time_in_millis", None)
    return once if left is None else replace(once, lease=min(max(left(), 0) / 1_000 + MARGIN_SECONDS, once.keep))


def _same(answer: Answer) -> Answer:
    return answer


def _as_json(result: Any) -> Answer:
    return Answer(body=b"" if result is None else json.dumps(result, ensure_ascii=False).encode())


def _answer(result: Any) -> Answer:
    if isinstance(result, Answer):
        return result
    if not (isinstance(result, Mapping) and "statusCode" in result):
        return _as_json(result)
    headers = {str(name): str(value) for name, value in (result.get("headers") or {}).items()}
    content_type = next((headers.pop(name) for name in list(headers) if name.lower() == "content-type"), JSON)
    return Answer(int(result["statusCode"]), _body(result), content_type, headers)


def _response(answer: Answer, event: Mapping[str, Any]) -> dict[str, Any]:
    headers = answer.all_headers()
    try:
        body = {"body": answer.body.decode(), "isBase64Encoded": False}
    except UnicodeDecodeError:
        body = {"body": base64.b64encode(answer.body).decode(), "isBase64Encoded": True}
    if event.get("headers") is None and event.get("multiValueHeaders"):  # a load balancer with this attribute reads no others
        return {"statusCode": answer.status, "multiValueHeaders": {name: [value] for name, value in headers.items()}, **body}
    return {"statusCode": answer.status, "headers": headers, **body}
