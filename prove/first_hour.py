"""The first hour on AWS: rows in which AWS may differ from its documentation. Each says what it does, what it expects, and what it saw.

Some rows run by themselves, on things of the run's own that are deleted at the end. The others need a deployment or burden the stage:
they run only with `--guided`, one by one, after a question.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from botocore.exceptions import ClientError

from local.steps import console
from prove.cleanup import Cleanup
from prove.place import Place


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Seen:
    """The outcome of a row; `note`: what was seen, or why it was not run."""

    outcome: Outcome
    note: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A row. With `instruction` it is guided: it is printed before the row runs."""

    key: str
    does: str
    expects: str
    run: "Callable[[Hour], Seen]"
    instruction: str = ""


@dataclass
class Hour:
    """The things that a row may use. `ask` prints a question and returns the answer; None: guided rows are not run."""

    place: Place
    name: str  # of all things that the run makes, or its beginning
    cleanup: Cleanup
    ask: Callable[[str], str] | None = None


def passed(seen: bool, note: str = "") -> Seen:
    return Seen(Outcome.PASS if seen else Outcome.FAIL, note)


def not_run(note: str) -> Seen:
    return Seen(Outcome.NOT_RUN, note)


def run(checks: Sequence[Check], hour: Hour) -> list[tuple[Check, Seen]]:
    """Run the rows in order. An error ends its row only."""
    found = []
    for check in checks:
        seen = _one(check, hour)
        found.append((check, seen))
        console.print(f"  {seen.outcome:<7}  {check.key}: {seen.note or check.expects}", markup=False)
    return found


def _one(check: Check, hour: Hour) -> Seen:
    if check.instruction and hour.ask is None:
        return not_run("it needs you: add --guided")
    if check.instruction and hour.place.local:
        return not_run("only on AWS")
    if check.instruction and hour.ask is not None:
        console.print(f"\n  {check.key}: {check.does}. It expects: {check.expects}.\n  {check.instruction}", markup=False)
        if hour.ask("Press Enter when you are ready, or type s to skip this row: ").strip().lower() == "s":
            return not_run("skipped")
    try:
        return check.run(hour)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        return not_run(f"a right is missing: {error}") if "Denied" in code or "Unauthorized" in code else passed(False, str(error))
    except Exception as error:  # of any kind: the figures of the run must still be printed
        return passed(False, f"{type(error).__name__}: {error}")
