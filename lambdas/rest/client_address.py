"""The address of the client of a request: for sign-in, which counts failures by address, and for the audit trail."""

from collections.abc import Mapping
from hmac import compare_digest
from typing import Any

from lambdas._settings import ORIGIN_HEADER, VIEWER_HEADER


def client_address(event: Mapping[str, Any], origin_secret: str) -> str:
    """Return the address that CloudFront reports, if the request has an origin secret; else the one that called API Gateway.

    `origin_secret`: the secrets, separated by blanks; empty if the stage has no console, and no request comes through CloudFront.
    """
    headers = event.get("headers") or {}
    sent = str(headers.get(ORIGIN_HEADER, ""))
    if any(compare_digest(sent.encode(), known.encode()) for known in origin_secret.split()) and headers.get(VIEWER_HEADER):
        return str(headers[VIEWER_HEADER])
    return str(event["requestContext"]["http"].get("sourceIp", ""))
