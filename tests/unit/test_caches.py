"""The values that a process reads and uses for a while: one rule for the cache, whatever it has."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from scheduler.accounts import names, quota
from scheduler.accounts.names import Names
from scheduler.accounts.quota import QuotaGate
from scheduler.admission import lane_state, owner_gate, target_cache
from scheduler.admission.lane_state import LaneStateCache, pause
from scheduler.admission.owner_gate import BarredOwners
from scheduler.admission.target_cache import TargetCache
from scheduler.model.account import COGNITO, Profile, Subject
from scheduler.model.backlog import Backlog, Demand
from scheduler.model.errors import NotFound, Unavailable
from scheduler.model.job import DueEntry, JobKey, Lane, UnitKey
from scheduler.model.rules import Rules
from scheduler.pipeline import direct_path
from scheduler.pipeline.direct_path import DirectPath
from scheduler.sharing import window
from scheduler.sharing.window import Flow
from scheduler.storage.aws import secret_values, signing_keys
from scheduler.storage.aws.secret_values import StoredSecrets
from scheduler.storage.aws.signing_keys import SecretKeys
from scheduler.storage.cache import LONGEST_RETRY_MS, MOST_UNREAD, RETRY_MS, Cache
from scheduler.targets.named_target import NamedTarget
from tests.conftest import NOW, FixedClock
from tests.unit.stage import Stage, Wrapped

HOUR = 3_600_000


class Service:
    """A read of a service: it counts its calls, refuses while `refuses`, and waits for `goes_on`."""

    def __init__(self) -> None:
        self.calls, self.refuses = 0, False
        self.is_asked, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    def __call__(self, verb: Any, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        self.is_asked.set()
        assert self.goes_on.wait(60)
        if self.refuses:
            raise Unavailable
        return verb(*args, **kwargs)


class Secrets:
    """Secrets Manager with one secret of one version."""

    def get_secret_value(self, SecretId: str, VersionStage: str) -> dict[str, str]:
        return {"SecretString": "value"}


class Case(NamedTuple):
    """A cache: `look(service, clock)` returns the function that a caller calls, and which returns the cached value."""

    fresh_ms: int
    look: Callable[[Service, FixedClock], Callable[[], Any]]
    reads: int = 1  # calls of the service for one value
    value: Any = None


def secrets(service: Service, clock: FixedClock) -> Callable[[], Any]:
    stored = StoredSecrets(Wrapped(Secrets(), get_secret_value=service), "stage/")
    return lambda: stored.values("ann", "token", clock.now())


def keys(service: Service, clock: FixedClock) -> Callable[[], Any]:
    signing = SecretKeys(Wrapped(Secrets(), get_secret_value=service), "key")
    return lambda: signing.keys(clock.now())


def user_names(service: Service, clock: FixedClock) -> Callable[[], Any]:
    stage = Stage(clock=clock)
    stage.owners.add_person(Profile("1", name="ann"), Subject(COGNITO, "sub-ann"))
    stage.users = Wrapped(stage.users, profiles=service)
    known = Names(stage)
    return lambda: [*known.all().values()]


def profile(service: Service, clock: FixedClock) -> Callable[[], Any]:
    stage = Stage(clock=clock)
    stage.users.set_disabled("ann", NOW)
    stage.users = Wrapped(stage.users, owner=service)
    gate = QuotaGate(stage)
    return lambda: gate.profile("ann").disabled_at


def target(service: Service, clock: FixedClock) -> Callable[[], Any]:
    stage = Stage(clock=clock)
    stage.targets.put(None, NamedTarget("t", "log", NOW, NOW, "ada", "ada", rate=5.0))
    stage.targets = Wrapped(stage.targets, targets=service)
    cache = TargetCache(stage)

    def look() -> float | None:
        found = cache.find("t")
        return None if found is None else found.rate

    return look


def barred(service: Service, clock: FixedClock) -> Callable[[], Any]:
    stage = Stage(clock=clock)
    stage.users.set_disabled("ann", NOW)
    stage.users = Wrapped(stage.users, barred=service)
    owners = BarredOwners(stage)
    return lambda: {*owners.refresh().disabled}


def lanes(service: Service, clock: FixedClock) -> Callable[[], Any]:
    stage = Stage(clock=clock)
    pause([Lane.RETRY], None, stage)
    stage.ledger = Wrapped(stage.ledger, watched=service)
    states = LaneStateCache(stage)

    def look() -> set[Lane]:
        states.refresh()
        return {*states.paused}

    return look


def backlogs(service: Service, clock: FixedClock) -> Callable[[], Any]:
    stage = Stage(clock=clock)
    waiting = Backlog(UnitKey("2026-11-20T10:01", 0), Lane.ONE_TIME, NOW + HOUR, 1, 1.0, {"ann": Demand(1.0, 5)})
    stage.ledger.report_backlog(waiting)
    stage.ledger = Wrapped(stage.ledger, backlogs=service)
    direct = DirectPath(stage)
    return lambda: direct._waits("ann", Lane.ONE_TIME, clock.now())


def weights(service: Service, clock: FixedClock) -> Callable[[], Any]:
    stage = Stage(clock=clock, rules=Rules(windows={Lane.ONE_TIME: 2}))
    stage.users.set_weight("ann", 2.0)
    stage.users = Wrapped(stage.users, weights=service)
    flow = Flow(UnitKey("2026-11-20T10:01", 0), lambda lane, until: 0, lambda lane: 0, stage)
    entries = [DueEntry.of(JobKey(owner, f"{n}"), "slot", NOW, Lane.ONE_TIME, 1) for owner in ("ann", "ben") for n in range(6)]
    return lambda: [entry.key.owner for entry in flow.order(entries)][:6].count("ann")


CASES = {
    "secret values": Case(secret_values.CACHED_MS, secrets, 2, ["value", "value"]),
    "signing keys": Case(signing_keys.CACHED_MS, keys, 2, [b"value", b"value"]),
    "names of users": Case(names.CACHED_MS, user_names, 1, ["ann"]),
    "profiles": Case(quota.FRESH_MS, profile, 1, NOW),
    "named targets": Case(target_cache.KNOWN_MS, target, 1, 5.0),
    "barred owners": Case(owner_gate.FRESH_MS, barred, 1, {"ann"}),
    "lane states": Case(lane_state.REFRESH_MS, lanes, 1, {Lane.RETRY}),
    "weights": Case(window.WEIGHTS_MS, weights, 1, 4),
}
BACKLOGS = {"backlogs": Case(direct_path.CACHED_MS, backlogs, 1, True)}


@pytest.mark.parametrize("case", [*CASES.values(), *BACKLOGS.values()], ids=[*CASES, *BACKLOGS])
def test_a_value_is_read_again_when_it_is_as_old_as_it_may_be(case: Case, clock: FixedClock) -> None:
    service = Service()
    look = case.look(service, clock)
    assert look() == case.value and service.calls == case.reads
    clock.advance(case.fresh_ms - 1)
    assert look() == case.value and service.calls == case.reads
    clock.advance(1)
    assert look() == case.value and service.calls == 2 * case.reads


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_outage_costs_one_try_and_the_former_value_stays(case: Case, clock: FixedClock) -> None:
    service = Service()
    look = case.look(service, clock)
    look()
    clock.advance(case.fresh_ms)
    service.calls, service.refuses = 0, True
    assert [look() for _ in range(20)] == [case.value] * 20
    assert service.calls == 1


@pytest.mark.parametrize("case", [*CASES.values(), *BACKLOGS.values()], ids=[*CASES, *BACKLOGS])
def test_a_clock_that_was_set_back_makes_no_value_last_longer(case: Case, clock: FixedClock) -> None:
    service = Service()
    look = case.look(service, clock)
    look()
    clock.at -= HOUR
    look()
    assert service.calls == 2 * case.reads
    look()
    assert service.calls == 2 * case.reads


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_while_one_caller_reads_the_others_get_the_former_value(case: Case, clock: FixedClock) -> None:
    service = Service()
    look = case.look(service, clock)
    look()
    clock.advance(case.fresh_ms)
    service.calls = 0
    service.is_asked.clear()
    service.goes_on.clear()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(look)
        assert service.is_asked.wait(60)
        other = threads.submit(look)
        try:
            assert other.result(30) == case.value and service.calls == 1 and not first.done()
        finally:
            service.goes_on.set()
        assert first.result(60) == case.value


@pytest.mark.parametrize("name", ["secret values", "signing keys", "named targets"])
def test_callers_that_have_no_value_share_one_read(name: str, clock: FixedClock) -> None:
    service, case = Service(), CASES[name]
    look = case.look(service, clock)
    service.goes_on.clear()
    with ThreadPoolExecutor(8) as threads:
        looks = [threads.submit(look) for _ in range(8)]
        assert service.is_asked.wait(60)
        service.goes_on.set()
        assert [each.result(60) for each in looks] == [case.value] * 8
    assert service.calls == case.reads


class Reads:
    """A service that a cache reads: it answers each key with the number of its reads. `errors`: the next calls raise them."""

    def __init__(self, *errors: Exception | None) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.errors = list(errors)
        self.omits: set[str] = set()

    def __call__(self, keys: Sequence[str], now: int) -> dict[str, int]:
        self.calls.append(tuple(keys))
        if self.errors and (error := self.errors.pop(0)):
            raise error
        return {key: len(self.calls) for key in keys if key not in self.omits}


def test_the_pause_after_refused_reads_doubles_up_to_a_bound() -> None:
    reads, tries = Reads(*[Unavailable()] * 1_000), list[int]()
    cache = Cache("it", reads, HOUR)
    for now in range(0, 10_000, 50):
        with pytest.raises(Unavailable, match="could not read it"):
            cache.get("a", now)
        if len(reads.calls) > len(tries):
            tries.append(now)
    assert tries[:6] == [0, 100, 300, 700, 1_500, 3_100] and RETRY_MS == 100
    assert [later - before for before, later in pairwise(tries)][5:] == [LONGEST_RETRY_MS] * 3


def test_a_success_ends_the_pause() -> None:
    cache = Cache("it", reads := Reads(Unavailable(), Unavailable(), None, Unavailable()), 1_000)
    for now in (0, 100):
        with pytest.raises(Unavailable):
            cache.get("a", now)
    assert cache.get("a", 300) == 3 and cache.get("a", 1_300) == 3
    assert cache.get("a", 1_300 + RETRY_MS) == 5 and len(reads.calls) == 5


def test_a_caller_that_needs_a_newer_value_is_refused_alone() -> None:
    cache = Cache("it", reads := Reads(None, Unavailable()), HOUR)
    cache.get("a", 0)
    assert cache.get("a", 500, 500) == 1 and len(reads.calls) == 2
    assert cache.get("a", 500 + HOUR // 2) == 1 and len(reads.calls) == 2, "the value is fresh for others"


def test_without_a_back_off_a_refused_read_counts_as_a_read() -> None:
    cache = Cache("it", reads := Reads(None, Unavailable()), 1_000, backs_off=False)
    assert [cache.get("a", now) for now in (0, 1_000, 1_999, 2_000)] == [1, 1, 1, 3] and len(reads.calls) == 3


def test_an_age_of_zero_is_read_in_any_case() -> None:
    cache = Cache("it", Reads(None, None, Unavailable()), HOUR)
    assert [cache.get("a", 0, 0) for _ in range(4)] == [1, 2, 2, 4]


def test_only_old_and_unknown_keys_are_read_in_one_call() -> None:
    cache = Cache("it", reads := Reads(), 1_000)
    assert cache.get_all("ab", 0) == {"a": 1, "b": 1}
    assert cache.get_all("bcb", 500) == {"b": 1, "c": 2}
    assert cache.get_all("abc", 1_000) == {"a": 3, "b": 3, "c": 2}
    assert reads.calls == [("a", "b"), ("c",), ("a", "b")] and cache.known() == {"a": 3, "b": 3, "c": 2}


def test_an_omitted_key_was_refused() -> None:
    cache = Cache("it", reads := Reads(), 1_000)
    cache.get("a", 0)
    reads.omits = {"a", "b"}
    assert cache.get_all("ac", 1_000) == {"a": 1, "c": 2}
    with pytest.raises(Unavailable):
        cache.get("b", 1_000)
    assert cache.peek("a") == 1 and cache.peek("b") is None


def test_a_value_that_is_not_found_is_dropped() -> None:
    cache = Cache("it", Reads(None, NotFound(), Unavailable()), 1_000)
    cache.get("a", 0)
    for error in (NotFound, Unavailable):
        with pytest.raises(error):
            cache.get("a", 1_000)


def test_an_unexpected_error_goes_to_its_caller_and_changes_nothing() -> None:
    cache = Cache("it", Reads(None, ZeroDivisionError(), Unavailable(), None), 1_000)
    cache.get("a", 0)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", 1_000)
    assert [cache.get("a", 1_000), cache.get("a", 1_000 + RETRY_MS)] == [1, 4]


def test_the_value_that_was_read_first_leaves() -> None:
    cache = Cache("it", Reads(), 1_000, most=2)
    for key, now in (("a", 0), ("b", 0), ("a", 1_000), ("c", 1_000)):
        cache.get(key, now)
    assert cache.known() == {"a": 3, "c": 4}


def test_refusals_of_values_never_read_take_bounded_memory() -> None:
    cache = Cache("it", Reads(None, *[Unavailable()] * 5_000), 1_000, most=2)
    cache.get("a", 0)
    for number in range(5_000):
        with pytest.raises(Unavailable):
            cache.get(f"{number}", 0)
    assert len(cache._tries) <= MOST_UNREAD + 2 and cache.peek("a") == 1


def test_a_changed_value_is_read_again_also_after_a_read_before_the_change() -> None:
    stored = ["old"]

    def read(keys: Sequence[str], now: int) -> dict[str, str]:
        value = stored[0]
        if value == "old":
            stored[0] = "new"
            cache.forget("a")  # between the read and its answer
        return {"a": value}

    cache = Cache("it", read, HOUR)
    assert [cache.get("a", 0), cache.get("a", 1), cache.get("a", 2)] == ["old", "new", "new"]


def test_a_forgotten_value_serves_while_the_service_refuses() -> None:
    cache = Cache("it", Reads(None, Unavailable()), HOUR)
    cache.get("a", 0)
    cache.forget("a")
    assert cache.get("a", 1) == 1 and cache.get("a", 1 + RETRY_MS) == 3


def test_a_read_that_wants_its_own_value_does_not_wait_for_itself() -> None:
    depth = []

    def read(keys: Sequence[str], now: int) -> dict[str, int]:
        depth.append(keys)
        return {"a": cache.get("a", now) + 1 if len(depth) < 3 else 0}

    cache = Cache("it", read, HOUR)
    assert cache.get("a", 0) == 2


@pytest.mark.parametrize("refusal", [Unavailable(), NotFound("no such thing")])
def test_callers_that_wait_get_the_error_of_the_read(refusal: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    is_asked, waits, goes_on, calls, result = threading.Event(), threading.Event(), threading.Event(), [], Future.result

    def read(keys: Sequence[str], now: int) -> dict[str, int]:
        calls.append(keys)
        is_asked.set()
        assert goes_on.wait(60)
        raise refusal

    def noted(future: Future[Any], timeout: float | None = None) -> Any:
        waits.set()
        return result(future, timeout)

    monkeypatch.setattr(Future, "result", noted)
    cache = Cache("it", read, HOUR)
    with ThreadPoolExecutor(2) as threads:
        reader = threads.submit(cache.get, "a", 0)
        assert is_asked.wait(60)
        waiter = threads.submit(cache.get, "a", 0)
        assert waits.wait(60)
        goes_on.set()
        assert [type(each.exception(60)) for each in (reader, waiter)] == [type(refusal)] * 2
    assert len(calls) == 1


class Slow:
    """A read whose first call waits for `goes_on`. Its answers are the numbers of its calls."""

    def __init__(self) -> None:
        self.calls, self.is_asked, self.goes_on = 0, threading.Event(), threading.Event()

    def __call__(self, keys: Sequence[str], now: int) -> dict[str, int]:
        self.calls = number = self.calls + 1
        if number == 1:
            self.is_asked.set()
            assert self.goes_on.wait(60)
        return dict.fromkeys(keys, number)


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_caller_that_needs_the_newest_value_joins_no_read_in_progress(is_changed: bool) -> None:
    cache = Cache("it", read := Slow(), HOUR)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.get, "a", 0)
        assert read.is_asked.wait(60)
        if is_changed:
            cache.forget("a")
        other = threads.submit(cache.get, "a", 0, None if is_changed else 0)
        try:
            assert other.result(30) == 2
        finally:
            read.goes_on.set()
        assert first.result(60) == 1


def test_each_refused_read_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    cache = Cache("it", Reads(None, Unavailable("it is too busy")), 1_000)
    for now in (0, 1_000, 1_000):
        cache.get("a", now)
    assert [(each.getMessage(), each.__dict__["error"]) for each in caplog.records] == [("could not read it", "it is too busy")]
