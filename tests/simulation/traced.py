"""A simulated world that exports the spans of its jobs; and the oracles.

passed_other_span     an attempt passed on the context of another span than the one that is exported for it
span_of_two_things    one id stands for two different spans
orphan_span           a span has a parent, or a link, that is neither exported nor the span of a request
several_roots         a trace of one job has more than one beginning

The stream delivers some writes twice, and the spans of a write must be the same each time.
"""

import json
from collections import defaultdict
from typing import Any

from lab.world.faults import CALM, ROUGH, Rates
from scheduler.model import trace
from scheduler.model.job import Job, JobKey
from scheduler.notify import spans
from scheduler.pipeline.submit import NewJob
from tests.simulation.world import Report, World

RATIO = 1.0
TWICE = 0.05  # of the writes
ASKED = 0.6  # of the requests have a context
JOBS, MINUTES, TASKS = 400, 12, 4


class _Written:
    """One write of a job, as `scheduler.model.change.Change`."""

    def __init__(self, before: Job | None, after: Job) -> None:
        self.before, self.after = before, after


class TracedWorld(World):
    """A world whose executors pass contexts on, and whose writes become spans."""

    def __init__(self, seed: int, rates: Rates) -> None:
        super().__init__(seed, rates)
        self.passed: dict[tuple[JobKey, int], str] = {}  # by job and fence: the traceparent that an attempt passed on
        self.exported: dict[str, tuple[str, dict[str, Any]]] = {}  # by the id of a span: its whole text, and the span
        self.requests: set[str] = set()  # the traceparents of requests

    def run_traced(self) -> Report:
        self.run(JOBS, MINUTES, tasks=TASKS, ordered=30)
        self._judge_trees()
        return self.report

    def _new_job(self, at: int, end: int, instant: int | None) -> NewJob:
        made = super()._new_job(at, end, instant)
        if self.random.random() >= ASKED:
            return made
        context = trace.parse(f"00-{self.random.getrandbits(120) + 1:032x}-{self.random.getrandbits(60) + 1:016x}-01")
        assert context is not None
        self.requests.add(context)
        return NewJob(**{name: getattr(made, name) for name in NewJob.__slots__} | {"trace": context})

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        passed = trace.passed_on(job, RATIO)
        assert passed is not None
        self.passed[job.key, job.fence] = passed.parent

    def _watch(self, before: Job | None, after: Job) -> None:
        super()._watch(before, after)
        for _ in range(2 if self.random.random() < TWICE else 1):
            for span in spans.of_change(_Written(before, after), RATIO):
                self._export(span, after)

    def _export(self, span: dict[str, Any], job: Job) -> None:
        text = json.dumps(span)
        if self.exported.setdefault(span["spanId"], (text, span))[0] != text:
            self._violation("span_of_two_things", job.id)
        if not span["name"].startswith("process"):
            return
        passed = self.passed.get((job.key, job.attempts[-1].fence))
        if passed is not None and passed != _parent_of(span):
            self._violation("passed_other_span", job.id)

    def _judge_trees(self) -> None:
        known = {_parent_of(span) for _, span in self.exported.values()} | self.requests
        roots: defaultdict[str, int] = defaultdict(int)
        for _, span in self.exported.values():
            parent = span.get("parentSpanId")
            referred = [f"00-{span['traceId']}-{parent}-01"] if parent is not None else []
            referred += [f"00-{link['traceId']}-{link['spanId']}-01" for link in span.get("links", [])]
            if any(each not in known for each in referred):
                self._violation("orphan_span", span["name"])
            roots[span["traceId"]] += parent is None
        for count in roots.values():
            if count > 1:
                self._violation("several_roots", "")


def _parent_of(span: dict[str, Any]) -> str:
    return f"00-{span['traceId']}-{span['spanId']}-01"


def traced(seed: int) -> TracedWorld:
    world = TracedWorld(seed, CALM)
    world.run_traced()
    return world


def traced_in_trouble(seed: int) -> TracedWorld:
    world = TracedWorld(seed, ROUGH)
    world.run_traced()
    return world
