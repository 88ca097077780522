"""Eight users race for one key on the deployed stack: put, cancel, find. `KEY_ROUNDS` is the number of rounds of each."""

import itertools
import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from punctual import Punctual

from tests.system.conftest import System, ended, sent, until

THREADS = 8
ROUNDS = int(os.environ.get("KEY_ROUNDS", "60"))
KEY = "race:17 (é)"
PATH = "/jobs/by-key/race:17%20(%C3%A9)"
TAG = "race-for-a-key"
RULES = ("replace", "replace", "keep", "extend")
DELAYS = ("1h",) * 9 + ("0s",)  # a job that starts at once can no longer be changed
ENDS = ("completed_at", "failed_at", "killed_at", "cancelled_at", "skipped_at")


@dataclass(frozen=True)
class Answer:
    """An answer: the request, its text, and the response."""

    act: str
    text: str
    status: int
    body: dict[str, Any]


def user(client: Punctual, number: int) -> list[Answer]:
    """Use the key for some rounds; return the answers."""
    chance, answers = random.Random(number), list[Answer]()
    for turn in range(ROUNDS):
        act, text = chance.choice(("put", "put", "put", "cancel", "find")), f"user {number}, round {turn}"
        if act == "put":
            rule, delay = chance.choice(RULES), chance.choice(DELAYS)
            status, body = sent(client, "PUT", PATH, {"message": text, "delay": delay, "tags": [TAG], "on_conflict": rule})
        elif act == "cancel":
            status, body = sent(client, "POST", f"{PATH}/cancel")
        else:
            status, body = sent(client, "GET", PATH)
        answers.append(Answer(act, text, status, body))
    return answers


def is_true(answer: Answer) -> bool:
    """Whether an answer may be true, taken alone."""
    data = answer.body.get("data", {})
    if answer.act == "put":
        contents = {"created": answer.text, "replaced": answer.text}
        content = contents.get(data.get("outcome"), data.get("payload", {}).get("message"))
        right = (answer.status == 201) == (data.get("outcome") == "created") and data.get("payload", {}).get("message") == content
        return answer.status == 409 or (right and answer.status in (200, 201) and data["key"] == KEY)
    if answer.act == "cancel":
        cancelled = data.get("status") == "cancelled" or data.get("cancel_requested_at") is not None
        return answer.status in (404, 409) or (answer.status == 200 and cancelled)
    return answer.status == 404 or (answer.status == 200 and data["key"] == KEY)


def test_users_racing_for_a_key_have_one_open_job_and_true_answers(system: System, client: Punctual) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        answers = [answer for each in pool.map(lambda number: user(client, number), range(THREADS)) for answer in each]
    assert [answer for answer in answers if not is_true(answer)] == []
    last = client.request("PUT", PATH, {"message": "the last", "delay": "1h", "tags": [TAG], "on_started": "follow"})
    assert client.request("GET", PATH) | {"outcome": last["outcome"], "follows": last["follows"]} == last
    assert last["payload"] == {"message": "the last"}
    client.request("POST", f"{PATH}/cancel")

    created = [answer.body["data"]["id"] for answer in answers if answer.status == 201]
    made = {*created, last["id"]}

    def listed() -> dict[str, dict[str, Any]] | None:
        jobs = [job.raw for upcoming in (False, True) for job in client.jobs.list(tag=TAG, upcoming=upcoming)]
        return {job["id"]: job for job in jobs} if all(ended_at(job) for job in jobs) and len(jobs) >= len(made) else None

    jobs = until(60, listed)
    assert len(set(created)) == len(created) and made <= jobs.keys(), "each put that created a job created another one"
    spans = sorted((job["created_at"], ended_at(job), job["id"]) for job in jobs.values() if job["id"] != last["id"])
    overlaps = [(one, other) for one, other in itertools.pairwise(spans) if one[1] > other[0]]
    assert overlaps == [], "two jobs of the key were open at the same time"
    outcomes = Counter(answer.body["data"]["outcome"] for answer in answers if answer.act == "put" and answer.status < 300)
    assert set(outcomes) == {"created", "replaced", "kept", "extended"}, outcomes


def ended_at(job: dict[str, Any]) -> str | None:
    return next((job[name] for name in ENDS if job[name] is not None), None)


def test_a_job_of_a_key_runs_once_at_its_last_time(client: Punctual) -> None:
    path = "/jobs/by-key/debounced"
    for number in range(5):
        moved = client.request("PUT", path, {"message": f"{number}", "delay": "PT4S", "on_conflict": "extend"})
    (job,) = ended(client, [moved], 40)
    assert (job["status"], job["output"], job["scheduled_at"]) == ("succeeded", "0", moved["scheduled_at"])
    assert 0 <= job["start_delay_ms"] < 1_000


def test_schedules_are_kept_as_code(client: Punctual) -> None:
    body = {"name": "as code", "message": "m", "schedule": {"cron": "30 2 1 1 *"}}
    made = client.request("PUT", "/tasks/by-key/as-code", body)
    assert (made["outcome"], client.request("PUT", "/tasks/by-key/as-code", body)["outcome"]) == ("created", "unchanged")
    changed = client.request("PUT", "/tasks/by-key/as-code", body | {"schedule": {"cron": "30 3 1 1 *"}})
    assert (changed["outcome"], changed["id"]) == ("updated", made["id"])
    client.tasks.delete(made["id"])
    again = client.request("PUT", "/tasks/by-key/as-code", body)
    assert again["outcome"] == "created" and again["id"] != made["id"]
    client.tasks.delete(again["id"])
