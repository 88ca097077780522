"""Traces on a stack of their own with the option `traces`: a collector on loopback sees one trace from the client to the receiver."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from punctual import Punctual

from local.deploy import deploy
from local.home import Home
from local.receiver import Receiver
from local.stack import up
from tests.system.conftest import System, ended, until

pytestmark = pytest.mark.apart

SECRET, KEY = "collector", "s3cret-key"
CLIENT = SpanContext(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, False, TraceFlags(1))
TRACE, SPAN = f"{CLIENT.trace_id:032x}", f"{CLIENT.span_id:016x}"
Span = dict[str, Any]


class Collector(ThreadingHTTPServer):
    """An endpoint of OTLP. While it is `away` it answers 503."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans: list[Span] = []
        self.keys: set[str | None] = set()
        self.away = False

    def of(self, job: str) -> dict[str, list[Span]]:
        """The spans of a job, by their kinds, each once: an end may be delivered twice."""
        found: dict[str, Span] = {}
        for span in list(self.spans):
            if values(span)["messaging.message.id"] == job:
                found[span["spanId"]] = span
        return {name: [span for span in found.values() if span["name"].startswith(name)] for name in ("create", "wait", "process")}


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.add(self.headers.get("X-Key"))
        if not self.server.away:
            self.server.spans += document["resourceSpans"][0]["scopeSpans"][0]["spans"]
        self.send_response(503 if self.server.away else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


def values(span: Span) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    made = Collector()
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[System]:
    folder = Path(os.path.realpath(tmp_path_factory.mktemp("traced")))
    options = folder / "options.toml"
    url = f"http://127.0.0.1:{collector.server_address[1]}/v1/traces"
    options.write_text(f'[traces]\nendpoint = "{url}"\nheaders_secret = "{SECRET}"\n')
    with (
        Receiver() as receiver,
        up(Home(folder / "home"), enforce_iam=True, deployment=lambda home, aws: deploy(home, aws, options)) as stack,
    ):
        stack.aws.client("secretsmanager").create_secret(Name=SECRET, SecretString=json.dumps({"X-Key": KEY}))
        system = System(stack, receiver)
        yield system
        assert system.denials() == []


@pytest.fixture
def client(traced: System) -> Iterator[Punctual]:
    """A client in a program whose active span is `CLIENT`."""
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(CLIENT)))
    yield traced.client()
    context.detach(token)


def received(system: System, path: str) -> list[str]:
    """The contexts that the receiver got, as `trace/span`."""
    found = ({name.lower(): value for name, value in call.headers.items()}.get("traceparent", "--") for call in system.receiver.calls(path))
    return ["/".join(parent.split("-")[1:3]) for parent in found]


def test_one_trace_leads_from_the_client_to_the_receiver(traced: System, collector: Collector, client: Punctual) -> None:
    job = client.jobs.create(http=traced.receiver.url("/ok/traced")).raw
    assert job["traceparent"] == f"00-{TRACE}-{SPAN}-01"
    ended(client, [job], 60)
    until(60, lambda: all(collector.of(job["id"]).values()))
    (create,), (wait,), (attempt,) = collector.of(job["id"]).values()
    assert {span["traceId"] for span in (create, wait, attempt)} == {TRACE}
    assert (create["parentSpanId"], wait["parentSpanId"], attempt["parentSpanId"]) == (SPAN, create["spanId"], wait["spanId"])
    assert received(traced, "/ok/traced") == [f"{TRACE}/{attempt['spanId']}"], "the receiver's span is a child of the attempt's"
    assert (values(attempt)["http.response.status_code"], values(attempt)["punctual.outcome"]) == ("200", "succeeded")
    assert collector.keys == {KEY}


def test_a_retry_links_to_the_attempt_before(traced: System, collector: Collector, client: Punctual) -> None:
    retry = {"base_seconds": 1, "jitter": "none"}
    job = client.jobs.create(http=traced.receiver.url("/status/503/traced"), max_attempts=2, retry=retry).raw
    ended(client, [job], 60)
    until(60, lambda: len(collector.of(job["id"])["process"]) == 2)
    first, second = sorted(collector.of(job["id"])["process"], key=lambda span: int(span["startTimeUnixNano"]))
    (link,) = second["links"]
    assert "links" not in first and (link["traceId"], link["spanId"]) == (first["traceId"], first["spanId"])
    assert first["parentSpanId"] == second["parentSpanId"] and values(second)["error.type"] == "503"
    assert received(traced, "/status/503/traced") == [f"{TRACE}/{span['spanId']}" for span in (first, second)]


def test_each_run_of_a_task_has_a_trace_of_its_own(traced: System, collector: Collector, client: Punctual) -> None:
    task = client.tasks.create("Traced", "log", {"message": "m"}, schedule={"cron": "0 0 1 1 *"}).raw
    runs = [client.request("POST", f"/tasks/{task['id']}/run", {}) for _ in range(2)]
    ended(client, runs, 60)
    until(60, lambda: all(collector.of(run["id"])["process"] for run in runs))
    traces = {span["traceId"] for run in runs for spans in collector.of(run["id"]).values() for span in spans}
    assert len(traces) == 2 and TRACE not in traces and not any(collector.of(run["id"])["create"] for run in runs)


def test_a_collector_that_is_away_stops_no_job(traced: System, collector: Collector, client: Punctual) -> None:
    collector.away = True
    jobs = [client.jobs.create(message="m", events=True).raw for _ in range(3)]
    assert {job["status"] for job in ended(client, jobs, 60)} == {"succeeded"}
    logs = traced.aws("logs")
    groups = [each["logGroupName"] for page in logs.get_paginator("describe_log_groups").paginate() for each in page["logGroups"]]
    (group,) = [name for name in groups if "nnounce" in name]
    until(60, lambda: logs.filter_log_events(logGroupName=group, filterPattern="SpansLost")["events"])
