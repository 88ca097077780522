"""A job for now on AWS, from the call to its start, by parts: a model. `bench.rounds` counts the calls; each round takes `NETWORK_MS`.

API Gateway, Lambda and SQS are not ours, so their parts are the figures of others, as their links say, or assumed. The processor time is
that of the recorded run of `make bench`, at the share of a core that the memory of the stage `prod` has.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bench import rounds
from bench.figures import Figure
from bench.results import read
from bench.rounds import CASES, Case, Round, Rounds
from bench.units import MEMORY_MB
from lab.world.calls import NETWORK_MS, on_core
from lab.world.limits import COLD_MS
from local.steps import step

BUDGET_MS = 100  # of a job for now, warm
# With the check of the token, the request and the answer, in 99 of 100 cases:
# https://aws.amazon.com/blogs/compute/building-better-apis-http-apis-now-generally-available/
GATEWAY_MS = 10.0
INVOKE_MS = 5.0  # assumed: from API Gateway to the handler of a warm function
# From the send to the handler of a warm function, p50 (p90 34 ms, p99 105 ms):
# https://bitesizedserverless.com/bite/serverless-messaging-latency-compared/
QUEUE_MS = 16.2
SENDS = ("SendMessageBatch",)


class Part(NamedTuple):
    """A part of the way, which takes this long (ms). `rounds`: of calls to AWS that it consists of."""

    key: str
    what: str
    ms: float
    rounds: int = 0


def parts(case: Case, counted: Rounds, cpu_ms: Mapping[str, float]) -> list[Part]:
    """Return the parts of the way from the call to the start. `cpu_ms`: by function, of a whole core."""
    before = counted.request[: counted.request.index(SENDS)]
    cold = COLD_MS if case.after_ms is None else 0
    return [
        Part("gateway", "API Gateway, which also checks the token", GATEWAY_MS),
        Part("invoke", "Lambda, to the function `api`", INVOKE_MS),
        *([Part("cold_api", "cold start of `api`", cold)] if cold else []),
        Part("api_cpu", "processor time of `api`", on_core(cpu_ms["api"], MEMORY_MB["api"])),
        Part("api_rounds", "calls of `api` before the send", len(before) * NETWORK_MS, len(before)),
        Part("queue", "SQS and Lambda, from the send to the executor", QUEUE_MS),
        *([Part("cold_execute", "cold start of the executor", cold)] if cold else []),
        Part("execute_cpu", "processor time of the executor", on_core(cpu_ms["execute"], MEMORY_MB["execute"])),
        Part("execute_rounds", "calls of the executor before the start", len(counted.start) * NETWORK_MS, len(counted.start)),
    ]


def recorded_cpu_ms() -> dict[str, float]:
    """Return the processor time of a request, and of a job in its executor, by the recorded run of `make bench`."""
    figures = read("bench")["figures"]
    return {name: figures[f"cpu.{name}_ms"]["value"] for name in ("api", "execute")}


def measure(short: bool = False) -> Iterator[Figure]:
    """Yield the rounds and the modelled times of each case."""
    cpu_ms = recorded_cpu_ms()
    for case in CASES:
        with step(f"A job for now: {case.what}"):
            counted = rounds.rounds(case)
        found = parts(case, counted, cpu_ms)
        yield Figure(f"now.{case.key}.rounds", f"a job for now, {case.what}: rounds of calls", len(counted.request) + len(counted.start))
        budget = None if case.after_ms is None else BUDGET_MS
        yield Figure(f"now.{case.key}.p50_ms", "  from the call to the start on AWS, modelled", _sum(found), "ms", budget)
        for part in found:
            yield Figure(f"now.{case.key}.{part.key}_ms", f"    {part.what}", round(part.ms, 1), "ms")


def _sum(found: Sequence[Part]) -> float:
    return round(sum(part.ms for part in found), 1)


def rounds_table(found: Mapping[str, Rounds]) -> list[str]:
    """Return the Markdown table of the rounds of each case."""
    lines = ["| a job for now | rounds of the request | rounds of the executor before the start |", "|---|---|---|"]
    return lines + [f"| {case.what} | {_shown(found[case.key].request)} | {_shown(found[case.key].start)} |" for case in CASES]


def _shown(found: Sequence[Round]) -> str:
    return f"{len(found)}: " + ", then ".join(" + ".join(f"`{name}`" for name in each) for each in found)


def parts_table(found: Mapping[str, Rounds], cpu_ms: Mapping[str, float]) -> list[str]:
    """Return the Markdown table of the parts, in milliseconds: a job a minute after another one, and the first one."""
    warm, cold = (parts(case, found[case.key], cpu_ms) for case in CASES if case.key in ("minute", "cold"))
    by_key = {part.key: part for part in warm}
    lines = ["| part | warm, ms | cold, ms |", "|---|--:|--:|"]
    lines += [f"| {part.what} | {_cell(by_key.get(part.key))} | {_cell(part)} |" for part in cold]
    return [*lines, f"| in all | **{_sum(warm):,.0f}** | **{_sum(cold):,.0f}** |"]


def _cell(part: Part | None) -> str:
    if part is None:
        return "–"
    rounds = f"{part.rounds} round{'s' * (part.rounds > 1)}: " if part.rounds else ""
    return f"{rounds}{part.ms:,.0f}"
