"""Declarations: tasks, named targets, calendars and monitors that stacks of CloudFormation declare."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

LONGEST_ID = 1_024  # bytes of a physical id: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
ENTRY = r"[a-z](?:-?[a-z0-9])*"  # the name of an entry of the option `templates`


class ObjectKind(StrEnum):
    """The kind of a declared object."""

    TASK = "task"
    TARGET = "target"
    CALENDAR = "calendar"
    MONITOR = "monitor"

    @property
    def type_name(self) -> str:
        """The type of the resource in a template.

        >>> ObjectKind.TASK.type_name
        'Custom::PunctualTask'
        """
        return f"Custom::Punctual{self.capitalize()}"

    @property
    def key_field(self) -> str:
        """The property with the key of the object, which never changes."""
        return "key" if self in (ObjectKind.TASK, ObjectKind.MONITOR) else "name"


class ObjectId(NamedTuple):
    """The identity of a declared object; as a text, the physical id of its resource. An empty key: the template has no valid one."""

    owner: str
    kind: ObjectKind
    key: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.kind}/{self.key}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a physical id. None for one that is not of Punctual: CloudFormation makes one up if it got no answer."""
        owner, _, rest = text.partition("/")
        kind, _, key = rest.partition("/")
        return cls(owner, ObjectKind(kind), key) if owner and key and kind in list(ObjectKind) else None


class Declarer(NamedTuple):
    """The resource that declares an object: the ARN of its stack, and its logical id there."""

    stack: str
    resource: str

    def __str__(self) -> str:
        return f"the resource {self.resource} of the stack {self.stack}"


@dataclass(frozen=True, slots=True)
class TemplateEntry:
    """An entry of the option `templates`: the stacks that may call its alias act for this owner."""

    name: str
    owner: str
    targets: bool = False  # they may declare named targets, which belong to the whole stage
