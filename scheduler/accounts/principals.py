"""AWS principals: roles that act for an owner, with scopes. Administrators map them.

The ARN of a mapping is that of a role, `arn:aws:iam::123456789012:role/name`, whose name or path may contain `*`. The account is exact.
"""

import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import replace

from scheduler.model.account import OwnerKind, Principal, Scope
from scheduler.model.errors import Conflict, Forbidden, Invalid, NotFound
from scheduler.storage.ports import MOST_PRINCIPALS, Ports

ROLE = r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@*/-]{1,512}"
UNIQUE_ID = r"AROA[A-Z0-9]{12,128}"
_SESSION = re.compile(r"arn:(aws[a-z-]*):sts::([0-9]{12}):assumed-role/([A-Za-z0-9_+=,.@-]{1,64})/[A-Za-z0-9_+=,.@-]{2,64}")
_ACCOUNT = re.compile(r"arn:aws[a-z-]*:iam::([0-9]{12}):role/")


def create(arn: str, owner: str, scopes: Collection[Scope], unique_id: str | None, by: str, ports: Ports) -> Principal:
    """Map a role to an owner. Raises Invalid for a bad ARN, unique id or owner, and Conflict if the ARN or the unique id is mapped."""
    if re.fullmatch(ROLE, arn) is None:
        raise Invalid.field("arn", "must be the ARN of a role, such as arn:aws:iam::123456789012:role/name; its name may contain *")
    _check(owner, unique_id, ports)
    stored = ports.owners.principals()
    if len(stored) >= MOST_PRINCIPALS:
        raise Conflict(f"a stage has at most {MOST_PRINCIPALS:,} principals: map a pattern, or delete one first")
    _check_unique(unique_id, stored)
    made = Principal(f"principal-{secrets.token_hex(10)}", arn, owner, frozenset(scopes), by, ports.clock.now(), unique_id)
    if not ports.owners.put_principal(made, new=True):
        raise Conflict("this ARN is mapped already")
    return made


def find(id: str, ports: Ports) -> Principal:
    """Raises NotFound."""
    found = next((each for each in ports.owners.principals() if each.id == id), None)
    if found is None:
        raise NotFound("there is no such principal")
    return found


def change(id: str, owner: str | None, scopes: Collection[Scope] | None, unique_id: str | None, ports: Ports) -> Principal:
    """Change what is given. Every process of the API applies it within half a minute. Raises NotFound, Invalid, Conflict."""
    before = find(id, ports)
    after = replace(
        before,
        owner=before.owner if owner is None else owner,
        scopes=before.scopes if scopes is None else frozenset(scopes),
        unique_id=before.unique_id if unique_id is None else unique_id,
    )
    _check(after.owner, after.unique_id, ports)
    _check_unique(unique_id, [each for each in ports.owners.principals() if each.id != id])
    if not ports.owners.put_principal(after, new=False):
        raise NotFound("there is no such principal")
    return after


def delete(id: str, ports: Ports) -> Principal:
    """End a mapping: the API refuses the role within half a minute. Raises NotFound."""
    found = find(id, ports)
    if not ports.owners.delete_principal(found.arn):
        raise NotFound("there is no such principal")
    return found


def by_arn(arn: str, principals: Sequence[Principal]) -> Principal | None:
    """The mapping of a role, by its ARN or that of its session. None: there is none. Raises Forbidden if two mappings fit."""
    role = role_of(arn)
    return _only([each for each in principals if role is not None and _fits(each.arn, role)])


def by_unique_id(unique_id: str, principals: Sequence[Principal]) -> Principal | None:
    """The mapping of a role, by its unique id or that of its session, `AROA…:session`. Likewise."""
    return _only([each for each in principals if each.unique_id is not None and each.unique_id == unique_id.partition(":")[0]])


def role_of(arn: str) -> str | None:
    """The ARN of a role from its own, or from that of its session. A session's ARN lacks the path. None for another text."""
    session = _SESSION.fullmatch(arn)
    if session is not None:
        return f"arn:{session[1]}:iam::{session[2]}:role/{session[3]}"
    return arn if re.fullmatch(ROLE, arn) and "*" not in arn else None


def account_of(arn: str) -> str | None:
    """The account of a role's ARN."""
    found = _ACCOUNT.match(arn)
    return None if found is None else found[1]


def _fits(pattern: str, role: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), role) is not None


def _only(found: Sequence[Principal]) -> Principal | None:
    if len(found) > 1:
        raise Forbidden("This role fits several mappings: an administrator must remove all but one.")
    return found[0] if found else None


def _check(owner: str, unique_id: str | None, ports: Ports) -> None:
    if unique_id is not None and re.fullmatch(UNIQUE_ID, unique_id) is None:
        raise Invalid.field("unique_id", "must be the unique id of a role, AROA…: see `aws iam get-role`")
    profile = ports.users.profiles([owner])[owner]
    if profile.name is None:
        raise Invalid.field("owner", f"there is no such {OwnerKind.PERSON} or {OwnerKind.TEAM}")


def _check_unique(unique_id: str | None, stored: Sequence[Principal]) -> None:
    if unique_id is not None and any(each.unique_id == unique_id for each in stored):
        raise Conflict("this unique id is mapped already")
