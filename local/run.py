"""`make run`: start the whole stack, post sample jobs and tasks, and show the jobs live in the terminal until Ctrl-C."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from punctual import NoAnswer, Punctual, PunctualError, Unavailable
from rich.live import Live

from local import table
from local.failure import Trouble, exit_code
from local.home import LOCAL, Home
from local.receiver import Receiver
from local.samples import clear_tasks, sample_tasks, samples
from local.stack import Stack, up
from local.steps import console, step
from local.warmup import READY, warm_up

EVERY = 1.0  # seconds between two reads
BUSY = 120.0  # seconds without an answer before `make run` stops: a busy machine is slow
GONE = "(deleted)"  # shown as the name of a deleted task


def main() -> int:
    begin = time.monotonic()
    home = Home(LOCAL)
    with up(home, port=os.environ.get("PORT")) as stack, Receiver() as receiver:
        with step("Warming up the functions"):
            client = stack.client()
            warm_up(stack.aws, stack.outputs, OneTime=READY, Recurring=3, Retry=2)
        with step("Posting the sample jobs and tasks"):
            clear_tasks(client)
            for sample in samples(receiver, datetime.now(UTC)):
                sample.post(client)
            for task in sample_tasks(datetime.now(UTC)):
                task.create(client)
        introduce(stack, time.monotonic() - begin)
        try:
            show(stack, client)
        except KeyboardInterrupt:
            console.print("\nStopping. Your jobs and tasks are kept for the next `make run`.")
    return 0


def introduce(stack: Stack, seconds: float) -> None:
    """Print addresses, credentials and first commands, ready to copy."""
    console.print(f"\nPunctual is up after {seconds:.0f} s.\n")
    console.print(f"  console    {stack.console_address or 'none: stages/local.toml says console = false'}", markup=False)
    console.print(f"  API        {stack.address}/api/v1", markup=False)
    console.print(f"  user       {stack.username}", markup=False)
    console.print(f"  password   {stack.password}", markup=False)
    console.print(f"  AWS log    {stack.home.log}\n", markup=False)
    console.print("Post a job that runs in 10 seconds, from another terminal in this folder:\n")
    console.print(example(stack.address, stack.username, stack.password), markup=False, style="dim")
    console.print("\nThen create a task with three runs (the sample tasks end in an hour):\n")
    console.print(f"  {TASK_EXAMPLE}\n", markup=False, style="dim")


def example(address: str, username: str, password: str) -> str:
    """Return commands that sign in, post a job and watch it, for a POSIX shell in the folder of the repository."""
    return "\n".join(
        (
            f"  PUNCTUAL_PASSWORD='{password}' .venv/bin/punctual login '{address}' --username {username}",
            "  .venv/bin/punctual jobs create --in 10s --key hello log hello",
            "  .venv/bin/punctual jobs watch --key hello",
        )
    )


TASK_EXAMPLE = ".venv/bin/punctual tasks create mine --rate '10 seconds' --max-runs 3 log 'hello again'"


def show(stack: Stack, client: Punctual) -> None:
    """Show the jobs live, until an interrupt."""
    names: dict[str, str] = {}
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                jobs = table.choose(*look(stack, client, names), height=max(5, console.height - 6))
                live.update(table.picture(jobs, "Ctrl-C stops everything; your jobs are kept.", names=names), refresh=True)
                time.sleep(EVERY)
    status: dict[str, str] = {}
    while True:
        past, ahead = look(stack, client, names)
        for job in table.changed(status, table.choose(past, ahead, height=200)):
            console.print(table.row(job, names=names).line(), markup=False)
            status[job["id"]] = job["status"]
        time.sleep(EVERY)


Jobs = Sequence[Mapping[str, Any]]


def look(stack: Stack, client: Punctual, names: dict[str, str]) -> tuple[Jobs, Jobs]:
    """Return the latest jobs that were due and the next upcoming jobs; adds the names of their tasks to `names`.

    Raises Trouble if the local AWS has ended, or has not answered for `BUSY`.
    """
    silent_since = time.monotonic()
    while True:
        try:
            ahead = [job.raw for job in client.jobs.list(upcoming=True, limit=50)]
            past = [job.raw for job in client.jobs.list(limit=50)]
            learn(names, [*past, *ahead], lambda: (task.raw for task in client.tasks.list()))
            return past, ahead
        except PunctualError as error:
            may_recover = isinstance(error, NoAnswer | Unavailable)
            if not (may_recover and stack.server.alive and time.monotonic() - silent_since < BUSY):
                raise _gone(stack, error) from error
            time.sleep(EVERY)


def learn(names: dict[str, str], jobs: Jobs, tasks: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
    """Add missing task names to `names`. Reads the tasks only if a job belongs to a task without a name."""
    unknown = {str(job["task_id"]) for job in jobs if job.get("task_id")} - names.keys()
    if unknown:
        names |= dict.fromkeys(unknown, GONE) | {str(task["id"]): str(task["name"]) for task in tasks()}


def _gone(stack: Stack, error: PunctualError) -> Trouble:
    """Return the error for an API that does not answer."""
    if stack.server.alive:
        return Trouble(f"The API does not answer as expected: {error}\nIts log is {stack.home.log}")
    return Trouble(
        "Another program killed the local AWS. Everything since the start of this run is lost.\n"
        f"Its log is {stack.home.log}. Start again with: make run"
    )


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
