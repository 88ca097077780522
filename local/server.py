"""The process of the local AWS: starts it on a port of this machine, waits until it is healthy, stops it with its state saved."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from local import process, state
from local.aws import ACCOUNT, HOST, REGION, LocalAws
from local.busy import Patience
from local.failure import Trouble
from local.home import Home

# `local`, or a longer name in the package of the server. The folder that it is imported from is as many levels up.
PACKAGE = __name__.rpartition(".")[0]
IMPORTED_FROM = Path(__file__).resolve().parents[len(PACKAGE.split("."))]
MAIN = f"from {PACKAGE}.emulator import main; main()"  # its argument is the home
# Not `-m` with a PYTHONPATH: the functions would inherit it and import modules from here that their bundle lacks.
START = f"import sys; sys.path.append({str(IMPORTED_FROM)!r}); {MAIN}"
FIRST_PORT = 4566
PORTS = 500  # number of ports that are tried
LONGEST = 600.0  # seconds to start, and to stop: the local AWS writes its state when it stops


@dataclass(frozen=True)
class Server:
    """A local AWS that this process started."""

    home: Home
    aws: LocalAws
    child: subprocess.Popen[bytes]

    @property
    def alive(self) -> bool:
        return self.child.poll() is None

    def stop(self) -> None:
        """Stop the local AWS with its state saved, then the workers that it left running. Idempotent.

        Raises Trouble if the state was not saved.
        """
        is_stopped = not self.alive or end(self.home, process.Process(self.child.pid, process.started(self.child.pid) or ""))
        self.child.wait()
        end_workers(self.home)
        self.home.running.drop()
        if not is_stopped:
            raise Trouble(f"The state of this run was not saved; the state before it is kept. The log has the reason: {self.home.log}")


def end(home: Home, aws: process.Process) -> bool:
    """Stop a local AWS. Returns whether its state was saved; if not, the state with which it began remains."""
    aws.signal(signal.SIGTERM)
    patience = Patience()
    while aws.alive and not home.saved.exists() and patience.seconds < LONGEST:
        patience.tell("The local AWS has been saving its state")
        time.sleep(0.05)
    process.kill(aws)  # with its state saved, it may still wait for functions that run
    return home.saved.exists()


def of_home(home: Home) -> list[process.Process]:
    """Return the local AWS that runs on the home, also one that its owner could not note."""
    return process.ending_in(f"{MAIN} {home.root}")


def start(home: Home, port: int, *, enforce_iam: bool = False, functions_endpoint: str | None = None) -> Server:
    """Start a local AWS on the state of `home` and wait until it answers. With `enforce_iam`, roles are enforced as on AWS.

    `functions_endpoint`: the address at which its functions call AWS, if not its own (`lab/scenarios/faulty.py`).
    """
    home.create()
    state.mend(home, port)
    aws = LocalAws(port)
    endpoint = {"AWS_ENDPOINT_URL": functions_endpoint} if functions_endpoint else {}
    with home.log.open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-c", START, str(home.root)],
            env={**aws.environment(), **_settings(home, port, enforce_iam), **endpoint},
            cwd=home.scratch,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches only this process, which then stops the local AWS in order
        )
    owner = process.this()
    home.running.write(pid=child.pid, started=process.started(child.pid), owner=owner.pid, owner_started=owner.started, port=port)
    server = Server(home, aws, child)
    try:
        _wait_until_healthy(server)
    except BaseException:
        with suppress(Trouble):  # nothing has happened that could be saved
            server.stop()
        raise
    home.settled.update(port=port)
    return server


def _settings(home: Home, port: int, enforce_iam: bool) -> dict[str, str]:
    return {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": HOST,
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "AUTH": str(enforce_iam).lower(),
        "PERSIST_STATE": "1",
        "STATE_DIR": str(home.state),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(home.objects),
        "TMPDIR": str(home.scratch),
        "IOT_MTLS_ENABLED": "0",  # otherwise it listens on port 8883 of every address
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": os.environ.get("LOCAL_AWS_LOG_LEVEL", "WARNING"),  # INFO repeats the output of every function
        "LAMBDA_ACCOUNT_CONCURRENCY": "1000",  # as on AWS; its own default follows the memory of the machine
        "LAMBDA_WARM_TTL_SECONDS": "3600",  # executors that a burst started stay warm for the next one
        "PYTHONUNBUFFERED": "1",
    }


def _wait_until_healthy(server: Server) -> None:
    patience = Patience()
    while not healthy(server.aws):
        if not server.alive:
            raise Trouble(f"The local AWS did not start. The last lines of its log, {server.home.log}:\n{log_tail(server.home)}")
        if patience.seconds > LONGEST:
            raise Trouble(f"The local AWS did not answer within {LONGEST:.0f} s. Its log is {server.home.log}")
        patience.tell("The local AWS has been starting")
        time.sleep(0.05)


def healthy(aws: LocalAws) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{aws.endpoint}/_ministack/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def log_tail(home: Home, lines: int = 15) -> str:
    try:
        return "\n".join("    " + line for line in home.log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "    (no log)"


def end_workers(home: Home) -> int:
    """End the Lambda workers without a local AWS (they use memory and may still write) and delete their files; returns their number."""
    left = process.naming(home.scratch)
    process.end(left, patience=1)
    shutil.rmtree(home.scratch, ignore_errors=True)
    return len(left)


def choose_port(home: Home, requested: str | None) -> int:
    """Return the requested port, else the port used last, else the first free one. Raises Trouble if the requested port is taken.

    The port is reserved until this process ends, also while nothing listens on it yet, and between a stop and a start.
    """
    if requested:
        port = _number(requested)
        if not _take(port):
            raise Trouble(
                f"Port {port} is taken by another program. "
                f"Choose another port ({home.commands.run_at.format(port=_first_free(port + 1))}),\n"
                f"let Punctual choose one ({home.commands.run}), "
                f"or find that program: ss -ltnp 'sport = :{port}'   (macOS: lsof -i :{port})"
            )
        return port
    last = home.settled.read().get("port", FIRST_PORT)
    for port in (last, *range(FIRST_PORT, FIRST_PORT + PORTS)):
        if _take(port):
            return int(port)
    choose = home.commands.run_at.format(port="...")
    raise Trouble(f"No port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} is free. Choose a port: {choose}")


_taken: dict[int, int] = {}  # by port: the descriptor of its lock, which the system releases when this process ends


def _take(port: int) -> bool:
    """Reserve a free port against other runs of this user. Returns False if it is taken."""
    if not free(port):
        return False
    if port not in _taken:
        lock = os.open(lock_of(port), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        _taken[port] = lock
    return True


def lock_of(port: int) -> Path:
    """Return the lock file of the port; the process that has reserved the port keeps it locked."""
    return Path(tempfile.gettempdir()) / f"punctual-{os.getuid()}-port-{port}"


def _number(text: str) -> int:
    if not text.isdecimal() or not 1024 <= int(text) <= 65535:
        raise Trouble(f"PORT must be a number from 1024 to 65535, not {text!r}.")
    return int(text)


def _first_free(first: int) -> int:
    return next((port for port in range(first, min(first + PORTS, 65536)) if free(port)), first)


def free(port: int) -> bool:
    """True if no process listens on the port, on the loopback or on all addresses."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
