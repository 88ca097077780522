"""The functions of CloudFront in Python answer as those in JavaScript, which run on AWS."""

import json
import shutil
import subprocess
from typing import Any

import pytest
from ministack.core.cloudfront_js import CloudFrontFunctionError

from infra.console import TELL_VIEWER, TO_INDEX
from local import viewer_functions

PATHS = ("/", "/tasks", "/tasks/a.b", "/assets/a.js", "/docs", "/docs/", "/docs/guides/keys", "/docs/guides/keys/", "/docs/a.svg", "/docsx")


def event(uri: str) -> dict[str, Any]:
    headers = {"accept": {"value": "text/html"}, "x-punctual-viewer": {"value": "forged"}}
    return {"request": {"method": "GET", "uri": uri, "headers": headers}, "viewer": {"ip": "127.0.0.1"}}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.parametrize("code", [TO_INDEX, TELL_VIEWER], ids=["to_index", "tell_viewer"])
def test_both_answer_the_same(code: str) -> None:
    events = [event(uri) for uri in PATHS]
    script = f"{code}\nconsole.log(JSON.stringify({json.dumps(events)}.map(handler)))"
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    assert [viewer_functions.evaluate(code.encode(), each) for each in events] == json.loads(done.stdout)


def test_another_function_needs_node() -> None:
    with pytest.raises(CloudFrontFunctionError, match="needs Node"):
        viewer_functions.evaluate(b"function handler(event) { return event.request; }", event("/"))
