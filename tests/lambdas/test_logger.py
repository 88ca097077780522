"""The lines of the log: those of Powertools' own formatter, which takes longer."""

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from lambdas._logger import Lines


def line(formatter: type[LambdaPowertoolsFormatter], record: logging.LogRecord) -> Any:
    made = formatter(json_deserializer=str)
    made.append_keys(location=None, service="execute", sampling_rate=None, request_id="r-1")
    return list(json.loads(made.format(logging.makeLogRecord(record.__dict__))).items())


def record(message: object, *args: object, extra: Mapping[str, object] | None = None, error: bool = False) -> logging.LogRecord:
    try:
        raise KeyError("a")
    except KeyError:
        about = sys.exc_info() if error else None
    return logging.getLogger("scheduler").makeRecord("scheduler", logging.WARNING, "", 0, message, args, about, extra=extra)


@pytest.mark.parametrize(
    "logged",
    [
        record("a line"),
        record("%s of %d", "é", 2, extra={"job_id": "job_1", "attempt": 1}),
        record("100 %", extra={"nothing": None, "empty": [], "more": {"a": {1: 2}}}),
        record('{"a": 1}', extra={"service": "another"}),
        record({"a": 1}, extra={"job_id": "job_1"}),
        record("it raised", extra={"job_id": "job_1"}, error=True),
    ],
)
@pytest.mark.parametrize("trace", ["", "Root=1-2-3;Parent=4"])
def test_a_line_is_the_one_of_powertools(logged: logging.LogRecord, trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", trace)
    assert line(Lines, logged) == line(LambdaPowertoolsFormatter, logged)
