"""The saved state of a local AWS. It is replaced as a whole, and repaired before a start: a kill at any moment leaves one that starts.

MiniStack writes a file for each service when it stops. Here it writes them to a folder of their own, which is renamed when it is complete.
The next start moves its files to the state. A run that is killed before leaves the state with which it began.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local.home import Home

OBJECTS_OF = "s3.json"


class NotSaved(Exception):
    """The state cannot be kept as a whole; the message has the reason."""


@contextmanager
def replacing(home: Home) -> Iterator[Path]:
    """Give a folder for the files of a new state. They replace the state at the next start, if the block ends without an error."""
    shutil.rmtree(home.saving, ignore_errors=True)
    home.saving.mkdir()
    yield home.saving
    home.saving.replace(home.saved)


Services = Mapping[str, Callable[[], Any]]


def save(home: Home, services: Services, write: Callable[[Path, Services], None]) -> None:
    """Save all services by `write`, which takes the folder and the functions that return their states.

    Raises NotSaved if one could not be saved: MiniStack logs that and goes on.
    """
    due = set[str]()

    def noting(name: str, state_of: Callable[[], Any]) -> Callable[[], Any]:
        def noted() -> Any:
            due.add(name)
            if (state := state_of()) is None:  # the service has nothing to save
                due.discard(name)
            return state

        return noted

    with replacing(home) as folder:
        write(folder, {name: noting(name, state_of) for name, state_of in services.items()})
        if missing := sorted(name for name in due if not (folder / f"{name}.json").exists()):
            raise NotSaved(f"the state of {', '.join(missing)} could not be written")


def mend(home: Home, port: int) -> None:
    """Make the saved state fit a start on `port`. Call it only while nothing runs on this home. It can be killed and repeated."""
    _adopt(home)
    _forget_objects(home)
    mended = dict[str, str]()
    for path in home.state.glob("*.json"):
        text = path.read_text()
        fitting = _moved(_rewound(text) if path.name == "lambda.json" else text, home.port_of_state.read().get("port"), port)
        if fitting != text:
            mended[path.name] = fitting
    with replacing(home) as folder:
        for name, text in mended.items():
            (folder / name).write_text(text)
        (folder / home.port_of_state.path.name).write_text(json.dumps({"port": port}))
    _adopt(home)


def _adopt(home: Home) -> None:
    """Move the files of a complete new state to the state, one by one. After a kill, the next start moves the rest."""
    if home.saved.exists():
        for path in home.saved.iterdir():
            path.replace(home.state / path.name)
        home.saved.rmdir()


def _forget_objects(home: Home) -> None:
    """Delete the objects of a run that was killed. MiniStack writes objects immediately, but buckets and stacks only when it stops: the
    folder of an unknown bucket would block the next deployment, and an asset may be cut."""
    path = home.state / OBJECTS_OF
    known, saved_at = _buckets(path), path.stat().st_mtime_ns if path.exists() else 0
    for found in home.objects.rglob("*"):
        if found.is_file() and found.stat().st_mtime_ns > saved_at:
            found.unlink()
    for bucket in [*home.objects.glob("[0-9]*/*"), *home.objects.glob("[!0-9]*/*/*")]:  # the latter have versions of objects
        if bucket.name not in known:
            shutil.rmtree(bucket)


def _buckets(path: Path) -> set[str]:
    if not path.exists():
        return set()
    scoped = json.loads(path.read_text())["payload"]["buckets_meta"]["data"]
    return {key.partition("\0")[2].strip("'") for key in scoped}  # account, NUL, name in quotes


def _rewound(text: str) -> str:
    """Reset stream positions. MiniStack saves these but not the records: a mapping would wait without end at its old position."""
    saved = json.loads(text)
    positions = saved.get("payload", {}).get("dynamodb_stream_positions", {}).get("data", {})
    if not any(positions.values()):
        return text
    positions.update(dict.fromkeys(positions, 0))
    return json.dumps(saved)


def _moved(text: str, old: int | None, new: int) -> str:
    """Replace the port in queue addresses: these are in the queues, the functions' environment and the stack's outputs."""
    return re.sub(rf"(localhost|127\.0\.0\.1):{old}\b", rf"\g<1>:{new}", text) if old and old != new else text
