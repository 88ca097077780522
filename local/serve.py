"""`python -m local.serve FOLDER`: the stack for another program, such as the tests of a user.

It keeps its state in FOLDER. When it is up, it prints one JSON line with `url`, `username` and `password`. It stops when its standard
input ends, so that it never outlives the program that started it.
"""

import json
import sys
from pathlib import Path

from local.failure import exit_code
from local.home import Home
from local.stack import up
from local.warmup import warm_up


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with up(Home(Path(sys.argv[1]).resolve())) as stack:
        warm_up(stack.aws, stack.outputs, OneTime=1)
        print(json.dumps({"url": stack.address, "username": stack.username, "password": stack.password}), flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
