"""The declarations of objects by stacks, and the API as the function `declare` calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scheduler.model.account import Scope
    from scheduler.model.declaration import Declarer, ObjectId, TemplateEntry


class Declarations(Protocol):
    """The resources of stacks that declare objects. Each object has one declarer at most."""

    def declarer(self, id: ObjectId) -> Declarer | None:
        """Return the declarer of an object (strongly consistent)."""

    def take(self, id: ObjectId, declarer: Declarer, before: Declarer | None) -> bool:
        """Make it the declarer of an object in place of `before`; None: of nobody. False if another one is. Idempotent."""

    def withdraw(self, id: ObjectId, declarer: Declarer) -> bool:
        """End its declaration. False if another one declares the object. Idempotent."""


class ApiAnswer(NamedTuple):
    """An answer of the API. `data` is empty for a refusal, and `message` for a success."""

    status: int
    data: Mapping[str, Any]
    message: str = ""


class OwnApi(Protocol):
    """The API of the stage, called as an entry of the option `templates`."""

    def send(
        self, method: str, path: str, body: Mapping[str, Any] | None, entry: TemplateEntry, scopes: Sequence[Scope], request_id: str
    ) -> ApiAnswer:
        """Send a request to a path below the base. Raises Unavailable for an answer that another try may change, such as 429 and 503."""
