"""`python -m tests.infra.grants`: prints the table of docs/internals/grants.md: every grant, and the tests that fail without it.

There are two kinds of such tests. Tests of the template state the purpose of a grant: this program removes each grant from the template in
turn and runs them. Tests on the running stack use grants, since its roles are enforced: with the files of `GRANTS_LOG` from runs of the
system tests (`GRANTS_LOG=used make test` writes `used.*`), the table names the test that ran when a grant was first used.
"""

import argparse
import copy
import inspect
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.infra import conftest, test_encryption, test_functions, test_grants, test_targets
from tests.infra.conftest import Synthesized, as_list, name_of, synthesized

STAGE = "prod"
FIXTURES = {"prod", "any_stage", "on_aws"}
TABLE = "test_the_page_of_grants_matches_the_template"  # fails for every grant, and does not explain any
# Actions for which the local AWS checks no role: its functions print to its own log, and have no Firehose.
NOT_LOCAL = ("logs:", "firehose:")

Grant = tuple[str, str, str]  # function, action, resource


def without(stack: Synthesized, name: str, action: str, resource: str) -> Synthesized:
    """The stack without one grant of a function."""
    template = copy.deepcopy(stack.template)
    role = template["Resources"][stack.functions()[name]["Role"]["Fn::GetAtt"][0]]["Properties"]
    for policy in role["Policies"]:
        kept = []
        for statement in policy["PolicyDocument"]["Statement"]:
            for one in as_list(statement["Action"]):
                where = [each for each in as_list(statement["Resource"]) if (one, name_of(each)) != (action, resource)]
                if where:
                    kept.append(statement | {"Action": one, "Resource": where})
        policy["PolicyDocument"]["Statement"] = kept
    return replace(stack, template=template)


def watchers() -> Iterator[tuple[str, Callable[[Synthesized], Any]]]:
    """The tests that check grants and take only a stack."""
    for module in (test_grants, test_functions, test_targets, test_encryption):
        for name, test in inspect.getmembers(module, inspect.isfunction):
            wanted = list(inspect.signature(test).parameters)
            if name.startswith("test_") and name != TABLE and len(wanted) == 1 and wanted[0] in FIXTURES:
                yield name, test


def noticed(stack: Synthesized) -> list[str]:
    def fails(test: Callable[[Synthesized], Any]) -> bool:
        try:
            test(stack)
        except (AssertionError, StopIteration, KeyError, ValueError):
            return True
        return False

    return [name for name, test in watchers() if fails(test)]


def rows(stack: Synthesized) -> list[Grant]:
    """Every function, action and resource."""
    return sorted({(name, action, resource) for name in stack.functions() for action, resource in stack.grants(name)})


def used(local: Synthesized, logs: Iterable[Path]) -> Mapping[Grant, str]:
    """The test that ran when each grant was first used; grants that were not used are missing."""
    found: dict[Grant, str] = {}
    names = {id.lower(): id for id in local.template["Resources"]}
    on_aws = {renamed.action: action for action, renamed in local.settings.renamed_actions.items() if not renamed.anywhere}
    for path in logs:
        lines = [line.split() for line in path.read_text().splitlines()]
        tests = [(float(at), rest[0]) for at, *rest in lines if len(rest) == 1]
        for at, *rest in lines:
            if len(rest) == 3:
                role, action, resource = rest
                function = _readable(role, names).removesuffix("Role")
                test = tests[max(bisect_right(tests, (float(at), "~")) - 1, 0)][1]
                found.setdefault((function, on_aws.get(action, action), _readable(resource, names)), test)
    return found


def _readable(physical: str, names: Mapping[str, str]) -> str:
    """The logical name of a resource with a physical name: CloudFormation derives one from the other.

    >>> _readable("arn:aws:dynamodb:us-east-1:000000000000:table/punctual-local-StorageJobs4C7573CB-1A91/index/due",
    ...           {"storagejobs4c7573cb": "StorageJobs4C7573CB"})
    'StorageJobs/index/due'
    """
    if ":userpool/" in physical:
        return "AccountsUsers"
    for part in re.finditer(r"punctual-local-(\w+)-\w+(/index/\w+|/.*)?", physical):
        if part[1].lower() in names:
            within = part[2] or ""
            return names[part[1].lower()][:-8] + (within if within.startswith("/index/") else "/*" if within else "")
    return physical


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.infra.grants", description="The table of docs/internals/grants.md.")
    parser.add_argument("used", nargs="*", type=Path, help="the GRANTS_LOG entries of runs of the system tests")
    logs: list[Path] = parser.parse_args().used
    stack = synthesized(STAGE)
    assert noticed(stack) == [], "the tests should pass with all grants"
    in_use = used(synthesized("local"), logs)
    told = [(row, noticed(without(stack, *row)), in_use.get(row)) for row in rows(stack)]
    by_template = sum(1 for _, tests, _ in told if tests)
    by_use = sum(1 for *_, test in told if test)
    neither = sum(1 for _, tests, test in told if not tests and not test)
    out = [
        "# Grants",
        "",
        f"The template grants the functions {len(told)} rights in the stage `{STAGE}`, if no option is set. A test compares this page with",
        "the template. The option `events` adds a function, whose grants are in [events.md](events.md#grants).",
        "Two more things notice when a grant is missing (`python -m tests.infra.grants`):",
        "",
        f"- **in the template**, a test that says what the grant is for. Each grant was taken away in turn: {by_template} fail one.",
        f"- **on the running stack**, whose roles are enforced: {by_use} grants are used by the system tests. The table names the test at",
        "  work when a grant was first used. Without it a call is denied, and the tests end red: whatever else becomes of it, no denial",
        "  may stand in the functions' logs (`test_a_grant_removed_from_each_function_is_a_denial_in_its_log` tries it). The local AWS",
        f"  asks no role for {', '.join(f'`{each}*`' for each in NOT_LOCAL)}, nor for what Lambda reads from queues and streams.",
        "",
        f"{neither} are noticed by neither.",
        "",
        "| function | may | on | in the template | on the running stack |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | `{action}` | `{where}` | {tests[0] if tests else ''} | {test or ''} |"
            for (name, action, where), tests, test in told
        ),
    ]
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    conftest.synthesized.cache_clear()
    main()
