"""The issuer of role tokens of the local AWS: what STS signs, and the documents by which others check it.

AWS gives each account an issuer of its own, `https://<id>.tokens.sts.global.api.aws`. Here it is `http://127.0.0.1:<port>/issuer-<account>`.
https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_providers_outbound_token_claims.html
"""

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from local.home import Note

CONFIGURATION, KEYS = ".well-known/openid-configuration", ".well-known/jwks.json"
PATH = re.compile(r"issuer-([0-9]{12})")
SESSION = re.compile(r"arn:aws:sts::([0-9]{12}):assumed-role/([^/]+)/.+")
ALGORITHMS = ("RS256", "ES384")
WIDTH = 48  # bytes of each number of a signature or a point on the curve P-384

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Issuer:
    """Signs the tokens of all accounts with two keys, which it keeps in a note from one start to the next."""

    address: str  # of the local AWS
    note: Note

    def url(self, account: str) -> str:
        """Return the issuer of an account, which its tokens name."""
        return f"{self.address}/issuer-{account}"

    def configuration(self, account: str) -> dict[str, Any]:
        """Return the discovery document of an account's issuer."""
        return {
            "issuer": self.url(account),
            "jwks_uri": f"{self.url(account)}/{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": list(ALGORITHMS),
        }

    def key_set(self) -> dict[str, Any]:
        """Return the public keys."""
        return {"keys": [{**_public(key), "alg": name, "use": "sig", "kid": _kid(key)} for name, key in self._keys.items()]}

    def token(
        self, subject: str, audience: Sequence[str], algorithm: str, *, issued_at: int, expires_at: int, aws: Mapping[str, Any]
    ) -> str:
        """Return a token whose subject is the ARN of a role or a user. `aws` are the claims of AWS about its session."""
        key = self._keys[algorithm]
        claims = {
            "iss": self.url(subject.split(":")[4]),
            "sub": subject,
            "aud": audience[0] if len(audience) == 1 else list(audience),
            "iat": issued_at,
            "exp": expires_at,
            "jti": str(uuid.uuid4()),
            "https://sts.amazonaws.com/": dict(aws),
        }
        signed = f"{_part({'alg': algorithm, 'typ': 'JWT', 'kid': _kid(key)})}.{_part(claims)}"
        return f"{signed}.{_text(_signature(key, signed.encode()))}"

    @cached_property
    def _keys(self) -> dict[str, Key]:
        """The keys by algorithm. The first use makes them."""
        stored = self.note.read()
        if stored.keys() != set(ALGORITHMS):
            made: tuple[Key, ...] = (rsa.generate_private_key(65_537, 2_048), ec.generate_private_key(ec.SECP384R1()))
            stored = dict(zip(ALGORITHMS, map(_pem, made), strict=True))
            self.note.write(**stored)
        return {name: _loaded(stored[name]) for name in ALGORITHMS}


def subject(caller: str) -> str:
    """Return the subject of a caller's tokens: of a session its role, whatever the session is called; of others their own ARN."""
    found = SESSION.fullmatch(caller)
    return f"arn:aws:iam::{found[1]}:role/{found[2]}" if found else caller


def account_of(path: str) -> str:
    """Return the account of the first part of a path, `issuer-<account>`; empty for any other path."""
    found = PATH.fullmatch(path)
    return found[1] if found else ""


def _pem(key: Key) -> str:
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*plain).decode()


def _loaded(pem: str) -> Key:
    key = serialization.load_pem_private_key(pem.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
    return key


def _public(key: Key) -> dict[str, str]:
    """Return the public key as RFC 7518 writes it."""
    if isinstance(key, rsa.RSAPrivateKey):
        modulus = key.public_key().public_numbers()
        return {"kty": "RSA", "n": _number(modulus.n), "e": _number(modulus.e)}
    point = key.public_key().public_numbers()
    return {"kty": "EC", "crv": "P-384", "x": _number(point.x, WIDTH), "y": _number(point.y, WIDTH)}


def _kid(key: Key) -> str:
    return hashlib.sha256(json.dumps(_public(key), sort_keys=True).encode()).hexdigest()[:16]


def _signature(key: Key, signed: bytes) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA384())))
    return r.to_bytes(WIDTH, "big") + s.to_bytes(WIDTH, "big")


def _part(value: Mapping[str, Any]) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _number(value: int, width: int = 0) -> str:
    return _text(value.to_bytes(width or (value.bit_length() + 7) // 8, "big"))


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
