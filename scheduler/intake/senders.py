"""The owner of a message: the owner of its queue, or the owner for whom the principal that sent it acts. Nothing in a body decides it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.accounts.callers import DOUBTED_MS, Callers
from scheduler.accounts.principals import by_unique_id
from scheduler.accounts.quota import FRESH_MS
from scheduler.model.account import Principal, Scope
from scheduler.model.errors import Forbidden
from scheduler.model.intake import PRINCIPALS, IntakeMessage, Violation


class Refused(Exception):
    """The sender of a message may not create its jobs. `owner`: None if the sender is unknown."""

    def __init__(self, owner: str | None, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.owner, self.violation = owner, Violation(field, rule)


@dataclass(frozen=True, slots=True)
class Senders:
    """The owners of messages. `queues`: an owner, or `PRINCIPALS`, by the name of each queue.

    A message is refused only by records that are at most `DOUBTED_MS` old: an administrator may just have added the principal or the owner.
    """

    callers: Callers
    queues: Mapping[str, str]

    def owner_of(self, message: IntakeMessage) -> str:
        """The owner of the jobs of a message. Raises Refused, and Unavailable if that cannot be read now."""
        try:
            return self._owner_of(message, FRESH_MS)
        except Refused:
            return self._owner_of(message, DOUBTED_MS)

    def check(self, owner: str) -> None:
        """Raise Refused if there is no such owner, or if it is disabled."""
        self._check(owner, DOUBTED_MS)

    def _owner_of(self, message: IntakeMessage, age_ms: int) -> str:
        owner = self.queues.get(message.queue, PRINCIPALS)
        if owner == PRINCIPALS:
            owner = _of_sender(message.sender, self.callers.principals(age_ms))
        self._check(owner, age_ms)
        return owner

    def _check(self, owner: str, age_ms: int) -> None:
        profile = self.callers.owners.record(owner, age_ms).profile
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
