"""The signatures of the pool's access tokens, checked by its public keys: no library of the bundle does this, and it needs no secret."""

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.model.errors import Unavailable

AGAIN_MS = 60_000  # the keys are read again at most this often: a token may name any key
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")  # it precedes the digest: RFC 8017, section 9.2
_INVALID = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)

Key = tuple[int, int]  # modulus and exponent


def claims(token: str) -> Any:
    """The claims of a token, whose signature is not checked. Raises IndexError, RecursionError or ValueError for other texts."""
    return json.loads(_bytes(token.split(".")[1]))


def end(found: Any) -> int:
    """The expiry of a token (ms)."""
    return int(found["exp"]) * 1000


def keys(document: bytes) -> dict[str, Key]:
    """The RSA keys by id, of a document of public keys (JWKS). Raises Unavailable for another document."""
    try:
        found = [each for each in json.loads(document)["keys"] if each["kty"] == "RSA"]
        return {each["kid"]: (_number(each["n"]), _number(each["e"])) for each in found}
    except _INVALID:
        raise Unavailable("the public keys of the user pool could not be read") from None


def is_signed(token: str, key: Key) -> bool:
    """Whether the token is signed by the key with RSASSA-PKCS1-v1_5 and SHA-256 (RS256): the whole padded digest is compared."""
    text, _, signature = token.rpartition(".")
    modulus, exponent = key
    length = (modulus.bit_length() + 7) // 8
    number = _bytes(signature)
    digest = _SHA256 + hashlib.sha256(text.encode()).digest()
    padded = b"\x00\x01" + b"\xff" * (length - len(digest) - 3) + b"\x00" + digest
    return len(number) == length and pow(int.from_bytes(number, "big"), exponent, modulus).to_bytes(length, "big") == padded


@dataclass(slots=True)
class Verifier:
    """Checks access tokens of some clients. `read` returns the document of the pool's public keys."""

    clients: frozenset[str]
    read: Callable[[], bytes]
    _keys: Mapping[str, Key] = field(default_factory=dict)
    _read_at: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def verified(self, token: str, now: int) -> Any:
        """The claims of a valid access token; None for any other text. Raises Unavailable."""
        try:
            header, found = json.loads(_bytes(token.split(".")[0])), claims(token)
            if found["token_use"] != "access" or found["client_id"] not in self.clients or end(found) <= now or header["alg"] != "RS256":
                return None
            key = self._key(str(header["kid"]), now)
            return found if key is not None and token.count(".") == 2 and is_signed(token, key) else None
        except _INVALID:
            return None

    def _key(self, id: str, now: int) -> Key | None:
        with self._lock:
            if id not in self._keys and (self._read_at is None or now - self._read_at >= AGAIN_MS):
                self._read_at = now
                self._keys = keys(self.read())
            return self._keys.get(id)


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _number(text: str) -> int:
    return int.from_bytes(_bytes(text), "big")
