"""Write tasks of the API as a file that `apply` reads, and any list of tasks as YAML with comments."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from punctual.plan import schema
from punctual.plan.read import TAG, is_text, tag
from punctual.texts import in_json

SCHEMA_LINE = "# yaml-language-server: $schema=tasks.schema.json"  # `punctual tasks schema > tasks.schema.json` writes it
_QUOTED = re.compile("[\x85\u2028-\u202e\u2066-\u2069]")  # line breaks of YAML 1.1, and what turns the text of a terminal around
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORBIDDEN = re.compile(r'[/?#%\\"`\s]+|[^\x20-\x7e]+')


@dataclass(frozen=True)
class Entry:
    """A task of a file, and the lines of comment above it."""

    body: Mapping[str, Any]
    comments: Sequence[str] = ()


def entries(tasks: Iterable[Mapping[str, Any]], label: str | None = None) -> list[Entry]:
    """The tasks as a file has them, by key. A task without a key gets one proposed, with a comment.

    With a label they are those of one file, and the tag of the label is left to the file's field `label`.
    """
    found = sorted(tasks, key=lambda task: (task.get("key") is None, task.get("key") or "", task["id"]))
    taken = {task["key"] for task in found if task.get("key")}
    result = []
    for task in found:
        comments: list[str] = []
        key = task.get("key")
        if key is None:
            key = proposed(task["name"], taken)
            taken.add(key)
            comments.append(f"The task {task['id']} has no key; this one is proposed. `apply` creates a second task: delete the first.")
        if task.get("inactive_at"):
            comments.append("It is paused. `apply` creates it so, and leaves the pauses of tasks that exist as they are.")
        tags = [each for each in task.get("tags", ()) if not each.startswith(TAG) or (label and each != tag(label))]
        full = full_body({**task, "key": key, "tags": tags})
        result.append(Entry(shortest(full, [*task.get("defaults", ()), *([] if tags else ["tags"])]), comments))
    return result


def full_body(task: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a task as a request gives them, in the order of a file; those without a value are left out."""
    fields = {**task, **_pause(task)}
    if fields.get("target") is not None:
        del fields["type"]  # it is the target's
    elif fields["type"] == "log" and fields["payload"].keys() == {"message"}:
        fields |= {"message": fields["payload"]["message"], "type": None, "payload": None}
    return {name: fields[name] for name in schema.fields() if fields.get(name) is not None}


def shortest(body: Mapping[str, Any], defaults: Container[str], path: str = "") -> dict[str, Any]:
    """The body without the fields that have their defaults, as the API names them."""
    return {
        name: shortest(value, defaults, f"{path}{name}.") if isinstance(value, Mapping) and name != "payload" else value
        for name, value in body.items()
        if f"{path}{name}" not in defaults
    }


def _pause(task: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that create a task paused as this one is. One without a schedule cannot be created so."""
    if not task.get("inactive_at") or task.get("schedule") is None:
        return {}
    return {"paused": True} | ({"pause_reason": task["inactive_reason"]} if task.get("inactive_reason") else {})


def proposed(name: str, taken: Iterable[str]) -> str:
    """A key for a task of this name that no other task has."""
    base = re.sub("-{2,}", "-", _FORBIDDEN.sub("-", name.lower())).strip("-. ")[:100] or "task"
    others = set(taken)
    return next(key for key in (base, *(f"{base}-{number}" for number in range(2, len(others) + 3))) if key not in others)


def to_yaml(tasks: Sequence[Entry], *, label: str | None = None, head: Sequence[str] = ()) -> str:
    """A file of tasks with its comments."""
    lines = [SCHEMA_LINE, *(_comment(line) for line in head)]
    lines += _dump({"label": label}).rstrip("\n").split("\n") if label else []
    lines.append("tasks:" if tasks else "tasks: []")
    for entry in tasks:
        lines += ["", *(f"  {_comment(line)}" for line in entry.comments)]
        first, *others = _dump(entry.body).rstrip("\n").split("\n")
        lines += [f"  - {first}", *(f"    {line}" if line else "" for line in others)]
    return "\n".join(lines) + "\n"


def to_json(tasks: Sequence[Entry], *, label: str | None = None) -> str:
    """The same as JSON, without comments."""
    return in_json(({"label": label} if label else {}) | {"tasks": [entry.body for entry in tasks]}, 2) + "\n"


def visible(text: str, *, keep: str = "") -> str:
    """The text on one line: control characters, line breaks and bidirectional overrides as escapes such as `\\x1b`."""
    return _HIDDEN.sub(lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(), text)


def _comment(text: str) -> str:
    return "# " + visible(text, keep="\t") if text else "#"


class _Dumper(yaml.SafeDumper):
    """Puts text into quotes that some version of YAML reads as something else, and writes text of several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if _QUOTED.search(text):
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, '"')
    style = "|" if "\n" in text.strip("\n") and not re.search(r"[ \t]\n|^\s", text) else None if is_text(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def _dump(body: Mapping[str, Any]) -> str:
    text = str(yaml.dump(body, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False))
    return _QUOTED.sub(lambda found: f"\\u{ord(found[0]):04X}", text)  # in double quotes, where it is an escape
