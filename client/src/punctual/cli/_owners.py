"""The owner of the objects that a command is about: the caller, the user of `--owner`, or with `--everyone` all users."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

from rich.text import Text

from punctual.cli import users
from punctual.cli._app import Cli, Refused
from punctual.cli._output import Column
from punctual.records import Record, User

T = TypeVar("T", bound=Record)
E = TypeVar("E")
MOST_USERS = 300  # the API lists the objects of one user at a time
AT_ONCE = 4  # requests


@dataclass(frozen=True)
class Owned(Generic[T]):
    """An entry of a list, and its owner."""

    owner: User
    entry: T

    @property
    def raw(self) -> dict[str, Any]:
        return {**self.entry.raw, "owner": {"id": self.owner.id, "username": self.owner.username}}


def of(cli: Cli, owner: str | None) -> str | None:
    """Return the id of the user whom `--owner` names, by name or id; None without one. Raises Refused."""
    return None if owner is None else users.find(cli, owner, "--owner").id


def again(owner: str | None) -> str:
    """Return `--owner` as it belongs to a next command."""
    return "" if owner is None else f" --owner {owner}"


@dataclass(frozen=True)
class Listing(Generic[T]):
    """A list: `ask` takes the argument `owner`, `shown` and `id` are those of `Output.entries`, `order` sorts lists of several owners."""

    ask: Callable[..., Iterable[T]]
    shown: Sequence[Column[T]]
    id: Callable[[T], str]
    none: str
    order: Callable[[T], Any]
    newest_first: bool = True


def show(cli: Cli, listing: Listing[T], owner: str | None, everyone: bool, limit: int) -> None:
    """Print at most `limit` entries (0: all). Says so if entries or users were left out."""
    if everyone and owner is not None:
        raise Refused("give --owner or --everyone, not both", field="--everyone")
    if everyone:
        count = _of_everyone(cli, listing, limit)
    else:
        found = _first(listing.ask(owner=of(cli, owner)), limit)
        count = cli.out.entries(found, listing.shown, raw=lambda each: each.raw, none=listing.none, id=listing.id)
    if limit and count == limit:
        cli.out.remark(f"At most {limit} are shown. For all: --limit 0")


def _of_everyone(cli: Cli, listing: Listing[T], limit: int) -> int:
    owners = list(islice(cli.client.users.list(), MOST_USERS + 1))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        lists = pool.map(partial(_of_one, listing, limit), owners[:MOST_USERS])
        entries = [each for one in lists for each in one]
    entries.sort(key=lambda each: listing.order(each.entry), reverse=listing.newest_first)
    columns = [Column[Owned[T]]("owner", lambda each: each.owner.username, essential=True)]
    columns += [Column(one.heading, partial(_text, one), one.essential, one.right) for one in listing.shown]
    shown = _first(entries, limit)
    count = cli.out.entries(shown, columns, raw=lambda each: each.raw, none=listing.none, id=lambda each: listing.id(each.entry))
    if len(owners) > MOST_USERS:
        cli.out.err.print(Text(f"warning: only {MOST_USERS} users were asked, there are more. For one of the others: --owner", "yellow"))
    return count


def _of_one(listing: Listing[T], limit: int, owner: User) -> list[Owned[T]]:
    return [Owned(owner, each) for each in _first(listing.ask(owner=owner.id), limit)]


def _text(column: Column[T], each: Owned[T]) -> object:
    return column.text(each.entry)


def _first(entries: Iterable[E], limit: int) -> Iterable[E]:
    return islice(entries, limit) if limit else entries
