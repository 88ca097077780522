"""Idempotency keys: the receipt of a request that came with the header `Idempotency-Key`."""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

from lambdas import _body
from scheduler import ids
from scheduler.errors import Invalid
from scheduler.model import Receipt

HEADER = "Idempotency-Key"
REPLAYED = {"Idempotency-Replayed": "true"}  # the header of an answer that was given before
RULE = "must be 1 to 255 printable ASCII characters"

_KEY = re.compile(r"[ -~]{1,255}")
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def of_request(event: Mapping[str, Any], owner: str, now: int) -> Receipt | None:
    """The receipt of an API Gateway event (format 2.0) asked by `owner` at `now`; None if it has no key. Raises Invalid for a bad one."""
    key = header(event)
    if key is None:
        return None
    return make(owner, key, now, event["requestContext"]["http"]["method"], event["rawPath"], _body.read(event))


def header(event: Mapping[str, Any]) -> str | None:
    """The key of the whole request. Raises Invalid for a bad one."""
    key = next((value for name, value in event.get("headers", {}).items() if name.lower() == HEADER.lower()), None)
    return None if key is None else checked(key, HEADER)


def checked(key: object, field: str) -> str:
    """The key, if it is a good one. Raises Invalid naming `field`."""
    if not isinstance(key, str) or _KEY.fullmatch(key) is None:
        raise Invalid.field(field, RULE)
    return key


def make(owner: str, key: str, now: int, method: str, path: str, body: Any) -> Receipt:
    """The receipt of what `owner` asks under the key: it is the same request if method, path and body are, however its JSON is laid out."""
    fingerprint = hashlib.sha256(f"{method} {path}\n{_canonical(body)}".encode()).hexdigest()
    return Receipt(owner, key, fingerprint, now, secrets.randbits(ids.RANDOM_BITS))
