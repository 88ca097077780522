"""Lists of one owner's objects, or with `--everyone` of those of all users and teams."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from rich.text import Text

from punctual.cli._app import Cli
from punctual.cli._output import Column
from punctual.cli._whose import Named, all_teams
from punctual.records import Record

T = TypeVar("T", bound=Record)
E = TypeVar("E")
MOST_OWNERS = 300  # the API lists the objects of one owner at a time
AT_ONCE = 4  # requests


@dataclass(frozen=True)
class Owned(Generic[T]):
    """An entry of a list, and its owner."""

    owner: Named
    entry: T

    @property
    def raw(self) -> dict[str, Any]:
        return {**self.entry.raw, "owner": {"id": self.owner.id, "name": self.owner.name}}


@dataclass(frozen=True)
class Listing(Generic[T]):
    """A list: `ask` takes the argument `owner`, `shown` and `id` are those of `Output.entries`, `order` sorts lists of several owners."""

    ask: Callable[..., Iterable[T]]
    shown: Sequence[Column[T]]
    id: Callable[[T], str]
    none: str
    order: Callable[[T], Any]
    newest_first: bool = True


def show(cli: Cli, listing: Listing[T], everyone: bool, limit: int) -> None:
    """Print at most `limit` entries (0: all). Says so if entries or owners were left out."""
    if everyone:
        count = _of_everyone(cli, listing, limit)
    else:
        none = f"{listing.none} They would be of {cli.whose}." if cli.whose else listing.none
        count = cli.out.entries(_first(listing.ask(), limit), listing.shown, raw=lambda each: each.raw, none=none, id=listing.id)
    if limit and count == limit:
        cli.out.remark(f"At most {limit} are shown. For all: --limit 0")


def _of_everyone(cli: Cli, listing: Listing[T], limit: int) -> int:
    users = (Named(each.id, each.username) for each in cli.client.users.list())
    owners = list(islice(chain(users, all_teams(cli.client)), MOST_OWNERS + 1))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        lists = pool.map(partial(_of_one, listing, limit), owners[:MOST_OWNERS])
        entries = [each for one in lists for each in one]
    entries.sort(key=lambda each: listing.order(each.entry), reverse=listing.newest_first)
    columns = [Column[Owned[T]]("owner", lambda each: each.owner.name, essential=True)]
    columns += [Column(one.heading, partial(_text, one), one.essential, one.right) for one in listing.shown]
    shown = _first(entries, limit)
    count = cli.out.entries(shown, columns, raw=lambda each: each.raw, none=listing.none, id=lambda each: listing.id(each.entry))
    if len(owners) > MOST_OWNERS:
        cli.out.err.print(Text(f"warning: only {MOST_OWNERS} owners were asked, there are more. For one of the others: --owner", "yellow"))
    return count


def _of_one(listing: Listing[T], limit: int, owner: Named) -> list[Owned[T]]:
    return [Owned(owner, each) for each in _first(listing.ask(owner=owner.id), limit)]


def _text(column: Column[T], each: Owned[T]) -> object:
    return column.text(each.entry)


def _first(entries: Iterable[E], limit: int) -> Iterable[E]:
    return islice(entries, limit) if limit else entries
