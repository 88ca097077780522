"""The waits of MiniStack that the local AWS takes away, and the thread that reads streams."""

import inspect

import pytest
from ministack.core import lambda_runtime
from ministack.services import dynamodb, lambda_svc

from infra.settings import LOCAL
from local.emulator import GATHERED_S, read_streams


class End(BaseException):
    """Ends the thread."""


def read(*passes: bool | Exception) -> tuple[list[float], int]:
    """Read streams whose polls answer so. Returns the pauses, and the number of polls."""
    answers, pauses = iter(passes), list[float]()
    left = len(passes)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if not left:
            raise End

    def poll() -> bool:
        nonlocal left
        left -= 1
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(End):
        read_streams(poll, pause)
    return pauses, len(passes) - left


def test_all_batches_of_the_streams_are_read_after_each_pause() -> None:
    assert read(True, True, False, False) == ([GATHERED_S] * 3, 4)


def test_a_failed_read_is_tried_again() -> None:
    assert read(OSError("refused"), True, False) == ([GATHERED_S] * 3, 3)


def test_changes_are_gathered_as_long_as_the_local_stage_asks_for() -> None:
    assert GATHERED_S == LOCAL.batching_s


def test_ministack_still_has_the_waits() -> None:
    assert {"esm_wake", "_emit_stream_event"} <= vars(dynamodb).keys()
    assert "_poll_dynamodb_streams()" in inspect.getsource(lambda_svc._poll_loop)
    assert "_ESM_IDLE_WAKE_GAP_SECONDS" in inspect.getsource(lambda_svc._poll_loop)
    assert list(inspect.signature(lambda_runtime.Worker._drain_stderr_bounded).parameters)[1:] == [
        "first_line_wait",
        "idle_confirm",
        "hard_cap",
    ]
