"""Texts that are safe for a terminal and that no reader takes for something else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BIDIRECTIONAL = r"\u202a-\u202e\u2066-\u2069"  # bidirectional overrides, embeddings and isolates
HIDDEN = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDIRECTIONAL}]")  # they drive a terminal or turn a line around
API_KEY = re.compile("punctual_[a-z2-7]{16}_[A-Za-z0-9]{43}_[0-9a-f]{8}")
KEY_SECRET = re.compile("(punctual_[a-z2-7]{16}_)[A-Za-z0-9_]+")  # also of a key that was cut or mistyped
HALF = re.compile("[\ud800-\udfff]")  # half of a surrogate pair: UTF-8 has no form for it
# In JSON also the line breaks of YAML 1.1 and what YAML does not allow raw, so that a YAML reader finds the same text.
_ESCAPED = re.compile(rf"[\x7f-\x9f\u2028\u2029{_BIDIRECTIONAL}\ud800-\udfff\ufeff\ufffe\uffff]")


def visible(text: str) -> str:
    r"""Return a text with its control characters and bidirectional overrides as escapes; line breaks and tabs stay.

    >>> print(visible("\x1b[2J\u202egnp.exe"))
    \x1b[2J\u202egnp.exe
    """
    return HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text)


def without_keys(text: str) -> str:
    """Return a text with each API key in it shortened to its public part, its id.

    >>> without_keys(f"Bearer punctual_{'a' * 16}_{'S' * 43}_0123abcd")
    'Bearer punctual_aaaaaaaaaaaaaaaa_…'
    """
    return KEY_SECRET.sub(r"\1…", text)


def halves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each text of a JSON value that is no UTF-8, and the rule that it breaks.

    >>> list(halves({"tags": ["a", "b" + chr(0xD800)]}))
    [('tags[1]', 'is no text in UTF-8: it has half of a surrogate pair (\\ud800)')]
    """
    if isinstance(value, str):
        if found := HALF.search(value):
            yield path, f"is no text in UTF-8: it has half of a surrogate pair ({ascii(found[0])[1:-1]})"
    elif isinstance(value, Mapping):
        for name, each in value.items():
            place = f"{path}.{name}" if path else str(name)
            if isinstance(name, str) and HALF.search(name):
                yield from halves(name, f"the name {place!a}")
            yield from halves(each, place)
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from halves(each, f"{path}[{number}]")


def in_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON without a character that a terminal obeys; in one line, or indented."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, separators=(",", ":") if indent is None else None)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
