"""The differences between the implementations that are known, each with its reason. `make parity` ends red for any other, and for a reason
that explains nothing any more."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tests.parity.implementations import CALLED, NAMES, STATEMENTS


class Outcome(NamedTuple):
    """A test on one implementation: passed, failed or skipped, and whether it called DynamoDB and ran statements."""

    result: str
    called: bool
    statements: bool


Outcomes = Mapping[str, Outcome]  # by test


@dataclass(frozen=True, slots=True)
class Difference:
    """`tests`: a pattern of test names. With `statements`, only tests that run PartiQL statements are explained. `rare`: they may pass."""

    implementation: str
    tests: str
    reason: str
    statements: bool = False
    rare: bool = False

    def explains(self, implementation: str, test: str, outcome: Outcome) -> bool:
        return implementation == self.implementation and fnmatchcase(test, self.tests) and (outcome.statements or not self.statements)


KNOWN = (
    Difference(
        "dynoxide",
        "test_dynamodb.test_*_may_be_repeated",
        "It joins clauses by commas. AWS's first example repeats SET. Our updates reach it as UpdateItem.",
    ),
    Difference(
        "dynoxide",
        "test_dynamodb.test_the_error_of_a_false_condition_carries_the_item",
        "Its authors measured on AWS that the item never comes, though AWS documents it. We read the item if it is missing.",
    ),
    Difference(
        "moto", "test_named_targets.test_a_usage_is_created_once*", "It takes the path of a new entry in a map for an invalid name."
    ),
    Difference("moto", "*_at_once_*", "It runs in the process of the tests, and locks nothing between threads.", rare=True),
    Difference("moto", "*", "Its PartiQL has no conditions and no REMOVE, and takes no value by ? in an UPDATE.", statements=True),
)


def read(report: Path) -> dict[str, Outcome]:
    """The outcomes in a report of JUnit."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        properties = {each.get("name") for each in case.iter("property")}
        results = {"failure": "failed", "error": "failed", "skipped": "skipped"}
        result = next((result for tag, result in results.items() if case.find(tag) is not None), "passed")
        module = str(case.get("classname")).rpartition(".")[2]
        found[f"{module}.{case.get('name')}"] = Outcome(result, CALLED in properties, STATEMENTS in properties)
    return found


def counted(outcomes: Mapping[str, Outcomes]) -> dict[str, dict[str, Outcome]]:
    """Only the tests that called DynamoDB, in whichever implementation they did."""
    names = {test for each in outcomes.values() for test, outcome in each.items() if outcome.called}
    return {name: {test: outcome for test, outcome in each.items() if test in names} for name, each in outcomes.items()}


def judge(outcomes: Mapping[str, Outcomes], known: Sequence[Difference] = KNOWN) -> list[str]:
    """What makes `make parity` red: one line for each."""
    return [*_unexplained(outcomes, known), *_idle(outcomes, known)]


def _failed(outcomes: Mapping[str, Outcomes]) -> Iterator[tuple[str, str, Outcome]]:
    for name, each in outcomes.items():
        yield from ((name, test, outcome) for test, outcome in each.items() if outcome.result == "failed")


def _unexplained(outcomes: Mapping[str, Outcomes], known: Sequence[Difference]) -> Iterator[str]:
    for name, test, outcome in _failed(outcomes):
        if not any(difference.explains(name, test, outcome) for difference in known):
            yield f"{name}: {test} fails, and no known difference explains it"


def _idle(outcomes: Mapping[str, Outcomes], known: Sequence[Difference]) -> Iterator[str]:
    for difference in known:
        if difference.implementation in outcomes and not difference.rare and not _explained(outcomes, difference):
            yield f"{difference.implementation}: {difference.tests} passes now: delete its explanation"


def _explained(outcomes: Mapping[str, Outcomes], difference: Difference) -> list[str]:
    return [test for name, test, outcome in _failed(outcomes) if difference.explains(name, test, outcome)]


def table(outcomes: Mapping[str, Outcomes], known: Sequence[Difference] = KNOWN) -> str:
    """The counts of each implementation, and the number of tests that each reason explains."""
    lines = ["implementation  passed  failed  skipped"]
    for name in NAMES:
        if name in outcomes:
            results = [outcome.result for outcome in outcomes[name].values()]
            lines.append(f"{name:<14}  {results.count('passed'):>6}  {results.count('failed'):>6}  {results.count('skipped'):>7}")
    lines.append("")
    explained = [(difference, len(_explained(outcomes, difference))) for difference in known]
    lines += [f"{difference.implementation}, {count} tests: {difference.reason}" for difference, count in explained if count]
    return "\n".join(lines)
