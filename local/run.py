"""`make run`: start the whole stack, post sample jobs and tasks, and show the jobs live in the terminal until Ctrl-C."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from punctual import Punctual
from rich.live import Live

from local import table
from local.busy import load, pauses, until_answered
from local.failure import exit_code
from local.home import LOCAL, Home
from local.receiver import Receiver
from local.samples import clear_tasks, sample_tasks, samples
from local.stack import Stack, up
from local.steps import console, step
from local.warmup import READY, warm_up

EVERY = 1.0  # seconds between two reads
LATE_MS = 2_000  # a start delay that needs an explanation
GONE = "(deleted)"  # shown as the name of a deleted task


def main() -> int:
    begin = time.monotonic()
    home = Home(LOCAL)
    with up(home, port=os.environ.get("PORT")) as stack, Receiver() as receiver:
        with step("Warming up the functions"):
            client = stack.client()
            warm_up(stack.aws, stack.outputs, OneTime=READY, Recurring=3, Retry=2)
        with step("Posting the sample jobs and tasks"):
            until_answered(lambda: clear_tasks(client), lambda: stack.server.alive)
            for sample in samples(receiver, datetime.now(UTC)):
                until_answered(partial(sample.post, client), lambda: stack.server.alive)
            for task in sample_tasks(datetime.now(UTC)):
                until_answered(partial(task.create, client), lambda: stack.server.alive)
        follow(stack, client, time.monotonic() - begin, " (the sample tasks end in an hour)")
    return 0


def follow(stack: Stack, client: Punctual, seconds: float, note: str = "") -> None:
    """Introduce a stack that is up after this time, and show its jobs until an interrupt."""
    commands = stack.home.commands
    introduce(stack, seconds, note)
    problems = until_answered(lambda: client.status(scope="all").problems, lambda: stack.server.alive)
    for pause in pauses(problems, commands.client):
        console.print(f"{pause}\n", markup=False, style="yellow")
    try:
        show(stack, client)
    except KeyboardInterrupt:
        console.print(f"\nStopping. Your jobs and tasks are kept for the next `{commands.run}`.")


def introduce(stack: Stack, seconds: float, note: str = "") -> None:
    """Print addresses, credentials and first commands, ready to copy."""
    console.print(f"\nPunctual is up after {seconds:.0f} s.\n")
    console.print(f"  console    {stack.console_address or 'none: stages/local.toml says console = false'}", markup=False)
    console.print(f"  API        {stack.address}/api/v1", markup=False)
    console.print(f"  user       {stack.username}", markup=False)
    console.print(f"  password   {stack.password}", markup=False)
    console.print(f"  AWS log    {stack.home.log}\n", markup=False)
    client = stack.home.commands.client
    console.print(f"Post a job that runs in 10 seconds, from another terminal{' in this folder' if '/' in client else ''}:\n")
    console.print(example(stack.address, stack.username, stack.password, client), markup=False, style="dim")
    console.print(f"\nThen create a task with three runs{note}:\n")
    console.print(f"  {task_example(client)}\n", markup=False, style="dim")


def example(address: str, username: str, password: str, client: str) -> str:
    """Return commands that sign in, post a job and watch it, for a POSIX shell. `client` is what people type for `punctual`."""
    return "\n".join(
        (
            f"  PUNCTUAL_PASSWORD='{password}' {client} login '{address}' --username {username}",
            f"  {client} jobs create --in 10s --key hello log hello",
            f"  {client} jobs watch --key hello",
        )
    )


def task_example(client: str) -> str:
    """Return the command that creates a task with three runs."""
    return f"{client} tasks create mine --rate '10 seconds' --max-runs 3 log 'hello again'"


def show(stack: Stack, client: Punctual) -> None:
    """Show the jobs live, until an interrupt."""
    names: dict[str, str] = {}
    since = datetime.now(UTC).isoformat()  # jobs that were due before waited for this start
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                jobs = table.choose(*read_jobs(stack, client, names), height=max(5, console.height - 6))
                note = " ".join(filter(None, ["Ctrl-C stops everything; your jobs are kept.", lateness(jobs, since)]))
                live.update(table.picture(jobs, note, names=names), refresh=True)
                time.sleep(EVERY)
    status: dict[str, str] = {}
    said = ""
    while True:
        past, ahead = read_jobs(stack, client, names)
        for job in table.changed(status, table.choose(past, ahead, height=200)):
            console.print(table.row(job, names=names).line(), markup=False)
            status[job["id"]] = job["status"]
        if not said and (said := lateness(past, since)):
            console.print(said, markup=False)
        time.sleep(EVERY)


def lateness(jobs: Sequence[Mapping[str, Any]], since: str) -> str:
    """Return a sentence if a job that was due after `since` started late; empty if none did."""
    delays = [job.get("start_delay_ms") or 0 for job in jobs if job["scheduled_at"] >= since]
    if (longest := max(delays, default=0)) < LATE_MS:
        return ""
    return f"Jobs start up to {longest / 1_000:.0f} s late: this machine is busy ({load()})."


Jobs = Sequence[Mapping[str, Any]]


def read_jobs(stack: Stack, client: Punctual, names: dict[str, str]) -> tuple[Jobs, Jobs]:
    """Return the latest jobs that were due and the next upcoming jobs; adds the names of their tasks to `names`.

    Waits while the API does not answer, and says so. Raises the error if the local AWS has ended.
    """

    def read() -> tuple[Jobs, Jobs]:
        ahead = [job.raw for job in client.jobs.list(upcoming=True, limit=50)]
        past = [job.raw for job in client.jobs.list(limit=50)]
        learn(names, [*past, *ahead], lambda: (task.raw for task in client.tasks.list()))
        return past, ahead

    return until_answered(read, lambda: stack.server.alive)


def learn(names: dict[str, str], jobs: Jobs, tasks: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
    """Add missing task names to `names`. Reads the tasks only if a job belongs to a task without a name."""
    unknown = {str(job["task_id"]) for job in jobs if job.get("task_id")} - names.keys()
    if unknown:
        names |= dict.fromkeys(unknown, GONE) | {str(task["id"]): str(task["name"]) for task in tasks()}


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
