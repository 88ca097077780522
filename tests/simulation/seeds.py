"""Seeds of a test: a few in the fast lane, some among the long tests, and most in `make soak`."""

from collections.abc import Iterable, Sequence

import pytest

LONG, SOAK = pytest.mark.long, pytest.mark.soak


def each(fast: Iterable[int], long: Iterable[int], soak: Iterable[int] = ()) -> pytest.MarkDecorator:
    """A test for each `seed`."""
    marked = [pytest.param(seed, marks=mark) for seeds, mark in ((long, LONG), (soak, SOAK)) for seed in seeds]
    return pytest.mark.parametrize("seed", [*fast, *marked])


def many(long: Sequence[int], soak: Sequence[int]) -> pytest.MarkDecorator:
    """Two tests, each for all of its `seeds`."""
    return pytest.mark.parametrize("seeds", [pytest.param(long, marks=LONG), pytest.param(soak, marks=SOAK)], ids=["long", "soak"])
