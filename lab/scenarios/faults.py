"""The table of faults: the faults caused on a running stack, the number of jobs accepted during each, and their ends.

Each fault has its own jobs, due while it lasts. They call a receiver, which counts the real calls of each.
"""

import itertools
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from punctual import NoAnswer, NotFound, Punctual, PunctualError, Unavailable
from punctual.records import Json

from infra.parameters import LIVE
from lab.judge import FINAL, Outcome
from lab.scenarios.faulty import Fault, Faulty
from local import process
from local.receiver import Receiver
from local.samples import rfc3339
from local.stack import Stack
from scheduler.model import slots

RATE = 5  # jobs a second
AHEAD = 2.0  # seconds from a post to its instant
POSTING_MS = 40_000  # the rows' jobs are posted within this
SETTLED = 5.0  # seconds between two faults
AWAY_S = 100.0  # how long a service is away
PATIENCE = 600.0  # seconds for all jobs to be final: a job whose message is lost waits for its safety slot
_batches = itertools.count(1)


@dataclass
class Row:
    """A fault, and the jobs accepted for it."""

    name: str
    act: Callable[["Table", "Row"], None]
    minute: int | None = None  # its jobs are due in that minute after the first safe one, and go through dispatch
    seconds: Sequence[float] = ()  # of the minute, at which its jobs are due
    label: str = ""
    requested: int = 0
    jobs: list[Json] = field(default_factory=list)


@dataclass
class Table:
    """The objects that the faults act on."""

    stack: Stack
    proxy: Faulty
    receiver: Receiver
    client: Punctual
    first: int = 0  # beginning of the first safe minute, UTC milliseconds
    run: int = field(default_factory=time.time_ns)

    def post(self, row: Row, instants: Sequence[float]) -> None:
        """Post a job for each instant (seconds since the epoch); repeat under the same idempotency keys until all are accepted."""
        batch = f"faults-{self.run}-{next(_batches)}"
        items = []
        for at in instants:
            row.requested += 1
            call = {"method": "POST", "url": self.receiver.url(f"/ok/{row.label}-{self.run}-{row.requested}")}
            due = rfc3339(datetime.fromtimestamp(at, UTC))
            items.append({"type": "http", "payload": call, "execute_at": due, "idempotency_key": f"{batch}-{row.requested}"})
        end = time.monotonic() + 60
        while items and time.monotonic() < end:
            try:
                done = self.client.jobs.create_many(items)
            except (NoAnswer, Unavailable):
                time.sleep(0.5)
                continue
            row.jobs += [job.raw for job in done.jobs]
            items = [items[result.index] for result in done.errors]

    def stream(self, row: Row, seconds: float) -> None:
        """Post jobs for the near future, those of one second at a time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            now = time.time()
            self.post(row, [now + AHEAD + n / RATE for n in range(RATE)])
            time.sleep(max(0.0, 1 - (time.monotonic() - began)))

    def kill(self, output: str) -> int:
        """Kill the processes that run a function; returns their number."""
        found = process.naming(self.stack.home.scratch, self.stack.outputs[output])
        for each in found:
            each.signal(signal.SIGKILL)
        return len(found)

    def start_of(self, row: Row) -> float:
        return self.first / 1000 + 60 * (row.minute or 0)

    def find(self, job: Json) -> Json:
        return self.client.jobs.get(job["id"]).raw


def _dynamodb_throttles(table: Table, row: Row) -> None:
    with table.proxy.misbehaving(Fault("throttle", "dynamodb", share=0.3)):
        table.stream(row, 20)


def _dynamodb_fails(table: Table, row: Row) -> None:
    """The API can accept no job during this fault, so the jobs are posted just before."""
    now = time.time()
    table.post(row, [now + 1.5 + n / RATE for n in range(10 * RATE)])
    with table.proxy.misbehaving(Fault("error", "dynamodb")):
        time.sleep(10)


def _sqs_refuses(table: Table, row: Row) -> None:
    with table.proxy.misbehaving(Fault("error", "sqs")):
        table.stream(row, 15)


def _connections_break(table: Table, row: Row) -> None:
    """A connection breaks before the call has arrived, or after it was carried out."""
    with table.proxy.misbehaving(Fault("lose_call", share=0.1), Fault("lose_answer", share=0.1)):
        table.stream(row, 20)


def _answers_are_late(table: Table, row: Row) -> None:
    """Some answers arrive later than any client's time-out."""
    with table.proxy.misbehaving(Fault("delay", share=0.05, seconds=8), Fault("delay", share=0.3, seconds=0.5)):
        table.stream(row, 15)


def _messages_vanish(table: Table, row: Row) -> None:
    """Messages are deleted before an executor receives them."""
    functions, sqs = table.stack.aws.client("lambda"), table.stack.aws.client("sqs")
    name, queue = table.stack.outputs["ExecuteOneTimeFunction"], table.stack.outputs["OneTimeQueueUrl"]
    mapping = functions.list_event_source_mappings(FunctionName=f"{name}:{LIVE}")["EventSourceMappings"][0]["UUID"]
    functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    try:
        time.sleep(1.5)
        table.post(row, [time.time()] * RATE)
        deleted, end = 0, time.monotonic() + 10
        while deleted < RATE and time.monotonic() < end:
            for message in sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", []):
                sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
                deleted += 1
    finally:
        functions.update_event_source_mapping(UUID=mapping, Enabled=True)
    table.proxy.dealt["deleted message"] += deleted


def _executors_are_killed(table: Table, row: Row) -> None:
    for _ in range(3):
        table.stream(row, 4)
        table.proxy.dealt["killed executor"] += table.kill("ExecuteOneTimeFunction")


def _sns_refuses(table: Table, row: Row) -> None:
    _until(table.start_of(row) + 3)
    with table.proxy.misbehaving(Fault("throttle", "sns")):
        time.sleep(20)


def _dispatchers_are_killed(table: Table, row: Row) -> None:
    _until(table.start_of(row) - 2)
    end = table.start_of(row) + 35
    while time.time() < end:
        table.proxy.dealt["killed dispatcher"] += table.kill("DispatchFunction")
        time.sleep(4)


def _all_is_doubled(table: Table, row: Row) -> None:
    """Two more ticks and two more steps of the minute's unit run beside its own."""
    _until(table.start_of(row) - 8)
    minute = slots.minute_of(round(table.start_of(row) * 1000))
    functions = table.stack.aws.client("lambda", read_timeout=120, retries={"max_attempts": 0})
    with ThreadPoolExecutor(3) as pool:
        pool.submit(table.stack.work_again, minute, 2)
        for _ in range(2):
            pool.submit(functions.invoke, FunctionName=table.stack.outputs["TickFunction"], Qualifier=LIVE, Payload="{}")


def _no_tick(table: Table, row: Row) -> None:
    """The tick is off from before the minute is opened until it is over."""
    _until(table.start_of(row) - 210)
    table.stack.set_tick("DISABLED")
    _until(table.start_of(row) + 40)
    table.stack.set_tick("ENABLED")


def _aws_restarts(table: Table, row: Row) -> None:
    """The local AWS restarts, together with its functions; its stored state is kept."""
    _until(table.start_of(row) + 4)
    now = time.time()
    table.post(row, [now + 1 + n / RATE for n in range(15 * RATE)])
    time.sleep(3)
    table.stack.restart(enforce_iam=True)


def _away(*services: str) -> Callable[[Table, Row], None]:
    """Return a fault: the services answer 500 only. Some jobs run, some are held and some are in dispatch when it begins."""

    def act(table: Table, row: Row) -> None:
        _until(table.start_of(row) - 8)
        now = time.time()
        table.post(row, [now + AHEAD + n / RATE for n in range(10 * RATE)])
        _until(table.start_of(row) - 1)
        with table.proxy.misbehaving(*(Fault("error", service) for service in services)):
            time.sleep(AWAY_S)

    return act


def rows() -> dict[str, Row]:
    """Return all faults by name, in the order in which they are caused. Jobs of a fault with a minute are due from its fifth second on."""
    spread = [5 + n / 2 for n in range(50)]
    dense = [5 + n / 6 for n in range(300)]  # too many to leave ahead of their minute, as those of `spread` do (Dispatch, at most 200)
    return {
        "throttle": Row("DynamoDB throttles 30 % of its calls, 20 s", _dynamodb_throttles),
        "database": Row("DynamoDB answers 500 only, 10 s", _dynamodb_fails),
        "queues": Row("SQS answers 500 only, 15 s", _sqs_refuses),
        "connections": Row("Every fifth connection breaks, 20 s", _connections_break),
        "late": Row("A third of all answers 0.5 to 8 s late, 15 s", _answers_are_late),
        "messages": Row("Messages are deleted", _messages_vanish),
        "executors": Row("All executors killed, three times", _executors_are_killed),
        "topic": Row("SNS throttles all, 20 s", _sns_refuses, 0, dense),
        "dispatchers": Row("All dispatchers killed every 4 s, 35 s", _dispatchers_are_killed, 1, dense),
        "doubled": Row("Ticks and steps of dispatch three at a time", _all_is_doubled, 2, dense),
        "tick": Row("No tick for four minutes", _no_tick, 6, spread),
        "restart": Row("The whole local AWS restarted", _aws_restarts, 8, spread),
        "no-dynamodb": Row("DynamoDB away for 100 s", _away("dynamodb"), 0, spread),
        "no-sqs": Row("SQS away for 100 s", _away("sqs"), 2, spread),
        "no-sns": Row("SNS away for 100 s", _away("sns"), 4, spread),
        "no-services": Row("DynamoDB, SQS and SNS away for 100 s", _away("dynamodb", "sqs", "sns"), 6, spread),
    }


AWAY = ("no-dynamodb", "no-sqs", "no-sns", "no-services")
MOST = tuple(name for name in rows() if name not in AWAY)
SHORT = ("throttle",)  # the jobs of the others may wait for their safety slots, six minutes


def deal(stack: Stack, proxy: Faulty, receiver: Receiver, names: Sequence[str]) -> tuple[Outcome, list[Json]]:
    """Cause the faults of these names. Returns the outcome and the table's lines.

    From then on the functions of the stack reach AWS through the proxy.
    """
    proxy.behind = stack.aws.port
    stack.functions_endpoint = proxy.endpoint
    stack.restart(enforce_iam=True)
    table = Table(stack, proxy, receiver, stack.client())
    known = rows()
    chosen = [known[name] for name in names]
    table.first = slots.start_of(slots.first_safe_minute(round(time.time() * 1000) + POSTING_MS))
    for number, row in enumerate(chosen):
        row.label = f"fault-{number}"
        if row.minute is not None:
            table.post(row, [table.start_of(row) + second for second in row.seconds])
    for row in chosen:
        row.act(table, row)
        time.sleep(SETTLED)
    return judge(table, chosen)


def judge(table: Table, dealt: Sequence[Row]) -> tuple[Outcome, list[Json]]:
    """Wait until all jobs are final. Returns the outcome, and for each fault a line that counts how its jobs ended."""
    end = time.monotonic() + PATIENCE
    found = {row.name: list(_ended(table, row, end)) for row in dealt}
    calls = table.receiver.counts()
    seen, lines = Outcome(), []
    for row in dealt:
        jobs = found[row.name]
        line = {"fault": row.name, "asked": row.requested, **figures(jobs, calls), "accepted": len(row.jobs)}
        line["lost"] = len(row.jobs) - line["final"]
        lines.append(line)
        seen.expect(line["accepted"] == row.requested, f"{row.name}: {line['accepted']} of {row.requested} jobs were accepted")
        seen.expect(not line["lost"], f"{row.name}: {line['lost']} jobs are not final")
        seen.expect(line["succeeded"] == line["final"], f"{row.name}: {line['final'] - line['succeeded']} jobs did not succeed")
        seen.expect(not line["finished twice"], f"{row.name}: {line['finished twice']} jobs finished twice")
        seen.expect(not line["early"], f"{row.name}: {line['early']} jobs started early")
    seen.figures |= {"faults dealt": dict(table.proxy.dealt)}
    return seen, lines


def figures(jobs: Sequence[Json], calls: Counter[str]) -> Json:
    """Return the figures of a row. `calls`: how often the receiver was called, by path."""
    done = [job for job in jobs if job["status"] in FINAL]
    paths = ["/" + job["payload"]["url"].split("/", 3)[3] for job in jobs]
    succeeded = [sum(attempt["outcome"] == "succeeded" for attempt in job["attempts"]) for job in done]
    delays = [job["start_delay_ms"] for job in jobs if job["start_delay_ms"] is not None]
    return {
        "final": len(done),
        "succeeded": sum(job["status"] == "succeeded" for job in done),
        "lost": 0,
        "finished twice": sum(times > 1 for times in succeeded),
        "early": sum(delay < 0 for delay in delays),
        "work done again": sum(max(0, calls[path] - 1) for path in paths),
        "worst delay ms": max(delays, default=0),
    }


COLUMNS = ("fault", "accepted", "final", "lost", "finished twice", "early", "work done again", "worst delay ms")


def as_text(lines: Sequence[Json]) -> Iterator[str]:
    """Yield the table as plain lines."""
    yield " | ".join(COLUMNS)
    for line in lines:
        yield " | ".join(str(line[column]) for column in COLUMNS)


def _ended(table: Table, row: Row, end: float) -> Iterator[Json]:
    """Yield the jobs of a row, each once it is final, or in its last known state at `end`."""
    for job in row.jobs:
        while True:
            try:
                found = table.find(job)
            except NotFound:
                break  # lost
            except PunctualError:
                found = {"status": ""}
            if found["status"] in FINAL or (time.monotonic() > end and found["status"]):
                yield found
                break
            time.sleep(0.5)


def _until(at: float) -> None:
    time.sleep(max(0.0, at - time.time()))
