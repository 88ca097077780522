"""Persons by the subjects of their tokens. A person's id is ours: another sign-in of the same person leads to the same tasks and jobs."""

import uuid
from collections.abc import Sequence

from scheduler.model.account import COGNITO, Profile, Subject
from scheduler.model.errors import Unavailable
from scheduler.storage.ports import Ports


def new_id() -> str:
    """The id of a new person: it says nothing about the subject."""
    return str(uuid.uuid4())


def person_of(subject: Subject, name: str, ports: Ports) -> str:
    """The id of the person that signs in as this subject. The first sign-in of a subject makes the person. Raises Unavailable."""
    found = ports.owners.person_of(subject)
    if found is not None:
        return found
    account = subject.id if subject.issuer == COGNITO else None
    made = Profile(new_id(), name=name, account=account, created_at=ports.clock.now())
    if ports.owners.add_person(made, subject):
        return made.id
    found = ports.owners.person_of(subject)  # another request was first
    if found is None:
        raise Unavailable("the person could not be stored")
    return found


def account_of(person: str, ports: Ports) -> str | None:
    """The subject of the account with which the person signs in by password; None: the person has none."""
    return ports.users.profiles([person])[person].account


def accounts_of(person: str, ports: Ports) -> Sequence[str]:
    """The names of all accounts of the person in the user pool, whose sessions end together.

    The pool names the account of a single sign-on `<provider>_<subject>`.
    """
    subjects = ports.owners.subjects(person)
    return [subject.id if subject.issuer == COGNITO else f"{subject.issuer}_{subject.id}" for subject in subjects]
