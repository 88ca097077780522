"""Checks the signature of a request that a job or a notification sent (Standard Webhooks, https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping

from punctual.errors import InvalidSignature

TOLERANCE_SECONDS = 300.0


def verify_signature(
    headers: Mapping[str, str],
    body: bytes | str,
    secret: str,
    *,
    tolerance: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> None:
    """Return if the request was signed with the secret at most `tolerance` seconds ago. Raises InvalidSignature otherwise.

    `headers` are those of the request, in any case; `body` is its body as it arrived. `secret` is `whsec_` and base64, or any other
    text. `now` is the time in epoch seconds. Answer an invalid request with 401 and do nothing else.

    The signature does not protect against a repeated request: remember the header `webhook-id`.
    """
    found = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in ("webhook-id", "webhook-timestamp", "webhook-signature") if not found.get(name)]
    if missing:
        raise InvalidSignature(f"the request is not signed: it has no header {missing[0]}")
    stamp = found["webhook-timestamp"]
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 16):
        raise InvalidSignature("the header webhook-timestamp is no number of seconds")
    age = (time.time() if now is None else now) - int(stamp)
    if abs(age) > tolerance:
        raise InvalidSignature(f"the signature is {abs(age):.0f} s {'old' if age > 0 else 'ahead'}; {tolerance:.0f} s are allowed")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{found['webhook-id']}.{stamp}.".encode() + content
    wanted = b"v1," + base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest())
    if not any(hmac.compare_digest(wanted, one.encode()) for one in found["webhook-signature"].split(" ")):
        raise InvalidSignature("the signature does not match: another secret, or a changed body")


def _key(secret: str) -> bytes:
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise InvalidSignature("the secret begins with whsec_, but no base64 follows") from error
