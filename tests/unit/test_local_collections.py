"""The garbage collections of the local AWS."""

import gc
from collections.abc import Iterator

import pytest

from local.emulator import collect_once


@pytest.fixture(autouse=True)
def _usual_collections() -> Iterator[None]:
    gc.callbacks.append(collect_once)
    yield
    gc.callbacks.remove(collect_once)
    gc.unfreeze()


def test_a_full_collection_exempts_what_survived_it() -> None:
    before, items = gc.get_freeze_count(), [{"pk": {"S": str(number)}} for number in range(1_000)]
    gc.collect()
    assert gc.get_freeze_count() - before > len(items)


def test_a_young_collection_exempts_nothing() -> None:
    before = gc.get_freeze_count()
    gc.collect(1)
    assert gc.get_freeze_count() == before
