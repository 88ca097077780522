"""The option `accounts`: its refusals with line and rule, and the grant of the executors to assume exactly the listed roles."""

from pathlib import Path
from typing import Any

import pytest
from cdk_nag import AwsSolutionsChecks

from infra.options import MOST_ACCOUNTS, Options
from lambdas._settings import Settings
from scheduler.targets.base import Reach
from tests.infra.conftest import Synthesized, as_list, refusal, synthesized
from tests.infra.test_allowed_actions import COPY, EXECUTORS, denies, plain
from tests.infra.test_functions import environ

ROLE, TEAM_ROLE = "arn:aws:iam::210987654321:role/punctual-targets", "arn:aws:iam::210987654321:role/team/a"
ENTRIES = ({"id": "210987654321", "role": ROLE}, {"id": "210987654321", "role": TEAM_ROLE, "owners": ("team-a", "b")})
HEAD = f'[[accounts]]\nid = "210987654321"\nrole = "{ROLE}"\n'
OWN = "arn:aws:iam::123456789012:role/admin"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('id = "21098765432"', "line 5: accounts.id: an AWS account has 12 digits; '21098765432' is not valid"),
        ("id = 210987654321", "line 5: accounts.id must be a text in quotes, not 210987654321"),
        ('id = "310987654321"', "line 4: accounts.role is missing"),
        (f'id = "310987654321"\nrole = "{ROLE}"', f"line 4: an element of accounts: {ROLE} is no role of the account 310987654321"),
        ('id = "310987654321"\nrole = "targets"', "line 6: accounts.role: 'targets' is no ARN of one role; such as"),
        ('id = "310987654321"\nrole = "arn:aws:iam::310987654321:role/*"', "is no ARN of one role"),
        ('id = "310987654321"\nrole = "arn:aws:iam::310987654321:user/ann"', "is no ARN of one role"),
        (f'id = "210987654321"\nrole = "{TEAM_ROLE}"\nowners = ["a b"]', "an element of accounts.owners: 'a b' is no id of an owner"),
        (f'id = "210987654321"\nrole = "{TEAM_ROLE}"\nexternal_id = "x"', "the options are id, role, owners"),
        ("[[accounts]]", "accounts.id is missing"),
        (f'id = "210987654321"\nrole = "{TEAM_ROLE}"', "has two roles in 210987654321 for all others: an owner has one role in an account"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_line_and_rule(written: Path, text: str, message: str) -> None:
    assert message in refusal(written, f"{HEAD}[[accounts]]\n{text}\n")


def test_entries_are_tables(written: Path) -> None:
    assert ", line 1: accounts must be tables: begin each with [[accounts]]" in refusal(written, f'accounts = ["{ROLE}"]')


def test_an_owner_has_one_role_in_an_account() -> None:
    entries = [*ENTRIES, {"id": "210987654321", "role": ROLE, "owners": ("c", "b")}]
    with pytest.raises(ValueError, match="has two roles in 210987654321 for b: an owner has one role in an account"):
        Options.model_validate({"accounts": entries})


def test_more_entries_than_a_policy_has_room_for_are_refused() -> None:
    entries = [{"id": f"{number:012}", "role": f"arn:aws:iam::{number:012}:role/x"} for number in range(MOST_ACCOUNTS + 1)]
    assert len(Options.model_validate({"accounts": entries[1:]}).accounts) == MOST_ACCOUNTS
    with pytest.raises(ValueError, match="has at most 20 entries, not 21"):
        Options.model_validate({"accounts": entries})


@pytest.fixture(scope="module")
def reaching() -> Synthesized:
    return synthesized.__wrapped__("prod", accounts=ENTRIES, allowed_actions=(COPY,))


def on_sts(made: Synthesized) -> dict[str, list[tuple[str, Any, list[str]]]]:
    """The inline statements on STS: effect, actions and resources, by the function that has them."""
    found: dict[str, list[tuple[str, Any, list[str]]]] = {}
    for name, function in made.functions().items():
        for policy in made.all("IAM::Role")[function["Role"]["Fn::GetAtt"][0]]["Policies"]:
            for each in policy["PolicyDocument"]["Statement"]:
                if any(action.startswith("sts:") for action in as_list(each["Action"])):
                    found.setdefault(name, []).append((each["Effect"], each["Action"], [plain(on) for on in as_list(each["Resource"])]))
    return found


@pytest.mark.long
def test_only_executors_assume_exactly_the_listed_roles(reaching: Synthesized, prod: Synthesized) -> None:
    own = ("Deny", "sts:AssumeRole", ["arn:aws:iam::123456789012:role/*"])
    assert on_sts(reaching) == {executor: [("Allow", "sts:AssumeRole", [ROLE, TEAM_ROLE]), own] for executor in EXECUTORS}
    assert on_sts(prod) == {}, "a stage without the option assumes no role"
    report = AwsSolutionsChecks(reaching.stack).validate_scope(reaching.stack)
    assert [(finding.rule_name, finding.violating_resources) for finding in report.violations] == []


@pytest.mark.long
def test_the_denials_of_actions_leave_the_listed_roles() -> None:
    run = {"action": "ecs:RunTask", "resources": ("*",), "pass_roles": (OWN,)}
    for made in (synthesized.__wrapped__("prod", accounts=ENTRIES, allowed_actions=entries) for entries in ((COPY,), (COPY, run))):
        passes = made.settings.allowed_actions[-1].pass_roles != ()
        assert not denies(made, "sts:AssumeRole", ROLE)
        assert denies(made, "iam:PassRole", OWN) is not passes
        for action, resource in (
            ("sts:GetSessionToken", "*"),
            ("sts:TagSession", ROLE),
            ("sts:AssumeRoleWithWebIdentity", ROLE),
            ("iam:DeleteRole", OWN),
        ):
            assert denies(made, action, resource), action


@pytest.mark.long
def test_entries_reach_the_functions_that_check_or_use_them(reaching: Synthesized) -> None:
    entries = (ROLE, f"{TEAM_ROLE} team-a b")
    for name, function in reaching.functions().items():
        reach = Settings.parse(environ(function)).reach
        assert (reach.accounts, reach.stage) == ((entries, "prod") if name in EXECUTORS | {"Api"} else ((), "")), name
    assert Settings.parse(Settings(reach=Reach(accounts=entries)).render()).reach.accounts == entries
