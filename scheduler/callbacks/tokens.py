"""The tokens of call-backs: what a worker shows to report on one attempt at one job. Signed, not encrypted; pure.

v1.<owner, job id, fence, end in epoch seconds as JSON, base64url>.<HMAC-SHA256 of all before it, base64url>
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.model.errors import Unauthorized
from scheduler.model.job import JobKey

VERSION = "v1"
LONGEST = 1_024  # characters of what may be one of ours


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """What a token stands for: one attempt at a job, told by its fence."""

    key: JobKey
    fence: int


class NotSigned(Unauthorized):
    """The token of the call-back is wrong."""


def sign(which: AttemptKey, expires_at: int, key: bytes) -> str:
    """The token. It counts until the second in which `expires_at` lies is over."""
    content = json.dumps([*which.key, which.fence, expires_at // 1000], separators=(",", ":"), ensure_ascii=False)
    signed = f"{VERSION}.{_text(content.encode())}"
    return f"{signed}.{_text(_mac(signed, key))}"


def read(token: str, keys: Sequence[bytes], now: int) -> AttemptKey:
    """What the token stands for. Raises NotSigned if none of the keys has signed it, Unauthorized if it has expired."""
    signed, _, mac = token.rpartition(".")
    if len(token) > LONGEST or not token.isascii() or not any(hmac.compare_digest(_text(_mac(signed, key)), mac) for key in keys):
        raise NotSigned
    version, _, content = signed.partition(".")
    if version != VERSION:
        raise NotSigned
    owner, job_id, fence, end = json.loads(_bytes(content))
    if now // 1000 > end:
        raise Unauthorized("The token of the call-back has expired.")
    return AttemptKey(JobKey(owner, job_id), fence)


def _mac(signed: str, key: bytes) -> bytes:
    return hmac.new(key, signed.encode(), hashlib.sha256).digest()


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise NotSigned from None
