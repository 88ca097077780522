"""Another version of a frozen record, at less than half the cost of `dataclasses.replace`: every event of a job makes two or three."""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")

Setter = Callable[[Any, Any], None]


def replace(record: T, **changes: Any) -> T:
    """As `dataclasses.replace`, for records with slots, two fields or more and no `__post_init__`."""
    kind: Any = type(record)
    read, setters = _parts(kind)
    copy: T = object.__new__(kind)
    for write, value in zip(setters.values(), read(record), strict=True):
        write(copy, value)
    for name, value in changes.items():
        setters[name](copy, value)
    return copy


def differences(before: T, after: T) -> dict[str, Any]:
    """The fields of `after` that are not as in `before`, by name."""
    kind: Any = type(before)
    read, setters = _parts(kind)
    pairs = zip(setters, read(before), read(after), strict=True)
    return {name: new for name, old, new in pairs if old is not new and old != new}


@cache
def _parts(kind: type) -> tuple[Callable[[Any], tuple[Any, ...]], dict[str, Setter]]:
    """How to read all fields at once, and how to write each: by its slot, past the frozen class's own refusal."""
    names = tuple(kind.__dataclass_fields__)  # type: ignore[attr-defined]
    return attrgetter(*names), {name: getattr(kind, name).__set__ for name in names}
