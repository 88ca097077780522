"""The deployed stack of the system tests: on a free port, with its state in a temporary folder and IAM enforced as on AWS."""

import json
import os
import re
import secrets
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from punctual import Punctual

from bench import delay
from bench.figures import Figure
from infra.parameters import LIVE
from lab.scenarios import drills
from local import process, user
from local.aws import GRANTS_LOG
from local.home import Home
from local.receiver import Receiver
from local.samples import rfc3339
from local.stack import BUSY_S, Stack, up
from scheduler.model import slots
from scheduler.model.job import JobKey, Lane, Message
from scheduler.pipeline.tick import READY_MS
from scheduler.storage import messages

if GRANTS_LOG in os.environ:
    # Sessions run at the same time, each with its own log; the path is absolute, since the local AWS runs in another folder.
    os.environ[GRANTS_LOG] = f"{Path(os.environ[GRANTS_LOG]).resolve()}.{os.getpid()}"
DENIED = re.compile(r"assumed-role/\S+ is not authorized to perform: [\w:-]+")


@dataclass
class System:
    """Access for a system test: to the API over HTTP as any user, to the local AWS as its administrator."""

    stack: Stack
    receiver: Receiver

    @property
    def outputs(self) -> dict[str, str]:
        return self.stack.outputs

    @property
    def address(self) -> str:
        return self.stack.address

    def client(self, username: str | None = None) -> Punctual:
        """Return a signed-in client: of the first user (an administrator), or of a new user with this name."""
        if username is None:
            return self.stack.client()
        return self.sign_in(username, self.create_user(username))

    def create_user(self, username: str) -> str:
        """Create a user without special rights; returns the password."""
        password = f"{secrets.token_urlsafe(15)}-aA1"
        user.ensure(self.aws("cognito-idp"), self.aws("dynamodb"), self.outputs, username, password, administrator=False)
        return password

    def sign_in(self, username: str, password: str) -> Punctual:
        """Return a client that has signed in. Raises NotAuthenticated."""
        client = Punctual(self.address, username=username, password=password, timeout=BUSY_S)
        client.token()
        return client

    def anonymous(self) -> Punctual:
        return Punctual(self.address, timeout=BUSY_S)

    def aws(self, service: str) -> Any:
        """Return a boto3 client with the administrator's credentials."""
        return self.stack.aws.client(service)

    def workers(self, output: str) -> list[process.Process]:
        """Return the processes that run the function named by a stack output."""
        return process.naming(self.stack.home.scratch, self.outputs[output])

    def invoke(self, output: str, event: dict[str, Any]) -> None:
        """Call the function named by a stack output with an event of its trigger, and wait for its end."""
        answer = self.aws("lambda").invoke(FunctionName=self.outputs[output], Qualifier=LIVE, Payload=json.dumps(event))
        payload = answer["Payload"].read()  # in any case: an unread answer keeps its connection
        assert "FunctionError" not in answer, payload

    def denials(self) -> list[str]:
        """Return the calls denied to the functions' roles, from the functions' logs."""
        logs = self.aws("logs")
        groups = [group["logGroupName"] for page in logs.get_paginator("describe_log_groups").paginate() for group in page["logGroups"]]
        events = logs.get_paginator("filter_log_events")
        messages = (event["message"] for name in groups for page in events.paginate(logGroupName=name) for event in page["events"])
        denied = (DENIED.search(message) for message in messages)
        return sorted({match[0] for match in denied if match})


@pytest.fixture(autouse=True)
def _named_among_grants(request: pytest.FixtureRequest) -> None:
    """Write the running test to the log of grants, which shows the test that first used a grant (`tests/infra/grants.py`)."""
    if path := os.environ.get(GRANTS_LOG):
        with Path(path).open("a") as log:
            log.write(f"{time.time():.3f} {request.node.originalname}\n")


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One stack for the whole session, separate from that of `make run`."""
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("aws"))))
    with Receiver() as receiver, up(home, enforce_iam=True) as stack:
        system = System(stack, receiver)
        yield system
        denials = system.denials()
    assert not denials, "roles lack grants:\n" + "\n".join(denials)


@pytest.fixture(scope="session")
def system(deployed: System, outage: "Outage", doubled: "Doubled") -> System:
    """The same stack, with an outage of the tick and then a minute with too many ticks in the background."""
    return deployed


@pytest.fixture(scope="session")
def client(system: System) -> Punctual:
    """The first user, signed in."""
    return system.client()


T = TypeVar("T")
HANG_S = 900  # ends a program that hangs; what a program promises is judged by what it says
FINAL = {"succeeded", "failed", "killed", "cancelled", "skipped"}


def soon(seconds: float) -> str:
    """Return the instant this many seconds from now, in the format of the API."""
    return rfc3339(datetime.now(UTC) + timedelta(seconds=seconds))


def send_early(system: System, client: Punctual, job: Mapping[str, Any], *, seconds: int) -> None:
    """Send another message of a new job of this client, delayed by `seconds`. An executor claims the job by it, before its own message."""
    owner, due_at = client.me().id, round(datetime.fromisoformat(job["due_at"]).timestamp() * 1000)
    message = Message(JobKey(owner, job["id"]), 1, Lane.ONE_TIME, due_at, sent_at=1)
    system.aws("sqs").send_message(
        QueueUrl=system.outputs["OneTimeQueueUrl"], MessageBody=messages.encode(message), MessageGroupId=owner, DelaySeconds=seconds
    )


def queued(system: System) -> str:
    """All messages of all queues as JSON: visible, in flight or delayed. Reading changes none."""
    with urllib.request.urlopen(f"{system.stack.aws.endpoint}/_ministack/sqs/messages") as answer:
        return str(answer.read().decode())


def until(seconds: float, look: Callable[[], T | None]) -> T:
    """Call `look` until it returns a true value, and return that; the real stack has no event to wait on. Fails after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.25)
    return found


def sent(client: Punctual, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    """Send a request once, and return status and body of the answer, also of an error. Bytes are sent unchanged."""
    answer = client.send(method, path, body if isinstance(body, bytes) or body is None else json.dumps(body).encode())
    return answer.status_code, answer.json()


def ended(client: Punctual, jobs: Sequence[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """Return the jobs once all of them are final. Fails after `seconds`."""
    left, done = {job["id"]: job for job in jobs}, {}

    def look() -> bool:
        for job_id in list(left):
            found = client.jobs.get(job_id).raw
            if found["status"] in FINAL:
                done[job_id] = found
                del left[job_id]
        return not left

    until(seconds, look)
    return [done[job["id"]] for job in jobs]


def open_minutes(system: System) -> list[str]:
    """Return the open minutes of the ledger, oldest first."""
    items = system.aws("dynamodb").query(
        TableName=system.outputs["LedgerTable"],
        KeyConditionExpression="pk = :open",
        ExpressionAttributeValues={":open": {"S": "open"}},
        ConsistentRead=True,
    )["Items"]
    return sorted(item["sk"]["S"].partition("#")[0] for item in items)


@dataclass
class Outage:
    """Four minutes without a tick, while the other tests run.

    The jobs of `missed` and the runs of `runs` are due in a minute in the middle of it, the jobs of `after` in the first minute that begins
    after its end. All are posted so far ahead that they go through dispatch.
    """

    minute: int  # start of the minute in the middle of it, ms
    missed: list[dict[str, Any]] = field(default_factory=list)
    after: list[dict[str, Any]] = field(default_factory=list)
    runs: drills.Missed | None = None
    over: threading.Event = field(default_factory=threading.Event)


@dataclass
class Doubled:
    """Jobs of one minute with two more ticks, and two more messages for its unit, while the other tests run."""

    jobs: list[dict[str, Any]]
    paths: list[str]  # one for each of `jobs`, which calls it
    calls: Future[None]  # done when the additional ticks have ended and the messages are sent; raises their error


POSTED_WITHIN = 20  # seconds in which the jobs of the outage must be posted
OFF_AT = 90  # seconds after the beginning: the missed minute starts at 320 to 380 and opens 195 earlier
ON_AFTER = 66  # seconds after the start of the missed minute: its jobs, due up to its 50th second, are late by then
BENCH = "test_the_short_form_of_delay_runs_to_its_end"
LAST = (  # in this order, after everything that does not need the tick
    BENCH,
    "test_every_job_of_the_missed_minutes_runs_late_and_marked",
    "test_missed_runs_follow_the_misfire_policy_of_their_task",
    "test_jobs_after_the_outage_are_dispatched_on_time",
    "test_concurrent_ticks_and_dispatchers_start_each_job_once",
    "test_the_minutes_of_the_outage_all_close",
    # The last one: it kills executors that also run other tests' jobs. A message that a killed executor had not leased stays hidden long.
    "test_killed_executors_lose_no_job_and_a_poison_job_harms_no_other",
)


@pytest.fixture(scope="session")
def outage(deployed: System) -> Iterator[Outage]:
    """Begin the outage with the stack; the tests of `LAST` check it."""
    system, client = deployed, deployed.client()
    now = time.time()
    missed = slots.start_of(slots.first_safe_minute(round((now + POSTED_WITHIN) * 1000)))
    found = Outage(missed)
    after = missed + 2 * slots.MINUTE

    def due(minute: int, seconds: float) -> str:
        return rfc3339(datetime.fromtimestamp(minute / 1000 + 5 + seconds, UTC))

    start = datetime.fromtimestamp(missed / 1000, UTC)
    found.runs = drills.plan_missed(client, start=start, interval=timedelta(seconds=5), count=10, threshold=10)
    found.missed = _posted(client, [{"message": f"missed {n}", "execute_at": due(missed, n)} for n in range(20)])
    assert time.time() - now < POSTED_WITHIN, "the start was too slow for an outage at a known time"
    found.after = _posted(client, [{"message": f"after {n}", "execute_at": due(after, n)} for n in range(50)])

    def back() -> None:
        system.stack.set_tick("ENABLED")
        found.over.set()

    def timer_at(at: float, call: Callable[..., None], *args: str) -> threading.Timer:
        return threading.Timer(max(0.0, at - time.time()), call, args)

    timers = [timer_at(now + OFF_AT, system.stack.set_tick, "DISABLED"), timer_at(missed / 1000 + ON_AFTER, back)]
    for timer in timers:
        timer.daemon = True
        timer.start()
    yield found
    for timer in timers:
        timer.cancel()
        timer.join()


@pytest.fixture(scope="session")
def doubled(deployed: System, outage: Outage) -> Iterator[Doubled]:
    """Post its jobs at the beginning of the session, so that no test has to wait for their minute."""
    minute, closing = outage.minute + 3 * slots.MINUTE, threading.Event()
    at = rfc3339(datetime.fromtimestamp(minute / 1000 + 5, UTC))
    paths = [f"/ok/doubled-tick-{n}" for n in range(20)]
    calls = [{"method": "POST", "url": deployed.receiver.url(path)} for path in paths]
    jobs = _posted(deployed.client(), [{"type": "http", "payload": call, "execute_at": at} for call in calls])

    def twice() -> None:
        while not outage.over.wait(1):
            if closing.is_set():
                return
        until(90, lambda: closing.is_set() or at[:16] in open_minutes(deployed))
        due_in = max(round((minute - READY_MS) / 1000 - time.time()), 0)  # at the same time as its own message
        with ThreadPoolExecutor(3) as at_once:
            calls = [at_once.submit(deployed.invoke, "TickFunction", {}) for _ in range(2)]
            for call in [*calls, at_once.submit(deployed.stack.work_again, at[:16], 2, due_in)]:
                call.result()

    with ThreadPoolExecutor(1) as pool:
        yield Doubled(jobs, paths, pool.submit(twice))
        closing.set()


@pytest.fixture(scope="session", autouse=True)
def short_delays(request: pytest.FixtureRequest) -> Future[list[Figure]] | None:
    """Run `delay` of `python -m bench --short` on the shared stack. It waits six minutes, so it begins with the session, if its test is
    selected."""
    if all(item.name != BENCH for item in request.session.items):
        return None
    deployed: System = request.getfixturevalue("deployed")
    client, found = deployed.client("bench"), Future[list[Figure]]()

    def measure() -> None:
        try:
            found.set_result(list(delay.measured(deployed.stack, client, delay.SHORT)))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=measure, daemon=True).start()  # a session that ends earlier does not wait for it
    return found


def _posted(client: Punctual, jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [job.raw for job in client.jobs.create_many(jobs).all_jobs()]


BOTH = "test_client_contract.py"  # it marks its tests of the stack itself


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LAST.index(item.name) + 1 if item.name in LAST else 0)
    for item in items:
        if item.path.parent.name == "system" and item.path.name != BOTH:
            item.add_marker(pytest.mark.system)
