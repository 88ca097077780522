"""Free texts of users that people read in lists, terminals and mails: names, descriptions, reasons. Pure.

Control characters rewrite a terminal, and bidirectional overrides and isolates show a text in another order than it is stored in
(https://www.unicode.org/reports/tr9/#Explicit_Directional_Embeddings). Letters of any script and the marks of right-to-left texts
(U+200E, U+200F, U+061C) are allowed.
"""

import re

_NEVER = "\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff"  # the last ones are no characters
_UNSHOWN = re.compile(f"[\x00-\x1f{_NEVER}]")
_UNSHOWN_BUT_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_NEVER}]")


def broken_rule(text: str, *, lines: bool = False) -> str | None:
    """The rule that a text breaks, None if it may be shown. `lines`: it may have line feeds and tabs.

    >>> broken_rule("Zo\u00eb's \u05d3\u05d5\u05d7\u200f"), broken_rule("a\\tb"), broken_rule("a\\tb", lines=True)
    (None, 'must not contain U+0009 (character 2): no control characters and no bidirectional overrides', None)
    """
    found = (_UNSHOWN_BUT_LINES if lines else _UNSHOWN).search(text)
    if found is None:
        return None
    return f"must not contain U+{ord(found[0]):04X} (character {found.start() + 1}): no control characters and no bidirectional overrides"


def as_line(text: str) -> str:
    """The text on one line: a blank replaces each character that may not be shown."""
    return _UNSHOWN.sub(" ", text)


def as_lines(text: str) -> str:
    """The text with its line feeds and tabs: a blank replaces each other character that may not be shown."""
    return _UNSHOWN_BUT_LINES.sub(" ", text)
