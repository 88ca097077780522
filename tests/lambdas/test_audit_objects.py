"""Each entry of the audit trail names the object that its request changed."""

import json
import re
from pathlib import Path

import pytest

from lambdas.rest.audit_trail import _OBJECTS

API = json.loads((Path(__file__).parents[2] / "docs/reference/openapi.json").read_text(encoding="utf-8"))["paths"]
CHANGES = sorted(
    (method, path)
    for path, operations in API.items()
    for method in operations
    if method != "get" and "{" in path and "/ping/" not in path  # a ping is the token's, and in no trail
)


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_a_parameter_of_its_path_names_what_a_request_changes(method: str, path: str) -> None:
    assert set(re.findall(r"\{(\w+)\}", path)) & set(_OBJECTS), "the entry would have no object"
