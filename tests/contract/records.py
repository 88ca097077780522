"""Records of any values, made of the fields of their class: a new field is in the round trip of its codec by itself."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import Phase, settings
from hypothesis import strategies as st

from scheduler.model import ids

Strategy = st.SearchStrategy[Any]
unshrunk = settings(phases=(Phase.explicit, Phase.reuse, Phase.generate))  # `differing` names the field: no smaller example is needed

instants = st.integers(min_value=0, max_value=2**45)
some_ids = st.builds(ids.new, instants, st.integers(0, 2**75 - 1))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_PLAIN: Mapping[Any, Strategy] = {
    int: instants,
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(),
    bool: st.booleans(),
    NoneType: st.none(),
    Any: json_values,
}


def of(kind: type, **given: Strategy) -> Strategy:
    """Records of a dataclass or a named tuple. `given` has the fields whose values their types do not describe."""
    if unknown := given.keys() - set(_names(kind)):
        raise TypeError(f"{kind.__name__} has no {', '.join(unknown)}")
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: given[name] if name in given else _values(hints[name]) for name in _names(kind)})


def differing(one: Any, other: Any) -> list[str]:
    """The fields in which two records of a class differ, as `spec.retry.jitter`. Empty for equal records."""
    return [] if one == other else list(_differing(one, other))


def _differing(one: Any, other: Any) -> Iterator[str]:
    if type(one) is not type(other) or not is_dataclass(one):
        yield ""
        return
    for field in fields(one):
        mine, others = getattr(one, field.name), getattr(other, field.name)
        if field.compare and mine != others:
            yield from (f"{field.name}.{part}".rstrip(".") for part in _differing(mine, others))


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind) if field.init] if is_dataclass(kind) else list(kind._fields)


def _values(hint: Any) -> Strategy:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return st.one_of(*map(_values, args))
    if origin is tuple:
        return st.lists(_values(args[0]), max_size=3).map(tuple)
    if origin is not None:
        return st.dictionaries(_values(args[0]), _values(args[1]), max_size=3)
    return st.sampled_from(hint) if issubclass(hint, Enum) else of(hint)
