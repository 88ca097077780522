"""The command `punctual` as a process of its own, against the deployed stack."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from secrets import token_urlsafe

import pytest

from docs_build import record
from tests.system.conftest import System, until

ROOT = Path(__file__).parents[2]


class Shell:
    """Runs `punctual` with profiles of its own."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PUNCTUAL_")},
            "PUNCTUAL_CONFIG": str(folder / "profiles.json"),
            "PYTHONPATH": str(ROOT / "client/src"),
            "NO_COLOR": "1",
        }

    def __call__(self, *words: str, code: int = 0, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "punctual", *words],
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout if code == 0 else done.stderr

    def started(self, *words: str) -> "subprocess.Popen[str]":
        """The command while it runs; its output is read by the caller."""
        return subprocess.Popen(
            [sys.executable, "-m", "punctual", *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )

    def json(self, *words: str) -> Iterator[dict[str, object]]:
        for line in self(*words, "--json").splitlines():
            yield json.loads(line)


@pytest.fixture(scope="module")
def punctual(deployed: System, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Signed in as a new user."""
    shell, password = Shell(tmp_path_factory.mktemp("profiles")), deployed.create_user("typist")
    assert "as typist (user)" in shell("login", deployed.address, "--username", "typist", PUNCTUAL_PASSWORD=password)
    return shell


def test_a_secret_of_the_local_stack_is_stored_used_and_deleted(deployed: System, punctual: Shell) -> None:
    url, value = deployed.receiver.url("/ok/cli-secret"), f"sk-{token_urlsafe(18)}"
    assert punctual("secrets", "put", "typed", PUNCTUAL_NEW_SECRET=value) == "Secret typed is stored.\n"
    assert [each["name"] for each in punctual.json("secrets", "list")] == ["typed"]
    job = ("jobs", "create", "--max-attempts", "1", "http", "POST", url, "--payload", '{"bearer_secret": "typed"}', "-q")
    assert "succeeded" in punctual("jobs", "watch", punctual(*job).strip())
    assert value not in punctual("jobs", "list", "--json")
    punctual("secrets", "delete", "typed", "--yes")
    assert list(punctual.json("secrets", "list")) == []


def test_a_job_is_created_watched_and_listed(deployed: System, punctual: Shell) -> None:
    url = deployed.receiver.url("/ok/cli")
    id = punctual(
        "jobs", "create", "--in", "1h", "--key", "order:17", "--tag", "cli", "http", "POST", url, "-d", '{"order": 17}', "-q"
    ).strip()
    with punctual.started("jobs", "watch", "--key", "order:17", "--json") as watch:
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())  # a line is there at once, also on a pipe
        punctual("jobs", "update", "--key", "order:17", "--in", "1s")
        states = [first["status"], *(json.loads(line)["status"] for line in watch.stdout)]
    assert states[0] in ("scheduled", "queued") and states[-1] == "succeeded"
    assert watch.returncode == 0
    (job,) = punctual.json("jobs", "list", "--tag", "cli")
    assert (job["id"], job["status"]) == (id, "succeeded")
    assert deployed.receiver.counts()["/ok/cli"] == 1
    assert "POST" in punctual("jobs", "show", id)


def test_the_first_job_is_recorded_at_a_terminal(deployed: System) -> None:
    """`make screenshots` makes the picture of the docs in this way."""
    stack = deployed.stack
    shown = record.record(stack.address, stack.username, stack.password, deployed.receiver.url("/ok/hello"))
    assert "Signed in to" in shown and shown.count("succeeded") == 1 and "scheduled " not in shown.partition("what")[2]
    assert "succeeded" in record.svg(shown)


def test_a_job_is_cancelled_by_its_key(punctual: Shell) -> None:
    punctual("jobs", "create", "--in", "1h", "--key", "k", "log", "never")
    assert "is cancelled" in punctual("jobs", "cancel", "--key", "k")
    punctual("jobs", "watch", "--key", "k", code=1)


def test_many_jobs_are_cancelled_by_a_filter(punctual: Shell) -> None:
    for number in range(3):
        punctual("jobs", "create", "--in", "2h", "--tag", "many", "log", str(number))
    until(300, lambda: punctual("jobs", "cancel", "--tag", "many", "--dry-run") == "3 jobs would be cancelled.\n")
    assert "is done: 3 done" in punctual("jobs", "cancel", "--tag", "many", "--yes")


def test_dead_letters_are_redriven(deployed: System, punctual: Shell) -> None:
    url = deployed.receiver.url("/status/404/cli")
    punctual("jobs", "create", "--watch", "http", url, code=1)
    (group,) = until(300, lambda: list(punctual.json("dead-letters", "list")))
    assert "1 of 1 run again" in punctual("dead-letters", "redrive", "--fingerprint", str(group["fingerprint"]), "--yes")
    until(60, lambda: deployed.receiver.counts()["/status/404/cli"] == 2)


def test_a_task_is_created_run_paused_and_deleted(punctual: Shell) -> None:
    punctual("tasks", "create", "Nightly report", "--key", "nightly", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "log", "report")
    assert "succeeded" in punctual("tasks", "run", "--key", "nightly", "--watch")
    assert len(punctual("tasks", "preview", "--key", "nightly", "-n", "3").splitlines()) == 3
    assert "is paused" in punctual("tasks", "pause", "--key", "nightly", "--reason", "holidays")
    assert "holidays" in punctual("tasks", "show", "--key", "nightly")
    assert "is deleted" in punctual("tasks", "delete", "--key", "nightly", "--yes")
    punctual("tasks", "show", "--key", "nightly", code=4)
    changes = punctual.json("audit", "--since", "1h", "--action", "task")
    assert [each["action"] for each in changes][:4] == ["task.delete", "task.pause", "task.run", "task.put"]


def test_the_doctor_and_the_forecast_answer(punctual: Shell) -> None:
    states = {str(check["check"]): check["state"] for check in punctual.json("doctor")}
    assert states["address"] == states["sign-in"] == states["clock"] == "ok"
    (forecast,) = [json.loads(punctual("forecast", "--json"))]
    assert len(forecast["minutes"]) >= 180


def test_mistakes_say_what_to_do(deployed: System, punctual: Shell) -> None:
    assert "max_attempts: must be at most 25" in punctual("jobs", "create", "--max-attempts", "99", "log", "x", code=2)
    assert "there is no profile 'prod'" in punctual("jobs", "list", "--profile", "prod", code=3)
    expired = {"PUNCTUAL_URL": deployed.address, "PUNCTUAL_TOKEN": "expired"}
    assert "renew them there" in punctual("jobs", "list", code=3, **expired)
    assert "punctual whoami" in punctual("users", "list", code=1)


def test_logout_ends_the_session(deployed: System, tmp_path: Path) -> None:
    shell, password = Shell(tmp_path), deployed.create_user("guest")
    shell("login", deployed.address, "-u", "guest", PUNCTUAL_PASSWORD=password)
    assert "Signed out" in shell("logout")
    assert "punctual login" in shell("jobs", "list", code=3)
