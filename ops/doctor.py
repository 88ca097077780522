"""`make doctor`: check a deployed stage from this machine. One line for each check; a failed check prints the next step."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from infra import options
from infra.alarms import LAG_SECONDS
from infra.options import OptionsError
from infra.settings import settings_for
from local.aws import Deployed
from local.failure import Trouble, exit_code
from ops import concurrency, taken_back
from ops.cloud import Stage, remedy, reported, stage_of
from scheduler.model import slots
from scheduler.model.instants import render
from scheduler.model.job import LaneState
from scheduler.pipeline.lag import known_lag
from scheduler.storage.aws.ledger import DynamoLedger
from scheduler.storage.ports import Ledger

SKEW_S = 5  # AWS's Date header has whole seconds
HINT = "docs/guides/runbook.md has the first steps, under the alarm `Lag`."
STATUS = "Late, waiting, failed and skipped jobs, and what mends them: punctual status --everyone"
TICK_MS = 120_000  # a tick runs every minute, up to a minute late


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    ok: bool
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{'ok    ' if self.ok else 'not ok'}  {self.name:<12} {self.text}" + (
            f"\n        {'':<12} {self.remedy}" if self.remedy else ""
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="ops.doctor", description="Check a deployed stage.")
    parser.add_argument("--stage", required=True)
    failed = 0
    for check in checks(stage_of(parser.parse_args().stage), time.time):
        print(check)
        failed += not check.ok
    print(f"\n{failed} of these checks failed." if failed else "\nAll checks passed.")
    return 1 if failed else 0


def checks(stage: Stage, clock: Callable[[], float]) -> Iterator[Check]:
    """Check from the outside in; checks that depend on a failed one are skipped."""
    try:
        with reported():
            caller = stage.client("sts").get_caller_identity()
    except Trouble as trouble:
        yield Check("credentials", False, str(trouble))
        return
    yield Check("credentials", True, f"account {caller['Account']}, {caller['Arn']}")
    yield Check("region", True, stage.region)
    yield clock_check(clock(), str(caller["ResponseMetadata"]["HTTPHeaders"].get("date", "")))
    yield from _each(stage, clock, concurrency_check, options_check, console_check)
    usable = stack_check(stage)
    yield usable
    if usable.ok:
        yield from _each(stage, clock, tick_check, lag_check, status_check)


def _each(stage: Stage, clock: Callable[[], float], *functions: Callable[..., Check]) -> Iterator[Check]:
    for check in functions:
        try:
            with reported():
                yield check(stage, clock())
        except Trouble as error:
            yield Check(check.__name__.removesuffix("_check"), False, str(error))


def clock_check(here: float, date: str) -> Check:
    """Compare this machine's clock (seconds) with the Date header of an answer of AWS."""
    if not date:
        return Check("clock", True, "the answer has no date to compare with")
    ahead = here - parsedate_to_datetime(date).timestamp()
    if -SKEW_S <= ahead <= SKEW_S + 1:
        return Check("clock", True, "as AWS's, to the second")
    text = f"this machine is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} AWS"
    return Check("clock", False, text, "Set it by NTP: instants that you compute here are wrong by as much.")


def concurrency_check(stage: Stage, _now: float) -> Check:
    try:
        settings = settings_for(stage.name, options.read(options.file_of(stage.name)))
    except OptionsError:  # the check of the options reports it
        settings = stage.settings
    found = stage.state(stage.stack)
    verdict = concurrency.read(stage.client("lambda"), settings, found.outputs if found else {})
    return Check("concurrency", verdict.enough, verdict.sentences[0], " ".join(verdict.sentences[1:]))


def options_check(stage: Stage, _now: float) -> Check:
    try:
        chosen = options.read(options.file_of(stage.name)).chosen
    except OptionsError as error:
        return Check("options", False, str(error), "Correct the file, then deploy.")
    recorded = taken_back.recorded(stage.client("ssm"), stage.name)
    different = sorted(name for name in {*chosen, *recorded} if chosen.get(name) != recorded.get(name))
    if different:
        return Check(
            "options",
            False,
            f"{', '.join(different)} differ between stages/{stage.name}.toml and the deployed stage",
            f"To deploy the file: make deploy STAGE={stage.name}",
        )
    return Check("options", True, f"deployed as in stages/{stage.name}.toml: {', '.join(chosen) or 'none are set'}")


def console_check(stage: Stage, _now: float) -> Check:
    found = stage.state(stage.console)
    if found is None:
        return Check("console", True, "the stage has none")
    return _stack("console", found, stage)


def stack_check(stage: Stage) -> Check:
    try:
        with reported():
            found = stage.state(stage.stack)
    except Trouble as trouble:
        return Check("stack", False, str(trouble))
    if found is None:
        return Check("stack", False, f"there is no stack {stage.stack} in {stage.region}", f"Deploy it: make deploy STAGE={stage.name}")
    return _stack("stack", found, stage)


def _stack(name: str, found: Deployed, stage: Stage) -> Check:
    text = f"{found.name} is {found.status}{found.because}"
    if found.status == "UPDATE_ROLLBACK_COMPLETE":
        return Check(name, True, f"{text}: the last deployment failed, and the version before it runs", remedy(found, stage.name))
    return Check(name, found.usable, text, "" if found.usable else remedy(found, stage.name))


def _ledger(stage: Stage) -> Ledger:
    return DynamoLedger(stage.client("dynamodb"), stage.outputs()["LedgerTable"])


def tick_check(stage: Stage, now: float) -> Check:
    return judge_tick(_ledger(stage), round(now * 1_000))


def judge_tick(ledger: Ledger, now: int) -> Check:
    """The ledger shows the last tick, to the minute: it opens every minute up to `OPEN_AHEAD`."""
    cursor = ledger.cursor()
    if cursor is None:
        return Check("tick", False, "the tick has never run", HINT)
    since = now + slots.OPEN_AHEAD - slots.start_of(cursor.minute)  # it ran at most a minute before
    if since > TICK_MS:
        return Check("tick", False, f"the tick has not run in the last {since // 1_000} s", HINT)
    return Check("tick", True, f"minutes up to {cursor.minute} are open")


def lag_check(stage: Stage, now: float) -> Check:
    return judge_lag(_ledger(stage), round(now * 1_000))


def judge_lag(ledger: Ledger, now: int) -> Check:
    found = known_lag(ledger, now)
    text = f"{found.ms // 1_000} s since the end of the oldest minute with unfinished jobs"
    return Check("lag", found.ms <= LAG_SECONDS * 1_000, text, "" if found.ms <= LAG_SECONDS * 1_000 else HINT)


def status_check(stage: Stage, _now: float) -> Check:
    return judge_status(_ledger(stage))


def judge_status(ledger: Ledger) -> Check:
    """The part of `GET /status` that is in the ledger. The rest is in tables of users' data, which this command does not read."""
    watched = ledger.watched()
    found = [f"the lane {state.lane} is paused{_story(state)}" for state in watched.lanes.values() if state.paused_at is not None]
    found += [
        f"the breaker of {breaker.circuit.name} has been open since {render(breaker.opened_at)}" for breaker in watched.breakers.values()
    ]
    return Check("status", not found, "; ".join(found) or "no lane is paused, and no breaker is open", STATUS)


def _story(state: LaneState) -> str:
    since = f" since {render(state.paused_at)}" if state.paused_at is not None else ""
    by = state.paused_by_name or state.paused_by
    return f"{since}{f' by {by}' if by else ''}{f': {state.reason}' if state.reason else ''}"


if __name__ == "__main__":
    sys.exit(exit_code(main))
