"""Monitors on the deployed stack: silence and the next ping are noticed once each, although the worker is killed, or AWS restarts."""

import itertools
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from infra.settings import LOCAL
from tests.system.conftest import System, until

pytestmark = [pytest.mark.apart, pytest.mark.soak]
HOOK = "/ok/monitored"
THREADS = 2
PAUSES = (1, 2, 5, 10, 30)  # seconds between the tries of a ping


def pinged(system: System, path: str) -> None:
    """Ping as `punctual monitor run` does: again after an error of the server, or without an answer."""
    for pause in (*PAUSES, None):
        try:
            with urllib.request.urlopen(system.address.removesuffix("/api/v1") + path, timeout=60) as answer:
                assert answer.status == 200
                return
        except urllib.error.HTTPError as error:
            assert error.code >= 500 and pause is not None, f"{error.code} {error.read()!r}"
        except OSError:
            if pause is None:
                raise
        time.sleep(pause)


@contextmanager
def alive(system: System, paths: Sequence[str], every: float) -> Iterator[None]:
    """Ping each of these, again and again, evenly spread over the period, one after the other: many at once start many functions."""
    over = threading.Event()

    def ping() -> None:
        began = time.monotonic()
        for number in itertools.count():
            if over.wait(max(0, began + number * every / len(paths) - time.monotonic())):
                return
            pinged(system, paths[number % len(paths)])

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(ping)
        try:
            yield
        finally:
            over.set()
    done.result()


def events(system: System) -> dict[str, list[dict[str, Any]]]:
    """The bodies that the receiver got, in order, by the key of the monitor; a repeated call counts once."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for call in system.receiver.calls(HOOK):
        body = json.loads(call.body)
        id = {name.lower(): value for name, value in call.headers.items()}["webhook-id"]
        found.setdefault(body["data"]["monitor"]["key"], {})[id] = body
    return {key: list(bodies.values()) for key, bodies in found.items()}


def arrivals(system: System) -> dict[str, float]:
    """When the first call about each monitor arrived, in UTC seconds, by its key."""
    calls = sorted(system.receiver.calls(HOOK), key=lambda call: call.at, reverse=True)
    return {json.loads(call.body)["data"]["monitor"]["key"]: call.at / 1_000 for call in calls}


def instant(written: str) -> float:
    return datetime.fromisoformat(written).timestamp()


def nothing(system: System) -> None:
    pass


def kill_workers(system: System) -> None:
    for worker in system.workers("DispatchFunction"):
        os.kill(worker.pid, signal.SIGKILL)


def restart(system: System) -> None:
    system.stack.restart(enforce_iam=True)


@pytest.mark.parametrize(
    ("fault", "number", "period", "grace", "every"),
    [(nothing, 22, 30, 15, 10), (kill_workers, 20, 30, 15, 10), (restart, 21, 60, 60, 10), (kill_workers, 500, 360, 60, 300)],
    ids=["quiet", "few", "restart", "many"],
)
def test_silence_and_its_end_are_noticed_once_through_a_fault(
    deployed: System, fault: Callable[[System], None], number: int, period: int, grace: int, every: int, capsys: pytest.CaptureFixture[str]
) -> None:
    client, system = deployed.client(f"watched{number}"), deployed
    system.aws("secretsmanager").create_secret(
        Name=f"{LOCAL.secret_prefix}{client.me().id}/hook", SecretString="whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
    )
    client.request(
        "PUT", "/receivers/hook", {"kind": "webhook", "address": system.receiver.url(HOOK), "signing_secret": "hook", "default": True}
    )

    def put(key: str) -> str:
        body = {"name": key, "period_seconds": period, "grace_seconds": grace, "notifications": {}}
        path: str = client.request("PUT", f"/monitors/{key}", body)["ping_path"]
        return path

    keys = [f"w{number}-{each}" for each in range(number)]
    with ThreadPoolExecutor(THREADS) as threads:
        paths = dict(zip(keys, threads.map(put, keys), strict=True))
    silent = keys[:: max(number // 2, 10)]
    with alive(system, [path for key, path in paths.items() if key not in silent], every):
        for key in silent:
            pinged(system, paths[key])
        due = max(instant(client.request("GET", f"/monitors/{key}")["down_at"]) for key in silent)
        until(period + grace + 60, lambda: time.time() > due)
        fault(system)
        until(300, lambda: all(key in events(system) for key in silent))
        downs = {key: client.request("GET", f"/monitors/{key}") for key in silent}
        for key in silent:
            pinged(system, paths[key])
        until(300, lambda: all(len(events(system)[key]) >= 2 for key in silent))
    assert {state["state"] for state in downs.values()} == {"down"}
    found = {key: bodies for key, bodies in events(system).items() if key in keys}
    told = {key: [body["type"] for body in bodies[:2]] for key, bodies in found.items()}  # a third one may come on a slow machine
    assert told == {key: ["monitor.down", "monitor.up"] for key in silent}
    late = [instant(found[key][0]["timestamp"]) - instant(downs[key]["pinged_at"]) - period - grace for key in silent]
    assert min(late) >= 0
    came = arrivals(system)
    arrived = [came[key] - instant(downs[key]["pinged_at"]) - period - grace for key in silent]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{number} monitors, {fault.__name__} at the deadline: down {min(late):.1f} to {max(late):.1f} s after the grace, "
            f"the notice came {min(arrived):.1f} to {max(arrived):.1f} s after it"
        )
