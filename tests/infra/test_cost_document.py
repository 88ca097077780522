"""The write units in the documentation equal the counted ones, and the costs of calls of URLs the computed ones."""

import re
from pathlib import Path

import pytest

from bench import idle, operations, prices, units
from tests.infra.conftest import synthesized

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "concepts/cost.md").read_text() + (DOCS / "internals/cost-model.md").read_text()
SECTION = PAGE.partition("## Write units")[2].partition("\n## ")[0]
CLAIMED = {name: float(count) for name, count in re.findall(r"^\| ([\w -]+?) \| ([\d.]+) \|$", SECTION, re.MULTILINE)}


@pytest.mark.long
@pytest.mark.parametrize("name", CLAIMED)
def test_the_document_has_the_counted_figures(name: str) -> None:
    assert operations.per_job(units.SCENARIOS[name]) == CLAIMED[name]


def test_the_document_names_every_scenario() -> None:
    assert CLAIMED.keys() == units.SCENARIOS.keys()


CALLS = re.findall(r"^\| (sparse|evenly|in crowds) \| ([\d.]+) s \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
JOBS = {"sparse": 9.99, "dense: evenly": 6.61, "dense: in crowds": 3.56}  # `tests/unit/test_prove_costs.py` compares them with the page


@pytest.mark.parametrize(("shape", "seconds", "jobs", "fetch", "execute", "together"), CALLS)
def test_calls_of_urls_cost_what_is_computed(shape: str, seconds: str, jobs: str, fetch: str, execute: str, together: str) -> None:
    parts = [dollars * prices.MILLION for _, dollars in units.called(float(seconds), int(jobs))]
    assert [*parts, sum(parts)] == [pytest.approx(float(each), abs=0.0051) for each in (fetch, execute, together)]


def test_the_page_has_the_cost_of_a_million_http_jobs() -> None:
    together = {(shape, seconds): float(all) for shape, seconds, _, _, _, all in CALLS}
    assert len(together) == 3 * len(units.ANSWERS_S)
    for shape, dollars in JOBS.items():
        (row,) = re.findall(rf"^\| {shape}, [^|]* \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
        calls = [together[shape.removeprefix("dense: "), f"{seconds:g}"] for seconds in units.ANSWERS_S]
        assert [float(each) for each in row] == [pytest.approx(dollars + each, abs=0.0051) for each in calls]


def test_the_options_at_rest_cost_what_is_computed() -> None:
    computed = idle.of_options()
    section = PAGE.partition("### Options of sign-in and intake")[2].partition("\n## ")[0]
    listed = {name: float(dollars) for name, dollars in re.findall(r"^\| (.+?) \| ([\d.]+) \|$", section, re.MULTILINE)}
    assert listed == {name: round(dollars, 2) for name, dollars in (computed | {"all of them": sum(computed.values())}).items()}
    assert sum(computed.values()) <= 0.50


@pytest.mark.long
def test_the_options_add_only_what_is_counted() -> None:
    sso = {"name": "Corp", "type": "saml", "console": "https://console.example.com", "metadata_url": "https://idp.example.com/metadata"}
    issuers = {"123456789012": "https://1.tokens.sts.global.api.aws"}
    without, made = synthesized("prod"), synthesized.__wrapped__("prod", sso=sso, aws_issuers=issuers, intake={"jobs": "principals"})
    paid = {"CloudWatch::Alarm": idle.INTAKE_ALARMS, "Lambda::EventSourceMapping": 1, "SecretsManager::Secret": 0, "Scheduler::Schedule": 0}
    assert {kind: len(made.all(kind)) - len(without.all(kind)) for kind in paid} == paid
    kinds = [{each["Type"] for each in stack.template["Resources"].values()} for stack in (without, made)]
    assert kinds[1] - kinds[0] == {f"AWS::Cognito::UserPool{each}" for each in ("Domain", "IdentityProvider")}
