"""The peers' servers: each on a free port of the loopback, with its data in a folder of its own."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from local.aws import HOST
from local.failure import Trouble

PATIENCE_S = 120.0
OWNER = "postgres"  # PostgreSQL refuses to run as root


class Running(NamedTuple):
    """The processes of a server, and what its clients read from their environment."""

    processes: list[subprocess.Popen[bytes]]
    environment: Mapping[str, str]


class Server(NamedTuple):
    """A server from a package of the system."""

    package: str
    settings: str
    program: Callable[[], str | None]  # its path; None: it is not installed
    start: Callable[[Path, str], Running]  # in a folder that only it uses


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def spawn(command: list[str], log: Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a program in the background; its output goes to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=cwd,
            start_new_session=True,
        )


def _redis(hz: int) -> Callable[[Path, str], Running]:
    def start(folder: Path, program: str) -> Running:
        port = free_port()
        command = [program, "--port", str(port), "--bind", HOST, "--dir", str(folder), "--appendonly", "yes", "--appendfsync", "everysec"]
        server = spawn([*command, "--maxmemory-policy", "noeviction", "--hz", str(hz)], folder / "server.log")
        return _listening(server, port, Running([server], {"COMPARE_REDIS": f"redis://{HOST}:{port}/0"}))

    return start


def _postgres(folder: Path, program: str) -> Running:
    port, data, tools = free_port(), folder / "data", Path(program).parent
    as_owner: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, OWNER, OWNER)
        as_owner = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups"]
    create = [str(tools / "initdb"), "-D", str(data), "-A", "trust", "-U", OWNER, "-E", "UTF8", "--locale=C.UTF-8"]
    subprocess.run([*as_owner, *create], check=True, capture_output=True, cwd=folder)
    settings = [f"listen_addresses={HOST}", "unix_socket_directories=", "shared_buffers=1GB", "max_connections=100"]
    options = [part for setting in settings for part in ("-c", setting)]
    server = spawn([*as_owner, program, "-D", str(data), "-p", str(port), *options], folder / "server.log", cwd=folder)
    running = _listening(server, port, Running([server], {"COMPARE_POSTGRES": f"postgresql://{OWNER}@{HOST}:{port}/{OWNER}"}))
    ready = [str(tools / "pg_isready"), "-h", HOST, "-p", str(port)]
    _wait(lambda: subprocess.run(ready, capture_output=True, check=False).returncode == 0, "PostgreSQL", running)
    return running


def _rabbitmq(folder: Path, program: str) -> Running:
    port, epmd_port, epmd = free_port(), free_port(), shutil.which("epmd") or "epmd"
    environment = {
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": HOST,
        "RABBITMQ_NODENAME": f"compare{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "RABBITMQ_CONFIG_FILE": str(folder / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
    }
    names = spawn([epmd, "-port", str(epmd_port), "-address", HOST], folder / "epmd.log", environment)
    server = spawn([program], folder / "server.log", environment)
    return _listening(server, port, Running([server, names], {"COMPARE_AMQP": f"amqp://guest:guest@{HOST}:{port}//"}))


def _listening(server: subprocess.Popen[bytes], port: int, running: Running) -> Running:
    def answers() -> bool:
        with socket.socket() as client:
            client.settimeout(1)
            return client.connect_ex((HOST, port)) == 0

    _wait(answers, str(server.args), running)
    return running


def _wait(ready: Callable[[], bool], name: str, running: Running) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        if running.processes[0].poll() is not None or time.monotonic() > deadline:
            from compare.accounting import stop

            stop([each.pid for each in running.processes])
            raise Trouble(f"{name} did not start.")
        time.sleep(0.05)


def _newest(pattern: str) -> str | None:
    return str(max(found)) if (found := list(Path("/usr/lib").glob(pattern))) else None


_REDIS = "append-only file, fsync every second, noeviction"
SERVERS = {
    "redis": Server("redis-server", f"Redis: {_REDIS}, hz 10 (default)", lambda: shutil.which("redis-server"), _redis(10)),
    "redis-hz100": Server("redis-server", f"Redis: {_REDIS}, hz 100", lambda: shutil.which("redis-server"), _redis(100)),
    "postgres": Server(
        "postgresql", "PostgreSQL: defaults with fsync, shared_buffers 1 GB", lambda: _newest("postgresql/*/bin/postgres"), _postgres
    ),
    "rabbitmq": Server(
        "rabbitmq-server", "RabbitMQ: defaults", lambda: _newest("rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"), _rabbitmq
    ),
}
