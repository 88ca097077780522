"""Items that this version cannot read: each is logged and set aside, so that it stops nothing else.

An item is unreadable if its decoder raises, whatever it raises: the item has a newer format, an unknown value, or lacks a field. A newer
version wrote it during a deployment, a rollback left it, or a person did. Every line of `log` is counted as one unreadable
item: see `lambdas._runtime`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from scheduler.model.errors import Unreadable
from scheduler.storage.ports import Found

Item = Mapping[str, Any]
K = TypeVar("K")
T = TypeVar("T")

log = logging.getLogger(__name__)


def read(decode: Callable[[Item], T], item: Item) -> T:
    """Return the decoded item. Raises Unreadable."""
    try:
        return decode(item)
    except Exception as error:
        where = "/".join(str(item.get(name, {}).get("S")) for name in ("pk", "sk"))
        why = f"{type(error).__name__}: {error}"
        log.error("an item cannot be read: another version stored it", extra={"item": where, "why": why})
        raise Unreadable from error


def each(decode: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
    """Yield the readable items, decoded."""
    for item in items:
        try:
            yield read(decode, item)
        except Unreadable:
            continue


def found(decode: Callable[[Item], T], key_of: Callable[[Item], K], items: Iterable[Item]) -> Found[K, T]:
    """Return the decoded items by key. `key_of` reads the key attributes only, which every item has."""
    made = Found[K, T]()
    for item in items:
        try:
            made[key_of(item)] = read(decode, item)
        except Unreadable as error:
            made.unreadable[key_of(item)] = str(error.__cause__)
    return made
