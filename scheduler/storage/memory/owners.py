"""STUB: the port `Owners` in memory."""

from scheduler.model.account import Principal


class MemoryOwners:
    """The principals."""

    def __init__(self) -> None:
        self._principals: dict[str, Principal] = {}

    def principals(self) -> list[Principal]:
        return list(self._principals.values())

    def put_principal(self, principal: Principal, *, new: bool) -> bool:
        if (principal.arn in self._principals) is new:
            return False
        self._principals[principal.arn] = principal
        return True
