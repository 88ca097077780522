"""A lint for plain technical English in code: docstrings, comments, messages, names, TOML. Textlint checks Markdown (`make prose`).

`python -m tests.language [path ...]` prints the findings of these files and folders, by default of the whole product;
with `--files` only the names of the files.
"""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["packages"]  # `punctual` is the client
FOLDERS = {"punctual": "client/src/punctual", "punctual_server": "server/src/punctual_server"}  # of packages that are not at the top
PRODUCT = (*(FOLDERS.get(each, each) for each in PACKAGES), "app.py")
TOML = ("stages/example.toml", "pyproject.toml", "client/pyproject.toml", "server/pyproject.toml")


class Finding(NamedTuple):
    line: int
    rule: str
    advice: str
    excerpt: str


class Rule(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    advice: str


class Text(NamedTuple):
    """A piece of prose, and the line of its file where it begins. Its line breaks are those of the file."""

    line: int
    text: str


def _phrase(pattern: str, advice: str) -> Rule:
    return Rule("phrase", re.compile(rf"\b(?:{pattern})\b".replace(" ", r"\s+"), re.IGNORECASE), advice)


def _headless(before: str, words: list[str], advice: str) -> Rule:
    """A sentence or clause that begins with one of these words and is no question."""
    start = rf"(?:\A|(?<=[{before}])\s|\n\s*\n)\s*[\"'`*(]*"
    return Rule("headless sentence", re.compile(rf"{start}(?:{'|'.join(words)})\b(?![^.!?]*\?)", re.IGNORECASE), advice)


def _rules(headless: dict[str, Any], phrases: list[dict[str, Any]], *, users: bool) -> tuple[Rule, ...]:
    """The rules of lint/phrases.json for texts in code or, with more phrases, for texts that users read.

    In Markdown (lint/plain-english.js), a title may begin with *how*.
    """
    return (
        _headless(".!?:;", headless["clause"], headless["advice"]),
        _headless(".!?", headless["sentence"], headless["advice"]),
        Rule("headless sentence", re.compile(rf"\A(?:{'|'.join(headless['start'])})\b(?![^.!?]*\?)"), headless["advice"]),
        *(_phrase(each["pattern"], each["advice"]) for each in phrases if users or not each.get("docs")),
    )


_LISTS = json.loads((ROOT / "lint/phrases.json").read_text())
RULES, USER_RULES = (_rules(_LISTS["headless"], _LISTS["phrases"], users=users) for users in (False, True))
WORDS: dict[str, str] = {word: each["advice"] for each in _LISTS["identifiers"]["words"] for word in each["words"]}
STORED = frozenset(_LISTS["identifiers"]["stored"])  # names of stored attributes and of fields of the API
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=s\b)")
_SUB_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TOML_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')


def lint(text: str, line: int = 1, rules: Sequence[Rule] = RULES) -> list[Finding]:
    """The findings of a piece of prose whose first line is this line of its file."""
    plain = _APOSTROPHE.sub(" ", text)  # of the same length
    found = [
        Finding(line + plain.count("\n", 0, match.end()), rule.name, rule.advice, _excerpt(text, match))
        for rule in rules
        for match in rule.pattern.finditer(plain)
    ]
    return sorted(set(found))


def _excerpt(text: str, match: re.Match[str]) -> str:
    """The match, and the words around it."""
    before = text[: match.start()].split()[-2:] if match[0][:1].isalnum() else []
    return " ".join([*before, *(match[0] + text[match.end() :].partition("\n")[0]).split()[: 5 + len(match[0].split())]])


def of_python(tree: ast.Module, source: str) -> list[Finding]:
    return [*(finding for text in _prose(tree, source) for finding in lint(text.text, text.line)), *_identifiers(tree)]


def of_toml(source: str) -> list[Finding]:
    """The findings of the comments and strings, which users read."""
    lines, strings = source.splitlines(), dict[int, list[tuple[int, int]]]()
    texts = list[Text]()
    for number, line in enumerate(lines, 1):
        for match in _TOML_STRING.finditer(line):
            strings.setdefault(number, []).append((len(line[: match.start()].encode()), len(line[: match.end()].encode())))
        comment = _comment(line, strings.get(number, []))
        texts += [Text(number, match[0][1:-1]) for match in _TOML_STRING.finditer(line[:comment] if comment >= 0 else line)]
    return [finding for text in (*texts, *_comments(lines, strings)) for finding in lint(text.text, text.line, USER_RULES)]


def of_file(path: Path) -> list[Finding]:
    source = path.read_text()
    return sorted(of_toml(source) if path.suffix == ".toml" else of_python(ast.parse(source), source))


def _identifiers(tree: ast.Module) -> Iterator[Finding]:
    """The names that the file defines and that contain one of `WORDS` as a whole sub-word: `held`, `_held_back`, `LookAgain`."""
    records = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = {id(each.target) for record in records for each in record.body if isinstance(each, ast.AnnAssign)}
    defined = ((node, line, name) for node in ast.walk(tree) for line, name in _defined(node))
    found = {(line, name) for node, line, name in defined if not (name in STORED and id(node) in fields)}
    for line, name in sorted(found):
        for word in dict.fromkeys(each.lower() for each in _SUB_WORD.findall(name)):
            if word in WORDS:
                yield Finding(line, "identifier", WORDS[word], name)


def _defined(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield node.lineno, name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield node.lineno, name
        case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield node.lineno, name


def files(*places: str) -> list[Path]:
    """The Python and TOML files of these files, and the Python files of these folders, of the repository."""
    found: list[Path] = []
    for place in places or (*PRODUCT, *TOML):
        path = ROOT / place
        found += [path] if path.is_file() else list(path.rglob("*.py"))
    return sorted(found)


def _prose(tree: ast.Module, source: str) -> Iterator[Text]:
    """Docstrings, messages (any string of three words or more), and comments; those of neighbouring lines are one text."""
    strings: dict[int, list[tuple[int, int]]] = {}  # by line, in bytes
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) and not (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        for number in range(first, last + 1):
            end = (node.end_col_offset or 0) if number == last else sys.maxsize
            strings.setdefault(number, []).append((node.col_offset if number == first else 0, end))
        if id(node) not in parts and (text := _literal(node)).count(" ") >= 2:
            yield Text(first, text if last > first else text.replace("\n", " "))
    yield from _comments(source.splitlines(), strings)


def _literal(node: ast.expr) -> str:
    """The text of a string; a placeholder stands for each value that is formatted into it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "N" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _comments(lines: list[str], strings: dict[int, list[tuple[int, int]]]) -> Iterator[Text]:
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        start = _comment(line, strings.get(number, [])) if "#" in line else -1
        alone = start >= 0 and not line[:start].strip()
        if block and not alone:
            yield Text(number - len(block), "\n".join(block))
            block = []
        if alone:
            block.append(line[start + 1 :].strip())
        elif start >= 0:
            yield Text(number, line[start + 1 :].strip())


def _comment(line: str, strings: list[tuple[int, int]]) -> int:
    """The place where the comment of a line starts; -1 without one."""
    for match in re.finditer("#", line):
        at = match.start() if line.isascii() else len(line[: match.start()].encode())
        if not any(start <= at < end for start, end in strings):
            return match.start()
    return -1


def main(arguments: list[str]) -> int:
    names_only = "--files" in arguments
    count = 0
    for path in files(*(argument for argument in arguments if not argument.startswith("-"))):
        found = of_file(path)
        count += len(found)
        name = path.relative_to(ROOT).as_posix()
        lines = [name] if found and names_only else [f'{name}:{each.line}: {each.rule}: "{each.excerpt}" ({each.advice})' for each in found]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
