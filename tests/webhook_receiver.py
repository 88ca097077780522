"""A receiver of Standard Webhooks (standardwebhooks.com), as a customer writes one: it verifies what the product signs."""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence

PREFIX = "whsec_"
TOLERANCE_S = 300  # seconds by which the clocks of sender and receiver may differ


class NotSigned(ValueError):
    """The signature is wrong, or too old."""


def verify(given: Mapping[str, str], body: bytes, secrets: Sequence[str], now: int) -> str:
    """The id of what was received with these headers (lower case) at `now` (ms). Raises NotSigned."""
    try:
        id, stamp, told = (given[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
        age = abs(now // 1000 - int(stamp))
    except (KeyError, ValueError):
        raise NotSigned("a header is missing, or the time is none") from None
    if age > TOLERANCE_S:
        raise NotSigned("the time is too far from ours")
    wanted = [f"v1,{_sign(f'{id}.{stamp}.'.encode() + body, secret)}".encode() for secret in secrets]
    if not any(hmac.compare_digest(each, one.encode()) for each in wanted for one in told.split(" ")):
        raise NotSigned("no signature is by a secret of ours")
    return id


def _sign(content: bytes, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX)) if secret.startswith(PREFIX) else secret.encode()
    return base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
