"""The owner of a message: the owner of its queue, or the owner for whom the principal that sent it acts. Nothing in a body decides it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.accounts.principals import by_unique_id
from scheduler.model.account import Principal, Profile, Scope
from scheduler.model.errors import Forbidden
from scheduler.model.intake import PRINCIPALS, IntakeMessage, Violation
from scheduler.storage.cache import Cache
from scheduler.storage.ports import Ports

FRESH_MS = 30_000  # how long a process uses what it has read ...
DOUBTED_MS = 1_000  # ... and how long if it would refuse a message for it: an administrator may just have added the principal or the owner
MANY = 1_000  # owners cached per process


class Refused(Exception):
    """The sender of a message may not create its jobs. `owner`: None if the sender is unknown."""

    def __init__(self, owner: str | None, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.owner, self.violation = owner, Violation(field, rule)


@dataclass(slots=True)
class Senders:
    """One process's view of the principals and of their owners. `queues`: an owner, or `PRINCIPALS`, by the name of each queue."""

    ports: Ports
    queues: Mapping[str, str]
    _principals: Cache[str, Sequence[Principal]] = field(init=False)
    _profiles: Cache[str, Profile] = field(init=False)

    def __post_init__(self) -> None:
        owners, users = self.ports.owners, self.ports.users
        self._principals = Cache("the principals", lambda keys, _: {key: owners.principals() for key in keys}, FRESH_MS)
        self._profiles = Cache("the owner of a message", lambda ids, _: users.profiles(ids), FRESH_MS, most=MANY)

    def owner_of(self, message: IntakeMessage, now: int) -> str:
        """The owner of the jobs of a message. Raises Refused, and Unavailable if that cannot be read now."""
        try:
            return self._owner_of(message, now, FRESH_MS)
        except Refused:
            return self._owner_of(message, now, DOUBTED_MS)

    def check(self, owner: str, now: int) -> None:
        """Raise Refused if there is no such owner, or if it is disabled."""
        self._check(owner, now, DOUBTED_MS)

    def _owner_of(self, message: IntakeMessage, now: int, age_ms: int) -> str:
        owner = self.queues.get(message.queue, PRINCIPALS)
        if owner == PRINCIPALS:
            owner = _of_sender(message.sender, self._principals.get(PRINCIPALS, now, age_ms))
        self._check(owner, now, age_ms)
        return owner

    def _check(self, owner: str, now: int, age_ms: int) -> None:
        profile = self._profiles.get(owner, now, age_ms)
        if profile.disabled_at is not None:
            raise Refused(owner, "owner", "is disabled or deleted")
        if profile.name is None:  # perhaps the queue's owner is misspelt
            raise Refused(None, "owner", f"there is no owner {owner}")


def _of_sender(sender: str, principals: Sequence[Principal]) -> str:
    unique_id = sender.partition(":")[0]  # SQS adds the name of the role's session
    try:
        principal = by_unique_id(unique_id, principals)
    except Forbidden as error:
        raise Refused(None, "sender", error.message) from None
    if principal is None:
        raise Refused(None, "sender", f"no principal has the unique id {unique_id}; an administrator adds it")
    if not principal.scopes & {Scope.JOBS_WRITE, Scope.ADMIN}:
        raise Refused(principal.owner, "sender", f"the principal {principal.arn} needs the scope {Scope.JOBS_WRITE}")
    return principal.owner
