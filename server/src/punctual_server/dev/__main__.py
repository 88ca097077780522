"""`python -m punctual_server.dev --json --home FOLDER`: the stack for another program, such as the tests of a user.

When it is up, it prints one JSON line with `url`, `username` and `password`. It stops when its standard input ends, so that it never
outlives the program that started it. Without `--json` it is `punctual dev`.
"""

import argparse
from pathlib import Path

from punctual_server import dev

parser = argparse.ArgumentParser(prog="python -m punctual_server.dev", description="Run the whole stack on this machine.")
parser.add_argument("--home", type=Path, metavar="FOLDER", help="the folder that keeps the state")
parser.add_argument("--port", type=int, help="the port of the local AWS")
parser.add_argument("--reset", action="store_true", help="delete the state first")
parser.add_argument("--json", action="store_true", help="print a JSON line when it is up, and stop when standard input ends (needs --home)")

if __name__ == "__main__":
    chosen = parser.parse_args()
    if chosen.json and chosen.home is None:
        parser.error("--json needs --home")
    if chosen.json:
        raise SystemExit(dev.serve(chosen.home, chosen.port, reset=chosen.reset))
    raise SystemExit(dev.run(chosen.home, chosen.port, reset=chosen.reset))
