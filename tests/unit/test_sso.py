"""Single sign-on: groups, roles, and who is refused."""

import json
from typing import Any

import pytest

from scheduler.accounts import sso
from scheduler.accounts.sso import Sso, groups_of, subject_at
from scheduler.model.account import Profile, Role, Subject
from scheduler.model.errors import Unauthorized
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports import IdpClaims
from tests.conftest import FixedClock

OPTION = Sso("corp", "Example Corp", "https://pages", "id", "secret", ("job admins", "root"), ("ops",))
BACK = "https://console/signed-in"


@pytest.mark.parametrize(
    ("claim", "groups"),
    [
        ("[a, b]", {"a", "b"}),
        ("a,b", {"a", "b"}),
        ("a", {"a"}),
        ('["a, b", "c"]', {"a, b", "c"}),
        (["a", "b"], {"a", "b"}),
        ("[]", set()),
        ("", set()),
        ([], set()),
        (["a", 7, None], {"a"}),
        (7, set()),
        ({"a": 1}, set()),
    ],
)
def test_groups_are_read_in_every_form_that_arrives(claim: Any, groups: set[str]) -> None:
    assert groups_of(claim) == groups


def test_a_missing_claim_is_not_an_empty_one() -> None:
    assert groups_of(None) is None


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (None, Role.USER),
        (set(), Role.USER),
        ({"others"}, Role.USER),
        ({"ops"}, Role.OPERATOR),
        ({"ops", "root"}, Role.ADMINISTRATOR),
        ({"job admins"}, Role.ADMINISTRATOR),
        ({"job"}, Role.USER),
    ],
)
def test_the_role_follows_the_groups(groups: set[str] | None, role: Role) -> None:
    assert OPTION.role_of(IdpClaims("corp", "ann", None if groups is None else frozenset(groups))) is role


def test_a_user_name_of_single_sign_on_names_its_subject() -> None:
    assert subject_at("corp_Ann_B", "corp") == "ann_b"
    assert subject_at("CORP_ann", "corp") == "ann"
    assert [subject_at(name, "corp") for name in ("ann", "corporate_ann", "corp_", "other_ann")] == [None] * 4


def test_the_setting_is_read_back() -> None:
    text = json.dumps({"provider": "corp", "name": "C", "url": "u", "client_id": "i", "client_secret": "s", "operators": ["o"], "new": 1})
    found = sso.of_setting(text)
    assert found == Sso("corp", "C", "u", "i", "s", operators=("o",)) and sso.of_setting("") is None
    assert found is not None and found.with_passwords is None
    closed = Sso("corp", "C", "u", "i", "s", passwords=False, break_glass=("Ada",))
    assert closed.with_passwords == {"ada"}


class Stage(MemoryPorts):
    """A stage with the person Ann, who signs in at the provider."""

    def __init__(self) -> None:
        super().__init__(FixedClock())
        self.owners.add_person(Profile("1", name="Ann"), Subject("corp", "ann"))

    @property
    def ann(self) -> Profile:
        return self.users.profiles(["1"])["1"]

    def sign_in(self, *groups: str, missing: bool = False) -> Role:
        """The role that applies after a sign-in with these groups."""
        self.identity.codes["code"] = ("verifier", IdpClaims("corp", "ann", None if missing else frozenset(groups), "Ann"))
        sso.sign_in(OPTION, "code", "verifier", BACK, self)
        return self.ann.highest_role


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.mark.parametrize("manual", Role)
def test_a_role_by_groups_comes_and_goes_and_the_manual_one_stays(manual: Role, stage: Stage) -> None:
    stage.owners.set_role("1", manual)
    assert stage.sign_in() is manual
    for leaves in ({"groups": ()}, {"groups": ("others",)}, {"groups": (), "missing": True}):
        assert stage.sign_in("root") is Role.ADMINISTRATOR, "the group was added"
        assert stage.sign_in(*leaves["groups"], missing=bool(leaves.get("missing"))) is manual, "the group is gone"
    assert stage.ann.role is manual


def test_a_code_is_used_once_and_only_with_its_verifier(stage: Stage) -> None:
    stage.identity.codes["code"] = ("verifier", IdpClaims("corp", "ann"))
    with pytest.raises(Unauthorized):
        sso.sign_in(OPTION, "code", "another", BACK, stage)
    with pytest.raises(Unauthorized):
        sso.sign_in(OPTION, "code", "verifier", BACK, stage)


def test_a_disabled_person_does_not_sign_in_and_no_session_remains(stage: Stage) -> None:
    stage.users.set_disabled("1", stage.clock.at)
    with pytest.raises(Unauthorized, match="Start it again"):
        stage.sign_in("root")
    assert len(stage.identity.revoked) == 1 and stage.ann.sso_role is None


def test_another_provider_than_the_configured_one_is_refused(stage: Stage) -> None:
    stage.identity.codes["code"] = ("verifier", IdpClaims("other", "ann", frozenset({"root"})))
    with pytest.raises(Unauthorized):
        sso.sign_in(OPTION, "code", "verifier", BACK, stage)


def test_an_address_of_somebody_else_links_nobody(stage: Stage) -> None:
    """The person follows the subject alone, whatever the provider states about e-mail."""
    for verified in (False, True):
        stage.identity.codes["code"] = (
            "verifier",
            IdpClaims("corp", "mallory", frozenset(), email="ann@example.org", email_verified=verified),
        )
        session = sso.sign_in(OPTION, "code", "verifier", BACK, stage)
        assert session.user is not None and session.user.username == "corp_mallory"
    assert stage.owners.subjects("1") == [Subject("corp", "ann")] and stage.ann.sso_role is None
    assert stage.owners.person_of(Subject("corp", "mallory")) not in (None, "1")
