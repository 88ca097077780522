"""`make stop`: stop all runs of this folder, also those of other terminals, and clean up after runs that were killed."""

from local import previous
from local.failure import exit_code
from local.home import LOCAL, Home

DEMO = Home(LOCAL / "demo")
DRILL = Home(LOCAL / "drill")
LOAD = Home(LOCAL / "load")
PROVE = Home(LOCAL / "prove")
COMPARE = Home(LOCAL / "compare")
DELAYED = Home(LOCAL / "delayed")  # of `make compare`: SQS alone
RATIOS = Home(LOCAL / "ratios")
HOMES = (Home(LOCAL), DEMO, DRILL, LOAD, PROVE, COMPARE, DELAYED, RATIOS)


def main() -> int:
    found = [line for home in HOMES for line in previous.stop(home)]
    print("\n".join(found) or "Nothing was running.")
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
