"""Deletes what a run has made, in the reverse order, whatever fails."""

from collections.abc import Callable

from botocore.exceptions import ClientError

ABSENT = {  # codes of AWS's errors: the resource does not exist, or no longer exists
    "UserNotFoundException",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "NoSuchEntity",
    "ResourceNotFoundException",
}


class Cleanup:
    """The things that a run has made or is about to make. A thing is registered before it is made: an interrupt cannot come between."""

    def __init__(self) -> None:
        self._undo: list[tuple[str, Callable[[], object]]] = []

    def later(self, what: str, undo: Callable[[], object]) -> None:
        """Register how to delete a thing. `undo` may find it absent: it was not made, or is deleted already."""
        self._undo.append((what, undo))

    @property
    def things(self) -> list[str]:
        return [what for what, _ in self._undo]

    def run(self) -> list[str]:
        """Delete all things, the last one first. Returns what could not be deleted, and why. Raises nothing."""
        left = []
        while self._undo:
            what, undo = self._undo.pop()
            try:
                undo()
            except Exception as error:  # of any kind: the others must still be deleted
                if not (isinstance(error, ClientError) and error.response["Error"]["Code"] in ABSENT):
                    left.append(f"{what}: {error}")
        return left
