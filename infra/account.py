"""The concurrent executions of a stage within those of its account: the reserved ones of the engine, the limits of executors and `fetch`.

An account allows a number of executions for all its functions in a region, 1,000 or, if it is new, 10. Executors could take all of them,
and then nothing plans, publishes or accepts jobs. A stage with the option `account_concurrency` limits its executors and reserves the rest.
Without the option nothing can be reserved, since AWS would refuse it in a small account: an executor then has few calls of `fetch` at once.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler.insight.scaling import EXECUTORS_EACH, LEAST
from scheduler.model.job import Lane

if TYPE_CHECKING:
    from infra.settings import Settings

LEAST_ACCOUNT = 10  # of a new account
RESERVES = 250  # executions of the smallest account in which some are reserved: AWS keeps `UNRESERVED`
OTHERS = 20  # for the stage's functions without a reservation, and for other functions
OTHERS_SMALL = 4  # tick, plan, scale and a request; in a small account they share the rest
LEAST_MAPPING = 2  # executions of an event source mapping: https://docs.aws.amazon.com/lambda/latest/api/API_ScalingConfig.html
FETCH = 0.4  # the share of `fetch`, which each `http` job calls, in the executions for jobs
UNRESERVED = 100  # https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionConcurrency.html: the least for functions that reserve none
USUAL = 1_000  # https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html; new accounts may have 10
CALLS = 6  # calls of `fetch` by one executor where the account is unknown: with all executors of `dev`, six sevenths of the usual account


def within(settings: "Settings", account: int) -> "Settings":
    """Return the settings of a stage in an account that allows `account` executions at once; 0: unknown, which limits nothing."""
    if not account:
        return settings
    small = account < RESERVES
    reserved = {} if small else _engine(account)
    left = account - sum(reserved.values()) - (OTHERS_SMALL if small else OTHERS)
    if settings.http_apart and not small:
        reserved["fetch"] = round(left * FETCH)
        left -= reserved["fetch"]
    part = max(left - LEAST_MAPPING * len(settings.concurrency), 0) / sum(settings.concurrency.values())
    concurrency = {lane: min(LEAST_MAPPING + int(most * part), most) for lane, most in settings.concurrency.items()}
    ready = min(settings.rules.ready_executors, concurrency[Lane.ONE_TIME], concurrency[Lane.RECURRING])
    return replace(
        settings,
        account_concurrency=account,
        reserved=reserved,
        concurrency=concurrency,
        steps=max(account // 20, LEAST_MAPPING),
        notices=LEAST_MAPPING if small else settings.notices,
        http_apart=settings.http_apart and not small,
        rules=replace(settings.rules, ready_executors=ready, most_pollers=_pollers(settings, concurrency)),
    )


def calls_at_once(settings: "Settings") -> int:
    """The most calls of `fetch` of one executor. A reservation limits them all; without one, they must leave room for the engine."""
    return settings.rules.calls_at_once if settings.account_concurrency or not settings.http_apart else CALLS


def calls(settings: "Settings") -> int:
    """The most calls of `fetch` by all executors; 0: they call URLs themselves."""
    if not settings.http_apart:
        return 0
    return settings.reserved.get("fetch", calls_at_once(settings) * sum(settings.concurrency.values()))


def _engine(account: int) -> dict[str, int]:
    """The reserved executions by verb: these functions must run while jobs take all others."""
    return {"tick": 2, "plan": 2, "scale": 2, "dispatch": account // 20, "api": account // 20}


def _pollers(settings: "Settings", concurrency: Mapping[Lane, int]) -> dict[Lane, int]:
    """The most pollers that are kept ready, for ten executors each: none for a lane with too few executors."""
    wanted = {lane: min(most, concurrency[lane] // EXECUTORS_EACH) for lane, most in settings.rules.most_pollers.items()}
    return {lane: most for lane, most in wanted.items() if most >= LEAST}
