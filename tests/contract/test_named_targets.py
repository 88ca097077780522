"""The registry of named targets, what of their limits is in use, and the breakers: the same in memory and on DynamoDB."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler import breaker
from scheduler.limits import Place, Usage
from scheduler.model import JobKey, Lane, LaneState
from scheduler.named_target import NamedTarget
from scheduler.ports import Ledger, Targets, Watched
from tests.contract.make import NOW


def target(name: str = "invoices", **fields: Any) -> NamedTarget:
    return NamedTarget(name, "http", NOW, NOW, "ada", "bob", **fields)


WHOLE = target(
    defaults={"url": "https://example.com", "headers": {"X-Käse": "1"}},
    locked=("url",),
    payload_schema={"type": "object", "properties": {}},
    rate=0.5,
    concurrency=5,
    description="a place",
    enabled=False,
)


@pytest.mark.parametrize("wanted", [target(), WHOLE])
def test_a_target_comes_back_as_it_was_registered(targets: Targets, wanted: NamedTarget) -> None:
    assert targets.targets(["invoices"]) == {} and targets.all() == []
    assert targets.put(None, wanted)
    assert targets.targets(["invoices", "other", "invoices"]) == {"invoices": wanted}


def test_all_targets_are_listed_by_name(targets: Targets) -> None:
    for name in ("b", "a", "c"):
        targets.put(None, target(name))
    assert [each.name for each in targets.all()] == ["a", "b", "c"]


def test_a_target_changes_only_for_who_has_seen_its_last_change(targets: Targets) -> None:
    first, second = target(), target(version=2, rate=2.0)
    assert targets.put(None, first) and targets.put(None, first), "an answer may be lost"
    assert not targets.put(None, target(rate=9.0))
    assert targets.put(first, second) and targets.put(first, second)
    assert not targets.put(first, target(version=2, rate=3.0))
    assert not targets.delete(first)
    assert targets.delete(second) and not targets.delete(second)
    assert not targets.put(second, target(version=3))
    assert targets.all() == []


USAGE = Usage("invoices", 1_795_000_000_000_123, 1_795_000_000_000_122, (Place(JobKey("ada#b", "j1"), 3, NOW, NOW + 9),), 120, 1, "j1#3")


def test_a_usage_changes_only_for_who_has_seen_its_last_change(targets: Targets) -> None:
    none, second = Usage("invoices"), replace(USAGE, version=2, places=())
    assert targets.usages(["invoices"]) == {}
    assert targets.use([(none, USAGE)]) == [True]
    assert targets.use([(none, USAGE)]) == [True], "an answer may be lost"
    assert targets.use([(none, replace(USAGE, took_ms=7))]) == [False]
    assert targets.usages(["invoices", "other"]) == {"invoices": USAGE}
    other = Usage("other", version=1)
    assert targets.use([(USAGE, second), (Usage("other"), other)]) == [True, True]
    assert targets.use([(USAGE, replace(second, took_ms=7)), (Usage("third", version=4), Usage("third", version=5))]) == [False, False]
    assert targets.usages(["invoices", "other", "third"]) == {"invoices": second, "other": other}


def test_a_deleted_target_leaves_no_usage_to_one_that_takes_its_name(targets: Targets) -> None:
    targets.put(None, target())
    targets.use([(Usage("invoices"), USAGE)])
    targets.delete(target())
    assert targets.usages(["invoices"]) == {}


def test_breakers_are_read_beside_the_lanes_and_only_while_they_are_not_closed(ledger: Ledger) -> None:
    circuit = "host example.com:8080"
    opened = breaker.opened(circuit, NOW)
    half = replace(opened, probe_until=NOW + 9, version=2)
    ledger.set_lane_state(LaneState(Lane.RETRY, paused_at=NOW))
    assert ledger.watched() == Watched({Lane.RETRY: LaneState(Lane.RETRY, paused_at=NOW)}, {})
    assert ledger.set_breaker(None, opened) and not ledger.set_breaker(None, opened), "one of them opens it"
    assert ledger.watched().breakers == {circuit: opened}
    assert ledger.lane_states() == {Lane.RETRY: LaneState(Lane.RETRY, paused_at=NOW)}
    assert ledger.set_breaker(opened, half) and not ledger.set_breaker(opened, half), "one of them probes"
    assert ledger.watched().breakers == {circuit: half}
    assert not ledger.set_breaker(opened, None)
    assert ledger.set_breaker(half, None)
    assert ledger.watched().breakers == {}
