"""Removes secrets from a text, in the encodings in which servers, proxies and log shippers repeat the data sent to them.

A text is searched in several views: as it is, with its escapes decoded up to `ROUNDS` times, with quoted-printable decoded, and each of
these without white space. A view remembers the position of each of its bytes in the text, so exactly the encoded secret is replaced.
The time is linear in the length of the text. `docs/concepts/security.md` lists what is recognized and what is not.
"""

import base64
import html
import json
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from html.entities import html5
from typing import NamedTuple
from urllib.parse import quote

HIDDEN = "[secret]"
SHORTEST = 6  # least characters of a secret: a shorter one occurs in other texts by chance
CUT = 4  # a text may have been cut within a secret: at least this many of its first characters are removed from the end
ROUNDS = 4  # JSON in JSON in JSON, percent-encoded
FRAGMENT = 12  # characters of the least fragment of a secret that is removed; it must be half of the secret as well
COMPACT = 8  # least characters of a secret that is searched without white space: a shorter one occurs by chance

_CREDENTIAL = re.compile(
    r".*(?:authorization|cookie2?|token|jwt|secret|password|passwd|credentials?|api-?key)"
    r"|(?:.*-)?(?:authentication-info|auth|session(?:-?id)?|csrf|xsrf|(?:access|account|auth|functions|private|secret|subscription)-key)"
)  # the names of headers with credentials, in lower case

_ESCAPE = re.compile(
    rb"%u(?P<js>[0-9a-fA-F]{4})|%(?P<percent>[0-9a-fA-F]{2})"
    rb"|&#(?P<decimal>[0-9]{1,7});?|&#[xX](?P<hexadecimal>[0-9a-fA-F]{1,6});?|&(?P<name>[A-Za-z][A-Za-z0-9]{1,31});"
    rb"|\\u(?P<unit>[0-9a-fA-F]{4})|\\u\{(?P<point>[0-9a-fA-F]{1,6})\}"
    rb"|\\x(?P<byte>[0-9a-fA-F]{2})|\\(?P<octal>[0-3][0-7]{2})|\\(?P<letter>[\x20-/:-\x7e])"
)
_PRINTABLE = re.compile(rb"=(?P<soft>\r?\n)|=(?P<byte>[0-9a-fA-F]{2})")
_SPACES = bytes(range(0x21))
_SPACE = re.compile(rb"[\x00-\x20]+")  # the NUL bytes too: of ASCII text in UTF-16 or UTF-32
_INCOMPLETE = re.compile(rb"(?:%u?[0-9a-f]{0,3}|&#?[0-9a-z]{0,8}|\\(?:[ux][0-9a-f]{0,3}|[0-3][0-7]?)?|=[0-9a-f]?)\Z")
LONGEST_ESCAPE = 10
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}


class Forms(NamedTuple):
    """The byte strings to search for, in lower case and the longest first."""

    whole: Sequence[bytes]  # the secrets themselves, of which fragments are removed as well
    plain: Sequence[bytes]
    coded: Sequence[bytes]  # base64 and hexadecimal
    compact: Sequence[bytes]  # without white space


def forms(values: Sequence[str]) -> Forms:
    """The forms of secrets."""
    plain: set[bytes] = set()
    whole = [value.encode("utf-8", "surrogatepass").lower() for value in dict.fromkeys(values)]
    coded: set[bytes] = set()
    for value in dict.fromkeys(values):
        raw = value.encode("utf-8", "surrogatepass")
        pairs = "".join(chr(unit) for (unit,) in struct.iter_unpack("<H", value.encode("utf-16-le", "surrogatepass")))  # as in JSON
        plain |= {form.encode("utf-8", "surrogatepass").lower() for form in (value, value[::-1], pairs)}
        view = raw
        for _ in range(ROUNDS):  # a secret that looks like an escape is decoded with its text
            view = _ESCAPE.sub(_unescaped, view)
            if len(view) >= SHORTEST:
                plain.add(view.lower())
        coded |= {raw.hex().encode(), *(form.lower() for form in _base64(raw, value))}
    plain |= {form.replace(b" ", b"+") for form in plain}
    compact = {_SPACE.sub(b"", form) for form in plain | coded}
    return Forms(whole, _sorted(plain), _sorted(coded), _sorted({form for form in compact if len(form) >= COMPACT}))


def _sorted(found: set[bytes]) -> Sequence[bytes]:
    return sorted(found, key=lambda form: (-len(form), form))


def _base64(raw: bytes, value: str) -> Iterator[bytes]:
    """The secret in base64, in the middle of any text, escaped or not before, in UTF-16, and twice."""
    escaped = json.dumps(value)[1:-1].encode()
    sources = {raw, value.encode("utf-16-le", "surrogatepass"), quote(value, safe="", errors="surrogatepass").encode(), escaped}
    sources |= {html.escape(value).encode("utf-8", "surrogatepass"), *_aligned(raw)}
    for source in sources:
        for form in _aligned(source):
            yield form
            yield form.translate(bytes.maketrans(b"+/", b"-_"))


def _aligned(source: bytes) -> Iterator[bytes]:
    """The characters that base64 has for the source after 0, 1 or 2 other bytes, without those that depend on its neighbours."""
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        coded = base64.b64encode(b"\0" * before + source)
        yield coded[skipped : (before + len(source)) * 8 // 6]


def is_credential(name: str) -> bool:
    """Whether a header of this name carries credentials."""
    return _CREDENTIAL.fullmatch(name.lower().replace("_", "-")) is not None


def header(name: str, value: str) -> str:
    """The value of a response header as it is kept: a credential is replaced. Of a cookie the name and the attributes stay."""
    if not is_credential(name):
        return value
    if name.lower().replace("_", "-") != "set-cookie":
        return HIDDEN
    pair, *attributes = value.split(";")
    cookie, equals, _ = pair.partition("=")
    return ";".join([f"{cookie}={HIDDEN}" if equals else HIDDEN, *attributes])


def hidden(text: str, forms: Forms) -> str:
    """The text with each secret replaced, and cut where it ends within a secret."""
    raw = text.encode("utf-8", "surrogatepass")
    spans: list[tuple[int, int]] = []
    end = len(raw)
    for view in _views(raw):
        found, cut = _search(view.text, forms, compact=False)
        spans += [(view.start(start), view.stop(stop)) for start, stop in found]
        end = min(end, view.start(cut))
        # Without white space. The positions of the bytes are computed only if something was found: white space is in every text.
        compact = view.text.translate(None, _SPACES)
        found, cut = _search(compact, forms, compact=True)
        if found or cut < len(compact):
            view = view.decoded(_SPACE)
            spans += [(view.start(start), view.stop(stop)) for start, stop in found]
            end = min(end, view.start(cut))
    if not spans and end == len(raw):
        return text
    return _replaced(raw, spans, end).decode("utf-8", "replace")  # a fragment may end within a character


def _replaced(raw: bytes, spans: Sequence[tuple[int, int]], end: int) -> bytes:
    parts, done = [], 0
    for start, stop in sorted(spans):
        if start >= end:
            break
        if start >= done:
            parts += [raw[done:start], HIDDEN.encode()]
        done = max(done, stop)
    return b"".join((*parts, raw[done:end]))


class _View:
    """A decoded copy of a text or of another view, and the position of each part in it.

    The parts with even numbers are as in the parent; each of the others is a decoded escape.
    """

    def __init__(self, text: bytes, parent: "_View | None" = None, begins: Sequence[int] = (0,), sources: Sequence[int] = (0,)) -> None:
        self.text, self._parent, self._begins, self._sources = text, parent, begins, sources

    def start(self, place: int) -> int:
        """The begin in the text of the byte at `place`; the end of the text for the end of the view."""
        if self._parent is None:
            return place
        part = bisect_right(self._begins, place) - 1
        return self._parent.start(self._sources[part] + (0 if part % 2 else place - self._begins[part]))

    def stop(self, place: int) -> int:
        """The end in the text of the byte before `place`."""
        if self._parent is None:
            return place
        part = bisect_right(self._begins, place - 1) - 1
        return self._parent.stop(self._sources[part + 1] if part % 2 else self._sources[part] + place - self._begins[part])

    def decoded(self, escapes: re.Pattern[bytes]) -> "_View":
        """The view with these escapes decoded; the same view if it has none."""
        parts: list[bytes] = []
        begins, sources = [0], [0]
        done = size = 0
        for match in escapes.finditer(self.text):
            new, (start, stop) = _unescaped(match), match.span()
            parts += [self.text[done:start], new]
            begins += [size := size + start - done, size := size + len(new)]
            sources += [start, stop]
            done = stop
        return _View(b"".join((*parts, self.text[done:])), self, begins, sources) if parts else self


def _views(raw: bytes) -> Iterator[_View]:
    """All views of a text."""
    first = view = _View(raw)
    yield view
    for _ in range(ROUNDS):
        if (following := view.decoded(_ESCAPE)) is view:
            break
        yield (view := following)
    if (printable := first.decoded(_PRINTABLE)) is not first:
        yield printable


def _search(text: bytes, forms: Forms, *, compact: bool) -> tuple[Sequence[tuple[int, int]], int]:
    """The positions of secrets, and where the text must end."""
    text = text.lower()  # of ASCII letters only: the length stays
    return list(_found(text, forms, compact=compact)), _cut(text, forms, compact=compact)


def _unescaped(match: re.Match[bytes]) -> bytes:
    kind, found = match.lastgroup, match[match.lastgroup or 0]
    if kind in ("percent", "byte"):
        return bytes((int(found, 16),))
    if kind == "letter":
        return _LETTERS.get(found, found)
    if kind in ("js", "unit", "point", "hexadecimal"):
        return _character(int(found, 16))
    if kind == "decimal":
        return _character(int(found))
    if kind == "octal":
        return bytes((int(found, 8),))
    if kind == "name":
        return _entity(found, match[0])
    return b""  # white space, and the soft line breaks of quoted-printable


@cache
def _names() -> dict[bytes, bytes]:
    return {name.rstrip(";").encode(): character.encode() for name, character in html5.items()}


def _entity(name: bytes, otherwise: bytes) -> bytes:
    return _names().get(name, otherwise)


def _character(point: int) -> bytes:
    return chr(point).encode("utf-8", "surrogatepass") if point < 0x110000 else b"?"


def _found(text: bytes, forms: Forms, *, compact: bool) -> Iterator[tuple[int, int]]:
    """The positions of secrets."""
    for form in forms.compact if compact else (*forms.plain, *forms.coded):
        place = text.find(form)
        while place >= 0:
            yield place, place + len(form)
            place = text.find(form, place + len(form))
    for form in () if compact else forms.whole:
        yield from _fragments(text, form)


def _fragments(text: bytes, form: bytes) -> Iterator[tuple[int, int]]:
    """The position of a fragment of the secret: at least FRAGMENT bytes, and half of it. Each has one of a few windows of the secret."""
    least = max(FRAGMENT, -(-len(form) // 2))
    size = (least + 1) // 2
    for offset in range(0, len(form) - size + 1, size):
        window, done = form[offset : offset + size], 0
        while (place := text.find(window, done)) >= 0:
            start, stop = place, place + size
            while start > done and (before := offset - (place - start) - 1) >= 0 and text[start - 1] == form[before]:
                start -= 1
            while stop < len(text) and (after := offset + stop - place) < len(form) and text[stop] == form[after]:
                stop += 1
            if stop - start >= least:
                yield start, stop
            done = stop


def _cut(text: bytes, forms: Forms, *, compact: bool) -> int:
    """The end of the text before a secret that was cut, perhaps within an escape; its length if none was cut."""
    ends = [len(text), *(match.start() for match in _INCOMPLETE.finditer(text, max(len(text) - LONGEST_ESCAPE, 0)))]
    cut = len(text)
    for end in ends:
        for forms_of, least in ((forms.compact, 2 * CUT),) if compact else ((forms.plain, CUT), (forms.coded, 2 * CUT)):
            for form in forms_of:
                place = text.find(form[:least], max(end - len(form) + 1, 0), end)
                while place >= 0 and not form.startswith(text[place:end]):
                    place = text.find(form[:least], place + 1, end)
                cut = min(cut, place) if place >= 0 else cut
    return cut
