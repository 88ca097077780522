"""Read files of tasks: YAML or JSON, with the line of every field, so that each error names its place.

A scalar that YAML 1.1 and 1.2 read differently is refused as a value, with the way to write it clearly. Names of fields are always
text: `on` is the field of `notifications` and no truth value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from punctual.errors import PunctualError
from punctual.plan import schema
from punctual.texts import halves

Path_ = tuple["str | int", ...]
"""The way to a field from the root of a file, such as ("tasks", 3, "schedule", "cron")."""

TAG = "managed:"
MOST_VALUES = 500_000  # more come from aliases of aliases only
MOST_DIGITS = 4_300  # of an integer: Python reads no longer ones, here and in the API
SUFFIXES = (".yaml", ".yml", ".json")
_OF_FILE = ("label", "tasks")
_LABEL = re.compile(r"[A-Za-z0-9_.:/-]{1,24}")


@dataclass(frozen=True, order=True)
class Problem:
    """A rule that a file breaks: `field` is its path in the file, such as `tasks[3].schedule.cron`, or empty."""

    file: str
    line: int
    field: str
    rule: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field + ': ' if self.field else ''}{self.rule}"


class BadFile(PunctualError):
    """Files break rules: `problems` has all of them by place. Nothing was changed."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass(frozen=True)
class Item:
    """A task of a file: the body of a request with its label as a tag, and where each field stands."""

    key: str
    body: Mapping[str, Any]
    file: str
    path: Path_
    lines: Mapping[Path_, int]
    label: str | None

    def problem(self, field: str, rule: str) -> Problem:
        """The problem of a field of this task, such as `schedule.cron` or `payload.headers`, at the nearest line that is known."""
        path = (*self.path, *_parts(field))
        known = next(path[:length] for length in range(len(path), -1, -1) if path[:length] in self.lines)
        return Problem(self.file, self.lines[known], written(path), rule)


@dataclass(frozen=True)
class Document:
    """The tasks of all files of one `apply`, and the labels of the files."""

    items: tuple[Item, ...]
    labels: tuple[str, ...]


def read(files: Iterable[str | Path], *, label: str | None = None) -> Document:
    """Read files, and folders with all their .yaml, .yml and .json files; `-` is the standard input.

    `label` is the label of files that name none. Raises BadFile with every problem of every file.
    """
    return parse([(name, _text(name)) for name in _found(files)], label=label)


def parse(texts: Iterable[tuple[str, str]], *, label: str | None = None) -> Document:
    """The same for texts, each with its name. Raises BadFile."""
    problems: list[Problem] = []
    items: list[Item] = []
    labels: list[str] = []
    for name, text in texts:
        reader = _Reader(name)
        root = reader.read(text)
        if not reader.problems:
            reader.problems += _broken(root, reader, label)
        if not reader.problems:
            own = root.get("label", label)
            labels += [own] if own and own not in labels else []
            items += [_item(body, number, own, reader) for number, body in enumerate(root["tasks"])]
        problems += reader.problems
    problems += _repeated(items)
    if problems:
        raise BadFile(problems)
    return Document(tuple(items), tuple(labels))


def tag(label: str) -> str:
    """The tag of tasks that a file with this label manages."""
    return TAG + label


def written(path: Path_) -> str:
    """A path as errors show it: `tasks[3].schedule.cron`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _parts(field: str) -> Path_:
    """The path of a field as the API names it: `schedule.cron`, `tags[2]` or `tags.2`."""
    parts = re.findall(r"[^.\[\]]+", field)
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def _found(files: Iterable[str | Path]) -> list[str]:
    found: list[str] = []
    for file in files:
        path = Path(file)
        if str(file) != "-" and path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
            visible = [str(each) for each in inside if not any(part.startswith(".") for part in each.relative_to(path).parts)]
            if not visible:
                raise BadFile([Problem(str(file), 1, "", "the folder has no .yaml, .yml or .json file")])
            found += visible
        else:
            found.append(str(file))
    return list(dict.fromkeys(found))


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadFile([Problem(name, 1, "", f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        raise BadFile([Problem(name, 1, "", f"is not UTF-8 text: {error.reason} at byte {error.start}")]) from None


def label_rule(label: Any) -> str | None:
    """The rule that a label breaks; None if it breaks none."""
    ok = isinstance(label, str) and _LABEL.fullmatch(label)
    return None if ok else "must be 1 to 24 letters, digits or any of - _ . : /"


def _broken(root: Any, reader: _Reader, label: str | None) -> Iterable[Problem]:
    """The rules that the form of a file breaks. The API checks the fields of its tasks."""
    if root is None:
        return [Problem(reader.name, 1, "", "is empty: it needs a list `tasks`")]
    if isinstance(root, list):
        return [Problem(reader.name, 1, "", "is a list: write `tasks:` in the first line and the list below it")]
    if not isinstance(root, dict):
        return [Problem(reader.name, 1, "", "is no mapping: it needs a list `tasks`")]
    broken: list[tuple[Path_, str]] = [
        ((name,), _no_field(name, _OF_FILE)) for name in root if name not in _OF_FILE and not name.startswith("x-")
    ]
    if "label" in root and (rule := label_rule(root["label"])):
        broken.append((("label",), rule))
    elif label is not None and root.get("label", label) != label:
        broken.append((("label",), f"is not the label that was requested: {label}"))
    tasks = root.get("tasks")
    if not isinstance(tasks, list):
        broken.append(((), "tasks is missing") if tasks is None else (("tasks",), "must be a list"))
    for number, body in enumerate(tasks if isinstance(tasks, list) else ()):
        broken += [(("tasks", number, *field), rule) for field, rule in _of_task(body)]
    return [reader.problem(path, rule) for path, rule in broken]


def _of_task(body: Any) -> Iterable[tuple[Path_, str]]:
    if not isinstance(body, dict):
        yield (), "must be a mapping: a task with its fields"
        return
    for name in body:
        if name not in schema.fields():
            yield (name,), f"there is no such field{schema.misplaced(name) or schema.nearest(name, schema.fields())}"
    if not isinstance(body.get("key"), str) or body["key"] in ("", ".", ".."):
        yield ("key",) if "key" in body else (), "must be text, neither empty nor . or .." if "key" in body else "key is missing"
    for number, each in enumerate(body["tags"] if isinstance(body.get("tags"), list) else ()):
        if isinstance(each, str) and each.startswith(TAG):
            yield ("tags", number), f"tags that begin with {TAG} are labels: use the field `label` of the file"


def _no_field(name: str, known: Iterable[str]) -> str:
    return f"there is no such field{schema.nearest(name, known)}"


def _item(body: dict[str, Any], number: int, label: str | None, reader: _Reader) -> Item:
    tags = body.get("tags", [])
    labelled = {"tags": [*tags, tag(label)]} if label and isinstance(tags, list) else {}  # the API refuses tags that are no list
    return Item(body["key"], {**body, **labelled}, reader.name, ("tasks", number), reader.lines, label)


def _repeated(items: Iterable[Item]) -> Iterable[Problem]:
    first: dict[str, Item] = {}
    for item in items:
        other = first.setdefault(item.key, item)
        if other is not item:
            place = other.problem("key", "")
            yield item.problem("key", f"{item.key} is given twice; first at {place.file}:{place.line}")


_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$")
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NOTHING = ("", "~", "null", "Null", "NULL")
_WORDS = re.compile(r"(?:yes|no|on|off)$", re.IGNORECASE)  # YAML 1.1: true or false
_NUMBERS = re.compile(  # sexagesimal, octal, hexadecimal, binary, with underscores, infinite: one version has a number, another a text
    r"[-+]?(?:[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|0[0-9_]+|0o[0-7]+|0x[0-9a-fA-F_]+|0b[01_]+|[0-9][0-9,]*_[0-9_.]*"
    r"|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)


def is_ambiguous(text: str) -> bool:
    """Whether versions of YAML read a plain scalar differently.

    >>> [is_ambiguous(text) for text in ("yes", "10:01", "0123", "true", "10", "2026-12-01")]
    [True, True, True, False, False, False]
    """
    return bool(_WORDS.match(text) or _NUMBERS.match(text))


def is_text(text: str) -> bool:
    """Whether every reader of YAML takes a plain scalar for text.

    >>> [is_text(text) for text in ("nightly", "on", "5", "1e3", "null")]
    [True, False, False, False, False]
    """
    return not (text in _TRUTHS or text in _NOTHING or _INT.match(text) or _FLOAT.match(text) or is_ambiguous(text))


class _Loader(yaml.SafeLoader):
    """Resolves no plain scalar: `_Reader` does."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


class _Reader:
    """Converts the nodes of one file to data, and notes the line of each field."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Path_, int] = {(): 1}
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._values = 0

    def read(self, text: str) -> Any:
        try:
            node = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = 1 if mark is None else mark.line + 1
            self.problems.append(Problem(self.name, line, "", f"is not valid YAML: {_hint(error, text, line)}"))
            return None
        except yaml.reader.ReaderError as error:
            line = text[: error.position].count("\n") + 1
            self.problems.append(Problem(self.name, line, "", "has a character that YAML does not allow"))
            return None
        except RecursionError:
            self.problems.append(Problem(self.name, 1, "", "is nested too deep"))
            return None
        try:
            return None if node is None else self._value(node, ())
        except RecursionError:
            self.problems.append(Problem(self.name, 1, "", "is nested too deep"))
            return None

    def problem(self, path: Path_, rule: str) -> Problem:
        """The problem of a field, at the nearest line that is known."""
        known = next(path[:length] for length in range(len(path), -1, -1) if path[:length] in self.lines)
        return Problem(self.name, self.lines[known], written(path), rule)

    def _value(self, node: yaml.Node, path: Path_) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._values += 1
        if id(node) in self._open:
            self._refuse(node, path, "an alias stands within its own anchor")
        elif self._values > MOST_VALUES:
            if self._values == MOST_VALUES + 1:
                self._refuse(node, path, "the file has too many values, by aliases of aliases")
        else:
            self._open.add(id(node))
            try:
                return self._converted(node, path)
            finally:
                self._open.discard(id(node))
        return None

    def _converted(self, node: yaml.Node, path: Path_) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self._value(each, (*path, number)) for number, each in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:str":
            # Without resolvers a plain scalar has the tag of text, too; an explicit `!!str 5` stays text by its start.
            return self._plain(node, path) if node.style is None and not self._is_tagged(node) else self._text(node, path)
        self._refuse(node, path, f"the tag {node.tag.replace('tag:yaml.org,2002:', '!!')} is not known here: leave it out")
        return None

    @staticmethod
    def _is_tagged(node: yaml.ScalarNode) -> bool:
        buffer, mark = node.start_mark.buffer, node.start_mark
        return buffer is not None and buffer[mark.pointer : mark.pointer + 1] == "!"

    def _mapping(self, node: yaml.MappingNode, path: Path_) -> dict[str, Any]:
        """A mapping without its merge keys: fields of its own go before those of merged mappings, and of these the first goes first."""
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        merges = [(name, value) for name, value in node.value if name.value == "<<" and name.style is None]
        for name, value in reversed(merges):
            for source in reversed(value.value if isinstance(value, yaml.SequenceNode) else [value]):
                if isinstance(source, yaml.MappingNode):
                    merged.update(self._value(source, path) or {})
                else:
                    self._refuse(name, path, "`<<` takes an alias of a mapping, such as *common, or a list of them")
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                self._refuse(name, path, 'the name of a field must be text; text with {{placeholders}} needs quotes: "{{scheduled_at}}"')
            elif name.value in own:
                self._refuse(name, (*path, name.value), f"is given twice; first in line {self.lines[(*path, name.value)]}")
            elif (name, value) not in merges:
                self.lines[(*path, name.value)] = name.start_mark.line + 1
                own[self._text(name, path)] = self._value(value, (*path, name.value))
        return {**merged, **own}

    def _plain(self, node: yaml.ScalarNode, path: Path_) -> Any:
        text = node.value
        if text in _TRUTHS:
            return _TRUTHS[text]
        if text in _NOTHING:
            return None
        if _INT.match(text) and len(text) <= MOST_DIGITS:
            return int(text)
        if _FLOAT.match(text) and isfinite(float(text)):
            return float(text)
        if _INT.match(text) or _FLOAT.match(text):
            self._refuse(node, path, f"is a number that is too large: {text[:20]}{'…' if len(text) > 20 else ''}; put it into quotes")
        if _WORDS.match(text):
            truth = "true" if text.lower() in ("yes", "on") else "false"
            self._refuse(node, path, f'{text} is a truth value for some readers of YAML and text for others: write {truth}, or "{text}"')
        elif _NUMBERS.match(text):
            self._refuse(node, path, f'{text} is a number for some readers of YAML and text for others: write "{text}", or a plain number')
        return text

    def _text(self, node: yaml.ScalarNode, path: Path_) -> str:
        text = _whole(node.value)
        for _, rule in halves(text):
            self._refuse(node, path, rule)
        return text

    def _refuse(self, node: yaml.Node, path: Path_, rule: str) -> None:
        self.problems.append(Problem(self.name, node.start_mark.line + 1, written(path), rule))


def _whole(text: str) -> str:
    """Return the text with each pair of surrogates as one character: JSON has two escapes for "😀", which YAML reads as two."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if re.search("[\ud800-\udfff]", text) else text


def _hint(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    """Return the remedy for a common trap, else the parser's message."""
    said = " ".join(part for part in (error.context, error.problem) if part)
    lines = text.splitlines()
    at = lines[line - 1] if 0 < line <= len(lines) else ""
    name, _, value = at.strip().removeprefix("- ").partition(":")
    value = value.strip()
    if "undefined alias" in said and re.fullmatch(r"\*\w+", value):
        return f"{error.problem}: define it first with &, or put text that begins with * into quotes"
    if "alias" in said and value.startswith("*"):
        return f'text that begins with * needs quotes: {name}: "{value}"'
    if "'\\t'" in said or at[: len(at) - len(at.lstrip())].count("\t"):
        return "a line is indented by a tab: use spaces"
    if "cannot start any token" in said and value[:1] in ("@", "`", "%"):
        return f'text that begins with {value[0]} needs quotes: {name}: "{value}"'
    if value.startswith("{{"):
        return f"text that begins with {{{{ needs quotes: {name}: '{value}'"
    if "mapping values are not allowed" in said:
        return 'text with ": " in it needs quotes, or the indentation is wrong'
    if "expected a single document" in said:
        return "it has more than one document: use one `tasks:` list, or several files"
    return said
