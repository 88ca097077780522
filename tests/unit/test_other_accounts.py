"""Targets in other AWS accounts: whose jobs may use which role, what a refusal states, and the role of each request."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.job import FailureKind
from scheduler.targets import registry
from scheduler.targets.base import NotAllowed, Reach
from scheduler.targets.calls import Refused, Role
from tests.unit.fake_calls import REACH, FakeCalls, context, raising
from tests.unit.test_target_aws import MINIMAL, WITH_ARN, checked, rules

ACCOUNT, STRANGE = "123456789012", "210987654321"  # the first is that of every target below
ROLE = f"arn:aws:iam::{ACCOUNT}:role/targets"
ROLE_OF_A = f"arn:aws:iam::{ACCOUNT}:role/team/a"
PUT: dict[str, Any] = {"service": "sqs", "action": "PurgeQueue", "parameters": {"QueueUrl": "https://example.com/q"}, "account": ACCOUNT}
PAYLOADS = {**{name: MINIMAL[name] for name in WITH_ARN}, "aws": PUT}
FIELDS = {**{name: registry.load(name).resource.field for name in WITH_ARN}, "aws": "account"}  # type: ignore[union-attr]


def reach(*accounts: str) -> Reach:
    return replace(REACH, actions=("sqs:PurgeQueue", "sts:AssumeRole"), accounts=accounts, stage="prod")


def roles_of(name: str, at: Reach) -> set[Role | None]:
    """The roles of the requests of an attempt, which succeeds."""
    calls = FakeCalls(PurgeQueue=dict)
    result = registry.load(name).run(PAYLOADS[name], context(calls, reach=at))
    assert result.failure is None, result
    return {request.role for request in calls.asked}


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_call_to_an_account_with_an_entry_is_made_with_its_role(name: str) -> None:
    at = reach(f"arn:aws:iam::{STRANGE}:role/other", ROLE, f"{ROLE_OF_A} team-a team-b")
    assert roles_of(name, at.of("ann")) == {Role(ROLE, "punctual/prod/ann")}
    assert roles_of(name, at.of("team-b")) == {Role(ROLE_OF_A, "punctual/prod/team-b")}, "an entry that names the owner goes first"


@pytest.mark.parametrize("name", WITH_ARN)
def test_without_an_entry_the_executor_calls_with_its_own_rights(name: str) -> None:
    assert roles_of(name, reach(f"arn:aws:iam::{STRANGE}:role/other").of("ann")) == {None}


@pytest.mark.parametrize("name", PAYLOADS)
def test_the_role_of_other_owners_is_refused_at_creation_and_at_run_time(name: str) -> None:
    at = reach(f"{ROLE_OF_A} team-a")
    with pytest.raises(NotAllowed, match=f"is in the account {ACCOUNT}, which the option accounts opens to other owners only") as found:
        registry.check_reach(name, PAYLOADS[name], at.of("team"))
    assert found.value.field == FIELDS[name]
    calls = FakeCalls()
    failure = registry.load(name).run(PAYLOADS[name], context(calls, reach=at.of("eve"))).failure
    assert failure is not None and failure.kind is FailureKind.PERMANENT and "the option accounts" in failure.message
    assert calls.asked == []


def test_a_target_of_any_owner_is_accepted_and_callable_by_none() -> None:
    at = reach(f"{ROLE_OF_A} team-a")
    for name in PAYLOADS:
        registry.check_reach(name, PAYLOADS[name], at)
        assert roles_of(name, at) == {Role(ROLE_OF_A, "")}, "STS refuses an empty external id"


def test_an_aws_job_needs_an_entry_for_its_account() -> None:
    with pytest.raises(NotAllowed, match=f"{STRANGE} has no entry in the option accounts") as found:
        registry.check_reach("aws", PUT | {"account": STRANGE}, reach(ROLE).of("ann"))
    assert found.value.field == "account"
    assert roles_of("aws", reach(ROLE).of("ann")) == {Role(ROLE, "punctual/prod/ann")}
    registry.check_reach("aws", {name: PUT[name] for name in PUT if name != "account"}, reach(ROLE).of("ann"))


@pytest.mark.parametrize("account", ["", "12345678901", "1234567890123", "12345678901x", "١٢٣٤٥٦٧٨٩٠١٢", 123456789012])
def test_an_account_has_twelve_digits(account: Any) -> None:
    checked("aws", PUT)
    assert "account" in rules("aws", PUT | {"account": account})


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"action": "AssumeRole", "service": "sts", "parameters": {}}, "is denied to all jobs"),
        ({"action": "SendMessage"}, "the option allowed_actions lists"),
        ({"parameters": {"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/1/punctual-prod-LanesRetry4C-x"}}, "the scheduler itself"),
    ],
)
def test_the_rules_of_actions_hold_in_other_accounts(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(NotAllowed, match=rule):
        registry.check_reach("aws", PUT | change, reach(ROLE).of("ann"))


@pytest.mark.parametrize(
    ("refused", "kind", "part"),
    [
        (Refused("AccessDenied", "so", retryable=False), FailureKind.PERMANENT, "the policies of the role that the option accounts has"),
        (Refused("AssumeRole", "so", retryable=True, throttled=True), FailureKind.THROTTLED, "AssumeRole: so"),
        (Refused("AssumeRole", "so", retryable=True), FailureKind.RETRYABLE, "AssumeRole: so"),
    ],
)
def test_a_refusal_in_another_account_is_a_failure(refused: Refused, kind: FailureKind, part: str) -> None:
    failure = registry.load("aws").run(PUT, context(FakeCalls(PurgeQueue=raising(refused)), reach=reach(ROLE).of("ann"))).failure
    assert failure is not None and failure.kind is kind and part in failure.message
    if refused.code == "AssumeRole":
        calls = FakeCalls(send_message=raising(refused))
        failure = registry.load("sqs").run(MINIMAL["sqs"], context(calls, reach=reach(ROLE).of("ann"))).failure
        assert failure is not None and failure.kind is kind


def test_jobs_of_an_action_fail_together_in_each_account() -> None:
    declared = registry.load("aws")
    assert (declared.circuit_of(PUT), declared.called_by(PUT)) == (f"sqs:PurgeQueue in {ACCOUNT}", "sqs:PurgeQueue")
