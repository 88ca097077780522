"""Persons by the subjects of their tokens. A person's id is ours: another sign-in of the same person leads to the same tasks and jobs."""

import uuid
from collections.abc import Callable

from scheduler.model.account import COGNITO, Profile, Subject
from scheduler.model.errors import Unavailable
from scheduler.storage.ports import Ports

NewId = Callable[[Subject], str]


def own_id(_: Subject) -> str:
    """The id of a new person: it says nothing about the subject."""
    return str(uuid.uuid4())


def person_of(subject: Subject, name: str, ports: Ports, new_id: NewId) -> str:
    """The id of the person that signs in as this subject. The first sign-in of a subject makes the person. Raises Unavailable."""
    found = ports.owners.person_of(subject)
    if found is not None:
        return found
    account = subject.id if subject.issuer == COGNITO else None
    made = Profile(new_id(subject), name=name, account=account, created_at=ports.clock.now())
    if ports.owners.add_person(made, subject):
        return made.id
    found = ports.owners.person_of(subject)  # another request was first
    if found is None:
        raise Unavailable("the person could not be stored")
    return found
