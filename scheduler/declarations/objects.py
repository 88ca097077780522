"""Declared objects in the API of the stage: whether they exist, how they are put and deleted, and what a template may know of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from scheduler.model.account import Scope
from scheduler.model.declaration import Declarer, ObjectId, ObjectKind, TemplateEntry
from scheduler.model.errors import Conflict, Forbidden, Invalid, NotFound, SchedulerError, Unavailable
from scheduler.storage.ports import ApiAnswer, OwnApi
from scheduler.storage.ports.execution import Clock

Conversion = Callable[[ObjectKind, Mapping[str, Any]], dict[str, Any]]  # properties as the fields of a request

PAUSES_MS = (500, 1_000, 2_000, 4_000, 8_000)  # before another try, while the API is too busy
PATIENCE_MS = 20_000  # no further try begins later: CloudFormation waits for 60 seconds
OF_OWNER = (Scope.TASKS_READ, Scope.TASKS_WRITE)
OF_STAGE = (Scope.ADMIN,)  # only for requests about named targets
_PATHS = {
    ObjectKind.TASK: "/tasks/by-key/",
    ObjectKind.TARGET: "/targets/",
    ObjectKind.CALENDAR: "/calendars/",
    ObjectKind.MONITOR: "/monitors/",
}
_ERRORS: dict[int, type[SchedulerError]] = {400: Invalid, 403: Forbidden, 404: NotFound, 409: Conflict, 413: Invalid}


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that one event is about, as the entry of its alias may see them."""

    api: OwnApi
    entry: TemplateEntry
    conversion: Conversion
    declarer: Declarer
    request_id: str
    clock: Clock

    def check_rights(self, kind: ObjectKind) -> None:
        """Raise Forbidden if the entry may not declare this kind."""
        if kind is ObjectKind.TARGET and not self.entry.targets:
            raise Forbidden(
                f"Named targets belong to the whole stage: the entry {self.entry.name} of the option templates needs targets = true."
            )

    def exists(self, id: ObjectId) -> bool:
        return self._found(id) is not None

    def put(self, id: ObjectId, properties: Mapping[str, Any], is_known: bool, api_url: str) -> dict[str, str]:
        """Create the object or, if it is known to be of this resource, replace it. Returns the attributes for Fn::GetAtt.

        Raises Invalid, Forbidden, Conflict: nothing was changed. Raises Unavailable: it may have been.
        """
        fields = self.conversion(id.kind, properties)
        body = {name: value for name, value in fields.items() if name != id.kind.key_field}
        if id.kind is ObjectKind.TASK:  # its name is for people, and its key is part of the path
            body = {name: value for name, value in fields.items() if name != "key"}
        if id.kind is not ObjectKind.TARGET:
            return _attributes(id, self._done("PUT", _path(id), body), api_url)
        if is_known:
            answer = self._send("PUT", _path(id), body, OF_STAGE)
            if answer.status != 404:
                return _attributes(id, _checked(answer).data, api_url)
        return _attributes(id, self._done("POST", "/targets", body | {"name": id.key}), api_url)

    def delete(self, id: ObjectId) -> None:
        """Delete the object. It may be gone already."""
        path = _path(id)
        if id.kind is ObjectKind.TASK:
            found = self._found(id)
            if found is None:
                return
            path = f"/tasks/{quote(str(found['id']), safe='')}"
        answer = self._send("DELETE", path, None, self._scopes(id.kind))
        if answer.status != 404:
            _checked(answer)

    def _found(self, id: ObjectId) -> Mapping[str, Any] | None:
        answer = self._send("GET", _path(id), None, self._scopes(id.kind))
        return None if answer.status == 404 else _checked(answer).data

    def _done(self, method: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        scopes = OF_STAGE if path.startswith("/targets") else OF_OWNER
        return _checked(self._send(method, path, body, scopes)).data

    @staticmethod
    def _scopes(kind: ObjectKind) -> Sequence[Scope]:
        return OF_STAGE if kind is ObjectKind.TARGET else OF_OWNER

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, scopes: Sequence[Scope]) -> ApiAnswer:
        """Send a request, and again while the API is too busy. Raises Unavailable."""
        began = self.clock.monotonic()
        for pause in PAUSES_MS:
            try:
                return self.api.send(method, path, body, self.entry, scopes, self.request_id)
            except Unavailable:
                if self.clock.monotonic() - began + pause > PATIENCE_MS:
                    raise
                self.clock.sleep_until(self.clock.now() + pause)
        return self.api.send(method, path, body, self.entry, scopes, self.request_id)


def _path(id: ObjectId) -> str:
    return _PATHS[id.kind] + id.key


def _checked(answer: ApiAnswer) -> ApiAnswer:
    """The answer of a success. Raises the error of a refusal, with its message."""
    if answer.status >= 400:
        raise _ERRORS.get(answer.status, SchedulerError)(answer.message)
    return answer


def _attributes(id: ObjectId, data: Mapping[str, Any], api_url: str) -> dict[str, str]:
    """The attributes of the object for templates. They are short: a whole answer has 4 KB."""
    known = {"Id": str(data.get("id") or id.key), "Key": id.key}
    if id.kind is ObjectKind.TASK:
        runs = data.get("next_runs") or [{}]
        known["NextRunAt"] = str(runs[0].get("at") or "")
    if id.kind is ObjectKind.MONITOR:
        path = data.get("ping_path")
        known["PingUrl"] = f"{api_url}{path}" if path else ""
    return known
