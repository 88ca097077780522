"""Tokens in the ping URLs of monitors. A token is derived, so that its owner can read it again; only its hash is stored. Pure.

The keys that derive tokens are rotated. A token of a former key stays valid, but cannot be shown any more.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence

from scheduler.model.monitor import Monitor

BYTES = 20  # 160 bits: exactly 32 characters of base32
_FORM = re.compile(r"[a-z2-7]{32}")


def derive(id: str, salt: int, key: bytes) -> str:
    """The token of the monitor with this id; `salt`: its number."""
    code = hmac.digest(key, f"ping#{id}#{salt}".encode(), hashlib.sha256)
    return base64.b32encode(code[:BYTES]).decode().lower()


def hash_of(token: str) -> str:
    """The hash under which the monitor is stored."""
    return hashlib.sha256(token.encode()).hexdigest()[:40]


def read(text: str) -> str | None:
    """The hash of a token as it was sent; None: it has not the form of one. Letter case does not matter: some mail gateways change it."""
    token = text.lower()
    return hash_of(token) if _FORM.fullmatch(token) else None


def shown(monitor: Monitor, keys: Sequence[bytes]) -> str | None:
    """The token of the monitor; None: the key that derived it is gone."""
    derived = (derive(monitor.id, monitor.salt, key) for key in keys)
    return next((token for token in derived if hash_of(token) == monitor.token_hash), None)
