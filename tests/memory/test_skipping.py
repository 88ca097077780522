"""Minutes in which nothing is due are left out. That changes nothing but the time that a test takes."""

import time
from datetime import timedelta
from typing import Any

import pytest
from punctual.testing import Answer, Call, Memory

NOW = "2026-11-20T10:00:30Z"
HOURLY: Any = {"cron": "0 * * * *"}


def answer(call: Call) -> Answer:
    """The first two attempts of `/flaky` fail, and calls of `/slow` take a minute."""
    fails = call.path == "/flaky" and int(call.headers["punctual-attempt"]) < 3
    return Answer(503 if fails else 200, takes=60 if call.path == "/slow" else 0)


def scene(*, skips: bool) -> tuple[list[tuple[str, str, str]], int]:
    """Return all calls of eight hours with instant, URL and attempt, and the number of rounds."""
    made: dict[str, Any] = {
        "near": {"delay": "2m"},
        "far": {"delay": "3h17m"},
        "flaky": {"delay": "50m", "max_attempts": 5, "retry": {"base_seconds": 900, "jitter": "none"}},
        "silent": {"delay": "1h", "callback": {"lease_seconds": 600}, "max_attempts": 2, "retry": {"base_seconds": 60, "jitter": "none"}},
        "expired": {"delay": "4h", "expires_at": "2026-11-20T16:00:00Z"},
    }
    with Memory(answer=answer, now=NOW, skips=skips) as memory:
        client = memory.client
        for name, options in made.items():
            client.jobs.create(http=f"https://example.com/{name}", **options)
        rate: Any = {"rate": "47 minutes"}
        zone: Any = {"cron": "15 12-14 * * *", "time_zone": "Europe/Lisbon"}
        slow: Any = {"url": "https://example.com/slow", "timeout_seconds": 600}
        client.tasks.create("hourly", http="https://example.com/hourly", schedule=HOURLY)
        client.tasks.create("rate", http="https://example.com/rate", schedule=rate)
        client.tasks.create("zone", http=slow, schedule=zone, timeout_seconds=600)
        memory.clock.advance("2h10m20s")
        client.jobs.create(http="https://example.com/later", delay="9m")
        for number in range(3):
            client.jobs.create("http", slow | {"url": f"https://example.com/slow?{number}"}, ordering_key="k", delay="6m")
            memory.clock.advance(0.001)  # so that the first one is the first
        memory.clock.advance("1h")
        client.system.pause(all=True)
        client.jobs.create(http="https://example.com/paused", delay="30m")
        memory.clock.advance("2h")
        client.system.resume()
        memory.clock.advance("2h50m")
        return [(call.at.isoformat(), call.url, call.headers["punctual-attempt"]) for call in memory.calls], memory._stage.rounds


def test_leaving_out_empty_minutes_changes_no_start() -> None:
    (every, all_minutes), (some, few) = scene(skips=False), scene(skips=True)
    assert sorted(some) == sorted(every) and len(every) > 30
    assert {url.rpartition("/")[2] for _, url, _ in every} >= {
        "near",
        "far",
        "flaky",
        "silent",
        "later",
        "paused",
        "hourly",
        "rate",
        "slow",
    }
    assert few < all_minutes


def alone(kind: str, *, skips: bool) -> list[str]:
    """Return the instants of the calls of nothing but this."""

    def follow(call: Call) -> int:
        if kind == "follower" and call.path == "/first":
            memory.client.jobs.create(http="https://example.com/second", execute_at="2026-11-20T18:10:00Z")
        return 503 if kind in ("retry", "slow retry") and len(memory.calls) < 3 else 200

    with Memory(answer=follow, now=NOW, skips=skips, takes=800 if kind == "slow retry" else 0) as memory:
        create = memory.client.jobs.create
        memory.clock.advance("1h")
        if kind in ("job", "late job"):
            create(http="https://example.com/", execute_at="2026-11-20T18:00:00Z")
        elif kind == "follower":
            create(http="https://example.com/first", delay="1h")
        elif kind == "retry":
            create(http="https://example.com/", max_attempts=5, retry={"base_seconds": 3_000, "jitter": "none", "cap_seconds": 20_000})
        elif kind == "slow retry":
            slow: Any = {"url": "https://example.com/", "timeout_seconds": 840}
            create(http=slow, delay="20m", timeout_seconds=840, max_attempts=5, retry={"base_seconds": 400, "jitter": "none"})
        elif kind == "silent":
            create(
                http="https://example.com/", callback={"lease_seconds": 3_000}, max_attempts=3, retry={"base_seconds": 60, "jitter": "none"}
            )
        else:
            schedule: Any = {"cron": "7 * * * *"} if kind == "hourly" else {"cron": "30 4 * * *", "time_zone": "Europe/Berlin"}
            memory.client.tasks.create(kind, http="https://example.com/", schedule=schedule)
        memory.clock.advance("10s")
        if kind == "late job":  # into a time that the clock would have left out, twice
            create(http="https://example.com/", execute_at="2026-11-20T15:00:00Z")
            memory.clock.advance("1h")
            create(http="https://example.com/", execute_at="2026-11-20T13:00:00Z")
        memory.clock.advance("4d" if kind in ("hourly", "daily") else "8h")
        return [call.at.isoformat() for call in memory.calls]


@pytest.mark.parametrize(
    "kind",
    [
        "job",
        "late job",
        "follower",
        "retry",
        "slow retry",
        "silent",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ("daily", "hourly")),
    ],
)
def test_each_kind_alone_starts_at_the_same_instants(kind: str) -> None:
    some, every = alone(kind, skips=True), alone(kind, skips=False)
    assert some == every and len(every) >= {"daily": 4, "hourly": 95, "late job": 3, "job": 1}.get(kind, 2)


def test_a_day_without_jobs_has_hardly_a_round() -> None:
    with Memory(now=NOW) as memory:
        memory.clock.advance("30d")
        assert memory._stage.rounds < 40
        memory.client.jobs.create(http="https://example.com/", delay="3d")
        memory.clock.advance("3d")
        assert len(memory.calls) == 1


@pytest.mark.long
def test_a_year_of_an_hourly_task_takes_seconds() -> None:
    before = loops_s()
    with Memory(now="2026-11-20T10:30:00Z") as memory:
        memory.client.tasks.create("hourly", http="https://example.com/hourly", schedule=HOURLY)
        began = time.process_time()
        memory.clock.advance("365d")
        took = time.process_time() - began
    first = memory.calls[0].at
    assert [call.at for call in memory.calls] == [first + timedelta(hours=hour) for hour in range(8_760)]
    assert took < 160 * max(before, loops_s()), f"{took:.1f} s; some 100 times the loop, quiet"


def loops_s() -> float:
    """Processor seconds for five million additions, which tell how fast this machine is at the moment."""
    began, total = time.process_time(), 0
    for number in range(5_000_000):
        total += number
    return time.process_time() - began
