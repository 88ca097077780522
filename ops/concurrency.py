"""The Lambda concurrency of an account, and its consequences for a stage in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.account import LEAST_ACCOUNT, OTHERS, UNRESERVED, USUAL
from infra.settings import Settings, within

ENGINE = 10  # tick, plan, scale, project, bury, notify, a few steps of dispatch and requests of the API, all at the same instant
MORE = "Request more, at no charge: Service Quotas, AWS Lambda, Concurrent executions"
RESERVING = ("tick", "plan", "scale", "worker", "api", "fetch", "fetch-private")  # the verbs whose functions may reserve some


@dataclass(frozen=True)
class Verdict:
    """Whether the account's concurrency is enough for the stage, and the consequences in sentences."""

    enough: bool
    sentences: Sequence[str]


def judge(limit: int, free: int, settings: Settings) -> Verdict:
    """Judge the account's limit, of which `free` are not reserved by functions of others: other stages, other applications."""
    executors, known = sum(settings.concurrency.values()), settings.account_concurrency
    elsewhere = f", {limit - free:,} of them reserved by other functions" if free < limit else ""
    allowed = f"The account may run {limit:,} functions at once{elsewhere}"
    if known:
        return _limited(limit, free, executors, settings, allowed)
    calls = settings.deployed.calls_at_once if settings.http_apart else 0
    if free <= ENGINE:
        return Verdict(
            False,
            (
                f"{allowed}. The engine alone takes up to {ENGINE} at times.",
                "It will work for a few jobs at a time. With many jobs, some start late and the API refuses requests. Nothing is lost.",
                f"Write account_concurrency = {free} to the file of the stage: executors then leave room for the engine.",
                f"{MORE} ({USUAL:,} is usual).",
            ),
        )
    if free < executors * (1 + calls) + ENGINE:
        return Verdict(
            False,
            (
                f"{allowed}. The executors of {settings.stage} may take {executors:,}, "
                f"their calls of URLs {calls} each, the engine {ENGINE}.",
                f"With more than {(free - ENGINE) // (1 + calls):,} executors at work, tick, dispatch and the API compete with them: "
                "jobs start late.",
                f"Write account_concurrency = {free} to the file of the stage, which reserves some for them. {MORE}.",
            ),
        )
    enough = f"{allowed}: enough for {executors:,} executors of {settings.stage}, {calls} calls of URLs of each, and the engine."
    if fetch := within(settings, free).reserved.get("fetch"):
        more = f"Many `http` jobs at once? Write account_concurrency = {free} to the file of the stage: {fetch:,} calls are then reserved."
        return Verdict(True, (enough, more))
    return Verdict(True, (enough,))


def _limited(limit: int, free: int, executors: int, settings: Settings, allowed: str) -> Verdict:
    """Judge the limit for a stage that keeps within `account_concurrency`."""
    known, reserved = settings.account_concurrency, sum(settings.reserved.values())
    if limit < known:
        return Verdict(
            False,
            (
                f"The account may run {limit:,} functions at once, fewer than account_concurrency = {known}.",
                f"Write account_concurrency = {limit} to the file of the stage.",
            ),
        )
    left = free - reserved
    if reserved and left < UNRESERVED:
        return Verdict(
            False,
            (
                f"{allowed}. This stage would reserve {reserved:,} and leave {max(left, 0):,} for functions that reserve none.",
                f"AWS refuses to leave fewer than {UNRESERVED}. {_instead(free)}",
                "Stages in one account share its limit: give each its part (docs/get-started/aws.md).",
            ),
        )
    reservation = f"{reserved:,} are reserved" if reserved else "too few to reserve any"
    sentences = [f"{allowed}. The stage takes {executors:,} executors at most; {reservation}."]
    if reserved and left < executors + OTHERS:
        sentences.append(f"Only {left:,} are left for its executors and all other functions. {_instead(free)}")
    return Verdict(True, tuple(sentences))


def _instead(free: int) -> str:
    """The next step where others have reserved a part: this stage keeps within the rest."""
    if free < LEAST_ACCOUNT:
        return f"Lower the reservations of other functions. {MORE}."
    return f"Write account_concurrency = {free} to the file of the stage, or lower the reservations of other functions. {MORE}."


def read(functions: Any, settings: Settings, outputs: Mapping[str, str]) -> Verdict:
    """Read the account's limits from Lambda, and judge them. `outputs`: of the stage's present stack, if there is one.

    The stage's own reservations are read only if something is reserved in the account. Raises ClientError if AWS refuses.
    """
    limits = functions.get_account_settings()["AccountLimit"]
    limit, unreserved = limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"]
    own = sum(_reserved(functions, name) for name in _names(outputs)) if unreserved < limit else 0
    return judge(limit, unreserved + own, settings)


def _names(outputs: Mapping[str, str]) -> list[str]:
    return [name for verb in RESERVING if (name := outputs.get(f"{verb.title().replace('-', '')}Function"))]


def _reserved(functions: Any, name: str) -> int:
    try:
        return int(functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions", 0))
    except functions.exceptions.ResourceNotFoundException:  # deleted by hand
        return 0
