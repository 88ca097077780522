"""A value that nobody edits is the same after each way through: the client, an export, a file, an apply, the command line."""

from __future__ import annotations

import json
import random
from typing import Any

import httpx
import pytest
from fake_api import JOB, Flavor, answer
from hostile import text, value

from punctual import Punctual, plan
from punctual.texts import HIDDEN, in_json

SEEDS = 40
PER_SEED = 25  # values


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1, 1.0 and true differ, and -0.0 is not 0.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def values(seed: int) -> list[Any]:
    chance = random.Random(seed)
    return [value(chance) for _ in range(PER_SEED)]


def tasks(seed: int) -> list[dict[str, Any]]:
    """Tasks as the API answers them; their names and descriptions are hostile, too."""
    chance = random.Random(-seed)
    recurring = {"schedule": {"cron": "0 2 * * *", "time_zone": "UTC"}, "misfire": "run_latest", "misfire_threshold_seconds": 60}
    common = {**{name: JOB[name] for name in ("max_attempts", "timeout_seconds", "retry")}, "overlap": "skip", "tags": [], "generation": 1}
    common["defaults"] = ["tags", "retry.jitter"]
    return [
        {
            **common,
            **(recurring if chance.random() < 0.5 else {"overlap": "allow"}),
            "id": f"t{number}",
            "key": f"k{number:03}",
            "name": text(chance)[:120] or "n",
            "description": text(chance) or None,
            "type": "http",
            "payload": {"method": "POST", "url": "https://example.com/", "body": each, "headers": {"x": text(chance)}},
        }
        for number, each in enumerate(values(seed))
    ]


def changed(stored: list[dict[str, Any]], as_json: bool) -> list[str]:
    """The fields that an apply of the export of these tasks would change."""

    def api(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/tasks"):
            return answer({"items": stored, "has_more": False, "cursor": None})
        found = next((task for task in stored if request.url.path.endswith(f"/{task['key']}")), None)
        return answer(found) if found is not None else answer({"items": [], "has_more": False, "cursor": None})

    with Punctual("https://api.example.com", token="t", transport=httpx.MockTransport(api)) as client:
        entries = plan.entries(plan.tasks(client))
        written = plan.to_json(entries) if as_json else plan.to_yaml(entries)
        document = plan.parse([("tasks.yaml", written.encode().decode())])
        todo = plan.plan(client, document)
        for item, task in zip(document.items, stored, strict=True):
            assert same(item.body["payload"], task["payload"]), (item.key, item.body["payload"], task["payload"])
    return [f"{change.key} {each.field}" for change in todo.to_do for each in change.fields] + [
        str(change.key) for change in todo.to_do if not change.fields
    ]


@pytest.mark.long
@pytest.mark.parametrize("as_json", [False, True], ids=["yaml", "json"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_an_export_applies_without_a_change(seed: int, as_json: bool) -> None:
    assert changed(tasks(seed), as_json) == []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_payload_passes_the_client_unchanged(seed: int, flavor: Flavor) -> None:
    for each in values(seed):
        kept: list[Any] = []

        def api(request: httpx.Request) -> httpx.Response:
            kept.append(json.loads(request.content)["payload"])  # noqa: B023
            return answer({**JOB, "payload": kept[0]})  # noqa: B023

        job = flavor.run(api, lambda client: client.jobs.create("own", {"value": each}))  # noqa: B023
        assert same(kept[0], {"value": each}) and same(job.payload, {"value": each})


@pytest.mark.parametrize("seed", range(SEEDS))
def test_json_of_the_command_line_is_the_same_value(seed: int) -> None:
    for each in values(seed):
        for indent in (None, 2):
            written = in_json(each, indent)
            assert same(json.loads(written), each)
            assert HIDDEN.search(written) is None
