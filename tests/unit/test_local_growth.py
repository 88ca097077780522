"""The number of batches of a queue that the local AWS runs at once."""

from local.emulator import EVERY_S, FIRST, Growth

MAPPING = {"UUID": "m1"}


class Local:
    """A function with `running` processes, all of which are busy, and a mapping that may run `most` batches."""

    def __init__(self, running: int, most: int = 40) -> None:
        self.running, self.at = running, 1_000.0
        growth = Growth(lambda config: self.running, lambda: self.at)
        self._limit = growth.wrap(lambda mapping, function, config, queue=None: most, lambda mapping_id: self.running)

    def limit(self) -> int:
        return self._limit(MAPPING, {}, {"FunctionName": "f"}, None)


def test_the_first_executors_of_a_queue_start_at_once() -> None:
    assert [Local(running).limit() for running in (0, FIRST - 1)] == [FIRST, FIRST]


def test_warm_executors_all_take_batches_and_one_more_may_start() -> None:
    assert Local(12).limit() == 13


def test_after_one_more_the_next_has_to_wait() -> None:
    local = Local(12)
    assert local.limit() == 13
    local.running = 13
    assert local.limit() == 13
    local.at += EVERY_S
    assert local.limit() == 14


def test_the_limit_of_the_mapping_applies() -> None:
    assert Local(0, most=2).limit() == 2
    assert Local(12, most=12).limit() == 12


def test_idle_executors_are_used_before_another_starts() -> None:
    growth = Growth(lambda config: 12, lambda: 1_000.0)
    assert growth.wrap(lambda *call: 40, lambda mapping_id: 11)(MAPPING, {}, {}) == 12
