"""Dollars of a run on AWS: jobs by the figures of docs/concepts/cost.md, peers by list prices.

`tests/unit/test_prove_costs.py` compares the figures.
"""

from bench.prices import MILLION, SCHEDULE, SQS_PLAIN
from prove.plan import DELAYED, PEERS, Plan

JOB = {  # dollars of a million jobs, all in, by how they are due
    "sparse": 9.99,
    "crowds": 3.56,  # posted a thousand a call
    "evenly": 5.27,  # the same
    "recurring": 5.59,
}
SHAPES = {"cold-burst": "crowds", "warm-burst": "crowds", "steady": "evenly", "cron": "recurring"}  # other parts are sparse
REQUESTS = 3  # of a message: it is sent, received and deleted
MESSAGE = REQUESTS * SQS_PLAIN  # a schedule sends one, too
SOURCES = (
    f"EventBridge Scheduler: ${SCHEDULE * MILLION:.2f} a million invocations (https://aws.amazon.com/eventbridge/pricing/). "
    f"SQS: ${SQS_PLAIN * MILLION:.2f} a million requests, {REQUESTS} a message (https://aws.amazon.com/sqs/pricing/). "
    "Jobs: docs/concepts/cost.md. List prices of us-east-1 without free tiers."
)


def of_jobs(key: str, count: int) -> float:
    """Return the dollars of this number of jobs of a part."""
    return count * JOB[SHAPES.get(key, "sparse")] / MILLION


def of_run(plan: Plan) -> float:
    """Return the dollars of a whole run, before it begins."""
    others = plan.jobs - sum(len(part.instants) for part in plan.parts)
    jobs = sum(of_jobs(part.key, len(part.instants)) for part in plan.parts) + of_jobs("order", others)
    if PEERS not in plan.keys:
        return jobs
    delayed = sum(len(part.instants) for part in plan.compared if part.key == DELAYED)
    return jobs + delayed * MESSAGE + sum(len(part.instants) for part in plan.compared) * (SCHEDULE + MESSAGE)
