"""A server that only `fetch-private` reaches, on a stack that is deployed with the option `network`, with IAM enforced.

The private network is a second address of loopback: the local AWS connects no function to a network. `fetch` has the rules that it has on
AWS, so it refuses that address.
"""

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from punctual import ApiError

from infra.parameters import LIVE
from local.aws import LocalAws
from local.deploy import deploy
from local.home import Home
from local.receiver import Receiver
from local.stack import up
from tests.system.conftest import System, ended

pytestmark = pytest.mark.apart

ADDRESS = "127.0.0.2"
OPTIONS = f"""
[network]
subnets = ["subnet-0a1b2c3d"]
security_groups = ["sg-0a1b2c3d"]
allow = ["{ADDRESS}", "*.internal.example.com"]
"""


class Inner(BaseHTTPRequestHandler):
    """The server in the private network."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers["Punctual-Job-Id"])
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"inner")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer((ADDRESS, 0), Inner)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("network"))))
    options = tmp_path_factory.mktemp("options") / "local.toml"
    options.write_text(OPTIONS)

    def deployed(home: Home, aws: LocalAws) -> dict[str, str]:
        return deploy(home, aws, options)

    with Receiver() as receiver, up(home, enforce_iam=True, deployment=deployed) as stack:
        fetch = stack.aws.client("lambda").get_alias(FunctionName=stack.outputs["FetchFunction"], Name=LIVE)
        stack.aws.set_variables(stack.outputs["FetchFunction"], PUNCTUAL_RULES="{}")
        for lane in ("OneTime", "Retry"):
            stack.aws.set_variables(stack.outputs[f"Execute{lane}Function"], PUNCTUAL_FETCH_FUNCTION=fetch["AliasArn"])
        system = System(stack, receiver)
        yield system
        assert system.denials() == []


def ran(system: System, **job: Any) -> dict[str, Any]:
    client = system.client()
    (found,) = ended(client, [client.jobs.create(max_attempts=1, **job).raw], 60)
    return found


def test_a_private_target_reaches_what_no_other_job_reaches(apart: System, port: int) -> None:
    url = f"http://{ADDRESS}:{port}/"
    apart.client().targets.create("inner", "http", defaults={"url": url}, network="private", allow=[ADDRESS])
    job = ran(apart, target="inner")
    assert (job["status"], Inner.seen) == ("succeeded", [job["id"]]), job
    refused = ran(apart, type="http", payload={"url": url})
    apart.client().targets.create("outer", "http", defaults={"url": url})
    for job in (refused, ran(apart, target="outer")):
        assert job["status"] == "failed" and "public addresses only" in job["reason"], job
    assert len(Inner.seen) == 1


def test_a_name_that_resolves_to_another_address_is_not_called(apart: System) -> None:
    """Each name is resolved in the function, and the address is checked to which it then connects."""
    apart.client().targets.create("names", "http", network="private", allow=[ADDRESS])
    job = ran(apart, target="names", payload={"url": apart.receiver.url("/private").replace("127.0.0.1", "localhost")})
    assert job["status"] == "failed" and "the option network both list" in job["reason"], job
    assert apart.receiver.calls("/private") == []


def test_a_list_beyond_the_option_is_refused(apart: System) -> None:
    with pytest.raises(ApiError, match="is not within the option network") as refused:
        apart.client().targets.create("wide", "http", network="private", allow=["127.0.0.0/8"])
    assert refused.value.status == 400
