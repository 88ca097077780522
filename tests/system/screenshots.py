"""Takes pictures of the console, and of the first job at a terminal, on a fresh local stack: `make screenshots`.

`console/artefacts/screenshots` gets each page at two widths, light and dark; `docs/images` gets the pictures that documents show.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from docs_build.record import record, svg
from local.failure import Trouble, exit_code
from local.home import REPOSITORY, Home
from local.receiver import Receiver
from local.stack import up
from local.steps import console, step
from tests.system.conftest import System
from tests.system.test_console import ARTEFACTS, stories

IMAGES = REPOSITORY / "docs" / "images"
SHOWN = ("tasks", "job", "capacity")  # by README.md and pages of the docs, each in its light and its dark look


def main() -> int:
    taken = ARTEFACTS / "screenshots"
    with tempfile.TemporaryDirectory(prefix="screenshots-") as name, Receiver() as receiver:
        with up(Home(Path(name).resolve() / "aws"), enforce_iam=True) as stack, step("Taking pictures"):
            done = stories(System(stack, receiver), taken, files="browser/screenshots.ts")
            terminal = record(stack.address, stack.username, stack.password, receiver.url("/ok/hello"))
    if done.returncode != 0:
        raise Trouble(f"Not all pictures were taken:\n{done.stdout}\n{done.stderr}")
    (IMAGES / "first-job.svg").write_text(svg(terminal))
    for page in SHOWN:
        shutil.copyfile(taken / f"{page}-1440-light.png", IMAGES / f"{page}.png")
        shutil.copyfile(taken / f"{page}-1440-dark.png", IMAGES / f"{page}-dark.png")
    console.print(
        f"{len(list(taken.glob('*.png')))} pictures are in {taken.relative_to(REPOSITORY)}; {2 * len(SHOWN)} and a terminal in docs/images."
    )
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
