"""The contestants: Punctual's local stack, its peers, and a floor. Each is started, creates jobs, and reports their starts."""

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from bench import stored as later
from compare import install
from compare.accounting import stop
from compare.drivers import lib
from compare.drivers.lib import CALL, Order
from compare.servers import SERVERS, Running, spawn
from compare.work import Start, Workload
from local import previous, server
from local.failure import Trouble
from local.home import REPOSITORY, Home
from local.samples import rfc3339
from local.stack import Stack, up
from local.stop import COMPARE, DELAYED
from local.warmup import READY, warm_up
from scheduler.storage.aws.jobs import DynamoJobs

FAR_S = 86_400  # jobs that are stored for later are due from this time on
PRODUCE_S = 1_200  # patience with the creation of jobs
SLOW_S = 60  # a job for now is due by the clock of the API, as late as its call takes
QUIET_S = 3  # seconds after the last instant without a read, which would compete with the executors for the processor
AWS = "local-aws"
DRIVERS = "compare.drivers"
JAVASCRIPT = ("node", "bun")  # their drivers and packages are in compare/node


class Session(Protocol):
    """A contestant that is up. `roots`: all its processes, and theirs below them, are counted."""

    roots: list[int]
    settings: str
    versions: Mapping[str, str]
    per_second: int  # jobs that it surely creates in a second

    def create(self, order: Order) -> Mapping[str, Any]:
        """Create the jobs. Returns when that `began` and `ended`, the client's `cpu_s`, and the `api`."""

    def store(self, count: int) -> None:
        """Store jobs that are due from tomorrow on."""

    def ended(self, work: Workload, order: Order) -> bool:
        """Return whether all jobs of the order have started."""

    def starts(self, work: Workload, order: Order) -> list[Start]: ...


@dataclass(frozen=True)
class Contestant:
    """One row of the comparison. `floor`: it is no scheduler and is compared with, but never counted as a peer."""

    key: str
    title: str
    begin: Callable[[Path, str], Any]  # (folder, log of the called URL) → a context manager of a Session
    missing: Callable[[], str | None] = lambda: None  # the command that installs what it needs; None: nothing is missing
    floor: bool = False
    cannot: Mapping[str, str] = field(default_factory=dict)  # workloads that it has no natural equal for, and why


# peers


@dataclass
class Driven:
    """A session of a driver program."""

    command: list[str]
    environment: Mapping[str, str]
    folder: Path
    url_log: str
    settings: str
    versions: Mapping[str, str]
    per_second: int
    roots: list[int] = field(default_factory=list)

    def create(self, order: Order) -> Mapping[str, Any]:
        file = self.folder / f"{order.prefix}order.spec"
        file.write_text(json.dumps(vars(order)))
        done: dict[str, Any] = json.loads(_drive(self.command, ["produce", str(file)], self.environment, self.folder).splitlines()[-1])
        return done

    def store(self, count: int) -> None:
        self.create(Order("later-", count, time.time() + FAR_S, seconds=count))

    def ended(self, work: Workload, order: Order) -> bool:
        log = Path(self._log(order))
        return log.exists() and log.read_text().count(f"{order.prefix}") >= work.count

    def starts(self, work: Workload, order: Order) -> list[Start]:
        return read_starts(self._log(order), order)

    def _log(self, order: Order) -> str:
        return self.url_log if order.url else str(self.folder / "starts.log")


def read_starts(log: str, order: Order) -> list[Start]:
    """Return the starts of an order's jobs in a log of lines `job time`."""
    due, found = dict(order.jobs()), []
    for line in Path(log).read_text().splitlines() if Path(log).exists() else ():
        job, at = line.split()
        if job in due:
            found.append(Start(job, (float(at) - due[job]) * 1_000))
    return found


def driver(kind: str, name: str, servers: str = "", *, own: bool = False, on: Running | None = None) -> Callable[[Path, str], Any]:
    """Return the beginning of a driver's sessions.

    `own`: it runs in Punctual's own environment. `on`: a server that runs already; its processes are counted.
    """

    @contextmanager
    def begin(folder: Path, url_log: str) -> Iterator[Driven]:
        with ExitStack() as stack:
            running = stack.enter_context(_server(servers)) if servers else on or Running([], {})
            on_node = kind in JAVASCRIPT
            programs = str(Path(sys.executable).parent) if own else (install.node() if on_node else install.python())
            environment = {
                **running.environment,
                "COMPARE_FOLDER": str(folder),
                "PYTHONPATH": str(REPOSITORY),
                "PYTHONUNBUFFERED": "1",
                "PATH": f"{programs}:{os.environ['PATH']}",
            }
            command = [kind, f"{name}.mjs"] if on_node else ["python", "-m", name]
            where = install.NODE if on_node else folder
            described = json.loads(_drive(command, ["describe"], environment, where))
            _drive(command, ["init"], environment, where)
            workers = [spawn(each, folder / f"worker{number}.log", environment, where) for number, each in enumerate(described["workers"])]
            roots = [each.pid for each in (*running.processes, *workers)]
            stack.callback(lambda: _reap(workers))
            time.sleep(described["ready_s"])
            if dead := [each for each in workers if each.poll() is not None]:
                raise Trouble(f"A worker of {name} ended at once: {dead[0].args!r}. Its log is in {folder}")
            settings = "; ".join([described["settings"], *([SERVERS[servers].settings] if servers in SERVERS else [])])
            yield Driven(command, environment, folder, url_log, settings, described["versions"], described["per_second"], roots)

    return begin


def _drive(command: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> str:
    """Run a driver's command to its end and return its output. Raises Trouble if it fails."""
    where = install.NODE if command[0] in JAVASCRIPT else folder
    path = environment["PATH"].split(":", 1)[0]
    program = str(Path(path) / command[0]) if (Path(path) / command[0]).exists() else command[0]
    done = subprocess.run(
        [program, *command[1:], *arguments],
        env={**os.environ, **environment},
        cwd=where,
        capture_output=True,
        text=True,
        timeout=PRODUCE_S,
        check=False,
    )
    if done.returncode:
        raise Trouble(f"{' '.join([*command, *arguments])} failed:\n{done.stderr[-2_000:]}")
    return done.stdout


def _reap(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    stop([each.pid for each in processes])
    for each in processes:
        each.wait()


@contextmanager
def _server(name: str) -> Iterator[Running]:
    if name == AWS:
        previous.clear(DELAYED)
        aws = server.start(DELAYED, server.choose_port(DELAYED, None))
        try:
            yield Running([aws.child], aws.aws.environment())
        finally:
            aws.stop()
        return
    with tempfile.TemporaryDirectory(prefix="punctual-compare-", ignore_cleanup_errors=True) as folder:
        program = SERVERS[name].program()
        assert program is not None
        running = SERVERS[name].start(Path(folder), program)
        try:
            yield running
        finally:
            _reap(running.processes)


def _peer(key: str, title: str, kind: str, name: str, needs: str = "", cannot: Mapping[str, str] | None = None) -> Contestant:
    def missing() -> str | None:
        if needs and not SERVERS[needs].program():
            return f"apt-get install {SERVERS[needs].package}"
        if (install.node() if kind in JAVASCRIPT else install.python()) is None:
            return f"the packages of {'compare/node' if kind in JAVASCRIPT else 'compare/requirements.txt'} (the network is needed)"
        return None

    return Contestant(key, title, driver(kind, name if kind in JAVASCRIPT else f"{DRIVERS}.{name}", needs), missing, cannot=cannot or {})


# Punctual


@dataclass
class Ours:
    """A session of Punctual's local stack, warmed up as by `make run`. Its client is this process."""

    stack: Stack
    url_log: str
    versions: Mapping[str, str] = field(default_factory=lambda: {"python": sys.version.split()[0]})
    settings: str = f"the stack of `make run` on the local AWS, {READY} warm executors; POST /jobs/batch"
    per_second: int = 400
    roots: list[int] = field(default_factory=list)
    _posted: dict[str, tuple[str, float]] = field(default_factory=dict)  # the name and the instant of each job by its id

    def __post_init__(self) -> None:
        self._client = self.stack.client()
        self.roots = [self.stack.server.child.pid]
        self._owner = self._client.me().id
        self._table = DynamoJobs(self.stack.aws.client("dynamodb", max_pool_connections=8), self.stack.outputs["JobsTable"])

    def create(self, order: Order) -> Mapping[str, Any]:
        began, cpu = time.time(), time.process_time()
        self._posted = {}
        if order.one_by_one:
            for name, at in lib.each(order):
                self._posted[self._client.jobs.create(**_content(name, order.url)).id] = name, at
            return {"began": began, "ended": time.time(), "cpu_s": time.process_time() - cpu, "api": "POST /jobs"}
        jobs = order.jobs()
        for first in range(0, len(jobs), CALL):
            call = jobs[first : first + CALL]
            made = self._client.jobs.create_many([_job(name, at, order.url) for name, at in call])
            if made.errors:
                raise Trouble(f"Punctual refused {made.refused} jobs: {made.errors[0].error}")
            self._posted |= {job.id: item for job, item in zip(made.jobs, call, strict=True)}
        api = f"POST /jobs/batch, {CALL:,} a call"
        return {"began": began, "ended": time.time(), "cpu_s": time.process_time() - cpu, "api": api}

    def store(self, count: int) -> None:
        later.store(self.stack, count)

    def ended(self, work: Workload, order: Order) -> bool:
        if time.time() < order.at + order.seconds + QUIET_S:
            return False
        if len(self.starts(work, order)) >= work.count:
            return True
        time.sleep(1)  # a read takes processor time from the executors
        return False

    def starts(self, work: Workload, order: Order) -> list[Start]:
        """The starts as the executors stamped them, in whole milliseconds; of calls, their arrivals."""
        if order.url:
            return read_starts(self.url_log, order)
        latest = order.at + order.seconds + (SLOW_S if order.one_by_one else 0)
        since, until = math.floor(order.at * 1_000), math.ceil(latest * 1_000) + 1
        found: list[Start] = []
        after: str | None = None
        while True:
            page = self._table.history(self._owner, since=since, until=until, after=after, limit=work.count + 1, newest_first=False)
            ours = [(*self._posted[job.id], job.started_at) for job in page.jobs if job.id in self._posted]
            found += [Start(name, at - due * 1_000) for name, due, at in ours if at is not None]
            if (after := page.cursor) is None:
                return found


def _job(name: str, at: float, url: str) -> dict[str, Any]:
    return {**_content(name, url), "execute_at": rfc3339(datetime.fromtimestamp(at, UTC))}


def _content(name: str, url: str) -> dict[str, Any]:
    if url:
        return {"type": "http", "payload": {"method": "GET", "url": f"{url}?{name}"}}
    return {"type": "log", "payload": {"message": name}}


@contextmanager
def ours(folder: Path, url_log: str, home: Home = COMPARE) -> Iterator[Ours]:
    """Start a stack in this home, warmed up."""
    previous.clear(home)
    shutil.rmtree(home.root, ignore_errors=True)
    with up(home) as stack:
        warm_up(stack.aws, stack.outputs, OneTime=READY)
        yield Ours(stack, url_log)


NO_STORE = {"stored": "it holds its jobs in memory"}
NO_FAR = {"stored": "SQS delays a message by 15 minutes at most"}
OURS = "punctual"
CONTESTANTS = (
    Contestant(OURS, "Punctual, local stack", ours),
    _peer("graphile-worker", "Graphile Worker", "node", "graphile", "postgres"),
    _peer("pg-boss", "pg-boss", "node", "pgboss", "postgres"),
    _peer("bullmq", "BullMQ", "node", "bullmq", "redis-hz100"),
    _peer("bunqueue", "bunqueue", "bun", "bunqueue"),
    _peer("celery-redis", "Celery with Redis", "python", "celery_app", "redis"),
    _peer("celery-rabbitmq", "Celery with RabbitMQ", "python", "celery_app", "rabbitmq"),
    _peer("apscheduler", "APScheduler 3", "python", "apscheduler_app"),
    _peer("dramatiq", "dramatiq with Redis", "python", "dramatiq_app", "redis"),
    _peer("huey", "huey with Redis", "python", "huey_app", "redis"),
    _peer("procrastinate", "procrastinate", "python", "procrastinate_app", "postgres"),
    Contestant("sqs-delay", "SQS delay, local AWS", driver("python", f"{DRIVERS}.sqs_delay", AWS, own=True), cannot=NO_FAR),
    Contestant("sleep", "`sleep` in a worker", driver("python", f"{DRIVERS}.sleeping", own=True), floor=True, cannot=NO_STORE),
)
