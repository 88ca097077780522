"""API keys: their text, and how they are made, checked and revoked.

    punctual_abcdefghijklmnop_<43 letters and digits>_1c291ca3
    ───┬──── ───────┬──────── ──────────┬──────────── ───┬────
    constant    id, 80 bits     secret, 256 bits     CRC-32 of all before

A scanner for secrets finds a key by its prefix, and proves by its checksum that it is one. Only the SHA-256 of the whole key is stored:
a secret of 256 random bits needs no slow hash. The id may be shown and logged.
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass

from scheduler.accounts.access import BY_SCOPE, Caller
from scheduler.model.account import ApiKey, Scope
from scheduler.model.errors import Conflict, Forbidden, Invalid, NotFound
from scheduler.model.instants import DAY
from scheduler.storage.ports import MOST_KEYS, Ports

PREFIX = "punctual"
FORM = re.compile(rf"{PREFIX}_([a-z2-7]{{16}})_[A-Za-z0-9]{{43}}_[0-9a-f]{{8}}")
ID = r"[a-z2-7]{16}"
SHORTEST_DAYS, LONGEST_DAYS = 1, 3_650
ID_LETTERS, _SECRET_LETTERS = string.ascii_lowercase + "234567", string.ascii_letters + string.digits
USE_MS = 3_600_000  # the use of a key is stored at most this often

Choose = Callable[[str], str]  # a random letter of a text


@dataclass(frozen=True, slots=True)
class Made:
    """A new key and its text, which is stored nowhere."""

    key: ApiKey
    text: str


def make(
    owner: str, caller: Caller, name: str, scopes: Collection[Scope], days: int | None, ports: Ports, choose: Choose = secrets.choice
) -> Made:
    """Make a key of an owner for the caller, a person. It expires after `days`; None: never.

    Raises Forbidden for a scope that the caller does not have for this owner, and Conflict if the owner has `MOST_KEYS`.
    """
    if caller.rights is None or caller.scopes is not None:
        raise Forbidden("Only people make API keys.")
    for scope in scopes:
        if not all(caller.may(need, owner) for need in BY_SCOPE[scope]):
            raise Forbidden(f"You do not have the scope {scope} for this owner, so your key cannot have it.")
    if len(ports.owners.keys(owner)) >= MOST_KEYS:
        raise Conflict(f"an owner has at most {MOST_KEYS} API keys: revoke one first")
    now = ports.clock.now()
    text = _text(choose)
    expires_at = None if days is None else now + days * DAY
    key = ApiKey(id_of(text), owner, caller.id, name, frozenset(scopes), digest(text), now, expires_at)
    ports.owners.add_key(key)
    return Made(key, text)


def find(id: str, ports: Ports) -> ApiKey:
    """Raises NotFound."""
    key = ports.owners.key(id) if re.fullmatch(ID, id) else None
    if key is None:
        raise NotFound("there is no such API key")
    return key


def revoke(key: ApiKey, ports: Ports) -> None:
    """Revoke a key: every process of the API refuses it within half a minute. Raises NotFound if it is revoked already."""
    if not ports.owners.delete_key(key):
        raise NotFound("there is no such API key")


def find_leaked(text: str, ports: Ports) -> ApiKey:
    """The key with this text, which may be revoked by everybody who has it. Raises NotFound for a text that is no key of this stage."""
    found = ports.owners.key(id_of(text)) if is_well_formed(text) else None
    if found is None or not matches(found, text):
        raise NotFound("there is no such API key")
    return found


def is_well_formed(text: str) -> bool:
    """Whether a text can be a key: its form and its checksum are right."""
    return FORM.fullmatch(text) is not None and text.endswith(_checksum(text.rpartition("_")[0]))


def without_secrets(text: str) -> str:
    """The text with the ids of the keys in it, and without their secrets: people sometimes send a key as an id."""
    return FORM.sub(rf"{PREFIX}_\1_…", text)


def id_of(text: str) -> str:
    """The id in a well-formed key."""
    return text.split("_")[1]


def matches(key: ApiKey, text: str) -> bool:
    """Whether this is the text of the key, compared in constant time."""
    return hmac.compare_digest(key.digest, digest(text))


def digest(text: str) -> str:
    """The digest of a secret, which is stored in its place."""
    return hashlib.sha256(text.encode()).hexdigest()


def random_text(letters: str, length: int, choose: Choose = secrets.choice) -> str:
    """A text of random letters."""
    return "".join(choose(letters) for _ in range(length))


def expand(scopes: Collection[str]) -> frozenset[Scope]:
    """The scopes of a request, in which `jobs:*` and `tasks:*` name several. Raises Invalid."""
    found: set[Scope] = set()
    for text in scopes:
        several = [scope for scope in Scope if text.endswith(":*") and scope.startswith(text[:-1])]
        if not several and text not in list(Scope):
            raise Invalid.field("scopes", f"{text!r} is none of {', '.join(Scope)}, jobs:*, tasks:*")
        found.update(several or [Scope(text)])
    return frozenset(found)


def _text(choose: Choose) -> str:
    id, secret = random_text(ID_LETTERS, 16, choose), random_text(_SECRET_LETTERS, 43, choose)
    start = f"{PREFIX}_{id}_{secret}"
    return f"{start}_{_checksum(start)}"


def _checksum(start: str) -> str:
    return f"{zlib.crc32(start.encode()):08x}"
