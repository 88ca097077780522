"""`punctual.testing`: the real API and engine in memory, with a clock that a test moves."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from punctual import Conflict, InvalidRequest, InvalidSignature, NotAllowed, NotFound, Punctual, WaitTimeout, verify_signature
from punctual.testing import Answer, Call, Memory, recognized

NOW = "2026-11-20T10:00:00Z"
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
URL = "https://shop.example.com/expire/17"
SECRET = "whsec_" + "c2VjcmV0IG9mIHRoZSBleGFtcGxlLCAzMiBieXRlcw=="
StartResponse = Callable[[str, list[tuple[str, str]]], Any]


def minutes(memory: Memory) -> list[float]:
    """When each call came, in minutes from the start."""
    return [(call.at - START) / timedelta(minutes=1) for call in memory.calls]


def test_an_advance_runs_what_is_due_in_order_at_its_instant() -> None:
    with Memory(now=NOW) as memory:
        for minute in (30, 5, 12):
            memory.client.jobs.create(http=f"{URL}?{minute}", delay=f"{minute}m")
        memory.clock.advance("4m59s")
        assert memory.calls == []
        memory.clock.advance("25m")
        assert minutes(memory) == [5, 12]
        memory.clock.advance(timedelta(seconds=1))
        assert minutes(memory) == [5, 12, 30]
        assert [call.url[-2:] for call in memory.calls] == ["?5", "12", "30"]
        assert memory.clock.now == START + timedelta(minutes=30)


def test_jobs_of_a_key_keep_its_limit() -> None:
    with Memory(now=NOW) as memory:
        jobs = [memory.client.jobs.create(http=URL, limit={"key": "shop", "rate": 10, "period": "1m"}) for _ in range(30)]
        memory.clock.advance("30s")
        reasons = [found.reason or "" for job in jobs if not (found := memory.client.jobs.get(job.id)).succeeded]
        assert len(reasons) == 30 - len(memory.calls) > 20  # which ones are first is decided by their ids: all are of one instant
        assert all(reason.startswith("limit: waits for key shop (10 per 1m) since 2026-11-20T10:00:") for reason in reasons)
        memory.clock.advance("3m")
        assert len(memory.calls) == 30
        assert all(0 <= 60 * minute - 6 * number < 7 for number, minute in enumerate(minutes(memory)))


def test_a_job_for_now_runs_with_the_next_advance_however_short() -> None:
    with Memory(now=NOW) as memory:
        job = memory.client.jobs.create(http=URL)
        assert memory.calls == [] and job.status == "queued"
        memory.clock.advance()
        assert minutes(memory) == [0] and memory.client.jobs.get(job.id).succeeded


def test_a_wait_for_a_job_moves_the_clock_and_not_the_test() -> None:
    with Memory(now=NOW) as memory:
        began = time.monotonic()
        done = memory.client.jobs.wait(memory.client.jobs.create(message="hello", delay="2h").id, poll=60)
        assert done.output == "hello" and memory.clock.now >= START + timedelta(hours=2)
        assert time.monotonic() - began < 60
        later = memory.client.jobs.create(message="hello", delay="2h")
        with pytest.raises(WaitTimeout):
            memory.client.jobs.wait(later.id, timeout=5)


def test_the_asynchronous_client_uses_the_same_stage() -> None:
    async def scene(memory: Memory) -> None:
        job = await memory.async_client.jobs.create(http=URL, delay=60, key="order-17")
        assert memory.client.jobs.get(key="order-17").id == job.id
        assert (await memory.async_client.jobs.wait(job.id)).succeeded

    with Memory(now=NOW) as memory:
        asyncio.run(scene(memory))
        assert minutes(memory) == [1]


@pytest.mark.parametrize("wrong", ["-1s", -1, timedelta(seconds=-1)])
def test_the_clock_does_not_go_back(wrong: Any) -> None:
    with Memory(now=NOW) as memory:
        with pytest.raises(ValueError, match="cannot go back"):
            memory.clock.advance(wrong)
        with pytest.raises(ValueError, match="cannot go back"):
            memory.clock.move_to("2026-11-20T09:59:59Z")
        memory.clock.move_to(START + timedelta(hours=1))
        assert memory.clock.now == START + timedelta(hours=1)


@pytest.mark.parametrize("wrong", ["", "soon", "30 minutes", "5mm", None, True])
def test_a_duration_that_is_none_names_the_rule(wrong: Any) -> None:
    with Memory(now=NOW) as memory, pytest.raises(ValueError, match="a duration is"):
        memory.clock.advance(wrong)


def test_an_instant_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        Memory(now="2026-11-20T10:00:00")


def test_a_python_without_time_zones_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tzdata", None)
    with pytest.raises(ImportError, match="pip install tzdata"):
        Memory(now=NOW)


def test_a_missing_extra_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("punctual_server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "punctual_server", None)
    with pytest.raises(ImportError, match=r"pip install 'punctual-client\[testing\]'"):
        Memory(now=NOW)


def test_an_import_loads_neither_the_api_nor_the_engine() -> None:
    code = "import punctual.testing, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "client/src"})
    names = {name.partition(".")[0] for name in loaded.stdout.split()}
    assert "httpx" in names and not names & {"punctual_server", "scheduler", "lambdas", "lab", "greenlet", "pydantic", "boto3"}


# the program that is called


def wsgi(calls: list[str]) -> Any:
    def app(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        calls.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} {environ['wsgi.input'].read().decode()}")
        start_response("201 Created", [("Content-Type", "text/plain"), ("X-Mine", "yes")])
        return [b"made"]

    return app


def asgi(calls: list[str]) -> Any:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = (await receive()).get("body", b"")
        calls.append(f"{scope['method']} {scope['path']} {body.decode()}")
        await send({"type": "http.response.start", "status": 201, "headers": [(b"content-type", b"text/plain"), (b"x-mine", b"yes")]})
        await send({"type": "http.response.body", "body": b"made"})

    return app


@pytest.mark.parametrize("interface", [wsgi, asgi])
def test_an_app_is_called_whatever_the_host_of_the_url(interface: Any) -> None:
    calls: list[str] = []
    with Memory(interface(calls), now=NOW) as memory:
        job = memory.client.jobs.create("http", {"url": "https://any.example.com/expire?x=1", "body": {"order": 17}}, delay="1m")
        memory.clock.advance("1m")
        done = memory.client.jobs.get(job.id)
        assert calls == ['POST /expire {"order": 17}'] and done.raw["response"]["status"] == 201
        assert done.raw["response"]["headers"]["x-mine"] == "yes" and done.raw["response"]["body"] == "made"
        (call,) = memory.calls
        assert (call.status, call.answer, call.json(), call.path) == (201, b"made", {"order": 17}, "/expire")
        assert call.headers["Idempotency-Key"] == call.headers["punctual-job-id"] == call.job_id == job.id


def test_an_interface_is_recognized() -> None:
    class Called:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    assert [recognized(app) for app in (wsgi([]), asgi([]), Called(), lambda a, b, c: None)] == ["wsgi", "asgi", "asgi", "asgi"]


def test_an_app_that_raises_fails_the_attempt_and_nothing_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    def answer(call: Call) -> None:
        if call.path == "/expire/17" and len(memory.calls) < 2:
            raise LookupError("no such order")

    with Memory(answer=answer, now=NOW) as memory:
        job, other = (memory.client.jobs.create(http=url, delay="1m", max_attempts=3) for url in (URL, "https://example.com/other"))
        memory.clock.advance("10m")
        done = memory.client.jobs.get(job.id)
        assert done.succeeded and memory.client.jobs.get(other.id).succeeded
        assert [attempt["outcome"] for attempt in done.raw["attempts"]] == ["failed", "succeeded"]
        failure = done.raw["attempts"][0]["failure"]
        assert (failure["kind"], failure["message"]) == ("retryable", "the app raised LookupError: no such order")
        assert isinstance(memory.calls_to("/expire/17")[0].error, LookupError)
        assert "Traceback" in caplog.text and "in answer" in caplog.text


@pytest.mark.parametrize("interface", [wsgi, asgi])
def test_an_app_that_raises_an_error_of_its_interface_fails_the_attempt(interface: Any) -> None:
    calls: Any = None  # it has no `append`
    with Memory(interface(calls), now=NOW) as memory:
        job = memory.client.jobs.create(http=URL, max_attempts=1)
        memory.clock.advance("1m")
        assert memory.client.jobs.get(job.id).status == "failed" and isinstance(memory.calls[0].error, AttributeError)


def test_a_failure_of_the_test_itself_is_raised_by_the_clock() -> None:
    def answer(call: Call) -> None:
        if len(memory.calls) == 1:
            pytest.fail("a wrong call")

    with Memory(answer=answer, now=NOW) as memory:
        job = memory.client.jobs.create(http=URL)
        with pytest.raises(pytest.fail.Exception, match="a wrong call"):
            memory.clock.advance("1m")
        memory.clock.advance("1h")  # as an executor that was killed: another one takes the job over
        assert memory.client.jobs.get(job.id).succeeded


def test_what_is_called_may_create_jobs_and_not_move_the_clock() -> None:
    def answer(call: Call) -> None:
        if call.path == "/first":
            memory.client.jobs.create(http="https://example.com/second", delay="5m")
            with pytest.raises(RuntimeError, match="the clock is moving"):
                memory.clock.advance("1m")

    with Memory(answer=answer, now=NOW) as memory:
        memory.client.jobs.create(http="https://example.com/first", delay="5m")
        memory.clock.advance("20m")
        assert minutes(memory) == [5, 10] and memory.calls[0].error is None


def test_signatures_verify_and_foreign_ones_do_not() -> None:
    with Memory(now=NOW, secrets={"hook": SECRET}) as memory:
        memory.client.jobs.create("http", {"url": URL, "method": "POST", "body": "x", "signing_secret": "hook"}, delay="30m")
        memory.clock.advance("1h")
        (call,) = memory.calls
        verify_signature(call.headers, call.body, SECRET)
        with pytest.raises(InvalidSignature):
            verify_signature(call.headers, b"y", SECRET)


def test_an_asynchronous_test_and_an_asgi_app_use_the_client_in_their_loops() -> None:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["path"] == "/first":
            await memory.async_client.jobs.create(http="https://example.com/second", delay="5m")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def scene() -> None:
        job = await memory.async_client.jobs.create(http="https://example.com/first")
        assert (await memory.async_client.jobs.wait(job.id)).succeeded
        memory.clock.advance("5m")

    with Memory(app, now=NOW) as memory:
        asyncio.run(scene())
        assert [call.path for call in memory.calls] == ["/first", "/second"]


def test_another_thread_cannot_move_the_clock() -> None:
    with Memory(now=NOW) as memory, ThreadPoolExecutor(1) as other:
        with pytest.raises(RuntimeError, match="thread"):
            other.submit(memory.clock.advance, "1m").result()
        assert memory.clock.now == START


def test_an_app_may_be_set_later_and_with_its_interface() -> None:
    calls: list[str] = []
    with Memory(answer=lambda call: 500, now=NOW) as memory:
        memory.use(asgi(calls), interface="asgi")
        memory.client.jobs.create(http=URL)
        memory.clock.advance()
        memory.use(None)
        memory.client.jobs.create(http=URL, max_attempts=1)
        memory.clock.advance()
        assert len(calls) == 1 and [call.status for call in memory.calls] == [201, 500]
    with pytest.raises(ValueError, match="not both"):
        Memory(wsgi([]), answer=lambda call: 500)


def test_an_answer_has_a_body_and_headers() -> None:
    answers = {"/a": Answer(200, {"a": 1}, {"X-Mine": "yes"}), "/b": Answer(200, "text"), "/c": Answer(429, headers={"Retry-After": "60"})}
    with Memory(answer=lambda call: answers[call.path], takes=lambda call: 1, now=NOW) as memory:
        jobs = [memory.client.jobs.create(http=f"https://example.com{path}", max_attempts=2) for path in answers]
        memory.clock.advance("30s")
        bodies = [memory.client.jobs.get(job.id).raw["response"]["body"] for job in jobs]
        assert bodies[:2] == ['{"a": 1}', "text"] and len(memory.calls_to("/c")) == 1
        memory.clock.advance("1m")
        assert len(memory.calls_to("/c")) == 2


def test_a_job_that_needs_aws_is_refused() -> None:
    with Memory(now=NOW) as memory, pytest.raises(InvalidRequest, match="queue"):
        memory.client.jobs.create("sqs", {"queue": "arn:aws:sqs:us-east-1:123456789012:q", "body": "m"})


# behaviour as in production


def test_a_job_is_retried_with_growing_pauses_until_it_succeeds() -> None:
    with Memory(answer=lambda call: 503 if len(memory.calls) < 4 else 200, now=NOW) as memory:
        job = memory.client.jobs.create(http=URL, max_attempts=5, retry={"base_seconds": 10, "jitter": "none"})
        memory.clock.advance("1h")
        assert [round((call.at - START).total_seconds()) for call in memory.calls] == [0, 10, 30, 70]
        assert memory.client.jobs.get(job.id).succeeded
        assert [call.headers["punctual-attempt"] for call in memory.calls] == ["1", "2", "3", "4"]


def test_a_job_that_never_succeeds_is_a_dead_letter() -> None:
    with Memory(answer=lambda call: 500, now=NOW) as memory:
        job = memory.client.jobs.create(http=URL, max_attempts=2)
        memory.clock.advance("1h")
        assert [group.count for group in memory.client.dead_letters.list()] == [1] and not memory.client.jobs.get(job.id).succeeded


def test_a_call_takes_the_time_that_it_is_given_and_is_cut_at_its_time_out() -> None:
    with Memory(answer=lambda call: Answer(takes="20s" if call.path == "/slow" else "2m"), now=NOW) as memory:
        slow, never = (memory.client.jobs.create(http=f"https://example.com/{name}", max_attempts=1) for name in ("slow", "never"))
        memory.clock.advance("19s")
        assert memory.client.jobs.get(slow.id).status == "running"
        memory.clock.advance("2m")
        found = memory.client.jobs.get(slow.id).raw
        assert (found["started_at"], found["completed_at"]) == ("2026-11-20T10:00:00.000Z", "2026-11-20T10:00:20.000Z")
        assert memory.client.jobs.get(never.id).status in ("failed", "killed")


def test_a_job_is_killed_at_its_own_time_out() -> None:
    with Memory(takes="20s", now=NOW) as memory:
        call = memory.client.jobs.create(http=URL, timeout_seconds=10, max_attempts=1)
        slow = memory.client.jobs.create("log", {"message": "m", "sleep_seconds": 20}, timeout_seconds=10, max_attempts=1)
        done = memory.client.jobs.create("log", {"message": "m", "sleep_seconds": 5}, timeout_seconds=10, max_attempts=1)
        memory.clock.advance("1m")
        for job in (call, slow):
            found = memory.client.jobs.get(job.id).raw
            assert found["status"] == "killed" and found["attempts"][0]["failure"]["kind"] == "timeout"
            assert found["attempts"][0]["ended_at"] == "2026-11-20T10:00:10.000Z"
        assert memory.client.jobs.get(done.id).raw["completed_at"] == "2026-11-20T10:00:05.000Z"


@pytest.mark.parametrize(("overlap", "expected"), [("skip", [1, 3, 5]), ("allow", [1, 2, 3, 4, 5])])
def test_runs_that_take_long_overlap_as_the_task_says(overlap: Any, expected: list[int]) -> None:
    with Memory(takes="70s", now="2026-11-20T10:00:30Z") as memory:
        schedule: Any = {"cron": "* * * * *"}
        payload: Any = {"url": URL, "timeout_seconds": 300}
        memory.client.tasks.create("minutely", http=payload, schedule=schedule, overlap=overlap, timeout_seconds=300)
        memory.clock.move_to("2026-11-20T10:05:10Z")
        assert [round(minute) for minute in minutes(memory)] == expected


def test_a_task_keeps_its_local_time_over_the_change_of_the_clocks() -> None:
    with Memory(now="2027-03-26T12:00:00Z") as memory:
        schedule: Any = {"cron": "30 8 * * *", "time_zone": "Europe/Berlin"}
        memory.client.tasks.create("morning", http=URL, schedule=schedule)
        memory.clock.advance("4d")
        assert [f"{call.at:%d %H:%M}" for call in memory.calls] == ["27 07:30", "28 06:30", "29 06:30", "30 06:30"]


def test_jobs_of_one_ordering_key_run_one_after_the_other() -> None:
    with Memory(takes="20s", now=NOW) as memory:
        for number in range(3):
            memory.client.jobs.create(http=f"https://example.com/{number}", delay=60, ordering_key="account-1")
            memory.clock.advance(0.001)  # of two jobs that were created at one instant, any is the first
        memory.clock.advance("10m")
        assert [call.path for call in memory.calls] == ["/0", "/1", "/2"]
        ends = [call.at + timedelta(seconds=20) for call in memory.calls]
        assert all(end <= call.at for end, call in zip(ends, memory.calls[1:], strict=False))


def test_a_worker_reports_to_the_stage_and_a_silent_one_loses_its_lease() -> None:
    with Memory(now=NOW) as memory:
        job = memory.client.jobs.create(http=URL, callback={"lease_seconds": 10}, max_attempts=2)
        memory.clock.advance("5s")
        with memory.worker(memory.calls[0].headers) as work:
            work.progress(0.5, "half")
            work.heartbeat()
            assert memory.client.jobs.get(job.id).progress is not None
            work.complete({"rows": 42})
        assert memory.client.jobs.get(job.id).output == '{"rows": 42}'
        silent = memory.client.jobs.create(http=URL, callback={"lease_seconds": 10}, max_attempts=2)
        memory.clock.advance("10m")
        assert len(memory.calls) == 3 and memory.client.jobs.get(silent.id).status in ("failed", "killed")


def test_a_key_names_one_open_job_and_a_cancelled_one_never_runs() -> None:
    with Memory(now=NOW) as memory:
        memory.client.jobs.create(http=URL, delay="30m", key="order-17")
        with pytest.raises(Conflict):
            memory.client.jobs.create(http=URL, delay="40m", key="order-17", idempotency_key="mine")
        assert memory.client.jobs.cancel(key="order-17").status == "cancelled"
        memory.clock.advance("1h")
        assert memory.calls == []


def test_an_expired_job_does_not_start() -> None:
    with Memory(takes="25s", now=NOW) as memory:
        for number in range(2):
            memory.client.jobs.create(http=f"https://example.com/{number}", ordering_key="one", expires_at=START + timedelta(seconds=20))
        memory.clock.advance("10m")
        assert len(memory.calls) == 1


def test_a_paused_task_does_not_run_until_it_is_resumed() -> None:
    with Memory(now=NOW) as memory:
        schedule: Any = {"rate": "10 minutes"}
        task = memory.client.tasks.create("often", http=URL, schedule=schedule)
        memory.clock.advance("25m")
        before = len(memory.calls)
        memory.client.tasks.pause(task.id)
        memory.clock.advance("1h")
        assert before == 2 and len(memory.calls) == before
        memory.client.tasks.resume(task.id)
        memory.clock.advance("25m")
        assert len(memory.calls) > before


def test_users_have_their_roles_and_their_own_jobs() -> None:
    with Memory(now=NOW, users={"bob": "user"}) as memory:
        bob, job = memory.sign_in("bob"), memory.client.jobs.create(message="mine", delay=60)
        with pytest.raises(NotFound):
            bob.jobs.get(job.id)
        with pytest.raises(NotAllowed):
            list(bob.users.list())
        assert (bob.me().username, memory.client.me().role) == ("bob", "administrator")
        with pytest.raises(LookupError):
            memory.sign_in("carl")


def test_two_memories_have_nothing_in_common() -> None:
    with Memory(now=NOW) as one, Memory(now="2030-01-01T00:00:00Z") as other:
        one.client.jobs.create(http=URL, key="order-17", delay=60)
        with pytest.raises(NotFound):
            other.client.jobs.get(key="order-17")
        other.clock.advance("1h")
        assert one.calls == [] and one.clock.now == START


def test_a_stranger_is_refused() -> None:
    with Memory(now=NOW) as memory, Punctual(memory.url, token="stranger", transport=memory.transport) as stranger:
        with pytest.raises(Exception, match=r"(?i)token|sign|unauthori[sz]ed"):
            list(stranger.jobs.list())
        assert httpx.Client(transport=memory.transport, base_url=memory.url).get("/api/v1/health").status_code == 200


def test_a_debounce_has_one_run_with_the_last_content_and_holds_its_longest_wait() -> None:
    with Memory(now=NOW) as memory:
        for number in range(34):
            memory.client.jobs.create(message=f"put {number}", key="page", debounce=1)
            memory.clock.advance(0.3)
        memory.clock.advance("10s")
        job = memory.client.jobs.get(key="page")
        assert (job.output, job.puts, job.started_at) == ("put 33", 34, START + timedelta(seconds=10.9))
    with Memory(now=NOW) as memory:
        made = set()
        for number in range(60):
            made.add(memory.client.jobs.create(message=f"put {number}", key="page", debounce="5s", max_wait="20s").id)
            memory.clock.advance("1s")
        memory.clock.advance("10s")
        starts = sorted(each.started_at - START for each in map(memory.client.jobs.get, made) if each.started_at is not None)
        assert starts == [timedelta(seconds=20), timedelta(seconds=40), timedelta(seconds=60)]
