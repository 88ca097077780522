"""Examples of requests and answers for the OpenAPI document. An operation whose route states none gets one that fits its schema."""

from typing import Any

Json = dict[str, Any]
REF = "#/components/schemas/"
JOB_ID, TASK_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"
API_KEY = "punctual_" + "abcdefghijklmnop_" + "0" * 43 + "_" + "00000000"  # in parts, and with a wrong checksum: no scanner reports it
FIELDS: Json = {  # example values by the names of fields
    "action": "task.edit",
    "attempts": [],
    "actor": "ada",
    "address": "192.0.2.1",
    "after": [],
    "circuit": "host example.com",
    "code": "validation_failed",
    "error_code": "validation_failed",
    "current_password": "correct-horse-Battery-1",
    "cursor": None,
    "defaults": ["timeout_seconds"],
    "description": "Expires orders that were not paid.",
    "email": "ada@example.com",
    "emails": ["ada@example.com"],
    "expires_in": 3600,
    "field": "payload.url",
    "fingerprint": "5f2b7a1c9e3d4f60",
    "fraction": 0.5,
    "has_more": False,
    "id": JOB_ID,
    "job_id": JOB_ID,
    "job_weight": 1,
    "local_at": "2026-11-21T02:30:00+01:00",
    "log": "calling https://example.com/orders/7/expire",
    "max_attempts": 3,
    "message": "hello",
    "method": "POST",
    "name": "Nightly report",
    "new_password": "another-horse-Battery-2",
    "ordering_key": "order-7",
    "output": "done",
    "owner": "ada",
    "password": "correct-horse-Battery-1",
    "payload": {"method": "POST", "url": "https://example.com/orders/7/expire"},
    "payload_schema": {"type": "object"},
    "rate": "rate(5 minutes)",
    "cron": "30 2 * * *",
    "reason": "maintenance",
    "redrive_id": JOB_ID,
    "refresh_token": "eyJjdHkiOiJKV1QifQ",
    "redrives": 0,
    "retry": {"base_seconds": 1, "cap_seconds": 900, "jitter": "full", "max_elapsed_seconds": None, "on_timeout": True},
    "request_id": "JKJaXmPLvHcESHA=",
    "rule": "is required",
    "schedule": {"cron": "30 2 * * *", "time_zone": "Europe/Berlin"},
    "shard_id": 0,
    "signing_secret": "punctual/dev/webhook",
    "tags": ["reports"],
    "target": "reports",
    "task": TASK_ID,
    "task_id": TASK_ID,
    "text": "done",
    "time_zone": "Europe/Berlin",
    "timeout_seconds": 30,
    "token": "eyJhbGciOiJSUzI1NiJ9",
    "type": "http",
    "url": "https://example.com/orders/7/expire",
    "username": "ada",
    "version": "1.0.0",
}
REQUESTS: dict[str, Json] = {  # by the schema of the body; without instants that a later request may not name
    "AcceptRequest": {"token": "team-abcdefghijklmnopqrst.abcdefghijkl.abcdefghijklmnopqrstuvwxyz234567"},
    "BatchRequest": {"jobs": [{"message": "one"}, {"message": "two", "idempotency_key": "order-7"}]},
    "BreakerRequest": {"circuit": "host example.com", "reason": "the target is back"},
    "CancelRequest": {"tag": ["reports"], "rate": 10},
    "ChallengeReply": {"session": "WyJhZGEiLCAiLi4uIl0=", "code": "287082"},
    "CompleteRequest": {"output": "12 rows", "response": {"status": 200, "headers": {}, "body": "12 rows"}},
    "DeleteTasksRequest": {"tag": ["reports"]},
    "FailRequest": {"message": "no space left", "kind": "permanent"},
    "GroupRequest": {
        "name": "Invoices of November",
        "on_success": {"message": "all invoices are sent"},
        "on_failure": {"message": "some invoices are not sent"},
        "jobs": [{"message": "invoice 1"}, {"message": "invoice 2"}],
    },
    "HeartbeatRequest": {"progress": 0.5, "message": "6 of 12 rows"},
    "InvitationRequest": {"role": "editor"},
    "JobChange": {"delay": "2h", "max_attempts": 5},
    "KeyRequest": {"name": "order service", "scopes": ["jobs:read", "jobs:write"], "expires_in_days": 90},
    "LanesRequest": {"lane": "one-time", "reason": "the database is back"},
    "PauseLanesRequest": {"lane": "one-time", "reason": "maintenance of the database"},
    "PauseRequest": {"reason": "the report is being rewritten"},
    "PauseTasksRequest": {"tag": ["reports"], "reason": "maintenance of the database"},
    "PrincipalChange": {"scopes": ["jobs:*"]},
    "PrincipalRequest": {"arn": "arn:aws:iam::123456789012:role/orders", "owner": "ada", "scopes": ["jobs:write"]},
    "RedriveRequest": {"type": "http", "from": "2026-11-20T00:00:00Z", "rate": 10},
    "Refresh": {"refresh_token": "eyJjdHkiOiJKV1QifQ"},
    "ReplayJobsRequest": {"tag": ["reports"], "status": ["failed"], "rate": 10},
    "ReplayRequest": {"delay": "5m"},
    "ResumeTasksRequest": {"tag": ["reports"]},
    "RevokeRequest": {"key": API_KEY},
    "RunRequest": {"overlap": "allow"},
    "SecondFactorCode": {"current_password": "correct-horse-Battery-1", "code": "287082"},
    "SignOnCode": {
        "code": "0f8c5c5d-1f0b-4b3f-9d6e-2b7c8f3a4d5e",
        "verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        "redirect_uri": "http://127.0.0.1:8251/signed-in",
    },
    "SignOut": {"everywhere": True},
    "TargetEdit": {"kind": "http", "defaults": {"url": "https://example.com/reports"}, "locked": ["url"], "version": 1},
    "TeamRequest": {"name": "Payments"},
    "TaskEdit": {"name": "Nightly report", "schedule": {"cron": "0 3 * * *"}, "type": "log", "payload": {"message": "report"}},
    "UserChange": {"job_weight": 2, "quotas": {"max_jobs": 10000}},
    "UserRequest": {"username": "ada", "password": "correct-horse-Battery-1", "role": "user"},
}
OBJECTS = ("schedule", "retry")  # fields of `FIELDS` that are shown although they may be null or have a schema of their own
AT = "2026-11-20T09:00:00.000Z"
SAMPLES: Json = {"string": "text", "integer": 1, "number": 1, "boolean": False, "object": {}, "array": [], "null": None}
TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}


def added(document: Json) -> Json:
    """The document, with an example of the body and of the answer of each operation that states none."""
    schemas = document["components"]["schemas"]
    for verbs in document["paths"].values():
        for operation in verbs.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None and "examples" not in body:
                name = body["schema"].get("$ref", "").removeprefix(REF)
                body["example"] = REQUESTS.get(name) or _sample(body["schema"], schemas, only_required=True)
            for code, answer in operation["responses"].items():
                if code.startswith("2"):
                    content = answer["content"]["application/json"]
                    content.setdefault("example", _sample(content["schema"], schemas))
    return document


def _sample(schema: Json, schemas: Json, *, only_required: bool = False) -> Any:
    """A value that fits the schema. Nullable values are null."""
    if "$ref" in schema:
        return _sample(schemas[schema["$ref"].removeprefix(REF)], schemas, only_required=only_required)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return None if {"type": "null"} in schema[choice] else _sample(schema[choice][0], schemas, only_required=only_required)
    if "allOf" in schema:
        parts = [_sample(part, schemas, only_required=only_required) for part in schema["allOf"]]
        return {name: value for part in parts for name, value in part.items()}
    if "const" in schema or "enum" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    if schema.get("type") == "object" and "properties" in schema:
        names = schema.get("required", []) if only_required else list(schema["properties"])
        return {name: _of_field(name, schema["properties"][name], schemas) for name in names}
    if schema.get("type") == "array":
        return [_sample(schema["items"], schemas)] if schema.get("items") else []
    if schema.get("format") == "date-time":
        return AT
    if schema.get("format") == "date":
        return AT[:10]
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    return max(SAMPLES[schema["type"]], low) if schema.get("type") in ("integer", "number") else SAMPLES.get(schema.get("type", "string"))


def _of_field(name: str, schema: Json, schemas: Json) -> Any:
    value, rule = FIELDS.get(name), _resolved(schema, schemas)
    if "enum" in rule or "const" in rule:
        return _sample(schema, schemas)
    if value is not None and (name in OBJECTS or rule is schema) and isinstance(value, TYPES.get(rule.get("type", ""), ())):
        return value
    return _sample(schema, schemas)


def _resolved(schema: Json, schemas: Json) -> Json:
    """The schema that a reference stands for, or the first alternative of a choice."""
    if "$ref" in schema:
        return _resolved(schemas[schema["$ref"].removeprefix(REF)], schemas)
    if "anyOf" in schema:
        return _resolved(schema["anyOf"][0], schemas)
    return schema
