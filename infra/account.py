"""The concurrent executions of a stage within those of its account: the reserved ones of the engine, the limits of executors and `fetch`.

An account allows a number of executions for all its functions in a region, 1,000 or, if it is new, 10. Executors could take all of them,
and then nothing plans, publishes or accepts jobs. A stage with the option `account_concurrency` limits its executors and reserves the rest.
Without the option nothing can be reserved, since AWS would refuse it in a small account: an executor then has few calls of `fetch` at once.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
"""

from collections.abc import Mapping
from typing import NamedTuple

from scheduler.insight.scaling import EXECUTORS_EACH, LEAST
from scheduler.model.job import Lane

LEAST_ACCOUNT = 10  # of a new account
RESERVES = 250  # executions of the smallest account in which some are reserved: AWS keeps `UNRESERVED`
OTHERS = 20  # for the stage's functions without a reservation, and for other functions
OTHERS_SMALL = 4  # tick, plan, scale and a request; in a small account they share the rest
LEAST_MAPPING = 2  # executions of an event source mapping: https://docs.aws.amazon.com/lambda/latest/api/API_ScalingConfig.html
FETCH = 0.4  # the share of `fetch`, which each `http` job calls, in the executions for jobs
PRIVATE = 0.25  # the share of `fetch-private` in that of `fetch`
UNRESERVED = 100  # https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionConcurrency.html: the least for functions that reserve none
USUAL = 1_000  # https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html; new accounts may have 10
CALLS = 6  # calls of `fetch` by one executor where the account is unknown: with all executors of `dev`, six sevenths of the usual account


class Share(NamedTuple):
    """The concurrent executions of one stage. `is_small`: of a small account, in which nothing can be reserved."""

    is_small: bool
    reserved: Mapping[str, int]  # by verb
    concurrency: Mapping[Lane, int]  # executors
    steps: int  # of the engine


def share(account: int, concurrency: Mapping[Lane, int], *, http_apart: bool, private: bool = False) -> Share:
    """Return the share of a stage in an account that allows `account` executions at once.

    `concurrency`: the most executors that the stage may have. `http_apart`: `fetch` calls URLs for them, unless the account is small.
    `private`: the stage has `fetch-private`, which gets a part of the share of `fetch`.
    """
    small = account < RESERVES
    reserved = {} if small else _engine(account)
    left = account - sum(reserved.values()) - (OTHERS_SMALL if small else OTHERS)
    if http_apart and not small:
        reserved["fetch"] = round(left * FETCH)
        left -= reserved["fetch"]
        if private:
            reserved["fetch-private"] = round(reserved["fetch"] * PRIVATE)
            reserved["fetch"] -= reserved["fetch-private"]
    part = max(left - LEAST_MAPPING * len(concurrency), 0) / sum(concurrency.values())
    limited = {lane: min(LEAST_MAPPING + int(most * part), most) for lane, most in concurrency.items()}
    return Share(small, reserved, limited, max(account // 20, LEAST_MAPPING))


def pollers(most: Mapping[Lane, int], concurrency: Mapping[Lane, int]) -> dict[Lane, int]:
    """Return the most pollers that are kept ready, for ten executors each: none for a lane with too few executors."""
    possible = {lane: min(each, concurrency[lane] // EXECUTORS_EACH) for lane, each in most.items()}
    return {lane: each for lane, each in possible.items() if each >= LEAST}


def _engine(account: int) -> dict[str, int]:
    """The reserved executions by verb: these functions must run while jobs take all others."""
    return {"tick": 2, "plan": 2, "scale": 2, "worker": account // 20, "api": account // 20}
