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
