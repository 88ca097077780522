"""The names of what jobs call."""

from typing import Any

import pytest

from scheduler.model.spec import JobSpec
from scheduler.targets import called
from tests.contract import make

CALLS: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("http", {"url": "https://user:pw@api.example.com:8443/orders/7?token=x#y"}, "api.example.com:8443/orders/7", "api.example.com:8443"),
    ("http", {"url": "https://example.com"}, "example.com", "example.com"),
    ("http", {"url": "https://[::1"}, None, "http"),
    ("lambda", {"function": "arn:aws:lambda:eu-west-1:123456789012:function:orders:live"}, "orders:live", "orders:live"),
    ("sqs", {"queue": "arn:aws:sqs:eu-west-1:123456789012:orders.fifo"}, "orders.fifo", "orders.fifo"),
    ("sqs", {"queue": "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"}, "orders", "orders"),
    ("sns", {"topic": "arn:aws:sns:eu-west-1:123456789012:news"}, "news", "news"),
    ("stepfunctions", {"state_machine": "arn:aws:states:eu-west-1:123456789012:stateMachine:nightly"}, "nightly", "nightly"),
    ("eventbridge", {"bus": "arn:aws:events:eu-west-1:123456789012:event-bus/orders"}, "orders", "orders"),
    ("email", {"to": ["ann@example.com", "bob@example.com"]}, "ann@example.com", "ann@example.com"),
    ("log", {"message": "hello"}, None, "log"),
    ("gone", {}, None, "gone"),
]


@pytest.mark.parametrize(("type", "payload", "calls", "place"), CALLS)
def test_a_job_names_what_it_calls(type: str, payload: dict[str, Any], calls: str | None, place: str) -> None:
    spec = JobSpec(type, payload)
    assert (called.calls(spec), called.place(spec)) == (calls, place)


def test_a_job_of_a_named_target_names_the_target() -> None:
    spec = make.job(type="http", payload={"url": "https://example.com/a"}, target="invoices").spec
    assert (called.calls(spec), called.place(spec)) == ("invoices", "invoices")


def test_a_long_path_is_cut() -> None:
    found = called.calls(JobSpec("http", {"url": f"https://example.com/{'x' * 2_000}"}))
    assert found is not None and len(found) == called.LONGEST and found.endswith("x…")
