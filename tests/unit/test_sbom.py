"""`make sbom`: the same locks give the same bills of materials."""

import json

from ops.sbom import of_console, steady
from tests.language import ROOT


def test_what_differs_from_run_to_run_is_left_out() -> None:
    part = {"name": "boto3", "version": "1.0", "purl": "pkg:pypi/boto3@1.0"}
    bill = {"serialNumber": "urn:uuid:1", "version": 1, "metadata": {"timestamp": "now", "tools": [{"name": "npm"}]}, "components": [part]}
    assert steady(bill) == {"version": 1, "metadata": {"tools": [{"name": "npm"}]}, "components": [part]}


def test_the_console_has_every_package_that_is_not_for_development_alone() -> None:
    lock = json.loads((ROOT / "console/package-lock.json").read_text())
    bill = of_console(lock)
    names = {component["name"] for component in bill["components"]}
    assert {"react", "react-dom", "@cloudscape-design/components"} <= names and "vite" not in names
    assert bill == of_console(lock)
    for component in bill["components"]:
        (digest,) = component["hashes"]
        assert len(digest["content"]) == 128 and component["purl"].startswith("pkg:npm/")
