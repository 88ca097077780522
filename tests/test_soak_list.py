"""The list of tests that only `make soak` runs names tests that exist."""

import subprocess
import sys

import pytest

from local.home import REPOSITORY
from tests.conftest import only_of_soak


@pytest.mark.long
def test_each_name_in_the_list_is_a_test() -> None:
    listed = only_of_soak()
    files = sorted({each.partition("::")[0] for each in listed})
    command = [sys.executable, "-m", "pytest", "-m", "soak", "--collect-only", *files]
    shown = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {line for line in shown if "::" in line} | {line.partition("[")[0] for line in shown}
    assert listed - found == set()
