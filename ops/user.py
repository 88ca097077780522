"""Creates the first administrator of a stage on AWS (`make admin`)."""

import argparse
import getpass
import re
import sys

from local.failure import Trouble, exit_code
from local.user import ensure, password
from ops.cloud import reported, stage_of
from scheduler.model.account import PASSWORD


def main() -> int:
    parser = argparse.ArgumentParser(prog="ops.user", description="Create the first administrator of a stage on AWS.")
    parser.add_argument("--stage", required=True)
    parser.add_argument("--username", default="admin")
    options = parser.parse_args()
    secret, chosen = _ask()
    stage = stage_of(options.stage)
    with reported():
        outputs = stage.outputs()
        cognito = stage.client("cognito-idp")
        new = ensure(cognito, stage.client("dynamodb"), outputs, options.username, secret)
    print(f"{'Created' if new else 'Updated'} the administrator {options.username} of {stage.stack}.")
    print(f"API       {outputs['ApiUrl']}")
    print(f"password  {'(the password that you typed)' if chosen else secret}")
    return 0


def _ask() -> tuple[str, bool]:
    """Return the password and whether a person typed it. Without a terminal it is generated."""
    typed = getpass.getpass("Password (leave empty to generate one): ") if sys.stdin.isatty() else ""
    if typed and re.fullmatch(PASSWORD, typed) is None:
        raise Trouble("A password has at most 256 characters, none of them a blank.")
    return typed or password(), bool(typed)


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
