"""The condition key aws:PrincipalArn of the local AWS: of a session it is the ARN of the role, as on AWS. MiniStack has the session's own.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-principalarn
"""

import re
from collections.abc import Callable
from typing import Any

from ministack.core import iam_evaluator
from ministack.services import iam

Resolve = Callable[[str, iam_evaluator.EvalContext], Any]


def by_role(resolve: Resolve) -> Resolve:
    """Wrap the lookup of a condition key."""

    def wrapped(key: str, context: iam_evaluator.EvalContext) -> Any:
        found = resolve(key, context)
        if key.lower() == "aws:principalarn" and (session := re.fullmatch(r"arn:aws:sts::(\d{12}):assumed-role/([^/]+)/.+", str(found))):
            role = iam._roles.get_scoped(session[1], None, session[2])
            return role["Arn"] if role else found
        return found

    return wrapped


def install() -> None:
    """Let conditions on principals compare the ARNs of roles."""
    iam_evaluator._resolve_condition_key = by_role(iam_evaluator._resolve_condition_key)
