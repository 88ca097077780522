"""Files of options: each value of each option alone, and a few files that together have every pair of values."""

import json
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import aws_cdk as cdk

import app
from infra.options import EXAMPLE, Options
from tests.infra.conftest import FLAGS

PLACE = "eu-west-1:123456789012"


def example() -> str:
    """The file of options in which every option has its value of the example."""
    uncommented = re.sub(r"^# (?=[\w\]\[}]|    \")", "", EXAMPLE.read_text().partition("\n\n")[2], flags=re.MULTILINE)
    return "\n".join(line for line in uncommented.splitlines() if re.match(r"[a-z_]+ = |\[{1,2}[a-z_]+\]{1,2}$|    \"|\]$|\d{12} = ", line))


def _other(name: str, default: Any) -> Any:
    return not default if isinstance(default, bool) else tomllib.loads(example()).get(name)


# The values of each option that make a difference to the templates; the first is the default. A further option has two: its default, and
# the opposite of a flag or the value in the example.
VALUES: Mapping[str, tuple[Any, ...]] = {
    name: (field.default, _other(name, field.default)) for name, field in Options.model_fields.items()
} | {
    "base": (None, "prod"),
    "operator_email": (None, "ops@example.org"),
    "ticket_email": (None, "desk@example.org"),
    "allowed_targets": (
        (),
        (
            f"arn:aws:sqs:{PLACE}:orders-*",
            f"arn:aws:lambda:{PLACE}:function:report",
            "arn:aws:states:*:*:stateMachine:*",
            f"arn:aws:ecs:{PLACE}:cluster/*",
            f"arn:aws:ecs:{PLACE}:task-definition/report*",
        ),
    ),
    "allowed_actions": (
        (),
        (
            {"action": "s3:CopyObject", "resources": ["arn:aws:s3:::reports/*"], "iam": ["s3:GetObject", "s3:PutObject"]},
            {
                "action": "ecs:RunTask",
                "resources": ["*"],
                "pass_roles": ["arn:aws:iam::123456789012:role/report"],
                "owners": ["3f1c7a52-0000-4000-8000-000000000001"],
            },
        ),
    ),
    "accounts": (
        (),
        (
            {"id": "210987654321", "role": "arn:aws:iam::210987654321:role/targets"},
            {"id": "210987654321", "role": "arn:aws:iam::210987654321:role/team-a", "owners": ["3f1c7a52-0000-4000-8000-000000000001"]},
        ),
    ),
    "email_sender": (None, "punctual@example.org"),
    "email_domains": ((), ("example.org", "*.example.com")),
    "http_hosts": ((), ("hooks.example.com", "*.example.org")),
    "sso": (
        None,
        {
            "name": "Example Corp",
            "type": "oidc",
            "console": "https://console.example.com",
            "issuer": "https://idp.example.com",
            "client_id": "punctual",
            "client_secret": "punctual/sso",
            "administrators": ["job-admins"],
        },
    ),
    "network": (
        None,
        {"subnets": ["subnet-0a1b2c3d4e5f67890"], "security_groups": ["sg-0a1b2c3d4e5f67890"], "allow": ["10.0.0.0/16", "fd00:1::/48"]},
    ),
    "account_concurrency": (0, 10, 1_000),
    "provisioned_writes": (0, 500),
    "events": ("none", "chosen", "all"),
    "intake": ({}, {"jobs": "principals", "web-orders": "6f1c0c3a-0000-4000-8000-000000000001"}),
    "templates": ((), ({"name": "shop", "owner": "team-shop"}, {"name": "web-shop", "owner": "team-web", "targets": True})),
    "audit_lock_days": (0, 90),
}
CANDIDATES, SEED = 20, 22  # twelve files; other seeds need up to fifteen
EXCLUDED = ({"console": False, "waf": True},)  # pairs of values that the file of options refuses

Chosen = Mapping[str, Any]
Cell = tuple[str, int]  # an option, and the place of one of its values


def alone() -> list[Chosen]:
    """No option; then each value that is no default, alone."""
    return [{}, *({name: value} for name, values in VALUES.items() for value in values[1:])]


@cache
def pairs() -> tuple[Chosen, ...]:
    """Files of options in which every pair of values of two options occurs: each is the best of some candidates, the same in every run."""
    missing, rows, drawn = set(wanted()), [], Random(SEED)
    while missing:
        candidates = [_candidate(missing, drawn) for _ in range(CANDIDATES)]
        row = max(candidates, key=lambda row: len(_covered(row) & missing))
        missing -= _covered(row)
        rows.append({name: VALUES[name][place] for name, place in sorted(row.items()) if place})
    return tuple(rows)


def _candidate(missing: set[tuple[Cell, Cell]], drawn: Random) -> dict[str, int]:
    """A value for each option, in some order, so that it has the most of the missing pairs with the values before it."""
    row: dict[str, int] = dict(drawn.choice(sorted(missing)))
    for name in drawn.sample(sorted(VALUES), len(VALUES)):
        if name not in row:
            fits = [place for place in range(len(VALUES[name])) if not _refused(row, (name, place))]
            row[name] = max(fits, key=lambda place: (len(_covered({**row, name: place}) & missing), place))
    return row


def wanted() -> Iterator[tuple[Cell, Cell]]:
    """Every pair of values that may occur together."""
    for (one, first), (two, second) in combinations(sorted(VALUES.items()), 2):
        for a in range(len(first)):
            for b in range(len(second)):
                if not _refused({one: a}, (two, b)):
                    yield (one, a), (two, b)


def _covered(row: Mapping[str, int]) -> set[tuple[Cell, Cell]]:
    return set(combinations(sorted(row.items()), 2))


def _refused(row: Mapping[str, int], cell: Cell) -> bool:
    values = {name: VALUES[name][place] for name, place in [*row.items(), cell]}
    return any(pair.items() <= values.items() for pair in EXCLUDED)


def toml(chosen: Chosen) -> str:
    """The file with these options, whose tables come last."""
    lists = {name: value for name, value in chosen.items() if isinstance(value, tuple) and value and isinstance(value[0], Mapping)}
    tables = [(f"[{name}]", value) for name, value in chosen.items() if isinstance(value, Mapping)]
    tables += [(f"[[{name}]]", table) for name, value in lists.items() for table in value]
    lines = [f"{name} = {json.dumps(value)}" for name, value in chosen.items() if not isinstance(value, Mapping) and name not in lists]
    lines += [line for head, table in tables for line in (head, *(f"{key} = {json.dumps(value)}" for key, value in table.items()))]
    return "\n".join(lines) + "\n"


def synthesize(stage: str, chosen: Chosen, folder: Path, *, rules: bool) -> dict[str, dict[str, Any]]:
    """Run the CDK app with a file of these options, as `cdk synth` does, into `folder`; returns the templates by stack.

    Raises RuntimeError for a finding of cdk-nag. `rules`: or of the CDK's own rules, which take three times as long. Nothing is bundled.
    """
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "options.toml"
        file.write_text(toml(chosen))
        context = {**FLAGS, "aws:cdk:bundling-stacks": [], "stage": stage, "options": str(file)}
        made = cdk.App(outdir=str(folder), context=context, builtin_cloud_formation_validation=rules)
        app.build(made).synth()
    return {path.name.partition(".")[0]: json.loads(path.read_text()) for path in sorted(folder.glob("*.template.json"))}
