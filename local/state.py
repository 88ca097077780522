"""The state of a stopped local AWS, mended for the next start. MiniStack 1.5.33 saves three things that do not fit."""

import json
import re
import shutil

from local.home import Home


def mend(home: Home, port: int) -> None:
    """Make the saved state fit a start on `port`. To be called while nothing runs on it."""
    if not (home.state / "cloudformation.json").exists():
        _forget_objects(home)
    if (home.state / "lambda.json").exists():
        _rewind_streams(home)
    last = home.settled.read().get("port")
    if last and last != port:
        _move(home, last, port)


def _forget_objects(home: Home) -> None:
    """Objects are saved at once, stacks when it stops: of a first run that was killed only buckets remain, in the way of the next."""
    shutil.rmtree(home.objects, ignore_errors=True)
    home.objects.mkdir()


def _rewind_streams(home: Home) -> None:
    """Stream positions are saved, stream records are not: a mapping would wait for ever behind its old position."""
    path = home.state / "lambda.json"
    saved = json.loads(path.read_text())
    positions = saved.get("payload", {}).get("dynamodb_stream_positions", {}).get("data", {})
    if any(positions.values()):
        positions.update(dict.fromkeys(positions, 0))
        path.write_text(json.dumps(saved))


def _move(home: Home, old: int, new: int) -> None:
    """Queue addresses hold the port, in the queues, the functions' environment and the stack's outputs."""
    address = re.compile(rf"(localhost|127\.0\.0\.1):{old}\b")
    for path in home.state.glob("*.json"):
        text = path.read_text()
        moved = address.sub(rf"\1:{new}", text)
        if moved != text:
            path.write_text(moved)
