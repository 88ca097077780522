"""The condition key aws:PrincipalArn of the local AWS."""

from typing import Any

import pytest
from ministack.core import iam_evaluator
from ministack.core.iam_evaluator import EvalContext
from ministack.services import iam

from local import principals

ROLE = "arn:aws:iam::000000000000:role/team/worker"


@pytest.mark.parametrize(
    ("principal", "admitted"),
    [
        ("arn:aws:sts::000000000000:assumed-role/worker/session", True),
        ("arn:aws:sts::000000000000:assumed-role/unknown/session", False),
        ("arn:aws:iam::000000000000:root", False),
    ],
)
def test_a_trust_policy_recognizes_a_session_by_its_role(monkeypatch: pytest.MonkeyPatch, principal: str, admitted: bool) -> None:
    monkeypatch.setitem(iam._roles, "worker", {"RoleName": "worker", "Arn": ROLE})
    monkeypatch.setattr(iam_evaluator, "_resolve_condition_key", principals.by_role(iam_evaluator._resolve_condition_key))
    condition: dict[str, Any] = {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::000000000000:role/team/*"}}
    everybody = {"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole", "Condition": condition}
    context = EvalContext(principal, "AssumedRole", "000000000000", "sts:AssumeRole", ROLE, "us-east-1")
    assert iam_evaluator.evaluate_trust_policy({"Statement": [everybody]}, principal, context) is admitted
