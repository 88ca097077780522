"""The section `delay` of `make bench` in its short form. `tests/unit/test_bench_short.py` tests the other sections."""

from concurrent.futures import Future

import pytest

from bench.figures import Figure
from tests.system.conftest import HANG_S

pytestmark = pytest.mark.apart

PARTS = ("direct_steady", "direct_burst", "steady", "burst", "steady_stored")
MEASURED = ("p50_ms", "p95_ms", "p99_ms", "max_ms", "early", "lost", "duplicated", "astray")


def test_the_short_form_of_delay_runs_to_its_end(short_delays: Future[list[Figure]]) -> None:
    figures = {figure.key: figure.value for figure in short_delays.result(timeout=HANG_S)}
    expected = {f"delay.{part}.{name}" for part in PARTS for name in MEASURED}
    expected |= {f"delay.now.{name}" for name in (*MEASURED[:-1], "call_p50_ms", "call_p99_ms")}
    assert figures.keys() == expected | {"delay.warm_up_s", "delay.stored_p99_ms"}
    wrong = {key: value for key, value in figures.items() if key.endswith((".early", ".lost", ".duplicated")) and value}
    assert not wrong, "this test judges promises, not delays"
