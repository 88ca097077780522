"""Jobs with secrets: these reach their server, and no table, bucket, queue, log or answer of the API contains them."""

import base64
import json
import os
import secrets
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from punctual import Punctual

from infra.parameters import LIVE
from infra.settings import LOCAL
from local.home import Home
from local.receiver import Receiver
from local.stack import up
from tests import webhook_receiver
from tests.system.conftest import System, ended, queued, sent, until

pytestmark = pytest.mark.apart

LARGE = "x" * 9_000  # a response that is stored in S3


class Echo(BaseHTTPRequestHandler):
    """A server that returns every header of the request, in body and header. `/500` answers with an error, `/large` with a long body."""

    seen: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sent = {name.lower(): value for name, value in self.headers.items()}
        self.seen.append(sent | {":body": body.decode()})
        answer = (json.dumps(sent) + (LARGE if self.path == "/large" else "") + urllib.parse.quote(json.dumps(sent), safe="")).encode()
        self.send_response(500 if self.path == "/500" else 200)
        self.send_header("X-Authorization", sent.get("authorization", "none"))
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A separate stack with IAM enforced, on which executors call URLs through the fetch function, as on AWS."""
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("apart"))))
    with Receiver() as receiver, up(home, enforce_iam=True) as stack:
        alias = stack.aws.client("lambda").get_alias(FunctionName=stack.outputs["FetchFunction"], Name=LIVE)
        for lane in ("OneTime", "Retry"):
            stack.aws.set_variables(stack.outputs[f"Execute{lane}Function"], PUNCTUAL_FETCH_FUNCTION=alias["AliasArn"])
        system = System(stack, receiver)
        yield system
        assert system.denials() == []


def places(system: System, client: Punctual, jobs: list[dict[str, Any]]) -> dict[str, str]:
    """Return all stored and returned texts, by place. Secrets Manager, the only allowed place, is left out."""
    found: dict[str, str] = {}
    tables = system.aws("dynamodb")
    for name in tables.list_tables()["TableNames"]:
        pages = tables.get_paginator("scan").paginate(TableName=name)
        found[f"table {name}"] = json.dumps([item for page in pages for item in page["Items"]], default=str)
    objects = system.aws("s3")
    for bucket in (each["Name"] for each in objects.list_buckets()["Buckets"]):
        for page in objects.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for each in page.get("Contents", []):
                if "utputs" in bucket or "utputs" in each["Key"]:
                    content = objects.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
                    found[f"object {bucket}/{each['Key']}"] = content.decode(errors="replace")
    found["queues"] = queued(system)
    logs = system.aws("logs")
    for page in logs.get_paginator("describe_log_groups").paginate():
        for group in (each["logGroupName"] for each in page["logGroups"]):
            events = [event for part in logs.get_paginator("filter_log_events").paginate(logGroupName=group) for event in part["events"]]
            found[f"log {group}"] = "\n".join(event["message"] for event in events)
    found["log of the local AWS"] = system.stack.home.log.read_text(errors="replace")
    for job in jobs:
        found[f"api {job['id']}"] = json.dumps(client.jobs.get(job["id"]).raw)
        for attempt in client.jobs.get(job["id"]).raw["attempts"]:
            for kind in ("output", "log"):
                _, answer = sent(client, "GET", f"/jobs/{job['id']}/attempts/{attempt['number']}/{kind}")
                found[f"api {job['id']} {attempt['number']} {kind}"] = json.dumps(answer)
    return found


def forms(value: str) -> set[str]:
    """Return the encoded forms of a value; in base64, those for all three positions that it may have in a longer text."""
    coded = {base64.b64encode(b"x" * n + value.encode()).decode().rstrip("=")[4 * (n > 0) : -2] for n in range(3)}
    return {value, urllib.parse.quote(value, safe=""), json.dumps(value)[1:-1], *coded}


def test_secrets_reach_their_server_and_are_stored_nowhere_else(apart: System, echo: str) -> None:
    system, client = apart, apart.client()
    prefix, manager = f"{LOCAL.secret_prefix}{client.me().id}/", system.aws("secretsmanager")
    planted = {name: f"{name}-{secrets.token_urlsafe(18)}/+&" for name in ("token", "password", "key", "signing")}
    for name, value in planted.items():
        manager.create_secret(Name=prefix + name, SecretString=json.dumps({"v": value}) if name == "key" else value)

    def post(path: str, **payload: Any) -> dict[str, Any]:
        return client.jobs.create("http", {"method": "POST", "url": echo + path, **payload}, max_attempts=1).raw

    jobs = [
        post("/ok", bearer_secret="token"),
        post("/500", basic_user="ann", basic_secret="password"),
        post("/large", header_secrets={"X-Api-Key": "key#v"}, bearer_secret="token"),
        post("/ok", signing_secret="signing", body={"a": 1}),
        client.jobs.create("http", {"method": "POST", "url": "http://127.0.0.1:1/", "bearer_secret": "token"}, max_attempts=1).raw,
        post("/ok", bearer_secret="nobody-s"),
    ]
    done = ended(client, jobs, 120)
    assert [job["status"] for job in done] == ["succeeded", "failed", "succeeded", "succeeded", "failed", "failed"]
    assert "there is no secret 'nobody-s'" in done[-1]["attempts"][0]["failure"]["message"]

    sent = json.dumps(Echo.seen)
    assert f"Bearer {planted['token']}" in sent and planted["key"] in sent
    assert base64.b64encode(f"ann:{planted['password']}".encode()).decode() in sent
    (signed,) = [seen for seen in Echo.seen if "webhook-id" in seen]
    stamp = int(signed["webhook-timestamp"]) * 1000
    assert webhook_receiver.verify(signed, signed[":body"].encode(), [planted["signing"]], stamp) == jobs[3]["id"]

    until(300, lambda: any("fetch" in text for name, text in places(system, client, []).items() if "Fetch" in name))
    kept = places(system, client, done)
    assert any(name.startswith("object") for name in kept), "the large answer should be in S3"
    hits = [(name, where) for name, value in planted.items() for where, text in kept.items() if any(form in text for form in forms(value))]
    sys.stdout.write(f"\nsecrets: {len(planted)}; places searched: {len(kept)}; found in: {len(hits)}\n")
    assert hits == []
    assert any("[secret]" in text for text in kept.values()), "the server returned them, and they were removed"


def test_a_secret_of_another_owner_cannot_be_named(apart: System, echo: str) -> None:
    system = apart
    ann, bob = system.client("secret-ann"), system.client("secret-bob")
    system.aws("secretsmanager").create_secret(Name=f"{LOCAL.secret_prefix}{ann.me().id}/mine", SecretString="the secret of ann")
    payload = {"method": "POST", "url": f"{echo}/bob", "bearer_secret": "mine"}
    (job,) = ended(bob, [bob.jobs.create("http", payload, max_attempts=1).raw], 60)
    assert (job["status"], job["attempts"][0]["failure"]["kind"]) == ("failed", "permanent")
    assert "the secret of ann" not in json.dumps(Echo.seen)


def test_the_secret_of_a_named_target_stays_hidden_from_its_users(apart: System, echo: str) -> None:
    system, administrator, user = apart, apart.client(), apart.client("vault-user")
    system.aws("secretsmanager").create_secret(Name=f"{LOCAL.secret_prefix}targets/vault/door", SecretString="the secret of the vault")
    defaults = {"method": "POST", "url": f"{echo}/vault", "bearer_secret": "door"}
    administrator.request("POST", "/targets", {"name": "vault", "kind": "http", "defaults": defaults})
    (job,) = ended(user, [user.request("POST", "/jobs", {"target": "vault", "payload": {"body": {"of": "vault"}}, "max_attempts": 1})], 60)
    assert job["status"] == "succeeded"
    assert [seen["authorization"] for seen in Echo.seen if seen[":body"] == '{"of": "vault"}'] == ["Bearer the secret of the vault"]
    assert "the secret of the vault" not in json.dumps(places(system, user, [job]))
    stolen = {"type": "http", "payload": {"method": "POST", "url": f"{echo}/thief", "bearer_secret": "vault/door"}}
    status, refused = sent(user, "POST", "/jobs", stolen)
    assert status == 400 and refused["error"]["details"][0]["field"] == "payload.bearer_secret"


def test_the_fetch_function_makes_each_call_once_and_not_early(apart: System, capsys: pytest.CaptureFixture[str]) -> None:
    """The delay depends more on this machine than on Punctual, so the test prints it and only checks that no call is early."""
    client, receiver = apart.client(), apart.receiver
    due = [round(time.time() * 1000) + 8_000 + n * 200 for n in range(25)]
    posted = [
        client.jobs.create(
            "http", {"method": "POST", "url": receiver.url(f"/ok/apart-{at}")}, execute_at=datetime.fromtimestamp(at / 1000, UTC)
        ).raw
        for at in due
    ]
    assert {job["status"] for job in ended(client, posted, 120)} == {"succeeded"}
    calls = [receiver.calls(f"/ok/apart-{at}") for at in due]
    late = sorted(first[0].at - at for first, at in zip(calls, due, strict=True))
    with capsys.disabled():
        sys.stdout.write(f"\ncalls of the fetch function, ms after their instant: p50 {late[12]}, max {late[-1]}\n")
    assert all(len(each) == 1 for each in calls) and late[0] >= 0
