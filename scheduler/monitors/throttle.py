"""Wrong tokens of one source are limited, in the memory of a process: a guesser costs no write, and few reads."""

from collections import OrderedDict
from dataclasses import dataclass, field

from scheduler.model.errors import TooMany

WINDOW_MS = 60_000
MOST_WRONG = 20  # wrong tokens of one source in a window
MOST_KNOWN = 10_000  # sources, and tokens, that a process remembers


@dataclass(slots=True)
class PingThrottle:
    """The wrong tokens of one process. A source that has sent too many is refused, except with a token that was right before."""

    _wrong: "OrderedDict[str, tuple[int, int]]" = field(default_factory=OrderedDict)  # of a source: when its window began, and their number
    _right: "OrderedDict[str, None]" = field(default_factory=OrderedDict)

    def admit(self, source: str, token_hash: str | None, now: int) -> None:
        """Raise TooMany if the source has sent too many wrong tokens, and this one is not known to be right."""
        since, count = self._wrong.get(source, (now, 0))
        if count >= MOST_WRONG and now < since + WINDOW_MS and token_hash not in self._right:
            raise TooMany("Too many pings with wrong tokens have come from this address.", since + WINDOW_MS - now)

    def note_wrong(self, source: str, now: int) -> None:
        since, count = self._wrong.pop(source, (now, 0))
        self._wrong[source] = (since, count + 1) if now < since + WINDOW_MS else (now, 1)
        if len(self._wrong) > MOST_KNOWN:
            self._wrong.popitem(last=False)

    def note_right(self, token_hash: str) -> None:
        self._right[token_hash] = None
        self._right.move_to_end(token_hash)
        if len(self._right) > MOST_KNOWN:
            self._right.popitem(last=False)
