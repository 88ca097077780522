"""The port IntakeDeadLetters."""

from dataclasses import replace
from typing import Any

from scheduler.model.intake import IntakeLetter, IntakeMessage, Violation
from scheduler.storage.ports import IntakeDeadLetters
from tests.contract.make import NOW

ERRORS = (Violation("delay", "must be a duration"), Violation("é", "is not a known field"))


def letter(id: str = "5e1f0c3a-0000-4000-8000-000000000001", *, sent_at: int = NOW, **fields: Any) -> IntakeLetter:
    message = IntakeMessage(id, "jobs", "AROA1:session", sent_at, '{"delay": "é"}', 3)
    return replace(IntakeLetter(message, ERRORS, NOW + 5, "ada"), **fields)


def bare(letter: IntakeLetter) -> IntakeLetter:
    return replace(letter, message=replace(letter.message, body=""))


def test_a_letter_is_stored_once(intake_letters: IntakeDeadLetters) -> None:
    assert intake_letters.get("m1") is None
    first = letter("m1", accepted=2, is_cut=True)
    assert intake_letters.add(first)
    assert not intake_letters.add(replace(first, errors=(), owner="eve"))
    assert intake_letters.get("m1") == first
    assert intake_letters.page("eve", after=None, limit=10) == ([], None)


def test_a_letter_of_an_unknown_sender_has_no_owner(intake_letters: IntakeDeadLetters) -> None:
    unknown = letter("m1", owner=None)
    assert intake_letters.add(unknown)
    assert intake_letters.get("m1") == unknown
    assert intake_letters.page(None, after=None, limit=10) == ([bare(unknown)], None)
    assert intake_letters.page("ada", after=None, limit=10) == ([], None)


def test_the_letters_of_an_owner_are_listed_by_time_without_bodies(intake_letters: IntakeDeadLetters) -> None:
    made = [letter(f"m{number}", sent_at=NOW + number // 2) for number in range(5)]
    for each in made:
        intake_letters.add(each)
    newest_first = [bare(each) for each in reversed(made)]
    page, cursor = intake_letters.page("ada", after=None, limit=2)
    rest, end = intake_letters.page("ada", after=cursor, limit=3)
    assert page + rest == newest_first and end is None


def test_a_letter_is_changed_unless_it_was_changed_before(intake_letters: IntakeDeadLetters) -> None:
    before = letter("m1")
    intake_letters.add(before)
    after = replace(before, message=replace(before.message, body="{}"), errors=ERRORS[:1], accepted=4, version=2)
    assert intake_letters.change(before, after)
    assert not intake_letters.change(before, replace(after, accepted=9))
    assert intake_letters.get("m1") == after
    assert intake_letters.page("ada", after=None, limit=10) == ([bare(after)], None)


def test_a_removed_letter_leaves_a_note(intake_letters: IntakeDeadLetters) -> None:
    made = letter("m1")
    intake_letters.add(made)
    assert intake_letters.had(["m1", "m2"]) == {"m1"}
    assert not intake_letters.remove(replace(made, version=2))
    assert intake_letters.remove(made)
    assert intake_letters.get("m1") is None and intake_letters.page("ada", after=None, limit=10) == ([], None)
    assert intake_letters.had(["m1", "m2"]) == {"m1"}
    assert not intake_letters.add(made) and not intake_letters.remove(made)
