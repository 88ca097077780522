"""`python -m tests.infra.grants`: take away one grant after the other, and tell which test notices. Prints the table of docs/grants.md.

Besides the tests named there the system tests notice most of them: they run with IAM enforced, and fail when a function is denied a call.
"""

import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.infra import conftest, test_encryption, test_functions, test_grants, test_targets
from tests.infra.conftest import Synthesized, as_list, name_of, synthesized

STAGE = "prod"
FIXTURES = {"prod", "any_stage", "on_aws"}
TABLE = "test_the_page_of_grants_is_the_template"  # notices everything, and says nothing about why


def without(stack: Synthesized, name: str, action: str, resource: str) -> Synthesized:
    """The stack whose function lacks one grant."""
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
    """The tests that look at grants and take nothing but a stack."""
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


def rows(stack: Synthesized) -> list[tuple[str, str, str]]:
    """Every function, action and resource."""
    return sorted({(name, action, resource) for name in stack.functions() for action, resource in stack.grants(name)})


def main() -> None:
    stack = synthesized(STAGE)
    assert noticed(stack) == [], "they should pass before anything is taken away"
    found = rows(stack)
    told = [(row, noticed(without(stack, *row))) for row in found]
    by_name = sum(1 for _, tests in told if tests)
    out = [
        "# Grants",
        "",
        f"What each function may do, in the stage `{STAGE}` with no option set: {len(found)} grants. Each was taken away in turn",
        f"(`python -m tests.infra.grants`): {by_name} are noticed by a test that says what they are for, all by the one that holds this",
        "page to the template. That each is needed, only the running stack can say: it runs with IAM enforced in `make test`,",
        "and a function that is denied a call fails it.",
        "",
        "| function | may | on | noticed by |",
        "|---|---|---|---|",
        *(f"| {name} | `{action}` | `{where}` | {tests[0] if tests else 'this page'} |" for (name, action, where), tests in told),
    ]
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    conftest.synthesized.cache_clear()
    main()
