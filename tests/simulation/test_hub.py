"""Virtual time."""

from lab.world.hub import Hub


def test_thousands_of_invocations_sleep_at_once() -> None:
    """Each one begins while the one before it goes to sleep."""
    hub, woken = Hub(0), list[int]()

    def invocation(number: int) -> None:
        hub.sleep_until(10_000 + number)
        woken.append(number)

    for number in range(3_000):
        hub.spawn(lambda number=number: invocation(number), number)  # type: ignore[misc]
    hub.run(20_000)
    assert woken == [*range(3_000)]


def test_hours_without_events_are_passed_at_once_and_in_order() -> None:
    hub, seen = Hub(0), list[tuple[str, int]]()

    def note(name: str) -> None:
        seen.append((name, hub.time))
        if name == "first":
            hub.at(hub.time + 1, lambda: note("soon"))
            hub.at(15 * 3_600_000, lambda: note("between"))

    hub.at(20 * 3_600_000, lambda: note("last"))
    hub.at(10 * 3_600_000, lambda: note("first"))
    hub.run(4 * 3_600_000)
    hub.at(5 * 3_600_000, lambda: note("added"))
    hub.run(30 * 3_600_000)
    hours = 3_600_000
    assert seen == [("added", 5 * hours), ("first", 10 * hours), ("soon", 10 * hours + 1), ("between", 15 * hours), ("last", 20 * hours)]
