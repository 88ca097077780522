"""The rows of the first hour that run by themselves, on the local AWS: each makes what it needs, judges it, and deletes it."""

from typing import Any

import boto3
import pytest

from prove import answers, first_hour
from prove.cleanup import Cleanup
from prove.first_hour import Hour, Outcome
from prove.place import Place


@pytest.mark.parametrize("key", ["remove", "refused-item", "new-item", "sort-key-filter"])
def test_a_row_passes_on_the_local_aws_and_leaves_nothing(local_aws: str, key: str) -> None:
    def client(service: Any, **_options: Any) -> Any:
        return boto3.client(service, endpoint_url=local_aws)

    cleanup = Cleanup()
    chosen = [check for check in answers.CHECKS if check.key == key]
    ((_, seen),) = first_hour.run(chosen, Hour(Place("local", "us-east-1", {}, "", client), f"prove-{key}", cleanup))
    assert seen.outcome is Outcome.PASS, seen.note
    assert len(cleanup.things) == 1 and cleanup.run() == []
    assert not [name for name in client("dynamodb").list_tables()["TableNames"] if name.startswith("prove-")]
