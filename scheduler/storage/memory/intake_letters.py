"""The port `IntakeDeadLetters` in memory."""

from collections.abc import Sequence
from dataclasses import replace

from scheduler.model import ids
from scheduler.model.intake import IntakeLetter


class MemoryIntakeDeadLetters:
    """Letters by the id of their message; None: removed."""

    def __init__(self) -> None:
        self.rows: dict[str, IntakeLetter | None] = {}

    def add(self, letter: IntakeLetter) -> bool:
        if letter.message.id in self.rows:
            return False
        self.rows[letter.message.id] = letter
        return True

    def had(self, ids: Sequence[str]) -> set[str]:
        return self.rows.keys() & set(ids)

    def get(self, id: str) -> IntakeLetter | None:
        return self.rows.get(id)

    def page(self, owner: str | None, *, after: str | None, limit: int) -> tuple[list[IntakeLetter], str | None]:
        listed = {_place(each): each for each in self.rows.values() if each is not None and each.owner == owner}
        places = sorted((place for place in listed if after is None or place < after), reverse=True)
        found = [listed[place] for place in places[:limit]]
        shown = [replace(each, message=replace(each.message, body="")) for each in found]
        return shown, places[limit - 1] if len(places) > limit else None

    def change(self, before: IntakeLetter, after: IntakeLetter) -> bool:
        return self._put(before, after)

    def remove(self, letter: IntakeLetter) -> bool:
        return self._put(letter, None)

    def _put(self, before: IntakeLetter, after: IntakeLetter | None) -> bool:
        stored = self.rows.get(before.message.id)
        if stored is None or stored.version != before.version:
            return False
        self.rows[before.message.id] = after
        return True


def _place(letter: IntakeLetter) -> str:
    return f"{ids.first(letter.message.sent_at)}#{letter.message.id}"
