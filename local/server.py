"""The local AWS as a process: started on one port of this machine, healthy, stopped so that its state is kept."""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from local import process, state
from local.aws import ACCOUNT, HOST, REGION, LocalAws
from local.failure import Trouble
from local.home import REPOSITORY, Home

# Not `-m` with a PYTHONPATH: the functions would inherit it, and import from here what is not in their bundle.
START = f"import sys; sys.path.append({str(REPOSITORY)!r}); from local.emulator import main; main()"
FIRST_PORT = 4566
PORTS = 500  # that are tried
PATIENCE = 30.0  # seconds to start, and to stop: it writes its state when it stops


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
        """Stop it so that its state is on disk, then whatever it left running. Idempotent."""
        clean = process.end([process.Process(self.child.pid, process.started(self.child.pid) or "")], PATIENCE) if self.alive else True
        self.child.wait()
        end_workers(self.home)
        self.home.running.drop()
        if not clean:
            raise Trouble(f"The local AWS did not stop within {PATIENCE:.0f} s and was killed: what happened since it started is lost.")


def start(home: Home, port: int, *, enforce_iam: bool = False, through: str | None = None) -> Server:
    """Start a local AWS on the state of `home` and wait until it answers. With `enforce_iam`, roles are enforced as on AWS.

    `through`: the address at which its functions look for AWS, if it is not its own (`local/faulty.py`).
    """
    home.create()
    state.mend(home, port)
    aws = LocalAws(port)
    with home.log.open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-c", START],
            env={**aws.environment(), **_settings(home, port, enforce_iam), **({"AWS_ENDPOINT_URL": through} if through else {})},
            cwd=home.scratch,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us: we stop it in order
        )
    owner = process.this()
    home.running.write(pid=child.pid, started=process.started(child.pid), owner=owner.pid, owner_started=owner.started, port=port)
    server = Server(home, aws, child)
    try:
        _wait_until_healthy(server)
    except BaseException:
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
        "IOT_MTLS_ENABLED": "0",  # it would listen on port 8883 of every address
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": os.environ.get("LOCAL_AWS_LOG_LEVEL", "WARNING"),  # INFO repeats what every function prints
        "LAMBDA_ACCOUNT_CONCURRENCY": "1000",  # as on AWS; its own default follows the memory of the machine
        "LAMBDA_WARM_TTL_SECONDS": "3600",  # executors that a burst started stay warm for the next one
        "PYTHONUNBUFFERED": "1",
    }


def _wait_until_healthy(server: Server) -> None:
    deadline = time.monotonic() + PATIENCE
    while not healthy(server.aws):
        if not server.alive:
            raise Trouble(f"The local AWS did not start. Its log, {server.home.log}, ends:\n{log_tail(server.home)}")
        if time.monotonic() > deadline:
            raise Trouble(f"The local AWS did not answer within {PATIENCE:.0f} s. Its log: {server.home.log}")
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
    """Kill the Lambda workers that no local AWS owns any more (they hold memory and may still write) and drop what they ran."""
    left = process.naming(home.scratch)
    process.end(left, patience=1)
    shutil.rmtree(home.scratch, ignore_errors=True)
    return len(left)


def choose_port(home: Home, wanted: str | None) -> int:
    """The port asked for, or the one used last, or the first free one. Raises Trouble if the one asked for is taken.

    It is this process's until that ends, also in the seconds until something listens on it, and between a stop and a start.
    """
    if wanted:
        port = _number(wanted)
        if not _take(port):
            raise Trouble(
                f"Port {port} is taken by another program. Either choose another one (make run PORT={_first_free(port + 1)}),\n"
                f"or none (make run), or see who has it: ss -ltnp 'sport = :{port}'   (macOS: lsof -i :{port})"
            )
        return port
    last = home.settled.read().get("port", FIRST_PORT)
    for port in (last, *range(FIRST_PORT, FIRST_PORT + PORTS)):
        if _take(port):
            return int(port)
    raise Trouble(f"No free port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1}. Choose one: make run PORT=...")


_taken: dict[int, int] = {}  # by port: the descriptor of its lock, which the system lets go of when this process ends


def _take(port: int) -> bool:
    """Take a free port, before anybody else of this user does."""
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
    """The file that is locked by who has the port."""
    return Path(tempfile.gettempdir()) / f"punctual-{os.getuid()}-port-{port}"


def _number(text: str) -> int:
    if not text.isdecimal() or not 1024 <= int(text) <= 65535:
        raise Trouble(f"PORT must be a number from 1024 to 65535, not {text!r}.")
    return int(text)


def _first_free(first: int) -> int:
    return next((port for port in range(first, min(first + PORTS, 65536)) if free(port)), first)


def free(port: int) -> bool:
    """Whether nobody listens on the port, on this machine's loopback or on all addresses."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
