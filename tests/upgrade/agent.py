"""A process that runs the functions of one version: `python agent.py`, with that version's folder on PYTHONPATH.

Each line of its input is a call as JSON, each line of its output the answer. It uses only names that every version has had since the
first test of an upgrade.
"""

import json
import os
import sys
import traceback
from types import SimpleNamespace
from typing import Any


def run(verb: str, event: dict[str, Any]) -> Any:
    """Call a function as Lambda does."""
    from importlib import import_module
    from importlib.util import find_spec

    renamed = verb == "worker" and find_spec("lambdas.worker") is None
    module = "lambdas.dispatch" if renamed else f"lambdas.{verb}"  # the worker of earlier versions

    context = SimpleNamespace(aws_request_id=os.urandom(8).hex(), get_remaining_time_in_millis=lambda: 60_000)
    return import_module(module).handler(event, context)


def submit(jobs: list[dict[str, Any]], at: int | None) -> list[str]:
    """Create jobs. `at`: by a request that came at this instant (ms), so that a job that is due soon is in the slot of its minute."""
    from lambdas import _runtime
    from scheduler.model.spec import JobSpec
    from scheduler.pipeline.direct_path import DirectPath
    from scheduler.pipeline.submit import NewJob, submit

    ports: Any = _runtime.AwsPorts(_runtime.ports().settings)
    if at is not None:
        ports.clock = SimpleNamespace(now=lambda: at, monotonic=lambda: at)
    direct = DirectPath(ports)
    made = []
    for job in jobs:
        spec = JobSpec("http", {"method": "POST", "url": job["url"]})
        made.append(submit(NewJob("user", spec, job["due_at"]), ports, random=int.from_bytes(os.urandom(10), "big"), direct=direct).id)
    return made


def environment(stage: str) -> dict[str, str]:
    """The environment that this version gives a function of a stage, without the names of resources."""
    from infra.settings import STAGES
    from lambdas._settings import Settings

    return Settings(rules=STAGES[stage].deployed, reach=STAGES[stage].reach).render()


def parse(variables: dict[str, str]) -> dict[str, str]:
    """What this version reads from an environment, rendered again."""
    from lambdas._settings import Settings

    return Settings.parse(variables).render()


CALLS = {"run": run, "submit": submit, "environment": environment, "parse": parse}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what functions log goes elsewhere
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"answer": CALLS[name](*arguments)}
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
