"""Standard Webhooks (standardwebhooks.com): a request is signed over its id, its time and its body. Pure.

webhook-id: <id>   webhook-timestamp: <epoch seconds>   webhook-signature: v1,<base64 of HMAC-SHA256> v1,<...>

During a rotation a secret has two values, and the request two signatures: a receiver with either value accepts the request.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"
VERSION = "v1"
LEAST_KEY, MOST_KEY = 24, 64  # bytes, as the standard specifies


def key(secret: str) -> bytes:
    """The key that signs: the bytes of `whsec_<base64>`, or those of any other text. Raises ValueError if there are too few or too many."""
    try:
        found = base64.b64decode(secret.removeprefix(PREFIX), validate=True) if secret.startswith(PREFIX) else secret.encode()
    except binascii.Error:
        raise ValueError(f"the text after {PREFIX} is no base64") from None
    if not LEAST_KEY <= len(found) <= MOST_KEY:
        raise ValueError(f"a signing secret has {LEAST_KEY} to {MOST_KEY} bytes")
    return found


def headers(id: str, now: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """The three headers of a request sent at `now` (ms), signed with each of the secrets. Raises ValueError as `key` does."""
    stamp = str(now // 1000)
    signatures = [f"{VERSION},{_sign(id, stamp, body, key(secret))}" for secret in secrets]
    return {"webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": " ".join(signatures)}


def _sign(id: str, stamp: str, body: bytes, key: bytes) -> str:
    return base64.b64encode(hmac.new(key, f"{id}.{stamp}.".encode() + body, hashlib.sha256).digest()).decode()
