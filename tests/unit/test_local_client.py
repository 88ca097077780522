"""The API client: answers, pages, errors, and repeated calls."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from local.client import ApiError, Client
from local.samples import clear_tasks

deleted: list[str] = []


class Api(BaseHTTPRequestHandler):
    """A stand-in for the API: returns the answer that the test has set for a path."""

    answers: ClassVar[dict[str, tuple[int, bytes]]] = {}
    seen: ClassVar[list[tuple[str, str | None]]] = []
    headers_sent: ClassVar[dict[str, str]] = {}
    hang_ups: ClassVar[int] = 0  # the number of next calls whose connection is closed without an answer

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Authorization")))
        if Api.hang_ups:
            Api.hang_ups -= 1
            self.close_connection = True
            return
        status, body = self.answers[self.path]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in self.headers_sent.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_DELETE(self) -> None:
        deleted.append(self.path)
        self.do_GET()

    def log_message(self, format: str, *arguments: object) -> None: ...


@pytest.fixture
def client() -> Iterator[Client]:
    Api.answers, Api.seen, Api.headers_sent, Api.hang_ups = {}, [], {}, 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield Client(f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()
    thread.join()


def wrapped(data: Any) -> tuple[int, bytes]:
    return 200, json.dumps({"success": True, "data": data}).encode()


def test_after_a_login_every_call_carries_the_token(client: Client) -> None:
    Api.answers = {"/api/v1/auth/login": wrapped({"token": "t0ken"}), "/api/v1/me/jobs/a": wrapped({"id": "a"})}
    client.login("ann", "secret")
    assert client.job("a") == {"id": "a"}
    assert Api.seen[-1] == ("/api/v1/me/jobs/a", "Bearer t0ken")


def test_many_jobs_are_posted_in_one_call(client: Client) -> None:
    done = {"accepted": 1, "refused": 1, "results": []}
    Api.answers = {"/api/v1/me/jobs/batch": (207, wrapped(done)[1])}
    assert client.post_jobs([{"message": "a"}, {"message": ""}]) == done
    assert len(Api.seen) == 1


def test_a_listing_is_read_to_its_last_page(client: Client) -> None:
    Api.answers = {
        "/api/v1/me/jobs?upcoming=true": wrapped({"jobs": [{"id": "a"}], "cursor": "next one"}),
        "/api/v1/me/jobs?upcoming=true&cursor=next+one": wrapped({"jobs": [{"id": "b"}], "cursor": None}),
    }
    assert [job["id"] for job in client.jobs(upcoming=True)] == ["a", "b"]


def test_only_sample_tasks_are_cleared_whatever_page_they_are_on(client: Client) -> None:
    deleted.clear()
    listing = "/api/v1/tasks?limit=100&tag=sample"
    Api.answers = {
        listing: wrapped({"tasks": [{"id": "a"}], "cursor": "c"}),
        listing + "&cursor=c": wrapped({"tasks": [{"id": "b"}], "cursor": None}),
        "/api/v1/tasks/a": wrapped({"id": "a"}),
        "/api/v1/tasks/b": wrapped({"id": "b"}),
    }
    clear_tasks(client)
    assert deleted == ["/api/v1/tasks/a", "/api/v1/tasks/b"]


def test_an_error_of_the_api_has_its_code_and_message(client: Client) -> None:
    refusal = {"success": False, "error": {"code": "not_found", "message": "There is no such job."}}
    Api.answers = {"/api/v1/me/jobs/a": (404, json.dumps(refusal).encode())}
    with pytest.raises(ApiError, match="404 not_found: There is no such job") as error:
        client.job("a")
    assert error.value.status == 404


def test_the_error_of_another_server_shows_its_answer(client: Client) -> None:
    Api.answers = {"/api/v1/health": (502, b"<html>Bad gateway</html>")}
    with pytest.raises(ApiError, match="Bad gateway"):
        client.health()


def test_no_answer_is_an_error_of_status_0() -> None:
    with pytest.raises(ApiError) as error:
        Client("http://127.0.0.1:1").health()
    assert error.value.status == 0


def test_an_idempotent_call_is_repeated_if_its_connection_was_closed(client: Client) -> None:
    Api.answers, Api.hang_ups = {"/api/v1/health": wrapped({"version": "1"})}, 1
    assert client.health() == {"version": "1"}
    assert len(Api.seen) == 2


def test_a_job_is_never_posted_twice(client: Client) -> None:
    Api.hang_ups = 1
    with pytest.raises(ApiError, match="no_answer"):
        client.post_job("log", {"message": "a"})
    assert len(Api.seen) == 1


@pytest.mark.parametrize("status", [302, 429, 503])
def test_an_answered_call_is_not_repeated(client: Client, status: int) -> None:
    Api.answers, Api.headers_sent = {"/api/v1/health": (status, b"{}")}, {"Retry-After": "60", "Location": "/elsewhere"}
    assert client.send("GET", "/health") == (status, {})
    assert len(Api.seen) == 1
