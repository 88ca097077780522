"""AWS principals: who acts for which owner. STUB of the branch `intake`: the branch `step6` has the whole module."""

from collections.abc import Sequence

from scheduler.model.account import Principal
from scheduler.model.errors import Forbidden


def by_unique_id(unique_id: str, principals: Sequence[Principal]) -> Principal | None:
    """The principal of a role with this unique id, None if there is none. Raises Forbidden if there are two."""
    found = [each for each in principals if each.unique_id == unique_id]
    if len(found) > 1:
        raise Forbidden(f"{unique_id} matches {len(found)} principals")
    return found[0] if found else None
