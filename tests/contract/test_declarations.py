"""The port `Declarations`: over both implementations."""

from scheduler.model.declaration import Declarer, ObjectId, ObjectKind
from scheduler.storage.ports import Declarations

ID = ObjectId("team-1", ObjectKind.TASK, "nightly")
OURS = Declarer("arn:aws:cloudformation:eu-central-1:123456789012:stack/shop/1", "Nightly")
OTHER = Declarer(OURS.stack, "Daily")
THIRD = Declarer("arn:aws:cloudformation:eu-central-1:123456789012:stack/other/2", "Nightly")


def test_the_first_resource_declares_an_object_and_no_other_does(declarations: Declarations) -> None:
    assert declarations.declarer(ID) is None
    assert declarations.take(ID, OURS, None) and declarations.declarer(ID) == OURS
    assert declarations.take(ID, OURS, None), "a repeated event"
    assert not declarations.take(ID, OTHER, None) and not declarations.take(ID, THIRD, None)
    assert declarations.declarer(ID) == OURS


def test_objects_of_other_owners_kinds_and_keys_are_others(declarations: Declarations) -> None:
    assert declarations.take(ID, OURS, None)
    for id in (ID._replace(owner="team-2"), ID._replace(kind=ObjectKind.MONITOR), ID._replace(key="daily")):
        assert declarations.declarer(id) is None and declarations.take(id, OTHER, None)
    assert declarations.declarer(ID) == OURS


def test_a_declaration_moves_from_the_resource_that_was_read(declarations: Declarations) -> None:
    declarations.take(ID, OURS, None)
    assert not declarations.take(ID, THIRD, OTHER), "another one than was read"
    assert declarations.take(ID, THIRD, OURS) and declarations.declarer(ID) == THIRD
    assert declarations.take(ID, THIRD, OURS), "a repeated event"


def test_only_its_resource_withdraws_a_declaration(declarations: Declarations) -> None:
    declarations.take(ID, OURS, None)
    assert not declarations.withdraw(ID, OTHER) and declarations.declarer(ID) == OURS
    assert declarations.withdraw(ID, OURS) and declarations.declarer(ID) is None
    assert declarations.withdraw(ID, OURS), "a repeated event"
