"""The actions that no `aws` job may call: every operation whose answer holds a secret by the models of AWS's services."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest

from scheduler.targets import denied_actions, service_models

SECRET = re.compile(
    r"(.*access|.*auth|id|refresh|session|oauth)token|secret(access)?key|secret(string|binary|code|value)|plaintext|(.*)privatekey(plaintext)?"
    r"|apikey|clientsecret(value)?|passworddata|keymaterial|(.*)password|sharedsecret|.*credentials",
    re.IGNORECASE,
)
HARMLESS = {  # operations whose answers have such fields without a secret
    "amplifybackend:GetBackendAuth": "settings of the mail with a new password",
    "dms:*Endpoint": "DMS never returns the password of an endpoint",
    "fsx:*": "FSx shows the password as asterisks",
    "kms:GenerateRandom": "a random number is nobody's secret yet",
    "qconnect:*QuickResponse": "the text of an answer to customers",
    "wisdom:*QuickResponse": "the same under its former name",
    "rds:*": "RDS shows a password that is about to change as asterisks",
    "redshift:*": "the same in Redshift",
    "secretsmanager:GetRandomPassword": "nobody uses the password yet",
}


def secrets_in(shapes: Mapping[str, Any], name: str, depth: int = 0) -> Iterator[str]:
    """The sensitive fields of a shape whose names are those of secrets, two levels deep."""
    for field, ref in shapes[name].get("members", {}).items():
        shape = shapes[ref["shape"]]
        parts = (shape, ref, *(shapes[each["shape"]] for each in shape.get("members", {}).values()))
        if SECRET.fullmatch(field) and any(each.get("sensitive") for each in parts):
            yield field
        if depth < 2 and shape["type"] == "structure":
            yield from secrets_in(shapes, ref["shape"], depth + 1)


@pytest.mark.long
def test_every_operation_that_returns_a_secret_is_denied() -> None:
    found, unused = [], set(HARMLESS)
    for service in sorted(service_models.services()):
        for name in service_models._model(service)["operations"]:
            operation = service_models.operation(service, name)
            names = (f"{service}:{name}", f"{operation.signing_name}:{name}")
            if operation.output is None or any(denied_actions.reason(each) for each in names):
                continue
            if fields := sorted(set(secrets_in(operation.shapes, operation.output))):
                harmless = {pattern for pattern in HARMLESS if fnmatchcase(names[0], pattern)}
                unused -= harmless
                found += [] if harmless else [f"{names[0]} returns {', '.join(fields)}"]
    assert (found, unused) == ([], set())


def test_each_pattern_has_the_form_of_iam() -> None:
    assert all(re.fullmatch(r"[a-z0-9-]+:[A-Za-z*]+", pattern) for pattern in (*denied_actions.PATTERNS, *denied_actions.OPERATIONS))
    assert len({*denied_actions.PATTERNS}) == len(denied_actions.PATTERNS)
