"""Idempotency keys: the receipt of a request with the header `Idempotency-Key`."""

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lambdas.rest import request_body
from scheduler.model import ids
from scheduler.model.errors import Invalid
from scheduler.model.job import Receipt
from scheduler.storage.ports import Receipts

HEADER = "Idempotency-Key"
REPLAYED = {"Idempotency-Replayed": "true"}  # the header of a repeated answer
KEY = r"[ -~]{1,255}"
RULE = "must be 1 to 255 printable ASCII characters"

T = TypeVar("T")
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def of_request(event: Mapping[str, Any], owner: str, now: int) -> Receipt | None:
    """The receipt of a request of `owner` at `now` (an API Gateway event, format 2.0); None without a key. Raises Invalid for a bad key."""
    key = header(event)
    if key is None:
        return None
    return make(owner, key, now, event["requestContext"]["http"]["method"], event["rawPath"], request_body.read(event))


def of_put(event: Mapping[str, Any]) -> str | None:
    """The hash of a put with its idempotency key, which only its repeat has, too; None without a key. Raises Invalid for a bad key."""
    key = header(event)
    if key is None:
        return None
    return hashlib.sha256(f"{key}\n{_canonical(request_body.read(event))}".encode()).hexdigest()[:24]


def header(event: Mapping[str, Any]) -> str | None:
    """The idempotency key of the whole request; None without one. Raises Invalid for a bad key."""
    key = next((value for name, value in event.get("headers", {}).items() if name.lower() == HEADER.lower()), None)
    if key is not None and not is_key(key):
        raise Invalid.field(HEADER, RULE)
    return key


def is_key(text: str) -> bool:
    return re.fullmatch(KEY, text) is not None


def make(owner: str, key: str, now: int, method: str, path: str, body: Any, random: int | None = None) -> Receipt:
    """The receipt of a request. Requests are the same if method, path and body are equal, however their JSON is formatted.

    `random` becomes part of the id of the object that the request creates; None: drawn here.
    """
    fingerprint = hashlib.sha256(f"{method} {path}\n{_canonical(body)}".encode()).hexdigest()
    return Receipt(owner, key, fingerprint, now, secrets.randbits(ids.RANDOM_BITS) if random is None else random)


def judged(ask: Callable[[int], T], receipt: Receipt | None, now: int, receipts: Receipts) -> T:
    """Validate the request as of `now` by `ask` or, if that raises Invalid, as of the instant of an earlier identical request.

    A repeated request is therefore accepted again, even if its instants are in the past by then.
    """
    try:
        return ask(now)
    except Invalid:
        earlier = None if receipt is None else receipts.find(receipt.owner, receipt.key, now)
        if receipt is None or earlier is None or earlier.fingerprint != receipt.fingerprint:
            raise
        return ask(earlier.at)
