"""Call-back tokens: a worker authenticates with one to report on one attempt at one job. Signed, not encrypted; pure.

v1.<owner, job id, fence, end in epoch seconds as JSON, base64url>.<HMAC-SHA256 of all before it, base64url>
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler.model.errors import Unauthorized
from scheduler.model.job import JobKey

if TYPE_CHECKING:
    from itsdangerous import Signer

VERSION = "v1"
LONGEST = 1_024  # characters of a token
# The last character of a MAC has two unused bits. A token in which they are not 0 would decode to the same MAC, and is refused.
_FORM = re.compile(rf"{VERSION}\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]{{42}}[AEIMQUYcgkosw048]")


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """The attempt that a token authorizes: a job and its fence."""

    key: JobKey
    fence: int


class NotSigned(Unauthorized):
    """The token of the call-back is wrong."""


def sign(which: AttemptKey, expires_at: int, key: bytes) -> str:
    """The token of an attempt. It is valid to the end of the second that contains `expires_at` (ms)."""
    content = json.dumps([*which.key, which.fence, expires_at // 1000], separators=(",", ":"), ensure_ascii=False)
    text = base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")
    return _signer([key]).sign(f"{VERSION}.{text}").decode()


def read(token: str, keys: Sequence[bytes], now: int) -> AttemptKey:
    """The attempt that the token authorizes. Raises NotSigned if none of the keys signed it, Unauthorized if it has expired."""
    form = _FORM.fullmatch(token) if len(token) <= LONGEST else None
    if form is None or not _signer(keys).validate(token):
        raise NotSigned
    owner, job_id, fence, end = json.loads(base64.urlsafe_b64decode(form[1] + "=="))
    if now // 1000 > end:
        raise Unauthorized("The call-back token has expired.")
    return AttemptKey(JobKey(owner, job_id), fence)


def _signer(keys: Sequence[bytes]) -> "Signer":
    """A signer that signs with the first key and accepts all of them. The keys are random and are used without key derivation."""
    from itsdangerous import Signer  # 6 ms: an executor without call-backs does not import it

    return Signer(list(reversed(keys)), key_derivation="none", digest_method=hashlib.sha256)
