"""Carry out one event of a custom resource: create, change or delete the object that a stack declares, and answer CloudFormation.

The owner is that of the called alias, which IAM has allowed the sender to call; nothing in an event decides it. Each object has one
declarer, a resource of a stack: an event changes or deletes only objects of its own resource, or creates one that does not exist.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from scheduler.declarations import answers
from scheduler.declarations.answers import Outcome
from scheduler.declarations.objects import Conversion, Objects
from scheduler.model import own_keys
from scheduler.model.declaration import LONGEST_ID, Declarer, ObjectId, ObjectKind, TemplateEntry
from scheduler.model.errors import Conflict, Forbidden, Invalid, NotFound, SchedulerError
from scheduler.storage.ports import Declarations, OwnApi
from scheduler.storage.ports.execution import Clock

UNEXPECTED = "Punctual failed unexpectedly. Search the log of its function Declare for the request id"
NO_ENTRY = "This function is called by an exported alias of the option templates, such as the output TemplatesShop of the stage."
NOBODYS = "-/-/"  # the physical id of a resource without an owner
OF_CLOUDFORMATION = ("ServiceToken", "ServiceTimeout")  # properties that are not of the object
KINDS = {kind.type_name: kind for kind in ObjectKind}

log = logging.getLogger(__name__)


class Answers(Protocol):
    """The place where CloudFormation waits for answers."""

    def send(self, url: str, body: bytes) -> None:
        """Send an answer."""


@dataclass(frozen=True, slots=True)
class DeclarePorts:
    """The ports of `declare`. `endpoint`: of the local AWS, empty on AWS. `api_url`: where ping URLs begin."""

    declarations: Declarations
    api: OwnApi
    answers: Answers
    conversion: Conversion
    clock: Clock
    api_url: str = ""
    endpoint: str = ""


class _Event(NamedTuple):
    request: str
    id: ObjectId  # of the object as the properties declare it
    physical_id: str  # that the resource has; empty: none yet
    properties: dict[str, Any]
    declarer: Declarer


def declare(event: Mapping[str, Any], entry: TemplateEntry | None, ports: DeclarePorts) -> Outcome:
    """Carry out an event, and send its answer in any case. `entry`: of the called alias.

    Raises Invalid, before anything is done, if no answer may be sent to the address in the event.
    """
    url = answers.check_address(event.get("ResponseURL"), ports.endpoint)
    physical = str(event.get("PhysicalResourceId") or NOBODYS)
    outcome = Outcome(physical, reason=f"{UNEXPECTED} {event.get('RequestId')}.")
    try:
        outcome = _answered(event, entry, ports)
    except Exception:
        log.exception("an event of CloudFormation failed unexpectedly", extra={"event_id": event.get("RequestId")})
    finally:
        ports.answers.send(url, answers.body(event, outcome))
    return outcome


def _answered(event: Mapping[str, Any], entry: TemplateEntry | None, ports: DeclarePorts) -> Outcome:
    """The outcome of an event; a refusal is one too, with the physical id that the resource has or would have."""
    physical = str(event.get("PhysicalResourceId") or "")
    if event.get("RequestType") == "Delete" and ObjectId.parse(physical) is None and (entry is None or _kind(event) is None):
        return Outcome(physical or NOBODYS)  # its creation was refused before it had an owner or a kind
    if entry is None:
        return Outcome(physical or NOBODYS, reason=NO_ENTRY)
    try:
        read = _read(event, entry)
    except SchedulerError as error:
        return Outcome(physical or f"{entry.owner}//", reason=error.message)
    objects = Objects(ports.api, entry, ports.conversion, read.declarer, str(event.get("RequestId", "")), ports.clock)
    try:
        if read.request == "Delete":
            _delete(read, entry, objects, ports.declarations)
            return Outcome(physical)
        data = _put(read, objects, ports.declarations, ports.api_url)
        return Outcome(str(read.id), data, secret="PingUrl" in data)
    except SchedulerError as error:
        return Outcome(physical or str(read.id), reason=error.message)


def _read(event: Mapping[str, Any], entry: TemplateEntry) -> _Event:
    """Raises Invalid."""
    kind, request = _kind(event), str(event.get("RequestType"))
    if kind is None:
        raise Invalid.field("Type", f"must be one of {', '.join(KINDS)}")
    if request not in ("Create", "Update", "Delete"):
        raise Invalid.field("RequestType", "must be Create, Update or Delete")
    values = event.get("ResourceProperties") or {}
    properties = {name: value for name, value in values.items() if name not in OF_CLOUDFORMATION}
    key = properties.get(kind.key_field)
    id = ObjectId(entry.owner, kind, key if isinstance(key, str) and own_keys.is_key(key) else "")
    if len(str(id).encode()) > LONGEST_ID:
        id = id._replace(key="")
    declarer = Declarer(str(event.get("StackId", "")), str(event.get("LogicalResourceId", "")))
    return _Event(request, id, str(event.get("PhysicalResourceId") or ""), properties, declarer)


def _kind(event: Mapping[str, Any]) -> ObjectKind | None:
    return KINDS.get(str(event.get("ResourceType")))


def _put(event: _Event, objects: Objects, declarations: Declarations, api_url: str) -> dict[str, str]:
    """Create or change the declared object; returns the attributes of the resource. Raises SchedulerError; then it is as it was before."""
    id = event.id
    if not id.key:
        raise Invalid.field(id.kind.key_field, _rule_of(event.properties.get(id.kind.key_field)))
    objects.check_rights(id.kind)
    before = declarations.declarer(id)
    is_known = before == event.declarer or (before is None and event.physical_id == str(id))
    if not is_known and objects.exists(id):
        _refuse(id, before)
    if before != event.declarer and not declarations.take(id, event.declarer, before):
        _refuse(id, declarations.declarer(id))
    try:
        return objects.put(id, event.properties, is_known, api_url)
    except (Invalid, Forbidden, Conflict, NotFound):  # a definite refusal: nothing was stored
        if not is_known:
            declarations.withdraw(id, event.declarer)
        raise


def _rule_of(key: object) -> str:
    """The rule that a key breaks."""
    if key is None:
        return "is required"
    if isinstance(key, str) and own_keys.is_key(key):
        return f"has too many bytes for CloudFormation, which allows {LONGEST_ID} together with the owner"
    return own_keys.RULE


def _refuse(id: ObjectId, other: Declarer | None) -> None:
    """Raises Conflict."""
    whose = "was not made by a template: delete it, and deploy again" if other is None else f"belongs to {other}"
    raise Conflict(f"{id.kind.key_field}: the {id.kind} {id.key} exists already and {whose}.")


def _delete(event: _Event, entry: TemplateEntry, objects: Objects, declarations: Declarations) -> None:
    """Delete the object if this resource declares it. There may be none: its creation may have failed. Raises SchedulerError."""
    id = ObjectId.parse(event.physical_id) or event.id  # CloudFormation makes an id up if it got no answer
    if not id.key or id.kind is not event.id.kind:
        return
    if id.owner != entry.owner:
        raise Forbidden(
            f"The {id.kind} {id.key} belongs to the owner {id.owner}, and the stack calls the entry {entry.name} of the option templates, "
            f"which is for {entry.owner}: delete the {id.kind} there, and let CloudFormation retain this resource."
        )
    if declarations.declarer(id) != event.declarer:
        log.info("an object of others stays", extra={"object": str(id)})
        return
    objects.check_rights(id.kind)
    objects.delete(id)
    declarations.withdraw(id, event.declarer)
