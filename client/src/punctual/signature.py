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
LEAST_KEY = 24  # bytes, as the standard specifies; Punctual signs with no shorter key


def verify_signature(
    headers: Mapping[str, str],
    body: bytes | str,
    secret: str,
    *,
    tolerance: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> None:
    """Return if the request was signed with the secret at most `tolerance` seconds ago. Raises InvalidSignature otherwise.

    `headers` are those of the request, in any case; `body` is its body as it arrived. `now` is the time in epoch seconds. `secret` is
    `whsec_` and base64, or any other text, of at least 24 bytes. An empty or shorter one is refused: anybody could have signed with it.
    Answer an invalid request with 401 and do nothing else.

    The signature does not protect against a repeated request: remember the header `webhook-id`.
    """
    key = signing_key(secret)
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
    signed = _bytes(f"{found['webhook-id']}.{stamp}.") + (_bytes(body) if isinstance(body, str) else body)
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    if not any(hmac.compare_digest(expected, _bytes(one)) for one in found["webhook-signature"].split(" ")):
        raise InvalidSignature("the signature does not match: another secret, or a changed body")


def signing_key(secret: str) -> bytes:
    """Return the key of a secret. Raises InvalidSignature for a secret that the server never signs with."""
    if not isinstance(secret, str):
        raise InvalidSignature("the secret is no text: is its environment variable set?")
    try:
        found = base64.b64decode(secret.removeprefix("whsec_"), validate=True) if secret.startswith("whsec_") else _bytes(secret)
    except (binascii.Error, ValueError) as error:  # ValueError: a character beyond ASCII
        raise InvalidSignature("the secret begins with whsec_, but no base64 follows") from error
    if not found:
        raise InvalidSignature("the secret is empty: is its environment variable set?")
    if len(found) < LEAST_KEY:
        raise InvalidSignature(f"the secret has {len(found)} bytes; a signing secret has at least {LEAST_KEY}")
    return found


def _bytes(text: str) -> bytes:
    """Return the text as UTF-8. A header may have surrogates, which no signature matches."""
    return text.encode(errors="replace")
