"""A lint for plain technical English, over the text that a reader of the product meets: docstrings, comments, messages, Markdown.

`python -m tests.language [path ...]` prints the findings of these files and folders, by default of the whole product;
with `--files` only the names of the files.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("scheduler", "lambdas", "infra", "local", "bench", "prove", "app.py", "README.md")
LONGEST_DOCS_LINE = 100


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


_SENTENCE = r"(?:\A|(?<=[.!?])\s|\n\s*\n)\s*[\"'`*(]*"
_CLAUSE = r"(?:\A|(?<=[.!?:;])\s|\n\s*\n)\s*[\"'`*(]*"  # a sentence, or what follows a colon
_NO_QUESTION = r"(?![^.!?]*\?)"
HEADLESS = Rule(
    "headless sentence",
    re.compile(rf"{_CLAUSE}(?:who|whoever|whom|those that|those who)\b{_NO_QUESTION}", re.IGNORECASE),
    "begin with the actor: the job, the executor, the caller",
)
HEADLESS_WHAT = Rule(
    "headless sentence",
    re.compile(rf"{_SENTENCE}what\b{_NO_QUESTION}", re.IGNORECASE),
    "begin with a noun: the fields, the jobs, the settings",
)
RULES = (
    HEADLESS,
    HEADLESS_WHAT,
    _phrase("(?:to|for|of|from|with|by|than) who(?:ever)?", "name the actor: a job that, an executor that"),
    _phrase("anew", "again, or: from scratch"),
    _phrase("for ever", "without end, or: permanently"),
    _phrase("as ever", "as before, or nothing"),
    _phrase("all the same", "nevertheless, or nothing"),
    _phrase("the other way round", "say what happens in that case"),
    _phrase("(?:as )?good as once", "idempotent"),
    _phrase("ma(?:de|ke|kes|king) good", "fix, correct"),
    _phrase("(?:is|are|was|were|be|been|being) told", "name the actor: X reports to Y, Y receives"),
    _phrase("look(?:s|ed|ing)? (?:who|whose|whom|what|whether|how|if)", "check, read, poll"),
    _phrase("so long as", "while, or: if"),
    _phrase("so (?:long|many|often)(?! as)(?!(?: \\w+){0,3} that)", "give the number or its unit: N ms, N times, at most N"),
    _phrase("of which the", "split the sentence, or: whose"),
    _phrase("do(?:es)? not count any more", "is no longer valid"),
    _phrase("nobody s", "name the actor, or: without an owner"),
    _phrase("somebody(?: s)?", "name the actor: another user, the caller"),
    _phrase("(?:is|are) the net", "the safety slot: jobs are picked up from their slots"),
)
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=s\b)")


def lint(text: str, line: int = 1) -> list[Finding]:
    """The findings of a piece of prose whose first line is this line of its file."""
    plain = _APOSTROPHE.sub(" ", text)  # of the same length
    found = [
        Finding(line + plain.count("\n", 0, match.end()), rule.name, rule.advice, _excerpt(text, match))
        for rule in RULES
        for match in rule.pattern.finditer(plain)
    ]
    return sorted(set(found))


def _excerpt(text: str, match: re.Match[str]) -> str:
    """The match, and the words around it."""
    before = text[: match.start()].split()[-2:] if match[0][:1].isalnum() else []
    return " ".join([*before, *(match[0] + text[match.end() :].partition("\n")[0]).split()[: 5 + len(match[0].split())]])


def of_python(tree: ast.Module, source: str) -> list[Finding]:
    return [finding for text in _prose(tree, source) for finding in lint(text.text, text.line)]


def of_markdown(source: str) -> list[Finding]:
    return [*(finding for text in _paragraphs(source) for finding in lint(text.text, text.line)), *_long_lines(source)]


def of_file(path: Path) -> list[Finding]:
    source = path.read_text()
    return sorted(of_markdown(source) if path.suffix == ".md" else of_python(ast.parse(source), source))


def files(*places: str) -> list[Path]:
    """The Python and Markdown files of these files and folders of the repository."""
    found: list[Path] = []
    for place in places or PRODUCT:
        path = ROOT / place
        found += [path] if path.is_file() else [each for each in path.rglob("*") if each.suffix in (".py", ".md")]
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
    """Where the comment of a line starts; -1 without one."""
    for match in re.finditer("#", line):
        at = match.start() if line.isascii() else len(line[: match.start()].encode())
        if not any(start <= at < end for start, end in strings):
            return match.start()
    return -1


def _paragraphs(source: str) -> Iterator[Text]:
    """The text of a Markdown document: a heading, a list item, a row of a table and a paragraph are one text each; code is none."""
    block: list[str] = []
    begins, in_code = 1, False
    for number, line in enumerate([*source.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        starts = re.match(r"\s*(?:[-*|>#]|\d+\.)", line)
        if block and (fence or starts or not line.strip()):
            yield Text(begins, "\n".join(block))
            block = []
        in_code ^= fence
        if not in_code and not fence and line.strip():
            begins = begins if block else number
            bare = re.sub(r"^\s*(?:[-*>]|#+|\d+\.)\s+", "", line)
            block.append(re.sub(r"`[^`]*`", "code", bare))


def _long_lines(source: str) -> Iterator[Finding]:
    in_code = False
    for number, line in enumerate(source.splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        if len(line) > LONGEST_DOCS_LINE and not in_code and not line.startswith("|") and " " in line.strip():
            yield Finding(number, "line length", f"at most {LONGEST_DOCS_LINE} characters", line[:40])


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
