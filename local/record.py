"""Record the first job at a terminal for the docs, on a fresh local stack: python -m local.record [FILE]"""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from local.failure import Trouble, exit_code
from local.home import Home
from local.receiver import Receiver
from local.stack import up
from local.terminal import Frame, Screen, svg
from local.warmup import READY, warm_up

ROOT = Path(__file__).parent.parent
PUBLISHED = ROOT / "docs/images/first-job.svg"
TITLE = "The first job"
COLUMNS, ROWS = 92, 24
TYPED = 0.9  # seconds between a prompt and its command
COMMANDS = (  # {api} is the address of the stack
    "punctual login '{api}' --username {username}",
    "punctual jobs create --in 10s --key hello http POST {url}",
    "punctual jobs watch --key hello",
)


class Recorder:
    """Runs commands one after the other, and keeps each screen with the seconds since the beginning."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begin = clock, clock()
        self._screen = Screen(COLUMNS)
        self.frames: list[tuple[float, Frame]] = []

    def _show(self, output: str) -> None:
        self._screen.write(output)
        frame = self._screen.snapshot()
        if not self.frames or frame != self.frames[-1][1]:
            self.frames.append((self._clock() - self._begin, frame))

    def run(self, shown: str, command: list[str], environment: Mapping[str, str]) -> None:
        """Run a command; `shown` stands behind the prompt. Raises Trouble if it fails."""
        self._show("\x1b[32m$\x1b[0m ")
        time.sleep(TYPED)
        self._show(f"{shown}\r\n")
        for output in terminal_output(command, environment):
            self._show(output.replace("\r\n", "\n"))


def terminal_output(command: list[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the output of a command at a terminal of its own, as it comes. Raises Trouble if the command fails."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(command, env=dict(environment), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        whole = b""
        try:
            while part := _read(ours):
                whole += part
                text, whole = _whole(whole)
                yield text
        finally:
            os.close(ours)
    if process.returncode:
        raise Trouble(f"{' '.join(command)} ended with {process.returncode}")


def _read(number: int) -> bytes:
    try:
        return os.read(number, 65536)
    except OSError:  # Linux answers so when the program has ended
        return b""


def _whole(output: bytes) -> tuple[str, bytes]:
    """Return the text of complete characters, and the bytes of one that is not complete."""
    for cut in range(min(4, len(output) + 1)):
        try:
            return output[: len(output) - cut].decode(), output[len(output) - cut :]
        except UnicodeDecodeError:
            continue
    return output.decode(errors="replace"), b""


def record(address: str, username: str, password: str, url: str) -> list[tuple[float, Frame]]:
    """Run the commands against a stack, and return the frames. `url` is what the job calls."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")},
            "PUNCTUAL_CONFIG": f"{folder}/profiles.json",
            "PUNCTUAL_PASSWORD": password,
            "PYTHONPATH": str(ROOT / "client/src"),
            "TERM": "xterm-256color",
        }
        for template in COMMANDS:
            shown = template.format(api="$API", username=username, url=url).replace("'", "")
            line = template.format(api=address, username=username, url=url)
            recorder.run(shown, ["sh", "-c", f'punctual() {{ "{sys.executable}" -m punctual "$@"; }}; {line}'], environment)
    return recorder.frames


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PUBLISHED
    with tempfile.TemporaryDirectory() as folder, up(Home(Path(os.path.realpath(folder)))) as stack, Receiver() as receiver:
        warm_up(stack.aws, stack.outputs, OneTime=READY)
        frames = record(stack.address, stack.username, stack.password, receiver.url("/ok/hello"))
    target.write_text(svg(frames, TITLE, COLUMNS))
    print(f"{target}: {len(frames)} frames, {frames[-1][0]:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
