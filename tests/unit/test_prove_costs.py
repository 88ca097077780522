"""The dollars of `make prove`: the figures of the cost page, and the peers' list prices."""

import re
from pathlib import Path

from bench import prices
from prove import costs
from prove.plan import FULL, planned

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = (DOCS / "concepts/cost.md").read_text() + (DOCS / "internals/cost-model.md").read_text()


def together(section: str) -> list[float]:
    """Return the last line of the first table of a section of the pages about cost."""
    text = DOCUMENT.partition(f"## {section}")[2].partition("\n## ")[0]
    row = re.search(r"^\| \*\*together\*\* \|(.*)\|$", text, re.MULTILINE)
    assert row
    return [float(each) for each in re.findall(r"\*\*([\d.]+)\*\*", row[1])]


def test_the_prices_of_jobs_equal_the_cost_page() -> None:
    (sparse,) = together("A million sparse jobs")
    _, crowds, _, evenly, recurring = together("A million dense jobs")
    assert {"sparse": sparse, "crowds": crowds, "evenly": evenly, "recurring": recurring} == costs.JOB


def test_each_part_costs_what_jobs_of_its_shape_cost() -> None:
    shapes = {key: costs.of_jobs(key, 1_000_000) for key in ("cold", "cold-burst", "spread", "steady", "cron")}
    assert shapes == {"cold": 9.99, "cold-burst": 3.56, "spread": 9.99, "steady": 5.27, "cron": 5.59}


def test_the_peers_of_a_run_are_part_of_its_cost() -> None:
    alone, beside = (costs.of_run(planned(0, FULL, keys)) for keys in (["spread"], ["spread", "peers"]))
    message = 3 * prices.SQS_PLAIN
    assert round(beside - alone, 9) == round(100 * (prices.SCHEDULE + message) + 100 * message, 9)


def test_the_sources_of_the_peers_prices_are_named() -> None:
    assert "$1.00 a million invocations (https://aws.amazon.com/eventbridge/pricing/)" in costs.SOURCES
    assert "$0.40 a million requests, 3 a message (https://aws.amazon.com/sqs/pricing/)" in costs.SOURCES
