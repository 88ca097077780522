"""Requests to a stage in memory leave the composition root of the process as it was."""

from punctual.testing import Memory

from lambdas import _runtime


def test_the_ports_of_the_process_are_its_own_again_after_a_request() -> None:
    before = _runtime.api
    with Memory() as memory:
        assert memory.client.health().raw
    assert _runtime.api is before
