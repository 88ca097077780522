"""The dead letters of the intake queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scheduler.model.intake import IntakeLetter


class IntakeDeadLetters(Protocol):
    """Dead letters by the id of their message. A letter expires `RETENTION_DAYS` after its message was refused.

    A message has one letter at most, ever: a removed letter leaves a note, so that a late delivery of its message makes no second one.
    """

    def add(self, letter: IntakeLetter) -> bool:
        """Store a letter. False if its message has one or had one; then nothing is written."""

    def had(self, ids: Sequence[str]) -> set[str]:
        """Return those of these messages that have a letter or had one (strongly consistent)."""

    def get(self, id: str) -> IntakeLetter | None:
        """Return the letter of a message, None if there is none (strongly consistent)."""

    def page(self, owner: str | None, *, after: str | None, limit: int) -> tuple[list[IntakeLetter], str | None]:
        """Return a page of an owner's letters, the last sent first, without their bodies, and the cursor of the next page.

        `owner` None: those of unknown senders. Strongly consistent. The caller must not pass a cursor on that it did not get here.
        """

    def change(self, before: IntakeLetter, after: IntakeLetter) -> bool:
        """Replace a letter; its message's id, queue and time, and its owner, stay. False if it was changed or removed since."""

    def remove(self, letter: IntakeLetter) -> bool:
        """Remove a letter. False if it was changed or removed since."""
