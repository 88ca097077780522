"""The web console in a real Chromium on the deployed stack: runs the stories of `console/browser` with the console's own tools."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from local.home import REPOSITORY
from scheduler.model import ids
from scheduler.model.job import TaskKey
from scheduler.storage.aws import keys, task_items
from tests.system.conftest import System

pytestmark = pytest.mark.apart

CONSOLE = REPOSITORY / "console"
ARTEFACTS = CONSOLE / "artefacts"  # the pictures of this run


MANY = "many-tasks"
TASKS = 10_000


def owner_of_many_tasks(deployed: System) -> str:
    """Create the user MANY with `TASKS` paused tasks, written directly to the table: the API would take minutes. Returns the password."""
    password = deployed.create_user(MANY)
    client = deployed.sign_in(MANY, password)
    made = client.tasks.create("number 0", "log", {"message": "one of many"}, schedule={"cron": "0 0 1 1 *"}).raw
    client.tasks.pause(made["id"], reason="only to be looked at")
    table, database = deployed.outputs["TasksTable"], deployed.aws("dynamodb")
    key = TaskKey(client.request("GET", "/me")["id"], made["id"])
    task = task_items.decode(database.get_item(TableName=table, Key=keys.stored_task(key), ConsistentRead=True)["Item"])
    at = {n: task.created_at - (TASKS - n) * 1_000 for n in range(1, TASKS)}
    others = (replace(task, id=ids.new(at[n], n, partitions=1), name=f"number {n}", created_at=at[n]) for n in at)
    puts = ({"PutRequest": {"Item": task_items.encode(each)}} for each in others)
    while batch := list(islice(puts, 25)):
        while batch:
            batch = database.batch_write_item(RequestItems={table: batch})["UnprocessedItems"].get(table, [])
    return password


STORIES = "browser/**/*.test.ts"


def stories(system: System, artefacts: Path, *options: str, files: str = STORIES, many: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the stories against the console that the stack serves; `options` are Vitest's. One story needs the user MANY, with `many`."""
    variables = {
        "CONSOLE_URL": system.stack.console_address,
        "CONSOLE_API": system.address,
        "CONSOLE_USER": system.stack.username,
        "CONSOLE_PASSWORD": system.stack.password,
        "CONSOLE_RECEIVER": system.receiver.url("/ok/console"),
        "CONSOLE_ARTEFACTS": str(artefacts),
        "CONSOLE_MANY_USER": MANY,
        "CONSOLE_MANY_PASSWORD": owner_of_many_tasks(system) if many else "none",
        "CONSOLE_STORIES": files,
    }
    runner = [str(CONSOLE / "node_modules/.bin/vitest"), "run", "--config", "vitest.browser.config.ts", *options]
    return subprocess.run(runner, cwd=CONSOLE, env={**os.environ, **variables}, capture_output=True, text=True)


DARK = "dark, on a desk"  # the story that looks at all pages again in the other colours


def test_the_stories_of_the_console_pass_in_a_browser(deployed: System, capsys: pytest.CaptureFixture[str]) -> None:
    done = stories(deployed, ARTEFACTS, "--testNamePattern", f"^(?!.*{DARK}).*$", many=True)
    figures = [line for line in done.stdout.splitlines() if "figures:" in line]
    with capsys.disabled():
        sys.stdout.write("".join(f"\n{line}" for line in figures))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert (ARTEFACTS / "tasks.png").exists()


def test_the_pages_pass_in_the_dark(deployed: System) -> None:
    done = stories(deployed, ARTEFACTS, "--testNamePattern", DARK)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert (ARTEFACTS / "tasks-dark.png").exists()
