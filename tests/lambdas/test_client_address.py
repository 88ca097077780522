"""The address that a request counts for: behind CloudFront, API Gateway sees an edge."""

from typing import Any

import pytest

from lambdas._settings import ORIGIN_HEADER, VIEWER_HEADER, Settings
from lambdas.rest.client_address import client_address
from scheduler.accounts.login import OF_ADDRESS
from tests.lambdas.gateway import World, send

SECRET = "a-secret-of-the-origin"
VIEWER = "2001:db8::7"
THROUGH_CLOUDFRONT = {ORIGIN_HEADER: SECRET, VIEWER_HEADER: VIEWER}
EDGE = "192.0.2.1"


@pytest.fixture
def world(world: World) -> World:
    world.settings = Settings(stage="test", origin_secret=SECRET)
    return world


def event(headers: Any) -> dict[str, Any]:
    return {"headers": headers, "requestContext": {"http": {"sourceIp": EDGE}}}


def test_the_viewers_address_is_believed_with_the_origin_secret() -> None:
    assert client_address(event(THROUGH_CLOUDFRONT), SECRET) == VIEWER


@pytest.mark.parametrize(
    "headers",
    [
        None,
        {},
        {VIEWER_HEADER: VIEWER},
        {**THROUGH_CLOUDFRONT, ORIGIN_HEADER: "guessed"},
        {**THROUGH_CLOUDFRONT, ORIGIN_HEADER: ""},
        {**THROUGH_CLOUDFRONT, ORIGIN_HEADER: "n\u00f6"},
        {ORIGIN_HEADER: SECRET},
    ],
)
def test_any_other_request_counts_for_the_address_that_called_the_gateway(headers: Any) -> None:
    assert client_address(event(headers), SECRET) == EDGE


@pytest.mark.parametrize("sent", ["", SECRET])
def test_a_stage_without_a_console_trusts_no_address_header(sent: str) -> None:
    assert client_address(event({ORIGIN_HEADER: sent, VIEWER_HEADER: VIEWER}), "") == EDGE


def test_a_viewer_with_wrong_passwords_locks_out_no_other_of_the_edge(world: World) -> None:
    def status(name: str, password: str, viewer: str) -> int:
        body = {"username": name, "password": password}
        return send("POST", "/auth/login", json_body=body, user=None, headers={**THROUGH_CLOUDFRONT, VIEWER_HEADER: viewer}).status

    for number in range(OF_ADDRESS):
        status(f"user-{number}", "wrong", VIEWER)
    assert status("ann", "right", VIEWER) == 429
    assert status("ann", "right", "198.51.100.7") == 200


def test_the_audit_trail_names_the_viewer(world: World) -> None:
    send("POST", "/jobs/01JD4Q8XKZ38W2M5R7T9V1C4FH/cancel", headers=THROUGH_CLOUDFRONT)
    (entry,) = send("GET", "/me/audit").data["items"]
    assert entry["address"] == VIEWER


@pytest.mark.parametrize(("sent", "believed"), [("before", True), (SECRET, True), ("before " + SECRET, False), ("", False)])
def test_after_a_rotation_both_secrets_are_accepted(sent: str, believed: bool) -> None:
    seen = client_address(event({ORIGIN_HEADER: sent, VIEWER_HEADER: VIEWER}), f"before {SECRET}")
    assert seen == (VIEWER if believed else EDGE)
