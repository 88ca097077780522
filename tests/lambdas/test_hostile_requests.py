"""Requests of a hostile caller, over every route and every role: no 5xx, no answer above 1 MB, and our envelope around each."""

import json
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from lambdas import _runtime
from lambdas.rest import door
from scheduler.accounts import audit
from scheduler.model.account import Quotas, Scope
from scheduler.model.named_target import NamedTarget
from scheduler.targets.base import Reach
from tests.lambdas.gateway import NOW, Answered, World, send
from tests.lambdas.test_fuzz_api import ANN, BOB
from tests.lambdas.test_roles import BODIES, CALLERS, routes

REQUESTS = int(os.environ.get("HOSTILE", "600"))  # by hand 20,000
MOST_BYTES = 1_000_000
OF_A_WORLD = 40  # requests until the next world
REACH = Reach(arns=("arn:aws:*",), sender="punctual@example.com")


def _nested(depth: int, opened: str, closed: str) -> str:
    return opened * depth + "1" + closed * depth


TEXTS = [
    *("", " ", "\0", "\x1b]0;x\x07\x1b[2J\x9b31m", "‮abc⁦", "\u2028\u2029\x85", "a\r\nX-Injected: 1", "é" * 5_000, "x" * 250_000),
    *("..", ".", "%2e%2e", "a/b", "//", "{{job.id}}", "{{" * 100, "{{scheduled_at:" + "x" * 90 + "}}", "{{{{" * 10_000, "𐀀" * 60_000),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999-23:59", "2027-02-30T00:00:00Z", "2027-01-01T00:00:00", "²", "1e400", "P1Y"),
    *("* * * * * *", "*/0 * * * *", "0 0 31 2 *", "1-" * 20_000 + "1 * * * *", "@reboot", "rate(0 days)", "rate(99999999999 days)"),
    *("Europe/Berlin/../..", "../../etc/passwd", "UTC\0", "http://[::1", "https://a@b", "https://" + "a." * 2_000, "arn:aws:::::::"),
    *("(a+)+$", "[" * 200, "'\"><script>", "a@b.example", "__proto__", "constructor", "id=1,2", "true", "-0", "١"),
]
RAW = [  # as they stand in the body
    *("null", "true", "0", "-1", "-0.0", "5e-324", "1e308", "1e400", "NaN", "-Infinity", "1" + "0" * 309, "9" * 4_000, "9" * 5_000),
    *("0.1", "1.0", "9007199254740993", '"\\ud800"', '"\\u0000"', "[]", "{}", '{"":{"":[]}}', "[null]", '{"a":1,"a":2}', '""'),
    *(_nested(depth, "[", "]") for depth in (90, 150, 240, 900, 3_000, 60_000)),
    *(_nested(depth, '{"a":', "}") for depth in (90, 150, 240, 900, 3_000, 40_000)),
    *("[" + ",".join([each] * count) + "]" for each in ("1", '"x"', "{}", '"xxxxxxxxxxxxxx"') for count in (51, 1_001, 15_000)),
    *("{" + ",".join(f'"{name}{number}":1' for number in range(count)) + "}" for name in ("a", "ä", "x" * 90) for count in (51, 2_200)),
    '{"%s":1}' % ("n" * 200_000),
]
JOB = {
    "type": "http",
    "payload": {"url": "https://example.com/{{job.id}}", "headers": {"X-A": "1"}, "body": {"n": [1]}, "timeout_seconds": 5},
    "execute_at": "2026-11-20T12:00:00Z",
    "expires_at": "2026-11-21T12:00:00Z",
    "max_attempts": 3,
    "retry": {"base_seconds": 1, "cap_seconds": 60, "jitter": "full", "max_elapsed_seconds": 600, "on_timeout": True},
    "timeout_seconds": 30,
    "callback": {"lease_seconds": 60, "max_seconds": 600},
    "tags": ["a"],
    "ordering_key": "o",
    "on_failure": "pause",
    "notifications": {"emails": ["a@example.com"], "on": ["failure"], "after_failures": 1, "digest_seconds": 60},
    "events": False,
    "key": "k",
}
TASK = {name: value for name, value in JOB.items() if name not in ("execute_at", "expires_at")} | {
    "name": "n",
    "description": "d",
    "schedule": {"cron": "0 2 * * *", "time_zone": "Europe/Berlin", "jitter_seconds": 5, "max_runs": 9, "dst_gap": "skip"},
    "misfire": "run_all",
    "max_catch_up": 5,
    "overlap": "skip",
}
TARGET = {
    "name": "t",
    "kind": "http",
    "defaults": {"url": "https://example.com"},
    "locked": ["url"],
    "payload_schema": {"type": "object", "properties": {"body": {"type": "array", "items": {"minimum": 1, "pattern": "a", "enum": [1]}}}},
    "rate": 2,
    "concurrency": 2,
    "description": "d",
}
OF_TARGET = {"target": "strict", "payload": {"body": [1, "a", {"x": 1}]}}
FILTER = {"all": False, "type": "log", "tag": ["a"], "limit": 5, "dry_run": False, "rate": 5}
TEMPLATES: dict[str, list[Any]] = {
    "POST /jobs": [JOB, OF_TARGET],
    "POST /jobs/batch": [{"jobs": [JOB, OF_TARGET, {"message": "m", "idempotency_key": "i"}]}],
    "PATCH /jobs/<job_id>": [{name: JOB[name] for name in ("execute_at", "payload", "retry", "tags", "notifications", "events")}],
    "PUT /jobs/by-key/<key>": [JOB | {"on_conflict": "replace", "on_started": "follow"}],
    "POST /tasks": [TASK],
    "PUT /tasks/<task_id>": [TASK],
    "PATCH /tasks/<task_id>": [TASK],
    "PUT /tasks/by-key/<key>": [TASK],
    "POST /targets": [TARGET],
    "PUT /targets/<name>": [TARGET],
    "POST /schedules/preview": [TASK["schedule"] | {"count": 5, "after": "2026-11-21T00:00:00Z"}],
    "POST /schedules/calendar": [TASK["schedule"] | {"first_day": "2026-11-21", "days": 40}],
    "POST /jobs/cancel": [FILTER | {"status": ["queued"], "lane": "retry", "from": "2026-11-20T00:00:00Z"}],
    "POST /tasks/delete": [FILTER | {"name": "n", "status": ["active"]}],
    "POST /tasks/pause": [FILTER | {"reason": "r"}],
    "POST /users": [{"username": "new", "password": "Correct-horse-1", "role": "user", "job_weight": 1.5, "quotas": {"max_jobs": 5}}],
}


@dataclass
class Hostile:
    """A source of requests. The same seed makes the same requests."""

    seed: int
    answers: Counter[int] = field(default_factory=Counter)
    largest: int = 0
    faults: list[str] = field(default_factory=list)
    keys: dict[Scope, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.routes = [*routes(), *door.PROMISED, *door.REMOVED]

    def world(self) -> World:
        made = World(REACH)
        made.targets.put(None, NamedTarget("reports", "log", NOW, NOW, "ada", "ada"))
        schema = {"type": "object", "properties": {"body": {"items": {"type": "integer", "minimum": 2}}}, "additionalProperties": False}
        made.targets.put(None, NamedTarget("strict", "http", NOW, NOW, "ada", "ada", {"url": "https://x.example"}, payload_schema=schema))
        made.users.set_quotas("sub-ann", Quotas(creates_per_second=100_000))
        for user in (ANN, BOB):
            user.into(made)
        self.keys = {scope: made.key([scope]) for scope in Scope}
        return made

    def request(self) -> tuple[str, str, dict[str, Any]]:
        """Method, path and the other parts of a request."""
        pick = self.random.choice
        route = pick(self.routes)
        options = dict(pick([*CALLERS.values(), *[CALLERS["user"], CALLERS["administrator"]] * 6]))
        if scope := options.pop("scope", None):
            options["key"] = self.keys[scope]
        method, _, path = route.partition(" ")
        for name in re.findall(r"<(\w+)>", path):
            known = pick((ANN, BOB)).names(name)
            path = path.replace(f"<{name}>", pick([*known, *known, pick(TEXTS)[:2_000]]))
        if self.random.random() < 0.3:
            names = ("limit", "cursor", "owner", "from", "to", "tag", "status", "task", "type", "upcoming", "action", "x", "days", "key")
            options["query"] = {pick(names): pick([*TEXTS, "sub-bob", "failed", "1"])[:2_000] for _ in range(pick((1, 1, 2)))}
        if self.random.random() < 0.2:
            header = pick(("idempotency-key", "if-match", "content-type", "authorization", "cookie", "x-forwarded-for", "content-encoding"))
            options["headers"] = {header: pick(TEXTS)[:2_000]}
        if method != "GET" or self.random.random() < 0.05:
            options["body"] = self._body((door.PROMISED | door.REMOVED).get(route, route))
            options["base64"] = self.random.random() < 0.02
        return method, path, options

    def _body(self, route: str) -> str:
        if self.random.random() < 0.1:
            return self.random.choice([*RAW, f'{{"a":{self.random.choice(RAW)}}}', self.random.choice(TEXTS)])
        body = deepcopy(self.random.choice([*TEMPLATES.get(route, []), BODIES.get(route) or {"reason": "r"}]))
        raw: dict[str, str] = {}
        for number in range(self.random.choice((0, 1, 1, 1, 2))):
            parent, name = self.random.choice([*_places(body)])
            mark = f"mark-{number}"
            raw[json.dumps(mark)] = self.random.choice([*RAW, *map(json.dumps, TEXTS)])
            if isinstance(parent, dict) and self.random.random() < 0.1:
                parent[self.random.choice(TEXTS)] = mark
            else:
                parent[name] = mark
        text = json.dumps(body)
        for mark, value in raw.items():
            text = text.replace(mark, value)
        return text

    def judge(self, request: tuple[str, str, dict[str, Any]], answered: Answered) -> Iterator[str]:
        """The rules for every answer that this one breaks."""
        size, body = len(answered.text.encode()), answered.body
        self.answers[answered.status] += 1
        self.largest = max(self.largest, size)
        if answered.status >= 500:
            yield f"status {answered.status}"
        if size > MOST_BYTES:
            yield f"{size:,} bytes"
        if body["success"] is not (answered.status < 400) or not ("data" in body or {"code", "message", "details"} <= body["error"].keys()):
            yield "no envelope"

    def send(self, number: int, use: Callable[[World], None]) -> None:
        for count in range(number):
            if count % OF_A_WORLD == 0:
                world = self.world()
                use(world)
            request = self.request()
            broken = [*self.judge(request, send(request[0], request[1], **request[2]))]
            broken += ["audit entry" for entry in world.trail.rows.values() if len(json.dumps(entry.changes)) > audit.MOST_BYTES]
            self.faults += [f"{each}: {request[0]} {request[1][:200]} {str(request[2])[:600]}" for each in broken]
            world.trail.rows.clear()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """The places of a body at which a value can be replaced."""
    for name, each in [*value.items()] if isinstance(value, dict) else [*enumerate(value)]:
        yield value, name
        if isinstance(each, dict | list):
            yield from _places(each)


def test_hostile_requests_get_short_answers_in_the_envelope(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = Hostile(int(os.environ.get("SEED", "1")))
    hostile.send(REQUESTS, lambda world: monkeypatch.setattr(_runtime, "api", lambda: world))
    with capsys.disabled():
        sys.stdout.write(
            f"\n{hostile.answers.total()} requests, {dict(sorted(hostile.answers.items()))}, largest answer {hostile.largest:,} bytes\n"
        )
    assert hostile.faults == [] and len(hostile.answers) > 5
