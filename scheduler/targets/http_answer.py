"""Reads the answer of an HTTP/1 server to its end (RFC 9112). An answer whose end was not seen is none.

The end is the blank line after the head of an answer without content, the last byte of its `Content-Length`, the blank line after its last
chunk; or else the server's close of the connection. The caller must know that the close is not its own.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader

from urllib3 import HTTPHeaderDict

READ_LIMIT = 1_048_576  # bytes of the content that are kept; the rest is read to its end and dropped
HEADS_LIMIT = 1_048_576  # bytes of all heads of an answer together: interim answers, the final one, its trailers
CHUNK_LINE_LIMIT = 65_536  # bytes of the line before a chunk
PIECE = 65_536  # most bytes of one read
SWITCHED = 101  # a final answer, although it is a 1xx: what follows is another protocol
NO_CONTENT = (SWITCHED, 204, 304)
SHOWN = 60  # bytes of a line that is no HTTP, in its error

_STATUS_LINE = re.compile(rb"HTTP/[01]\.[0-9][ \t]+([1-9][0-9]{2})(?:[ \t].*)?", re.DOTALL)
_CHUNK_LINE = re.compile(rb"[ \t]*0*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_LENGTH = re.compile(r"0*([0-9]{1,18})")


class Broken(Exception):
    """The connection ended before the answer did, or the bytes are no HTTP."""


class TooLong(Exception):
    """The heads of the answer have more than `HEADS_LIMIT` bytes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer whose end was seen."""

    status: int
    headers: HTTPHeaderDict
    content: bytes  # its first `READ_LIMIT` bytes
    is_longer: bool = False  # the rest was dropped


def read(file: BufferedReader, method: str) -> Answer:
    """Read the answer to a request with this method, and the interim answers before it. Raises Broken, TooLong and what the file raises."""
    answer = _Reading(file)
    status, headers = 100, HTTPHeaderDict()
    try:
        while _is_interim(status):
            status = answer.status()
            headers = answer.headers()
    except TooLong:
        if _is_interim(status):
            raise Broken(f"no final answer in the first {HEADS_LIMIT:,} bytes") from None
        raise TooLong(f"HTTP {status} with a head of more than {HEADS_LIMIT:,} bytes") from None
    if method == "HEAD" or status in NO_CONTENT:
        return Answer(status, headers, b"")
    try:
        content = answer.content(headers)
    except TooLong:
        raise TooLong(f"HTTP {status} with trailers of more than {HEADS_LIMIT:,} bytes") from None
    return Answer(status, headers, content[:READ_LIMIT], is_longer=len(content) > READ_LIMIT)


def _is_interim(status: int) -> bool:
    return 100 <= status < 200 and status != SWITCHED


class _Reading:
    """One answer that is being read."""

    def __init__(self, file: BufferedReader) -> None:
        self._file, self._room = file, HEADS_LIMIT

    def status(self) -> int:
        """Read a status line."""
        if not (first := self._file.peek(1)):
            raise Broken("the connection was closed without an answer" if self._room == HEADS_LIMIT else "no final answer came")
        if not b"HTTP/".startswith(first[:5]):
            raise Broken(f"the answer is no HTTP: {first[:SHOWN]!r}")
        line = self._line()
        if not (found := _STATUS_LINE.fullmatch(line)):
            raise Broken(f"the answer is no HTTP: {line[:SHOWN]!r}")
        return int(found[1])

    def headers(self) -> HTTPHeaderDict:
        """Read header lines and the blank line after them. Lines that are no headers are left out."""
        fields: list[tuple[str, list[str]]] = []
        while line := self._line():
            text = line.decode("latin-1").replace("\r", " ")
            name, colon, value = text.partition(":")
            if text[0] in " \t":  # a folded line
                if fields:
                    fields[-1][1].append(text.strip(" \t"))
            elif colon and name.strip(" \t"):
                fields.append((name.strip(" \t"), [value.strip(" \t")]))
        headers = HTTPHeaderDict()
        for name, parts in fields:
            headers.add(name, " ".join(parts))
        return headers

    def content(self, headers: HTTPHeaderDict) -> bytes:
        """Read the content to its end. Returns it, or at least the first `READ_LIMIT` bytes and one more of a longer one."""
        content = bytearray()
        for piece in self._pieces(headers):
            if len(content) <= READ_LIMIT:
                content += piece
        return bytes(content)

    def _pieces(self, headers: HTTPHeaderDict) -> Iterator[bytes]:
        codings = [coding.partition(";")[0].strip().lower() for coding in _listed(headers, "transfer-encoding")]
        codings = [coding for coding in codings if coding not in ("", "identity")]
        if codings:
            return self._chunks() if codings[-1] == "chunked" else self._until_close()
        length = _length(_listed(headers, "content-length"))
        return self._until_close() if length is None else self._exactly(length)

    def _until_close(self) -> Iterator[bytes]:
        while piece := self._file.read1(PIECE):
            yield piece

    def _exactly(self, left: int) -> Iterator[bytes]:
        while left:
            piece = self._file.read1(min(left, PIECE))
            if not piece:
                raise Broken(f"the answer broke off: {left:,} bytes of its content are missing")
            left -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while size := self._chunk_size():
            yield from self._exactly(size)
            if self._file.readline(2) not in (b"\r\n", b"\n"):
                raise Broken("the answer broke off at the end of a chunk")
        while self._line():
            pass  # trailers

    def _chunk_size(self) -> int:
        line = self._file.readline(CHUNK_LINE_LIMIT)
        if not line.endswith(b"\n"):
            raise Broken("the answer broke off before a chunk")
        if not (found := _CHUNK_LINE.fullmatch(_bare(line))):
            raise Broken(f"the answer is no HTTP: a chunk begins with {line[:SHOWN]!r}")
        return int(found[1], 16)

    def _line(self) -> bytes:
        """Read a line of a head or of the trailers."""
        line = self._file.readline(self._room + 1)
        self._room -= len(line)
        if self._room < 0:
            raise TooLong
        if not line.endswith(b"\n"):
            raise Broken("the answer broke off in its head or its trailers")
        return _bare(line)


def _bare(line: bytes) -> bytes:
    """The line without its end. RFC 9112, section 2.2, lets a line end without CR."""
    return line[:-1].removesuffix(b"\r")


def _listed(headers: HTTPHeaderDict, name: str) -> list[str]:
    return [each.strip() for value in headers.getlist(name) for each in value.split(",")]


def _length(values: Iterable[str]) -> int | None:
    """The length of the content by all `Content-Length` headers; None without one. Raises Broken if they are no single length."""
    found = {_LENGTH.fullmatch(text) for text in values}
    lengths = {int(each[1]) for each in found if each is not None}
    if None in found or len(lengths) > 1:
        raise Broken("the answer is no HTTP: it has no valid Content-Length")
    return lengths.pop() if lengths else None
