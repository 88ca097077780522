"""The named targets and the usage of their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from scheduler.storage.ports.results import Found, Written

if TYPE_CHECKING:  # hot functions do not load these records
    from scheduler.model.named_target import NamedTarget
    from scheduler.model.target_queue import QueueUser, TargetQueue
    from scheduler.model.target_usage import TargetUsage, UsageChange


class ChangeResult(NamedTuple):
    """The answer to one `UsageChange`. `usage` is the stored usage after it (None if refused)."""

    done: Written
    usage: TargetUsage | None


class Targets(Protocol):
    """The registry of named targets, and the usage of their limits.

    A target with many concurrency slots has several items of usage, each with a name of its own (`named_target.item_name`).
    """

    def targets(self, names: Sequence[str]) -> Found[str, NamedTarget]:
        """Return the targets that exist, by name (strongly consistent)."""

    def usages(self, names: Sequence[str]) -> dict[str, TargetUsage]:
        """Return the usages that exist, by the name of their target or item (strongly consistent)."""

    def use(self, uses: Sequence[UsageChange]) -> list[ChangeResult]:
        """Apply each change, of different targets or items, if it is valid (see `limits.used`); one result per change, in order.

        NO: it is not valid for the stored usage. If refused, the change may still have been applied: a concurrency slot that was taken
        shows up in `usages`, a start that was assigned stays unused.
        """

    def use_together(self, uses: Sequence[UsageChange]) -> Written:
        """Apply all of these changes, of different targets, keys or items, or none of them: NO if one of them is not valid."""

    def join_queue(self, target: str, owner: str, at: int) -> int:
        """Note that jobs of the owner wait for the target since `at`. A release step then looks for them.

        Returns the instant that was noted before; 0: none, or no job waited any more.
        """

    def queue(self, target: str) -> tuple[TargetQueue | None, list[QueueUser]]:
        """Return the queue of a target (None: it never had a release step) and its users (strongly consistent)."""

    def queues(self, part: int | None = None) -> Iterator[tuple[TargetQueue, list[QueueUser]]]:
        """Return the queues of targets with their users, or those of keys in this `part` (strongly consistent, read page by page)."""

    def queue_users(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], QueueUser]:
        """Return the users of queues that exist, by target and owner (strongly consistent)."""

    def change_queue(self, before: TargetQueue | None, after: TargetQueue) -> bool:
        """Store the queue if the stored one has the epoch of `before` (None: none is stored). False if it does not.

        True also if an earlier try, whose answer was lost, stored it.
        """

    def drop_queue(self, queue: TargetQueue) -> bool:
        """Delete the record of a queue without users if the stored one has this epoch."""

    def note_queue_user(self, user: QueueUser) -> None:
        """Store the turn of a user and whether jobs of it wait, but not when it joined. Unconditional: the last writer wins."""

    def drop_queue_user(self, user: QueueUser) -> bool:
        """Delete the user of a queue unless it has joined since. False if it has."""

    def all(self) -> list[NamedTarget]:
        """Return all targets, by name (strongly consistent)."""

    def put(self, before: NamedTarget | None, after: NamedTarget) -> bool:
        """Insert a target (`before` None: the name must be free), or replace it if the stored one has the version of `before`.

        False: the name is taken, or the target was changed or deleted. True also if an earlier try, whose answer was lost, applied it.
        """

    def delete(self, target: NamedTarget) -> bool:
        """Delete the target if it has this version, and its usage. False if it has another version or does not exist.

        A refusal while deleting the usage is ignored: a new target of that name continues with it.
        """
