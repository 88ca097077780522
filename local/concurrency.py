"""The Lambda concurrency of an account, and its consequences for a stage in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infra.settings import Settings

ENGINE = 10  # tick, plan, scale, project, bury, notify, a few steps of dispatch and requests of the API, all at the same instant
USUAL = 1_000  # https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html; new accounts may have 10
MORE = "Request more, at no charge: Service Quotas, AWS Lambda, Concurrent executions"


@dataclass(frozen=True)
class Verdict:
    """Whether the account's concurrency is enough for the stage, and the consequences in sentences."""

    enough: bool
    sentences: Sequence[str]


def judge(limit: int, unreserved: int, settings: Settings) -> Verdict:
    """Judge the account's limit, of which `unreserved` are left for functions that reserve none, before this stage is deployed or after."""
    executors, known = sum(settings.concurrency.values()), settings.account_concurrency
    if known:
        return _kept(limit, executors, settings)
    elsewhere = f", {limit - unreserved} of them reserved by other functions" if unreserved < limit else ""
    allowed = f"The account may run {limit:,} functions at once{elsewhere}"
    if unreserved <= ENGINE:
        return Verdict(
            False,
            (
                f"{allowed}. The engine alone takes up to {ENGINE} at times.",
                "It will work for a few jobs at a time. With many jobs, some start late and the API refuses requests. Nothing is lost.",
                f"Write account_concurrency = {limit} to the file of the stage: executors then leave room for the engine.",
                f"{MORE} ({USUAL:,} is usual).",
            ),
        )
    if unreserved < executors + ENGINE:
        return Verdict(
            False,
            (
                f"{allowed}. The executors of {settings.stage} may take {executors:,}, the engine {ENGINE}.",
                f"With more than {unreserved - ENGINE:,} executors at work, tick, dispatch and the API compete with them: jobs start late.",
                f"Write account_concurrency = {limit} to the file of the stage, which reserves some for them. {MORE}.",
            ),
        )
    return Verdict(True, (f"{allowed}: enough for {executors:,} executors of {settings.stage} and the engine.",))


def _kept(limit: int, executors: int, settings: Settings) -> Verdict:
    """Judge the limit for a stage that keeps within `account_concurrency`."""
    known = settings.account_concurrency
    if limit < known:
        return Verdict(
            False,
            (
                f"The account may run {limit:,} functions at once, fewer than account_concurrency = {known}.",
                f"Write account_concurrency = {limit} to the file of the stage.",
            ),
        )
    kept = f"{sum(settings.reserved.values()):,} are reserved" if settings.reserved else "too few to reserve any"
    return Verdict(True, (f"The account may run {limit:,} functions at once. The stage takes {executors:,} executors at most; {kept}.",))


def read(functions: Any, settings: Settings) -> Verdict:
    """Read the account's limits from Lambda, and judge them. Raises ClientError if AWS refuses."""
    limits = functions.get_account_settings()["AccountLimit"]
    return judge(limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"], settings)
