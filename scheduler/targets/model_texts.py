"""The texts of botocore's models, which are HTML, as plain sentences."""

import html
import re

LONGEST = 300  # characters
_PARAGRAPH = re.compile(r"</(?:p|li|note|important)>")
_TAG = re.compile(r"<[^>]*>")
_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z])")


def sentence(text: str) -> str:
    """The first sentence of a text, at most `LONGEST` characters; empty if there is none."""
    for paragraph in _PARAGRAPH.split(text):
        plain = " ".join(html.unescape(_TAG.sub(" ", paragraph)).split())
        if plain:
            first = re.sub(r"\s+(?=[.,;:)])", "", _END.split(plain, 1)[0])
            return first if len(first) <= LONGEST else f"{first[: LONGEST - 1]}…"
    return ""
