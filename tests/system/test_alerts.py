"""Alerts of a task on the deployed stack, with IAM enforced: a run that takes too long is reported, and its end, too."""

import json
from typing import Any

from infra.settings import LOCAL
from tests.system.conftest import System, until

HOOK = "/ok/alerted"
SECRET = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"


def events(system: System) -> list[dict[str, Any]]:
    """The bodies that the receiver got, in order; a repeated call counts once."""
    found: dict[str, dict[str, Any]] = {}
    for call in system.receiver.calls(HOOK):
        id = {name.lower(): value for name, value in call.headers.items()}["webhook-id"]
        found.setdefault(id, json.loads(call.body))
    return list(found.values())


def test_a_run_that_takes_too_long_is_reported_and_so_is_its_end(deployed: System) -> None:
    system = deployed
    client = system.client("alerted")
    system.aws("secretsmanager").create_secret(Name=f"{LOCAL.secret_prefix}{client.me().id}/hook", SecretString=SECRET)
    task = client.tasks.create(
        "Slow report",
        type="http",
        payload={"method": "POST", "url": system.receiver.url("/slow/25/report")},
        timeout_seconds=60,
        schedule={"cron": "* * * * *"},
        notifications={"webhooks": [{"url": system.receiver.url(HOOK), "signing_secret": "hook"}], "on": ["success"]},
        alerts={"max_duration_seconds": 10, "late_after_seconds": 3600},
    )
    try:
        until(300, lambda: len([each for each in events(system) if each["type"].startswith("task.alert")]) >= 2)
    finally:
        client.tasks.pause(task.id)
    opened, closed = [each for each in events(system) if each["type"].startswith("task.alert")][:2]
    assert (opened["type"], closed["type"]) == ("task.alert", "task.alert_over")
    for each in (opened, closed):
        assert each["data"]["alert"] == "long" and each["data"]["task"]["id"] == task.id
