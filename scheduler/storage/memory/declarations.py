"""Declarations in memory."""

from scheduler.model.declaration import Declarer, ObjectId


class MemoryDeclarations:
    """The port `Declarations`."""

    def __init__(self) -> None:
        self.rows: dict[ObjectId, Declarer] = {}

    def declarer(self, id: ObjectId) -> Declarer | None:
        return self.rows.get(id)

    def take(self, id: ObjectId, declarer: Declarer, before: Declarer | None) -> bool:
        if self.rows.get(id) not in (before, declarer):
            return False
        self.rows[id] = declarer
        return True

    def withdraw(self, id: ObjectId, declarer: Declarer) -> bool:
        if self.rows.get(id, declarer) != declarer:
            return False
        self.rows.pop(id, None)
        return True
