"""On Lambda an import makes the clients that the first invocation needs, and elsewhere it makes none. Each case is a fresh process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
MADE = {
    "execute": (["dynamodb", "sqs"], "BatchExecuteStatement"),
    "worker": (["dynamodb", "sns", "sqs"], "PublishBatch"),
    "tick": (["dynamodb", "sqs"], "SendMessageBatch"),
    "api": (["dynamodb", "sqs"], "PutItem"),
    "fetch": (["certificates"], None),
}


def first(verb: str, **environment: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.lambdas.first_invocation", verb]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("verb", MADE)
def test_the_first_invocation_on_lambda_makes_no_client(verb: str) -> None:
    found = first(verb, AWS_LAMBDA_FUNCTION_NAME=f"punctual-{verb}")
    made, call = MADE[verb]
    assert (sorted(found["at_import"]), found["at_call"]) == (made, [])
    assert call is None or found["calls"][call]  # the invocation did its work
    assert found["collects"] == [True, True]  # the collector stands still until the import ends


@pytest.mark.parametrize("verb", ["execute", "worker", "fetch"])
def test_an_import_outside_lambda_makes_no_client(verb: str) -> None:
    found = first(verb)
    assert (found["at_import"], sorted(found["at_call"])) == ([], MADE[verb][0])
    assert found["collects"] == [True, False]
