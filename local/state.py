"""Repairs the saved state of a local AWS before a start. MiniStack 1.5.33 saves three kinds of data that do not fit its next start."""

import json
import re
import shutil

from local.home import Home


def mend(home: Home, port: int) -> None:
    """Make the saved state fit a start on `port`. Call it only while nothing runs on this home."""
    if not (home.state / "cloudformation.json").exists():
        _forget_objects(home)
    if (home.state / "lambda.json").exists():
        _rewind_streams(home)
    last = home.settled.read().get("port")
    if last and last != port:
        _move(home, last, port)


def _forget_objects(home: Home) -> None:
    """Delete all objects. MiniStack saves objects immediately, but stacks only when it stops: a killed first run leaves only buckets,
    which would block the next deploy."""
    shutil.rmtree(home.objects, ignore_errors=True)
    home.objects.mkdir()


def _rewind_streams(home: Home) -> None:
    """Reset stream positions. MiniStack saves these but not the records: a mapping would wait without end at its old position."""
    path = home.state / "lambda.json"
    saved = json.loads(path.read_text())
    positions = saved.get("payload", {}).get("dynamodb_stream_positions", {}).get("data", {})
    if any(positions.values()):
        positions.update(dict.fromkeys(positions, 0))
        path.write_text(json.dumps(saved))


def _move(home: Home, old: int, new: int) -> None:
    """Replace the port in queue addresses: these are in the queues, the functions' environment and the stack's outputs."""
    address = re.compile(rf"(localhost|127\.0\.0\.1):{old}\b")
    for path in home.state.glob("*.json"):
        text = path.read_text()
        moved = address.sub(rf"\1:{new}", text)
        if moved != text:
            path.write_text(moved)
