"""The programs of the guides for receivers: a Punctual in memory calls each as the real one does."""

from __future__ import annotations

import importlib.util
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import httpx
import pytest
from moto import mock_aws
from receiving import SECRET, LambdaContext, Sent, calls_table, function_url
from test_receiver_frameworks import check_store
from tests.language import ROOT

from punctual.errors import InvalidRequest
from punctual.receivers import Call
from punctual.testing import Answer, Memory
from punctual.testing import Call as SentCall

pytestmark = pytest.mark.filterwarnings("ignore:There is no current event loop:DeprecationWarning")
PROGRAMS = ROOT / "examples/receivers"
PAGES = {
    "guides/receive-fastapi.md": ["fastapi_app.py"],
    "guides/receive-flask.md": ["flask_app.py"],
    "guides/receive-django.md": ["django_app.py"],
    "guides/receive-lambda.md": ["lambda_app.py", "lambda_powertools.py"],
    "get-started/how-punctual-calls-you.md": ["once_in_sql.py", "redis_store.py"],
}


def test_the_pages_show_the_programs() -> None:
    for page, names in PAGES.items():
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
        for name in names:
            assert (PROGRAMS / name).read_text() in blocks, f"{page} shows another {name}"
    assert {name for names in PAGES.values() for name in names} == {path.name for path in PROGRAMS.glob("[a-z]*.py")}


def program(name: str) -> ModuleType:
    """Load a program as a module of its own."""
    found = importlib.util.spec_from_file_location(f"shown_{name}", PROGRAMS / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SIGNING_SECRET": SECRET, "CALLS_TABLE": "calls", "AWS_DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")


def call(memory: Memory, order: Any, **options: Any) -> Any:
    """Create a job for an order, run what is due, and return the job."""
    http: Any = {"url": "https://shop.example.com/orders/expire", "body": {"order": order}, "signing_secret": "hook"}
    made = memory.client.jobs.create(http=http, delay="30m", **options)
    memory.clock.advance("30m")
    return memory.client.jobs.get(made.id)


def check_program(memory: Memory, orders: dict[int, str], deliver: Callable[[SentCall], Answer] | None = None) -> None:
    """A program of a guide does its work once, waits, and gives up, as its page says. `deliver` delivers a request a second time."""
    done = call(memory, 17)
    assert done.succeeded and orders[17] == "expired"
    sent = memory.calls[-1]
    orders[17] = "open"
    again = (deliver or delivered(memory))(sent)
    assert (again.status, again.body) == (200, sent.answer) and orders[17] == "open"
    assert httpx.Headers(dict(again.headers))["Idempotent-Replayed"] == "true"

    waiting = call(memory, 18, max_attempts=1)
    assert waiting.status == "scheduled" and memory.calls[-1].status == 503
    orders[18] = "open"
    memory.clock.advance("60s")
    assert memory.client.jobs.get(waiting.id).succeeded and orders[18] == "expired"

    failed = call(memory, 19)
    assert (failed.status, failed.failure.message) == ("failed", "HTTP 422") and len(memory.calls) == 4
    assert b"there is no order 19" in memory.calls[-1].answer


def delivered(memory: Memory) -> Callable[[SentCall], Answer]:
    assert memory._called is not None
    return memory._called.call


def test_the_program_for_fastapi_is_called_in_memory() -> None:
    shown = program("fastapi_app")
    with Memory(shown.app, secrets={"hook": SECRET}) as memory:
        check_program(memory, shown.orders)


def test_the_jobs_of_the_guides_can_be_created() -> None:
    """The function of the guide for Lambda is not allowed in memory, as on a stage that lists no resources."""
    for name in ("fastapi", "flask", "django", "lambda"):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / f"docs/guides/receive-{name}.md").read_text(), re.DOTALL)
        (code,) = (block for block in blocks if block.startswith("http = "))
        by_url, _, by_arn = code.partition("\n\n")
        with Memory(secrets={"hook": SECRET}) as memory:
            exec(by_url, {"client": memory.client})
            memory.clock.advance("30m")
            (sent,) = memory.calls
            assert sent.json() == {"order": 17} and "webhook-signature" in sent.headers
            if by_arn:
                with pytest.raises(InvalidRequest, match="allowed"):
                    exec(by_arn, {"client": memory.client})


def test_the_test_of_the_guide_passes() -> None:
    shown = program("fastapi_app")
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guides/receive-fastapi.md").read_text(), re.DOTALL)[2]
    assert f'"{SECRET}"' in code
    names = vars(shown)
    exec(code, names)
    names["test_an_order_expires_once"]()


def test_the_program_for_flask_is_called_in_memory() -> None:
    shown = program("flask_app")
    with Memory(shown.app, secrets={"hook": SECRET}) as memory:
        check_program(memory, shown.orders)


DJANGO = """
import sys
sys.path[:0] = {paths!r}
from test_receiver_pages import SECRET, Memory, check_program, program
shown = program("django_app")
sys.modules[shown.__name__] = shown
shown.execute_from_command_line(["django_app.py", "createcachetable"])
with Memory(shown.application, secrets={{"hook": SECRET}}) as memory:
    check_program(memory, shown.orders)
print("called")
"""


@pytest.mark.long
def test_the_program_for_django_is_called_in_memory(tmp_path: Path) -> None:
    """In a process of its own: settings of Django are those of a process."""
    paths = [str(ROOT / path) for path in ("client/src", "server/src", "client/tests", ".")]
    settings = {"DATABASE": str(tmp_path / "shop.sqlite3"), "DJANGO_SECRET_KEY": "of-this-test"}
    command = [sys.executable, "-c", DJANGO.format(paths=paths)]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | settings, capture_output=True, text=True)
    assert done.stdout == "called\n", done.stdout + done.stderr


@pytest.fixture
def calls() -> Iterator[str]:
    with mock_aws():
        yield calls_table()


@pytest.mark.usefixtures("calls")
def test_the_function_behind_a_url_is_called_in_memory() -> None:
    shown = program("lambda_app")

    def answer(sent: SentCall) -> Answer:
        found = shown.by_url(function_url(Sent(dict(sent.headers), sent.body, sent.method), sent.path), LambdaContext())
        return Answer(found["statusCode"], found["body"].encode(), found["headers"])

    with Memory(answer=answer, secrets={"hook": SECRET}) as memory:
        check_program(memory, shown.orders, answer)


def event(key: str = "01KBBQ5V3M8R0W2Y4Z6A8C0E2G", order: int = 17, attempt: int = 1) -> dict[str, Any]:
    """The event of a job of type lambda."""
    return {"order": order, "punctual": {"job_id": key, "idempotency_key": key, "attempt": attempt}}


@pytest.mark.usefixtures("calls")
def test_the_function_of_the_guide_that_a_job_calls_runs_once() -> None:
    shown = program("lambda_app")
    first = shown.by_event(event(), LambdaContext())
    shown.orders[17] = "open"
    assert shown.by_event(event(attempt=2), LambdaContext()) == first and shown.orders[17] == "open"
    with pytest.raises(Exception, match="there is no order 19"):
        shown.by_event(event("01KBBQ5V3M8R0W2Y4Z6A8C0E2H", 19), LambdaContext())


class PowertoolsContext(LambdaContext):
    """What Powertools reads of Lambda's context."""

    function_name = "expire"
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:expire"
    aws_request_id = "r"
    memory_limit_in_mb = 128


@pytest.mark.usefixtures("calls")
def test_the_function_with_powertools_runs_once_and_again_after_a_failure() -> None:
    shown = program("lambda_powertools")
    first = shown.handler(event(), PowertoolsContext())
    shown.orders[17] = "open"
    assert shown.handler(event(attempt=2), PowertoolsContext()) == first and shown.orders[17] == "open"
    other = "01KBBQ5V3M8R0W2Y4Z6A8C0E2H"
    with pytest.raises(KeyError):
        shown.handler({"punctual": event(other)["punctual"]}, PowertoolsContext())
    assert shown.handler(event(other, attempt=2), PowertoolsContext())["job"] == other  # the failure is not remembered
    with pytest.raises(Exception, match="idempotency_key"):
        shown.handler({"order": 17}, PowertoolsContext())
    (item, _) = boto3.client("dynamodb").scan(TableName="calls")["Items"]
    assert float(item["expiration"]["N"]) > 85 * 86_400


def test_an_effect_with_the_key_in_one_transaction_happens_once() -> None:
    shown, database = program("once_in_sql"), sqlite3.connect(":memory:")
    database.executescript(
        "CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER CHECK (balance <= 100));"
        "CREATE TABLE done_calls (idempotency_key TEXT PRIMARY KEY);"
        "INSERT INTO accounts VALUES ('ann', 0);"
    )
    for key in ("a", "a", "b"):
        shown.credit(database, Call(key), "ann", 30)
    assert database.execute("SELECT balance FROM accounts").fetchone() == (60,)
    assert not shown.credit(database, Call("c"), "ann", 60)  # refused by the account: the key is not stored either
    assert database.execute("SELECT COUNT(*) FROM done_calls").fetchone() == (2,)
    database.close()


class FakeRedis:
    """The commands of redis-py that the guide uses, with their results."""

    def __init__(self) -> None:
        self._found: dict[str, bytes] = {}

    def set(self, key: str, value: str, *, ex: int, nx: bool = False) -> bool | None:
        assert ex > 0
        if nx and key in self._found:
            return None
        self._found[key] = value.encode()
        return True

    def get(self, key: str) -> bytes | None:
        return self._found.get(key)

    def delete(self, key: str) -> int:
        return int(self._found.pop(key, None) is not None)


def test_the_store_of_the_page_for_redis_is_one() -> None:
    store = program("redis_store").RedisStore(FakeRedis())
    check_store(store)


def test_the_page_shows_the_request_as_it_is_sent() -> None:
    """The block has the headers of a signed job with a key; the table has those of a run of a task with a call-back, too."""
    http: Any = {"url": "https://shop.example.com/orders/expire", "body": {"order": 17}, "signing_secret": "hook"}
    with Memory(secrets={"hook": SECRET}, now="2026-11-20T10:00:00Z") as memory:
        memory.client.jobs.create(http=http, key="order:17")
        memory.clock.advance()
        memory.client.tasks.create("Expire orders", http=http, cron="0 10 * * *", key="expire", callback={"lease_seconds": 60})
        memory.clock.advance("1d")
    (of_job, of_task) = memory.calls[:2]
    page = (ROOT / "docs/get-started/how-punctual-calls-you.md").read_text()
    (shown,) = re.findall(r"    POST /orders/expire HTTP/1\.1\n((?:    .*\n)+)\n    (.*)\n", page)
    headers = dict(re.findall(r"^    ([A-Za-z-]+): (.*)$", shown[0], re.MULTILINE))
    changing = {"idempotency-key", "punctual-job-id", "webhook-id", "webhook-timestamp", "webhook-signature"}
    connection = {"host": "shop.example.com", "content-length": str(len(of_job.body))}  # which the connection adds
    sent = {**connection, **of_job.headers}
    assert {name.lower() for name in headers} == set(sent) and shown[1].encode() == of_job.body
    assert {name: value for name, value in headers.items() if sent[name.lower()] != value}.keys() <= {
        name for name in headers if name.lower() in changing
    }
    for name in set(of_task.headers) - set(sent):
        assert f"`{name}`" in page.lower(), name


def test_the_table_of_answers_is_what_punctual_does() -> None:
    """Each status of the page, and what becomes of a job that gets it."""
    page = (ROOT / "docs/get-started/how-punctual-calls-you.md").read_text()
    rows = re.findall(r"^\| `(\d{3})`([^|]*)\| ([^|]*?) *\| (yes|no) *\|$", page, re.MULTILINE)
    assert len(rows) >= 12
    for status, more, does, used in rows:
        headers = {"Retry-After": "60"} if "Retry-After" in more else {}
        with Memory(answer=lambda call, status=status, headers=headers: Answer(int(status), b"", headers)) as memory:
            job = memory.client.jobs.create(http="https://shop.example.com/expire", max_attempts=2)
            memory.clock.advance()
            first = memory.client.jobs.get(job.id).status
            memory.clock.advance("1h")
            last = memory.client.jobs.get(job.id)
        found = {"succeeded": "succeeds", "failed": "fails at once"}.get(first, "is tried again")
        assert does.startswith(found), (status, more, does, found)
        assert used == ("yes" if last.status in ("succeeded", "failed") else "no"), (status, more, used, last.status)
