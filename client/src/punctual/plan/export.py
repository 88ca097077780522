"""Write tasks of the API as a file that `apply` reads, and any list of tasks as YAML with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from punctual.plan import normal
from punctual.plan.read import TAG, is_text, tag

SCHEMA_LINE = "# yaml-language-server: $schema=tasks.schema.json"  # `punctual tasks schema > tasks.schema.json` writes it
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
        full = normal.of_answer(task)
        full["tags"] = [each for each in full["tags"] if not each.startswith(TAG) or (label and each != tag(label))]
        comments = []
        if full["key"] is None:
            full["key"] = proposed(task["name"], taken)
            taken.add(full["key"])
            comments.append(f"The task {task['id']} has no key; this one is proposed. `apply` creates a second task: delete the first.")
        if task.get("inactive_at"):
            comments.append("It is paused. A file has no pauses: `apply` leaves them as they are, and creates a task that runs.")
        result.append(Entry(normal.minimal(full), comments))
    return result


def proposed(name: str, taken: Iterable[str]) -> str:
    """A key for a task of this name that no other task has."""
    base = re.sub("-{2,}", "-", _FORBIDDEN.sub("-", name.lower())).strip("-. ")[:100] or "task"
    others = set(taken)
    return next(key for key in (base, *(f"{base}-{number}" for number in range(2, len(others) + 3))) if key not in others)


def to_yaml(tasks: Sequence[Entry], *, label: str | None = None, head: Sequence[str] = ()) -> str:
    """A file of tasks with its comments."""
    lines = [SCHEMA_LINE, *(_comment(line) for line in head)]
    lines += [f"label: {label}"] if label else []
    lines.append("tasks:" if tasks else "tasks: []")
    for entry in tasks:
        lines += ["", *(f"  {_comment(line)}" for line in entry.comments)]
        first, *others = _dump(entry.body).splitlines()
        lines += [f"  - {first}", *(f"    {line}" if line else "" for line in others)]
    return "\n".join(lines) + "\n"


def to_json(tasks: Sequence[Entry], *, label: str | None = None) -> str:
    """The same as JSON, without comments."""
    return json.dumps(({"label": label} if label else {}) | {"tasks": [entry.body for entry in tasks]}, indent=2, ensure_ascii=False) + "\n"


def _comment(text: str) -> str:
    return f"# {text}" if text else "#"


class _Dumper(yaml.SafeDumper):
    """Puts text into quotes that some version of YAML reads as something else, and writes text of several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text.strip("\n") and not re.search(r"[ \t]\n|^\s", text) else None if is_text(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def _dump(body: Mapping[str, Any]) -> str:
    return str(yaml.dump(body, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False))
