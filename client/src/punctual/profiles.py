"""The profiles of `punctual login`: addresses and credentials, in a file that only its user can read."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from stat import S_IMODE
from typing import Any

from punctual.errors import NotConfigured

OTHERS_WRITE = 0o022


@dataclass(frozen=True)
class Profile:
    """One stage and how to sign in to it. `expires_at` is when `token` expires, in epoch seconds. A password is never stored.

    `owner` is the id of the team, or other owner, whose objects the calls are about, unless they name another one.
    """

    name: str
    url: str
    username: str | None = None
    auth: str | None = None  # "aws": the AWS role of the program that uses the profile, of which nothing is stored
    key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    owner: str | None = None
    owner_name: str | None = None


@dataclass(frozen=True)
class Profiles:
    """All profiles by name, and the name of the current one."""

    current: str | None = None
    all: Mapping[str, Profile] = field(default_factory=dict)


def path() -> Path:
    """Return the path of the file: `PUNCTUAL_CONFIG`, or `punctual/profiles.json` in the platform's configuration folder.

    Raises NotConfigured if the user has no home folder.
    """
    if chosen := os.environ.get("PUNCTUAL_CONFIG"):
        return Path(chosen)
    try:
        if sys.platform == "win32":
            folder = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
        elif sys.platform == "darwin":
            folder = Path.home() / "Library" / "Application Support"
        else:
            folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    except RuntimeError as error:
        raise NotConfigured("this user has no home folder: set PUNCTUAL_CONFIG to the file of the profiles") from error
    return folder / "punctual" / "profiles.json"


def load() -> Profiles:
    """Return all profiles; none if the file does not exist.

    Raises NotConfigured if the file cannot be read, is broken, or can be changed by other users, who could send tokens elsewhere.
    """
    try:
        where = path()
    except NotConfigured:
        return Profiles()
    try:
        if os.name == "posix" and S_IMODE(where.stat().st_mode) & OTHERS_WRITE:
            raise NotConfigured(f"other users can change {where}: take that right away with `chmod 600 '{where}'`")
        stored = json.loads(where.read_text(encoding="utf-8"))
        known = {one.name for one in fields(Profile)}
        found = {
            name: Profile(name=name, **{key: value for key, value in entry.items() if key in known and key != "name"})
            for name, entry in stored["profiles"].items()
        }
        return Profiles(stored.get("current"), found)
    except FileNotFoundError:
        return Profiles()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotConfigured(f"{where} cannot be read ({error}): delete it, then sign in again with `punctual login`") from error


def find(name: str | None = None) -> Profile | None:
    """Return the profile of this name, of `PUNCTUAL_PROFILE`, or the current one; None if there is no profile at all.

    Raises NotConfigured if there is no profile of the specified name.
    """
    profiles = load()
    chosen = name or os.environ.get("PUNCTUAL_PROFILE") or None
    if chosen is None:
        return profiles.all.get(profiles.current or "")
    if chosen not in profiles.all:
        known = ", ".join(sorted(profiles.all)) or "none"
        raise NotConfigured(f"there is no profile {chosen!r} (there are: {known}): create it with `punctual login --profile {chosen}`")
    return profiles.all[chosen]


def save(profile: Profile, *, current: bool = True) -> None:
    """Store a profile, by default as the current one. The file is replaced as a whole, so that a reader never sees half of it.

    Raises NotConfigured if the file cannot be written; so do `renew`, `choose_owner` and `remove`.
    """
    with _locked():
        profiles = load()
        _write(Profiles(profile.name if current else profiles.current, {**profiles.all, profile.name: profile}))


def renew(profile: Profile) -> None:
    """Store the renewed tokens of a profile, unless it was removed in the meantime. Its other fields stay as they are stored."""
    _change(profile.name, token=profile.token, refresh_token=profile.refresh_token, expires_at=profile.expires_at)


def choose_owner(name: str, owner: str | None, owner_name: str | None) -> None:
    """Store the owner of a profile; None: the account itself. Its other fields stay as they are stored."""
    _change(name, owner=owner, owner_name=owner_name)


def _change(name: str, **fields: Any) -> None:
    with _locked():
        profiles = load()
        if name in profiles.all:
            _write(Profiles(profiles.current, {**profiles.all, name: replace(profiles.all[name], **fields)}))


def remove(name: str) -> None:
    """Delete a profile. If it was the current one, there is no current one any more. A missing profile is no error."""
    with _locked():
        profiles = load()
        rest = {other: profile for other, profile in profiles.all.items() if other != name}
        _write(Profiles(None if profiles.current == name else profiles.current, rest))


@contextmanager
def _locked() -> Iterator[None]:
    """Hold the file lock of the profiles, which waits for other processes and threads. A process that ends gives it up.

    Raises NotConfigured for an error of the file system, also of the work under the lock.
    """
    where = path()
    try:
        with _lock(where):
            yield
    except OSError as error:
        reason = f"{where} cannot be written ({error.strerror or error})"
        raise NotConfigured(f"{reason}: set PUNCTUAL_CONFIG to a file in a folder that you can write") from error


@contextmanager
def _lock(where: Path) -> Iterator[None]:
    where.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with where.with_name(f".{where.name}.lock").open("ab") as file:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # released when the file is closed
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(profiles: Profiles) -> None:
    where = path()
    stored = {name: {key: value for key, value in asdict(one).items() if value is not None} for name, one in profiles.all.items()}
    handle, part = tempfile.mkstemp(dir=where.parent, prefix=".profiles-")  # mode 600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"current": profiles.current, "profiles": stored}, file, indent=2)
    Path(part).replace(where)
