"""The CloudFront Functions of `infra/console.py` in Python. MiniStack runs their JavaScript by Node, which is not everywhere."""

from typing import Any

from ministack.core.cloudfront_js import CloudFrontFunctionError

from lambdas._settings import VIEWER_HEADER

Event = dict[str, Any]


def evaluate(code: bytes, event: Event) -> Any:
    """Return the answer of the function with this code, as `cloudfront_js.evaluate` does."""
    text = code.decode()
    if VIEWER_HEADER in text:
        return tell_viewer(event)
    if "/index.html" in text:
        return to_index(event)
    raise CloudFrontFunctionError("this function needs Node.js, which is not installed")


def to_index(event: Event) -> Any:
    """The page of the console, or the page in the folder of the documentation."""
    request = event["request"]
    uri = request["uri"]
    if "." in uri.rpartition("/")[2]:
        return request
    in_docs = uri == "/docs" or uri.startswith("/docs/")
    if in_docs and not uri.endswith("/"):
        return {"statusCode": 301, "statusDescription": "Moved Permanently", "headers": {"location": {"value": f"{uri}/"}}}
    return request | {"uri": f"{uri}index.html" if in_docs else "/index.html"}


def tell_viewer(event: Event) -> Any:
    """The request with the address of the viewer, for the API."""
    request = event["request"]
    return request | {"headers": request["headers"] | {VIEWER_HEADER: {"value": event["viewer"]["ip"]}}}
