"""The promises about ordering keys, checked on the jobs and calls of a round."""

import itertools
import time
from collections.abc import Mapping, Sequence

from punctual import Punctual
from punctual.records import Json

from lab.judge import Outcome, after
from local.receiver import Receiver

SETTLING = 420.0  # seconds: a lost wake-up costs up to five minutes


def in_order(seen: Outcome, receiver: Receiver, lines: Mapping[str, Sequence[str]], jobs: Sequence[Json]) -> None:
    """Check that the jobs of each key, which call the paths of `lines` in this order, ran one after the other, with their retries."""
    bad, posted = [job["id"] for job in jobs if job["status"] != "succeeded"], sum(map(len, lines.values()))
    seen.expect(len(jobs) == posted and not bad, f"{len(bad)} of {len(jobs)} jobs did not succeed, {posted} were posted")
    calls = receiver.calls()
    for key, paths in lines.items():
        heard = [call.path for call in calls if call.path in set(paths)]
        first = list(dict.fromkeys(heard))
        seen.expect(first == [*paths], f"{key}: called in the order {first}")
        mixed = [path for number, path in enumerate(heard) if path in heard[:number] and heard[number - 1] != path]
        seen.expect(not mixed, f"{key}: another job called between the attempts of {mixed}")
        for one, following in itertools.pairwise(job for job in jobs if job["tags"] == [key]):
            seen.expect(after(following, one), f"{key}: {following['id']} started before {one['id']} had ended")


def paused(seen: Outcome, client: Punctual, receiver: Receiver, key: str, jobs: Sequence[Json]) -> None:
    """Check that the first of these jobs has failed and paused its key. Resume the key, and check that the others then run in order."""
    path, waiting = f"/ordering-keys/{key}", len(jobs) - 1
    line = client.request("GET", path)
    seen.expect(line["paused_by"] == jobs[0]["id"] and line["waiting"] == waiting, f"the ordering key is not paused: {line}")
    seen.expect(not any(call.path.startswith(f"/ok/{key}/") for call in receiver.calls()), "a job of the paused key ran")
    client.request("POST", f"{path}/resume")
    _succeeded(seen, client, jobs[1:], "after the resume")
    heard = [int(call.path.rpartition("/")[2]) for call in receiver.calls() if call.path.startswith(f"/ok/{key}/")]
    seen.expect(heard == list(range(1, waiting + 1)), f"after the resume: {heard}")


def blocked(seen: Outcome, client: Punctual, jobs: Sequence[Json], attempts: int) -> None:
    """Check that the first of these jobs fails after this number of attempts, and that each other job starts after the end of the job
    before it."""
    _succeeded(seen, client, jobs[1:], "behind a job that is retried")
    line = [client.jobs.get(job["id"]).raw for job in jobs]
    seen.expect(
        line[0]["status"] == "failed" and len(line[0]["attempts"]) == attempts, f"the first job did not make {attempts} attempts: {line[0]}"
    )
    for former, job in itertools.pairwise(line):
        seen.expect(after(job, former), f"behind a job that is retried: {job['id']} started before {former['id']} had ended")


def _succeeded(seen: Outcome, client: Punctual, jobs: Sequence[Json], when: str) -> None:
    end = time.monotonic() + SETTLING
    while (states := {client.jobs.get(job["id"]).status for job in jobs}) != {"succeeded"} and time.monotonic() < end:
        time.sleep(1)
    seen.expect(states == {"succeeded"}, f"{when}: {states}")
